//! `cobre run` as ranks that a process manager started: MPICH's Hydra and Open MPI's launcher as they are, Slurm and
//! Kubernetes by their variables. No rank uses MPI: in a build that has it, the backend is asked for by name.

#[allow(dead_code, reason = "shared by tests that each use a part of it")]
mod outputs;
#[path = "../../cobre-testkit/tests/port/mod.rs"]
mod port;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use outputs::finish;
use port::free_port;
use tempfile::TempDir;

/// The launcher that `make setup` installs.
const HYDRA: &str = "mpiexec.mpich";
/// A short training of the example.
const TRAINING: [&str; 6] = [
    "run",
    "--bound=0",
    "--iterations=3",
    "--forward-passes=3",
    "--quiet",
    "--json",
];

fn example() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/two_reservoirs.sof.json")
}

fn cobre(place: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cobre"));
    train(&mut command, place);
    command
}

/// Adds the words of a training whose results go below `place`.
fn train(command: &mut Command, place: &TempDir) {
    command.args(TRAINING).arg(example());
    command.arg("--output").arg(place.path().join("out"));
}

/// The digest of the policy that one process trains.
fn alone() -> serde_json::Value {
    let place = TempDir::new().unwrap();
    let digest = outputs::json(&finish(&mut cobre(&place)))["policy_sha256"].clone();
    assert!(digest.is_string());
    digest
}

/// Trains under this launcher, if it is installed, on this backend. Open MPI's may be missing in CI: `make pmix` fetches
/// one.
fn under(launcher: &str, options: &[&str], backend: &str, place: &TempDir) -> Option<Output> {
    let mut command = Command::new(launcher);
    command.args(options).arg(env!("CARGO_BIN_EXE_cobre"));
    train(&mut command, place);
    if backend != "auto" {
        command.env("COBRE_COMM_BACKEND", backend);
    }
    match command.output() {
        Ok(output) => Some(output),
        Err(error) => {
            assert!(
                std::env::var_os("CI").is_none() || launcher != HYDRA,
                "skipped in CI: {launcher}: {error}"
            );
            println!("skipped: {launcher}: {error}");
            None
        }
    }
}

/// The backends to train on: each by name, and the one that is found where the build has no MPI.
fn backends() -> Vec<&'static str> {
    let mpi = cobre_comm::available_backends().contains(&"mpi");
    let mut backends = vec!["shm", "tcp"];
    if !mpi {
        backends.push("auto");
    }
    backends
}

/// Checks that so many ranks trained together, and to the bits of one process.
fn check(output: &Output, ranks: usize, place: &TempDir) {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let line = outputs::json(output);
    assert_eq!(line["policy_sha256"], alone(), "{line}");
    let run = std::fs::read_to_string(place.path().join("out/run.json")).unwrap();
    let run: serde_json::Value = serde_json::from_str(&run).unwrap();
    let hosts = run["hosts"].as_array().map(Vec::len);
    assert_eq!(hosts, Some(ranks), "{run}");
}

#[test]
fn ranks_of_hydra_find_each_other_by_pmi() {
    for backend in backends() {
        let place = TempDir::new().unwrap();
        let Some(output) = under(HYDRA, &["-n", "4"], backend, &place) else {
            return;
        };
        check(&output, 4, &place);
    }
}

#[test]
fn ranks_of_open_mpi_on_one_host_find_each_other_without_mpi() {
    let mut options = vec!["-n", "4", "--oversubscribe"];
    if rustix::process::geteuid().is_root() {
        options.push("--allow-run-as-root");
    }
    for backend in ["shm", "tcp"] {
        let place = TempDir::new().unwrap();
        let Some(output) = under("mpiexec.openmpi", &options, backend, &place) else {
            return;
        };
        check(&output, 4, &place);
    }
}

/// A job below the library of `pmix.c`, which keeps what ranks put in files.
struct PmixJob {
    place: TempDir,
    size: usize,
    fault: &'static str,
}

impl PmixJob {
    fn new(size: usize, fault: &'static str) -> Self {
        let place = TempDir::new().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pmix.c");
        let mut compile = Command::new("cc");
        compile.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]);
        compile.arg(place.path().join("libpmix.so.2")).arg(source);
        assert!(compile.status().expect("a C compiler").success());
        Self { place, size, fault }
    }

    /// The command as a rank of the job, on a backend.
    fn rank(&self, command: &mut Command, rank: usize, backend: &str) {
        command
            .env("LD_LIBRARY_PATH", self.place.path())
            .env("TEST_PMIX", self.place.path())
            .env("TEST_PMIX_SIZE", self.size.to_string())
            .env("TEST_PMIX_FAULT", self.fault)
            .env("PMIX_NAMESPACE", "job@1")
            .env("PMIX_RANK", rank.to_string())
            .env("COBRE_COMM_BACKEND", backend)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
    }

    /// The output of all ranks of a training, by rank.
    fn train(&self, backend: &str) -> Vec<Output> {
        let start = |rank| {
            let mut command = cobre(&self.place);
            self.rank(&mut command, rank, backend);
            command.spawn().expect("cobre can be started")
        };
        let ranks: Vec<_> = (0..self.size).map(start).collect();
        let end = |rank: std::process::Child| rank.wait_with_output().expect("it ends");
        ranks.into_iter().map(end).collect()
    }

    /// The times that a rank connected and disconnected.
    fn connections(&self, rank: usize) -> [u64; 2] {
        ["init", "finalize"].map(|call| {
            let file = self.place.path().join(format!("{call}-{rank}"));
            file.metadata().map_or(0, |found| found.len())
        })
    }
}

#[test]
fn ranks_of_pmix_find_each_other_through_its_library() {
    for backend in backends() {
        let job = PmixJob::new(4, "");
        let ended = job.train(backend);
        check(&ended[0], 4, &job.place);
        for (rank, output) in ended.iter().enumerate() {
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            assert_eq!(job.connections(rank), [1, 1], "rank {rank}");
        }
    }
}

#[test]
fn a_program_that_joins_no_job_takes_leave_of_pmix() {
    for size in [1, 2] {
        let job = PmixJob::new(size, "");
        let mut doctor = Command::new(env!("CARGO_BIN_EXE_cobre"));
        doctor.arg("doctor");
        job.rank(&mut doctor, 0, "shm");
        let output = doctor.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let expected = match size {
            1 => "none (PMIx: its job is one rank)",
            _ => {
                "rank 0 of 2: PMIx started the ranks, all on this host (PMIX_RANK, OpenPMIx 4.2.2)"
            }
        };
        assert!(text.contains(expected), "{output:?}");
        assert_eq!(job.connections(0), [1, 1]);
    }
}

#[test]
fn another_version_or_manager_of_pmix_is_refused_by_name() {
    for (fault, expected) in [
        ("version", "\"PMIx 1.2.5\" is no version from 3 to 6"),
        ("namespace", "rank 1 of \"singleton\", and PMIX_NAMESPACE"),
        ("type", "has type 5, no number"),
    ] {
        let job = PmixJob::new(2, fault);
        let mut rank = cobre(&job.place);
        job.rank(&mut rank, 1, "shm");
        let output = rank.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).replace("\\\"", "\"");
        assert_ne!(output.status.code(), Some(0), "{output:?}");
        assert!(text.contains(expected), "{output:?}");
    }
}

#[test]
fn ranks_that_never_come_to_the_fence_of_pmix_end_with_the_deadline() {
    let job = PmixJob::new(2, "fence");
    let mut rank = cobre(&job.place);
    job.rank(&mut rank, 1, "tcp");
    let output = rank.env("COBRE_TCP_TIMEOUT_SECS", "2").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_ne!(output.status.code(), Some(0), "{output:?}");
    assert!(
        text.contains("PMIx: no answer within the deadline"),
        "{output:?}"
    );
}

/// Runs two ranks with these variables; `%` in a value stands for the rank. Rank 0's output, if both succeed.
fn two_ranks(variables: &[(&str, &str)], place: &TempDir) -> Output {
    let ranks = [0, 1].map(|rank: usize| {
        let mut command = cobre(place);
        for (name, value) in variables {
            command.env(name, value.replace('%', &rank.to_string()));
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("cobre can be started")
    });
    let [first, second] = ranks.map(|process| process.wait_with_output().expect("it ends"));
    assert_eq!(second.status.code(), Some(0), "{second:?}");
    first
}

const STEP: [(&str, &str); 4] = [
    ("SLURM_JOB_ID", "4711"),
    ("SLURM_PROCID", "%"),
    ("SLURM_STEP_NUM_TASKS", "2"),
    ("COBRE_TCP_BIND", "127.0.0.1"),
];

#[test]
fn ranks_of_a_step_of_slurm_on_one_node_share_memory() {
    // A step of its own: another run of this test may be in its rendezvous.
    let step = std::process::id().to_string();
    let node = [
        ("SLURM_STEP_ID", step.as_str()),
        ("SLURM_STEP_NUM_NODES", "1"),
    ];
    let place = TempDir::new().unwrap();
    let variables = [&STEP[..], &node, &[("COBRE_COMM_BACKEND", "shm")]].concat();
    check(&two_ranks(&variables, &place), 2, &place);
}

#[test]
fn ranks_of_a_step_of_slurm_on_two_nodes_meet_by_a_file_that_is_gone_afterwards() {
    let home = TempDir::new().unwrap();
    let nodes = [
        ("SLURM_STEP_ID", "0"),
        ("SLURM_STEP_NUM_NODES", "2"),
        ("COBRE_COMM_BACKEND", "tcp"),
        ("HOME", home.path().to_str().unwrap()),
    ];
    check(&two_ranks(&[&STEP[..], &nodes].concat(), &home), 2, &home);
    let directory = home.path().join(".cobre");
    let mode = directory.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert_eq!(
        outputs::files(&directory),
        std::collections::BTreeMap::new()
    );
}

#[test]
fn pods_of_an_indexed_job_need_the_size_and_the_secret_alone() {
    let home = TempDir::new().unwrap();
    let secret = home.path().join("secret");
    std::fs::write(&secret, [7; 32]).unwrap();
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let port = free_port().to_string();
    // The name and the address of rank 0's pod, which need a cluster, and a port: this host has one network.
    let variables = [
        ("JOB_COMPLETION_INDEX", "%"),
        ("COBRE_TCP_SIZE", "2"),
        ("COBRE_TCP_SECRET_FILE", secret.to_str().unwrap()),
        ("COBRE_TCP_COORDINATOR", "127.0.0.1"),
        ("COBRE_TCP_BIND", "127.0.0.1"),
        ("COBRE_TCP_PORT", &port),
    ];
    check(&two_ranks(&variables, &home), 2, &home);
}

#[test]
fn a_batch_script_of_slurm_may_start_ranks_in_every_build() {
    let place = TempDir::new().unwrap();
    let mut command = cobre(&place);
    command.args(["-n", "2"]);
    command.envs([
        ("SLURM_JOB_ID", "4711"),
        ("SLURM_PROCID", "0"),
        ("SLURM_NTASKS", "64"),
    ]);
    check(&finish(&mut command), 2, &place);
}

#[test]
fn doctor_names_the_process_manager_and_why() {
    let line = |variables: &[(&str, &str)]| {
        let mut doctor = Command::new(env!("CARGO_BIN_EXE_cobre"));
        doctor.arg("doctor").envs(variables.iter().copied());
        let output = finish(&mut doctor);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let found = text
            .lines()
            .find_map(|line| line.strip_prefix("process manager"));
        found.unwrap_or_else(|| panic!("{text}")).trim().to_owned()
    };
    assert_eq!(line(&[]), "none");
    let batch = [("SLURM_JOB_ID", "1"), ("SLURM_PROCID", "0")];
    assert_eq!(line(&batch), "none (Slurm: SLURM_STEP_ID is not set)");
    let hydra = [
        ("PMI_FD", "8"),
        ("PMI_RANK", "1"),
        ("PMI_SIZE", "4"),
        ("MPI_LOCALNRANKS", "4"),
    ];
    let expected = "rank 1 of 4: PMI-1 started the ranks, all on this host (PMI_RANK, PMI_SIZE)";
    assert_eq!(line(&hydra), expected);
}
