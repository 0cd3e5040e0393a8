//! AR coefficients and residual ratios that contradict each other: inflows would not have the deviation that their
//! statistics give.

use super::system::InflowModel;

/// Rounds through all stages, enough for variances to settle.
const ROUNDS: usize = 60;
/// The share by which a variance may be off: ratios are often rounded.
const TOLERANCE: f64 = 0.05;
/// The same with more than one lag, where stages that are not whole years leave more open.
const LOOSE: f64 = 0.1;

/// The stage whose variance is furthest from what the statistics give, and its share of that, if it is too far off.
/// The stages are taken as a year that repeats.
pub(super) fn contradiction(stages: &[InflowModel]) -> Option<(usize, f64)> {
    let lags = |model: &InflowModel| model.standardised.len();
    let order = stages.iter().map(lags).max().filter(|order| *order > 0)?;
    let tolerance = if order == 1 { TOLERANCE } else { LOOSE };
    // Of the newest inflows, divided by their deviations.
    let mut covariance = vec![vec![0.0; order]; order];
    for (place, row) in covariance.iter_mut().enumerate() {
        row[place] = 1.0;
    }
    let mut worst = None;
    for round in 0..ROUNDS {
        for (number, model) in stages.iter().enumerate() {
            let variance = step(&mut covariance, model);
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

/// Puts the inflow of a stage in front of those before it; returns its variance.
fn step(covariance: &mut [Vec<f64>], model: &InflowModel) -> f64 {
    let factors = &model.standardised;
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
    let variance = explained + model.residual * model.residual;
    for row in (1..order).rev() {
        for column in (1..order).rev() {
            covariance[row][column] = covariance[row - 1][column - 1];
        }
    }
    for place in 1..order {
        covariance[0][place] = newest[place - 1];
        covariance[place][0] = newest[place - 1];
    }
    covariance[0][0] = variance;
    variance
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
