//! `cobre doctor`: what this machine and this build can do, and what will get in the way.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};

use cobre_comm::{
    BackendError, BackendKind, BackendSelection, ClassifiedError, Detector, Environment,
    available_backends, cpus,
};
use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use serde_json::{Value, json};

use crate::exit::{self, say};

/// One line of the report.
struct MachineCheck {
    subject: &'static str,
    text: String,
    /// The remedy, if it is needed.
    warning: Option<String>,
}

/// Reports what this machine and this build can do, and what would get in the way
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Prints one line of JSON instead
    #[arg(long)]
    json: bool,
}

/// Prints the report; fails if the environment selects no usable backend.
pub(crate) fn run(args: &Args) -> u8 {
    let env = Environment::process();
    let selected =
        BackendKind::from_environment(&env).and_then(|kind| BackendSelection::new(kind, &env));
    if args.json {
        exit::say_json(&report(&selected));
    } else {
        say!("cobre {}", env!("CARGO_PKG_VERSION"));
        for finding in machine() {
            say!("{:<16} {}", finding.subject, finding.text);
            if let Some(warning) = finding.warning {
                say!("{:<16} warning: {warning}", "");
            }
        }
        let selection = match &selected {
            Ok(selection) => format!("{} ({})", selection.kind.name(), selection.reason),
            Err(_) => "none".to_owned(),
        };
        say!("{:<16} {selection}", "selection");
    }
    match selected {
        Ok(_) => exit::DONE,
        Err(error) => exit::fail(exit::INVALID_INPUT, "cobre doctor", &exit::told(&error)),
    }
}

/// The line of JSON.
fn report(selected: &Result<BackendSelection, BackendError>) -> Value {
    let machine = machine().into_iter().map(
        |found| json!({"subject": found.subject, "text": found.text, "warning": found.warning}),
    );
    let mut report = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "backends": available_backends(),
        "machine": machine.collect::<Vec<_>>(),
    });
    match selected {
        Ok(selection) => {
            report["selection"] =
                json!({"backend": selection.kind.name(), "reason": selection.reason});
        }
        Err(error) => {
            report["error"] = exit::error_json(error.kind(), &exit::told(error), error.fields());
        }
    }
    report
}

fn machine() -> Vec<MachineCheck> {
    vec![
        plain("backends", available_backends().join(", ")),
        mpi(),
        plain(
            "process manager",
            cobre_comm::process_manager(&Environment::process()),
        ),
        processors(),
        plain("NUMA nodes", numa_nodes()),
        plain("placement", placement()),
        plain("memory", memory()),
        shared_memory(),
        plain(
            "memfd",
            support(rustix::fs::memfd_create("cobre-doctor", MemfdFlags::CLOEXEC).err()),
        ),
        lost_ranks(),
        sockets(),
        open_files(),
        limit("processes", Resource::Nproc),
        limit("locked memory", Resource::Memlock),
        limit("core dumps", Resource::Core),
    ]
}

fn plain(subject: &'static str, text: String) -> MachineCheck {
    MachineCheck {
        subject,
        text,
        warning: None,
    }
}

/// The MPI library of this build, its launcher, and whether `mpiexec` is that one.
fn mpi() -> MachineCheck {
    let finding = |text, warning| MachineCheck {
        subject: "mpi",
        text,
        warning,
    };
    let Some(library) = cobre_comm::mpi_library() else {
        return finding("not in this build (feature `mpi`)".to_owned(), None);
    };
    match cobre_launch::mpi_launchers(&library) {
        Ok(launchers) => {
            let own = launchers.own;
            let strange = match launchers.default {
                Some(default) if !launchers.default_fits => Some(format!(
                    "mpiexec is another library's ({default}): use {own}"
                )),
                _ => None,
            };
            finding(format!("{library}, started by {own}"), strange)
        }
        Err(error) => {
            let text = format!("{library}, without its launcher");
            finding(text, Some(exit::told(&error)))
        }
    }
}

fn numa_nodes() -> String {
    let online = std::fs::read_to_string("/sys/devices/system/node/online");
    online.map_or_else(
        |_| "unknown: /sys/devices/system/node cannot be read".to_owned(),
        |nodes| match nodes.trim() {
            "0" => "one".to_owned(),
            several => format!("{several} (bind ranks or threads to them)"),
        },
    )
}

/// The processors of this process, and what they share.
fn placement() -> String {
    let mask = cobre_launch::processor_list(&cpus::allowed());
    let topology = cobre_launch::Topology::of_machine();
    format!("processors {mask}: {}", topology.summary())
}

fn processors() -> MachineCheck {
    let (allowed, usable) = (cpus::allowed().len(), cpus::usable());
    let quota = match cpus::quota() {
        Some(quota) => format!("control groups grant {quota:.2}"),
        None => "no control-group quota".to_owned(),
    };
    MachineCheck {
        subject: "processors",
        text: format!("{usable} usable ({allowed} allowed by affinity, {quota})"),
        warning: (usable < allowed)
            .then(|| format!("more than {usable} ranks × threads will wait for each other")),
    }
}

fn memory() -> String {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kibibytes = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    match (kibibytes("MemTotal:"), kibibytes("MemAvailable:")) {
        (Some(total), Some(free)) => {
            format!(
                "{} in all, {} available",
                size(total << 10),
                size(free << 10)
            )
        }
        _ => "unknown: /proc/meminfo cannot be read".to_owned(),
    }
}

fn shared_memory() -> MachineCheck {
    const ROOMY: u64 = 256 << 20;
    let finding = |text, warning| MachineCheck {
        subject: "/dev/shm",
        text,
        warning,
    };
    match rustix::fs::statvfs("/dev/shm") {
        Ok(stat) => {
            let (total, free) = (stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize);
            let text = format!("{} in all, {} free", size(total), size(free));
            let tight = "shared regions need room here: docker run --shm-size=2g, or a memory-backed \
                         emptyDir at /dev/shm in Kubernetes";
            finding(text, (free < ROOMY).then(|| tight.to_owned()))
        }
        Err(error) => {
            let text = format!("not usable: {error}");
            finding(
                text,
                Some("mount a tmpfs at /dev/shm to share memory by name".to_owned()),
            )
        }
    }
}

fn support(error: Option<Errno>) -> String {
    match error {
        None => "works".to_owned(),
        Some(error) => format!("not available: {error}"),
    }
}

fn lost_ranks() -> MachineCheck {
    let Some(detector) = cobre_comm::shm_detector() else {
        return plain("lost ranks", "no shm in this build (feature `shm`)".into());
    };
    let hang = "ranks that wait for one that died wait for ever: set a deadline";
    MachineCheck {
        subject: "lost ranks",
        text: format!("found by {detector}"),
        warning: (detector == Detector::Nothing).then(|| hang.to_owned()),
    }
}

/// Which of the two protocols ranks of this machine can meet over.
fn sockets() -> MachineCheck {
    let works = |address: IpAddr| TcpListener::bind((address, 0)).is_ok();
    let four = works(Ipv4Addr::LOCALHOST.into());
    let six = works(Ipv6Addr::LOCALHOST.into());
    let text = match (four, six) {
        (true, true) => "IPv4 and IPv6",
        (true, false) => "IPv4",
        (false, true) => "IPv6",
        (false, false) => "none",
    };
    let help = "the tcp backend needs a loopback interface: ip link set lo up";
    MachineCheck {
        subject: "loopback",
        text: text.to_owned(),
        warning: (!four && !six).then(|| help.to_owned()),
    }
}

fn open_files() -> MachineCheck {
    const ENOUGH: u64 = 1024;
    let limit = getrlimit(Resource::Nofile);
    let hard = limit.maximum.unwrap_or(u64::MAX);
    MachineCheck {
        subject: "open files",
        text: range(limit.current, limit.maximum),
        warning: (hard < ENOUGH).then(|| {
            format!("too few for 256 ranks under one launcher, which need {ENOUGH}: ulimit -Hn")
        }),
    }
}

fn limit(subject: &'static str, resource: Resource) -> MachineCheck {
    let limit = getrlimit(resource);
    plain(subject, range(limit.current, limit.maximum))
}

fn range(soft: Option<u64>, hard: Option<u64>) -> String {
    let number = |n: Option<u64>| n.map_or("unlimited".to_owned(), |n| n.to_string());
    format!("{} (at most {})", number(soft), number(hard))
}

fn size(bytes: u64) -> String {
    let gibibytes = bytes as f64 / f64::from(1 << 30);
    if gibibytes >= 1.0 {
        format!("{gibibytes:.1} GiB")
    } else {
        format!("{} MiB", bytes >> 20)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_well() {
        assert_eq!(size(64 << 20), "64 MiB");
        assert_eq!(size(3 << 29), "1.5 GiB");
    }

    #[test]
    fn every_finding_has_something_to_say() {
        for finding in machine() {
            assert!(!finding.text.is_empty(), "{}", finding.subject);
        }
    }
}
