//! The collectives of training: their number per iteration, and ranks whose cuts differ.

mod counted;
#[path = "../../cobre-testkit/tests/port/mod.rs"]
mod port;
#[path = "../../cobre-case/src/sample.rs"]
mod sample;

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cobre_comm::{
    BackendKind, CommBackend, LocalBackend, TcpConfig, TcpProtection, TcpSharedMemory, TcpTopology,
    create_communicator, env,
};
use cobre_sddp::{
    Change, Draft, Iteration, Observer, Problem, SddpError, Sense, Settings, StopRule, Stopping,
    Template, UnitTimes, run,
};
use counted::Counted;
use port::free_port;
use sample::{Hydrothermal, hydrothermal};

const STAGES: usize = 12;
const ITERATIONS: usize = 10;

fn problem(cvar: bool) -> Problem {
    let size = Hydrothermal {
        stages: STAGES,
        regions: 2,
        reservoirs: 4,
        thermals: 6,
        blocks: 1,
        lags: 0,
        openings: 4,
        known_start: false,
    };
    let mut problem = hydrothermal(size).expect("sizes are not zero");
    if cvar {
        problem.risk = "cvar:0.5,0.3".parse().expect("a risk measure");
        for node in &mut problem.nodes {
            node.risk = problem.risk;
        }
    }
    problem
}

fn settings(passes: usize, iterations: usize) -> Settings {
    Settings {
        seed: 3,
        passes: NonZero::new(passes).expect("not 0"),
        stopping: Stopping::any(vec![StopRule::Iterations(iterations)]),
        ..Settings::default()
    }
}

/// Notes the collectives and their bytes at the end of each iteration.
struct Counts {
    count: Arc<AtomicUsize>,
    seen: Vec<usize>,
    gathered: Arc<AtomicUsize>,
    bytes: Vec<usize>,
    /// Bytes that the engine announces for each iteration.
    announced: usize,
}

impl Observer for Counts {
    fn iteration(&mut self, _: &Iteration) {
        self.seen.push(self.count.load(Ordering::Relaxed));
        self.bytes.push(self.gathered.load(Ordering::Relaxed));
    }

    fn unit_times(&mut self, times: &UnitTimes) {
        let solved = times
            .backward
            .iter()
            .skip(1)
            .flatten()
            .chain(&times.forward);
        assert!(solved.clone().count() > 0 && solved.clone().all(|&seconds| seconds > 0.0));
        // The first rank adds four times to its counts.
        self.announced = times.messages.iter().sum::<usize>() + times.counts + 32;
    }
}

/// Two nodes that follow each other, and hardly ever end.
fn cycle(risk: &str) -> Problem {
    let mut draft = Draft::new(Sense::Minimize, 0.0);
    draft.state("storage", 2.0);
    draft.risk(risk.parse().expect("a risk measure"));
    let mut nodes = Vec::new();
    for name in ["wet", "dry"] {
        let mut lp = Template::new();
        let before = lp.column("before", 0.0, 0.0, 5.0);
        let after = lp.column("after", 0.0, 0.0, 5.0);
        lp.state("storage", before, after);
        let missing = lp.column("missing", 4.0, 0.0, f64::INFINITY);
        let spilled = lp.column("spilled", 0.0, 0.0, f64::INFINITY);
        let terms = [
            (after, 1.0),
            (before, -1.0),
            (missing, -1.0),
            (spilled, 1.0),
        ];
        let water = lp.row("water", 0.0, 0.0, &terms);
        let template = draft.template(lp);
        let node = draft.node(name, template);
        for inflow in [-2.0, 1.5] {
            let (lower, upper) = (inflow, inflow);
            let row = water;
            let change = Change::RowBounds { row, lower, upper };
            draft.opening(node, 0.5, vec![change]);
        }
        nodes.push(node);
    }
    draft.start(nodes[0], 1.0);
    draft.edge(nodes[0], nodes[1], 1.0);
    draft.edge(nodes[1], nodes[0], 0.999);
    draft.build().expect("paths end")
}

#[test]
fn an_iteration_around_a_cycle_has_as_many_collectives_as_its_longest_path() {
    // One for each stage of the path and one for the root, and two under a risk measure.
    let levels = STAGES + 1;
    for (risk, passes, exchanges) in [
        ("expectation", 1, levels),
        ("expectation", 4, levels),
        ("cvar:0.5,0.3", 1, 2 * levels),
    ] {
        let comm = Counted::new(LocalBackend, None);
        let mut counts = CycleCounts {
            count: comm.count(),
            seen: Vec::new(),
        };
        let settings = Settings {
            path_stages: NonZero::new(STAGES).expect("not 0"),
            ..settings(passes, ITERATIONS)
        };
        run(&comm, cycle(risk), &settings, &mut counts).expect("it runs");
        let found: Vec<usize> = counts.seen.windows(2).map(|two| two[1] - two[0]).collect();
        assert_eq!(found, [exchanges + 3; ITERATIONS - 1], "{risk}");
    }
}

/// Notes the collectives at the end of each iteration.
struct CycleCounts {
    count: Arc<AtomicUsize>,
    seen: Vec<usize>,
}

impl Observer for CycleCounts {
    fn iteration(&mut self, _: &Iteration) {
        self.seen.push(self.count.load(Ordering::Relaxed));
    }
}

/// The collectives of each iteration but the first.
fn per_iteration(cvar: bool, passes: usize) -> Vec<usize> {
    let comm = Counted::new(LocalBackend, None);
    let mut counts = Counts {
        count: comm.count(),
        seen: Vec::new(),
        gathered: comm.gathered(),
        bytes: Vec::new(),
        announced: 0,
    };
    let settings = settings(passes, ITERATIONS);
    run(&comm, problem(cvar), &settings, &mut counts).expect("it runs");
    let bytes = counts.bytes.windows(2).map(|two| two[1] - two[0]);
    assert_eq!(
        bytes.collect::<Vec<_>>(),
        [counts.announced; ITERATIONS - 1]
    );
    counts.seen.windows(2).map(|two| two[1] - two[0]).collect()
}

#[test]
fn an_iteration_has_few_collectives() {
    // So many passes that cuts are published again and again.
    for (passes, publishes) in [(1, false), (30, true)] {
        for (cvar, exchanges) in [(false, STAGES), (true, 2 * STAGES)] {
            let found = per_iteration(cvar, passes);
            let most = if publishes {
                exchanges + 3
            } else {
                exchanges + 2
            };
            assert_eq!(found.iter().min(), Some(&(exchanges + 2)), "{found:?}");
            assert_eq!(found.iter().max(), Some(&most), "{found:?}");
        }
    }
}

/// Two ranks, in threads of this process.
fn two_ranks<R: Send>(work: impl Fn(CommBackend) -> R + Sync) -> Vec<R> {
    let secret = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(secret.path(), "a secret of thirty-two characters").expect("it is written");
    let port = free_port();
    let config = |rank: usize| TcpConfig {
        rank,
        size: 2,
        coordinator: Some("127.0.0.1".to_owned()),
        port,
        bind: None,
        secret_file: Some(secret.path().to_owned()),
        runtime_directory: None,
        protection: TcpProtection::None,
        topology: TcpTopology::Auto,
        shared_memory: TcpSharedMemory::Off,
        host: None,
        job: None,
        listener: None,
        secret_descriptor: None,
        timeout: None,
        stall: env::DEFAULT_STALL,
    };
    std::thread::scope(|scope| {
        let (work, config) = (&work, &config);
        let start = |rank| {
            scope.spawn(move || {
                let comm = create_communicator(BackendKind::Tcp(config(rank)));
                work(comm.expect("both connect"))
            })
        };
        let ranks = [start(0), start(1)];
        ranks.map(|rank| rank.join().expect("it ends")).into()
    })
}

/// Trains on two ranks, of which one receives a wrong bit at the collective of this number.
fn trained(spoiled: Option<usize>) -> Vec<Result<String, SddpError>> {
    two_ranks(|comm| {
        let first = cobre_comm::Communicator::rank(&comm) == 0;
        let comm = Counted::new(comm, spoiled.filter(|_| !first));
        let results = run(&comm, problem(false), &settings(3, 5), &mut ());
        results.map(|results| results.policy_sha256)
    })
}

#[test]
fn ranks_whose_cuts_differ_all_learn_it_after_the_iteration() {
    let sound = trained(None);
    assert!(
        matches!(&sound[..], [Ok(one), Ok(other)] if one == other),
        "{sound:?}"
    );
    // The agreement, two for the openings, an iteration, the forward passes: in the third level of
    // the second iteration.
    let number = 1 + 2 + (STAGES + 2) + 1 + 2;
    for outcome in trained(Some(number)) {
        let found = outcome.expect_err("the cuts differ");
        assert!(
            matches!(
                found,
                SddpError::Divergence {
                    rank: 1,
                    iteration: 2
                }
            ),
            "{found:?}"
        );
        assert!(found.to_string().contains("iteration 2"), "{found}");
    }
}
