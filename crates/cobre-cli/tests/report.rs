//! `cobre report` from the outside: what a run leaves becomes a page, and what is damaged is refused.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use tempfile::TempDir;

fn cobre(arguments: &[&str]) -> Output {
    let program = Command::new(env!("CARGO_BIN_EXE_cobre"))
        .args(arguments)
        .output();
    program.expect("cobre starts")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are text")
}

fn run(case: &str, options: &[&str]) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    run_to(case, options, directory.path());
    directory
}

fn run_to(case: &str, options: &[&str], directory: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let case = root.join(case);
    let mut arguments = vec!["run", text(&case), "--output", text(directory)];
    arguments.extend(options);
    succeed(&arguments);
}

/// The results of a small run, shared by the tests that only read them.
fn results() -> &'static Path {
    static RESULTS: OnceLock<PathBuf> = OnceLock::new();
    RESULTS.get_or_init(|| {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report-results");
        if directory.exists() {
            std::fs::remove_dir_all(&directory).expect("an earlier test has left it");
        }
        let options = ["--iterations", "4", "--simulate", "12"];
        run_to("cascade", &options, &directory);
        directory
    })
}

/// A copy of the results, to be damaged.
fn copy() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    for folder in ["training", "policy", "simulation"] {
        std::fs::create_dir(directory.path().join(folder)).expect("a folder");
    }
    for name in files() {
        let to = directory.path().join(&name);
        std::fs::copy(results().join(&name), to).expect("a copy");
    }
    directory
}

/// The files that a report is made from.
fn files() -> Vec<PathBuf> {
    let mut files = vec![
        PathBuf::from("run.json"),
        "dictionary.csv".into(),
        "policy/manifest.json".into(),
        "training/convergence.parquet".into(),
    ];
    let simulation = std::fs::read_dir(results().join("simulation")).expect("it simulated");
    for entry in simulation {
        files.push(Path::new("simulation").join(entry.expect("a file").file_name()));
    }
    files.sort();
    files
}

/// Asserts that a command succeeds.
fn succeed(arguments: &[&str]) {
    let output = cobre(arguments);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
}

/// The page of a directory.
fn page(directory: &Path) -> String {
    succeed(&["report", text(directory)]);
    std::fs::read_to_string(directory.join("report.html")).expect("the page")
}

/// Asserts that a page has these sections.
fn assert_sections(page: &str, sections: &[&str]) {
    for section in sections {
        let start = format!("<section id=\"{section}\"");
        assert!(page.contains(&start), "{section}");
    }
}

/// Asserts that a directory is refused with these words, and that nothing is written.
fn refused(directory: &Path, words: &str) {
    let output = cobre(&["report", text(directory)]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(
        told.contains(words) && told.starts_with("cobre report: "),
        "{words}: {told}"
    );
    assert_nothing_written(directory);
}

fn assert_nothing_written(directory: &Path) {
    let names = std::fs::read_dir(directory).into_iter().flatten();
    for name in names.map(|entry| entry.expect("an entry").file_name()) {
        let name = name.to_string_lossy().into_owned();
        assert!(!name.contains("report.html"), "{name} was written");
    }
}

#[test]
fn a_run_becomes_one_page() {
    let directory = copy();
    let page = page(directory.path());
    let sections = [
        "convergence",
        "cost",
        "storage",
        "inflow",
        "mix",
        "marginal-cost",
        "water-value",
        "deficit",
        "violations",
        "run",
    ];
    assert_sections(&page, &sections);
    assert!(!page.contains("NaN"), "a number is none");
}

#[test]
fn the_same_results_give_the_same_bytes() {
    let pages = tempfile::tempdir().expect("a directory");
    let page = |name: &str| {
        let place = pages.path().join(name);
        succeed(&["report", text(results()), "--output", text(&place)]);
        std::fs::read(place).expect("the page")
    };
    assert!(
        page("a.html") == page("b.html"),
        "two pages of one run differ"
    );
}

#[test]
fn charts_become_pictures() {
    let pages = tempfile::tempdir().expect("a directory");
    let (page, pictures) = (
        pages.path().join("a.html"),
        pages.path().join("deep/pictures"),
    );
    succeed(&[
        "report",
        text(results()),
        "--output",
        text(&page),
        "--png",
        text(&pictures),
    ]);
    for name in [
        "convergence.png",
        "storage.png",
        "mix.png",
        "cost-breakdown.png",
    ] {
        let picture = std::fs::read(pictures.join(name)).expect(name);
        assert!(
            picture.starts_with(b"\x89PNG") && picture.len() > 4000,
            "{name}"
        );
    }
}

#[test]
fn a_run_that_did_not_simulate_says_so() {
    let directory = run(
        "two_reservoirs.sof.json",
        &["--bound", "0", "--iterations", "3"],
    );
    let page = page(directory.path());
    assert!(page.contains("did not simulate"));
}

#[test]
fn a_problem_without_plants_has_states() {
    let options = ["--bound", "0", "--iterations", "3", "--simulate", "5"];
    let directory = run("two_reservoirs.sof.json", &options);
    let page = page(directory.path());
    assert_sections(&page, &["value", "states", "controls", "duals"]);
}

#[test]
fn what_is_no_finished_run_is_refused() {
    refused(Path::new("/nowhere/at/all"), "no such directory");
    let directory = tempfile::tempdir().expect("a directory");
    refused(directory.path(), "there is no run.json");
    std::fs::create_dir(directory.path().join("checkpoint")).expect("a folder");
    refused(directory.path(), "has not finished");
    std::fs::write(directory.path().join("run.json"), "{\"a\": 1}").expect("written");
    refused(
        directory.path(),
        "run.json: it is not the run.json of cobre run",
    );
}

#[test]
fn a_missing_or_truncated_file_is_named() {
    for name in files() {
        let directory = copy();
        let place = directory.path().join(&name);
        let bytes = std::fs::read(&place).expect("a file");
        std::fs::write(&place, &bytes[..bytes.len() / 2]).expect("written");
        // Tables that no chart is made from are not looked at.
        if name.ends_with("validation.parquet")
            || name.ends_with("lines.parquet")
            || name.ends_with("simulation/states.parquet")
        {
            continue;
        }
        refused(directory.path(), &format!("{}: ", name.display()));
    }
    for name in [
        "training/convergence.parquet",
        "simulation/stages.parquet",
        "simulation/costs.parquet",
    ] {
        let directory = copy();
        std::fs::remove_file(directory.path().join(name)).expect("it was there");
        refused(directory.path(), &format!("{name}: it is missing"));
    }
}

#[test]
fn flipped_bytes_never_end_in_a_panic() {
    let seed = 2026_u64;
    println!("seed {seed}");
    let mut state = seed;
    let mut next = |below: usize| {
        // Knuth's linear congruential generator: enough to pick places.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for _ in 0..60 {
        let directory = copy();
        let all = files();
        let name = &all[next(all.len())];
        let place = directory.path().join(name);
        let mut bytes = std::fs::read(&place).expect("a file");
        let at = next(bytes.len());
        bytes[at] ^= 1 << next(8);
        std::fs::write(&place, bytes).expect("written");
        let output = cobre(&["report", text(directory.path())]);
        let told = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => {}
            Some(1) => assert_nothing_written(directory.path()),
            code => panic!("{}, byte {at}: {code:?}, {told}", name.display()),
        }
    }
}

#[test]
fn a_page_that_cannot_be_written_is_an_error_of_the_system() {
    let output = cobre(&[
        "report",
        text(results()),
        "--output",
        "/nowhere/at/all.html",
    ]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(
        told.contains("cannot write /nowhere/at/all.html: "),
        "{told}"
    );
}
