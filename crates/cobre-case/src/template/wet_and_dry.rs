//! One reservoir in wet and dry regimes: a Markov chain.

use serde_json::{Value, json};

use super::files::{CaseFiles, TemplateColumn};
use super::one_reservoir;
use super::parts::round;

/// The regimes: number, the mean as a part of that of all years, the deviation as a part of the mean, and the
/// probabilities of each regime in the next month.
const REGIMES: [(usize, f64, f64, [f64; 2]); 2] =
    [(1, 1.25, 0.2, [0.85, 0.15]), (2, 0.65, 0.25, [0.2, 0.8])];

pub(super) fn make(files: &mut CaseFiles) {
    one_reservoir::make(files);
    let months = one_reservoir::months();
    let mut stages = files.read_json("stages.json");
    stages["policy_graph"] = graph(months.count, months.discount);
    files.json("stages.json", stages);
    regimes(files);
}

/// A node for each month and regime; the first month is wet.
fn graph(count: usize, discount: f64) -> Value {
    let id = |month: usize, regime: usize| 10 * month + regime;
    let (mut nodes, mut steps) = (Vec::new(), Vec::new());
    for month in 0..count {
        for (regime, _, _, next) in &REGIMES[..if month == 0 { 1 } else { 2 }] {
            nodes.push(json!({"id": id(month, *regime), "stage_id": month, "scenario_id": regime}));
            let next = REGIMES.iter().zip(next);
            let next = next.map(|((to, ..), probability)| {
                json!({"source_id": id(month, *regime), "target_id": id(month + 1, *to), "probability": probability})
            });
            steps.extend(next.filter(|_| month + 1 < count));
        }
    }
    json!({"type": "finite_horizon", "annual_discount_rate": discount, "nodes": nodes, "transitions": steps})
}

/// Writes the inflows of the regimes.
fn regimes(files: &mut CaseFiles) {
    let lake = one_reservoir::lake();
    let (mut ids, mut stages, mut means, mut deviations) = (vec![], vec![], vec![], vec![]);
    for (regime, share, spread, _) in REGIMES {
        for month in 0..one_reservoir::months().count {
            let mean = round(share * lake.mean(month));
            ids.push(regime);
            stages.push(month);
            means.push(mean);
            deviations.push(round(spread * mean));
        }
    }
    let columns = [
        ("hydro_id", TemplateColumn::of_places(vec![0; ids.len()])),
        ("scenario_id", TemplateColumn::of_places(ids)),
        ("stage_id", TemplateColumn::of_places(stages)),
        ("mean_m3s", TemplateColumn::Numbers(means)),
        ("std_m3s", TemplateColumn::Numbers(deviations)),
    ];
    files.table("scenarios/inflow_regimes.parquet", &columns);
}
