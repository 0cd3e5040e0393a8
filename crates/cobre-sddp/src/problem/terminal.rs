//! Terminal value: cuts below the cost after the last stage.

use std::collections::HashMap;

use serde::Serialize;

use super::{LARGEST_OF_CUT, Problem};

/// A cut on the cost after the end of a path, to be minimised: cost ≥ intercept + gradient · state.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TerminalCut {
    /// The value at state zero.
    pub intercept: f64,
    /// The gradient by state, in the order of [`Problem::states`].
    pub gradient: Vec<f64>,
}

/// Cuts on the cost after the end, as a file has them: by the names of states, in the modeller's sense.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TerminalValue {
    /// The names of the states that the slopes belong to.
    pub states: Vec<String>,
    /// The value at state zero and the slopes of each cut.
    pub cuts: Vec<(f64, Vec<f64>)>,
}

impl Problem {
    /// True if a node follows `node`.
    pub fn has_successors(&self, node: usize) -> bool {
        !self.graph.successors(node).is_empty()
    }

    /// True if some path ends in a terminal value.
    pub fn has_terminal_value(&self) -> bool {
        self.nodes.iter().any(|node| !node.terminal.is_empty())
    }

    /// Puts a terminal value after every node that nothing follows, in place of one that is there. States are matched
    /// by name. A state of the problem that the value does not have has slope zero if `may_lack` says so of its name.
    ///
    /// # Errors
    /// Everything that does not fit, each in words; the problem is unchanged.
    pub fn set_terminal_value(
        &mut self,
        value: &TerminalValue,
        may_lack: impl Fn(&str) -> bool,
    ) -> Result<(), Vec<String>> {
        self.set_terminal_value_of(|_| true, value, may_lack)
    }

    /// As [`set_terminal_value`](Self::set_terminal_value), after these nodes alone.
    ///
    /// # Errors
    /// As there.
    pub fn set_terminal_value_of(
        &mut self,
        nodes: impl Fn(usize) -> bool,
        value: &TerminalValue,
        may_lack: impl Fn(&str) -> bool,
    ) -> Result<(), Vec<String>> {
        let cuts = self.matched(value, may_lack)?;
        let sign = self.sense.sign();
        let cuts: Vec<TerminalCut> = cuts
            .into_iter()
            .map(|(intercept, gradient)| TerminalCut {
                intercept: sign * intercept,
                gradient: gradient.into_iter().map(|slope| sign * slope).collect(),
            })
            .collect();
        for node in 0..self.nodes.len() {
            if !self.has_successors(node) && nodes(node) {
                self.nodes[node].terminal.clone_from(&cuts);
            }
        }
        Ok(())
    }

    /// The cuts of a terminal value, with slopes in the order of the problem's states.
    fn matched(
        &self,
        value: &TerminalValue,
        may_lack: impl Fn(&str) -> bool,
    ) -> Result<Vec<(f64, Vec<f64>)>, Vec<String>> {
        let mut wrong = value.findings();
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let places = value.states.iter().map(String::as_str).zip(0..);
        let places: HashMap<&str, usize> = places.collect();
        for state in &self.states {
            if !places.contains_key(state.name.as_str()) && !may_lack(&state.name) {
                let name = &state.name;
                wrong.push(format!(
                    "it has no slopes of state {name}, which the problem has"
                ));
            }
        }
        for (name, place) in value.states.iter().zip(0..) {
            let is_known = self.states.iter().any(|state| state.name == *name);
            let counts = value.cuts.iter().any(|(_, slopes)| slopes[place] != 0.0);
            if !is_known && counts {
                wrong.push(format!(
                    "it has slopes of state {name}, which the problem does not have"
                ));
            }
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let slope = |slopes: &[f64], name: &str| places.get(name).map_or(0.0, |&at| slopes[at]);
        let ordered = |slopes: &[f64]| {
            let states = self.states.iter();
            states.map(|state| slope(slopes, &state.name)).collect()
        };
        let cuts = value.cuts.iter();
        Ok(cuts
            .map(|(intercept, slopes)| (*intercept, ordered(slopes)))
            .collect())
    }
}

impl TerminalValue {
    /// Everything that is wrong with its numbers.
    fn findings(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        if self.cuts.is_empty() {
            wrong.push("it has no cut".to_owned());
        }
        for (number, (intercept, slopes)) in self.cuts.iter().enumerate() {
            let place = format!("cut {}", number + 1);
            if slopes.len() != self.states.len() {
                let (found, states) = (slopes.len(), self.states.len());
                wrong.push(format!("{place} has {found} slopes for {states} states"));
            }
            let mut numbers = slopes.iter().chain([intercept]);
            let beyond = |number: &&f64| number.is_nan() || number.abs() > LARGEST_OF_CUT;
            if let Some(number) = numbers.find(beyond) {
                wrong.push(format!(
                    "{place} has {number:?}, beyond ±{LARGEST_OF_CUT:e}"
                ));
            }
        }
        wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Draft, Sense, Template};

    fn problem(sense: Sense) -> Problem {
        let mut lp = Template::new();
        let before = lp.column("before", 0.0, f64::NEG_INFINITY, f64::INFINITY);
        let after = lp.column("after", 0.0, 0.0, 10.0);
        lp.state("store", before, after);
        let mut draft = Draft::new(sense, 0.0);
        draft.state("store", 1.0);
        let lp = draft.template(lp);
        let nodes = [draft.node("first", lp), draft.node("last", lp)];
        draft.start(nodes[0], 1.0);
        draft.edge(nodes[0], nodes[1], 1.0);
        draft.build().expect("a problem")
    }

    fn value(state: &str, slope: f64) -> TerminalValue {
        TerminalValue {
            states: vec![state.to_owned()],
            cuts: vec![(7.0, vec![slope])],
        }
    }

    #[test]
    fn the_last_node_has_the_cuts_to_be_minimised() {
        let mut problem = problem(Sense::Maximize);
        let set = problem.set_terminal_value(&value("store", 2.0), |_| false);
        assert_eq!(set, Ok(()));
        let expected = TerminalCut {
            intercept: -7.0,
            gradient: vec![-2.0],
        };
        assert_eq!(problem.nodes[1].terminal, [expected]);
        assert!(problem.nodes[0].terminal.is_empty());
        assert!(problem.has_future(1) && !problem.has_successors(1));
    }

    #[test]
    fn states_that_do_not_match_are_named() {
        let mut problem = problem(Sense::Minimize);
        let wrong = problem.set_terminal_value(&value("tank", 2.0), |_| false);
        let wrong = wrong.expect_err("states differ");
        assert!(wrong[0].contains("no slopes of state store"), "{wrong:?}");
        assert!(wrong[1].contains("slopes of state tank"), "{wrong:?}");
        let unused = problem.set_terminal_value(&value("tank", 0.0), |name| name == "store");
        assert_eq!(unused, Ok(()));
        let nan = problem.set_terminal_value(&value("store", f64::NAN), |_| false);
        assert!(nan.is_err_and(|wrong| wrong[0].contains("cut 1 has NaN")));
    }
}
