//! The number of processors that this process may use: its affinity mask, less what a
//! control group's quota takes away.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cgroups::{self, CgroupVersion, number};

/// The processors this process may run on, in ascending order.
pub fn allowed() -> Vec<usize> {
    affinity::allowed().unwrap_or_else(|| vec![0])
}

/// Moves this thread to `cpu`, if it may run there, and then lets the scheduler do as it likes.
pub fn visit(cpu: usize) {
    affinity::visit(cpu);
}

#[cfg(not(cobre_portable))]
mod affinity {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    pub(super) fn allowed() -> Option<Vec<usize>> {
        let mask = sched_getaffinity(None).ok()?;
        Some(
            (0..CpuSet::MAX_CPU)
                .filter(|&cpu| mask.is_set(cpu))
                .collect(),
        )
    }

    pub(super) fn visit(cpu: usize) {
        let Ok(allowed) = sched_getaffinity(None) else {
            return;
        };
        if cpu < CpuSet::MAX_CPU && allowed.is_set(cpu) {
            let mut one = CpuSet::new();
            one.set(cpu);
            // Only a matter of speed: where it is not permitted, nothing is lost.
            let _ = sched_setaffinity(None, &one);
            std::thread::yield_now();
            let _ = sched_setaffinity(None, &allowed);
        }
    }
}

#[cfg(cobre_portable)]
mod affinity {
    pub(super) fn allowed() -> Option<Vec<usize>> {
        let count = std::thread::available_parallelism().ok()?;
        Some((0..count.get()).collect())
    }

    pub(super) fn visit(_: usize) {}
}

/// Processors' worth of time that control groups grant this process; `None` if they set no limit.
pub fn quota() -> Option<f64> {
    tightest(&cgroups::limiting("cpu"))
}

/// Processors of this machine that the quota lets this job use, whatever this process's own mask.
pub fn machine() -> usize {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let count = count_list(online.trim()).unwrap_or_else(|| allowed().len());
    limited_by(quota(), count)
}

/// The number of processors in a list like `0-3,8`.
fn count_list(list: &str) -> Option<usize> {
    list.split(',')
        .map(|range| {
            let (low, high) = range.split_once('-').unwrap_or((range, range));
            let (low, high): (usize, usize) = (low.parse().ok()?, high.parse().ok()?);
            Some(high.checked_sub(low)? + 1)
        })
        .sum()
}

fn limited_by(quota: Option<f64>, count: usize) -> usize {
    quota
        .map_or(count, |quota| count.min(quota.ceil() as usize))
        .max(1)
}

/// The number of threads that can run at once: the smaller of both, at least 1.
pub fn usable() -> usize {
    limited_by(quota(), allowed().len())
}

/// The tightest quota of these groups.
fn tightest(groups: &[(CgroupVersion, PathBuf)]) -> Option<f64> {
    let quotas = groups.iter().filter_map(|(version, dir)| match version {
        CgroupVersion::Two => version_2(dir),
        CgroupVersion::One => version_1(dir),
    });
    quotas.reduce(f64::min)
}

fn version_2(dir: &Path) -> Option<f64> {
    let text = fs::read_to_string(dir.join("cpu.max")).ok()?;
    let (quota, period) = text.trim().split_once(' ')?;
    share(quota.parse().ok()?, period.parse().ok()?)
}

fn version_1(dir: &Path) -> Option<f64> {
    let (quota, period) = ("cpu.cfs_quota_us", "cpu.cfs_period_us");
    share(number(dir, quota)?, number(dir, period)?)
}

/// `None` for −1, which means no limit.
fn share(quota: f64, period: f64) -> Option<f64> {
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroups::fake::Groups;

    fn quota_below(root: &Path, own: &str) -> Option<f64> {
        tightest(&cgroups::below(root, own, "cpu"))
    }

    #[test]
    fn the_tightest_group_above_counts() {
        let groups = Groups::new(
            "v2",
            &[
                ("a/cpu.max", "150000 100000\n"),
                ("a/b/cpu.max", "max 100000\n"),
            ],
        );
        assert_eq!(quota_below(&groups.0, "0::/a/b\n"), Some(1.5));
        assert_eq!(quota_below(&groups.0, "0::/c\n"), None);
    }

    #[test]
    fn version_1_quotas_are_read() {
        let groups = Groups::new(
            "v1",
            &[
                ("cpu/job/cpu.cfs_quota_us", "50000\n"),
                ("cpu/job/cpu.cfs_period_us", "100000\n"),
                ("cpu/cpu.cfs_quota_us", "-1\n"),
                ("cpu/cpu.cfs_period_us", "100000\n"),
            ],
        );
        assert_eq!(
            quota_below(&groups.0, "4:memory:/x\n3:cpu,cpuacct:/job\n"),
            Some(0.5)
        );
    }

    #[test]
    fn a_group_outside_the_mount_still_sees_the_root() {
        let groups = Groups::new("root", &[("cpu.max", "200000 100000")]);
        assert_eq!(quota_below(&groups.0, "0::/docker/abc\n"), Some(2.0));
    }

    #[test]
    fn lists_of_processors_are_counted() {
        assert_eq!(count_list("0-3,8,10-11"), Some(7));
        assert_eq!(count_list("0"), Some(1));
        assert_eq!(count_list(""), None);
    }

    #[test]
    fn at_least_one_processor_is_usable() {
        assert!(usable() >= 1 && usable() <= allowed().len());
    }
}
