//! Terminal values from files: the cuts of another policy, of Cobre or of SDDP.jl.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cobre_results::layout;
use cobre_sddp::{Policy, Problem, TerminalValue, read_policy};
use serde::Deserialize;

/// The source of a terminal value: cuts of another study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boundary {
    /// The output directory of a run, the directory of its policy, or a JSON file with the cuts of SDDP.jl.
    pub path: PathBuf,
    /// The stage whose cost to go is taken: by its number, or the name of its node. None: the stage of the same date,
    /// or the node of the same name.
    pub source_stage: Option<String>,
}

/// The last stage of a problem, after which the value is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LastStage<'a> {
    /// The name of its node.
    pub(crate) node: &'a str,
    /// Its first day and the day after its last, as YYYY-MM-DD; empty if it has none.
    pub(crate) start_date: &'a str,
    pub(crate) end_date: &'a str,
}

impl Boundary {
    /// Puts the terminal value of the file after the last nodes of a problem.
    ///
    /// # Errors
    /// A file that cannot be read, a stage that it does not have, and everything that does not fit the problem.
    pub fn apply(&self, problem: &mut Problem) -> Result<(), Vec<String>> {
        let last = (0..problem.nodes.len()).find(|&node| !problem.has_successors(node));
        let last = last.ok_or_else(|| {
            vec!["the graph has no last node: a terminal value needs one".to_owned()]
        })?;
        let last = &problem.nodes[last];
        let last = LastStage {
            node: &last.name,
            start_date: &last.start_date,
            end_date: "",
        };
        let value = self.read(&last).map_err(|wrong| vec![wrong])?;
        problem.set_terminal_value(&value, |_| false)
    }

    /// The keys of a case's `config.json` that ask for it, as JSON.
    pub fn overrides(&self) -> String {
        self.merged(None)
    }

    /// These overrides of a case's `config.json`, with the keys that ask for it. Overrides that are no JSON object stay
    /// as they are, to be refused where they are read.
    pub fn merged(&self, overrides: Option<&str>) -> String {
        let path = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        let mut boundary = serde_json::json!({ "path": path.to_string_lossy() });
        if let Some(stage) = &self.source_stage {
            // What is no number is the name of a node.
            boundary["source_stage"] = match stage.parse::<i32>() {
                Ok(number) => number.into(),
                Err(_) => stage.as_str().into(),
            };
        }
        let Ok(serde_json::Value::Object(mut all)) =
            serde_json::from_str(overrides.unwrap_or("{}"))
        else {
            return overrides.unwrap_or_default().to_owned();
        };
        let policy = all.entry("policy").or_insert_with(|| serde_json::json!({}));
        if policy.is_object() {
            policy["boundary"] = boundary;
        }
        serde_json::Value::Object(all).to_string()
    }

    /// The fictitious cost of the run whose output directory this is: prices that nobody pays and that its cuts
    /// contain. 0 where no `run.json` says so.
    pub(crate) fn fictitious_cost(&self) -> f64 {
        let of_policy = self.path.ends_with(layout::POLICY);
        let output = self.path.join(if of_policy { ".." } else { "." });
        let run = cobre_files::read_text(&output.join(layout::RUN)).ok();
        let run = run.and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
        run.and_then(|run| run["fictitious_cost"].as_f64())
            .unwrap_or(0.0)
    }

    /// The cuts on the cost after the last stage.
    pub(crate) fn read(&self, last: &LastStage<'_>) -> Result<TerminalValue, String> {
        let shown = self.path.display();
        let said = |problem: String| format!("{shown}: {problem}");
        if self.path.is_dir() {
            let below = self.path.join(layout::POLICY);
            let place = if below.is_dir() {
                below
            } else {
                self.path.clone()
            };
            let policy = read_policy(&place).map_err(|error| chain(&error))?;
            return of_policy(&policy, self.source_stage.as_deref(), last).map_err(said);
        }
        if self.path.extension().is_some_and(|end| end == "json") {
            return of_sddp_jl(&self.path, self.source_stage.as_deref(), last).map_err(said);
        }
        if self.path.exists() {
            let expected = "the output directory of a run, or a JSON file with the cuts of SDDP.jl";
            return Err(said(format!("{expected} is expected")));
        }
        Err(said("there is nothing".to_owned()))
    }
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {}", chain(cause)),
        None => error.to_string(),
    }
}

/// The cuts of a node of a policy, in the modeller's sense.
fn of_policy(
    policy: &Policy,
    source: Option<&str>,
    last: &LastStage<'_>,
) -> Result<TerminalValue, String> {
    let manifest = &policy.manifest;
    let named = |name: &str| manifest.nodes.iter().position(|node| node == name);
    let node = match source {
        Some(stage) => named(&format!("stage{stage}"))
            .or_else(|| named(&format!("stage{stage}{}", regime(last.node))))
            .or_else(|| named(stage))
            .ok_or_else(|| format!("it has no stage {stage}; {}", nodes(&manifest.nodes)))?,
        None if last.start_date.is_empty() => named(last.node).ok_or_else(|| {
            let (node, known) = (last.node, nodes(&manifest.nodes));
            format!("it has no node {node}; give the source stage: {known}")
        })?,
        None => of_date(policy, last)?,
    };
    let cuts = &policy.cuts[node];
    if cuts.is_empty() {
        let name = &manifest.nodes[node];
        return Err(format!(
            "it has no cut after {name}: that is its last stage, or it was not trained"
        ));
    }
    let sign = if manifest.sense == "max" { -1.0 } else { 1.0 };
    Ok(TerminalValue {
        states: manifest
            .states
            .iter()
            .map(|state| state.name.clone())
            .collect(),
        cuts: cuts
            .iter()
            .map(|cut| {
                let slopes = cut.gradient.iter().map(|slope| sign * slope);
                (sign * cut.intercept, slopes.collect())
            })
            .collect(),
    })
}

/// The node of the policy whose stage has the dates of the last stage.
fn of_date(policy: &Policy, last: &LastStage<'_>) -> Result<usize, String> {
    let (start, end) = (last.start_date, last.end_date);
    let dates = &policy.manifest.start_dates;
    if dates.is_empty() {
        return Err("its stages have no dates: give source_stage".to_owned());
    }
    let mut ascending: Vec<&String> = dates.iter().collect();
    ascending.sort();
    let node = dates.iter().position(|date| date == start).ok_or_else(|| {
        let (first, last) = (ascending[0], ascending[ascending.len() - 1]);
        format!("no stage of it begins on {start}, as the last stage does; they begin from {first} to {last}: give source_stage")
    })?;
    let same: Vec<usize> = (0..dates.len())
        .filter(|&own| dates[own] == start)
        .collect();
    let name_of = |&own: &usize| policy.manifest.nodes[own].as_str();
    let alike = same
        .iter()
        .find(|own| regime(name_of(own)) == regime(last.node));
    let node = alike.copied().unwrap_or(node);
    if same.len() > 1 && alike.is_none() {
        let names: Vec<&str> = same.iter().map(name_of).collect();
        return Err(format!(
            "its stage of {start} has several nodes: give one of {} as source_stage",
            names.join(", ")
        ));
    }
    let next = ascending.into_iter().find(|date| date.as_str() > start);
    match next {
        Some(next) if !end.is_empty() && next != end => Err(format!(
            "its stage of {start} ends on {next}, and the last stage on {end}: give source_stage"
        )),
        _ => Ok(node),
    }
}

/// The regime in the name of the node of a stage: nothing without one.
fn regime(name: &str) -> &str {
    let stage = name.strip_prefix("stage").unwrap_or_default();
    stage.trim_start_matches(|letter: char| letter.is_ascii_digit())
}

/// The names of nodes, the first and the last.
fn nodes(names: &[String]) -> String {
    match names {
        [] => "it has no node".to_owned(),
        [one] => format!("it has {one}"),
        [first, .., last] => format!("it has {first} to {last}"),
    }
}

/// The cuts of a node in a file of SDDP.jl.
#[derive(Deserialize)]
struct JuliaNode {
    node: String,
    #[serde(default)]
    single_cuts: Vec<JuliaCut>,
    #[serde(default)]
    multi_cuts: Vec<serde_json::Value>,
}

/// A cut of SDDP.jl: its value at state zero, and its slopes by state.
#[derive(Deserialize)]
struct JuliaCut {
    intercept: f64,
    coefficients: BTreeMap<String, f64>,
}

fn of_sddp_jl(
    path: &Path,
    source: Option<&str>,
    last: &LastStage<'_>,
) -> Result<TerminalValue, String> {
    let text = cobre_files::read(path, cobre_files::MOST_TEXT_BYTES);
    let text = text.map_err(|error| format!("it cannot be read: {error}"))?;
    let nodes: Vec<JuliaNode> = serde_json::from_slice(&text)
        .map_err(|error| format!("it is no file with the cuts of SDDP.jl: {error}"))?;
    let name = source.unwrap_or(last.node);
    let node = nodes.iter().find(|node| node.node == name).ok_or_else(|| {
        let names: Vec<String> = nodes.iter().map(|node| node.node.clone()).collect();
        format!("it has no node {name}; {}", self::nodes(&names))
    })?;
    if !node.multi_cuts.is_empty() {
        return Err(format!("node {name} has multi_cuts; single_cuts are read"));
    }
    if node.single_cuts.is_empty() {
        return Err(format!("node {name} has no single_cuts"));
    }
    let states: Vec<String> = node.single_cuts[0].coefficients.keys().cloned().collect();
    let cuts = node.single_cuts.iter().enumerate().map(|(number, cut)| {
        let same = cut.coefficients.keys().eq(states.iter());
        let slopes = || cut.coefficients.values().copied().collect();
        same.then(|| (cut.intercept, slopes())).ok_or_else(|| {
            format!(
                "cut {} of node {name} has other states than the first",
                number + 1
            )
        })
    });
    Ok(TerminalValue {
        cuts: cuts.collect::<Result<_, _>>()?,
        states,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAST: LastStage<'static> = LastStage {
        node: "2",
        start_date: "",
        end_date: "",
    };

    fn read(text: &str, source: Option<&str>) -> Result<TerminalValue, String> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("cuts.json");
        std::fs::write(&path, text).expect("written");
        let source_stage = source.map(str::to_owned);
        Boundary { path, source_stage }.read(&LAST)
    }

    #[test]
    fn cuts_of_sddp_jl_are_read_by_node() {
        let text = r#"[{"node": "1", "single_cuts": [], "multi_cuts": [], "risk_set_cuts": []},
            {"node": "2", "single_cuts": [
                {"intercept": 5.0, "coefficients": {"b": -2.0, "a": -1.0}, "state": {"a": 0.0, "b": 1.0}},
                {"intercept": 7.0, "coefficients": {"a": -3.0, "b": -0.5}}]}]"#;
        let expected = TerminalValue {
            states: vec!["a".to_owned(), "b".to_owned()],
            cuts: vec![(5.0, vec![-1.0, -2.0]), (7.0, vec![-3.0, -0.5])],
        };
        assert_eq!(read(text, None), Ok(expected.clone()));
        assert_eq!(read(text, Some("2")), Ok(expected));
        let wrong = |source, part: &str| {
            let said = read(text, source).expect_err("refused");
            assert!(said.contains(part), "{said}");
        };
        wrong(Some("3"), "it has no node 3; it has 1 to 2");
        wrong(Some("1"), "node 1 has no single_cuts");
    }

    #[test]
    fn other_files_are_refused() {
        for (text, part) in [
            ("{}", "no file with the cuts of SDDP.jl"),
            (r#"[{"node": "2", "multi_cuts": [{}]}]"#, "multi_cuts"),
            (
                r#"[{"node": "2", "single_cuts": [{"intercept": 1, "coefficients": {"a": 1}},
                    {"intercept": 1, "coefficients": {}}]}]"#,
                "cut 2 of node 2 has other states",
            ),
        ] {
            let said = read(text, None).expect_err("refused");
            assert!(said.contains(part), "{said}");
        }
        let nowhere = Boundary {
            path: "/nowhere".into(),
            source_stage: None,
        };
        assert!(
            nowhere
                .read(&LAST)
                .is_err_and(|said| said.contains("there is nothing"))
        );
    }
}
