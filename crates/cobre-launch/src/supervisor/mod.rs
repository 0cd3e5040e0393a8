//! The supervisor: a forked process between launcher and ranks. It starts the ranks, collects them,
//! passes signals on, and outlives the launcher just long enough to end what it left. Its parent is
//! the [`guard`], which does the same for the supervisor.
//!
//! Both run in a fork of a program that may have threads, so nothing here takes a lock, prints, or
//! reads the environment.

mod guard;
mod sweep;
mod title;

pub(crate) use guard::guard;

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, FdFlags};
use rustix::net::{RecvFlags, SendFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, wait};

use crate::plan::{Plan, RankPlan, above_stdio};
use crate::protocol::{Decoder, Event, Exit, Order, RECORD, encode};
use crate::signals::{self, SignalCatcher};
use crate::sys::{Setup, close_all_but, mask};

/// The interval at which supervisor and guard look for their parents although nothing told them to.
const LOOK: Duration = Duration::from_millis(500);

/// Tells the supervisor and the guard that their parent died.
const PARENT_DIED: Signal = Signal::USR1;

/// Signals that would end supervisor or guard, or that they wait for. What is sent to a whole session or
/// control group is the launcher's business, which tells the ranks in its own time.
const CAUGHT: [i32; 9] = [
    libc::SIGCHLD,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGALRM,
    libc::SIGPIPE,
];

/// The whole life of the supervisor; the result is its exit code.
fn supervise(plan: Plan, socket: OwnedFd, guard_pipe: OwnedFd, guard: Pid) -> i32 {
    let Ok(catch) = prepare(&plan, &[&socket, &guard_pipe]) else {
        return 1;
    };
    let mut supervisor = Supervisor {
        guard,
        guard_pipe,
        socket,
        catch,
        orders: Decoder::default(),
        ranks: Vec::new(),
        batch: 0,
    };
    if supervisor.start(plan) {
        supervisor.watch();
    }
    supervisor.signal(Order {
        signal: libc::SIGKILL,
        except: None,
    });
    let survivors = !sweep::end_descendants();
    // A launcher that outlives the guard sees the socket close: the job has not come to its end.
    if !supervisor.orphaned() {
        supervisor.send(Event::Done { survivors });
    }
    0
}

/// Makes ready to start ranks.
fn prepare(plan: &Plan, own: &[&OwnedFd]) -> io::Result<SignalCatcher> {
    // Another launch of the same process waits for the end of its own pipes: holding on to copies
    // of them would keep it from seeing that.
    let catch = detach(&[&plan.descriptors()[..], &numbers(own)].concat())?;
    for descriptor in &plan.inherited {
        rustix::io::fcntl_setfd(descriptor, FdFlags::empty())?;
    }
    title::set(title::SUPERVISOR);
    Ok(catch)
}

/// Cuts the ties to the session, signals and files of the parent, all but `keep`, and becomes one who
/// adopts orphans and hears of the parent's death.
fn detach(keep: &[RawFd]) -> io::Result<SignalCatcher> {
    signals::reset_all();
    rustix::process::setsid()?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;

    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let null = above_stdio(null)?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    close_all_but(&[keep, &[null.as_raw_fd()]].concat());

    let catch = SignalCatcher::after_fork(&CAUGHT)?;
    signals::unblock_all();
    rustix::process::set_parent_process_death_signal(Some(PARENT_DIED))?;
    Ok(catch)
}

fn numbers(descriptors: &[&OwnedFd]) -> Vec<RawFd> {
    let number = |descriptor: &&OwnedFd| descriptor.as_raw_fd();
    descriptors.iter().map(number).collect()
}

/// Waits for a signal, for `others`, or until it is time to look.
fn wait_for(catch: &SignalCatcher, others: &[&OwnedFd]) {
    let poll_in = |descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN);
    let mut sources = vec![poll_in(catch.pipe())];
    sources.extend(others.iter().map(|other| poll_in(other.as_fd())));
    let look = Timespec::try_from(LOOK).ok();
    // An interrupted wait is one that has news.
    let _ = poll(&mut sources, look.as_ref());
}

struct Supervisor {
    guard: Pid,
    /// The guard holds the other end, and closes it when the launcher dies.
    guard_pipe: OwnedFd,
    socket: OwnedFd,
    catch: SignalCatcher,
    orders: Decoder,
    ranks: Vec<RankProcess>,
    /// Counts wake-ups in which ranks were collected.
    batch: u32,
}

struct RankProcess {
    /// `None` once collected; until then the number cannot belong to another process.
    pid: Option<Pid>,
    signalled: bool,
    /// Open in this process alone: when it dies, the kernel kills the rank's process group.
    _death_pipe: Option<OwnedFd>,
}

/// A rank's death pipe: the end that the rank gets, under a number that no shell script uses, and the
/// supervisor's. `None` if there are no descriptors left: the death pipe is the last of several means.
fn death_pipe() -> Option<(OwnedFd, OwnedFd)> {
    const HIGH: RawFd = 100;
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).ok()?;
    let reader = rustix::io::fcntl_dupfd_cloexec(&reader, HIGH).or_else(|_| above_stdio(reader));
    Some((reader.ok()?, above_stdio(writer).ok()?))
}

impl Supervisor {
    /// Starts all ranks; `false` if that is impossible or useless.
    fn start(&mut self, plan: Plan) -> bool {
        let Plan {
            program,
            args,
            environment,
            inherited,
            open_files,
            ranks,
        } = plan;
        let parent = rustix::process::getpid();
        for (number, rank) in ranks.into_iter().enumerate() {
            if self.orphaned() {
                return false;
            }
            let RankPlan {
                args: own_args,
                settings,
                stdin,
                stdout,
                stderr,
                processors,
            } = rank;
            let mut command = Command::new(&program);
            command
                .args(&args)
                .args(&own_args)
                .env_clear()
                .envs(environment.iter().map(|(name, value)| (name, value)))
                .envs(settings)
                .stdin(stdin.map_or_else(Stdio::null, Stdio::from))
                .stdout(stdout)
                .stderr(stderr)
                .process_group(0);
            let (death_pipe, held) = death_pipe().unzip();
            let setup = Setup {
                parent,
                open_files,
                processors: mask(&processors),
                death_pipe: death_pipe.as_ref().map(AsRawFd::as_raw_fd),
            };
            setup.install(&mut command);
            let started = command.spawn().map(|child| Pid::from_child(&child));
            match started {
                Ok(pid) => {
                    self.ranks.push(RankProcess {
                        pid: Some(pid),
                        signalled: false,
                        _death_pipe: held,
                    });
                    self.send(Event::Started {
                        rank: number,
                        pid: pid.as_raw_pid(),
                    });
                }
                Err(error) => {
                    let errno = error.raw_os_error().unwrap_or(libc::EINVAL);
                    self.send(Event::NotStarted {
                        rank: number,
                        errno,
                    });
                    return false;
                }
            }
            self.collect();
        }
        drop(inherited);
        true
    }

    /// Collects ranks and obeys orders until no rank is left, or no launcher.
    fn watch(&mut self) {
        while self.ranks.iter().any(|rank| rank.pid.is_some()) {
            wait_for(&self.catch, &[&self.socket, &self.guard_pipe]);
            self.catch.read();
            self.collect();
            if self.orphaned() || !self.receive_orders() {
                return;
            }
        }
    }

    /// Collects every child that has ended, ranks and adopted orphans alike.
    fn collect(&mut self) {
        self.batch = self.batch.wrapping_add(1);
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let Some(number) = self.ranks.iter().position(|rank| rank.pid == Some(pid)) else {
                continue;
            };
            let rank = &mut self.ranks[number];
            rank.pid = None;
            let ended = rank.signalled;
            let status = status.as_raw();
            self.send(Event::Exited(Exit {
                rank: number,
                status,
                batch: self.batch,
                ended,
            }));
        }
    }

    /// Carries out the orders that have come; `false` if none will come any more.
    fn receive_orders(&mut self) -> bool {
        let mut bytes = [0; 16 * RECORD];
        match rustix::net::recv(&self.socket, &mut bytes, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return false,
            Ok((length, _)) => {
                for order in self.orders.feed(&bytes[..length]) {
                    self.collect();
                    self.signal(order);
                }
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => return false,
        }
        true
    }

    fn signal(&mut self, order: Order) {
        let Some(signal) = Signal::from_named_raw(order.signal) else {
            return;
        };
        for (number, rank) in self.ranks.iter_mut().enumerate() {
            if let Some(pid) = rank.pid.filter(|_| order.except != Some(number)) {
                rank.signalled = true;
                // A rank that has left its own group is still to be reached.
                if rustix::process::kill_process_group(pid, signal).is_err() {
                    let _ = rustix::process::kill_process(pid, signal);
                }
            }
        }
    }

    /// True if the guard is dead, or the launcher by the guard's message. The launcher's end of the socket
    /// may live on in a process that was forked from it, so it is no proof of life.
    fn orphaned(&self) -> bool {
        let mut guard_pipe = [PollFd::from_borrowed_fd(
            self.guard_pipe.as_fd(),
            PollFlags::IN,
        )];
        let closed = poll(&mut guard_pipe, Some(&Timespec::default())).is_ok_and(|ready| ready > 0);
        closed || rustix::process::getppid() != Some(self.guard)
    }

    /// If the launcher does not listen any more, [`Supervisor::watch`] will see it.
    fn send(&self, event: Event) {
        let bytes = encode(event);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            match rustix::net::send(&self.socket, rest, SendFlags::NOSIGNAL) {
                Ok(sent) => rest = &rest[sent..],
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }
}
