//! Settings of training and simulation in a case's config.json.

use std::num::NonZeroUsize;
use std::time::Duration;

use cobre_sddp::{Overrides, Selection, SelectionRule, StopRule, Stopping};

use super::files::config::{
    self, Config, CutMethod, StoppingKind, StoppingMode, StoppingRule, Training,
};
use crate::finding::{Findings, Place};

/// Where the paths of forward passes come from if the case does not say it.
const SEED: u64 = 42;
/// Paths to simulate if the case does not say it.
const SCENARIOS: usize = 2000;

/// The settings of a case; says what cannot be honoured.
pub(crate) fn resolve(config: &Config, findings: &mut Findings) -> Overrides {
    let file = Place::file(config::FILE);
    let training = &config.training;
    let at = file.key("training");
    switches(config, &file, findings);
    let source = training.scenario_source.as_ref();
    let seed = source
        .and_then(|source| source.seed)
        .map_or(SEED, |seed| seed.0);
    let simulation = config.simulation.as_ref();
    let own = simulation.and_then(|simulation| simulation.scenario_source.as_ref());
    if let Some(own) = own.and_then(|own| own.seed).filter(|own| own.0 != seed) {
        let message = format!("{} is not the {seed} of training; there is one seed", own.0);
        findings.wrong(&file.key("simulation.scenario_source.seed"), message);
    }
    let simulated = simulation.filter(|simulation| simulation.enabled == Some(true));
    Overrides {
        passes: NonZeroUsize::new(training.forward_passes.0),
        stopping: Some(stopping(training, &at, findings)),
        seed: Some(seed),
        selection: Some(selection(training)),
        simulate: Some(simulated.map_or(0, |simulation| {
            simulation.num_scenarios.map_or(SCENARIOS, |count| count.0)
        })),
        ..Overrides::default()
    }
}

/// Says which switches are on that must be off, and the other way round.
fn switches(config: &Config, file: &Place, findings: &mut Findings) {
    let policy = config.policy.as_ref();
    let checkpointing = policy.and_then(|policy| policy.checkpointing.as_ref());
    let exports = config.exports.as_ref();
    let found = [
        (
            "training.enabled",
            config.training.enabled,
            true,
            "a policy must be trained",
        ),
        (
            "policy.checkpointing.enabled",
            checkpointing.and_then(|it| it.enabled),
            false,
            "use --checkpoint",
        ),
        (
            "exports.states",
            exports.and_then(|it| it.states),
            false,
            "results have no switches",
        ),
        (
            "exports.stochastic",
            exports.and_then(|it| it.stochastic),
            false,
            "results have no switches",
        ),
    ];
    for (key, value, expected, why) in found {
        if value.is_some_and(|value| value != expected) {
            findings.wrong(
                &file.key(key),
                format!("{} is not supported: {why}", !expected),
            );
        }
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
            .filter_map(|(place, rule)| stopping_rule(rule, &at.index(place), findings))
            .collect(),
        all: training.stopping_mode == Some(StoppingMode::All),
    }
}

fn stopping_rule(rule: &StoppingRule, at: &Place, findings: &mut Findings) -> Option<StopRule> {
    let keys = [
        ("limit", rule.limit.is_some(), StoppingKind::IterationLimit),
        ("seconds", rule.seconds.is_some(), StoppingKind::TimeLimit),
        (
            "iterations",
            rule.iterations.is_some(),
            StoppingKind::BoundStalling,
        ),
        (
            "tolerance",
            rule.tolerance.is_some(),
            StoppingKind::BoundStalling,
        ),
    ];
    for (key, given, kind) in keys {
        match (given, kind == rule.r#type) {
            (true, false) => findings.wrong(&at.key(key), "the rule has no such key"),
            (false, true) => findings.wrong(&at.key(key), "the key is missing"),
            _ => {}
        }
    }
    match rule.r#type {
        StoppingKind::IterationLimit => rule.limit.map(|limit| StopRule::Iterations(limit.0)),
        StoppingKind::TimeLimit => {
            let limit = Duration::try_from_secs_f64(rule.seconds?.0);
            limit.map(StopRule::TimeLimit).ok()
        }
        StoppingKind::BoundStalling => Some(StopRule::BoundStalling {
            window: rule.iterations?.0,
            tolerance: rule.tolerance?.0,
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
        None | Some(CutMethod::Level1) => SelectionRule::Level1,
        Some(CutMethod::Lml1) => SelectionRule::LimitedMemoryLevel1,
    };
    Selection {
        rule,
        cap: asked.max_active_per_stage.map(|cap| cap.0),
    }
}
