//! The effects of a launch on the process it runs in: none that last. One test, as it looks at the
//! whole process.

use cobre_launch::{Launch, Output};
use rustix::process::{Resource, getrlimit};

fn script(ranks: usize, words: &str) -> Launch {
    Launch::new("sh", ranks)
        .args(["-c", words])
        .output(Output::Capture { limit: 1 << 20 })
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn caught_signals(status: &str) -> String {
    let line = status.lines().find(|line| line.starts_with("SigCgt"));
    line.unwrap().to_owned()
}

#[test]
fn a_launch_leaves_limits_descriptors_children_and_signals_as_they_were() {
    // The first handled launch keeps its self-pipe.
    script(1, "exit 0").handle_signals().run().unwrap();

    let before = (open_files(), getrlimit(Resource::Nofile));
    let status = caught_signals(&std::fs::read_to_string("/proc/self/status").unwrap());
    for round in 0..20 {
        let launch = script(4, "exit $COBRE_LAUNCH_RANK");
        let launch = if round % 2 == 0 {
            launch
        } else {
            launch.handle_signals()
        };
        launch.run().unwrap();
        Launch::new("no-such-program", 4).run().unwrap_err();
    }
    assert_eq!((open_files(), getrlimit(Resource::Nofile)), before);
    assert_eq!(
        caught_signals(&std::fs::read_to_string("/proc/self/status").unwrap()),
        status
    );

    let words = format!("cat /proc/{}/status", std::process::id());
    let seen = script(1, &words).run().unwrap();
    let seen = String::from_utf8(seen.ranks[0].stdout.clone()).unwrap();
    assert_eq!(caught_signals(&seen), status, "no handler unless asked for");

    let children = std::fs::read_dir("/proc/self/task")
        .unwrap()
        .flatten()
        .map(|thread| std::fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    assert_eq!(children.collect::<String>(), "");
}
