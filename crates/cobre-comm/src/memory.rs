//! The memory available: what the system has to spare, less what a control group or a limit of this process keeps back.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use crate::cgroups::{self, CgroupVersion, number};

/// Bytes that can be reserved without waking the out-of-memory killer, as far as the system says;
/// `usize::MAX` where it says nothing.
pub fn available() -> usize {
    let system = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| figure(&text, "MemAvailable:"))
        .map(|kibibytes| kibibytes.saturating_mul(1024));
    let groups = headroom(&cgroups::limiting("memory"));
    let bounds = system.into_iter().chain(groups).chain(addresses());
    bounds.min().unwrap_or(usize::MAX)
}

/// The addresses that the limit of this process leaves (`ulimit -v`); `None` if it has none.
fn addresses() -> Option<usize> {
    let limit = getrlimit(Resource::As).current?;
    let used = fs::read_to_string("/proc/self/status").ok()?;
    let used = figure(&used, "VmSize:")?.saturating_mul(1024);
    Some(
        usize::try_from(limit)
            .unwrap_or(usize::MAX)
            .saturating_sub(used),
    )
}

/// The least that the groups leave; `None` if none of them has a limit.
fn headroom(groups: &[(CgroupVersion, PathBuf)]) -> Option<usize> {
    groups
        .iter()
        .filter_map(|(version, dir)| left(*version, dir))
        .min()
}

/// The memory a group has left: its limit, less what it uses, but for files that can be dropped.
fn left(version: CgroupVersion, dir: &Path) -> Option<usize> {
    let (limit, used) = match version {
        CgroupVersion::Two => ("memory.max", "memory.current"),
        CgroupVersion::One => ("memory.limit_in_bytes", "memory.usage_in_bytes"),
    };
    let (limit, used) = (number(dir, limit)?, number(dir, used)?);
    let stat = fs::read_to_string(dir.join("memory.stat")).unwrap_or_default();
    let droppable = figure(&stat, "inactive_file ").unwrap_or(0);
    Some((limit - used).max(0.0) as usize + droppable)
}

/// The number behind `name` in lines of names and numbers.
fn figure(text: &str, name: &str) -> Option<usize> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroups::fake::Groups;

    fn headroom_in(groups: &Groups, own: &str) -> Option<usize> {
        headroom(&cgroups::below(&groups.0, own, "memory"))
    }

    #[test]
    fn a_limit_leaves_what_is_not_used() {
        let files = [
            ("job/memory.max", "1000\n"),
            ("job/memory.current", "700\n"),
            ("job/memory.stat", "anon 400\ninactive_file 50\n"),
            ("job/inner/memory.max", "max\n"),
            ("job/inner/memory.current", "600\n"),
        ];
        let groups = Groups::new("memory2", &files);
        assert_eq!(headroom_in(&groups, "0::/job/inner\n"), Some(350));
        assert_eq!(headroom_in(&groups, "0::/other\n"), None);
    }

    #[test]
    fn version_1_limits_are_read() {
        let files = [
            ("memory/job/memory.limit_in_bytes", "1000\n"),
            ("memory/job/memory.usage_in_bytes", "1200\n"),
        ];
        let groups = Groups::new("memory1", &files);
        assert_eq!(headroom_in(&groups, "7:memory:/job\n"), Some(0));
    }

    #[test]
    fn this_machine_has_some() {
        assert!(available() > 0);
    }
}
