//! `cobre report` from the outside: what a run leaves becomes a page, and what is damaged is refused.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use cobre_results::Results;
use serde_json::Value;
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

/// The data that the scripts of a page are given about one of its charts.
fn chart(page: &str, id: &str) -> Value {
    let (_, data) = page.split_once("id=\"data\">").expect("it has data");
    let (data, _) = data.split_once("</script>").expect("they end");
    let data: Value = serde_json::from_str(data).expect("they are JSON");
    let panels = data["panels"].as_array().expect("a list");
    let found = panels.iter().find(|panel| panel["id"] == id);
    found.unwrap_or_else(|| panic!("no chart {id}")).clone()
}

#[test]
fn lines_have_a_chart_of_what_they_carry() {
    let options = ["--iterations", "3", "--simulate", "5"];
    let directory = run("four-regions", &options);
    let panel = chart(&page(directory.path()), "exchange");
    let view = &panel["views"][0];
    assert_eq!(view["y"], "power sent (MW)");
    let results = Results::open(directory.path()).expect("it is there");
    let lines = results.needed("simulation/lines").expect("it has lines");
    let column = |name: &str| lines.all_numbers(name).expect("a column");
    let (id, stage, hours) = (column("line_id"), column("stage"), column("hours"));
    let (direct, reverse) = (column("direct_mw"), column("reverse_mw"));
    for (number, series) in view["series"]
        .as_array()
        .expect("a list")
        .iter()
        .enumerate()
    {
        let mean = |at: usize| {
            let rows = 0..id.len();
            let rows = rows.filter(|row| id[*row] == number as f64 && stage[*row] == at as f64);
            let (sent, all) = rows.fold((0.0, 0.0), |(sent, all), row| {
                (
                    sent + (direct[row] - reverse[row]) * hours[row],
                    all + hours[row],
                )
            });
            sent / all
        };
        for (at, value) in (0..).zip(series["values"].as_array().expect("a list")) {
            let (value, mean) = (value.as_f64().expect("a number"), mean(at));
            assert!(
                (value - mean).abs() <= 1e-4 * mean.abs() + 1e-9,
                "{value} {mean}"
            );
        }
    }
    let first = view["series"][0]["name"].as_str().expect("a name");
    assert_eq!(first, "south-centre (from south to centre)");
}

#[test]
fn the_gap_of_a_page_is_that_of_the_run() {
    let page = page(copy().path());
    let run = std::fs::read_to_string(results().join("run.json")).expect("it is there");
    let run: Value = serde_json::from_str(&run).expect("it is JSON");
    let found = |place: &str| {
        run.pointer(place)
            .and_then(Value::as_f64)
            .expect("a number")
    };
    let (bound, mean) = (found("/bound"), found("/estimate/mean"));
    let gap = format!(
        "<dt>mean above bound</dt><dd>{:.2} %</dd>",
        100.0 * (mean - bound) / bound
    );
    assert!(page.contains(&gap), "{gap}");
}

#[test]
fn violations_of_blocks_are_averaged_by_their_hours() {
    let directory = run("cascade", &["--iterations=20", "--simulate=60", "--seed=1"]);
    let page = page(directory.path());
    let results = Results::open(directory.path()).expect("it is there");
    let blocks = results
        .needed("simulation/hydro_blocks")
        .expect("it has plants");
    let column = |name: &str| blocks.all_numbers(name).expect("a column");
    let (scenario, stage, hours) = (column("scenario"), column("stage"), column("hours"));
    let (block, plant) = (column("block"), column("hydro_id"));
    let below = column("min_outflow_violation_m3s");
    let mut sums: BTreeMap<(u64, u64), (f64, f64)> = BTreeMap::new();
    for row in 0..scenario.len() {
        let key = (scenario[row] as u64, stage[row] as u64);
        let (sum, all) = sums.entry(key).or_default();
        *sum += below[row] * hours[row];
        // The hours of a stage, once.
        *all += if plant[row] == plant[0] {
            hours[row]
        } else {
            0.0
        };
    }
    assert!(block.contains(&1.0), "a stage has blocks");
    let largest = sums
        .values()
        .map(|(sum, hours)| sum / hours)
        .fold(0.0, f64::max);
    assert!(largest > 0.1, "nothing is violated: {largest}");
    let (_, row) = page
        .split_once("Violations by kind of limit")
        .expect("a table");
    let (_, row) = row
        .split_once("<th scope=\"row\">min outflow violation</th><td>")
        .expect("a row");
    let (_, row) = row.split_once("<td>").expect("a cell");
    let found: f64 = row
        .split(' ')
        .next()
        .and_then(|text| text.parse().ok())
        .expect("a number");
    assert!(
        (found - largest).abs() < 1e-4 * largest,
        "{found} {largest}"
    );
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
