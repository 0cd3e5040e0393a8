//! The agent of a host: the process that the remote shell starts there. It starts the host's ranks below a supervisor of its
//! own, as a launcher on that machine would, and passes on what they write and how they end. It lives as long as the
//! connection: when its standard input ends, or nothing comes for a while, everything on this host is ended.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cobre_comm::{StatusOfRank, env, secret_memory};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::frame::{Frame, FrameDecoder, FromHost, HostJob, LocalJob, PIECE, PREAMBLE, ToHost};
use super::status_board;
use super::stream::{ByteQueue, ReadResult, read, unblock};
use super::{BEAT, LAUNCHER_SILENCE, VERSION};
use crate::abandoned;
use crate::error::LaunchError;
use crate::limits::{DescriptorLimit, reserve_descriptors};
use crate::link::SupervisorLink;
use crate::output::Stream;
use crate::plan::{self, Plan, RankPlan};
use crate::program::Executable;
use crate::protocol::Event;
use crate::settings::Settings;
use crate::topology::Topology;

/// The time that the launcher may take to read the last frames.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// The time in which the address at which ranks meet must answer: the network has one, or does not let hosts through.
const REACH: Duration = Duration::from_secs(5);
/// Most reads of a rank's pipe after the job is over: more was written by someone outside it.
const LEFTOVER: usize = 2048;

/// Runs the agent of this host to its end: frames on standard input and output. Returns the code to exit with.
pub fn host_agent() -> u8 {
    match Agent::new().map(Agent::run) {
        Ok(true) => 0,
        Ok(false) | Err(_) => 1,
    }
}

struct Agent {
    input: OwnedFd,
    frames: FrameDecoder,
    output: ByteQueue,
    listener: Option<TcpListener>,
    /// The file that other hosts look for.
    mark: Option<DirectoryMark>,
    job: Option<RunningJob>,
    /// A request has come.
    asked: bool,
    heard: Instant,
    beat: Instant,
}

/// The ranks of this host.
struct RunningJob {
    link: SupervisorLink,
    program: OsString,
    environment: Vec<(OsString, OsString)>,
    pipes: Vec<RankPipe>,
    reports: Option<OwnedFd>,
    /// The address of the report pipe.
    address: String,
    pids: Vec<i32>,
    _room: DescriptorLimit,
}

struct RankPipe {
    rank: usize,
    stream: Stream,
    /// `None` after its end.
    pipe: Option<OwnedFd>,
}

/// A descriptor that can wake the agent up.
enum AgentSource {
    Launcher,
    Supervisor,
    Pipe(usize),
    Reports,
    Output,
}

impl Agent {
    fn new() -> std::io::Result<Self> {
        let input = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
        unblock(&input)?;
        let output = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
        let mut output = ByteQueue::new(output)?;
        if std::io::stdin().is_terminal() || std::io::stdout().is_terminal() {
            // In words, as this is what the launcher shows of what came in place of an agent.
            output.push(
                b"cobre host-agent: a terminal changes what goes through it; the remote shell must give none (ssh -T)\n",
            );
            output.write();
            return Err(std::io::ErrorKind::Unsupported.into());
        }
        output.push(PREAMBLE);
        let version = VERSION.to_owned();
        output.push(&FromHost::Hello { version }.encode());
        Ok(Self {
            input,
            frames: FrameDecoder::default(),
            output,
            listener: None,
            mark: None,
            job: None,
            asked: false,
            heard: Instant::now(),
            beat: Instant::now(),
        })
    }

    /// True if the job came to its end and the launcher was told of it.
    fn run(mut self) -> bool {
        let mut buffer = vec![0; PIECE];
        loop {
            let over = self.wait().into_iter().find_map(|source| match source {
                AgentSource::Launcher => (!self.take_requests(&mut buffer)).then_some(false),
                AgentSource::Supervisor => self.take_events(&mut buffer),
                AgentSource::Pipe(number) => {
                    self.pass_on(number, &mut buffer);
                    None
                }
                AgentSource::Reports => {
                    self.pass_reports(&mut buffer);
                    None
                }
                AgentSource::Output => None,
            });
            self.output.write();
            if over == Some(false) && !self.asked {
                let reason = "its standard input ended at once: the remote shell must pass it on (ssh without -n)";
                let reason = reason.to_owned();
                self.send(&FromHost::Failed { reason });
                self.last_words();
                return false;
            }
            if let Some(well) = over {
                return well && self.last_words();
            }
            let now = Instant::now();
            if now >= self.beat {
                self.beat = now + BEAT;
                self.send(&FromHost::Heartbeat);
                self.send_status();
            }
            if !self.output.is_open() || now > self.heard + LAUNCHER_SILENCE {
                return false;
            }
        }
    }

    fn wait(&self) -> Vec<AgentSource> {
        let mut sources = vec![AgentSource::Launcher];
        let mut polled = vec![PollFd::new(&self.input, PollFlags::IN)];
        if let Some(target) = self.output.waits_for() {
            sources.push(AgentSource::Output);
            polled.push(PollFd::from_borrowed_fd(target, PollFlags::OUT));
        }
        if let Some(job) = &self.job {
            sources.push(AgentSource::Supervisor);
            polled.push(PollFd::from_borrowed_fd(job.link.socket(), PollFlags::IN));
            let pipes = job.pipes.iter().enumerate();
            let open = pipes.filter_map(|(number, pipe)| Some((number, pipe.pipe.as_ref()?)));
            for (number, pipe) in open.filter(|_| !self.output.is_full()) {
                sources.push(AgentSource::Pipe(number));
                polled.push(PollFd::new(pipe, PollFlags::IN));
            }
            if let Some(reports) = &job.reports {
                sources.push(AgentSource::Reports);
                polled.push(PollFd::new(reports, PollFlags::IN));
            }
        }
        let left = Timespec::try_from(self.beat.saturating_duration_since(Instant::now())).ok();
        // An interrupted wait is one without news.
        let _ = poll(&mut polled, left.as_ref());
        let ready = sources.into_iter().zip(&polled);
        let ready = ready.filter(|(_, polled)| !polled.revents().is_empty());
        ready.map(|(source, _)| source).collect()
    }

    fn send(&mut self, frame: &FromHost) {
        self.output.push(&frame.encode());
    }

    /// Tells what the ranks do, for `cobre top` where the launcher is. A launcher that does not read is not waited for.
    fn send_status(&mut self) {
        let Some(job) = self.job.as_ref().filter(|_| !self.output.is_full()) else {
            return;
        };
        let running = job.pids.iter().filter(|pid| **pid != 0);
        let pids = running.map(|pid| pid.cast_unsigned());
        let ranks = pids.flat_map(StatusOfRank::at_or_below);
        let ranks = ranks.map(|status| status.to_words()).collect();
        let job = LocalJob {
            machine: status_board::this_machine(),
            address: job.address.clone(),
        };
        self.send(&FromHost::Status { job, ranks });
    }

    /// Carries out what the launcher asks for; false if it is gone or sends what is no frame.
    fn take_requests(&mut self, buffer: &mut [u8]) -> bool {
        match read(&self.input, buffer) {
            ReadResult::End => return false,
            ReadResult::NoneYet => return true,
            ReadResult::Some(count) => self.frames.push(&buffer[..count]),
        }
        self.heard = Instant::now();
        loop {
            match self.frames.next() {
                Ok(Some(request)) => {
                    self.asked = true;
                    self.carry_out(request);
                }
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    fn carry_out(&mut self, request: ToHost) {
        let answer = match request {
            ToHost::Heartbeat => return,
            ToHost::Signal(order) => {
                if let Some(job) = &self.job {
                    job.link.send(order);
                }
                return;
            }
            ToHost::Start(job) => match self.start(*job) {
                Ok(()) => return,
                Err(reason) => Err(reason),
            },
            ToHost::Listen { name } => self.listen(&name),
            ToHost::Reach { address, port } => reach(&address, port).map(|()| FromHost::Done),
            ToHost::WriteMark { path } => DirectoryMark::write(path).map(|mark| {
                self.mark = Some(mark);
                FromHost::Done
            }),
            ToHost::FindMark { path } => std::fs::symlink_metadata(&path)
                .map(|_| FromHost::Done)
                .map_err(|error| error.to_string()),
            ToHost::RemoveMark => {
                self.mark = None;
                Ok(FromHost::Done)
            }
        };
        self.send(&answer.unwrap_or_else(|reason| FromHost::Failed { reason }));
    }

    /// Binds the socket of rank 0 to an address of this host that others know it by.
    fn listen(&mut self, name: &str) -> Result<FromHost, String> {
        let reached = std::env::var("SSH_CONNECTION").ok();
        let addresses = candidates(name, reached.as_deref());
        let bound = addresses.iter().find_map(|address| {
            let listener = TcpListener::bind(SocketAddr::new(*address, 0)).ok()?;
            let port = listener.local_addr().ok()?.port();
            Some((listener, *address, port))
        });
        let (listener, address, port) = bound.ok_or_else(|| {
            format!("it has no address of the name {name:?} that other hosts could reach; give one with --coordinator")
        })?;
        self.listener = Some(listener);
        let address = address.to_string();
        Ok(FromHost::Listening { address, port })
    }

    fn start(&mut self, job: HostJob) -> Result<(), String> {
        let here = std::env::set_current_dir(&job.directory);
        here.map_err(|error| {
            let directory = job.directory.display();
            format!("cannot change to the directory {directory}: {error}; start where all hosts have one of that name")
        })?;
        let listener = self.listener.take();
        if let Some(listener) = &listener {
            forget_trials(listener);
        }
        let running = RunningJob::start(job, listener).map_err(|error| told(&error))?;
        self.job = Some(running);
        Ok(())
    }

    /// Passes on what the supervisor says; at the end of the job, true if it ended as it should.
    fn take_events(&mut self, buffer: &mut [u8]) -> Option<bool> {
        let job = self.job.as_mut()?;
        let Some(events) = job.link.receive() else {
            abandoned::end(&job.pids, &job.address);
            let reason = "the supervisor of its ranks or the guard of that died".to_owned();
            self.send(&FromHost::Lost { reason });
            return Some(true);
        };
        for event in events {
            match event {
                Event::Started { pid, .. } => self.job.as_mut()?.pids.push(pid),
                Event::NotStarted { rank, errno } => {
                    let job = self.job.as_ref()?;
                    let program = Executable {
                        name: &job.program,
                        environment: &job.environment,
                    };
                    let reason = told(&program.not_started(rank, errno));
                    self.send(&FromHost::Failed { reason });
                    return Some(true);
                }
                // Its number may be another process's from now on.
                Event::Exited(exit) => self.job.as_mut()?.pids[exit.rank] = 0,
                Event::Done { .. } => {
                    self.drain(buffer);
                    self.send(&FromHost::Event(event));
                    return Some(true);
                }
            }
            self.send(&FromHost::Event(event));
        }
        None
    }

    /// Passes on a piece of what a rank wrote; false if there is no more at once.
    fn pass_on(&mut self, number: usize, buffer: &mut [u8]) -> bool {
        let Some(RankPipe { rank, stream, pipe }) =
            self.job.as_mut().and_then(|job| job.pipes.get_mut(number))
        else {
            return false;
        };
        let Some(source) = pipe else {
            return false;
        };
        let (rank, stream) = (*rank, *stream);
        match read(source, buffer) {
            ReadResult::Some(count) => {
                let bytes = buffer[..count].to_vec();
                self.send(&FromHost::Output {
                    rank,
                    stream,
                    bytes,
                });
                return true;
            }
            ReadResult::NoneYet => {}
            ReadResult::End => *pipe = None,
        }
        false
    }

    fn pass_reports(&mut self, buffer: &mut [u8]) -> bool {
        let Some(job) = &mut self.job else {
            return false;
        };
        let Some(pipe) = &job.reports else {
            return false;
        };
        match read(pipe, buffer) {
            ReadResult::Some(count) => {
                self.send(&FromHost::Report(buffer[..count].to_vec()));
                return true;
            }
            ReadResult::NoneYet => {}
            ReadResult::End => job.reports = None,
        }
        false
    }

    /// Takes what is left in the pipes, without waiting for their ends.
    fn drain(&mut self, buffer: &mut [u8]) {
        for _ in 0..LEFTOVER {
            if !self.pass_reports(buffer) {
                break;
            }
        }
        let pipes = self.job.as_ref().map_or(0, |job| job.pipes.len());
        for number in 0..pipes {
            for _ in 0..LEFTOVER {
                if !self.pass_on(number, buffer) {
                    break;
                }
            }
        }
    }

    /// Writes what waits, as long as the launcher reads.
    fn last_words(mut self) -> bool {
        let until = Instant::now() + LAST_WORDS;
        while let Some(target) = self.output.waits_for() {
            let mut polled = [PollFd::from_borrowed_fd(target, PollFlags::OUT)];
            let _ = poll(&mut polled, Timespec::try_from(BEAT).ok().as_ref());
            self.output.write();
            if Instant::now() > until {
                return false;
            }
        }
        self.output.is_open()
    }
}

impl RunningJob {
    fn start(job: HostJob, listener: Option<TcpListener>) -> Result<Self, LaunchError> {
        let room = reserve_descriptors(job.ranks.len(), 32 + 5 * job.ranks.len() as u64)?;
        let (reader, report_writer, address) = plan::report_pipe()?;
        let mut inherited = vec![Arc::new(report_writer)];
        let mut common: Settings = vec![(env::LAUNCH_REPORT, address.clone())];
        let handed = hand_on(&job.secret, listener, &mut common);
        inherited.extend(handed.map_err(LaunchError::system("make ready for tcp"))?);
        let environment = plan::environment(&job.environment);
        let (ranks, pipes) = rank_plans(&job, &common)?;
        let link = SupervisorLink::start(Plan {
            program: job.program.clone(),
            args: job.args,
            environment: environment.clone(),
            inherited,
            open_files: room.original,
            ranks,
        })?;
        Ok(Self {
            link,
            program: job.program,
            environment,
            pipes,
            reports: reader.into_pipe(),
            address,
            pids: Vec::new(),
            _room: room,
        })
    }
}

/// The descriptors that ranks inherit beside the report pipe; their addresses become settings.
fn hand_on(
    secret: &[u8],
    listener: Option<TcpListener>,
    settings: &mut Settings,
) -> std::io::Result<Vec<Arc<OwnedFd>>> {
    let mut inherited = Vec::new();
    if !secret.is_empty() {
        let secret = secret_memory::hold(secret)?;
        settings.push((env::TCP_SECRET, secret_memory::address(&secret)?));
        inherited.push(Arc::new(secret));
    }
    if let Some(listener) = listener {
        let listener = secret_memory::above_stdio(listener.into())?;
        settings.push((env::TCP_LISTENER, secret_memory::address(&listener)?));
        inherited.push(Arc::new(listener));
    }
    Ok(inherited)
}

/// The plan of each rank of this host, and the agent's ends of their streams.
fn rank_plans(
    job: &HostJob,
    common: &Settings,
) -> Result<(Vec<RankPlan>, Vec<RankPipe>), LaunchError> {
    let bind: crate::Bind = job.bind.parse().unwrap_or_default();
    let masks = bind.masks(job.ranks.len(), &Topology::of_machine())?;
    let mut pipes = Vec::new();
    let mut ranks = Vec::new();
    for (rank, (given, processors)) in job.ranks.iter().zip(masks).enumerate() {
        let mut settings = common.clone();
        settings.extend(given.iter().filter_map(|(name, value)| {
            // Only what makes a process a rank.
            let known = env::JOB.iter().find(|known| *known == name)?;
            Some((*known, value.clone()))
        }));
        let (out, stdout) = plan::output_pipe()?;
        let (err, stderr) = plan::output_pipe()?;
        for (stream, pipe) in [(Stream::Out, out), (Stream::Err, err)] {
            let pipe = Some(pipe);
            pipes.push(RankPipe { rank, stream, pipe });
        }
        ranks.push(RankPlan {
            args: Vec::new(),
            settings,
            stdin: None,
            stdout,
            stderr,
            processors,
        });
    }
    Ok((ranks, pipes))
}

/// Tries the way to the address at which ranks meet.
fn reach(address: &str, port: u16) -> Result<(), String> {
    let refused = |why: String| {
        format!(
            "it does not reach {address}, where the ranks would meet: {why}; if the hosts reach the first one at another \
             address, give that with --coordinator"
        )
    };
    let parsed = address.parse::<IpAddr>();
    let parsed = parsed.map_err(|error| refused(error.to_string()))?;
    let stream = TcpStream::connect_timeout(&SocketAddr::new(parsed, port), REACH);
    stream.map(drop).map_err(|error| refused(error.to_string()))
}

/// Takes the connections away by which other hosts have tried the way here, so that rank 0 sees ranks alone. One that is
/// missed is a stranger to it.
fn forget_trials(listener: &TcpListener) {
    if listener.set_nonblocking(true).is_ok() {
        while listener.accept().is_ok() {}
        // Rank 0 sets what it needs.
        let _ = listener.set_nonblocking(false);
    }
}

/// A file by which other hosts find out if they see the same directory. It goes with the agent at the latest, also where the
/// launcher has died.
struct DirectoryMark(PathBuf);

impl DirectoryMark {
    /// A new file, so that no other is touched.
    fn write(path: OsString) -> Result<Self, String> {
        let path = PathBuf::from(path);
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        let written = made.and_then(|()| std::fs::File::create_new(&path));
        written
            .map(|_| Self(path))
            .map_err(|error| error.to_string())
    }
}

impl Drop for DirectoryMark {
    fn drop(&mut self) {
        // Whoever has removed it already did the same.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The error and what caused it, on one line.
fn told(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {}", told(cause)),
        None => error.to_string(),
    }
}

/// The addresses to listen on, the best first: the one by which ssh reached this host, then those of its name. Loopback is
/// for those who asked for it by that name: a host often knows itself by one that others cannot use.
fn candidates(name: &str, ssh_connection: Option<&str>) -> Vec<IpAddr> {
    let reached = ssh_connection
        .and_then(|text| text.split(' ').nth(2)?.parse().ok())
        .filter(|address: &IpAddr| !address.is_loopback());
    let asked_for_loopback = name == "localhost"
        || name
            .parse()
            .is_ok_and(|address: IpAddr| address.is_loopback());
    let named = (name, 0).to_socket_addrs().into_iter().flatten();
    let named = named.map(|address| address.ip());
    let named = named.filter(|address| asked_for_loopback || !address.is_loopback());
    if name.parse::<IpAddr>().is_ok() {
        return named.collect();
    }
    reached.into_iter().chain(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_an_address_is_tried() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(reach("127.0.0.1", port), Ok(()));
        forget_trials(&listener);
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err());
        // An address for documents, which no host has.
        let error = reach("no address", port).unwrap_err();
        assert!(error.contains("--coordinator"), "{error}");
    }

    #[test]
    fn a_mark_goes_with_its_agent() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = directory.path().join("new/mark");
        let mark = DirectoryMark::write(path.clone().into()).unwrap();
        assert!(DirectoryMark::write(path.clone().into()).is_err());
        assert!(path.exists());
        drop(mark);
        assert!(!path.exists());
    }

    #[test]
    fn ranks_listen_where_others_reach_the_host() {
        let by_ssh = "10.0.0.9 40000 10.0.0.1 22";
        let address = |text: &str| -> IpAddr { text.parse().unwrap() };
        assert_eq!(
            candidates("no-such-host.invalid", Some(by_ssh)),
            [address("10.0.0.1")]
        );
        assert_eq!(candidates("10.1.1.1", Some(by_ssh)), [address("10.1.1.1")]);
        assert_eq!(candidates("127.0.0.1", None), [address("127.0.0.1")]);
        let loopback = candidates("no-such-host.invalid", Some("127.0.0.1 1 127.0.0.1 22"));
        assert!(loopback.is_empty(), "{loopback:?}");
    }
}
