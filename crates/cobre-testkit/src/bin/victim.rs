//! A rank of a job in which one rank goes away: `victim CALLS HOW RANK`. The others go on until a
//! call fails, and print the cause of that failure and of the next; on standard error, when the one
//! went and when the others noticed.

use std::error::Error;
use std::process::{Command, ExitCode};

use cobre_comm::{
    BackendKind, CommBackend, CommError, Communicator, ReduceOp, SharedMemoryProvider,
    SharedRegion, create_communicator,
};

/// Calls before the victim goes.
const BEFORE: usize = 50;
/// Calls of a job in which nobody goes.
const ALL: usize = 200;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [calls, how, victim] = &arguments[..] else {
        eprintln!("usage: victim CALLS HOW RANK");
        return ExitCode::from(2);
    };
    let comm = match BackendKind::from_env().and_then(create_communicator) {
        Ok(comm) => comm,
        Err(error) => {
            eprintln!("victim: {error}");
            return ExitCode::from(3);
        }
    };
    let goes = victim.parse() == Ok(comm.rank());
    for call in 0..ALL {
        if goes && call == BEFORE {
            match go(how) {
                Going::Stays => {}
                Going::Leaves => {
                    drop(comm);
                    return ExitCode::SUCCESS;
                }
            }
        }
        if let Err(error) = make(&comm, calls) {
            eprintln!("noticed {}", nanoseconds());
            println!("{}", cause(&error));
            let again = comm.barrier().expect_err("a failed communicator stays so");
            println!("{}", cause(&again));
            return ExitCode::SUCCESS;
        }
    }
    println!("all well");
    ExitCode::SUCCESS
}

enum Going {
    Stays,
    Leaves,
}

fn go(how: &str) -> Going {
    let signal = |name: &str| {
        let own = std::process::id().to_string();
        let status = Command::new("kill").args([name, &own]).status();
        assert!(status.is_ok_and(|status| status.success()), "kill {name}");
    };
    eprintln!("going {}", nanoseconds());
    match how {
        "kill" => signal("-KILL"),
        "exit" => std::process::exit(3),
        "panic" => panic!("as asked"),
        "leave" => return Going::Leaves,
        "stop" => {
            // Someone else must wake it.
            let own = std::process::id();
            let wake = format!("sleep 0.5; kill -CONT {own}");
            let waker = Command::new("sh").args(["-c", &wake]).spawn();
            assert!(waker.is_ok(), "sh");
            signal("-STOP");
        }
        other => panic!("no way to go is called {other}"),
    }
    Going::Stays
}

/// The time of day, which all processes of a machine share.
fn nanoseconds() -> u128 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |elapsed| elapsed.as_nanos())
}

fn make(comm: &CommBackend, calls: &str) -> Result<(), CommError> {
    let size = comm.size();
    match calls {
        "barrier" => comm.barrier(),
        "allreduce" => comm.allreduce(&[1.0; 4], &mut [0.0; 4], ReduceOp::Sum),
        "large-allreduce" => {
            let send = vec![1.0; 40_000];
            comm.allreduce(&send, &mut send.clone(), ReduceOp::Sum)
        }
        "allgatherv" => {
            let (count, send) = (200_000, vec![1u8; 200_000]);
            let displs: Vec<usize> = (0..size).map(|rank| rank * count).collect();
            let mut recv = vec![0; size * count];
            comm.allgatherv(&send, &mut recv, &vec![count; size], &displs)
        }
        "broadcast" => comm.broadcast(&mut vec![1u8; 400_000], 0),
        _ => {
            let mut region = comm.create_partitioned_region::<u64>(&vec![10; size])?;
            region.fence()
        }
    }
}

fn cause(error: &CommError) -> String {
    error
        .source()
        .map_or_else(|| error.to_string(), ToString::to_string)
}
