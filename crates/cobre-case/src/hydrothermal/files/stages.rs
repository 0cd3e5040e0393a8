//! `stages.json`: time.

use serde_json::{Value, json};

use super::inflow::SeasonDefinitions;
use crate::finding::{Findings, Place};
use crate::hydrothermal::date::Date;
use crate::hydrothermal::json::{Json, Read, choice, expected, object};
use crate::hydrothermal::number::{Id, NonNegative, Openings, Positive, Share};

pub(crate) const FILE: &str = "stages.json";

object! {
    /// The stages of the study.
    Stages {
        /// The order of stages, and the discount.
        policy_graph: PolicyGraph,
        /// The stages, in the order of time.
        stages: Vec<Stage>,
        /// Seasons; with them lags of inflows are seasons, without them stages.
        season_definitions: Option<SeasonDefinitions>,
        /// Stages before the first, which say what season past inflows belong to.
        pre_study_stages: Option<Vec<PreStudyStage>>,
    }
    refused {
        scenario_source: "it is in config.json",
    }
}

object! {
    /// The order of stages.
    PolicyGraph {
        /// The kind of horizon.
        r#type: Horizon,
        /// Discount of costs, per year: 0.12 for 12 %.
        annual_discount_rate: NonNegative,
        /// The nodes of a Markov chain of inflow regimes; one node for each stage if left out.
        nodes: Option<Vec<GraphNode>>,
        /// The steps from stage to stage: each stage follows the one before it, and the first the last of a cyclic study.
        /// With `nodes`, the steps from node to node.
        transitions: Option<Vec<Transition>>,
    }
}

object! {
    /// A node of the policy graph: a stage in a regime of inflows.
    GraphNode {
        /// Its number.
        id: Id,
        /// The stage.
        stage_id: Id,
        /// The regime, whose inflows are in inflow_regimes.parquet; those of inflow_seasonal_stats.parquet if left out.
        scenario_id: Option<Id>,
        /// The probability that the study begins in this node of the first stage; 1 if left out.
        initial_probability: Option<Share>,
    }
}

object! {
    /// A step from a stage, or a node, to the next.
    Transition {
        /// The stage, or with `nodes` the node.
        source_id: Id,
        /// The stage, or the node, that follows it.
        target_id: Id,
        /// Its probability: 1 from stage to stage; those from a node sum to 1.
        probability: Share,
        /// The annual discount rate of the stage `source_id`, in place of that of all.
        annual_discount_rate_override: Option<NonNegative>,
    }
}

choice! {
    /// Kinds of horizon.
    Horizon {
        /// The study ends with its last stage.
        Finite = "finite_horizon",
        /// The first stage follows the last, again and again; the discount must be above 0.
        Cyclic = "cyclic",
    }
}

object! {
    /// A stage.
    Stage {
        /// Its number; they ascend by 1 from the first.
        id: Id,
        /// Its first day.
        start_date: Date,
        /// The day after its last.
        end_date: Date,
        /// Its blocks of hours.
        blocks: Vec<Block>,
        /// Openings: outcomes that the policy is trained for.
        num_scenarios: Openings,
        /// Its season; stages of one season share statistics of past inflows.
        season_id: Option<Id>,
        /// The risk measure over outcomes of the next stage; the expectation if left out.
        risk_measure: Option<RiskMeasure>,
        /// The states handed from stage to stage.
        state_variables: Option<StateVariables>,
        /// The method by which openings are drawn; saa if left out.
        sampling_method: Option<SamplingMethod>,
        /// The relation between its blocks; parallel if left out.
        block_mode: Option<BlockMode>,
        /// The annual discount rate of the stage, in place of that of all.
        annual_discount_rate_override: Option<NonNegative>,
    }
}

object! {
    /// Hours of a stage that are alike.
    Block {
        /// Its number; they ascend by 1 from 0.
        id: Id,
        /// Its name.
        name: String,
        /// Its duration, h.
        hours: Positive,
    }
}

choice! {
    /// The relation between blocks.
    BlockMode {
        /// Water of a stage can be used in any of its blocks.
        Parallel = "parallel",
        /// Blocks follow each other: there is a water balance for each.
        Chronological = "chronological",
    }
    refused {
        "sequential": "use chronological",
    }
}

choice! {
    /// The method by which openings are drawn.
    SamplingMethod {
        /// Independently.
        Saa = "saa",
        /// By Latin hypercube: every series has one outcome in each of num_scenarios equal parts.
        Lhs = "lhs",
        /// By a Sobol sequence with a random digital shift.
        Sobol = "qmc_sobol",
        /// By a Halton sequence with random digits.
        Halton = "qmc_halton",
        /// By the residuals of past years, of all plants together.
        HistoricalResiduals = "historical_residuals",
    }
    refused {
        "selective": "use saa or lhs",
    }
}

object! {
    /// The states handed from stage to stage.
    StateVariables {
        /// Storage; may be false only if no plant can store.
        storage: Option<bool>,
        /// Past inflows; must be true if there are AR coefficients.
        inflow_lags: Option<bool>,
    }
}

object! {
    /// A stage before the first.
    PreStudyStage {
        /// Its number: -1 is the one just before the first.
        id: Id,
        /// Its first day.
        start_date: Date,
        /// The day after its last.
        end_date: Date,
        /// Its season.
        season_id: Option<Id>,
    }
}

object! {
    /// The parameters of CVaR.
    Cvar {
        /// The share of worst outcomes that is averaged.
        alpha: Share,
        /// The weight of that average beside the expectation.
        lambda: Share,
    }
}

object! {
    /// A measure of risk with parameters.
    CvarMeasure {
        /// (1 − λ) · expectation + λ · average over the worst α.
        cvar: Cvar,
    }
}

/// The risk measure: `"expectation"`, or `{"cvar": {"alpha", "lambda"}}`.
#[derive(Debug, Clone)]
pub(crate) enum RiskMeasure {
    Expectation,
    Cvar(Cvar),
}

impl Read for RiskMeasure {
    fn read(json: &Json, at: &Place, findings: &mut Findings) -> Option<Self> {
        match json {
            Json::Text(text) if text == "expectation" => Some(Self::Expectation),
            Json::Object(_) => {
                CvarMeasure::read(json, at, findings).map(|measure| Self::Cvar(measure.cvar))
            }
            other => expected("\"expectation\" or {\"cvar\": …}", other, at, findings),
        }
    }

    fn schema() -> Value {
        json!({"anyOf": [{"const": "expectation"}, CvarMeasure::schema()]})
    }
}
