//! The end of the horizon and the gap: terminal values, exported cuts, and the upper bound, from the outside.

#[allow(dead_code, reason = "shared by tests that each use a part of it")]
mod outputs;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use outputs::{finish, json, results};
use serde_json::Value;

fn example(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    root.join(name)
}

fn cobre(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cobre"));
    command.args(arguments);
    command
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A run of a problem with 40 iterations of 4 passes, as JSON.
fn run(problem: &Path, options: &[&str]) -> Output {
    let mut command = cobre(&["run", "--bound=0", "--forward-passes=4", "--iterations=40"]);
    finish(
        command
            .args(["--quiet", "--json"])
            .args(options)
            .arg(problem),
    )
}

fn number(value: &Value, key: &str) -> f64 {
    value[key]
        .as_f64()
        .unwrap_or_else(|| panic!("{key} in {value}"))
}

/// The example without its last two nodes.
fn shorter(directory: &Path) -> PathBuf {
    let text = std::fs::read_to_string(example("two_reservoirs.sof.json")).expect("it is there");
    let mut file: Value = serde_json::from_str(&text).expect("it is JSON");
    let nodes = file["nodes"].as_object_mut().expect("it has nodes");
    for last in ["wet4", "dry4"] {
        assert!(nodes.remove(last).is_some());
    }
    for last in ["wet3", "dry3"] {
        let node = nodes[last].as_object_mut().expect("a node");
        node.remove("successors");
    }
    let object = file.as_object_mut().expect("an object");
    object.remove("validation_scenarios");
    let path = directory.join("shorter.sof.json");
    std::fs::write(&path, file.to_string()).expect("it is written");
    path
}

#[test]
fn a_shorter_study_takes_the_cuts_of_a_longer_one() {
    let scratch = tempfile::tempdir().expect("a directory");
    let place = |name: &str| scratch.path().join(name).display().to_string();
    let (long, cuts) = (place("long"), place("cuts.json"));
    let whole = run(&example("two_reservoirs.sof.json"), &["--output", &long]);
    let whole = number(&json(&whole), "bound");
    let short = shorter(scratch.path());
    let alone = number(&json(&run(&short, &[])), "bound");
    assert!(alone < 0.9 * whole, "{alone} and {whole}");
    // Both last nodes take the cuts of one: those after a wet month.
    let wet = run(&short, &["--boundary", &long, "--boundary-stage=wet3"]);
    let wet = json(&wet);
    assert!(number(&wet, "bound") > alone);
    let dry = json(&run(
        &short,
        &["--boundary", &long, "--boundary-stage=dry3"],
    ));
    let between = number(&wet, "bound")..=number(&dry, "bound");
    assert!(between.contains(&whole), "{whole} in {between:?}");
    let exported = finish(&mut cobre(&["export-cuts", &long, &cuts]));
    assert_eq!(exported.status.code(), Some(0), "{exported:?}");
    // Nodes of SDDP.jl are numbers: the fourth is wet3.
    let read = json(&run(&short, &["--boundary", &cuts, "--boundary-stage=4"]));
    assert_eq!(read["policy_sha256"], wet["policy_sha256"]);
}

#[test]
fn a_policy_keeps_its_terminal_value() {
    let scratch = tempfile::tempdir().expect("a directory");
    let place = |name: &str| scratch.path().join(name).display().to_string();
    let (long, first) = (place("long"), place("first"));
    run(&example("two_reservoirs.sof.json"), &["--output", &long]);
    let short = shorter(scratch.path());
    let boundary = ["--boundary", &long, "--boundary-stage=dry3"];
    let trained = run(&short, &[&boundary[..], &["--output", &first]].concat());
    assert_eq!(trained.status.code(), Some(0), "{trained:?}");
    let simulate = ["--warm-start", &first, "--simulate-only", "--simulate=50"];
    let mut command = cobre(&["run", "--bound=0", "--quiet", "--json"]);
    let tried = finish(command.args(simulate).args(boundary).arg(&short));
    assert_eq!(
        json(&tried)["policy_sha256"],
        json(&trained)["policy_sha256"]
    );
    let mut command = cobre(&["run", "--bound=0", "--quiet"]);
    let without = finish(command.args(simulate).arg(&short));
    assert_eq!(without.status.code(), Some(1), "{without:?}");
    assert!(
        told(&without).contains("which nothing follows"),
        "{without:?}"
    );
}

#[test]
fn a_terminal_value_that_does_not_fit_is_refused() {
    let scratch = tempfile::tempdir().expect("a directory");
    let place = |name: &str| scratch.path().join(name).display().to_string();
    let short = shorter(scratch.path());
    let cuts = place("cuts.json");
    let other = r#"[{"node": "dry3", "single_cuts": [{"intercept": 5, "coefficients": {"upper": -1, "tank": -2}}]}]"#;
    std::fs::write(&cuts, other).expect("it is written");
    for (options, part) in [
        (
            ["--boundary", "/nowhere", "--boundary-stage=dry3"],
            "there is nothing",
        ),
        (
            ["--boundary", &cuts, "--boundary-stage=5"],
            "it has no node 5",
        ),
        (
            ["--boundary", &cuts, "--boundary-stage=dry3"],
            "it has no slopes of state lower, which the problem has\n  \
             it has slopes of state tank, which the problem does not have",
        ),
    ] {
        let refused = run(&short, &options);
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(told(&refused).contains(part), "{part}: {refused:?}");
    }
    let example = example("five-years").display().to_string();
    let strange = finish(&mut cobre(&["run", &example, "--boundary", &place("none")]));
    assert_eq!(strange.status.code(), Some(1), "{strange:?}");
    assert!(told(&strange).contains("policy.boundary"), "{strange:?}");
}

#[test]
fn exported_cuts_do_not_replace_a_file() {
    let scratch = tempfile::tempdir().expect("a directory");
    let place = |name: &str| scratch.path().join(name).display().to_string();
    let long = place("long");
    run(&example("two_reservoirs.sof.json"), &["--output", &long]);
    let csv = place("cuts.csv");
    let exported = finish(&mut cobre(&["export-cuts", &long, &csv, "--node=wet2"]));
    assert_eq!(exported.status.code(), Some(0), "{exported:?}");
    let text = std::fs::read_to_string(&csv).expect("it is written");
    let head = "node,iteration,pass,intercept,slope:";
    assert!(text.starts_with(head), "{text}");
    assert!(text.lines().count() > 1 && text.lines().skip(1).all(|line| line.starts_with("wet2,")));
    for (arguments, code, part) in [
        (
            &["export-cuts", &long, &csv][..],
            2,
            "something is there already",
        ),
        (&["export-cuts", &long, &place("cuts")], 64, "add --format"),
        (
            &["export-cuts", &long, &place("c.csv"), "--node=9"],
            1,
            "has no node 9",
        ),
        (
            &["export-cuts", &place("no"), &place("c.csv")],
            2,
            "manifest.json",
        ),
    ] {
        let refused = finish(&mut cobre(arguments));
        assert_eq!(refused.status.code(), Some(code), "{refused:?}");
        assert!(told(&refused).contains(part), "{refused:?}");
    }
    assert_eq!(std::fs::read_to_string(&csv).ok(), Some(text));
}

#[test]
fn the_upper_bound_has_the_same_bits_on_any_ranks_and_after_a_stop() {
    let scratch = tempfile::tempdir().expect("a directory");
    let problem = example("two_reservoirs.sof.json");
    let train = |name: &str, risk: &str, iterations: &str, layout: &[&str]| {
        let place = scratch.path().join(name);
        let mut command = cobre(&["run", "--bound=0", "--forward-passes=3", "--quiet"]);
        command.args(["--json", "--upper-bound=4", risk, iterations]);
        let done = finish(
            command
                .arg("--output")
                .arg(&place)
                .args(layout)
                .arg(&problem),
        );
        assert_eq!(done.status.code(), Some(0), "{done:?}");
        (json(&done), results(&place))
    };
    for (place, risk) in ["--risk=expectation", "--risk=cvar:0.5,0.3"]
        .into_iter()
        .enumerate()
    {
        let name = |part: &str| format!("{part}{place}");
        let (line, whole) = train(&name("whole"), risk, "--iterations=14", &["--threads=1"]);
        let (upper, bound) = (number(&line, "upper_bound"), number(&line, "bound"));
        assert!(upper >= bound && upper < 1.2 * bound, "{upper} and {bound}");
        for (part, layout) in [
            ("threads", &["--threads=3"][..]),
            ("shm", &["-n=3", "--backend=shm"]),
            ("tcp", &["-n=2", "--backend=tcp", "--threads=2"]),
            ("mpi", &["-n=2", "--backend=mpi"]),
        ] {
            if part == "mpi" && !cobre_comm::available_backends().contains(&"mpi") {
                println!("skipped: mpi is not part of this build");
                continue;
            }
            let (_, found) = train(&name(part), risk, "--iterations=14", layout);
            assert_eq!(found, whole, "{part} {risk}");
        }
        train(
            &name("part"),
            risk,
            "--iterations=7",
            &["--checkpoint=iterations:3"],
        );
        let (_, resumed) = train(
            &name("part"),
            risk,
            "--iterations=14",
            &["--resume", "-n=2"],
        );
        assert_eq!(resumed, whole, "resumed, {risk}");
        let (_, again) = train(&name("part"), risk, "--iterations=14", &["--resume"]);
        assert_eq!(again, whole, "a finished run gives its result again");
    }
}

/// Options of ranks and threads that give the bits of one thread.
const LAYOUTS: [&[&str]; 5] = [
    &["--threads=3"],
    &["-n=2", "--backend=shm"],
    &["-n=3", "--backend=shm", "--threads=2"],
    &["-n=2", "--backend=tcp"],
    &["-n=2", "--backend=mpi"],
];

/// A run with results in a place of this name.
fn trained(scratch: &Path, name: &str, problem: &[&str], layout: &[&str]) -> Output {
    let mut command = cobre(&["run", "--forward-passes=3", "--quiet", "--json"]);
    let command = command.args(problem).args(layout);
    finish(command.arg("--output").arg(scratch.join(name)))
}

/// Compares runs of a problem on all layouts, and of one that was killed and goes on.
fn same_bits_everywhere(problem: &[&str]) {
    let scratch = tempfile::tempdir().expect("a directory");
    let scratch = scratch.path();
    let whole = trained(scratch, "whole", problem, &["--threads=1"]);
    assert_eq!(whole.status.code(), Some(0), "{whole:?}");
    let whole = results(&scratch.join("whole"));
    for (number, layout) in LAYOUTS.into_iter().enumerate() {
        let backend = layout.iter().find_map(|own| own.strip_prefix("--backend="));
        if backend.is_some_and(|name| !cobre_comm::available_backends().contains(&name)) {
            println!("skipped: {layout:?} is not part of this build");
            continue;
        }
        let name = number.to_string();
        let done = trained(scratch, &name, problem, layout);
        assert_eq!(done.status.code(), Some(0), "{layout:?}: {done:?}");
        let found = results(&scratch.join(&name));
        assert!(found == whole, "{problem:?} differs with {layout:?}");
    }
    let place = scratch.join("killed");
    let mut command = cobre(&["run", "--forward-passes=3", "--quiet", "--json"]);
    command.args(problem).arg("--checkpoint=iterations:1");
    let mut child = command
        .arg("--output")
        .arg(&place)
        .spawn()
        .expect("cobre starts");
    let has_state = || {
        let states = std::fs::read_dir(place.join("checkpoint"))
            .into_iter()
            .flatten();
        let mut names = states.flatten().map(|entry| entry.path());
        names.any(|path| path.extension().is_some_and(|kind| kind == "state"))
    };
    while !has_state() && child.try_wait().expect("it is a child").is_none() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    // One that has ended already gives its result again.
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    let done = trained(scratch, "killed", problem, &["--resume", "-n=2"]);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert!(results(&place) == whole, "{problem:?} differs after a kill");
}

#[test]
fn a_cyclic_graph_has_the_same_bits_on_any_ranks_and_after_a_kill() {
    let problem = example("seasons.sof.json").display().to_string();
    let options = [
        "--bound=0",
        "--iterations=60",
        "--simulate=20",
        "--upper-bound=40",
    ];
    let few = "--upper-bound-states=8";
    same_bits_everywhere(&[&[&problem[..], few], &options[..]].concat());
}

#[test]
fn an_upper_bound_has_the_same_bits_after_a_kill() {
    let problem = example("two_reservoirs.sof.json").display().to_string();
    let options = [
        "--bound=0",
        "--iterations=40",
        "--upper-bound=5",
        "--simulate=5",
    ];
    same_bits_everywhere(&[&[&problem[..]], &options[..]].concat());
}

#[test]
fn regimes_of_inflows_have_the_same_bits_on_any_ranks_and_after_a_kill() {
    let scratch = tempfile::tempdir().expect("a directory");
    let case = scratch.path().join("case").display().to_string();
    let made = finish(&mut cobre(&["init", "wet-and-dry", &case]));
    assert_eq!(made.status.code(), Some(0), "{made:?}");
    same_bits_everywhere(&[&case, "--iterations=30", "--simulate=20"]);
    // Bounds meet around the cost, in spite of 23 nodes in 12 stages.
    let options = [
        "run",
        "--quiet",
        "--json",
        "--iterations=60",
        "--upper-bound=60",
    ];
    let line = json(&finish(cobre(&options).arg(&case)));
    let (bound, upper) = (number(&line, "bound"), number(&line, "upper_bound"));
    assert!(bound <= upper && upper < 1.1 * bound, "{bound} and {upper}");
}

#[test]
fn a_report_of_a_number_of_stages_shows_no_gap() {
    let scratch = tempfile::tempdir().expect("a directory");
    let problem = example("seasons.sof.json").display().to_string();
    for (name, stages, gap) in [
        ("all", None, true),
        ("part", Some("--simulate-stages=24"), false),
    ] {
        let place = scratch.path().join(name);
        let mut command = cobre(&["run", &problem, "--bound=0", "--iterations=20", "--quiet"]);
        command
            .args(["--simulate=30", "--output"])
            .arg(&place)
            .args(stages);
        let done = finish(&mut command);
        assert_eq!(done.status.code(), Some(0), "{done:?}");
        let written = finish(cobre(&["report"]).arg(&place));
        assert_eq!(written.status.code(), Some(0), "{written:?}");
        let page = std::fs::read_to_string(place.join("report.html")).expect("it is written");
        assert_eq!(page.contains("mean above bound"), gap, "{name}");
        assert_eq!(page.contains("of 24 stages"), !gap, "{name}");
    }
}
