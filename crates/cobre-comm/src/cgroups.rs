//! The control groups this process is in: where limits are written that `/proc` does not show.

use std::fs;
use std::path::{Path, PathBuf};

/// The version of the control groups, which decides the names of their files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CgroupVersion {
    One,
    Two,
}

/// The directories that may limit this process through `controller`, innermost first.
pub(crate) fn limiting(controller: &str) -> Vec<(CgroupVersion, PathBuf)> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    below(Path::new("/sys/fs/cgroup"), &own, controller)
}

/// As [`limiting`], for the hierarchies at `root` and the content `own` of `/proc/self/cgroup`.
pub(crate) fn below(root: &Path, own: &str, controller: &str) -> Vec<(CgroupVersion, PathBuf)> {
    let mut found = Vec::new();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else {
            continue;
        };
        // An empty list of controllers marks the unified hierarchy of version 2.
        let (version, hierarchy) = match controllers {
            "" => (CgroupVersion::Two, root.to_owned()),
            list if list.split(',').any(|name| name == controller) => {
                (CgroupVersion::One, root.join(controller))
            }
            _ => continue,
        };
        // Inside a container the group's path may lie outside the mount: then only the root shows.
        let innermost = hierarchy.join(group.trim_start_matches('/'));
        let above = innermost
            .ancestors()
            .take_while(|dir| dir.starts_with(&hierarchy));
        found.extend(above.map(|dir| (version, dir.to_owned())));
    }
    found
}

/// The number in a group's file; `None` if there is none, as for `max`.
pub(crate) fn number(dir: &Path, file: &str) -> Option<f64> {
    let text = fs::read_to_string(dir.join(file)).ok()?;
    text.trim().parse().ok()
}

/// Directories of files, for tests of what reads them.
#[cfg(test)]
pub(crate) mod fake {
    use super::{PathBuf, fs};

    /// Goes when it is dropped.
    pub(crate) struct Groups(pub(crate) PathBuf);

    impl Groups {
        pub(crate) fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let root = std::env::temp_dir().join(format!("cgroups-{name}-{}", std::process::id()));
            for (path, text) in files {
                let path = root.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Self(root)
        }
    }

    impl Drop for Groups {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}
