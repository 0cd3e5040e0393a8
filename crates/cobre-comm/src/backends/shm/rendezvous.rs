//! Rendezvous of the ranks of a job: rank 0 creates the segment under the job's name, the
//! others attach, and the name goes as soon as all are there.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::layout::{HEADER, LINE, MAX_RANKS, SegmentLayout, header};
use super::liveness::Liveness;
use super::object::{self, Created, ObjectDraft, ObjectError};
use super::rank_status::RankStatus;
use super::record;
use super::segment::Mapping;
use crate::cpus;
use crate::env::{self, DEFAULT_RENDEZVOUS, ShmConfig};
use crate::error::{BackendError, Cause};
use crate::fnv::{self, fnv_1a};

/// Values of the header's `STATE` word.
const GATHERING: u32 = 0;
const COMPLETE: u32 = 1;

/// The segment of a job whose ranks have all joined.
#[derive(Debug)]
pub(super) struct AttachedSegment {
    pub(super) mapping: Arc<Mapping>,
    pub(super) layout: SegmentLayout,
    /// Processors that the ranks may use between them.
    pub(super) cpus: Vec<usize>,
    pub(super) liveness: Liveness,
}

/// Error of meeting the other ranks.
#[derive(Debug)]
pub(super) enum MeetError {
    /// The segment cannot have its bytes.
    OutOfMemory {
        bytes: usize,
        detail: String,
    },
    Refused(String),
}

impl From<String> for MeetError {
    fn from(reason: String) -> Self {
        Self::Refused(reason)
    }
}

impl MeetError {
    /// The segment of a job cannot have the bytes of its layout.
    fn no_room(config: &ShmConfig, layout: &SegmentLayout, error: Errno) -> Self {
        let bytes = layout.total();
        Self::OutOfMemory {
            bytes,
            detail: object::no_room(&format!("the segment {}", config.name), bytes, error),
        }
    }

    fn text(&self) -> &str {
        let (Self::OutOfMemory { detail: text, .. } | Self::Refused(text)) = self;
        text
    }

    pub(super) fn into_text(self) -> String {
        self.text().to_owned()
    }

    fn into_backend_error(self) -> BackendError {
        let backend = "shm";
        match self {
            Self::OutOfMemory { bytes, detail } => BackendError::OutOfMemory {
                backend,
                bytes,
                detail,
            },
            Self::Refused(reason) => BackendError::InitializationFailed { backend, reason },
        }
    }
}

/// Meets the other ranks.
pub(super) fn meet(config: &ShmConfig) -> Result<AttachedSegment, BackendError> {
    meet_all(config).map_err(MeetError::into_backend_error)
}

fn meet_all(config: &ShmConfig) -> Result<AttachedSegment, MeetError> {
    if config.size > MAX_RANKS {
        return Err(MeetError::Refused(format!(
            "{} ranks are more than the {MAX_RANKS} it can hold",
            config.size
        )));
    }
    let deadline = Instant::now() + config.timeout.unwrap_or(DEFAULT_RENDEZVOUS);
    let (mapping, layout, mut held) = if config.rank == 0 {
        create(config)?
    } else {
        find(config, deadline)?
    };
    let segment = (Arc::new(mapping), layout);
    let met = attach(config, config.rank, &segment, &held).and_then(|liveness| {
        gather(config, &segment, &mut held, deadline)?;
        Ok(liveness)
    });
    let liveness = match met {
        Ok(liveness) => liveness,
        Err(reason) => {
            // The others wait for this rank: they learn at once why it does not come.
            let action = format!("rank {} could not join", config.rank);
            let message = reason.text().to_owned();
            record::post(&segment.0, &Cause::Io { action, message });
            return Err(reason);
        }
    };
    let (mapping, layout) = segment;
    populate(&mapping, &layout, config.rank);
    let cpus = shared_cpus(&mapping);
    Ok(AttachedSegment {
        mapping,
        layout,
        cpus,
        liveness,
    })
}

/// Faults in what this rank will touch in every collective, and the large buffers of the others
/// where that is soon done: each rank maps every rank's, so it is work that grows with the square.
pub(super) fn populate(mapping: &Mapping, layout: &SegmentLayout, rank: usize) {
    const FEW: usize = 16;
    if layout.ranks <= FEW {
        return mapping.populate(0..layout.total());
    }
    mapping.populate(layout.slice(rank));
    for peer in 0..layout.ranks {
        mapping.populate(layout.hot(peer));
    }
}

/// The segment's file while ranks gather: rank 0's holds the name and the lock.
#[derive(Debug)]
pub(super) enum SegmentFile {
    Creator(Created),
    Follower(OwnedFd),
}

impl SegmentFile {
    fn file(&self) -> std::os::fd::BorrowedFd<'_> {
        match self {
            Self::Creator(created) => created.as_fd(),
            Self::Follower(file) => file.as_fd(),
        }
    }
}

/// Rank 0: sized, reserved and initialised without a name, then published under the job's.
pub(super) fn create(
    config: &ShmConfig,
) -> Result<(Mapping, SegmentLayout, SegmentFile), MeetError> {
    let named = |what: &dyn std::fmt::Display| about_name(config, what);
    object::sweep();
    let layout = SegmentLayout::for_ranks(config.size, cpus::machine(), config.buffer_bytes);
    let no_room = |error| MeetError::no_room(config, &layout, error);
    let draft = ObjectDraft::new().map_err(no_room)?;
    rustix::fs::ftruncate(&draft, layout.total() as u64).map_err(no_room)?;
    object::reserve(draft.as_fd(), 0..HEADER).map_err(no_room)?;
    let mapping = Mapping::new(draft.as_fd(), 0, layout.total()).map_err(|error| named(&error))?;
    write_identity(&mapping, &layout, config);
    // Who opens the name sees the stores before it was given: the kernel orders the two calls.
    let created = draft.publish(&config.name);
    let created = created.map_err(|refusal| refused(config, refusal))?;
    Ok((mapping, layout, SegmentFile::Creator(created)))
}

/// Writes what tells a segment from those of other jobs and builds.
pub(super) fn write_identity(mapping: &Mapping, layout: &SegmentLayout, config: &ShmConfig) {
    let fields = [
        (header::RANKS, layout.ranks as u64),
        (header::RING, layout.ring as u64),
        (header::STAGE, layout.stage as u64),
        (header::LAYOUT, layout.hash()),
        (header::JOB, job(config)),
    ];
    for (offset, value) in fields {
        mapping.word64(offset).store(value, Relaxed);
    }
}

fn about_name(config: &ShmConfig, what: &dyn std::fmt::Display) -> String {
    format!("{}={}: {what}", env::SHM_NAME, config.name)
}

fn refused(config: &ShmConfig, refusal: ObjectError) -> String {
    match refusal {
        ObjectError::System(Errno::INVAL | Errno::NAMETOOLONG) => about_name(
            config,
            &"a name is one word of at most 255 bytes without a slash inside",
        ),
        refusal => about_name(config, &refusal),
    }
}

/// The identity of the job among others of its name: a digest of the job id that all its ranks were given.
pub(super) fn job(config: &ShmConfig) -> u64 {
    let word = config.job.as_deref().unwrap_or_default();
    fnv_1a(fnv::BASIS, word.bytes())
}

/// The others: look for the segment until it is there and finished.
fn find(
    config: &ShmConfig,
    deadline: Instant,
) -> Result<(Mapping, SegmentLayout, SegmentFile), String> {
    let mut pause = Backoff::default();
    loop {
        let seen = match object::open(&config.name) {
            Ok(file) => match examine(config, &file)? {
                Ok((mapping, layout)) => return Ok((mapping, layout, SegmentFile::Follower(file))),
                Err(unfinished) => unfinished,
            },
            Err(ObjectError::System(Errno::NOENT)) => "rank 0 has not created it",
            Err(refusal) => return Err(refused(config, refusal)),
        };
        if Instant::now() >= deadline {
            return Err(format!(
                "{}={}: no segment to join within the deadline: {seen}; were all {} ranks started \
                 on this machine?",
                env::SHM_NAME,
                config.name,
                config.size
            ));
        }
        pause.sleep();
    }
}

/// The segment of that name, which is there and finished.
pub(super) fn open(config: &ShmConfig) -> Result<(Mapping, SegmentLayout, SegmentFile), String> {
    let file = object::open(&config.name).map_err(|refusal| refused(config, refusal))?;
    match examine(config, &file)? {
        Ok((mapping, layout)) => Ok((mapping, layout, SegmentFile::Follower(file))),
        Err(unfinished) => Err(about_name(config, &unfinished)),
    }
}

/// Checks what was found before anything in it is used: an outer error is final, an inner one says
/// what is still missing.
pub(super) fn examine(
    config: &ShmConfig,
    file: &OwnedFd,
) -> Result<Result<(Mapping, SegmentLayout), &'static str>, String> {
    let wrong = |what: String| Err(about_name(config, &what));
    let Some(version) = object::version(file.as_fd()) else {
        return wrong(ObjectError::Unknown.to_string());
    };
    if object::is_abandoned(file.as_fd()) {
        return Ok(Err("rank 0 is gone"));
    }
    if version != object::VERSION {
        return wrong("rank 0 runs another version of Cobre".to_owned());
    }
    let stat = rustix::fs::fstat(file).map_err(|error| error.to_string())?;
    let size = usize::try_from(stat.st_size).unwrap_or(0);
    if size < HEADER {
        return wrong(ObjectError::Unknown.to_string());
    }
    let mapping = Mapping::new(file.as_fd(), 0, size).map_err(|error| error.to_string())?;
    let field = |offset| mapping.word64(offset).load(Relaxed);
    if field(header::JOB) != job(config) {
        return wrong(format!("another job has this name ({})", env::SHM_JOB));
    }
    let ranks = field(header::RANKS) as usize;
    if ranks != config.size {
        return wrong(format!(
            "rank 0 was started for {ranks} ranks, rank {} for {} ({})",
            config.rank,
            config.size,
            env::SHM_SIZE
        ));
    }
    let (ring, stage) = (field(header::RING) as usize, field(header::STAGE) as usize);
    // Sizes from the segment are used only if the whole they make is the whole that is there.
    let plausible = [ring, stage]
        .iter()
        .all(|&area| area > 0 && area < size && area.is_multiple_of(LINE));
    let layout = SegmentLayout::new(ranks, ring.min(size), stage.min(size));
    if !plausible || layout.total() != size || layout.hash() != field(header::LAYOUT) {
        return wrong("rank 0 runs a build with another layout".to_owned());
    }
    Ok(Ok((mapping, layout)))
}

/// Takes this rank's place, under its number in the job: reserves its slice, which places the memory near it, and
/// signs in.
pub(super) fn attach(
    config: &ShmConfig,
    number: usize,
    segment: &(Arc<Mapping>, SegmentLayout),
    held: &SegmentFile,
) -> Result<Liveness, MeetError> {
    let (mapping, layout) = segment;
    let place = mapping.word32(header::PIDS + 4 * config.rank);
    if let Err(other) = place.compare_exchange(0, std::process::id(), Relaxed, Relaxed) {
        return Err(MeetError::Refused(format!(
            "two processes are rank {} ({}): {other} and {}",
            config.rank,
            env::SHM_RANK,
            std::process::id()
        )));
    }
    object::reserve(held.file(), layout.slice(config.rank))
        .map_err(|error| MeetError::no_room(config, layout, error))?;
    for cpu in cpus::allowed() {
        if cpu / 64 < header::CPU_WORDS {
            let word = mapping.word64(header::CPUS + cpu / 64 * 8);
            word.fetch_or(1 << (cpu % 64), Relaxed);
        }
    }
    RankStatus::of(mapping, config.rank).publish_number(number);
    let liveness = Liveness::begin(mapping.clone(), config.rank, config.size, config.stall)
        .map_err(|error| format!("no thread to watch the other ranks: {error}"))?;
    // Pairs with the acquire in `gather`: who counts this rank sees what it wrote.
    mapping.word32(header::ATTACHED).fetch_add(1, Release);
    Ok(liveness)
}

/// Waits until all ranks are attached; then rank 0 removes the name and lets everyone go.
fn gather(
    config: &ShmConfig,
    segment: &(Arc<Mapping>, SegmentLayout),
    held: &mut SegmentFile,
    deadline: Instant,
) -> Result<(), String> {
    let (mapping, _) = segment;
    let (attached, state) = (
        mapping.word32(header::ATTACHED),
        mapping.word32(header::STATE),
    );
    let mut pause = Backoff::default();
    loop {
        // Complete comes before failed: a rank that fails later fails in a collective.
        match held {
            // Pairs with the release in `attach`.
            SegmentFile::Creator(created) if attached.load(Acquire) as usize == config.size => {
                created.unlink();
                // Pairs with the acquire below.
                state.store(COMPLETE, Release);
                return Ok(());
            }
            // Pairs with the release above.
            SegmentFile::Follower(_) if state.load(Acquire) == COMPLETE => return Ok(()),
            _ => {}
        }
        if let Some(cause) = record::read(mapping) {
            return Err(cause.to_string());
        }
        if let SegmentFile::Follower(file) = held
            && object::is_abandoned(file.as_fd())
            && state.load(Acquire) == GATHERING
            && record::read(mapping).is_none()
        {
            return Err("rank 0 ended before all ranks were there".to_owned());
        }
        if Instant::now() >= deadline {
            return Err(missing(config, mapping));
        }
        pause.sleep();
    }
}

fn missing(config: &ShmConfig, mapping: &Mapping) -> String {
    let absent: Vec<String> = (0..config.size)
        .filter(|rank| mapping.word32(header::PIDS + 4 * rank).load(Relaxed) == 0)
        .map(|rank| rank.to_string())
        .collect();
    if absent.is_empty() {
        return "a rank attached and ended before it was ready".to_owned();
    }
    format!(
        "of {} ranks these did not join within the deadline: {} (set {} to wait longer)",
        config.size,
        absent.join(", "),
        env::SHM_TIMEOUT_SECS
    )
}

fn shared_cpus(mapping: &Mapping) -> Vec<usize> {
    (0..64 * header::CPU_WORDS)
        .filter(|cpu| {
            let word = mapping.word64(header::CPUS + cpu / 64 * 8).load(Relaxed);
            word >> (cpu % 64) & 1 == 1
        })
        .collect()
}

/// Pauses that grow from 50 µs to 1.6 ms: quick when the ranks come together, gentle when not.
#[derive(Default)]
struct Backoff(u32);

impl Backoff {
    fn sleep(&mut self) {
        std::thread::sleep(Duration::from_micros(50 << (self.0 / 8).min(5)));
        self.0 += 1;
    }
}
