use super::*;
use std::ffi::OsString;

const HYDRA: [(&str, &str); 4] = [
    ("PMI_FD", "8"),
    ("PMI_RANK", "1"),
    ("PMI_SIZE", "4"),
    ("MPI_LOCALNRANKS", "4"),
];
const SLURM: [(&str, &str); 5] = [
    ("SLURM_JOB_ID", "17"),
    ("SLURM_STEP_ID", "0"),
    ("SLURM_PROCID", "1"),
    ("SLURM_STEP_NUM_TASKS", "4"),
    ("SLURM_STEP_NUM_NODES", "2"),
];
const OPEN_MPI: [(&str, &str); 4] = [
    ("OMPI_COMM_WORLD_RANK", "1"),
    ("OMPI_COMM_WORLD_SIZE", "4"),
    ("OMPI_COMM_WORLD_LOCAL_SIZE", "4"),
    ("PMIX_NAMESPACE", "1464795137"),
];
const BOTH: &[&str] = &["local", "shm", "tcp"];

fn with(pairs: &[(&str, &str)]) -> Environment<'static> {
    let pairs: Vec<(String, String)> = pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    Environment::from_lookup(move |name| {
        let found = pairs.iter().find(|(known, _)| known == name)?;
        Some(OsString::from(&found.1))
    })
}

/// The manager and the backend that these variables select.
fn found(pairs: &[(&str, &str)]) -> Option<(&'static str, &'static str)> {
    let job = find(&with(pairs)).unwrap()?;
    Some((job.scheme.name, job.backend(BOTH)?.name()))
}

fn kind(pairs: &[(&str, &str)], backend: BackendRequest) -> Result<BackendKind, BackendError> {
    let env = with(pairs);
    find(&env)?.unwrap().kind(backend, &env)
}

#[test]
fn each_manager_is_found_by_its_variables() {
    assert_eq!(found(&HYDRA), Some(("PMI-1", "shm")));
    assert_eq!(found(&SLURM), Some(("Slurm", "tcp")));
    assert_eq!(found(&OPEN_MPI), Some(("Open MPI", "shm")));
    let pod = [(env::KUBERNETES_RANK, "1"), (env::TCP_SIZE, "4")];
    assert_eq!(found(&pod), Some(("Kubernetes", "tcp")));
    assert_eq!(found(&[]), None);
}

#[test]
fn no_manager_is_found_with_one_of_its_variables_missing() {
    for (all, needed) in [(&HYDRA[..], 3), (&SLURM[..], 4)] {
        for missing in 0..needed {
            let mut some = all.to_vec();
            some.remove(missing);
            assert_eq!(found(&some), None, "{some:?}");
        }
    }
}

#[test]
fn a_batch_script_and_a_job_of_one_rank_are_no_job() {
    let batch = [
        ("SLURM_JOB_ID", "17"),
        ("SLURM_PROCID", "0"),
        ("SLURM_NTASKS", "4"),
    ];
    assert_eq!(found(&batch), None);
    let text = process_manager(&with(&batch));
    assert_eq!(text, "none (Slurm: SLURM_STEP_ID is not set)");
    assert_eq!(
        found(&[("PMI_FD", "8"), ("PMI_RANK", "0"), ("PMI_SIZE", "1")]),
        None
    );
}

#[test]
fn a_pod_that_is_alone_is_rank_0_of_its_job() {
    let pod = [
        (env::KUBERNETES_RANK, "0"),
        (env::TCP_SIZE, "1"),
        (env::TCP_BIND, "127.0.0.1"),
    ];
    let Ok(BackendKind::Tcp(config)) = kind(&pod, BackendRequest::Tcp) else {
        panic!("a rank of tcp");
    };
    assert_eq!((config.rank, config.size), (0, 1));
    let second = [(env::KUBERNETES_RANK, "1"), (env::TCP_SIZE, "1")];
    let error = kind(&second, BackendRequest::Tcp).unwrap_err().to_string();
    assert!(error.contains(env::KUBERNETES_RANK), "{error}");
}

#[test]
fn a_size_that_is_no_number_does_not_make_every_rank_a_job_of_its_own() {
    for size in ["x", "-4", "4.0"] {
        let mut hydra = HYDRA;
        hydra[2].1 = size;
        let error = find(&with(&hydra)).err().map(|error| error.to_string());
        assert!(
            error
                .as_deref()
                .is_some_and(|error| error.contains("PMI_SIZE")),
            "{size}: {error:?}"
        );
    }
}

#[test]
fn settings_of_the_user_come_before_a_manager() {
    for (name, _) in SETTINGS {
        let pairs = [&HYDRA[..], &[(name, "1")]].concat();
        assert_eq!(found(&pairs), None, "{name}");
        assert!(process_manager(&with(&pairs)).contains(name));
    }
    let pod = [
        (env::KUBERNETES_RANK, "1"),
        (env::TCP_SIZE, "4"),
        (env::TCP_RANK, "2"),
    ];
    assert_eq!(found(&pod), None);
}

#[test]
fn ranks_on_several_hosts_meet_over_sockets() {
    let mut hydra = HYDRA;
    hydra[3].1 = "2";
    assert_eq!(found(&hydra), Some(("PMI-1", "tcp")));
    let error = kind(&hydra, BackendRequest::Shm).unwrap_err().to_string();
    assert!(error.contains("PMI-1") && error.contains("tcp"), "{error}");
    let one_node = [&SLURM[..4], &[("SLURM_STEP_NUM_NODES", "1")]].concat();
    assert_eq!(found(&one_node), Some(("Slurm", "shm")));
}

#[test]
fn steps_of_one_job_never_share_a_segment() {
    let name = |step: &str| {
        let pairs = [
            &SLURM[..1],
            &SLURM[2..4],
            &[("SLURM_STEP_NUM_NODES", "1"), ("SLURM_STEP_ID", step)],
        ];
        match kind(&pairs.concat(), BackendRequest::Shm) {
            Ok(BackendKind::Shm(config)) => config.name,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(name("0"), name("0"));
    assert_ne!(name("0"), name("1"));
    assert!(env::is_fresh_shm_name(&name("0")));
}

#[test]
fn a_rank_beyond_the_size_is_refused() {
    let mut hydra = HYDRA;
    hydra[1].1 = "4";
    let error = kind(&hydra, BackendRequest::Shm).unwrap_err().to_string();
    assert!(
        error.contains("PMI_RANK") && error.contains("0 to 3"),
        "{error}"
    );
}

#[test]
fn a_socket_that_is_closed_is_an_error_that_says_why() {
    let mut hydra = HYDRA;
    hydra[0].1 = "987654";
    let env = with(&hydra);
    let Ok(BackendKind::Managed(job)) = kind(&hydra, BackendRequest::Tcp) else {
        panic!("PMI-1 has something to ask");
    };
    let error = job.settle(&env).unwrap_err().to_string();
    assert!(
        error.contains("PMI_FD") && error.contains("pass descriptors on"),
        "{error}"
    );
}
