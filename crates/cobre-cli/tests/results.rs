//! `cobre summary` and `cobre compare` from the outside.

#[allow(dead_code, reason = "shared by tests that each use a part of it")]
mod outputs;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use outputs::finish;

fn cobre(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cobre"));
    command.args(arguments);
    command
}

fn example(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    root.join(name)
}

/// Trains and simulates an example.
fn run(name: &str, options: &[&str], output: &Path) {
    let mut command = cobre(&["run", "--quiet", "--checkpoint=none", "--iterations=4"]);
    command.args(options).arg("--output").arg(output);
    let finished = finish(command.arg(example(name)));
    assert_eq!(finished.status.code(), Some(0), "{finished:?}");
}

fn lines(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn compare(one: &Path, other: &Path) -> Output {
    finish(cobre(&["compare"]).arg(one).arg(other))
}

#[test]
fn a_summary_shows_the_essentials_in_eighty_columns() {
    let directory = tempfile::tempdir().expect("a directory");
    let (case, file) = (directory.path().join("a"), directory.path().join("b"));
    run("four-regions", &["--simulate=40", "-n2"], &case);
    run(
        "two_reservoirs.sof.json",
        &["--bound=0", "--simulate=9"],
        &file,
    );
    let shown = finish(cobre(&["summary"]).arg(&case));
    assert_eq!(shown.status.code(), Some(0), "{shown:?}");
    let text = lines(&shown);
    for part in [
        "(hydrothermal)",
        "ranks       2 on shm",
        "4 iterations",
        "convergence",
        "costs of 40 scenarios",
        "thermal",
        "water in all reservoirs",
        "deficit",
        "marginal cost",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    // What a policy is worth stands beside the bound, as run.json has them.
    let run = std::fs::read_to_string(case.join("run.json")).expect("it is there");
    let run: serde_json::Value = serde_json::from_str(&run).expect("it is JSON");
    let found = |place: &str| run.pointer(place).and_then(serde_json::Value::as_f64);
    for place in ["/bound", "/estimate/mean"] {
        // Five digits, in millions or billions.
        let value = found(place).expect("a number");
        let unit = if value.abs() < 1e9 { 1e6 } else { 1e9 };
        let digits = 4 - (value / unit).abs().log10().floor() as usize;
        let value = format!("{:.digits$}", value / unit);
        assert!(text.contains(&value), "{place} is missing in\n{text}");
    }
    let path = case.display().to_string();
    let own = |line: &&str| !line.contains(&path);
    let widest = text
        .lines()
        .filter(own)
        .map(|line| line.chars().count())
        .max();
    assert!(widest <= Some(80), "{text}");
    let text = lines(&finish(cobre(&["summary"]).arg(&file)));
    for part in ["value of 9 scenarios", "states after stage 4", "upper"] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
}

#[test]
fn runs_compare_equal_on_any_ranks_and_different_with_another_seed() {
    let directory = tempfile::tempdir().expect("a directory");
    let places = ["a", "b", "c", "d"].map(|name| directory.path().join(name));
    let [one, same, other, none] = &places;
    run("cascade", &["--simulate=33", "--threads=1"], one);
    run("cascade", &["--simulate=33", "-n3", "--backend=tcp"], same);
    run("cascade", &["--simulate=33", "--seed=5"], other);
    run("cascade", &["--simulate=0"], none);
    let equal = compare(one, same);
    assert_eq!(equal.status.code(), Some(0), "{equal:?}");
    assert!(lines(&equal).contains("the same bits in"), "{equal:?}");
    assert!(lines(&equal).contains("tcp"), "{equal:?}");
    let different = compare(one, other);
    assert_eq!(different.status.code(), Some(1), "{different:?}");
    for part in ["simulation/costs.parquet", "bound", "thermal", "seed"] {
        assert!(lines(&different).contains(part), "{part}: {different:?}");
    }
    let without = compare(one, none);
    assert_eq!(without.status.code(), Some(1), "{without:?}");
    assert!(lines(&without).contains("only one"), "{without:?}");
    // Where nothing was simulated nothing is known of costs; they are not zero.
    assert!(!lines(&without).contains("-100"), "{without:?}");
    let shown = lines(&finish(cobre(&["summary"]).arg(none)));
    assert!(shown.contains("simulation  none"), "{shown}");
}

#[test]
fn a_table_that_both_runs_have_lost_is_missed() {
    let directory = tempfile::tempdir().expect("a directory");
    let places = ["a", "b"].map(|name| directory.path().join(name));
    for place in &places {
        run("one-reservoir", &["--simulate=5"], place);
        std::fs::remove_file(place.join("simulation/buses.parquet")).expect("it is there");
    }
    let compared = compare(&places[0], &places[1]);
    assert_eq!(compared.status.code(), Some(1), "{compared:?}");
    let text = told(&compared);
    assert!(
        text.contains("simulation/buses.parquet: it is missing"),
        "{text}"
    );
}

#[test]
fn what_training_started_from_is_compared() {
    let directory = tempfile::tempdir().expect("a directory");
    let [one, lower, warm] = ["a", "b", "c"].map(|name| directory.path().join(name));
    let file = "two_reservoirs.sof.json";
    run(file, &["--bound=0"], &one);
    run(file, &["--bound=-1000"], &lower);
    let start = format!("--warm-start={}", one.display());
    run(file, &["--bound=0", &start], &warm);
    for (other, name) in [(&lower, "  problem "), (&warm, "  warm start ")] {
        let text = lines(&compare(&one, other));
        assert!(text.contains(name), "{name} is missing in\n{text}");
    }
}

#[test]
fn differences_are_relative_to_the_values() {
    let directory = tempfile::tempdir().expect("a directory");
    let [one, other] = ["a", "b"].map(|name| directory.path().join(name));
    // With one pass there is no half-width, with two there is.
    run("one-reservoir", &["--forward-passes=1"], &one);
    run("one-reservoir", &["--forward-passes=2"], &other);
    let text = lines(&compare(&one, &other));
    let row = text
        .lines()
        .find(|line| line.contains("training/convergence"));
    let row = row.unwrap_or_else(|| panic!("{text}"));
    assert!(
        row.contains("estimate_half_width_95") && row.ends_with("inf"),
        "{row}"
    );
}

#[test]
fn names_are_shown_whatever_is_in_them() {
    let directory = tempfile::tempdir().expect("a directory");
    let [file, output] = ["x.sof.json", "out"].map(|name| directory.path().join(name));
    let text = std::fs::read_to_string(example("two_reservoirs.sof.json")).expect("it is there");
    // A decision and a state; the sets of the file have a key of the state's name.
    let names = [
        (r#""gas""#, r#""a \"b\",\n../c.parquet,""#),
        (
            r#""upper": 60.0, "lower""#,
            r#""\u001b[31mred": 60.0, "lower""#,
        ),
        (r#""upper": {"in""#, r#""\u001b[31mred": {"in""#),
    ];
    let text = names
        .iter()
        .fold(text, |text, (name, odd)| text.replace(name, odd));
    std::fs::write(&file, text).expect("it is written");
    let options = ["--bound=0", "--simulate=3", "--csv"];
    run(file.to_str().expect("text"), &options, &output);
    let shown = finish(cobre(&["summary"]).arg(&output));
    assert_eq!(shown.status.code(), Some(0), "{shown:?}");
    assert!(lines(&shown).contains("[31mred"), "{shown:?}");
    assert!(
        !lines(&shown).contains('\u{1b}'),
        "it commands the terminal"
    );
    let report = finish(cobre(&["report"]).arg(&output));
    assert_eq!(report.status.code(), Some(0), "{report:?}");
    assert_eq!(compare(&output, &output).status.code(), Some(0));
}

#[test]
fn buses_of_one_name_are_told_apart() {
    let directory = tempfile::tempdir().expect("a directory");
    let [case, output] = ["case", "out"].map(|name| directory.path().join(name));
    let init = finish(cobre(&["init", "four-regions"]).arg(&case));
    assert_eq!(init.status.code(), Some(0), "{init:?}");
    let place = case.join("system/buses.json");
    let text = std::fs::read_to_string(&place).expect("it is there");
    std::fs::write(&place, text.replace("\"coast\"", "\"south\"")).expect("it is written");
    run(case.to_str().expect("text"), &["--simulate=4"], &output);
    let text = lines(&finish(cobre(&["summary"]).arg(&output)));
    let (_, costs) = text.split_once("marginal cost").expect("it has them");
    let south = costs.lines().filter(|line| line.starts_with("  south"));
    assert_eq!(south.count(), 2, "{text}");
}

#[test]
fn a_second_run_leaves_nothing_of_the_first() {
    let directory = tempfile::tempdir().expect("a directory");
    let (again, fresh) = (directory.path().join("a"), directory.path().join("b"));
    run("one-reservoir", &["--simulate=5", "--csv"], &again);
    run("one-reservoir", &["--simulate=0"], &again);
    run("one-reservoir", &["--simulate=0"], &fresh);
    let names = |place: &Path| outputs::files(place).into_keys().collect::<Vec<_>>();
    assert_eq!(names(&again), names(&fresh));
    let shown = lines(&finish(cobre(&["summary"]).arg(&again)));
    assert!(shown.contains("no scenarios were simulated"), "{shown}");
}

#[test]
fn what_is_no_result_or_is_damaged_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let good = directory.path().join("good");
    run("one-reservoir", &["--simulate=5"], &good);
    let refused = |place: &Path, part: &str| {
        for finished in [
            finish(cobre(&["summary"]).arg(place)),
            compare(&good, place),
        ] {
            assert_eq!(finished.status.code(), Some(1), "{finished:?}");
            let text = told(&finished);
            assert!(
                text.contains(part) && !text.contains("panicked"),
                "{part}: {text}"
            );
        }
    };
    refused(
        &directory.path().join("nothing"),
        "there is no such directory",
    );
    refused(&example("cascade"), "it does not hold the results of a run");
    let files = outputs::files(&good);
    for name in files.keys().filter(|name| name.as_str() != ".lock") {
        // Tables that a summary does not read are compared byte by byte, which is no error.
        let read = [
            "run.json",
            "dictionary.csv",
            "convergence.parquet",
            "paths.parquet",
            "buses.parquet",
        ];
        if !read.iter().any(|part| name.ends_with(part)) {
            continue;
        }
        let place = directory.path().join("bad");
        for (name, bytes) in &files {
            std::fs::create_dir_all(place.join(name).parent().expect("it has one")).expect("made");
            std::fs::write(place.join(name), bytes).expect("written");
        }
        let half = &files[name][..files[name].len() / 2];
        std::fs::write(place.join(name), half).expect("written");
        let finished = finish(cobre(&["summary"]).arg(&place));
        if name != "dictionary.csv" {
            assert_eq!(finished.status.code(), Some(1), "{name}: {finished:?}");
            assert!(
                told(&finished).contains(name.as_str()),
                "{name}: {finished:?}"
            );
        }
        assert!(
            !told(&finished).contains("panicked"),
            "{name}: {finished:?}"
        );
        assert_eq!(compare(&good, &place).status.code(), Some(1), "{name}");
        std::fs::remove_file(place.join("run.json")).expect("removed");
        refused(&place, "the run has not finished");
    }
}

#[test]
fn tables_of_results_that_are_damaged_anywhere_are_an_error_and_never_a_panic() {
    let directory = tempfile::tempdir().expect("a directory");
    let (one, other) = (directory.path().join("a"), directory.path().join("b"));
    for place in [&one, &other] {
        run("cascade", &["--simulate=5", "--threads=1"], place);
    }
    for name in [
        "training/convergence",
        "simulation/paths",
        "simulation/costs",
    ] {
        let place = one.join(format!("{name}.parquet"));
        let whole = std::fs::read(&place).expect("it is there");
        for round in 0..12 {
            let mut bytes = whole.clone();
            let at = round * 7919 % bytes.len();
            bytes[at] ^= 0x55;
            std::fs::write(&place, &bytes).expect("it is written");
            let shown = finish(cobre(&["summary"]).arg(&one));
            let compared = compare(&one, &other);
            for output in [shown, compared] {
                let code = output.status.code();
                assert!(
                    code.is_some_and(|code| code <= 2),
                    "{name}, {at}: {output:?}"
                );
                let told = told(&output);
                assert!(!told.contains("panicked"), "{name}, {at}: {told}");
            }
        }
        std::fs::write(&place, &whole).expect("it is written");
    }
    // A pipe in the place of a table is not waited for.
    let place = one.join("simulation/paths.parquet");
    std::fs::remove_file(&place).expect("it was there");
    let made = Command::new("mkfifo").arg(&place).status();
    assert!(made.expect("mkfifo is there").success());
    let shown = finish(cobre(&["summary"]).arg(&one));
    assert!(
        told(&shown).contains("it is a pipe; a file is expected"),
        "{shown:?}"
    );
}
