//! `cobre top`: who waits for whom in the jobs of this machine, and on all hosts of those that it is the launcher of.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use cobre_comm::{StatusOfRank, env, terminal};
use cobre_launch::StatusOfHost;

use crate::exit::{self, say};
use crate::terminal_table::plural;

/// In front of every message.
const NAME: &str = "cobre top";
/// The age of a status from another host that is worth a word: hosts tell theirs every second.
const OLD: Duration = Duration::from_secs(3);

/// Shows what the ranks of your jobs do: who computes, who waits in which collective, since when, and for whom.
///
/// Looks at the ranks of your own processes once and ends; nothing is asked of them, so that it works on a job that hangs. Of a
/// job on several hosts it shows the ranks of all hosts where the launcher runs, at most a second old, and elsewhere those of
/// the host it runs on.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The job: the process id of its launcher, or of any process above or of its ranks [default: all jobs]
    #[arg(value_name = "PID")]
    job: Option<u32>,
}

/// A rank of a job.
struct SeenRank {
    status: StatusOfRank,
    /// The host in the job's list and the age of what it told; `None` on this machine.
    host: Option<(String, Duration)>,
}

/// Prints the jobs and returns the code to exit with.
pub(crate) fn run(args: &Args) -> u8 {
    let jobs = jobs(args.job);
    if jobs.is_empty() {
        let problem = match args.job {
            Some(pid) => format!("process {pid} is no rank, and none of its descendants is one"),
            None => "there is no rank of yours on this machine".to_owned(),
        };
        return exit::fail(exit::INVALID_INPUT, NAME, &problem);
    }
    for (number, ranks) in jobs.into_values().enumerate() {
        if number > 0 {
            say!("");
        }
        print(&ranks);
    }
    exit::DONE
}

/// The ranks by job: what one launcher has started, or processes with one parent.
fn jobs(chosen: Option<u32>) -> BTreeMap<String, Vec<SeenRank>> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let pids = pids.filter(|pid| chosen.is_none_or(|above| is_below(*pid, above)));
    let mut jobs = BTreeMap::<String, Vec<SeenRank>>::new();
    let mut boards = BTreeMap::new();
    for pid in pids {
        for status in StatusOfRank::of_process(pid) {
            let key = key(&job_of(pid), status.size);
            let seen = SeenRank { status, host: None };
            jobs.entry(key).or_default().push(seen);
        }
        // A process that was forked has the board of its parent.
        boards.extend(StatusOfHost::of_launcher(pid));
    }
    for (number, hosts) in boards {
        let ranks = of_hosts(hosts, &mut jobs);
        if !ranks.is_empty() {
            jobs.insert(format!("hosts {number}"), ranks);
        }
    }
    for ranks in jobs.values_mut() {
        ranks.sort_by_key(|seen| (seen.status.rank, seen.status.pid));
    }
    jobs
}

/// The ranks of a job on several hosts; those of them that were seen on this machine are no job of their own.
fn of_hosts(hosts: Vec<StatusOfHost>, jobs: &mut BTreeMap<String, Vec<SeenRank>>) -> Vec<SeenRank> {
    let here = cobre_launch::this_machine();
    let mut ranks = Vec::new();
    for StatusOfHost {
        host,
        machine,
        address,
        age,
        ranks: told,
    } in hosts
    {
        for mut status in told {
            if machine == here {
                jobs.remove(&key(&address, status.size));
            }
            status.since += age;
            let host = Some((host.clone(), age));
            ranks.push(SeenRank { status, host });
        }
    }
    ranks
}

/// The key of a job of this machine.
fn key(job: &str, size: usize) -> String {
    format!("{job} {size}")
}

/// True if a process is another one or descends from it.
fn is_below(pid: u32, above: u32) -> bool {
    let mut at = pid;
    // A chain of parents ends at 0; one that changes meanwhile is left after a while.
    for _ in 0..64 {
        if at == above {
            return true;
        }
        match parent(at) {
            Some(next) if next != 0 => at = next,
            _ => return false,
        }
    }
    false
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(1)?.parse().ok()
}

/// A word that the ranks of one job on this machine share.
fn job_of(pid: u32) -> String {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let prefix = format!("{}=", env::LAUNCH_REPORT);
    let mut variables = environment.split(|byte| *byte == 0);
    let address = variables.find_map(|text| text.strip_prefix(prefix.as_bytes()));
    match address {
        Some(address) => String::from_utf8_lossy(address).into_owned(),
        None => format!("child of {}", parent(pid).unwrap_or_default()),
    }
}

fn print(ranks: &[SeenRank]) {
    let first = &ranks[0].status;
    let newest = ranks.iter().map(|seen| seen.status.sequence).max();
    let unseen = match &unseen(ranks)[..] {
        [] => String::new(),
        some => format!(", {} without a status here", some.len()),
    };
    let hosts = hosts(ranks);
    let over = match hosts.len() {
        0 => String::new(),
        some => format!(", {}", plural(some, "host")),
    };
    say!(
        "{} on {}{over}{unseen}; collective {}",
        plural(first.size, "rank"),
        terminal::one_line(&first.backend),
        newest.unwrap_or(0)
    );
    // Hosts have a column where there are any.
    let width = hosts.iter().map(|host| host.chars().count()).max();
    let width = width.map(|width| width.max("host".len()));
    let cell = |host: &str| width.map_or(String::new(), |width| format!("  {host:<width$}"));
    say!(
        "  {:>4}{}  {:>8}  {:>9}  state",
        "rank",
        cell("host"),
        "pid",
        "since"
    );
    for seen in ranks {
        let status = &seen.status;
        let since = format!("{:.1} s", status.since.as_secs_f64());
        let (host, age) = seen.host.clone().unwrap_or_default();
        let old = match age {
            age if age > OLD => format!(" (told {:.0} s ago)", age.as_secs_f64()),
            _ => String::new(),
        };
        say!(
            "  {:>4}{}  {:>8}  {since:>9}  {}{old}",
            status.rank,
            cell(&host),
            status.pid,
            state(status, ranks)
        );
    }
}

/// The names of the hosts that have ranks.
fn hosts(ranks: &[SeenRank]) -> Vec<&str> {
    let names = ranks.iter().filter_map(|seen| seen.host.as_ref());
    let mut names: Vec<&str> = names.map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The ranks of a job that are on another machine, or have not joined yet.
fn unseen(ranks: &[SeenRank]) -> Vec<usize> {
    let all = 0..ranks.first().map_or(0, |seen| seen.status.size);
    all.filter(|rank| ranks.iter().all(|seen| seen.status.rank != *rank))
        .collect()
}

/// The state of a rank in words.
fn state(status: &StatusOfRank, ranks: &[SeenRank]) -> String {
    let StatusOfRank {
        sequence,
        collective,
        ..
    } = status;
    let Some(collective) = collective else {
        return match sequence {
            0 => "computes; no collective so far".to_owned(),
            _ => format!("computes, after collective {sequence}"),
        };
    };
    let others = ranks.iter().map(|seen| &seen.status);
    let late = others.filter(|other| other.sequence < *sequence);
    let late: Vec<String> = late.map(|other| other.rank.to_string()).collect();
    let whom = match (&late[..], &unseen(ranks)[..]) {
        ([], []) => "all ranks are in it".to_owned(),
        ([], [one]) => format!("waits perhaps for rank {one}, which has no status here"),
        ([], some) => format!(
            "waits perhaps for some of {} that have no status here",
            plural(some.len(), "rank")
        ),
        ([one], _) => format!("waits for rank {one}"),
        (several, _) => format!("waits for ranks {}", several.join(", ")),
    };
    format!("{collective}, collective {sequence}: {whom}")
}
