//! A quantity for every stage and scenario.

/// One value per stage and scenario; NaN where there is none.
#[derive(Debug, Clone)]
pub(crate) struct Grid {
    scenarios: usize,
    /// Stage by stage.
    values: Vec<f64>,
}

impl Grid {
    /// A grid without values.
    pub(crate) fn new(stages: usize, scenarios: usize) -> Self {
        Self {
            scenarios,
            values: vec![f64::NAN; stages * scenarios],
        }
    }

    /// Adds to the value of a stage and a scenario, both from 0.
    pub(crate) fn add(&mut self, stage: usize, scenario: usize, value: f64) {
        let cell = &mut self.values[stage * self.scenarios + scenario];
        *cell = if cell.is_nan() { value } else { *cell + value };
    }

    /// The values of each stage, in scenario order.
    pub(crate) fn stages(&self) -> impl Iterator<Item = &[f64]> {
        self.values.chunks_exact(self.scenarios.max(1))
    }

    /// The values of a scenario, in stage order.
    pub(crate) fn scenario(&self, scenario: usize) -> Vec<f64> {
        let stages = self.stages();
        stages.map(|values| values[scenario]).collect()
    }

    /// The largest value; NaN if there is none.
    pub(crate) fn largest(&self) -> f64 {
        self.values.iter().copied().fold(f64::NAN, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_one_place_are_summed() {
        let mut grid = Grid::new(2, 3);
        grid.add(1, 2, 4.0);
        grid.add(1, 2, 5.0);
        assert_eq!(grid.stages().nth(1).map(|values| values[2]), Some(9.0));
        assert!(grid.scenario(0)[0].is_nan());
        assert_eq!(grid.scenario(2)[1], 9.0);
        assert_eq!(grid.largest(), 9.0);
    }
}
