//! `config.json`: how the case is trained and tried.

use super::inflow::Estimation;
use serde_json::{Value, json};

use crate::finding::{Findings, Place};
use crate::hydrothermal::json::{Json, Read, choice, object};
use crate::hydrothermal::number::{
    Count, Id, NonNegative, Passes, PathStages, Paths, Positive, Seed, UpperBoundStates,
};

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
        /// The estimation of inflow models from a history.
        estimation: Option<Estimation>,
        /// The deterministic bound from above; none if left out.
        upper_bound_evaluation: Option<UpperBoundEvaluation>,
        /// A note that nothing reads.
        version: Option<String>,
    }
}

impl Config {
    /// True if every path is simulated.
    pub(crate) fn simulates_all(&self) -> bool {
        let simulation = self.simulation.as_ref();
        simulation.is_some_and(|simulation| simulation.selection.is_some())
    }
}

object! {
    /// The deterministic bound from above: an inner approximation over visited states.
    UpperBoundEvaluation {
        /// The switch; off if left out.
        enabled: Option<bool>,
        /// Iterations from one to the next; 10 if left out. One is computed after the last in any case.
        interval_iterations: Option<Count>,
        /// The most visited states of a stage that it uses, the latest ones; 100 if left out.
        states: Option<UpperBoundStates>,
    }
    unread {
        initial_iteration: "the bound is computed every interval_iterations, from the first",
        lipschitz: "slopes are computed from the linear programs",
    }
}

object! {
    /// Settings of training.
    Training {
        /// Forward passes per iteration; needed, unless selection says how many.
        forward_passes: Option<Passes>,
        /// Which paths are taken; as many as forward_passes says if left out.
        selection: Option<PathSelection>,
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
        /// The most stages of a path of a cyclic study; 10000 if left out.
        path_stages: Option<PathStages>,
    }
    unread {
        cut_formulation: "cuts are single",
        forward_pass: "there is one kind of forward pass",
        solver: "the retry ladder has no settings",
        parallelism: "backward passes are divided among ranks and threads by themselves",
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
        /// Bounds from both sides that meet; upper_bound_evaluation computes the other one.
        Gap = "gap",
        /// A decision of the first stage that hardly moves.
        FirstStage = "first_stage",
        /// A policy that does the same on simulated paths as before.
        Simulation = "simulation",
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
        /// bound_stalling, first_stage: the window, in iterations.
        iterations: Option<Count>,
        /// bound_stalling, first_stage: the least relative change over the window. gap: the relative difference of the bounds.
        tolerance: Option<NonNegative>,
        /// gap: the difference of the bounds in the unit of the objective; in place of tolerance, or beside it, where
        /// either ends training.
        absolute_tolerance: Option<NonNegative>,
        /// simulation: iterations from one simulation to the next.
        period: Option<Count>,
        /// simulation: paths.
        replications: Option<Paths>,
        /// simulation: the relative change of the value of paths, as a root mean square, that counts as none.
        distance_tol: Option<NonNegative>,
    }
    refused {
        bound_window: "add a rule bound_stalling, and stopping_mode all",
        bound_tol: "add a rule bound_stalling, and stopping_mode all",
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
        /// The years of scheme historical: a list, or from and to; all that are complete if left out.
        historical_years: Option<HistoricalYears>,
        /// Where openings come from; from scenarios/noise_openings.parquet if that is there, else they are drawn.
        openings: Option<OpeningSource>,
    }
}

object! {
    /// Which paths are taken.
    PathSelection {
        /// The method.
        method: SelectionMethod,
    }
}

choice! {
    /// Methods by which paths are taken.
    SelectionMethod {
        /// Every path once: each sequence of openings, or each scenario where scenarios are given.
        Enumerated = "enumerated",
    }
    refused {
        "sampled": "forward_passes or num_scenarios says how many are sampled, once",
    }
}

object! {
    /// Where openings come from.
    OpeningSource {
        /// The source.
        source: OpeningSourceKind,
    }
}

choice! {
    /// Sources of openings.
    OpeningSourceKind {
        /// scenarios/noise_openings.parquet, which must be there.
        File = "file",
    }
}

object! {
    /// Years from the first to the last.
    YearRange {
        /// The first year.
        from: Id,
        /// The last year.
        to: Id,
    }
}

/// Years: a list of them, or `{"from", "to"}`.
#[derive(Debug, Clone)]
pub(crate) enum HistoricalYears {
    List(Vec<Id>),
    Range(YearRange),
}

impl Read for HistoricalYears {
    fn read(json: &Json, at: &Place, findings: &mut Findings) -> Option<Self> {
        match json {
            Json::Object(_) => YearRange::read(json, at, findings).map(Self::Range),
            _ => Vec::read(json, at, findings).map(Self::List),
        }
    }

    fn schema() -> Value {
        json!({"anyOf": [<Vec<Id> as Read>::schema(), YearRange::schema()]})
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
        /// Fresh draws of the same model.
        OutOfSample = "out_of_sample",
        /// The scenarios of scenarios/external_*_scenarios.parquet.
        External = "external",
        /// The inflows of past years, of scenarios/inflow_history.parquet.
        Historical = "historical",
    }
}

choice! {
    /// Rules of cut selection.
    CutMethod {
        /// Cuts that are highest at some trial point.
        Level1 = "level1",
        /// For each trial point the oldest cut that is highest there.
        Lml1 = "lml1",
        /// Cuts that are below others at all trial points go: level1 under another name.
        Domination = "domination",
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
        /// Nothing reads it: cuts are selected after every iteration.
        check_frequency: Option<Count>,
        /// Nothing reads it: cuts are selected after every iteration, at all trial points.
        threshold: Option<NonNegative>,
        /// Nothing reads it: lml1 looks at all trial points.
        memory_window: Option<NonNegative>,
        /// Nothing reads it: cuts are compared by value.
        cut_activity_tolerance: Option<NonNegative>,
        /// Nothing reads it: cuts are compared by value.
        row_activity_tolerance: Option<NonNegative>,
        /// Nothing reads it: values that differ by 1e-10 of their size are equal.
        tie_tolerance: Option<NonNegative>,
        /// Nothing reads it: values that differ by 1e-10 of their size are equal.
        domination_epsilon: Option<NonNegative>,
        /// Nothing reads it: values that differ by 1e-10 of their size are equal.
        domination_tolerance: Option<NonNegative>,
        /// Nothing reads it: bases are kept anyway.
        basis_padding: Option<bool>,
    }
    refused {
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
        /// Which paths are taken; as many as num_scenarios says if left out.
        selection: Option<PathSelection>,
        /// Stages of the paths of a cyclic study, whose costs are discounted; they end by chance if left out.
        num_stages: Option<PathStages>,
        /// Where the paths come from; that of training if left out.
        scenario_source: Option<ScenarioSource>,
    }
    unread {
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
        /// Methods with a penalty: the cost of added water, $/(m³/s·h); 1000 if left out here and in penalties.json.
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
        /// They are zero; what lifts inflows that depend on the past to zero is paid for as by penalty.
        TruncationWithPenalty = "truncation_with_penalty",
        /// The noise has a lower bound, the same for every past, at which they do not arise.
        BoundedNoise = "bounded_noise",
    }
}

impl NonNegativity {
    /// True if no inflow is below zero in a linear program.
    pub(crate) fn truncates(self) -> bool {
        matches!(self, Self::Truncation | Self::TruncationWithPenalty)
    }
}

object! {
    /// Where training starts from.
    Policy {
        /// Must be fresh, and is if left out.
        mode: Option<PolicyMode>,
        /// The value after the last stage: the cuts of another study; no value if left out.
        boundary: Option<BoundaryPolicy>,
    }
    unread {
        path: "the policy goes where --output says",
        validate_compatibility: "a policy is always checked",
        checkpointing: "--checkpoint says when checkpoints are written",
    }
}

object! {
    /// The value after the last stage: the cuts of another study.
    BoundaryPolicy {
        /// The output directory of the other run, or a JSON file with the cuts of SDDP.jl; relative to the case.
        path: String,
        /// The stage of the other study whose cost to go it is, or the name of its node; that of the same dates if
        /// left out.
        source_stage: Option<SourceStage>,
    }
}

/// A stage of another study: its number, or the name of a node.
#[derive(Debug, Clone)]
pub(crate) struct SourceStage(pub(crate) String);

impl Read for SourceStage {
    fn read(json: &Json, at: &Place, findings: &mut Findings) -> Option<Self> {
        match json {
            Json::Text(name) => Some(Self(name.clone())),
            _ => Id::read(json, at, findings).map(|stage| Self(stage.to_string())),
        }
    }

    fn schema() -> Value {
        json!({"anyOf": [Id::schema(), {"type": "string"}]})
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
    /// Further outputs; results have no switches.
    Exports {
        /// Must be false, and is if left out.
        states: Option<bool>,
        /// Must be false, and is if left out.
        vertices: Option<bool>,
        /// Must be false, and is if left out.
        forward_detail: Option<bool>,
        /// Must be false, and is if left out.
        backward_detail: Option<bool>,
        /// Nothing reads it: cobre fit writes estimated inflow models.
        stochastic: Option<bool>,
    }
    unread {
        training: "results have no switches",
        cuts: "results have no switches",
        simulation: "results have no switches",
        compression: "results have no switches",
    }
}
