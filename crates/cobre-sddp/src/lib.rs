//! Stochastic dual dynamic programming (SDDP) for multistage stochastic linear programs, with the same bits for
//! any backend, rank count and thread count.
//!
//! The most important types:
//!
//! - [`Draft`] collects linear programs ([`Template`]), nodes of the policy graph and their openings, and builds a
//!   [`Problem`] or returns all errors.
//! - [`run`] trains a policy, simulates it and writes results, by [`Settings`]; it returns [`Results`]. An
//!   [`Observer`] gets the progress.
//! - [`Policy`] holds the cuts of a trained policy; [`run_from`] warm-starts from one, [`simulate`] simulates one.
//!
//! A reservoir of 60 units serves a demand of 80 in each of two stages; a unit that is missing costs 50. The
//! inflow of the second stage is 0 or 60:
//!
//! ```
//! use cobre_comm::LocalBackend;
//! use cobre_sddp::{Change, Draft, Sense, Settings, StopRule, Stopping, Template, run};
//!
//! let mut lp = Template::new();
//! let before = lp.column("storage before", 0.0, f64::NEG_INFINITY, f64::INFINITY);
//! let after = lp.column("storage after", 0.0, 0.0, 100.0);
//! lp.state("storage", before, after);
//! let hydro = lp.column("hydro", 0.0, 0.0, 80.0);
//! let thermal = lp.column("thermal", 50.0, 0.0, 100.0);
//! lp.row("demand", 80.0, 80.0, &[(hydro, 1.0), (thermal, 1.0)]);
//! let balance = [(after, 1.0), (hydro, 1.0), (before, -1.0)];
//! let balance = lp.row("water balance", 0.0, 0.0, &balance);
//!
//! let mut draft = Draft::new(Sense::Minimize, 0.0); // the cost to go is never below 0
//! draft.state("storage", 60.0);
//! let lp = draft.template(lp);
//! let (first, second) = (draft.node("first", lp), draft.node("second", lp));
//! draft.start(first, 1.0);
//! draft.edge(first, second, 1.0);
//! for inflow in [0.0, 60.0] {
//!     let (lower, upper) = (inflow, inflow);
//!     let change = Change::RowBounds { row: balance, lower, upper };
//!     draft.opening(second, 0.5, vec![change]);
//! }
//!
//! let stopping = Stopping::any(vec![StopRule::Iterations(10)]);
//! let settings = Settings { stopping, ..Settings::default() };
//! let results = run(&LocalBackend, draft.build()?, &settings, &mut ())?;
//! assert!((results.trained.bound - 3500.0).abs() < 1e-6);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(any(test, fuzzing))]
extern crate self as cobre_sddp;

mod agreement;
mod basis_memory;
mod checkpoint;
mod error;
mod events;
mod fingerprint;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod kernel;
mod lp;
mod memory_estimate;
mod noise;
mod output;
mod packing;
mod path;
mod policy;
mod problem;
mod rank_work;
mod ranks;
mod risk;
mod run;
mod settings;
mod simulation;
mod solver;
mod spans;
mod team;
mod training;
mod unit_times;
mod upper_bound;

pub use basis_memory::DEFAULT as DEFAULT_BASIS_MEMORY;
pub use checkpoint::{Cadence, exists as has_checkpoint};
pub use error::{ClassifiedError, ErrorKind, FieldName, Fields, SddpError};
pub use events::{Iteration, Observer, TimeSplit};
pub use lp::{LpFailure, LpFailureKind, LpStatistics, NodeSolution};
pub use memory_estimate::MemoryEstimate;
pub use noise::{Noise, Purpose, choose};
pub use output::{
    About, PlainTables, PolicyFile, Tables, Visited, cuts_csv, cuts_sddp_jl, read_policy,
    read_policy_manifest, write_policy,
};
pub use policy::{
    GivenPolicy, InitialState, Manifest, Policy, Selection, SelectionRule, StoredCut,
};
pub use problem::{
    Change, ColumnId, Draft, Edge, Fictitious, GivenPath, GivenStep, Graph, LARGEST,
    LARGEST_COEFFICIENT, LpColumn, LpRow, MOST_OPENING_NUMBERS, Magnitudes, Node, NodeId, Parts,
    PathPoint, PathSource, PathSources, Places, Problem, ProblemError, ProblemErrors, RowId,
    SMALLEST, Sense, State, StateColumns, Step, Summary, Template, TemplateId, TerminalCut,
    TerminalValue, ValidationStep, sum_of,
};
pub use ranks::Backend;
pub use risk::Risk;
pub use run::{Results, Seconds, Start, run, run_from, simulate};
pub use settings::{
    MAX_PASSES, MAX_PATH_STAGES, MAX_PATHS, MAX_THREADS, MAX_UPPER_BOUND_STATES, Overrides,
    Settings,
};
pub use simulation::Sampling;
pub use solver::Solver;
pub use spans::{Span, SpanKind};
pub use training::{Estimate, StopReason, StopRule, Stopping, TrainingResults, gap};
pub use unit_times::UnitTimes;
pub use upper_bound::DEFAULT_STATES as DEFAULT_UPPER_BOUND_STATES;
