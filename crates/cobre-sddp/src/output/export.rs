//! The cuts of a policy for other programs.

use cobre_results::csv_text;
use cobre_results::layout::cuts::NAME;
use serde_json::{Value, json};

use super::policy::{cuts_schema, pieces};
use crate::policy::Policy;
use crate::problem::Sense;

/// The cuts as CSV, in the modeller's sense: node, iteration, pass, intercept, and a column of slopes per state.
pub fn cuts_csv(policy: &Policy) -> String {
    let schema = cuts_schema(NAME, &policy.manifest);
    let mut text = String::new();
    for rows in pieces(&schema, policy) {
        let piece = csv_text(&schema, &rows);
        // Every piece has the header.
        let rest = piece.find('\n').map_or(piece.len(), |end| end + 1);
        text.push_str(if text.is_empty() {
            &piece
        } else {
            &piece[rest..]
        });
    }
    text
}

/// The cuts as the JSON that SDDP.jl reads (`read_cuts_from_file`), in the modeller's sense. A node is its name if all
/// names are whole numbers, as in a linear policy graph of SDDP.jl, and else its number from 1.
pub fn cuts_sddp_jl(policy: &Policy) -> Value {
    let manifest = &policy.manifest;
    let is_number = |name: &String| name.parse::<u64>().is_ok();
    let numbered = manifest.nodes.iter().all(is_number);
    let sign = if manifest.sense == Sense::Maximize.name() {
        -1.0
    } else {
        1.0
    };
    let nodes = manifest.nodes.iter().zip(&policy.cuts).zip(1..);
    let nodes = nodes.map(|((name, cuts), number)| {
        let cuts = cuts.iter().map(|cut| {
            let slopes = manifest.states.iter().zip(&cut.gradient);
            let slopes = slopes.map(|(state, slope)| (state.name.clone(), json!(sign * slope)));
            let slopes: serde_json::Map<String, Value> = slopes.collect();
            json!({ "intercept": sign * cut.intercept, "coefficients": slopes })
        });
        let name = if numbered {
            name.clone()
        } else {
            number.to_string()
        };
        json!({
            "node": name,
            "single_cuts": cuts.collect::<Vec<Value>>(),
            "multi_cuts": [],
            "risk_set_cuts": [],
        })
    });
    nodes.collect()
}
