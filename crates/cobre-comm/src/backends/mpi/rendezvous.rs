//! Rendezvous: MPI does it, if the launcher is the library's own.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use ferrompi::{Communicator as Comm, Mpi, ThreadLevel};

use super::group::Group;
use super::watch::NodeStatus;
use crate::env::{self, Environment};

/// Keeps MPI running. `Mpi` stays on the thread that started it, and is finalised there.
pub(super) struct Owner {
    /// Dropped to let the thread go on.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Starts MPI and makes sure that the ranks mean the same job.
pub(super) fn start(check: bool) -> Result<(Group, NodeStatus, Owner), String> {
    let (world, owner) = start_mpi()?;
    // A communicator of our own: what else the program does with MPI does not get in between.
    let group = world.duplicate().and_then(Group::new);
    let group = group.map_err(|error| error.to_string())?;
    agree_on(&group.all.comm, check)?;
    let node_status = NodeStatus::new(&group.all.comm, &group.node().comm);
    let node_status = node_status
        .map_err(|error| format!("no memory that the ranks of a node share: {error}"))?;
    Ok((group, node_status, owner))
}

fn start_mpi() -> Result<(Comm, Owner), String> {
    let (stop, stopped) = channel();
    let (started, world) = channel();
    let run = move || own(&started, &stopped);
    let thread = std::thread::Builder::new()
        .name("cobre-mpi".to_owned())
        .spawn(run)
        .map_err(|error| format!("no thread for MPI: {error}"))?;
    let owner = Owner {
        stop: Some(stop),
        thread: Some(thread),
    };
    let world = world.recv().map_err(|_| "MPI did not start".to_owned())??;
    Ok((world, owner))
}

/// The life of the thread that MPI belongs to.
fn own(started: &Sender<Result<Comm, String>>, stopped: &Receiver<()>) {
    let mpi = match Mpi::init_thread(ThreadLevel::Multiple) {
        Ok(mpi) => mpi,
        Err(error) => {
            let _ = started.send(Err(format!(
                "{error}; MPI can be started once in the life of a process"
            )));
            return;
        }
    };
    let world = mpi.world();
    let outcome = fit(&mpi, &world);
    if started.send(outcome.map(|()| world)).is_ok() {
        // Returns when the sender is gone.
        let _ = stopped.recv();
    }
}

/// Succeeds if this MPI, started by this launcher, can carry a job.
fn fit(mpi: &Mpi, world: &Comm) -> Result<(), String> {
    let library = library();
    if mpi.thread_level() < ThreadLevel::Multiple {
        return Err(format!(
            "{library} does not let several threads call it at a time (MPI_THREAD_MULTIPLE); use a \
             build of it that does"
        ));
    }
    let sizes = Environment::process().mpi_step_sizes();
    match wrong_launcher(&library, world.size() as usize, &sizes) {
        Some(problem) => Err(problem),
        None => Ok(()),
    }
}

/// The library's name and version, on one line; known before it is started.
pub(crate) fn library() -> String {
    let said = Mpi::library_version().unwrap_or_default();
    let line = said.lines().next().unwrap_or("MPI");
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The error if the launcher started another number of ranks than MPI knows of: then it is the
/// launcher of another library, and each rank believes that it is alone.
fn wrong_launcher(
    library: &str,
    size: usize,
    launched: &[(&'static str, usize)],
) -> Option<String> {
    if launched.iter().any(|(_, ranks)| *ranks == size) {
        return None;
    }
    let (variable, ranks) = launched.iter().find(|(_, ranks)| *ranks > 1)?;
    let advice = if variable.starts_with("SLURM") {
        "choose a PMI version of the library (srun --mpi=list, then srun --mpi=pmi2 or pmix)"
            .to_owned()
    } else {
        format!(
            "start it with the launcher of that library ({})",
            launcher_of(library)
        )
    };
    Some(format!(
        "the launcher started {ranks} ranks ({variable}={ranks}), but {library} sees {size}: they do \
         not belong together, and every rank would run the whole job; {advice}"
    ))
}

fn launcher_of(library: &str) -> &'static str {
    if library.contains("Open MPI") {
        "mpiexec.openmpi, or the mpiexec beside it"
    } else {
        "mpiexec.mpich or mpiexec.hydra, or the mpiexec beside it"
    }
}

/// Ranks with different settings would misunderstand each other.
fn agree_on(comm: &Comm, check: bool) -> Result<(), String> {
    let own = [u64::from(check), comm.size() as u64];
    let mut all = vec![0; own.len() * comm.size() as usize];
    comm.allgather(&own, &mut all)
        .map_err(|error| error.to_string())?;
    let odd = all
        .chunks(own.len())
        .position(|said| said != &all[..own.len()]);
    match odd {
        None => Ok(()),
        Some(rank) => Err(format!(
            "ranks 0 and {rank} differ in {}: set it to the same value on all ranks",
            env::MPI_CHECK
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MPICH: &str = "MPICH Version: 4.0.2";

    #[test]
    fn a_launcher_that_the_library_knows_is_welcome() {
        assert_eq!(wrong_launcher(MPICH, 4, &[("PMI_SIZE", 4)]), None);
        assert_eq!(wrong_launcher(MPICH, 1, &[]), None);
        assert_eq!(wrong_launcher(MPICH, 1, &[("PMI_SIZE", 1)]), None);
    }

    #[test]
    fn a_job_within_a_job_counts_its_own_ranks() {
        let both = [("PMI_SIZE", 2), ("SLURM_STEP_NUM_TASKS", 8)];
        assert_eq!(wrong_launcher(MPICH, 2, &both), None);
    }

    #[test]
    fn the_launcher_of_another_library_is_refused() {
        let text = wrong_launcher(MPICH, 1, &[("OMPI_COMM_WORLD_SIZE", 4)]).unwrap();
        assert!(
            text.contains("OMPI_COMM_WORLD_SIZE=4") && text.contains("mpiexec.mpich"),
            "{text}"
        );
        let text = wrong_launcher("Open MPI v4.1.4", 1, &[("PMI_SIZE", 2)]).unwrap();
        assert!(text.contains("mpiexec.openmpi"), "{text}");
    }

    #[test]
    fn srun_without_the_right_plugin_is_refused() {
        let text = wrong_launcher(MPICH, 1, &[("SLURM_STEP_NUM_TASKS", 8)]).unwrap();
        assert!(text.contains("srun --mpi"), "{text}");
    }
}
