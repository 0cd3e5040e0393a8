//! Settings of training and simulation in a case's config.json.

use std::num::NonZeroUsize;
use std::time::Duration;

use cobre_sddp::{Overrides, Selection, SelectionRule, StopRule, Stopping};

use super::files::config::{
    self, Config, CutMethod, StoppingKind, StoppingMode, StoppingRule, Training,
};
use super::files::stages::Horizon;
use super::number::NonNegative;
use crate::finding::{Findings, Place};

/// Where the paths of forward passes come from if the case does not say it.
const SEED: u64 = 42;
/// Paths to simulate if the case does not say it.
const SCENARIOS: usize = 2000;

/// Iterations from one upper bound to the next if the case does not say it.
const UPPER_BOUND: usize = 10;

/// The settings of a case; says what cannot be honoured.
pub(crate) fn resolve(config: &Config, horizon: Horizon, findings: &mut Findings) -> Overrides {
    let file = Place::file(config::FILE);
    let training = &config.training;
    end_of_paths(config, horizon, &file, findings);
    numbers_of_paths(config, &file, findings);
    let at = file.key("training");
    switches(config, &file, findings);
    let source = training.scenario_source.as_ref();
    let seed = source
        .and_then(|source| source.seed)
        .map_or(SEED, |seed| seed.0);
    let simulation = config.simulation.as_ref();
    let own = simulation.and_then(|simulation| simulation.scenario_source.as_ref());
    let own = own.and_then(|own| own.seed).filter(|own| own.0 != seed);
    unread(training, &at, findings);
    let simulated = simulation.filter(|simulation| simulation.enabled == Some(true));
    let upper = config.upper_bound_evaluation.as_ref();
    Overrides {
        passes: training
            .forward_passes
            .and_then(|passes| NonZeroUsize::new(passes.0)),
        stopping: Some(stopping(training, &at, findings)),
        seed: Some(seed),
        simulate_seed: own.map(|own| Some(own.0)),
        selection: Some(selection(training)),
        simulate: Some(simulated.map_or(0, |simulation| {
            simulation.num_scenarios.map_or(SCENARIOS, |count| count.0)
        })),
        upper_bound: upper_bound(config, &file, findings),
        upper_bound_states: upper.and_then(|upper| NonZeroUsize::new(upper.states?.0)),
        path_stages: training
            .path_stages
            .and_then(|most| NonZeroUsize::new(most.0)),
        simulate_stages: simulation
            .and_then(|simulation| simulation.num_stages)
            .map(|stages| NonZeroUsize::new(stages.0)),
        ..Overrides::default()
    }
}

/// Iterations from one upper bound to the next, if one is asked for: by its switch, or by a rule that needs it.
fn upper_bound(config: &Config, file: &Place, findings: &mut Findings) -> Option<usize> {
    let asked = config.upper_bound_evaluation.as_ref();
    let switch = asked.and_then(|asked| asked.enabled);
    let mut rules = config.training.stopping_rules.iter();
    let rule = rules.any(|rule| rule.r#type == StoppingKind::Gap);
    if switch == Some(false) && rule {
        let message = "the stopping rule gap needs the upper bound: remove the key, or the rule";
        findings.wrong(&file.key("upper_bound_evaluation.enabled"), message);
        return None;
    }
    if switch != Some(true) && !rule {
        return None;
    }
    let interval = asked.and_then(|asked| asked.interval_iterations);
    Some(interval.map_or(UPPER_BOUND, |count| count.0))
}

/// Says where the number of paths is missing, or given twice. Paths that are enumerated are counted with the system.
fn numbers_of_paths(config: &Config, file: &Place, findings: &mut Findings) {
    let training = &config.training;
    let at = file.key("training.forward_passes");
    let twice = "selection says how many paths there are; remove the key";
    match (training.forward_passes, training.selection.is_some()) {
        (None, false) => findings.wrong(&at, "the key is missing"),
        (Some(_), true) => findings.wrong(&at, twice),
        _ => {}
    }
    let simulation = config.simulation.as_ref();
    if simulation.is_some_and(|own| own.num_scenarios.is_some() && own.selection.is_some()) {
        findings.wrong(&file.key("simulation.num_scenarios"), twice);
    }
}

/// Says which lengths of paths are given where the stages say them.
fn end_of_paths(config: &Config, horizon: Horizon, file: &Place, findings: &mut Findings) {
    if horizon == Horizon::Cyclic {
        return;
    }
    let simulation = config.simulation.as_ref();
    if simulation.is_some_and(|simulation| simulation.num_stages.is_some()) {
        let message = "it is for cyclic studies: paths have all stages of this one; remove the key";
        findings.wrong(&file.key("simulation.num_stages"), message);
    }
    if config.training.path_stages.is_some() {
        let message = "nothing reads it: paths have all stages of a study that is not cyclic";
        findings.doubtful(&file.key("training.path_stages"), message);
    }
}

/// Says which switches are on that must be off, and the other way round.
fn switches(config: &Config, file: &Place, findings: &mut Findings) {
    let exports = config.exports.as_ref();
    let found = [
        (
            "training.enabled",
            config.training.enabled,
            true,
            "a policy must be trained",
        ),
        (
            "exports.states",
            exports.and_then(|it| it.states),
            false,
            "states are in the tables of a simulation",
        ),
        (
            "exports.vertices",
            exports.and_then(|it| it.vertices),
            false,
            "the inner approximation is not kept",
        ),
        (
            "exports.forward_detail",
            exports.and_then(|it| it.forward_detail),
            false,
            "the table of convergence has each iteration",
        ),
        (
            "exports.backward_detail",
            exports.and_then(|it| it.backward_detail),
            false,
            "the table of convergence has each iteration",
        ),
    ];
    if exports.and_then(|it| it.stochastic) == Some(true) {
        let message =
            "nothing is written for it: cobre fit DIR --output NEW writes estimated inflow models";
        findings.doubtful(&file.key("exports.stochastic"), message);
    }
    for (key, value, expected, why) in found {
        if value.is_some_and(|value| value != expected) {
            findings.wrong(
                &file.key(key),
                format!("{} is not supported: {why}", !expected),
            );
        }
    }
}

/// Says which settings of other programs' speed are there, which change nothing here.
fn unread(training: &Training, at: &Place, findings: &mut Findings) {
    let Some(cuts) = &training.cut_selection else {
        return;
    };
    let (always, value, tie) = (
        "cuts are selected after every iteration, at all trial points",
        "cuts are compared by value",
        "values that differ by 1e-10 of their size are equal",
    );
    let every = cuts.check_frequency.is_some_and(|every| every.0 > 1);
    let above = |number: Option<NonNegative>| number.is_some_and(|number| number.0 > 0.0);
    let found = [
        ("check_frequency", every, always),
        ("threshold", above(cuts.threshold), always),
        ("memory_window", above(cuts.memory_window), always),
        (
            "cut_activity_tolerance",
            above(cuts.cut_activity_tolerance),
            value,
        ),
        (
            "row_activity_tolerance",
            above(cuts.row_activity_tolerance),
            value,
        ),
        ("tie_tolerance", above(cuts.tie_tolerance), tie),
        ("domination_epsilon", above(cuts.domination_epsilon), tie),
        (
            "domination_tolerance",
            above(cuts.domination_tolerance),
            tie,
        ),
    ];
    for (key, _, why) in found.into_iter().filter(|(_, there, _)| *there) {
        let at = at.key("cut_selection").key(key);
        findings.doubtful(&at, format!("nothing reads it: {why}"));
    }
}

fn stopping(training: &Training, at: &Place, findings: &mut Findings) -> Stopping {
    let at = at.key("stopping_rules");
    if training.stopping_rules.is_empty() {
        findings.wrong(&at, "there is no rule");
    }
    let rules = training.stopping_rules.iter().enumerate();
    Stopping {
        rules: rules
            .flat_map(|(place, rule)| {
                let at = at.index(place);
                let absolute = absolute_gap(rule, training, &at, findings);
                stopping_rule(rule, &at, findings)
                    .into_iter()
                    .chain(absolute)
            })
            .collect(),
        all: training.stopping_mode == Some(StoppingMode::All),
    }
}

/// The rule of an absolute difference of the bounds.
fn absolute_gap(
    rule: &StoppingRule,
    training: &Training,
    at: &Place,
    findings: &mut Findings,
) -> Option<StopRule> {
    let difference = rule.absolute_tolerance?.0;
    let at = at.key("absolute_tolerance");
    if rule.r#type != StoppingKind::Gap {
        findings.wrong(&at, "the rule has no such key");
        return None;
    }
    if rule.tolerance.is_some() && training.stopping_mode == Some(StoppingMode::All) {
        let message = "either of two tolerances is enough, which does not go with stopping_mode all: remove one";
        findings.wrong(&at, message);
    }
    Some(StopRule::AbsoluteGap { difference })
}

fn stopping_rule(rule: &StoppingRule, at: &Place, findings: &mut Findings) -> Option<StopRule> {
    use StoppingKind::{BoundStalling, FirstStage, Gap, IterationLimit, Simulation, TimeLimit};
    let keys: [(&str, bool, &[StoppingKind]); 7] = [
        ("limit", rule.limit.is_some(), &[IterationLimit]),
        ("seconds", rule.seconds.is_some(), &[TimeLimit]),
        (
            "iterations",
            rule.iterations.is_some(),
            &[BoundStalling, FirstStage],
        ),
        (
            "tolerance",
            rule.tolerance.is_some(),
            &[BoundStalling, FirstStage, Gap],
        ),
        ("period", rule.period.is_some(), &[Simulation]),
        ("replications", rule.replications.is_some(), &[Simulation]),
        ("distance_tol", rule.distance_tol.is_some(), &[Simulation]),
    ];
    for (key, given, kinds) in keys {
        match (given, kinds.contains(&rule.r#type)) {
            (true, false) => findings.wrong(&at.key(key), "the rule has no such key"),
            (false, true) if rule.absolute_tolerance.is_none() => {
                findings.wrong(&at.key(key), "the key is missing");
            }
            _ => {}
        }
    }
    match rule.r#type {
        IterationLimit => rule.limit.map(|limit| StopRule::Iterations(limit.0)),
        TimeLimit => {
            let limit = Duration::try_from_secs_f64(rule.seconds?.0);
            limit.map(StopRule::TimeLimit).ok()
        }
        BoundStalling => Some(StopRule::BoundStalling {
            window: rule.iterations?.0,
            tolerance: rule.tolerance?.0,
        }),
        Gap => Some(StopRule::Gap {
            tolerance: rule.tolerance?.0,
        }),
        FirstStage => Some(StopRule::FirstStage {
            window: rule.iterations?.0,
            tolerance: rule.tolerance?.0,
        }),
        Simulation => Some(StopRule::Simulation {
            period: rule.period?.0,
            paths: rule.replications?.0.max(1),
            tolerance: rule.distance_tol?.0,
        }),
    }
}

fn selection(training: &Training) -> Selection {
    let Some(asked) = training
        .cut_selection
        .as_ref()
        .filter(|asked| asked.enabled == Some(true))
    else {
        return Selection::ALL;
    };
    let rule = match asked.method {
        None | Some(CutMethod::Level1 | CutMethod::Domination) => SelectionRule::Level1,
        Some(CutMethod::Lml1) => SelectionRule::LimitedMemoryLevel1,
    };
    Selection {
        rule,
        cap: asked.max_active_per_stage.map(|cap| cap.0),
    }
}
