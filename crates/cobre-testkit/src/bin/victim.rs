#![expect(unsafe_code, reason = "faults on purpose")]
//! A rank of a job in which one rank goes away: `victim CALLS HOW RANK [MICROSECONDS [MEBIBYTES]]`.
//! The others go on until a call fails, and print the cause of that failure and of the next; on
//! standard error, when the one went and when the others noticed.
//!
//! A rank that is to be killed from outside (`HOW` is `outside`) calls on until that happens; one
//! that goes by itself goes after 50 calls or after the time given, and holds so much memory.

use std::error::Error;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use cobre_comm::{
    BackendKind, CommBackend, CommError, Communicator, ErrorKind, ReduceOp, SharedMemoryProvider,
    SharedRegion, create_communicator,
};
use cobre_testkit::hosts;

/// Calls before the victim goes, if no time is given.
const BEFORE: usize = 50;
/// Calls of a job in which nobody goes.
const ALL: usize = 200;
/// A job that nobody ends must not run for ever.
const LONGEST: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [calls, how, victim, rest @ ..] = &arguments[..] else {
        eprintln!("usage: victim CALLS HOW RANK [MICROSECONDS [MEBIBYTES]]");
        return ExitCode::from(2);
    };
    let number = |place: usize| rest.get(place).and_then(|text| text.parse::<u64>().ok());
    let after = number(0).map(Duration::from_micros);
    let ballast = vec![1u8; number(1).unwrap_or(0) as usize * (1 << 20)];
    let comm =
        match BackendKind::from_environment(&hosts::environment()).and_then(create_communicator) {
            Ok(comm) => comm,
            Err(error) => {
                eprintln!("victim: {error}");
                return ExitCode::from(3);
            }
        };
    let goes = victim.parse() == Ok(comm.rank());
    if calls == "last-broadcast" {
        return last_broadcast(&comm);
    }
    // A communicator of the node that lives as long as that of the job.
    let node = (calls == "node").then(|| comm.split_local().expect("nobody has gone yet"));
    let timed = after.is_some() || how == "outside";
    let start = Instant::now();
    for call in 0.. {
        if call == 3 {
            println!("met");
        }
        let due = match after {
            Some(after) => call >= 3 && start.elapsed() >= after,
            None => call == BEFORE,
        };
        if goes && due {
            match go(how, &comm) {
                Going::Stays => {}
                Going::Leaves => {
                    #[allow(
                        clippy::drop_non_drop,
                        reason = "in a build with local alone there is nothing to drop"
                    )]
                    drop((node, comm));
                    return ExitCode::SUCCESS;
                }
            }
        }
        let made = match &node {
            Some(node) => node.barrier(),
            None => make(&comm, calls),
        };
        if let Err(error) = made {
            let noticed = nanoseconds();
            println!("{}", cause(&error));
            let again = comm.barrier().expect_err("a failed communicator stays so");
            println!("{}", cause(&again));
            eprintln!("noticed {noticed}");
            break;
        }
        if if timed {
            start.elapsed() > LONGEST
        } else {
            call + 1 == ALL
        } {
            println!("all well");
            break;
        }
    }
    std::hint::black_box(&ballast);
    ExitCode::SUCCESS
}

/// Meets, waits for the test to break something, and makes one large call, which is the last.
fn last_broadcast(comm: &CommBackend) -> ExitCode {
    let met = comm.barrier();
    println!("met");
    std::thread::sleep(Duration::from_millis(1500));
    let last = met.and_then(|()| comm.broadcast(&mut vec![1u8; 400_000], 0));
    println!(
        "{}",
        last.map_or_else(|error| cause(&error), |()| "all well".to_owned())
    );
    ExitCode::SUCCESS
}

enum Going {
    Stays,
    Leaves,
}

fn go(how: &str, comm: &CommBackend) -> Going {
    let signal = |name: &str| {
        let own = std::process::id().to_string();
        let status = Command::new("kill").args([name, &own]).status();
        assert!(status.is_ok_and(|status| status.success()), "kill {name}");
    };
    if comm.name() == "mpi" {
        // The launcher tells the first to end from those that mpiexec ends after it only if it has
        // heard of all before.
        std::thread::sleep(Duration::from_secs(1));
    }
    eprintln!("going {}", nanoseconds());
    match how {
        "outside" | "nobody" => {}
        "kill" => signal("-KILL"),
        "segv" => signal("-SEGV"),
        "fault" => fault(),
        "fault-in-thread" => {
            let thread = std::thread::spawn(fault);
            drop(thread.join());
        }
        "overflow" => drop(overflow(0)),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the instruction raises SIGTRAP and does nothing else.
        "trap" => unsafe { std::arch::asm!("int3") },
        "exit0" => std::process::exit(0),
        "exit3" => std::process::exit(3),
        "panic" => panic!("as asked"),
        "caught" => drop(std::panic::catch_unwind(|| panic!("not the end"))),
        "double-panic" => {
            let _second = PanicsWhenDropped;
            panic!("the first of two");
        }
        "abort" => comm.abort(ErrorKind::Program, "no more of this"),
        "fork-kill" => {
            // A child that lives on, with copies of all that the rank had open.
            // SAFETY: the child sleeps and ends, and touches nothing else.
            if unsafe { fork() } == 0 {
                std::thread::sleep(Duration::from_secs(15));
                // SAFETY: ends the child, with nothing run in between.
                unsafe { _exit(0) };
            }
            signal("-KILL");
        }
        // SAFETY: ends the process, with nothing run in between.
        "end0" => unsafe { _exit(0) },
        "descriptors" => {
            for entry in std::fs::read_dir("/proc/self/fd")
                .into_iter()
                .flatten()
                .flatten()
            {
                let open = std::fs::read_link(entry.path()).unwrap_or_default();
                eprintln!("open {}", open.display());
            }
        }
        "leave" => return Going::Leaves,
        "elsewhere" => drop(comm.barrier()),
        "compute" => std::thread::sleep(Duration::from_millis(2500)),
        "compute-kill" => {
            std::thread::sleep(Duration::from_millis(1500));
            signal("-KILL");
        }
        "caught-kill" => {
            drop(std::panic::catch_unwind(|| panic!("not the end")));
            signal("-KILL");
        }
        "stop" | "long-stop" => {
            // Someone else must wake it.
            let own = std::process::id();
            let seconds = if how == "stop" { 2.5 } else { 8.0 };
            let wake = format!("sleep {seconds}; kill -CONT {own}");
            let waker = Command::new("sh").args(["-c", &wake]).spawn();
            assert!(waker.is_ok(), "sh");
            signal("-STOP");
        }
        other => panic!("no way to go is called {other}"),
    }
    Going::Stays
}

unsafe extern "C" {
    fn fork() -> i32;
    fn _exit(code: i32) -> !;
}

/// Writes where nothing is.
fn fault() {
    let nowhere: *mut u8 = std::ptr::without_provenance_mut(8);
    // SAFETY: none: this is meant to end the process.
    unsafe { nowhere.write_volatile(1) };
}

/// Calls itself until the stack is used up.
#[expect(unconditional_recursion, reason = "it ends with the stack")]
fn overflow(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 512]);
    overflow(depth + 1) + frame[(depth % 512) as usize]
}

/// A panic while another unwinds ends the process by abort.
struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic!("the second");
    }
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
        "gatherv" => {
            let (count, send) = (200_000, vec![1u8; 200_000]);
            let displs: Vec<usize> = (0..size).map(|rank| rank * count).collect();
            let mut recv = vec![0; size * count];
            comm.gatherv(&send, &mut recv, &vec![count; size], &displs, size - 1)
        }
        "broadcast" => comm.broadcast(&mut vec![1u8; 400_000], 0),
        "small-broadcast" => comm.broadcast(&mut [1u8; 64], size - 1),
        "split" => comm.split_local()?.barrier(),
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
