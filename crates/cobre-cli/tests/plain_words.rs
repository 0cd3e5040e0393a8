//! What a new user reads: figures that agree everywhere, results in their place, words that fit the terminal.

#[allow(dead_code, reason = "shared by tests that each use a part of it")]
mod outputs;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use outputs::{finish, json};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(name)
}

fn cobre(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cobre"));
    command.args(arguments);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn done(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    text(&output.stdout)
}

#[test]
fn the_gap_has_one_sign_everywhere() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = directory.path().join("out");
    let mut command = cobre(&[
        "run",
        "--iterations=30",
        "--simulate=50",
        "--seed=1",
        "--json",
    ]);
    let run = finish(command.arg("--output").arg(&output).arg(example("cascade")));
    let told = done(&run);
    let line = told.lines().find(|line| line.starts_with("gap "));
    let line = line.unwrap_or_else(|| panic!("no gap in\n{told}"));
    let gap: f64 = line["gap".len()..]
        .trim()
        .trim_end_matches(" %")
        .parse()
        .expect(line);
    let figures = json(&run);
    let (bound, mean) = (&figures["bound"], &figures["estimate"]["mean"]);
    let (bound, mean) = (
        bound.as_f64().expect("a number"),
        mean.as_f64().expect("a number"),
    );
    assert!(
        (gap - 100.0 * (mean - bound) / bound).abs() < 1e-3,
        "{line}: {mean} {bound}"
    );
    done(&finish(cobre(&["report"]).arg(&output)));
    let page = std::fs::read_to_string(output.join("report.html")).expect("it is there");
    let same = format!("<dd>{gap:.2} %</dd>");
    assert!(page.contains(&same), "{same} is not in the report");
    let summary = done(&finish(cobre(&["summary"]).arg(&output)));
    let side = if gap < 0.0 { "below" } else { "above" };
    let same = format!("{:.3} % {side} the bound", gap.abs());
    assert!(summary.contains(&same), "{same}:\n{summary}");
}

#[test]
fn a_simulation_alone_names_the_policy_it_simulates() {
    let directory = tempfile::tempdir().expect("a directory");
    let (first, second) = (directory.path().join("a"), directory.path().join("b"));
    let case = example("one-reservoir");
    let mut command = cobre(&["run", "--iterations=6", "--simulate=8", "--json", "--quiet"]);
    let trained = json(&finish(command.arg("--output").arg(&first).arg(&case)));
    let mut command = cobre(&["run", "--simulate-only", "--simulate=8", "--json"]);
    let command = command.arg("--warm-start").arg(&first);
    let run = finish(command.arg("--output").arg(&second).arg(&case));
    let told = done(&run);
    let policy = trained["policy_sha256"].as_str().expect("a text");
    assert_eq!(json(&run)["policy_sha256"], policy);
    assert!(told.contains(policy), "{told}");
    assert!(told.contains("trained      nothing"), "{told}");
    assert!(!told.contains("iteration "), "{told}");
    let summary = done(&finish(cobre(&["summary"]).arg(&second)));
    assert!(summary.contains("training    none"), "{summary}");
    assert!(!summary.contains("iteration"), "{summary}");
    done(&finish(cobre(&["report"]).arg(&second)));
    let page = std::fs::read_to_string(second.join("report.html")).expect("it is there");
    for part in [
        "<dt>lower bound</dt>",
        "<dt>mean above bound</dt>",
        "trained nothing",
    ] {
        assert!(page.contains(part), "{part} is not in the report");
    }
    assert!(!page.contains("<dt>iterations</dt>"));
    let manifest = |of: &Path| std::fs::read(of.join("policy/manifest.json")).expect("it is there");
    assert_eq!(manifest(&first), manifest(&second));
}

#[test]
fn results_are_refused_inside_the_case_and_checkpoints_without_a_place() {
    let directory = tempfile::tempdir().expect("a directory");
    let case = directory.path().join("case");
    done(&finish(cobre(&["init", "one-reservoir"]).arg(&case)));
    for (options, part) in [
        (
            vec![
                "--output".to_owned(),
                case.join("results").display().to_string(),
            ],
            "inside the case",
        ),
        (
            vec!["--checkpoint=iterations:1".to_owned()],
            "add --output DIR",
        ),
    ] {
        let run = finish(cobre(&["run", "--iterations=1"]).args(&options).arg(&case));
        assert_eq!(run.status.code(), Some(64), "{run:?}");
        assert!(text(&run.stderr).contains(part), "{run:?}");
    }
    assert!(!case.join("results").exists());
}

#[test]
fn a_report_does_not_survive_the_next_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = directory.path().join("out");
    for _ in 0..2 {
        let mut command = cobre(&["run", "--iterations=2", "--simulate=3", "--quiet"]);
        done(&finish(
            command
                .arg("--output")
                .arg(&output)
                .arg(example("one-reservoir")),
        ));
        assert!(!output.join("report.html").exists());
        done(&finish(cobre(&["report"]).arg(&output)));
        assert!(output.join("report.html").exists());
    }
}

#[test]
fn an_interrupted_simulation_is_no_finished_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = directory.path().join("out");
    let mut command = cobre(&[
        "run",
        "--iterations=4",
        "--simulate=10000000",
        "--threads=1",
    ]);
    command
        .arg("--output")
        .arg(&output)
        .arg(example("five-years"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("it can be started");
    let policy = output.join("policy/manifest.json");
    let limit = Instant::now() + Duration::from_secs(120);
    while !policy.exists() {
        assert!(Instant::now() < limit, "training has not ended");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(500));
    let asked = Instant::now();
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.expect("it can be started").success());
    let run = child.wait_with_output().expect("it ends");
    let took = asked.elapsed();
    assert!(took < Duration::from_secs(20), "it took {took:?}");
    assert_eq!(run.status.code(), Some(5), "{run:?}");
    assert!(
        text(&run.stdout).contains("interrupted  in the simulation"),
        "{run:?}"
    );
    let facts = std::fs::read_to_string(output.join("run.json")).expect("it is there");
    let facts: serde_json::Value = serde_json::from_str(&facts).expect("it is JSON");
    assert_eq!(facts["interrupted"], "simulation");
    let summary = done(&finish(cobre(&["summary"]).arg(&output)));
    assert!(
        summary.contains("interrupted in the simulation"),
        "{summary}"
    );
}

#[test]
fn every_table_with_a_stage_has_its_number_and_its_date() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = directory.path().join("out");
    let mut command = cobre(&["run", "--iterations=2", "--simulate=2", "--quiet", "--csv"]);
    done(&finish(
        command.arg("--output").arg(&output).arg(example("cascade")),
    ));
    let mut checked = 0;
    for entry in std::fs::read_dir(output.join("simulation")).expect("it is there") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|ending| ending != "csv") {
            continue;
        }
        let table = std::fs::read_to_string(&path).expect("it is text");
        let mut lines = table.lines();
        let head: Vec<&str> = lines.next().expect("a header").split(',').collect();
        let Some(stage) = head.iter().position(|name| *name == "stage") else {
            continue;
        };
        let date = head
            .iter()
            .position(|name| *name == "start_date")
            .expect("a date");
        let first: Vec<&str> = lines.next().expect("a row").split(',').collect();
        assert_eq!(
            (first[stage], first[date]),
            ("0", "2026-01-01"),
            "{}",
            path.display()
        );
        if let Some(block) = head.iter().position(|name| *name == "block") {
            assert_eq!(first[block], "0", "{}", path.display());
        }
        checked += 1;
    }
    assert!(checked > 5, "{checked} tables");
}

#[test]
fn the_words_of_a_run_fit_eighty_columns_and_say_what_to_do_next() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut command = cobre(&[
        "run",
        "--iterations=3",
        "--simulate=20",
        "--output=out",
        "cascade",
    ]);
    std::os::unix::fs::symlink(example("cascade"), directory.path().join("cascade"))
        .expect("a link");
    let told = done(&finish(command.current_dir(directory.path())));
    for line in told.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    for part in [
        "million $",
        "cobre report out",
        "cobre summary out",
        "results      out",
    ] {
        assert!(told.contains(part), "{part} is missing in\n{told}");
    }
    assert!(
        !told.contains("HiGHS") && !told.contains("matrix"),
        "{told}"
    );
    let verbose = done(&finish(
        cobre(&["run", "-v", "--iterations=1"]).arg(example("cascade")),
    ));
    assert!(
        verbose.contains("HiGHS") && verbose.contains("numbers: matrix"),
        "{verbose}"
    );
}

#[test]
fn long_names_and_bounds_from_both_sides_fit_eighty_columns() {
    let directory = tempfile::tempdir().expect("a directory");
    let case = directory
        .path()
        .join("a-rather-long-name-of-a-problem.sof.json");
    std::os::unix::fs::symlink(example("two_reservoirs.sof.json"), &case).expect("a link");
    let name = case.file_name().expect("a name");
    let mut command = cobre(&[
        "run",
        "--bound=0",
        "--iterations=3",
        "--forward-passes=2",
        "--upper-bound=1",
        "--risk=cvar:0.5,0.3",
        "--simulate=1",
        "--output=out",
    ]);
    let told = done(&finish(command.arg(name).current_dir(directory.path())));
    for line in told.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    // Under a risk measure the bound can be on either side of the mean.
    assert!(
        told.contains("risk-adjusted") && !told.contains("above the mean"),
        "{told}"
    );
    assert!(told.contains("mean of 1 simulated scenario\n"), "{told}");
    let summary = done(&finish(
        cobre(&["summary", "out"]).current_dir(directory.path()),
    ));
    for part in [
        "1 scenario ",
        "3 iterations in",
        "risk-adjusted",
        "iteration limit",
    ] {
        assert!(summary.contains(part), "{part}: {summary}");
    }
    done(&finish(
        cobre(&["report", "out"]).current_dir(directory.path()),
    ));
    let page = std::fs::read_to_string(directory.path().join("out/report.html"));
    assert!(
        page.expect("it is there")
            .contains("<dt>lower bound, risk-adjusted</dt>")
    );
}

#[test]
fn the_price_of_truncation_is_in_no_figure() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = directory.path().join("out");
    let mut command = cobre(&[
        "run",
        "--iterations=3",
        "--simulate=100",
        "--json",
        "--quiet",
    ]);
    let figures = json(&finish(
        command
            .arg("--output")
            .arg(&output)
            .arg(example("five-years")),
    ));
    assert!(
        figures["fictitious_cost"]
            .as_f64()
            .is_some_and(|cost| cost > 0.0),
        "{figures}"
    );
    let summary = done(&finish(cobre(&["summary"]).arg(&output)));
    assert!(!summary.contains("inflow truncation"), "{summary}");
    done(&finish(cobre(&["report"]).arg(&output)));
    let page = std::fs::read_to_string(output.join("report.html")).expect("it is there");
    assert!(!page.contains("inflow truncation"));
    assert!(page.contains("\"Jan 2026\""), "charts have no months");
}

#[test]
fn tests_hear_interrupts_whoever_has_started_them() {
    let status = std::fs::read_to_string("/proc/self/status").expect("it is there");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = u64::from_str_radix(ignored.expect("a mask").trim(), 16).expect("a mask");
    assert_eq!(
        ignored & (1 << (2 - 1)),
        0,
        "SIGINT is ignored: .cargo/config.toml has no runner that sets it right"
    );
}

/// What a terminal of eighty columns gets from a run.
fn on_a_terminal(options: &str, directory: &Path) -> String {
    let cobre = env!("CARGO_BIN_EXE_cobre");
    let case = example("five-years");
    let words = format!(
        "stty cols 80; exec {cobre} run {} {options}",
        case.display()
    );
    let mut command = Command::new("script");
    command
        .args(["-qec", &words, "/dev/null"])
        .current_dir(directory);
    command.env("TERM", "xterm").stdin(Stdio::null());
    let run = finish(&mut command);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    text(&run.stdout)
}

#[test]
fn a_bar_shows_training_and_simulation_also_of_ranks_and_after_a_resume() {
    let directory = tempfile::tempdir().expect("a directory");
    for ranks in ["", "-n 2"] {
        let told = on_a_terminal(
            &format!("{ranks} --iterations 12 --simulate 400"),
            directory.path(),
        );
        assert!(told.contains("/12 iterations"), "{ranks}: {told}");
        assert!(told.contains("/400 scenarios"), "{ranks}: {told}");
    }
    on_a_terminal("--iterations 4 --simulate 0 --output out", directory.path());
    let told = on_a_terminal(
        "--iterations 9 --simulate 0 --output out --resume",
        directory.path(),
    );
    let first = told
        .find("/9 iterations")
        .unwrap_or_else(|| panic!("no bar: {told}"));
    assert!(
        told[..first].ends_with(" 4") || told[..first].ends_with(" 5"),
        "{told}"
    );
}

#[test]
fn a_bound_above_the_optimum_is_noticed() {
    let mut command = cobre(&["run", "--bound=5840", "--iterations=12", "--simulate=200"]);
    let run = finish(command.arg(example("two_reservoirs.sof.json")));
    let told = done(&run);
    assert!(
        text(&run.stderr).contains("wrong side of the estimate"),
        "{run:?}"
    );
    // A bound that does not hold is not praised as one.
    assert!(
        told.contains("not valid") && !told.contains("no policy"),
        "{told}"
    );
}
