//! The problems of `cobre bench sddp`: made-up systems, or one of the user's.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use cobre_case::Options;
use cobre_case::sample::{Hydrothermal, hydrothermal};
use cobre_case::template::{CaseFiles, Template};
use cobre_sddp::Problem;

use crate::exit;

/// A problem to measure, with its forward passes.
pub(super) struct BenchProblem {
    pub(super) name: String,
    pub(super) problem: Problem,
    pub(super) passes: NonZeroUsize,
}

/// A made-up system.
#[derive(Debug, Clone, Copy)]
pub(super) struct BenchSystem {
    name: &'static str,
    source: SystemSource,
    passes: NonZeroUsize,
}

/// The source of a made-up system.
#[derive(Debug, Clone, Copy)]
enum SystemSource {
    Made(Hydrothermal),
    /// A case like that of `cobre init large`, of another size.
    Case {
        hydros: usize,
        hyperplanes: bool,
    },
}

const FOUR: NonZeroUsize = NonZeroUsize::new(4).unwrap();

/// Four regions with a reservoir each.
const SMALL: Hydrothermal = Hydrothermal {
    stages: 12,
    regions: 4,
    reservoirs: 4,
    thermals: 126,
    blocks: 1,
    lags: 0,
    openings: 10,
    known_start: false,
};

const fn made(name: &'static str, size: Hydrothermal, passes: NonZeroUsize) -> BenchSystem {
    BenchSystem {
        name,
        source: SystemSource::Made(size),
        passes,
    }
}

const fn case(name: &'static str, hydros: usize, hyperplanes: bool) -> BenchSystem {
    BenchSystem {
        name,
        source: SystemSource::Case {
            hydros,
            hyperplanes,
        },
        passes: FOUR,
    }
}

/// The systems of the benchmark; the first two by default.
const SYSTEMS: [BenchSystem; 13] = [
    made("10x4", SMALL, FOUR),
    made(
        "82x1",
        Hydrothermal {
            openings: 82,
            known_start: true,
            ..SMALL
        },
        NonZeroUsize::MIN,
    ),
    made("par1", Hydrothermal { lags: 1, ..SMALL }, FOUR),
    made("par6", Hydrothermal { lags: 6, ..SMALL }, FOUR),
    made(
        "60r3b",
        Hydrothermal {
            reservoirs: 60,
            thermals: 40,
            blocks: 3,
            openings: 20,
            ..SMALL
        },
        NonZeroUsize::MIN,
    ),
    case("large30", 30, false),
    case("large60", 60, false),
    case("large100", 100, false),
    case("large160", 160, false),
    case("planes30", 30, true),
    case("planes60", 60, true),
    case("planes100", 100, true),
    case("planes160", 160, true),
];

/// The system of this name.
pub(super) fn system(name: &str) -> Result<BenchSystem, String> {
    let found = SYSTEMS.into_iter().find(|system| system.name == name);
    let names = SYSTEMS.map(|system| system.name).join(", ");
    found.ok_or_else(|| format!("one of {names} is expected"))
}

impl BenchSystem {
    /// The systems that were asked for, or the usual ones.
    pub(super) fn asked(names: &[Self]) -> Vec<Self> {
        if names.is_empty() {
            SYSTEMS[..2].to_vec()
        } else {
            names.to_vec()
        }
    }

    /// Makes the problem.
    pub(super) fn make(&self) -> Result<BenchProblem, String> {
        let problem = match self.source {
            SystemSource::Made(size) => hydrothermal(size).map_err(|errors| errors.to_string())?,
            SystemSource::Case {
                hydros,
                hyperplanes,
            } => {
                let case = WrittenCase::new(self.name, Template::grown(hydros, hyperplanes))?;
                read(&case.path)?
            }
        };
        Ok(BenchProblem {
            name: self.name.to_owned(),
            problem,
            passes: self.passes,
        })
    }
}

/// A case or StochOptFormat file of the user's.
pub(super) fn own_problem(path: &Path, passes: NonZeroUsize) -> Result<BenchProblem, String> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    Ok(BenchProblem {
        name: name.into_owned(),
        problem: read(path)?,
        passes,
    })
}

fn read(path: &Path) -> Result<Problem, String> {
    let options = Options {
        bound: Some(0.0),
        ..Options::default()
    };
    cobre_case::read(path, &options).map_err(|error| exit::told(&error))
}

/// A case in a directory of its own below that of temporary files; it goes when it is dropped.
struct WrittenCase {
    path: PathBuf,
    files: CaseFiles,
}

impl WrittenCase {
    fn new(name: &str, files: CaseFiles) -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("cobre-{name}-{}", std::process::id()));
        let written = files.write(&path);
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(Self { path, files })
    }
}

impl Drop for WrittenCase {
    fn drop(&mut self) {
        // File by file: nothing else is in the way of the directories.
        let mut folders = vec![self.path.clone()];
        for (file, _) in self.files.iter() {
            let file = self.path.join(file);
            let _ = std::fs::remove_file(&file);
            folders.extend(file.parent().map(Path::to_path_buf));
        }
        folders.sort_unstable();
        folders.dedup();
        for folder in folders.iter().rev() {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_case_is_sound_and_leaves_nothing_behind() {
        for name in ["large30", "planes30"] {
            let made = system(name).expect("there is one").make();
            let problem = made.expect("it is sound").problem;
            assert_eq!(problem.states.len(), 60, "30 storages and 30 lags");
            let path = std::env::temp_dir().join(format!("cobre-{name}-{}", std::process::id()));
            assert!(!path.exists(), "{}", path.display());
        }
    }
}
