//! `cobre bench peers`: the table of `cobre bench collectives`, side by side with the MPI libraries
//! of this machine, in alternating rounds, so that a slow moment hits everyone.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use cobre_comm::{cpus, env};
use cobre_launch::{Launch, Output};
use serde::Deserialize;

use crate::exit::{self, say};
use crate::launch;

const NAME: &str = "cobre bench peers";
/// The cases of `cobre bench collectives` in C, on whatever MPI it is compiled with.
const SOURCE: &str = include_str!("peer.c");
/// No run of one library may take longer.
const LIMIT: Duration = Duration::from_secs(300);
/// With more ranks than processors MPICH takes seconds per large call.
const LARGEST_WHEN_CROWDED: u64 = 8192;

/// Runs the same table on the MPI libraries installed here and prints the ratios.
///
/// A small C program is compiled with each library's mpicc. Rounds alternate between Cobre and the
/// peers; each figure is the best round's p50.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Number of ranks
    #[arg(short = 'n', long = "ranks", value_name = "N", default_value_t = 2, value_parser = launch::ranks)]
    ranks: usize,

    /// Backend of Cobre to compare
    #[arg(long, value_name = "shm|tcp|mpi", default_value = "shm")]
    backend: String,

    /// Rounds, of which the best counts
    #[arg(long, value_name = "K", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// Compares with this peer alone; MPICH takes minutes with more ranks than processors
    #[arg(long, value_name = "PEER")]
    only: Option<String>,

    /// About how long each case runs in each round
    #[arg(long, value_name = "S", default_value_t = 0.1, value_parser = super::positive)]
    seconds: f64,
}

/// One library with one set of options.
#[derive(Clone, Copy)]
struct Peer {
    name: &'static str,
    compiler: &'static str,
    launcher: &'static str,
    options: &'static [&'static str],
    /// The environment of its processes.
    environment: &'static [(&'static str, &'static str)],
    /// True if it is started for calls from several threads, as the backend `mpi` is.
    threads: bool,
}

/// Open MPI with these options.
const fn openmpi(name: &'static str, options: &'static [&'static str]) -> Peer {
    Peer {
        name,
        compiler: "mpicc.openmpi",
        launcher: "mpiexec.openmpi",
        options,
        environment: &[],
        threads: false,
    }
}

/// MPICH with this environment.
const fn mpich(name: &'static str, environment: &'static [(&'static str, &'static str)]) -> Peer {
    Peer {
        name,
        compiler: "mpicc.mpich",
        launcher: "mpiexec.mpich",
        options: &[],
        environment,
        threads: false,
    }
}

/// Through memory.
const SHM_PEERS: &[Peer] = &[
    openmpi("openmpi", &[]),
    openmpi(
        "openmpi-nocma",
        &["--mca", "btl_vader_single_copy_mechanism", "none"],
    ),
    openmpi("openmpi-coll-sm", &["--mca", "coll_sm_priority", "100"]),
    mpich("mpich", &[]),
];

/// The same libraries, called from C; also at the level of threads that the backend asks for.
const MPI_PEERS: &[Peer] = &[
    openmpi("openmpi", &[]),
    mpich("mpich", &[]),
    threaded(openmpi("openmpi-threads", &[])),
    threaded(mpich("mpich-threads", &[])),
];

const fn threaded(peer: Peer) -> Peer {
    Peer {
        threads: true,
        ..peer
    }
}

/// Through sockets of the loopback.
const TCP_PEERS: &[Peer] = &[
    openmpi(
        "openmpi-tcp",
        &[
            "--mca",
            "pml",
            "ob1",
            "--mca",
            "btl",
            "self,tcp",
            "--mca",
            "btl_tcp_if_include",
            "lo",
        ],
    ),
    mpich(
        "mpich-tcp",
        &[
            ("MPIR_CVAR_NOLOCAL", "1"),
            ("UCX_TLS", "self,tcp"),
            ("UCX_NET_DEVICES", "lo"),
        ],
    ),
];

impl Args {
    /// The peers: the same machine, by the same means.
    fn peers(&self) -> Vec<&'static Peer> {
        let all = self.all_peers().iter();
        all.filter(|peer| self.only.as_deref().is_none_or(|only| only == peer.name))
            .collect()
    }

    fn all_peers(&self) -> &'static [Peer] {
        match self.backend.as_str() {
            "tcp" => TCP_PEERS,
            "mpi" => MPI_PEERS,
            _ => SHM_PEERS,
        }
    }
}

/// One line that a run prints.
#[derive(Deserialize)]
struct PeerRow {
    backend: String,
    op: String,
    bytes: u64,
    p50_us: f64,
}

/// The best p50 of each case and library.
type Best = BTreeMap<(usize, String, u64), BTreeMap<String, f64>>;

pub(super) fn run(args: &Args) -> u8 {
    match compare(args) {
        Ok(best) => {
            print(args, &best);
            exit::DONE
        }
        Err(problem) => exit::fail(exit::INVALID_INPUT, NAME, &problem),
    }
}

fn compare(args: &Args) -> Result<Best, String> {
    let peers = args.peers();
    if peers.is_empty() {
        let known: Vec<&str> = args.all_peers().iter().map(|peer| peer.name).collect();
        let known = known.join(", ");
        return Err(format!("--only: the peers of this backend are {known}"));
    }
    let scratch = WorkingDirectory::new()?;
    let built: Vec<(&Peer, PathBuf)> = peers
        .into_iter()
        .filter_map(|peer| Some((peer, build(peer, &scratch.0)?)))
        .collect();
    if built.is_empty() {
        return Err(
            "no MPI is installed: apt-get install openmpi-bin libopenmpi-dev mpich \
                    libmpich-dev"
                .to_owned(),
        );
    }
    let mut best = Best::new();
    for _ in 0..args.rounds {
        collect(&mut best, &own(args)?);
        for (peer, program) in &built {
            match measure(args, peer, program) {
                Ok(lines) => collect(&mut best, &lines),
                Err(problem) => {
                    exit::fail(exit::RANKS, NAME, &format!("{}: {problem}", peer.name));
                }
            }
        }
    }
    Ok(best)
}

/// Compiles the C program; `None` if the library is not installed.
fn build(peer: &Peer, scratch: &Path) -> Option<PathBuf> {
    let source = scratch.join("peer.c");
    let program = scratch.join(peer.compiler);
    if program.exists() {
        return Some(program);
    }
    std::fs::write(&source, SOURCE).ok()?;
    let mut compile = Command::new(peer.compiler);
    compile.args(["-O2", "-o"]).arg(&program).arg(&source);
    compile.status().ok()?.success().then_some(program)
}

/// The output of Cobre for the same table.
fn own(args: &Args) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let (ranks, seconds) = (args.ranks.to_string(), args.seconds.to_string());
    let options = [
        "bench",
        "collectives",
        "--json",
        "-n",
        &ranks,
        "--seconds",
        &seconds,
    ];
    let backend = ["--backend", &args.backend];
    let job = Launch::new(program, 1).args(options).args(backend);
    // Its peers on tcp are kept from shared memory too.
    finished(job.env(env::TCP_SHARED_MEMORY, "off"))
}

fn measure(args: &Args, peer: &Peer, program: &Path) -> Result<String, String> {
    let crowded = args.ranks > cpus::usable();
    let mut command: Vec<OsString> = peer.options.iter().map(OsString::from).collect();
    let is_mpich = peer.launcher == "mpiexec.mpich";
    let binding: &[&str] = match (is_mpich, crowded) {
        (true, false) => &["-bind-to", "core"],
        (true, true) => &[],
        (_, false) => &["--bind-to", "core"],
        (_, true) => &["--oversubscribe", "--bind-to", "none"],
    };
    command.extend(binding.iter().map(OsString::from));
    command.extend(["-n".into(), args.ranks.to_string().into(), program.into()]);
    command.extend([args.seconds.to_string().into(), peer.name.into()]);
    let largest = if crowded && is_mpich {
        LARGEST_WHEN_CROWDED
    } else {
        0
    };
    command.push(largest.to_string().into());
    if peer.threads {
        command.push("multiple".into());
    }
    let mut job = Launch::new(peer.launcher, 1)
        .args(command)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    for (name, value) in peer.environment {
        job = job.env(*name, *value);
    }
    finished(job)
}

/// The output of a job of one launcher process.
fn finished(job: Launch) -> Result<String, String> {
    let outcome = job
        .backend("local")
        .timeout(LIMIT)
        .output(Output::Capture { limit: 1 << 20 })
        .handle_signals()
        .run()
        .map_err(|error| exit::told(&error))?;
    if outcome.exit_code() == 0 {
        Ok(String::from_utf8_lossy(&outcome.ranks[0].stdout).into_owned())
    } else {
        let message = outcome.message(NAME);
        Err(message.lines().collect::<Vec<_>>().join("; "))
    }
}

fn collect(best: &mut Best, lines: &str) {
    for line in lines.lines() {
        if let Ok(line) = serde_json::from_str::<PeerRow>(line) {
            // In the order in which the table has them.
            let place = ORDER
                .iter()
                .position(|op| *op == line.op)
                .unwrap_or(ORDER.len());
            let cell = best.entry((place, line.op, line.bytes)).or_default();
            let p50 = cell.entry(line.backend).or_insert(line.p50_us);
            *p50 = p50.min(line.p50_us);
        }
    }
}

const ORDER: [&str; 5] = [
    "barrier",
    "allreduce_sum",
    "allreduce_min",
    "allgatherv",
    "broadcast",
];

fn print(args: &Args, best: &Best) {
    let (ranks, rounds, backend) = (args.ranks, args.rounds, &args.backend);
    say!("{ranks} ranks, best p50 of {rounds} alternating rounds, us");
    let peers: Vec<&str> = args.peers().iter().map(|peer| peer.name).collect();
    let heads = columns(peers.iter().map(|name| (*name).to_owned()));
    say!(
        "{:<14} {:>10} {backend:>12}{heads} {:>6}",
        "op",
        "bytes",
        "ratio"
    );
    for ((_, op, bytes), cell) in best {
        let ours = cell.get(backend.as_str());
        let theirs = || peers.iter().map(|name| cell.get(*name));
        let strongest = theirs().flatten().copied().reduce(f64::min);
        let figures = columns(theirs().map(figure));
        let ratio = ours.zip(strongest).map(|(ours, theirs)| ours / theirs);
        let ratio = figure(ratio.as_ref());
        say!(
            "{op:<14} {bytes:>10} {:>12}{figures} {ratio:>6}",
            figure(ours)
        );
    }
    say!("ratio: {backend} against the best of the peers; below 1 is faster");
}

/// One column per peer.
fn columns(texts: impl Iterator<Item = String>) -> String {
    texts.fold(String::new(), |row, text| row + &format!(" {text:>15}"))
}

fn figure(us: Option<&f64>) -> String {
    us.map_or("-".to_owned(), |us| format!("{us:.2}"))
}

/// A directory that goes when it is dropped.
struct WorkingDirectory(PathBuf);

impl WorkingDirectory {
    fn new() -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("cobre-peers-{}", std::process::id()));
        std::fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for WorkingDirectory {
    fn drop(&mut self) {
        // One by one: the compiler and the measured programs make no directories.
        for entry in std::fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let _ = std::fs::remove_file(entry.path());
        }
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_round_counts_and_noise_is_passed_over() {
        let mut best = Best::new();
        let line = |p50: f64| {
            format!(
                "{{\"backend\":\"shm\",\"op\":\"barrier\",\"ranks\":2,\"bytes\":0,\"iterations\":9,\"p50_us\":{p50},\"p99_us\":1}}\n"
            )
        };
        collect(&mut best, &format!("a warning\n{}{}", line(0.3), line(0.1)));
        collect(&mut best, &line(0.2));
        assert_eq!(best[&(0, "barrier".to_owned(), 0)]["shm"], 0.1);
    }
}
