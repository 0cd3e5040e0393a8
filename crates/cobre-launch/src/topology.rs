//! The processors of this machine: which of them share a core, a socket and a NUMA node.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A processor, as the system numbers it: a hardware thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Processor {
    node: usize,
    socket: usize,
    core: usize,
    number: usize,
}

/// The processors that this process may use, and where they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// In the order of nodes, sockets and cores.
    processors: Vec<Processor>,
}

impl Topology {
    /// The topology of this machine, as far as this process may use it.
    pub fn of_machine() -> Self {
        Self::read(
            Path::new("/sys/devices/system"),
            &cobre_comm::cpus::allowed(),
        )
    }

    /// The topology below `root`, of these processors alone. What the system does not tell counts as one.
    pub fn read(root: &Path, allowed: &[usize]) -> Self {
        let nodes = nodes(&root.join("node"));
        let place = |number: usize| {
            let directory = root.join(format!("cpu/cpu{number}/topology"));
            let id = |name: &str| {
                let text = fs::read_to_string(directory.join(name)).ok()?;
                text.trim().parse::<usize>().ok()
            };
            Processor {
                node: nodes.get(&number).copied().unwrap_or(0),
                socket: id("physical_package_id").unwrap_or(0),
                // Without siblings it is a core of its own.
                core: id("core_id").unwrap_or(number),
                number,
            }
        };
        let mut processors: Vec<Processor> = allowed.iter().copied().map(place).collect();
        processors.sort_unstable();
        Self { processors }
    }

    /// The numbers of the processors of each NUMA node, by core.
    pub(crate) fn nodes(&self) -> Vec<Vec<Vec<usize>>> {
        self.domains(|processor| processor.node)
    }

    /// The numbers of the processors of each socket, by core.
    pub(crate) fn sockets(&self) -> Vec<Vec<Vec<usize>>> {
        self.domains(|processor| processor.socket)
    }

    fn domains(&self, of: fn(&Processor) -> usize) -> Vec<Vec<Vec<usize>>> {
        let mut domains: BTreeMap<usize, BTreeMap<[usize; 3], Vec<usize>>> = BTreeMap::new();
        for processor in &self.processors {
            let cores = domains.entry(of(processor)).or_default();
            let core = [processor.node, processor.socket, processor.core];
            cores.entry(core).or_default().push(processor.number);
        }
        let domains = domains.into_values();
        domains.map(|cores| cores.into_values().collect()).collect()
    }

    /// The NUMA nodes of these processors.
    pub fn nodes_of(&self, processors: &[usize]) -> Vec<usize> {
        let here = self
            .processors
            .iter()
            .filter(|known| processors.contains(&known.number));
        let mut nodes: Vec<usize> = here.map(|known| known.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Sockets, NUMA nodes, cores and hardware threads in a few words.
    pub fn summary(&self) -> String {
        let (sockets, nodes) = (self.sockets(), self.nodes());
        let cores: usize = nodes.iter().map(Vec::len).sum();
        let words = [
            (sockets.len(), "socket"),
            (nodes.len(), "NUMA node"),
            (cores, "core"),
            (self.processors.len(), "hardware thread"),
        ];
        let words = words.map(|(count, noun)| {
            let plural = if count == 1 { "" } else { "s" };
            format!("{count} {noun}{plural}")
        });
        words.join(", ")
    }
}

/// The node of each processor, of all nodes below this directory.
fn nodes(directory: &Path) -> BTreeMap<usize, usize> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.strip_prefix("node")?.parse().ok());
        let Some(number) = number else { continue };
        let list = fs::read_to_string(entry.path().join("cpulist")).unwrap_or_default();
        found.extend(
            numbers(&list)
                .into_iter()
                .map(|processor| (processor, number)),
        );
    }
    found
}

/// Most processors of one machine, as the mask of a process has them.
const MOST: usize = rustix::thread::CpuSet::MAX_CPU;

/// The numbers of a list like `0-3,8`; what is no number is left out.
fn numbers(text: &str) -> Vec<usize> {
    let ranges = text.trim().split(',').filter_map(|range| {
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        Some((low.parse::<usize>().ok()?, high.parse::<usize>().ok()?))
    });
    let ranges = ranges.map(|(low, high)| low..=high.min(MOST));
    ranges.flatten().collect()
}

/// A list like `0-3,8` of these numbers.
pub fn list(numbers: &[usize]) -> String {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in sorted {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let words = ranges.into_iter().map(|(low, high)| {
        if low == high {
            low.to_string()
        } else {
            format!("{low}-{high}")
        }
    });
    words.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
pub(crate) mod fake {
    use super::*;

    /// A tree of the system's files with so many sockets of so many NUMA nodes each, cores per node and threads per
    /// core, numbered as Linux does: the second threads of all cores come after all first ones.
    pub(crate) fn topology(
        sockets: usize,
        nodes: usize,
        cores: usize,
        threads: usize,
        allowed: &[usize],
    ) -> Topology {
        let root = tempfile::TempDir::new().unwrap();
        let all = sockets * nodes * cores;
        let mut lists = vec![Vec::new(); sockets * nodes];
        for number in 0..all * threads {
            let core = number % all;
            let directory = root.path().join(format!("cpu/cpu{number}/topology"));
            fs::create_dir_all(&directory).unwrap();
            let socket = core / (nodes * cores);
            fs::write(
                directory.join("core_id"),
                format!("{}\n", core % (nodes * cores)),
            )
            .unwrap();
            fs::write(directory.join("physical_package_id"), format!("{socket}\n")).unwrap();
            lists[core / cores].push(number);
        }
        for (node, numbers) in lists.iter().enumerate() {
            let directory = root.path().join(format!("node/node{node}"));
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("cpulist"), format!("{}\n", list(numbers))).unwrap();
        }
        let everything: Vec<usize> = (0..all * threads).collect();
        let allowed = if allowed.is_empty() {
            &everything
        } else {
            allowed
        };
        Topology::read(root.path(), allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_a_core_stay_together() {
        let found = fake::topology(2, 1, 2, 2, &[]);
        assert_eq!(found.nodes(), [[[0, 4], [1, 5]], [[2, 6], [3, 7]]]);
        assert_eq!(found.sockets(), found.nodes());
        assert_eq!(
            found.summary(),
            "2 sockets, 2 NUMA nodes, 4 cores, 8 hardware threads"
        );
    }

    #[test]
    fn a_socket_may_have_several_nodes() {
        let found = fake::topology(1, 2, 2, 1, &[]);
        assert_eq!(found.nodes(), [[[0], [1]], [[2], [3]]]);
        assert_eq!(found.sockets(), [[[0], [1], [2], [3]]]);
        assert_eq!(found.nodes_of(&[1, 2]), [0, 1]);
    }

    #[test]
    fn processors_that_are_not_allowed_are_not_there() {
        let found = fake::topology(2, 1, 2, 2, &[1, 2, 6]);
        assert_eq!(found.nodes(), [vec![vec![1]], vec![vec![2, 6]]]);
    }

    #[test]
    fn a_system_that_tells_nothing_has_one_node_and_a_core_per_processor() {
        let found = Topology::read(Path::new("/nowhere"), &[3, 5]);
        assert_eq!(found.nodes(), [[[3], [5]]]);
        assert_eq!(
            found.summary(),
            "1 socket, 1 NUMA node, 2 cores, 2 hardware threads"
        );
    }

    #[test]
    fn lists_are_read_and_written() {
        assert_eq!(numbers("0-2,8\n"), [0, 1, 2, 8]);
        assert_eq!(numbers("x,3-,7-5,2"), [2]);
        assert_eq!(list(&[8, 0, 2, 1]), "0-2,8");
        assert_eq!(list(&[]), "");
        assert!(numbers("0-99999999999999").len() <= MOST + 1);
    }
}
