//! `config.json`: how the case is trained and tried.

use crate::hydrothermal::json::{choice, object};
use crate::hydrothermal::number::{Count, NonNegative, Passes, Paths, Positive, Seed};

pub(crate) const FILE: &str = "config.json";

/// Anything that can be read.
pub(super) const STAND_IN: &str = r#"{"training": {
    "forward_passes": 1, "stopping_rules": [{"type": "iteration_limit", "limit": 1}]}}"#;

object! {
    /// Settings of training and simulation. Options of the command line override them.
    Config {
        /// Settings of training.
        training: Training,
        /// Settings of the simulation after training; no simulation if left out.
        simulation: Option<Simulation>,
        /// Choices of the model.
        modeling: Option<Modeling>,
        /// Where training starts from.
        policy: Option<Policy>,
        /// Further outputs.
        exports: Option<Exports>,
        /// A note that nothing reads.
        version: Option<String>,
    }
    refused {
        upper_bound_evaluation: "there is no inner approximation",
        estimation: "inflow models are given, not estimated",
    }
}

object! {
    /// Settings of training.
    Training {
        /// Forward passes per iteration.
        forward_passes: Passes,
        /// When training ends.
        stopping_rules: Vec<StoppingRule>,
        /// The mode in which stopping rules combine: any of them, or all; any if left out.
        stopping_mode: Option<StoppingMode>,
        /// Must be true, and is if left out.
        enabled: Option<bool>,
        /// Where the openings come from; 42 if left out.
        tree_seed: Option<Seed>,
        /// Where the paths of forward passes come from.
        scenario_source: Option<ScenarioSource>,
        /// Which cuts are used; all if left out.
        cut_selection: Option<CutSelection>,
    }
    refused {
        cut_formulation: "cuts are single",
        forward_pass: "there is one kind of forward pass",
        solver: "the retry ladder has no settings",
    }
}

choice! {
    /// The mode in which stopping rules combine.
    StoppingMode {
        /// One rule ends training.
        Any = "any",
        /// All rules must agree.
        All = "all",
    }
}

choice! {
    /// Kinds of stopping rules.
    StoppingKind {
        /// A number of iterations.
        IterationLimit = "iteration_limit",
        /// A time.
        TimeLimit = "time_limit",
        /// A bound that hardly moves.
        BoundStalling = "bound_stalling",
    }
    refused {
        "simulation": "use bound_stalling, or cobre run --stop statistical:PATHS",
    }
}

object! {
    /// A stopping rule. Each kind has keys of its own.
    StoppingRule {
        /// The kind of rule.
        r#type: StoppingKind,
        /// iteration_limit: iterations.
        limit: Option<Count>,
        /// time_limit: seconds.
        seconds: Option<Positive>,
        /// bound_stalling: the window, in iterations.
        iterations: Option<Count>,
        /// bound_stalling: the least relative change over the window.
        tolerance: Option<NonNegative>,
    }
}

object! {
    /// Where paths come from.
    ScenarioSource {
        /// The seed of random numbers; 42 if left out.
        seed: Option<Seed>,
        /// Inflows.
        inflow: Option<Scheme>,
        /// Load.
        load: Option<Scheme>,
        /// Non-controllable sources.
        ncs: Option<Scheme>,
    }
    refused {
        historical_years: "paths are drawn from the openings",
    }
}

object! {
    /// The sampling scheme of one kind of data.
    Scheme {
        /// The scheme.
        scheme: SchemeKind,
    }
}

choice! {
    /// Which paths are taken.
    SchemeKind {
        /// Paths through the openings.
        InSample = "in_sample",
    }
    refused {
        "out_of_sample": "paths are drawn from the openings",
        "historical": "paths are drawn from the openings",
        "external": "paths are drawn from the openings",
    }
}

choice! {
    /// Rules of cut selection.
    CutMethod {
        /// Cuts that are highest at some trial point.
        Level1 = "level1",
        /// For each trial point the oldest cut that is highest there.
        Lml1 = "lml1",
    }
    refused {
        "domination": "use level1 or lml1",
    }
}

object! {
    /// Which cuts are used.
    CutSelection {
        /// The switch of cut selection; off if left out.
        enabled: Option<bool>,
        /// The rule; level1 if left out.
        method: Option<CutMethod>,
        /// The most cuts that a stage uses.
        max_active_per_stage: Option<Count>,
    }
    refused {
        memory_window: "lml1 looks at all trial points",
        check_frequency: "cuts are selected after every iteration",
        threshold: "cuts are selected after every iteration",
        cut_activity_tolerance: "cuts are compared by value",
        domination_epsilon: "use level1 or lml1",
        basis_padding: "bases are kept anyway",
        angular_pruning: "use level1 or lml1",
    }
}

object! {
    /// Settings of the simulation after training.
    Simulation {
        /// The switch of the simulation; off if left out.
        enabled: Option<bool>,
        /// Paths to walk; 2000 if left out.
        num_scenarios: Option<Paths>,
        /// Where the paths come from; its seed must be that of training.
        scenario_source: Option<ScenarioSource>,
    }
    refused {
        policy_type: "the policy is its cuts",
        output_path: "results go where --output says",
        output_mode: "results are written one way",
        io_channel_capacity: "results are written one way",
    }
}

object! {
    /// Choices of the model.
    Modeling {
        /// The treatment of inflows below zero.
        inflow_non_negativity: Option<InflowNonNegativity>,
    }
}

object! {
    /// The treatment of inflows below zero.
    InflowNonNegativity {
        /// The method; penalty if left out.
        method: Option<NonNegativity>,
        /// Method penalty: the cost of added water, $/(m³/s·h); 1000 if left out here and in penalties.json.
        penalty_cost: Option<NonNegative>,
    }
}

choice! {
    /// Methods for inflows below zero.
    NonNegativity {
        /// Nothing.
        None = "none",
        /// Water can be added at a cost.
        Penalty = "penalty",
        /// They are zero.
        Truncation = "truncation",
        /// The noise has a lower bound, the same for every past, at which they do not arise.
        BoundedNoise = "bounded_noise",
    }
    refused {
        "truncation_with_penalty": "use truncation or penalty",
    }
}

object! {
    /// Where training starts from.
    Policy {
        /// Must be fresh, and is if left out.
        mode: Option<PolicyMode>,
        /// Checkpoints; the command line sets them (--checkpoint), so this key must be off.
        checkpointing: Option<Checkpointing>,
    }
    refused {
        path: "results go where --output says",
        validate_compatibility: "a policy is always checked; use --warm-start",
        boundary: "there is no cost after the last stage",
    }
}

choice! {
    /// Where training starts from.
    PolicyMode {
        /// From nothing.
        Fresh = "fresh",
    }
    refused {
        "warm_start": "use --warm-start",
        "resume": "use --resume",
    }
}

object! {
    /// Checkpoints; the command line sets them (--checkpoint), so this key must be off.
    Checkpointing {
        /// Must be false, and is if left out.
        enabled: Option<bool>,
    }
    refused {
        initial_iteration: "use --checkpoint iterations:K",
        interval_iterations: "use --checkpoint iterations:K",
        store_basis: "a checkpoint has one form; use --checkpoint",
        compress: "a checkpoint has one form; use --checkpoint",
    }
}

object! {
    /// Further outputs; results have no switches.
    Exports {
        /// Must be false, and is if left out.
        states: Option<bool>,
        /// Must be false, and is if left out.
        stochastic: Option<bool>,
    }
    refused {
        training: "results have no switches",
        cuts: "results have no switches",
        vertices: "there is no inner approximation",
        simulation: "results have no switches",
        forward_detail: "results have no switches",
        backward_detail: "results have no switches",
        compression: "results have no switches",
    }
}
