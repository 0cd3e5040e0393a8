//! The ranks of a job that share memory, host by host. Ranks that may share it are known from the table of peers; that
//! they do is proved: the first of them creates a segment, the others map it and read there what no other job has.

use std::time::Duration;

use super::collectives;
use super::group::Group;
use super::peer_table::{self, PeerInfo};
use super::system;
use crate::arguments::Partition;
use crate::backends::shm::{HostGroup, HostSegment};
use crate::call_signature::{CallSignature, Collective};
use crate::env::{self, ShmConfig, TcpConfig, TcpSharedMemory, random_words, shm_name};
use crate::transport::TransportFault;

/// The hosts of a communicator, and this rank's among them.
#[derive(Debug)]
pub(super) struct HostTable {
    /// The ranks of each host, in rank order; hosts in the order of their first ranks, which lead them.
    pub(super) members: Vec<Vec<usize>>,
    pub(super) leaders: Vec<usize>,
    /// This rank's host.
    pub(super) own: usize,
    /// The ranks of this host; `None` if this rank is alone.
    pub(super) group: Option<HostGroup>,
}

impl HostTable {
    fn new(members: Vec<Vec<usize>>, rank: usize, group: Option<HostGroup>) -> Self {
        let own = members.iter().position(|ranks| ranks.contains(&rank));
        Self {
            leaders: members.iter().map(|ranks| ranks[0]).collect(),
            members,
            own: own.expect("every rank has a host"),
            group,
        }
    }

    /// A communicator of the ranks of one host alone.
    pub(super) fn of_one(group: Option<HostGroup>) -> Self {
        let (rank, size) = group
            .as_ref()
            .map_or((0, 1), |group| (group.rank(), group.size()));
        Self::new(vec![(0..size).collect()], rank, group)
    }

    /// This rank's number among those of its host.
    pub(super) fn place(&self) -> usize {
        self.group.as_ref().map_or(0, HostGroup::rank)
    }

    /// True if this rank speaks for its host.
    pub(super) fn leads(&self) -> bool {
        self.place() == 0
    }

    /// The ranks of this host.
    pub(super) fn here(&self) -> &[usize] {
        &self.members[self.own]
    }

    /// The ranks of the communicator.
    pub(super) fn ranks(&self) -> usize {
        self.members.iter().map(Vec::len).sum()
    }

    /// The host of `rank`, and its number there.
    pub(super) fn find(&self, rank: usize) -> (usize, usize) {
        let places = self.members.iter().enumerate();
        let mut places = places.filter_map(|(host, ranks)| {
            let place = ranks.iter().position(|&member| member == rank)?;
            Some((host, place))
        });
        places.next().expect("every rank has a host")
    }
}

/// A word that ranks have in common if they ask to share memory and may: one user's, on one kernel, with one `/dev/shm`
/// and one word for their host. 0 if this rank does not ask.
pub(super) fn memory_key(config: &TcpConfig) -> u64 {
    if config.shared_memory == TcpSharedMemory::Off || config.size == 1 {
        return 0;
    }
    let device = rustix::fs::stat("/dev/shm").map_or(0, |stat| stat.st_dev);
    let user = rustix::process::geteuid().as_raw();
    let words = [PeerInfo::own(0).machine, device, u64::from(user)];
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend(config.host.as_deref().unwrap_or_default().as_bytes());
    peer_table::hash(&bytes).max(1)
}

/// The sets of ranks that may share memory, each in rank order.
fn candidates(peer_infos: &[PeerInfo]) -> Vec<Vec<usize>> {
    let mut hosts: Vec<Vec<usize>> = Vec::new();
    for (rank, peer_info) in peer_infos.iter().enumerate() {
        let same = |host: &&mut Vec<usize>| {
            peer_info.memory != 0 && peer_infos[host[0]].memory == peer_info.memory
        };
        match hosts.iter_mut().find(same) {
            Some(host) => host.push(rank),
            None => hosts.push(vec![rank]),
        }
    }
    hosts
}

/// A rank's segment for its host: its name, if it has created one.
const OFFER: usize = 24;

/// Finds the ranks that share memory with this one; `None` if no ranks of the job do. Collective.
pub(super) fn meet(
    group: &Group,
    config: &TcpConfig,
    is_crowded: bool,
) -> Result<Option<HostTable>, String> {
    let candidates = candidates(&group.job_verdict().peer_infos);
    if candidates.iter().all(|ranks| ranks.len() == 1) {
        return alone(group, config, "no other rank sees the same /dev/shm").map(|()| None);
    }
    let here = HostTable::new(candidates, group.rank, None);
    let is_single = here.here().len() == 1;
    let opened = find_segment(group, config, &here)?;
    let attached = opened.and_then(|segment| segment.attach(group.rank));
    let joined = exchange(group, &[u8::from(is_single || attached.is_ok())])?;
    let refused = here.here().iter().find(|&&rank| joined[rank] == 0);
    let host_group = match (attached, refused) {
        (Ok(place), None) => Some(place.into_group(is_crowded)),
        _ if is_single => {
            alone(group, config, "it sees another /dev/shm than they do")?;
            None
        }
        (Ok(_), Some(rank)) => {
            alone(group, config, &format!("rank {rank} cannot map its memory"))?;
            None
        }
        (Err(reason), _) => {
            alone(group, config, &reason)?;
            let rank = group.rank;
            let line = format!("cobre: rank {rank} shares no memory with its host: {reason}");
            system::warn(&line);
            None
        }
    };
    let members = proved(&here.members, &joined);
    if members.iter().all(|ranks| ranks.len() == 1) {
        return Ok(None);
    }
    let hosts = HostTable::new(members, group.rank, host_group);
    if let Some(host_group) = &hosts.group {
        group.job_verdict().set_host_alarm(host_group.alarm());
    }
    Ok(Some(hosts))
}

/// The segment of this rank's host: created by its first rank, which tells all, and opened by the others. Collective;
/// the inner error is this rank's alone.
fn find_segment(
    group: &Group,
    config: &TcpConfig,
    here: &HostTable,
) -> Result<Result<HostSegment, String>, String> {
    let ranks = here.here();
    let place = ranks.iter().position(|&rank| rank == group.rank);
    let place = place.unwrap_or_default();
    let names = random_words();
    let is_first = ranks.len() > 1 && place == 0;
    let created = is_first.then(|| segment(config, here, 0, names));
    let mut offer = [0; OFFER];
    if matches!(created, Some(Ok(_))) {
        offer[0] = 1;
        offer[8..16].copy_from_slice(&names[0].to_le_bytes());
        offer[16..].copy_from_slice(&names[1].to_le_bytes());
    }
    let offers = exchange(group, &offer)?;
    let leader = ranks[0];
    Ok(created.unwrap_or_else(|| {
        let [offered, high, low] = words(&offers[leader * OFFER..]);
        if offered == 0 {
            return Err(format!("rank {leader} has created no segment"));
        }
        segment(config, here, place, [high, low])
    }))
}

/// The hosts whose ranks have all mapped their memory, and the other ranks one by one, in the order of first ranks.
fn proved(candidates: &[Vec<usize>], joined: &[u8]) -> Vec<Vec<usize>> {
    let mut members: Vec<Vec<usize>> = Vec::new();
    for ranks in candidates {
        if ranks.iter().all(|&rank| joined[rank] == 1) {
            members.push(ranks.clone());
        } else {
            members.extend(ranks.iter().map(|&rank| vec![rank]));
        }
    }
    members.sort_unstable_by_key(|ranks| ranks[0]);
    members
}

/// An error if this rank must share memory and there is another rank on its machine. A word for its host may say that
/// it is to be alone.
fn alone(group: &Group, config: &TcpConfig, why: &str) -> Result<(), String> {
    let peer_infos = &group.job_verdict().peer_infos;
    let own = &peer_infos[group.rank];
    let here = peer_infos.iter().filter(|it| it.machine == own.machine);
    let may_be = config.shared_memory != TcpSharedMemory::On || config.host.is_some();
    if may_be || here.count() == 1 {
        return Ok(());
    }
    Err(format!(
        "{}=on, but rank {} cannot share memory with the other ranks of its machine: {why}",
        env::TCP_SHARED_MEMORY,
        group.rank
    ))
}

/// The segment of this rank's host under the name of these digits: created by its first rank, opened by the others.
fn segment(
    config: &TcpConfig,
    hosts: &HostTable,
    place: usize,
    [high, low]: [u64; 2],
) -> Result<HostSegment, String> {
    let name = shm_name(high, low);
    HostSegment::new(ShmConfig {
        job: Some(name.clone()),
        name,
        rank: place,
        size: hosts.here().len(),
        timeout: config.timeout,
        buffer_bytes: None,
        portable_wait: false,
        named_regions: false,
        // The job reports stalls, with all of its ranks.
        stall: Duration::MAX,
    })
}

/// The bytes of every rank, as many as this one gives.
fn exchange(group: &Group, own: &[u8]) -> Result<Vec<u8>, String> {
    let signature = CallSignature::new(Collective::SplitLocal);
    let mut all = vec![0; own.len() * group.size];
    let lengths = vec![own.len(); group.size];
    let starts: Vec<usize> = (0..group.size).map(|rank| rank * own.len()).collect();
    let blocks = Partition::of_bytes(&lengths, &starts);
    let outcome = group
        .begin(&signature)
        .and_then(|call| collectives::allgatherv(&call, Some(own), &mut all, blocks));
    outcome.map(|()| all).map_err(failure_text)
}

/// The text of a fault in the start of a job.
pub(super) fn failure_text(fault: TransportFault) -> String {
    match fault {
        TransportFault::Failed(cause) => cause.to_string(),
        TransportFault::NoMemory { detail: reason, .. } | TransportFault::Unusable { reason } => {
            reason
        }
    }
}

fn words(bytes: &[u8]) -> [u64; 3] {
    std::array::from_fn(|at| {
        let bytes = bytes[8 * at..].first_chunk();
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_keys(keys: &[u64]) -> Vec<PeerInfo> {
        let own = PeerInfo::own(0);
        let with_key = |&memory: &u64| PeerInfo {
            memory,
            ..own.clone()
        };
        keys.iter().map(with_key).collect()
    }

    #[test]
    fn ranks_of_one_key_are_candidates_however_they_are_numbered() {
        let found = candidates(&with_keys(&[7, 9, 7, 0, 0, 9]));
        assert_eq!(found, [vec![0, 2], vec![1, 5], vec![3], vec![4]]);
    }

    #[test]
    fn a_host_with_a_rank_that_cannot_map_falls_apart_and_no_other_does() {
        let candidates = [vec![0, 2], vec![1, 3, 5], vec![4]];
        let members = proved(&candidates, &[1, 1, 1, 0, 1, 1]);
        assert_eq!(members, [vec![0, 2], vec![1], vec![3], vec![4], vec![5]]);
    }

    #[test]
    fn every_rank_is_found_on_its_host() {
        let hosts = HostTable::new(vec![vec![0, 2], vec![1]], 2, None);
        assert_eq!((hosts.own, hosts.find(1), hosts.ranks()), (0, (1, 0), 3));
    }
}
