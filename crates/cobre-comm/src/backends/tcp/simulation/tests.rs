//! Seeds: jobs under faults that keep the contract, and planted faults that do not.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::job::{self, JobOutcome};
use super::network::Properties;
use super::oracle;
use super::plan::{Act, JobFault, JobPlan, PlannedCall, Trigger};
use super::system::PlantedFault;
use crate::env::TcpTopology;

/// Seeds without [`COUNT`] set: of jobs over sockets, and of jobs by hosts.
const SEEDS: u64 = 500;
const HOST_SEEDS: u64 = 500;
const COUNT: &str = "COBRE_SIMULATION";
const FIRST: &str = "COBRE_SIMULATION_SEED";
/// Failing seeds that are shown.
const SHOWN: usize = 5;

fn setting(variable: &str, otherwise: u64) -> u64 {
    let given = std::env::var(variable).ok();
    given.map_or(otherwise, |text| text.parse().expect(variable))
}

/// A file with the secret of all jobs.
struct SimulationSecret(PathBuf);

impl SimulationSecret {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("simulation-{}-{name}", std::process::id()));
        std::fs::write(&path, b"0123456789abcdef0123456789abcdef").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        Self(path)
    }

    fn run_plan(
        &self,
        plan: JobPlan,
        mutant: Option<PlantedFault>,
    ) -> (JobPlan, JobOutcome, Vec<String>) {
        let outcome = job::run(&plan, &self.0, mutant);
        let breaches = oracle::breaches(&plan, &outcome);
        (plan, outcome, breaches)
    }
}

impl Drop for SimulationSecret {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Counts over many jobs.
#[derive(Debug, Default)]
struct SeedTotals {
    jobs: u64,
    steps: u64,
    time: Duration,
    failed: u64,
    kinds: BTreeMap<String, u64>,
}

impl SeedTotals {
    fn add(&mut self, plan: &JobPlan, outcome: &JobOutcome) {
        self.jobs += 1;
        self.steps += outcome.steps;
        self.time += outcome.now;
        let is_failed = |record: &job::RankRecord| {
            let mut calls = record.calls.iter();
            matches!(record.started, Some(Err(_)))
                || calls.any(|(_, _, result)| *result != job::CallResult::Right)
        };
        self.failed += u64::from(outcome.ranks.iter().any(is_failed));
        let kind = |fault: &JobFault| {
            let text = format!("{fault:?}");
            text.split('(').next().unwrap_or_default().to_owned()
        };
        let faults = outcome.happened.iter().map(|(_, fault, _)| kind(fault));
        let acts = plan.act.iter().map(|(_, _, act)| format!("{act:?}"));
        for kind in faults.chain(acts) {
            *self.kinds.entry(kind).or_default() += 1;
        }
    }
}

#[test]
fn every_seed_keeps_the_contract() {
    run_seeds("seeds", SEEDS, JobPlan::of_seed);
}

#[test]
fn every_seed_of_hosts_keeps_the_contract() {
    run_seeds("hosts", HOST_SEEDS, JobPlan::by_hosts);
}

/// Runs the jobs of these seeds, each with the plan that a seed gives.
fn run_seeds(name: &str, seeds: u64, plan_of: fn(u64) -> JobPlan) {
    let secret = SimulationSecret::new(name);
    let (first, count) = (setting(FIRST, 0), setting(COUNT, seeds));
    let next = AtomicU64::new(first);
    let (totals, bad) = (Mutex::new(SeedTotals::default()), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Relaxed);
            if seed >= first + count {
                return;
            }
            let (plan, outcome, breaches) = secret.run_plan(plan_of(seed), None);
            totals.lock().unwrap().add(&plan, &outcome);
            if !breaches.is_empty() {
                let text = format!("seed {seed}: {breaches:#?}\n{plan:?}\n{outcome:#?}");
                bad.lock().unwrap().push((seed, text));
            }
        }
    };
    // More worlds than processors: each waits for a turn of its threads most of the time.
    let threads = 4 * std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        (0..threads).for_each(|_| drop(scope.spawn(work)));
    });
    println!("{:#?}", totals.into_inner().unwrap());
    let mut bad = bad.into_inner().unwrap();
    bad.sort();
    for (_, text) in bad.iter().take(SHOWN) {
        println!("{text}");
    }
    let seeds: Vec<u64> = bad.iter().map(|(seed, _)| *seed).collect();
    assert!(
        seeds.is_empty(),
        "{} of {count} seeds break the contract: {seeds:?}; {FIRST}=N {COUNT}=1 runs one",
        seeds.len()
    );
}

#[test]
fn a_seed_gives_the_same_job_every_time() {
    let secret = SimulationSecret::new("same");
    for seed in 0..40 {
        for plan_of in [JobPlan::of_seed, JobPlan::by_hosts] {
            let run = |_| format!("{:?}", secret.run_plan(plan_of(seed), None).1);
            let [one, other] = [0, 1].map(run);
            assert_eq!(one, other, "seed {seed}");
        }
    }
}

#[test]
fn every_planted_fault_is_found_within_the_seeds_of_a_test_run() {
    let secret = SimulationSecret::new("planted");
    let find = |mutants: &[PlantedFault], seeds: u64, plan_of: fn(u64) -> JobPlan| {
        for &mutant in mutants {
            let is_found = |seed: &u64| {
                let (_, _, breaches) = secret.run_plan(plan_of(*seed), Some(mutant));
                !breaches.is_empty()
            };
            let found = (0..seeds).find(is_found);
            println!("{mutant:?}: seed {found:?}");
            assert!(found.is_some(), "{mutant:?} is not found");
        }
    };
    let of_sockets = [
        PlantedFault::DeafCoordinator,
        PlantedFault::DeafFollower,
        PlantedFault::OwnVerdict,
        PlantedFault::VerdictNotForAll,
        PlantedFault::UncheckedCall,
        PlantedFault::LostBytesIgnored,
        PlantedFault::SilenceIsDeath,
    ];
    let of_hosts = [PlantedFault::HostRecord, PlantedFault::NoLastMeeting];
    find(&of_sockets, SEEDS, JobPlan::of_seed);
    find(&of_hosts, HOST_SEEDS, JobPlan::by_hosts);
}

/// Seeds that broke the contract once.
#[test]
fn seeds_that_failed_keep_the_contract() {
    let secret = SimulationSecret::new("failed");
    for (seed, found) in [
        (
            43,
            "a deadline of a fraction of a millisecond differed between records",
        ),
        (
            1627,
            "a report to a lost rank 0 began the kernel's time anew: 5 s instead of 3",
        ),
        (2002, "the same, of a job of three ranks"),
        (
            40839,
            "a rank that leaves waited for an acknowledgement from one that had left",
        ),
        (50170, "the same, with a rank 0 that is stopped meanwhile"),
        (
            2_000_437,
            "what a rank had said before it left was held against one that waited for a third",
        ),
    ] {
        let (_, _, breaches) = secret.run_plan(JobPlan::of_seed(seed), None);
        assert_eq!(breaches, [""; 0], "seed {seed}: {found}");
    }
}

/// The ranks of a host wait in `split_local` for one that computes, and then in a sum of theirs for rank 9, which is
/// stopped: 33 s together, and no collective takes 30 s.
#[test]
fn two_collectives_of_one_call_are_no_stall() {
    let secret = SimulationSecret::new("two");
    let (plan, outcome, breaches) = secret.run_plan(JobPlan::by_hosts(3_001_345), None);
    assert_eq!(breaches, [""; 0], "{plan:?}");
    let (mut call, mut wait) = (Duration::ZERO, Duration::ZERO);
    for (_, record) in outcome
        .ranks
        .iter()
        .enumerate()
        .filter(|(rank, _)| *rank != 9)
    {
        let calls = record
            .calls
            .iter()
            .map(|(begin, end, _)| end.saturating_sub(*begin));
        let waits = record
            .waits
            .iter()
            .map(|(begin, end)| end.saturating_sub(*begin));
        (call, wait) = (
            calls.fold(call, Duration::max),
            waits.fold(wait, Duration::max),
        );
    }
    let limit = crate::env::DEFAULT_STALL;
    assert!(wait < limit && limit < call, "{wait:?} {call:?}");
}

/// A job of hosts without faults, in a network with buffers of these sizes.
fn of_hosts(hosts: &[usize], calls: Vec<PlannedCall>, room: usize) -> JobPlan {
    JobPlan {
        size: hosts.len(),
        hosts: hosts.to_vec(),
        topology: TcpTopology::Star,
        timeout: None,
        unmapped: None,
        properties: Properties {
            delay: Duration::from_millis(60),
            send_room: room,
            receive_room: room,
            is_choppy: false,
        },
        calls,
        pauses: Vec::new(),
        act: None,
        faults: Vec::new(),
        ..JobPlan::by_hosts(0)
    }
}

/// The root of a message that does not fit into its ring waits for ranks to take it, and one of them never comes.
#[test]
fn a_rank_that_leaves_before_a_large_broadcast_is_no_hang() {
    let secret = SimulationSecret::new("leave");
    for leaving in 0..3 {
        let (root, length) = ((leaving + 1) % 3, 16_000);
        let calls = vec![
            PlannedCall::Barrier,
            PlannedCall::Broadcast { root, length },
        ];
        let plan = JobPlan {
            act: Some((1, leaving, Act::Leave)),
            ..of_hosts(&[0, 0, 0], calls, 20_000)
        };
        let (plan, outcome, breaches) = secret.run_plan(plan, None);
        assert_eq!(breaches, [""; 0], "{plan:?} {outcome:#?}");
    }
}

/// Rank 0 asks a stopped rank up to 16 times what has crossed its connections; when it goes on, its answers do not all
/// fit into the buffer of its kernel.
#[test]
fn a_rank_that_was_stopped_for_long_answers_in_whole_messages() {
    let secret = SimulationSecret::new("answers");
    let hosts = [0, 0, 0, 0, 1, 1, 1, 1];
    let stop = JobFault::Stop(5, Duration::from_secs(90));
    let plan = JobPlan {
        // The job is under way when rank 5 stops.
        pauses: vec![(1, 2, Duration::from_secs(8))],
        faults: vec![(Trigger::Time(Duration::from_secs(6)), stop)],
        ..of_hosts(&hosts, vec![PlannedCall::Barrier; 30], 1_000)
    };
    let (plan, outcome, breaches) = secret.run_plan(plan, None);
    assert_eq!(breaches, [""; 0], "{plan:?} {outcome:#?}");
}

/// A message takes the same time between any two hosts, and processors take none: one trip is faster than two.
#[test]
fn ranks_of_distant_hosts_choose_the_direct_way() {
    let secret = SimulationSecret::new("distant");
    for hosts in [&[0, 1, 2][..], &[0, 0, 1, 1, 2], &[2, 0, 1, 0, 3, 1]] {
        let plan = JobPlan {
            topology: TcpTopology::Auto,
            ..of_hosts(hosts, vec![PlannedCall::Allreduce(3); 3], 20_000)
        };
        let (_, outcome, breaches) = secret.run_plan(plan, None);
        assert_eq!(breaches, [""; 0], "{hosts:?}");
        let topologies: Vec<_> = outcome.ranks.iter().map(|it| &it.topology).collect();
        let direct = Some("direct".to_owned());
        assert_eq!(topologies, vec![&direct; hosts.len()], "{outcome:#?}");
        println!("{hosts:?}: {} steps, {:?}", outcome.steps, outcome.now);
    }
}

/// A rank that gives up, and one on another host that waits there for its leader, which computes.
#[test]
fn a_verdict_ends_the_waits_for_a_leader_that_computes() {
    let secret = SimulationSecret::new("alarm");
    for mutant in [None, Some(PlantedFault::NoHostAlarm)] {
        let plan = JobPlan {
            pauses: vec![(1, 2, Duration::from_secs(8))],
            act: Some((1, 1, Act::Abort)),
            ..of_hosts(&[0, 0, 1, 1], vec![PlannedCall::Barrier; 2], 20_000)
        };
        let (_, outcome, breaches) = secret.run_plan(plan, mutant);
        let acted = outcome.ranks[1].acted.unwrap();
        let calls = &outcome.ranks[3].calls;
        let is_failed = |call: &&(_, _, job::CallResult)| call.2 != job::CallResult::Right;
        let (_, end, _) = calls.iter().find(is_failed).unwrap();
        let is_soon = *end < acted + Duration::from_secs(2);
        assert_eq!(is_soon, mutant.is_none(), "{mutant:?} {outcome:#?}");
        assert!(mutant.is_some() || breaches.is_empty(), "{breaches:?}");
    }
}

/// A job whose second rank stops for a minute while it starts, at this time.
fn stopped_in_start(at: Duration, timeout: Option<Duration>) -> JobPlan {
    let stop = JobFault::Stop(1, Duration::from_secs(60));
    JobPlan {
        topology: TcpTopology::Auto,
        timeout,
        faults: vec![(Trigger::Time(at), stop)],
        ..of_hosts(&[0, 0, 1, 1, 2], vec![PlannedCall::Barrier], 20_000)
    }
}

/// Times in the start of such a job.
fn times_in_start() -> impl Iterator<Item = Duration> {
    (1_000..4_000).step_by(400).map(Duration::from_millis)
}

#[test]
fn a_start_that_waits_for_a_stopped_rank_is_reported() {
    let secret = SimulationSecret::new("stalled");
    let mut reported = 0;
    for at in times_in_start() {
        let (plan, outcome, breaches) = secret.run_plan(stopped_in_start(at, None), None);
        assert_eq!(breaches, [""; 0], "{plan:?} {outcome:#?}");
        for (_, _, line) in &outcome.reports {
            let is_start = line.contains("the start of the job has taken");
            reported += u32::from(is_start && line.contains("not there: rank 1 "));
        }
    }
    assert!(reported > 1, "{reported}");
}

#[test]
fn a_deadline_in_the_start_names_the_stopped_rank() {
    let secret = SimulationSecret::new("deadline");
    let mut named = 0;
    for at in times_in_start() {
        let plan = stopped_in_start(at, Some(Duration::from_secs(5)));
        let (plan, outcome, breaches) = secret.run_plan(plan, None);
        assert_eq!(breaches, [""; 0], "{plan:?} {outcome:#?}");
        let errors = outcome.ranks.iter().filter_map(|it| match &it.started {
            Some(Err(text)) if text.contains("no answer within") => Some(text),
            _ => None,
        });
        for text in errors {
            assert!(text.ends_with("no answer within 5 s from rank 1"), "{text}");
            named += 1;
        }
    }
    assert!(named > 1, "{named}");
}

/// Two seconds are enough for any collective in this network, and all greetings take longer together.
#[test]
fn a_deadline_holds_for_each_step_of_the_choice_of_a_topology() {
    let secret = SimulationSecret::new("steps");
    let plan = JobPlan {
        topology: TcpTopology::Auto,
        timeout: Some(Duration::from_secs(2)),
        ..of_hosts(&[0, 1, 0, 2], vec![PlannedCall::Barrier; 3], 20_000)
    };
    let (_, outcome, breaches) = secret.run_plan(plan, None);
    assert_eq!(breaches, [""; 0]);
    for record in &outcome.ranks {
        assert!(matches!(record.started, Some(Ok(_))), "{outcome:#?}");
        assert_eq!(record.calls.len(), 3, "{outcome:#?}");
    }
}

/// Every rank of two hosts, each leader beside a rank of the other host, and each host, at many steps of a job that makes
/// every collective.
#[test]
fn deaths_on_one_host_and_on_two_end_in_one_record() {
    let secret = SimulationSecret::new("deaths");
    let calls = [
        PlannedCall::Barrier,
        PlannedCall::Allreduce(100),
        PlannedCall::Broadcast { root: 3, length: 9 },
        PlannedCall::Allgatherv(2),
        PlannedCall::Gatherv { root: 3, length: 2 },
        PlannedCall::Region(2),
        PlannedCall::LeaderRegion(2),
        PlannedCall::Split,
    ];
    let (kill, lose) = (JobFault::Kill, JobFault::LoseHost);
    let mut failed = BTreeMap::<String, u64>::new();
    for (hosts, other) in [([0, 0, 1, 1], 2), ([0, 1, 0, 1], 1)] {
        let mut deaths: Vec<Vec<JobFault>> = (0..4).map(|rank| vec![kill(rank)]).collect();
        deaths.extend([vec![lose(0)], vec![lose(3)]]);
        deaths.extend([
            vec![kill(0), kill(other)],
            vec![kill(other), kill(3 - other)],
        ]);
        deaths.extend([vec![kill(0), kill(3)], vec![kill(3 - other), kill(3)]]);
        for (number, deaths) in deaths.iter().enumerate() {
            for step in (200..2600).step_by(200) {
                let at = Trigger::Step(step + 19 * number as u64);
                let plan = JobPlan {
                    faults: deaths.iter().map(|death| (at, *death)).collect(),
                    has_event_queues: number % 2 == 0,
                    ..of_hosts(&hosts, calls.to_vec(), 20_000)
                };
                let (plan, outcome, breaches) = secret.run_plan(plan, None);
                assert_eq!(breaches, [""; 0], "{plan:?} {outcome:#?}");
                let calls = outcome.ranks.iter().flat_map(|it| &it.calls);
                let has_failed = calls.into_iter().any(|it| it.2 != job::CallResult::Right);
                *failed.entry(format!("{deaths:?}")).or_default() += u64::from(has_failed);
            }
        }
    }
    println!("{failed:#?}");
    assert!(failed.values().all(|&jobs| jobs > 1), "{failed:#?}");
}

/// Long vectors go from leader to leader and back where ranks are numbered in a row: nothing happens, a rank of each host dies
/// on the way, or makes another call.
#[test]
fn long_reductions_of_hosts_in_a_row_keep_the_contract() {
    let secret = SimulationSecret::new("chain");
    let calls = vec![PlannedCall::Allreduce(20_000); 2];
    let mut failed = 0;
    for hosts in [
        &[0, 0, 1, 1][..],
        &[0, 1, 1, 2, 2, 2],
        &[0, 0, 1, 1, 1, 2, 3, 3],
    ] {
        let quiet = JobPlan {
            topology: TcpTopology::Ring,
            ..of_hosts(hosts, calls.clone(), 20_000)
        };
        let (plan, outcome, breaches) = secret.run_plan(quiet.clone(), None);
        assert_eq!(breaches, [""; 0], "{plan:?} {outcome:#?}");
        let leaders = (0..hosts.len()).filter(|&rank| rank == 0 || hosts[rank - 1] != hosts[rank]);
        let last = hosts.len() - 1;
        let mut plans: Vec<JobPlan> = Vec::new();
        for rank in leaders.chain([last]) {
            let disturbed = (1..5).map(|part| JobPlan {
                faults: vec![(
                    Trigger::Step(outcome.steps * part / 5),
                    JobFault::Kill(rank),
                )],
                ..quiet.clone()
            });
            plans.extend(disturbed);
            plans.push(JobPlan {
                act: Some((1, rank, Act::OtherCall)),
                ..quiet.clone()
            });
        }
        for plan in plans {
            let (plan, outcome, breaches) = secret.run_plan(plan, None);
            assert_eq!(breaches, [""; 0], "{plan:?} {outcome:#?}");
            let mut calls = outcome.ranks.iter().flat_map(|it| &it.calls);
            failed += u32::from(calls.any(|it| it.2 != job::CallResult::Right));
        }
    }
    assert!(failed > 20, "{failed}");
}

/// A job of three ranks whose second and third exchange large blocks when the way from one to the other is blocked.
fn cut_apart(step: u64, from: usize, both: bool) -> JobPlan {
    let (root, length) = (from % 2 + 1, 24_000);
    let plan = JobPlan::of_seed(step);
    JobPlan {
        size: 3,
        hosts: vec![0, 1, 2],
        topology: TcpTopology::Ring,
        timeout: None,
        properties: Properties {
            delay: Duration::from_micros(500),
            send_room: 3_000,
            receive_room: 20_000,
            is_choppy: false,
        },
        calls: vec![
            PlannedCall::Broadcast { root, length },
            PlannedCall::Broadcast { root: from, length },
        ],
        pauses: Vec::new(),
        act: None,
        faults: vec![(
            Trigger::Step(step),
            JobFault::Block(from, 3 - from, both, None),
        )],
        ..plan
    }
}

/// Both answer rank 0, so neither is lost; what they send each other does not arrive, or is not acknowledged.
#[test]
fn ranks_that_cannot_reach_each_other_fail_together() {
    let secret = SimulationSecret::new("apart");
    let mut found = BTreeMap::<String, u64>::new();
    for step in (150..750).step_by(6) {
        for (from, both) in [(1, false), (2, false), (1, true)] {
            let plan = cut_apart(step, from, both);
            let (plan, outcome, breaches) = secret.run_plan(plan, None);
            assert_eq!(breaches, [""; 0], "{plan:?} {outcome:#?}");
            let failed = outcome.ranks[0]
                .calls
                .iter()
                .find_map(|call| match &call.2 {
                    job::CallResult::Failed(cause) => Some(cause.to_string()),
                    _ => None,
                });
            let text = failed.unwrap_or_default();
            let kind = ["do not arrive", "not acknowledged"].map(|it| text.contains(it));
            *found.entry(format!("{kind:?}")).or_default() += 1;
        }
    }
    println!("{found:?}");
    for kind in [[true, false], [false, true]] {
        assert!(found.contains_key(&format!("{kind:?}")), "{found:?}");
    }
}
