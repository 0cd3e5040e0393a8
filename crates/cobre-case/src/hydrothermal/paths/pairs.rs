//! Scenarios of several kinds on one path: those of one name.

use std::collections::HashMap;

use super::{GivenScenarios, PathPlan, SeriesPlan};
use crate::finding::{Findings, Place};

impl PathPlan {
    /// Puts the scenarios of all kinds in the order of those that name paths, by their names. A kind with one scenario
    /// goes with all of the others. Says which scenarios lack their like.
    pub(super) fn pair(&mut self, at: &Place, findings: &mut Findings) {
        let Some(names) = self.scenarios().cloned() else {
            return;
        };
        let kinds = [
            (&mut self.inflows, "inflow"),
            (&mut self.loads, "load"),
            (&mut self.sources, "ncs"),
        ];
        for (plan, kind) in kinds {
            let SeriesPlan::Given(own) = plan else {
                continue;
            };
            if own.len() == 1 {
                continue;
            }
            match order(&names, own) {
                Ok(order) => *own = own.in_order(&order),
                // Years and the numbers of a table need not be of one kind.
                Err(_) if own.kind != names.kind => {
                    let message = format!(
                        "the {} scenarios of {kind} have other names than the {} {} ones: they go together in the order \
                         in which they are found",
                        own.len(),
                        names.len(),
                        names.kind
                    );
                    findings.doubtful(at, message);
                }
                Err(message) => findings.wrong(&at.key(kind), message),
            }
        }
    }
}

/// The places of scenarios in the order of names.
fn order(names: &GivenScenarios, own: &GivenScenarios) -> Result<Vec<usize>, String> {
    let known = own.labels().iter().enumerate();
    let known: HashMap<&String, usize> = known.map(|(place, name)| (name, place)).collect();
    let places = names.labels().iter().map(|name| {
        known.get(name).copied().ok_or_else(|| {
            format!("there is no scenario {name}, which others have: all kinds have the same scenarios, or one alone")
        })
    });
    places.collect()
}
