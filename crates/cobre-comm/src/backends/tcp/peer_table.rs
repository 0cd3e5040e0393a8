//! The peers of a job and their addresses: each rank describes itself, and rank 0 sends the table of all to all.

use std::net::{IpAddr, Ipv6Addr};

use crate::backends::host;
use crate::cpus;

/// Longest host name that is passed on.
const HOST: usize = 64;
/// Words of a set of processors.
const MASK: usize = 8;

/// A rank's description of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PeerInfo {
    pub(super) pid: u32,
    pub(super) host: String,
    /// The same on all ranks that share processors.
    pub(super) machine: u64,
    /// The same on all ranks that ask to share memory and see the same `/dev/shm`; 0 if it does not ask.
    pub(super) memory: u64,
    /// The processors it may run on, one bit each.
    pub(super) processors: [u64; MASK],
    /// The address at which it listens for its peers; rank 0 fills in the address it sees.
    pub(super) address: IpAddr,
    pub(super) port: u16,
}

impl PeerInfo {
    /// This process's own, listening on `port`.
    pub(super) fn own(port: u16) -> Self {
        let host = host::name();
        // Containers of one machine have names of their own and one kernel.
        let boot = std::fs::read("/proc/sys/kernel/random/boot_id");
        Self {
            pid: std::process::id(),
            machine: hash(&boot.unwrap_or_else(|_| host.clone().into_bytes())),
            host,
            memory: 0,
            processors: own_processors(),
            address: IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            port,
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let host = &self.host.as_bytes()[..self.host.floor_char_boundary(HOST)];
        let address = match self.address {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        out.extend(self.pid.to_le_bytes());
        out.extend(self.processors.iter().flat_map(|word| word.to_le_bytes()));
        out.extend(self.machine.to_le_bytes());
        out.extend(self.memory.to_le_bytes());
        out.extend(address.octets());
        out.extend(self.port.to_le_bytes());
        out.push(host.len() as u8);
        out.extend(host);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let pid = u32::from_le_bytes(take(bytes)?);
        let mut processors = [0; MASK];
        for word in &mut processors {
            *word = u64::from_le_bytes(take(bytes)?);
        }
        let machine = u64::from_le_bytes(take(bytes)?);
        let memory = u64::from_le_bytes(take(bytes)?);
        let address = Ipv6Addr::from(take::<16>(bytes)?).to_canonical();
        let port = u16::from_le_bytes(take(bytes)?);
        let [length] = take(bytes)?;
        let (host, rest) = bytes.split_at_checked(length.into())?;
        *bytes = rest;
        Some(Self {
            pid,
            host: String::from_utf8_lossy(host).into_owned(),
            machine,
            memory,
            processors,
            address,
            port,
        })
    }
}

/// The descriptions in rank order.
pub(super) fn encode<'a>(peer_infos: impl IntoIterator<Item = &'a PeerInfo>) -> Vec<u8> {
    let mut out = Vec::new();
    peer_infos
        .into_iter()
        .for_each(|peer_info| peer_info.encode(&mut out));
    out
}

/// Exactly `count` descriptions, and nothing else.
pub(super) fn decode(mut bytes: &[u8], count: usize) -> Option<Vec<PeerInfo>> {
    let peer_infos = (0..count).map(|_| PeerInfo::decode(&mut bytes)).collect();
    if bytes.is_empty() { peer_infos } else { None }
}

/// True if the ranks that share `rank`'s machine outnumber the processors they may run on.
pub(super) fn is_crowded(peer_infos: &[PeerInfo], rank: usize, quota: Option<f64>) -> bool {
    let here = || {
        peer_infos
            .iter()
            .filter(|peer_info| peer_info.machine == peer_infos[rank].machine)
    };
    let together = |word: usize| here().fold(0, |set, peer_info| set | peer_info.processors[word]);
    let processors: u32 = (0..MASK).map(|word| together(word).count_ones()).sum();
    let granted = quota.map_or(usize::MAX, |quota| quota.ceil() as usize);
    here().count() > granted.min(processors as usize)
}

fn own_processors() -> [u64; MASK] {
    let mut set = [0; MASK];
    for cpu in cpus::allowed() {
        if let Some(word) = set.get_mut(cpu / 64) {
            *word |= 1 << (cpu % 64);
        }
    }
    set
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*taken)
}

/// A word for these bytes.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn peer_info(host: &str, machine: u64, processors: u64) -> PeerInfo {
        PeerInfo {
            pid: 41,
            host: host.into(),
            machine,
            memory: 3 * machine,
            processors: [processors, 0, 0, 0, 0, 0, 0, 0],
            address: IpAddr::from([10, 0, 0, 7]),
            port: 4000,
        }
    }

    #[test]
    fn a_roster_survives_its_journey() {
        let six = IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 1]);
        let peer_infos = vec![
            peer_info("node-7", 1, 2),
            PeerInfo {
                address: six,
                ..peer_info("", 2, 1)
            },
        ];
        assert_eq!(decode(&encode(&peer_infos), 2), Some(peer_infos));
    }

    #[test]
    fn a_host_name_is_cut_at_a_letter() {
        let long = peer_info(&"ä".repeat(100), 1, 1);
        let read = decode(&encode([&long]), 1).unwrap();
        assert_eq!(read[0].host, "ä".repeat(HOST / 2));
    }

    #[test]
    fn ranks_are_counted_against_the_processors_of_their_machine() {
        let bound = [
            peer_info("a", 1, 0b01),
            peer_info("b", 1, 0b10),
            peer_info("c", 2, 0b01),
        ];
        assert!(!is_crowded(&bound, 0, None));
        assert!(is_crowded(&bound, 0, Some(1.0)));
        assert!(!is_crowded(&bound, 2, Some(1.0)));
        let squeezed = [peer_info("a", 1, 0b01), peer_info("b", 1, 0b01)];
        assert!(is_crowded(&squeezed, 0, None));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode(&bytes, 3);
        }
    }
}
