//! StochOptFormat 1.0, the linear subset: a policy graph in JSON whose subproblems are in
//! MathOptFormat.

mod entries;
mod file;
mod subproblem;

use std::collections::{HashMap, HashSet};

use cobre_sddp::{Change, Draft, GivenStep, NodeId, Problem, Risk, Sense, Step, TemplateId};
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::entries::Entries;
use self::file::{File, Node, Scenario, Subproblem};
use self::subproblem::SubproblemTemplate;
use crate::{Options, Scenarios, duplicate_keys};

/// Everything that is wrong with a file, with where it is.
type Errors = Vec<String>;

/// The problem in a file.
pub(crate) fn read(text: &[u8], options: &Options) -> Result<Problem, Errors> {
    duplicate_keys::check(text).map_err(|error| vec![error])?;
    let reader = &mut serde_json::Deserializer::from_slice(text);
    let file: File =
        serde_path_to_error::deserialize(reader).map_err(|error| vec![error.to_string()])?;
    let mut errors = Errors::new();
    if file.version.major != 1 {
        errors.push(format!(
            "version: {} is not supported, only 1",
            file.version.major
        ));
    }
    let subproblems = each::<Subproblem>("subproblems", &file.subproblems, &mut errors);
    let nodes = each::<Node>("nodes", &file.nodes, &mut errors);
    let programs: Vec<(&str, Option<SubproblemTemplate>)> = subproblems
        .iter()
        .map(|(name, subproblem)| {
            (
                *name,
                SubproblemTemplate::new(name, subproblem, &mut errors),
            )
        })
        .collect();
    let sense = sense(&programs, &mut errors);
    let has_future = nodes.iter().any(|(_, node)| !node.successors.0.is_empty());
    if has_future && options.bound.is_none() {
        errors.push("a bound on the cost to go is needed: add --bound (Python: bound=)".to_owned());
    }
    let mut draft = Draft::new(sense, options.bound.unwrap_or(0.0));
    draft.risk(options.risk.unwrap_or(Risk::EXPECTATION));
    for (name, initial) in &file.root.state_variables.0 {
        draft.state(name, *initial);
    }
    let templates = programs.iter().map(|(_, program)| {
        let lp = program.as_ref().map(|program| program.lp.clone());
        draft.template(lp.unwrap_or_default())
    });
    let templates: Vec<TemplateId> = templates.collect();
    let mut graph = Graph {
        draft: &mut draft,
        programs: &programs,
        templates: &templates,
        nodes: HashMap::new(),
    };
    graph.add_nodes(&nodes, &mut errors);
    graph.add_steps(&file.root.successors, &nodes, &mut errors);
    find_unreachable(&file.root.successors, &nodes, &mut errors);
    let validation = graph.scenarios(
        "validation_scenarios",
        &file.validation_scenarios,
        &mut errors,
    );
    for path in validation {
        graph.draft.validate(path);
    }
    if let Some(scenarios) = &options.scenarios {
        graph.add_given(scenarios, &mut errors);
    }
    let is_too_large = draft.is_too_large();
    match draft.build() {
        Ok(problem) if errors.is_empty() => Ok(problem),
        Ok(_) => Err(errors),
        // What the engine finds in a file that is wrong already follows from that.
        Err(_) if !errors.is_empty() && !is_too_large => Err(errors),
        Err(found) => Err(found.0.iter().map(ToString::to_string).collect()),
    }
}

/// Reads each entry by itself, so that one that is wrong does not hide another.
fn each<'f, T: DeserializeOwned>(
    place: &str,
    entries: &'f Entries<Value>,
    errors: &mut Errors,
) -> Vec<(&'f str, T)> {
    let mut found = Vec::new();
    for (name, value) in &entries.0 {
        match serde_path_to_error::deserialize(value) {
            Ok(entry) => found.push((name.as_str(), entry)),
            Err(error) => errors.push(format!(
                "{place}.{name}.{}: {}",
                error.path(),
                error.inner()
            )),
        }
    }
    found
}

/// Nodes that no path visits are a mistake: a step is missing or misspelt.
fn find_unreachable(root: &Entries<f64>, nodes: &[(&str, Node)], errors: &mut Errors) {
    let by_name: HashMap<&str, &Node> = nodes.iter().map(|(name, node)| (*name, node)).collect();
    let mut left: Vec<&str> = root.0.iter().map(|(name, _)| name.as_str()).collect();
    let mut reached: HashSet<&str> = left.iter().copied().collect();
    while let Some(name) = left.pop() {
        let followers = by_name.get(name);
        for (next, _) in followers.iter().flat_map(|node| &node.successors.0) {
            if reached.insert(next) {
                left.push(next);
            }
        }
    }
    for (name, _) in nodes.iter().filter(|(name, _)| !reached.contains(name)) {
        errors.push(format!("nodes.{name}: no step leads to it"));
    }
}

/// The sense that all subproblems agree on.
fn sense(programs: &[(&str, Option<SubproblemTemplate>)], errors: &mut Errors) -> Sense {
    let mut senses = programs
        .iter()
        .filter_map(|(name, program)| Some((*name, program.as_ref()?.sense?)));
    let Some((first, sense)) = senses.next() else {
        return Sense::Minimize;
    };
    for (name, other) in senses.filter(|(_, other)| *other != sense) {
        errors.push(format!(
            "subproblems.{name}: it is to be {}imised, but subproblem {first} is to be {}imised",
            other.name(),
            sense.name()
        ));
    }
    sense
}

/// Puts nodes and what connects them into a draft.
struct Graph<'a, 'f> {
    draft: &'a mut Draft,
    programs: &'a [(&'f str, Option<SubproblemTemplate>)],
    templates: &'a [TemplateId],
    /// By name, with the number of the subproblem.
    nodes: HashMap<&'f str, (NodeId, usize)>,
}

impl<'f> Graph<'_, 'f> {
    fn add_nodes(&mut self, nodes: &[(&'f str, Node)], errors: &mut Errors) {
        let numbers: HashMap<&str, usize> = self
            .programs
            .iter()
            .zip(0..)
            .map(|((name, _), number)| (*name, number))
            .collect();
        for (name, node) in nodes {
            let wanted = &node.subproblem;
            let Some(&number) = numbers.get(wanted.as_str()) else {
                errors.push(format!(
                    "nodes.{name}.subproblem: there is no subproblem {wanted}"
                ));
                continue;
            };
            let id = self.draft.node(*name, self.templates[number]);
            self.nodes.insert(name, (id, number));
            let Some(program) = &self.programs[number].1 else {
                continue;
            };
            if node.realizations.is_empty() && !program.random.is_empty() {
                errors.push(format!(
                    "nodes.{name}.realizations: none, but subproblem {wanted} has random variables"
                ));
            }
            self.draft
                .announce(node.realizations.len(), program.changes_of_opening());
            // The draft says so when it is built.
            if self.draft.is_too_large() {
                return;
            }
            for (place, realization) in node.realizations.iter().enumerate() {
                let place = format!("nodes.{name}.realizations[{place}]");
                let changes = program.changes(&place, &realization.support, errors);
                self.draft.opening(id, realization.probability, changes);
            }
        }
    }

    fn find(&self, place: &str, name: &str, errors: &mut Errors) -> Option<(NodeId, usize)> {
        let found = self.nodes.get(name).copied();
        if found.is_none() {
            errors.push(format!("{place}: there is no node {name}"));
        }
        found
    }

    fn add_steps(&mut self, root: &Entries<f64>, nodes: &[(&'f str, Node)], errors: &mut Errors) {
        for (to, probability) in &root.0 {
            if let Some((to, _)) = self.find("root.successors", to, errors) {
                self.draft.start(to, *probability);
            }
        }
        for (name, node) in nodes {
            let place = format!("nodes.{name}.successors");
            for (to, probability) in &node.successors.0 {
                let from = self.nodes.get(name).copied();
                if let (Some((from, _)), Some((to, _))) = (from, self.find(&place, to, errors)) {
                    self.draft.edge(from, to, *probability);
                }
            }
        }
    }

    /// Adds the paths that are simulated in the place of sampled ones.
    fn add_given(&mut self, scenarios: &Scenarios, errors: &mut Errors) {
        let Scenarios::Files(files) = scenarios else {
            errors.push(
                "only hydrothermal cases have inflows and past years; give a file".to_owned(),
            );
            return;
        };
        for file in files {
            let name = file.display().to_string();
            let found = match scenarios_of(file) {
                Ok(found) => found,
                Err(error) => {
                    errors.push(format!("{name}: {error}"));
                    continue;
                }
            };
            let paths = self.scenarios(&name, &found, errors);
            for (number, (scenario, path)) in found.iter().zip(paths).enumerate() {
                let label = match scenario.name() {
                    "" => (number + 1).to_string(),
                    name => name.to_owned(),
                };
                let steps = path.into_iter().map(GivenStep::Values).collect();
                self.draft.given(label, steps);
            }
        }
    }

    /// The paths of scenarios; `list` is where they are.
    fn scenarios(
        &mut self,
        list: &str,
        scenarios: &[Scenario],
        errors: &mut Errors,
    ) -> Vec<Vec<Step>> {
        let mut paths = Vec::new();
        for (number, scenario) in scenarios.iter().enumerate() {
            if self.draft.is_too_large() {
                break;
            }
            let mut path = Vec::new();
            for (stage, step) in scenario.steps().iter().enumerate() {
                let place = format!("{list}[{number}].scenario[{stage}]");
                let Some((node, program)) = self.find(&place, &step.node, errors) else {
                    continue;
                };
                let changes: Vec<Change> = match &self.programs[program].1 {
                    Some(program) => program.changes(&place, &step.support, errors),
                    None => Vec::new(),
                };
                path.push(Step { node, changes });
            }
            paths.push(path);
        }
        paths
    }
}

/// The scenarios of a file of their own: a list, as a problem has for validation.
fn scenarios_of(path: &std::path::Path) -> Result<Vec<Scenario>, String> {
    let text = cobre_files::read(path, cobre_files::MOST_TEXT_BYTES);
    let text = text.map_err(|error| format!("it cannot be read: {error}"))?;
    let scenarios: Vec<Scenario> = serde_json::from_slice(&text).map_err(|error| {
        format!("a JSON list of scenarios is expected, each a list of {{\"node\", \"support\"}}: {error}")
    })?;
    if scenarios.is_empty() {
        return Err("there is no scenario".to_owned());
    }
    Ok(scenarios)
}

#[cfg(test)]
mod tests;
