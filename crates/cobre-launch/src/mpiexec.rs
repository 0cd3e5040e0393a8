//! The launcher of an MPI library, which starts the ranks of an MPI job in place of the supervisor.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::binding::Bind;
use crate::error::LaunchError;
use crate::outcome::Status;
use crate::output::Output;

/// A family of MPI libraries and how its launcher is called.
struct Family {
    /// The beginning of its name in the library's version text.
    library: &'static str,
    /// Names of its own launchers; `mpiexec` may be anybody's.
    launchers: &'static [&'static str],
    /// Parts of the version text of a launcher called `mpiexec` if it is one of these.
    says: &'static [&'static str],
    package: &'static str,
}

const FAMILIES: [Family; 2] = [
    Family {
        library: "Open MPI",
        launchers: &["mpiexec.openmpi", "orterun", "prterun"],
        says: &["Open MPI", "OpenRTE", "PRRTE"],
        package: "openmpi-bin",
    },
    // Also the libraries made from MPICH, all of which have its launcher.
    Family {
        library: "",
        launchers: &["mpiexec.mpich", "mpiexec.hydra"],
        says: &["HYDRA", "Intel(R) MPI"],
        package: "mpich",
    },
];

/// The launcher of the MPI library of this build.
pub(crate) struct Mpiexec {
    pub(crate) name: &'static str,
    open_mpi: bool,
}

impl Mpiexec {
    /// Finds the launcher that belongs to `library`, as the library calls itself.
    pub(crate) fn find(library: &str) -> Result<Self, LaunchError> {
        Self::find_among(library, installed, says)
    }

    fn find_among(
        library: &str,
        installed: impl Fn(&str) -> bool,
        says: impl Fn(&str) -> String,
    ) -> Result<Self, LaunchError> {
        let family = FAMILIES
            .iter()
            .find(|family| library.starts_with(family.library));
        let family = family.unwrap_or(&FAMILIES[1]);
        let own = family
            .launchers
            .iter()
            .copied()
            .find(|name| installed(name));
        let shared = || {
            let said = installed("mpiexec").then(|| says("mpiexec"))?;
            let fits = family.says.iter().any(|word| said.contains(word));
            fits.then_some("mpiexec")
        };
        match own.or_else(shared) {
            Some(name) => Ok(Self {
                name,
                open_mpi: family.library == "Open MPI",
            }),
            None => Err(LaunchError::MpiexecNotFound {
                library: library.lines().next().unwrap_or_default().to_owned(),
                looked: family.launchers.join(", "),
                package: family.package,
            }),
        }
    }

    /// Its arguments for `ranks` of a program, up to the program's name.
    pub(crate) fn arguments(&self, ranks: usize, bind: Bind, output: &Output) -> Vec<OsString> {
        let tagged = matches!(output, Output::Forward | Output::Logs(_));
        let cores = match bind {
            Bind::Cores(count) if self.open_mpi => format!("slot:PE={count}"),
            Bind::Cores(count) => format!("core:{count}"),
            _ => String::new(),
        };
        let mut words = match (self.open_mpi, bind) {
            (false, Bind::None) => vec![],
            (false, Bind::Core) => vec!["-bind-to", "core"],
            (false, Bind::Cores(_)) => vec!["-bind-to", &cores],
            (false, Bind::Socket) => vec!["-bind-to", "socket"],
            (false, Bind::Numa) => vec!["-bind-to", "numa"],
            (true, Bind::None) => vec!["--oversubscribe", "--bind-to", "none"],
            (true, Bind::Core) => vec!["--oversubscribe", "--bind-to", "core"],
            (true, Bind::Cores(_)) => vec!["--map-by", &cores, "--bind-to", "core"],
            (true, Bind::Socket) => vec!["--oversubscribe", "--bind-to", "socket"],
            (true, Bind::Numa) => vec!["--oversubscribe", "--bind-to", "numa"],
        };
        match self.open_mpi {
            false if tagged => words.push("-prepend-rank"),
            true if tagged => words.push("--tag-output"),
            _ => {}
        }
        if self.open_mpi && rustix::process::geteuid().is_root() {
            // Whoever runs this launcher as root means it.
            words.push("--allow-run-as-root");
        }
        let ranks = ranks.to_string();
        words.extend(["-n", &ranks]);
        words.into_iter().map(OsString::from).collect()
    }
}

/// The signal that killed a rank, as the launcher called `name` tells it by its own end: MPICH's
/// exits with the number of the signal, Open MPI's as a shell does. A rank that ends itself with
/// such a code, past all handlers, looks the same.
pub(crate) fn killed(name: &str, status: Status) -> Option<i32> {
    const FATAL: [i32; 9] = [
        libc::SIGILL,
        libc::SIGTRAP,
        libc::SIGABRT,
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGKILL,
        libc::SIGSEGV,
        libc::SIGPIPE,
        libc::SIGTERM,
    ];
    let Status::Exited(code) = status else {
        return None;
    };
    let signal = if FAMILIES[0].launchers.contains(&name) {
        code - 128
    } else {
        code
    };
    // A launcher called mpiexec may be either.
    let signal = if signal > 128 { signal - 128 } else { signal };
    FATAL.contains(&signal).then_some(signal)
}

fn installed(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| is_file(&directory.join(name)))
}

fn is_file(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file())
}

/// The version text that a launcher prints.
fn says(name: &str) -> String {
    let output = Command::new(name)
        .arg("--version")
        .stdin(Stdio::null())
        .output();
    output.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&output.stdout).into_owned(),
    )
}

/// The launchers of this machine, seen from one MPI library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MpiLaunchers {
    /// The launcher that belongs to the library.
    pub own: &'static str,
    /// The version text of the program `mpiexec`, if there is one.
    pub default: Option<String>,
    /// True if `mpiexec` belongs to the library too.
    pub default_fits: bool,
}

/// Finds the launcher of `library`, as the library calls itself.
///
/// # Errors
/// [`LaunchError::MpiexecNotFound`], which says what to install.
pub fn mpi_launchers(library: &str) -> Result<MpiLaunchers, LaunchError> {
    let found = Mpiexec::find(library)?;
    let said = says("mpiexec");
    let says = if found.open_mpi {
        FAMILIES[0].says
    } else {
        FAMILIES[1].says
    };
    let first = said.lines().find(|line| !line.trim().is_empty());
    Ok(MpiLaunchers {
        own: found.name,
        default: first.map(|line| line.trim().trim_end_matches(':').to_owned()),
        default_fits: says.iter().any(|word| said.contains(word)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MPICH: &str = "MPICH Version:\t4.0.2";
    const OPEN_MPI: &str = "Open MPI v4.1.4, package: Debian";

    fn found(library: &str, installed: &[&str], version: &str) -> Result<&'static str, String> {
        let launcher = Mpiexec::find_among(
            library,
            |name| installed.contains(&name),
            |_| version.to_owned(),
        );
        launcher
            .map(|found| found.name)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_librarys_own_launcher_is_taken() {
        let both = ["mpiexec", "mpiexec.mpich", "mpiexec.openmpi"];
        assert_eq!(found(MPICH, &both, ""), Ok("mpiexec.mpich"));
        assert_eq!(found(OPEN_MPI, &both, ""), Ok("mpiexec.openmpi"));
    }

    #[test]
    fn mpiexec_is_taken_only_if_it_belongs_to_the_library() {
        let hydra = "HYDRA build details:\n";
        assert_eq!(found(MPICH, &["mpiexec"], hydra), Ok("mpiexec"));
        let text = found(OPEN_MPI, &["mpiexec"], hydra).unwrap_err();
        assert!(
            text.contains("Open MPI") && text.contains("openmpi-bin"),
            "{text}"
        );
    }

    #[test]
    fn the_signal_that_killed_a_rank_is_read_from_its_launchers_code() {
        let exited = Status::Exited;
        assert_eq!(killed("mpiexec.mpich", exited(9)), Some(libc::SIGKILL));
        assert_eq!(killed("mpiexec.openmpi", exited(139)), Some(libc::SIGSEGV));
        assert_eq!(killed("mpiexec.openmpi", exited(9)), None);
        assert_eq!(killed("mpiexec", exited(137)), Some(libc::SIGKILL));
        assert_eq!(killed("mpiexec.mpich", exited(3)), None);
        assert_eq!(killed("mpiexec.mpich", Status::Killed(9)), None);
    }

    #[test]
    fn without_a_launcher_the_error_says_what_to_install() {
        let text = found(MPICH, &[], "").unwrap_err();
        assert!(
            text.contains("mpiexec.mpich") && text.contains("install mpich"),
            "{text}"
        );
    }
}
