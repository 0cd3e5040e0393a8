//! Fuzz target: a segment that another process has filled with anything.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::layout::{HEADER, SegmentLayout, header};
use super::object::ObjectDraft;
use super::rank_status::RankStatus;
use super::segment::Mapping;
use super::stall::Stall;
use super::{object, record, rendezvous};
use crate::env::ShmConfig;
use crate::fuzzing::Target;

pub(crate) const TARGETS: &[Target] = &[("segment", segment as _, 1_000)];

/// The file of a creator that lives, and the same file as a rank finds it.
struct Files {
    created: ObjectDraft,
    found: OwnedFd,
}

/// Bytes of a change of the header: offset and value.
const CHANGE: usize = 12;

/// A segment whose header has these changes. The first byte says how much of it fits together; each change is an
/// offset of four bytes and a value of eight.
fn segment(_: &Path, input: &[u8]) {
    static FILES: OnceLock<Mutex<Files>> = OnceLock::new();
    let Some((mode, changes)) = input.split_first() else {
        return;
    };
    let files = FILES.get_or_init(|| Mutex::new(files()));
    let files = files.lock().unwrap_or_else(PoisonError::into_inner);
    let config = ShmConfig {
        name: "fuzz".to_owned(),
        rank: 1,
        size: 2,
        timeout: None,
        buffer_bytes: None,
        portable_wait: false,
        named_regions: false,
        job: None,
        stall: Duration::from_secs(1),
    };
    fill(&files.created, changes, *mode, &config);
    if let Ok(Ok((mapping, layout))) = rendezvous::examine(&config, &files.found) {
        check(&mapping, layout);
    }
}

fn files() -> Files {
    let created = ObjectDraft::new().expect("an object");
    let found = created.reopened().expect("its file");
    Files { created, found }
}

/// Writes a header: that of a sound segment with the changes, and with sizes and hash that agree if `mode` says so.
fn fill(draft: &ObjectDraft, changes: &[u8], mode: u8, config: &ShmConfig) {
    let sound = SegmentLayout::new(config.size, 4096, 4096);
    let size = |bytes: usize| rustix::fs::ftruncate(draft, bytes as u64).expect("it has a size");
    // Of an earlier input nothing stays but the identity.
    size(object::IDENTITY);
    size(sound.total());
    let mapping = Mapping::new(draft.as_fd(), 0, HEADER).expect("a mapping");
    let put = |offset, value| mapping.word64(offset).store(value, Relaxed);
    put(header::RANKS, sound.ranks as u64);
    put(header::RING, sound.ring as u64);
    put(header::STAGE, sound.stage as u64);
    put(header::LAYOUT, sound.hash());
    put(header::JOB, rendezvous::job(config));
    for change in changes.chunks_exact(CHANGE) {
        let (offset, value) = change.split_at(4);
        let offset = u32::from_le_bytes(offset.try_into().expect("four bytes")) as usize;
        let value = u64::from_le_bytes(value.try_into().expect("eight bytes"));
        // The identity was written once, and a rank that finds it knows the version.
        put((offset % HEADER / 8 * 8).max(object::IDENTITY), value);
    }
    let field = |offset| mapping.word64(offset).load(Relaxed) as usize;
    let (ring, stage) = (field(header::RING), field(header::STAGE));
    if mode & 1 == 1 && ring < 1 << 20 && stage < 1 << 20 {
        let layout = SegmentLayout::new(config.size, ring, stage);
        put(header::LAYOUT, layout.hash());
        size(layout.total());
    }
}

/// Uses a segment as a rank does: no access is out of bounds or out of line, and what is told of it is text.
fn check(mapping: &Mapping, layout: SegmentLayout) {
    for rank in 0..layout.ranks {
        for word in [
            layout.slot(rank, 0),
            layout.slot(rank, 1),
            layout.produced(rank),
            layout.consumed(rank, layout.ranks - 1),
        ] {
            mapping.word64(word).load(Relaxed);
        }
        for (start, len) in [
            (layout.ring_of(rank), layout.ring),
            (layout.stage_of(rank), layout.stage),
            (layout.result_of(rank), layout.stage),
        ] {
            assert!(start.is_multiple_of(64), "{start}");
            mapping.published::<u64>(start, len / 8);
        }
        let status = RankStatus::of(mapping, rank);
        assert!(!status.lost(status.end()).to_string().is_empty());
    }
    let _ = record::read(mapping).map(|cause| cause.to_string());
    let mut stall = Stall::after(Duration::from_millis(1));
    let _ = stall.due(mapping, layout.ranks - 1, layout.ranks);
}
