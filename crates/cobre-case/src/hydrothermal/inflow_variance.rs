//! The variance of inflows that AR coefficients explain: residual ratios that a case leaves out, and those that contradict
//! the coefficients, so that inflows would not have the deviation that their statistics give.

use std::collections::HashMap;

use super::estimation::MONTHS;
use super::files::Files;
use super::files::scenarios::ArCoefficients;
use super::files::stages::Stage;
use super::number::{Id, NonNegative};
use super::system::{CarriedInflow, InflowModel};

/// Rounds through all stages, enough for variances to settle.
const ROUNDS: usize = 60;
/// The share by which a variance may be off: ratios are often rounded.
const TOLERANCE: f64 = 0.05;
/// The same with more than one lag, where stages that are not whole years leave more open.
const LOOSE: f64 = 0.1;

/// The stage whose variance is furthest from what the statistics give, and its share of that, if it is too far off.
/// The stages are taken as a year that repeats.
pub(super) fn contradiction(stages: &[InflowModel]) -> Option<(usize, f64)> {
    // Stages of which several make a season say nothing of the deviation of that.
    let shifts = |model: &InflowModel| {
        let newest = CarriedInflow::newest();
        model.carried.first().is_none_or(|first| *first == newest)
    };
    if !stages.iter().all(shifts) {
        return None;
    }
    let lags = |model: &InflowModel| model.standardised.len();
    let order = stages.iter().map(lags).max().filter(|order| *order > 0)?;
    let tolerance = if order == 1 { TOLERANCE } else { LOOSE };
    let mut covariance = independent(order);
    let mut worst = None;
    for round in 0..ROUNDS {
        for (number, model) in stages.iter().enumerate() {
            let (newest, explained) = explained(&covariance, &model.standardised);
            let variance = explained + model.residual * model.residual;
            push(&mut covariance, &newest, variance);
            let off = (variance - 1.0).abs();
            if !variance.is_finite() || variance > 1e6 {
                return Some((number, f64::INFINITY));
            }
            let further = worst.is_none_or(|(_, before): (usize, f64)| off > (before - 1.0).abs());
            if round == ROUNDS - 1 && off > tolerance && further {
                worst = Some((number, variance));
            }
        }
    }
    worst
}

impl ArCoefficients {
    /// The deviation of what is new, as a part of the standard deviation.
    pub(crate) fn residual(&self) -> f64 {
        self.residual_std_ratio.map_or(1.0, |ratio| ratio.0)
    }
}

/// Derives the residual ratios that a case leaves out, as release 0.18 of the format does: what the coefficients do not
/// explain of a variance of 1. The seasons of the stages are taken as a year that repeats.
pub(super) fn derive_residuals(files: &mut Files) {
    let lacking = |row: &ArCoefficients| row.residual_std_ratio.is_none();
    if !files.ar_coefficients.iter().any(lacking) {
        return;
    }
    let seasons = SeasonOrder::of(files);
    let mut ratios: HashMap<Id, Vec<f64>> = HashMap::new();
    for (plant, factors) in seasons.factors(files) {
        ratios.insert(plant, residuals(&factors));
    }
    for row in files.ar_coefficients.iter_mut().filter(|row| lacking(row)) {
        let season = seasons.of_stage.get(&row.stage_id);
        let ratio = season.map_or(1.0, |season| ratios[&row.hydro_id][*season]);
        row.residual_std_ratio = Some(NonNegative(ratio));
    }
}

/// The seasons of the stages, in their order.
struct SeasonOrder {
    /// The number of the first stage of each.
    first: Vec<Id>,
    /// By number of a stage.
    of_stage: HashMap<Id, usize>,
}

impl SeasonOrder {
    fn of(files: &Files) -> Self {
        let same = |one: &Stage, other: &Stage| {
            one.season_id.is_some() && one.season_id == other.season_id
        };
        let (mut first, mut of_stage) = (Vec::new(), HashMap::new());
        for stages in files.stages.stages.chunk_by(same) {
            of_stage.extend(stages.iter().map(|stage| (stage.id, first.len())));
            first.push(stages[0].id);
        }
        Self { first, of_stage }
    }

    /// The season that begins with this stage.
    fn begun_by(&self, stage: Id) -> Option<usize> {
        let season = self.of_stage.get(&stage).copied();
        season.filter(|season| self.first[*season] == stage)
    }

    /// By plant and season, the coefficients of past inflows, each divided by its deviation, by lag; those of an annual
    /// mean are shared out to its twelve months.
    fn factors(&self, files: &Files) -> HashMap<Id, Vec<Vec<f64>>> {
        let mut found: HashMap<Id, Vec<Vec<f64>>> = HashMap::new();
        let mut rows: Vec<&ArCoefficients> = files.ar_coefficients.iter().collect();
        rows.sort_by_key(|row| row.lag);
        for row in rows {
            let of_plant = found.entry(row.hydro_id);
            let of_plant = of_plant.or_insert_with(|| vec![Vec::new(); self.first.len()]);
            if let Some(season) = self.begun_by(row.stage_id) {
                of_plant[season].push(row.coefficient.0);
            }
        }
        let stats = files.inflow_stats.iter();
        let deviations: HashMap<(Id, Id), f64> = stats
            .map(|row| ((row.hydro_id, row.stage_id), row.std_m3s.0))
            .collect();
        let annual = files.annual_component.iter();
        for row in annual.filter(|row| row.annual_std_m3s.0 > 0.0) {
            let of_plant = found.get_mut(&row.hydro_id);
            let (Some(of_plant), Some(season)) = (of_plant, self.begun_by(row.stage_id)) else {
                continue;
            };
            let factors = &mut of_plant[season];
            factors.resize(factors.len().max(MONTHS), 0.0);
            let part = row.annual_coefficient.0 / row.annual_std_m3s.0 / MONTHS as f64;
            for (place, factor) in factors.iter_mut().take(MONTHS).enumerate() {
                let count = self.first.len();
                let before = self.first[(season + MONTHS * count - place - 1) % count];
                let deviation = deviations.get(&(row.hydro_id, before)).copied();
                *factor += part * deviation.unwrap_or(0.0);
            }
        }
        found
    }
}

/// By season, the deviation of what the factors of past inflows do not explain of an inflow of deviation 1.
fn residuals(factors: &[Vec<f64>]) -> Vec<f64> {
    let order = factors.iter().map(Vec::len).max().unwrap_or(0);
    let mut ratios = vec![1.0; factors.len()];
    let mut covariance = independent(order);
    for _ in 0..ROUNDS {
        for (factors, ratio) in factors.iter().zip(&mut ratios) {
            let (newest, explained) = explained(&covariance, factors);
            *ratio = (1.0 - explained).max(0.0).sqrt();
            push(&mut covariance, &newest, 1.0);
        }
    }
    ratios
}

/// No relation between the newest inflows, divided by their deviations.
fn independent(order: usize) -> Vec<Vec<f64>> {
    let mut covariance = vec![vec![0.0; order]; order];
    for (place, row) in covariance.iter_mut().enumerate() {
        row[place] = 1.0;
    }
    covariance
}

/// The covariances of the next inflow with those before it, and the part of its variance that the factors explain.
fn explained(covariance: &[Vec<f64>], factors: &[f64]) -> (Vec<f64>, f64) {
    let with = |place: usize, covariance: &[Vec<f64>]| -> f64 {
        let terms = factors.iter().enumerate();
        terms
            .map(|(lag, factor)| factor * covariance[lag][place])
            .sum()
    };
    let order = covariance.len();
    let newest: Vec<f64> = (0..order).map(|place| with(place, covariance)).collect();
    let explained: f64 = factors
        .iter()
        .zip(&newest)
        .map(|(factor, with)| factor * with)
        .sum();
    (newest, explained)
}

/// Puts the next inflow, with these covariances and this variance, in front of those before it.
fn push(covariance: &mut [Vec<f64>], newest: &[f64], variance: f64) {
    let order = covariance.len();
    for row in (1..order).rev() {
        for column in (1..order).rev() {
            covariance[row][column] = covariance[row - 1][column - 1];
        }
    }
    for place in 1..order {
        covariance[0][place] = newest[place - 1];
        covariance[place][0] = newest[place - 1];
    }
    if let Some(first) = covariance.first_mut() {
        first[0] = variance;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn year(standardised: &[f64], residual: f64) -> Vec<InflowModel> {
        let model = InflowModel {
            standardised: standardised.to_vec(),
            residual,
            ..InflowModel::default()
        };
        vec![model; 12]
    }

    #[test]
    fn ratios_that_are_left_out_are_those_of_the_yule_walker_equations() {
        let near = |found: &[f64], expected: &[f64]| {
            let pairs = found.iter().zip(expected);
            found.len() == expected.len()
                && pairs
                    .into_iter()
                    .all(|(one, other)| (one - other).abs() < 1e-9)
        };
        assert!(near(&residuals(&[vec![], vec![]]), &[1.0, 1.0]));
        assert!(near(&residuals(&[vec![0.6]]), &[0.8]));
        assert!(near(&residuals(&[vec![0.5, 0.2]]), &[0.585_f64.sqrt()]));
        // Two seasons: ρ(0, 1) = 0.6, ρ(1, 1) = 0.3 + 0.4 · ρ(0, 1), ρ(1, 2) = 0.3 · ρ(0, 1) + 0.4.
        let explained = 0.3 * 0.54 + 0.4 * 0.58;
        assert!(near(
            &residuals(&[vec![0.6], vec![0.3, 0.4]]),
            &[0.8, (1.0_f64 - explained).sqrt()]
        ));
    }

    #[test]
    fn ratios_of_the_yule_walker_equations_pass_and_others_do_not() {
        assert_eq!(contradiction(&year(&[], 1.0)), None);
        assert_eq!(contradiction(&year(&[0.6], 0.8)), None);
        // ρ₁ = 0.5 / 0.8, ρ₂ = 0.5 · ρ₁ + 0.2; 1 − 0.5 · ρ₁ − 0.2 · ρ₂ = 0.585.
        assert_eq!(contradiction(&year(&[0.5, 0.2], 0.585_f64.sqrt())), None);
        let (_, share) = contradiction(&year(&[0.6], 1.0)).expect("far too much");
        assert!((share - 1.0 / 0.64).abs() < 1e-6, "{share}");
        let (_, share) = contradiction(&year(&[0.5, 0.2], 0.71_f64.sqrt())).expect("too much");
        assert!((share - 0.71 / 0.585).abs() < 1e-3, "{share}");
        let (_, share) = contradiction(&year(&[1.1], 0.5)).expect("it grows without end");
        assert!(share.is_infinite());
    }
}
