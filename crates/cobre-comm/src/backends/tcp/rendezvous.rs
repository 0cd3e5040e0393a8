//! Rendezvous: all ranks dial rank 0, which tells them who else is there; then, where
//! they can, they connect to each other.

use std::fmt::Write as _;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use super::accept::{Acceptor, JobIdentity};
use super::channel::Protection;
use super::connection::Connection;
use super::dial::{self, DialCause, DialError};
use super::handshake::{ConnectionPurpose, Hello, Refusal};
use super::message::{FORGED, Inbox, Message, MessageKind};
use super::peer_table::{self, PeerInfo};
use super::secret::Secret;
use super::system::{self, Instant, PollSource, TcpListener, bind};
use super::topology::SmallMessages;
use super::{host_group, inherited, watch};
use crate::backends::{MAX_RANKS, wire};
use crate::env::{self, DEFAULT_RENDEZVOUS, TcpConfig, TcpProtection, TcpTopology};
use crate::error::{Cause, Loss};
use crate::terminal;

/// The time that peers may take to reach each other, and the extra time for each rank.
const MESH: Duration = Duration::from_secs(3);
const MESH_PER_RANK: Duration = Duration::from_millis(20);
/// The extra time that a rank that has joined waits beyond rank 0: its answer says more.
const GRACE: Duration = Duration::from_secs(2);
/// No rank waits for longer, whatever rank 0 says: as long as a timeout can be set.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(1_000_000_000);
/// The remedy against a rank that knows the secret and does not keep to the protocol.
const ONE_BUILD: &str = "do all ranks run one build?";
/// The port of a rank that does not listen.
const NOWHERE: u16 = 0;

/// A job whose ranks are all there.
pub(super) struct JoinedJob {
    pub(super) peer_infos: Vec<PeerInfo>,
    /// Data connections by rank: on all ranks to rank 0, and to all others if `direct`.
    pub(super) links: Vec<Option<Connection>>,
    /// Watching connections by rank: rank 0's to all, the others' to rank 0.
    pub(super) watches: Vec<Option<(Connection, Inbox)>>,
    /// True if any two ranks are connected.
    pub(super) direct: bool,
    pub(super) small_messages: SmallMessages,
}

/// Meets the other ranks, or says why not.
pub(super) fn meet(config: &TcpConfig) -> Result<JoinedJob, String> {
    let deadline = Instant::now() + config.timeout.unwrap_or(DEFAULT_RENDEZVOUS);
    if config.size > MAX_RANKS {
        let size = config.size;
        return Err(format!(
            "{size} ranks are more than the {MAX_RANKS} it can connect"
        ));
    }
    // A secret that this rank shares through a file is held until all have met.
    let secret = Secret::load(config, deadline)?;
    let job = JobIdentity {
        rank: config.rank,
        size: config.size,
        id: peer_table::hash(config.job.as_deref().unwrap_or("").as_bytes()),
        secret: secret.bytes(),
        loopback_only: secret.is_of_this_machine(),
        on_loopback: match config.protection {
            TcpProtection::None => Protection::None,
            TcpProtection::Auto if config.secret_descriptor.is_some() => Protection::None,
            TcpProtection::Auto | TcpProtection::Authentication => Protection::Authentication,
            TcpProtection::Encryption => Protection::Encryption,
        },
    };
    if let Some(address) = &config.listener
        && (config.rank > 0 || config.size == 1)
    {
        inherited::close(address);
    }
    if config.rank == 0 {
        gather(config, job, deadline)
    } else {
        join(config, job, deadline)
    }
}

fn no_secret(what: &str) -> String {
    format!(
        "{what} is not this machine's loopback, and without a secret anyone there could join the \
         job: set {} to a file that all ranks have, with mode 600",
        env::TCP_SECRET_FILE
    )
}

/// The socket that rank 0 listens on: the launcher's, or its own.
fn listen(config: &TcpConfig, job: &JobIdentity<'_>) -> Result<TcpListener, String> {
    if let Some(address) = &config.listener {
        let listener = inherited::listener(address).ok_or_else(|| {
            format!(
                "the launcher's socket ({}) is closed: a program between launcher and rank does \
                 not pass descriptors on",
                env::TCP_LISTENER
            )
        })?;
        let bound = listener.local_addr().map_err(told)?.ip();
        return if job.loopback_only && !bound.is_loopback() {
            Err(no_secret(&format!("{} ({bound})", env::TCP_LISTENER)))
        } else {
            Ok(listener)
        };
    }
    let address = config.bind.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    if job.loopback_only && !address.is_loopback() {
        return Err(no_secret(&format!("{}={address}", env::TCP_BIND)));
    }
    let bound = bind(SocketAddr::new(address, config.port)).map_err(|error| {
        format!(
            "cannot listen on {address}, port {} ({}, {}): {error}; another program may have the \
             port, and 0 takes any free one",
            config.port,
            env::TCP_BIND,
            env::TCP_PORT
        )
    })?;
    if config.port == 0 && config.size > 1 {
        let port = bound.local_addr().map_err(told)?.port();
        terminal::complain(&format!(
            "cobre: rank 0 listens on {address}: set {}={port} in the others",
            env::TCP_PORT
        ));
    }
    Ok(bound)
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn told(error: io::Error) -> String {
    error.to_string()
}

/// A rank that joins, as rank 0 sees it.
#[derive(Default)]
struct JoiningRank {
    watch: Option<(Connection, Inbox)>,
    data: Option<Connection>,
    peer_info: Option<PeerInfo>,
    /// The address that it dialled from.
    address: Option<IpAddr>,
}

impl JoiningRank {
    fn is_complete(&self) -> bool {
        self.data.is_some() && self.peer_info.is_some()
    }
}

/// Rank 0: lets everyone in, then tells all who is there.
fn gather(
    config: &TcpConfig,
    job: JobIdentity<'_>,
    deadline: Instant,
) -> Result<JoinedJob, String> {
    let mut joining: Vec<JoiningRank> = (0..config.size).map(|_| JoiningRank::default()).collect();
    joining[0].peer_info = Some(PeerInfo {
        memory: host_group::memory_key(config),
        ..PeerInfo::own(0)
    });
    if config.size > 1 {
        let listener = listen(config, &job)?;
        let outcome = accept_ranks(config, job, &listener, &mut joining, deadline);
        system::stop_listening(&listener);
        drop(listener);
        outcome.map_err(|cause| refuse_all(&joining, &cause))?;
    }
    let peer_infos: Vec<PeerInfo> = joining
        .iter()
        .filter_map(|joining_rank| joining_rank.peer_info.clone())
        .collect();
    let wanted = config.size > 2 && config.topology != TcpTopology::Star;
    let peer_table = peer_table::encode(&peer_infos);
    let peer_table = Message::with_body(MessageKind::PeerTable, [u64::from(wanted), 0], peer_table);
    tell_all(&joining, &peer_table);
    let mut direct = config.size <= 2;
    if wanted {
        let meshed = await_mesh(config, &mut joining, &peer_infos);
        let complaints = meshed.map_err(|cause| refuse_all(&joining, &cause))?;
        direct = complaints.is_empty();
        if !direct && config.topology == TcpTopology::Ring {
            let cause = starting(format!(
                "{}=ring, but {}",
                env::TCP_TOPOLOGY,
                complaints.join("; ")
            ));
            return Err(refuse_all(&joining, &cause));
        }
    }
    let small_messages = match config.topology {
        TcpTopology::Ring if direct => SmallMessages::Direct,
        TcpTopology::Auto if direct => SmallMessages::Measured,
        _ => SmallMessages::Star,
    };
    let start = [u64::from(direct), small_messages as u64];
    tell_all(&joining, &Message::new(MessageKind::Start, start));
    let (links, watches) = joining
        .into_iter()
        .map(|joining_rank| (joining_rank.data, joining_rank.watch))
        .unzip();
    Ok(JoinedJob {
        peer_infos,
        links,
        watches,
        direct,
        small_messages,
    })
}

fn tell_all(joining: &[JoiningRank], message: &Message) {
    for (connection, _) in joining
        .iter()
        .filter_map(|joining_rank| joining_rank.watch.as_ref())
    {
        let Connection { stream, channel } = connection;
        // A rank that is gone is found by its watching connection.
        let _ = stream.set_nonblocking(false);
        let _ = stream.set_write_timeout(Some(GRACE));
        let _ = message.send(stream, channel);
    }
}

/// Sends everyone who is there away, and says why.
fn refuse_all(joining: &[JoiningRank], cause: &Cause) -> String {
    let body = wire::encode(cause);
    tell_all(
        joining,
        &Message::with_body(MessageKind::Verdict, [0; 2], body),
    );
    match cause {
        Cause::Io { message, .. } => message.clone(),
        other => other.to_string(),
    }
}

fn starting(message: String) -> Cause {
    Cause::Io {
        action: "starting".to_owned(),
        message,
    }
}

fn accept_ranks(
    config: &TcpConfig,
    job: JobIdentity<'_>,
    listener: &TcpListener,
    joining: &mut [JoiningRank],
    deadline: Instant,
) -> Result<(), Cause> {
    let mut acceptor = Acceptor::new(listener, job).map_err(|error| starting(error.to_string()))?;
    while !joining[1..].iter().all(JoiningRank::is_complete) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(starting(missing(config, joining, &acceptor)));
        }
        await_news(&acceptor, joining, left);
        while let Some(arrival) = acceptor.receive(|hello| judge(joining, hello)) {
            let joining_rank = &mut joining[arrival.hello.rank as usize];
            match arrival.hello.purpose {
                ConnectionPurpose::Watch => {
                    let Connection { stream, channel } = &arrival.connection;
                    let _ = watch::prepare(stream);
                    joining_rank.address = Some(arrival.from.ip());
                    let left = deadline.saturating_duration_since(Instant::now());
                    let accepted =
                        Message::new(MessageKind::Accepted, [left.as_millis() as u64, 0]);
                    // A rank that is gone is found by its watching connection.
                    let _ = accepted.send(stream, channel);
                    joining_rank.watch = Some((arrival.connection, Inbox::default()));
                }
                ConnectionPurpose::Data => joining_rank.data = Some(arrival.connection),
            }
        }
        for (rank, joining_rank) in joining.iter_mut().enumerate() {
            match receive_peer_info(joining_rank) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    return Err(starting(forged(rank)));
                }
                Err(_) => return Err(lost(rank, joining_rank.peer_info.as_ref())),
            }
        }
    }
    Ok(())
}

fn judge(joining: &[JoiningRank], hello: &Hello) -> Result<(), Refusal> {
    let joining_rank = joining.get(hello.rank as usize).filter(|_| hello.rank > 0);
    let taken = joining_rank.is_none_or(|joining_rank| match hello.purpose {
        ConnectionPurpose::Watch => joining_rank.watch.is_some(),
        ConnectionPurpose::Data => joining_rank.data.is_some() || joining_rank.watch.is_none(),
    });
    if taken { Err(Refusal::Rank) } else { Ok(()) }
}

fn await_news(acceptor: &Acceptor<'_>, joining: &[JoiningRank], limit: Duration) {
    let watches = joining
        .iter()
        .filter_map(|joining_rank| joining_rank.watch.as_ref());
    let watches = watches.map(|(connection, _)| PollSource::Read(&connection.stream));
    // Pending connections have a deadline of their own.
    let limit = limit.min(Duration::from_millis(50));
    system::poll(acceptor.sources().chain(watches), limit);
}

/// Takes a rank's description; an error if the rank is gone.
fn receive_peer_info(joining_rank: &mut JoiningRank) -> io::Result<()> {
    let Some((connection, inbox)) = &mut joining_rank.watch else {
        return Ok(());
    };
    let filled = inbox.fill(&connection.stream);
    while let Some(message) = inbox.next(&connection.channel)? {
        if message.kind == MessageKind::PeerInfo
            && let Some([peer_info]) = peer_table::decode(&message.body, 1).as_deref()
        {
            let address = joining_rank.address.unwrap_or(peer_info.address);
            joining_rank.peer_info = Some(PeerInfo {
                address,
                ..peer_info.clone()
            });
        }
    }
    filled
}

fn forged(rank: usize) -> String {
    format!("a record from rank {rank} fails authentication: {FORGED}")
}

fn lost(rank: usize, peer_info: Option<&PeerInfo>) -> Cause {
    match peer_info {
        Some(peer_info) => Cause::RankLost {
            rank,
            host: peer_info.host.clone(),
            pid: peer_info.pid,
            how: Loss::Vanished,
            last: None,
        },
        None => starting(format!("rank {rank} ended before all ranks were there")),
    }
}

/// `of 4 ranks these did not join within the deadline: 1, 3`, and what is known of them.
fn missing(config: &TcpConfig, joining: &[JoiningRank], acceptor: &Acceptor<'_>) -> String {
    let ranks = |complete: bool| {
        let some = (0..joining.len()).filter(|&rank| {
            let there = rank == 0 || joining[rank].is_complete();
            there == complete
        });
        let some: Vec<String> = some.map(|rank| rank.to_string()).collect();
        some.join(", ")
    };
    let mut text = format!(
        "of {} ranks these did not join within the deadline: {}; joined: {} (set {} to wait \
         longer)",
        config.size,
        ranks(false),
        ranks(true),
        env::TCP_TIMEOUT_SECS
    );
    if let Some(accept_error) = &acceptor.accept_error {
        let _ = write!(
            text,
            "; rank 0 could not accept all connections: {accept_error} (ulimit -n sets how many descriptors it \
             may have, and it needs {})",
            3 * config.size + 8
        );
    }
    for (rank, from, refusal) in &acceptor.refused {
        let (why, variable) = match refusal {
            Refusal::Size(_) => ("it was started for another number", env::TCP_SIZE),
            Refusal::JobIdentity => ("it belongs to another job", env::TCP_JOB),
            _ => ("its rank is taken or out of range", env::TCP_RANK),
        };
        let _ = write!(
            text,
            "; rank {rank} came from {from} and was refused: {why} ({variable})"
        );
    }
    text
}

/// The errors of the ranks that could not reach their peers.
fn await_mesh(
    config: &TcpConfig,
    joining: &mut [JoiningRank],
    peer_infos: &[PeerInfo],
) -> Result<Vec<String>, Cause> {
    let deadline = Instant::now() + mesh_limit(config.size) + GRACE;
    let mut complaints = Vec::new();
    for (rank, joining_rank) in joining.iter_mut().enumerate() {
        let Some((connection, inbox)) = &mut joining_rank.watch else {
            continue;
        };
        match inbox.wait(&connection.stream, &connection.channel, deadline) {
            Ok(message) if message.kind == MessageKind::Meshed && message.figures[0] == 1 => {}
            Ok(message) => complaints.push(String::from_utf8_lossy(&message.body).into_owned()),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                complaints.push(format!("rank {rank} does not answer"));
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(starting(forged(rank)));
            }
            Err(_) => return Err(lost(rank, Some(&peer_infos[rank]))),
        }
    }
    Ok(complaints)
}

fn mesh_limit(size: usize) -> Duration {
    MESH + MESH_PER_RANK * size as u32
}

/// The other ranks: find rank 0, say who they are, wait for everyone.
fn join(config: &TcpConfig, job: JobIdentity<'_>, deadline: Instant) -> Result<JoinedJob, String> {
    let (watch, address) = find(config, job, deadline)?;
    watch::prepare(&watch.stream).map_err(told)?;
    let mut inbox = Inbox::default();
    // From here on it is rank 0 that knows how long to wait: it may have started later.
    let accepted =
        receive_from_rank_0(&mut inbox, &watch, MessageKind::Accepted, deadline + GRACE)?;
    let time_limit = Duration::from_millis(accepted.figures[0]).min(LONGEST_TIMEOUT);
    let deadline = Instant::now() + time_limit + GRACE;
    // On the address by which rank 0 was reached, and no other; an IPv6 address may need its scope.
    let mut local = watch.stream.local_addr().map_err(told)?;
    local.set_port(0);
    let listener = bind(local);
    let bound = listener.as_ref().ok().and_then(|it| it.local_addr().ok());
    let port = bound.map_or(NOWHERE, |bound| bound.port());
    let peer_info = peer_table::encode([&PeerInfo {
        memory: host_group::memory_key(config),
        ..PeerInfo::own(port)
    }]);
    let peer_info = Message::with_body(MessageKind::PeerInfo, [0; 2], peer_info);
    let sent = peer_info.send(&watch.stream, &watch.channel);
    sent.map_err(|error| format!("rank 0 at {address} is gone: {error}"))?;
    let data = dial::connect_until(address, 0, ConnectionPurpose::Data, &job, deadline);
    let data = data.map_err(|outcome| {
        let soon = Instant::now() + GRACE;
        // Rank 0 may have given up meanwhile, and knows why.
        match receive_from_rank_0(&mut inbox, &watch, MessageKind::PeerTable, soon) {
            Err(said) if !matches!(outcome, DialError::Permanent(_)) => said,
            _ => outcome.text(address, config),
        }
    })?;

    let peer_table = receive_from_rank_0(&mut inbox, &watch, MessageKind::PeerTable, deadline)?;
    let peer_infos = peer_table::decode(&peer_table.body, config.size)
        .ok_or("rank 0 sent a table of peers that is invalid")?;
    let mut links: Vec<Option<Connection>> = (0..config.size).map(|_| None).collect();
    if peer_table.figures[0] == 1 {
        let meshed = listener
            .map_err(|error| format!("rank {} cannot listen on {local}: {error}", config.rank))
            .and_then(|listener| mesh(config, &job, (&listener, local), &peer_infos, &mut links));
        let report = match meshed {
            Ok(()) => Message::new(MessageKind::Meshed, [1, 0]),
            Err(complaint) => {
                Message::with_body(MessageKind::Meshed, [0; 2], complaint.into_bytes())
            }
        };
        let sent = report.send(&watch.stream, &watch.channel);
        sent.map_err(told)?;
    }
    let time_limit = 2 * (mesh_limit(config.size) + GRACE);
    let start = receive_from_rank_0(
        &mut inbox,
        &watch,
        MessageKind::Start,
        Instant::now() + time_limit,
    )?;
    let direct = start.figures[0] == 1;
    let small_messages = SmallMessages::of_figure(start.figures[1])
        .filter(|&it| direct || it == SmallMessages::Star);
    if !direct {
        links.fill_with(|| None);
    }
    links[0] = Some(data);
    let mut peers = (0..config.size).filter(|&peer| peer != config.rank);
    let is_connected = !direct || peers.all(|peer| links[peer].is_some());
    let Some(small_messages) = small_messages.filter(|_| is_connected) else {
        return Err(format!(
            "rank 0 at {address} starts with direct connections that do not exist; {ONE_BUILD}"
        ));
    };
    let mut watches: Vec<_> = (0..config.size).map(|_| None).collect();
    watches[0] = Some((watch, inbox));
    Ok(JoinedJob {
        peer_infos,
        links,
        watches,
        direct,
        small_messages,
    })
}

/// Waits for what rank 0 says next; a verdict ends the start.
fn receive_from_rank_0(
    inbox: &mut Inbox,
    watch: &Connection,
    expected: MessageKind,
    deadline: Instant,
) -> Result<Message, String> {
    let message = inbox
        .wait(&watch.stream, &watch.channel, deadline)
        .map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => format!(
                "rank 0 was reached, but not all ranks joined within the deadline (set {} to wait \
                 longer)",
                env::TCP_TIMEOUT_SECS
            ),
            io::ErrorKind::InvalidData => forged(0),
            _ => format!("rank 0 ended before all ranks were there: {error}"),
        })?;
    match message.kind {
        kind if kind == expected => Ok(message),
        MessageKind::Verdict => Err(match wire::decode(&message.body) {
            Some(Cause::Io { message, .. }) => message.trim_start_matches("starting: ").to_owned(),
            Some(cause) => cause.to_string(),
            None => "rank 0 ended the start without a reason".to_owned(),
        }),
        _ => Err(format!(
            "rank 0 sent an unexpected message at the start; {ONE_BUILD}"
        )),
    }
}

/// Connects to rank 0 at any of its addresses, again and again until the deadline.
fn find(
    config: &TcpConfig,
    job: JobIdentity<'_>,
    deadline: Instant,
) -> Result<(Connection, SocketAddr), String> {
    let host = config.coordinator.as_deref().unwrap_or("localhost");
    // As an address of IPv6 stands in front of a port.
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let host = bare.unwrap_or(host);
    let mut pause = Duration::from_millis(1);
    // What somebody there said tells more than that nobody answers any more.
    let (mut said, mut last) = (None, None);
    loop {
        let addresses: Vec<SocketAddr> = match (host, config.port).to_socket_addrs() {
            Ok(addresses) => addresses.collect(),
            Err(_) => Vec::new(),
        };
        if addresses.is_empty() {
            last = Some(format!("{host} has no address"));
        }
        for address in addresses {
            if job.loopback_only && !address.ip().is_loopback() {
                let what = format!("{}={host} ({})", env::TCP_COORDINATOR, address.ip());
                return Err(no_secret(&what));
            }
            match dial::connect(address, 0, ConnectionPurpose::Watch, &job, deadline) {
                Ok(connection) => return Ok((connection, address)),
                Err(DialError::Late) if last.is_some() => {}
                Err(outcome) => {
                    let text = outcome.text(address, config);
                    match outcome {
                        DialError::Permanent(_) => return Err(text),
                        DialError::Temporary(DialCause::Handshake(_)) => said = Some(text.clone()),
                        DialError::Temporary(DialCause::System(_)) | DialError::Late => {}
                    }
                    last = Some(text);
                }
            }
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(format!(
                "rank 0 was not found at {host}, port {} within the deadline ({}, {}): {}",
                config.port,
                env::TCP_COORDINATOR,
                env::TCP_PORT,
                said.or(last).unwrap_or_default()
            ));
        }
        system::sleep(pause.min(left));
        pause = (pause * 2).min(Duration::from_millis(250));
    }
}

/// A peer's address, by the interface through which rank 0 was reached: link-local addresses of
/// IPv6 mean nothing without one.
fn seen_from(local: SocketAddr, peer: SocketAddr) -> SocketAddr {
    match (local, peer) {
        (SocketAddr::V6(local), SocketAddr::V6(mut peer)) if peer.ip().is_unicast_link_local() => {
            peer.set_scope_id(local.scope_id());
            peer.into()
        }
        _ => peer,
    }
}

/// Connects to the ranks below, then lets the ranks above in: rank 1 begins with the latter, so
/// nobody waits in a circle.
fn mesh(
    config: &TcpConfig,
    job: &JobIdentity<'_>,
    (listener, local): (&TcpListener, SocketAddr),
    peer_infos: &[PeerInfo],
    links: &mut [Option<Connection>],
) -> Result<(), String> {
    let (rank, deadline) = (config.rank, Instant::now() + mesh_limit(config.size));
    for (peer, peer_info) in peer_infos.iter().enumerate().take(rank).skip(1) {
        if peer_info.port == NOWHERE {
            return Err(format!("rank {peer} cannot be reached by rank {rank}"));
        }
        let address = seen_from(local, SocketAddr::new(peer_info.address, peer_info.port));
        if job.loopback_only && !address.ip().is_loopback() {
            return Err(format!(
                "rank {rank} has no secret to reach rank {peer} with"
            ));
        }
        let reached = dial::connect_until(address, peer, ConnectionPurpose::Data, job, deadline);
        links[peer] = Some(reached.map_err(|outcome| {
            let why = outcome.text(address, config);
            format!("rank {rank} cannot reach rank {peer} at {address}: {why}")
        })?);
    }
    let mut acceptor = Acceptor::new(listener, *job).map_err(told)?;
    while let Some(absent) = (rank + 1..config.size).find(|&peer| links[peer].is_none()) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(format!("rank {absent} did not reach rank {rank} in time"));
        }
        await_news(&acceptor, &[], left);
        let judge = |links: &[Option<Connection>], hello: &Hello| {
            let free = links.get(hello.rank as usize).is_some_and(Option::is_none);
            let fits =
                free && hello.purpose == ConnectionPurpose::Data && hello.rank as usize > rank;
            if fits { Ok(()) } else { Err(Refusal::Rank) }
        };
        while let Some(arrival) = acceptor.receive(|hello| judge(links, hello)) {
            links[arrival.hello.rank as usize] = Some(arrival.connection);
        }
    }
    Ok(())
}
