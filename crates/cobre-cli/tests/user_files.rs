//! Files of the user's are never removed or replaced, whatever a command writes beside them.

#[allow(dead_code, reason = "shared by tests that each use a part of it")]
mod outputs;

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use outputs::{files, finish, results};

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/two_reservoirs.sof.json")
}

fn cobre(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cobre"));
    command.args(words);
    command
}

fn run(output: &Path, options: &[&str]) -> Output {
    let mut command = cobre(&["run", "--bound=0", "--iterations=3", "--quiet"]);
    command.arg(example()).arg("--output").arg(output);
    finish(command.args(options))
}

fn succeeds(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

/// The command refused with this code and named this path.
fn refuses(output: &Output, path: &Path) {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let path = path.display().to_string();
    assert!(told.contains(&path), "{path}: {told}");
    assert!(told.contains("move it away"), "{told}");
    assert_eq!(told.matches(&path).count(), 1, "it is said once: {told}");
}

fn put(place: &Path, text: &str) {
    std::fs::create_dir_all(place.parent().expect("a directory")).expect("it is made");
    std::fs::write(place, text).expect("it is written");
}

#[test]
fn a_directory_with_files_of_others_in_the_way_is_refused_before_anything_is_written() {
    let scratch = tempfile::tempdir().expect("a directory");
    let places = [
        ("checkpoint/deep/model.pt", "checkpoint"),
        ("checkpoint/00000002.json", "checkpoint"),
        ("checkpoint/7", "checkpoint"),
        ("checkpoint", "checkpoint"),
        ("run.json", "run.json"),
        ("dictionary.csv", "dictionary.csv"),
        (
            "training/convergence.parquet",
            "training/convergence.parquet",
        ),
        (
            "training/.timings.parquet.part",
            "training/.timings.parquet.part",
        ),
        ("policy/manifest.json", "policy/manifest.json"),
        ("policy/cuts.csv", "policy/cuts.csv"),
        ("simulation/paths.parquet", "simulation/paths.parquet"),
        ("simulation", "simulation"),
        (".lock", ".lock"),
        (".cobre-files", ".cobre-files"),
        ("..cobre-files.part", "..cobre-files.part"),
    ];
    for (number, (place, named)) in places.into_iter().enumerate() {
        let output = scratch.path().join(number.to_string());
        put(&output.join(place), "precious");
        let before = files(&output);
        let options = ["--simulate=5", "--csv"];
        for more in [&["--checkpoint=none"][..], &["--resume"], &["-n=2"]] {
            let ended = run(&output, &[&options, more].concat());
            refuses(&ended, &output.join(named));
            assert!(files(&output) == before, "{place} {more:?}");
        }
    }
}

#[test]
fn files_that_are_in_nobodys_way_stay() {
    let scratch = tempfile::tempdir().expect("a directory");
    let output = scratch.path();
    let mine = [
        "notes.txt",
        "training/log.csv",
        "policy/model.pt",
        "simulation/mine.parquet",
        // Those of a run that does not write any.
        "simulation/paths.csv",
        "report.html",
    ];
    for name in mine {
        put(&output.join(name), "precious");
    }
    succeeds(&run(output, &["--simulate=5"]));
    let beside = [
        "checkpoint/notes.txt",
        "checkpoint/12.txt",
        "checkpoint/7.json",
        "checkpoint/00000001",
    ];
    for name in beside {
        put(&output.join(name), "precious");
    }
    for options in [
        &["--resume"][..],
        &["--seed=7"],
        &["--checkpoint=none"],
        &["-n=2"],
    ] {
        succeeds(&run(output, options));
    }
    for name in mine.iter().chain(&beside) {
        let found = std::fs::read(output.join(name)).unwrap_or_default();
        assert_eq!(found, b"precious", "{name}");
    }
}

#[test]
fn a_checkpoint_that_cobre_did_not_write_is_neither_used_nor_removed() {
    let scratch = tempfile::tempdir().expect("a directory");
    let output = scratch.path();
    succeeds(&run(output, &["--checkpoint=iterations:1"]));
    for name in [
        "00000001.json",
        "00000009.json",
        "00000009.state",
        ".00000009.state.part",
    ] {
        let place = output.join("checkpoint").join(name);
        put(&place, "{\"precious\": true}");
        let before = files(output);
        for options in [&[][..], &["--resume"], &["--resume", "-n=2"]] {
            refuses(&run(output, options), &place);
        }
        assert!(files(output) == before, "{name}");
        std::fs::remove_file(&place).expect("it is removed");
    }
    succeeds(&run(output, &["--resume"]));
}

#[test]
fn nothing_of_an_earlier_run_is_left_but_for_what_is_not_its_own() {
    let scratch = tempfile::tempdir().expect("a directory");
    let (output, fresh) = (scratch.path().join("out"), scratch.path().join("fresh"));
    succeeds(&run(&output, &["--simulate=5", "--csv"]));
    let pictures = output.join("charts/png");
    let mut report = cobre(&["report"]);
    succeeds(&finish(report.arg(&output).arg("--png").arg(&pictures)));
    assert!(output.join("report.html").is_file() && pictures.join("convergence.png").is_file());
    put(&output.join("charts/mine.png"), "precious");
    succeeds(&run(&output, &[]));
    succeeds(&run(&fresh, &[]));
    let mut left = results(&output);
    assert_eq!(
        left.remove("charts/mine.png").as_deref(),
        Some(&b"precious"[..])
    );
    assert!(
        !pictures.exists(),
        "a directory that it made, and that is empty"
    );
    let register = std::fs::read_to_string(output.join(".cobre-files")).expect("it is there");
    assert!(register.contains("charts/"), "{register}");
    let mut expected = results(&fresh);
    expected.remove(".cobre-files");
    assert!(left == expected, "{:?} {:?}", left.keys(), expected.keys());
}

#[test]
fn results_of_versions_without_a_register_are_known_by_their_manifests() {
    let scratch = tempfile::tempdir().expect("a directory");
    let (output, fresh) = (scratch.path().join("out"), scratch.path().join("fresh"));
    let forget = |output: &Path| {
        for name in [".cobre-files", "checkpoint/.cobre-files"] {
            std::fs::remove_file(output.join(name)).expect("it is removed");
        }
    };
    succeeds(&run(&output, &["--simulate=5", "--csv"]));
    succeeds(&finish(cobre(&["report"]).arg(&output)));
    forget(&output);
    put(&output.join("checkpoint/notes.txt"), "precious");
    // A report alone makes no register of a run.
    succeeds(&finish(cobre(&["report"]).arg(&output)));
    succeeds(&run(&output, &["--resume", "--simulate=5", "--csv"]));
    forget(&output);
    succeeds(&run(&output, &[]));
    succeeds(&run(&fresh, &[]));
    let (mut left, mut expected) = (results(&output), results(&fresh));
    // That the directories are its own is what an earlier version did not note.
    for files in [&mut left, &mut expected] {
        files.remove(".cobre-files");
    }
    assert!(left == expected, "{:?} {:?}", left.keys(), expected.keys());
    assert!(output.join("checkpoint/notes.txt").is_file());
}

#[test]
fn links_and_hostile_registers_lead_nowhere() {
    let scratch = tempfile::tempdir().expect("a directory");
    let (output, outside) = (scratch.path().join("out"), scratch.path().join("outside"));
    put(&outside.join("00000003.json"), "precious");
    put(&outside.join("paths.parquet"), "precious");
    let before = files(&outside);
    succeeds(&run(&output, &["--simulate=5"]));
    let register = output.join(".cobre-files");
    let mut text = std::fs::read_to_string(&register).expect("it is there");
    text.push_str("\"../outside/paths.parquet\"\n\"link/paths.parquet\"\n\"link\"\n\"link/\"\n");
    let absolute = outside.join("paths.parquet").display().to_string();
    text.extend(["\"", &absolute, "\"\n"]);
    std::fs::write(&register, text).expect("it is written");
    symlink(&outside, output.join("link")).expect("a link");
    succeeds(&run(&output, &[]));
    assert!(output.join("link").is_symlink());
    assert!(files(&outside) == before);
    // Directories of the results that lead elsewhere.
    for name in ["simulation", "checkpoint"] {
        let place = output.join(name);
        let aside = scratch.path().join("aside");
        std::fs::rename(&place, &aside).expect("it is moved");
        symlink(&outside, &place).expect("a link");
        refuses(&run(&output, &["--simulate=5"]), &place);
        assert!(files(&outside) == before);
        std::fs::remove_file(&place).expect("it is removed");
        std::fs::rename(&aside, &place).expect("it is moved back");
    }
    // The directory itself may be a link.
    let link = scratch.path().join("way");
    symlink(&output, &link).expect("a link");
    succeeds(&run(&link, &[]));
    assert!(link.is_symlink());
}

#[test]
fn what_a_killed_run_was_writing_is_known_to_the_next() {
    let scratch = tempfile::tempdir().expect("a directory");
    let output = scratch.path();
    succeeds(&run(output, &["--checkpoint=iterations:1"]));
    // Noted, half written and not finished.
    let register = output.join("checkpoint/.cobre-files");
    let mut text = std::fs::read_to_string(&register).expect("it is there");
    text.push_str("\"00000009.state\"\n\"00000009.json\"\n\"cut o");
    std::fs::write(&register, text).expect("it is written");
    put(&output.join("checkpoint/00000009.state"), "a state");
    put(&output.join("checkpoint/.00000009.json.part"), "{");
    std::fs::remove_file(output.join("run.json")).expect("it is removed");
    put(&output.join(".run.json.part"), "{");
    let mut longer = cobre(&["run", "--bound=0", "--iterations=5", "--quiet", "--resume"]);
    succeeds(&finish(longer.arg(example()).arg("--output").arg(output)));
    let left = files(output);
    let left: Vec<&String> = left
        .keys()
        .filter(|name| name.contains("00000009") || name.contains(".part"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_report_replaces_reports_only() {
    let scratch = tempfile::tempdir().expect("a directory");
    let output = scratch.path().join("out");
    succeeds(&run(&output, &["--simulate=5"]));
    let report = |words: &[&Path]| finish(cobre(&["report"]).arg(&output).args(words));
    let (own, page) = (output.join("report.html"), scratch.path().join("page.html"));
    let pictures = scratch.path().join("pictures");
    put(&own, "a thesis");
    put(&page, "a thesis");
    put(&pictures.join("convergence.png"), "a photo");
    refuses(&report(&[]), &own);
    refuses(&report(&[Path::new("--output"), &page]), &page);
    for place in [&own, &page] {
        assert_eq!(std::fs::read(place).expect("it is there"), b"a thesis");
        std::fs::remove_file(place).expect("it is removed");
    }
    refuses(
        &report(&[Path::new("--png"), &pictures]),
        &pictures.join("convergence.png"),
    );
    // A picture in the way is found before the page and the other pictures are written.
    assert!(!own.exists(), "the page was written");
    assert_eq!(files(&pictures).len(), 1, "pictures were written");
    std::fs::remove_file(pictures.join("convergence.png")).expect("it is removed");
    for _ in 0..2 {
        let (to, png) = (Path::new("--output"), Path::new("--png"));
        succeeds(&report(&[to, &page, png, &pictures]));
        succeeds(&report(&[]));
    }
}

#[test]
fn schemas_logs_and_new_cases_replace_nothing_of_others() {
    let scratch = tempfile::tempdir().expect("a directory");
    let place = |name: &str| scratch.path().join(name);
    put(
        &place("schemas/thermals.schema.json"),
        "{\"title\": \"mine\"}",
    );
    let schemas = || finish(cobre(&["schema"]).arg(place("schemas")));
    refuses(&schemas(), &place("schemas/thermals.schema.json"));
    assert_eq!(files(&place("schemas")).len(), 1, "nothing else is written");
    std::fs::remove_file(place("schemas/thermals.schema.json")).expect("it is removed");
    for _ in 0..2 {
        succeeds(&schemas());
    }

    put(&place("logs/rank-1.log"), "precious");
    let logs = || {
        let mut launch = cobre(&["launch", "-n", "2", "--logs"]);
        finish(launch.arg(place("logs")).args(["--", "echo", "hello"]))
    };
    refuses(&logs(), &place("logs/rank-1.log"));
    assert_eq!(files(&place("logs")).len(), 1, "nothing else is written");
    std::fs::remove_file(place("logs/rank-1.log")).expect("it is removed");
    for _ in 0..2 {
        succeeds(&logs());
        let text = std::fs::read(place("logs/rank-1.log")).expect("it is there");
        assert_eq!(text, b"hello\n");
    }

    put(&place("case/mine"), "precious");
    let ended = finish(cobre(&["init", "cascade"]).arg(place("case")));
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert_eq!(files(&place("case")).len(), 1);
}

#[test]
fn a_case_that_cannot_be_written_to_its_end_leaves_what_was_there() {
    let scratch = tempfile::tempdir().expect("a directory");
    let place = scratch.path().join("new/case");
    let program = env!("CARGO_BIN_EXE_cobre");
    let script = format!(
        "ulimit -f 1; exec '{program}' init five-years '{}'",
        place.display()
    );
    let ended = finish(Command::new("bash").args(["-c", &script]));
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    assert!(!scratch.path().join("new").exists(), "nothing is left");
    std::fs::create_dir_all(&place).expect("it is made");
    let ended = finish(Command::new("bash").args(["-c", &script]));
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    let left = std::fs::read_dir(&place).expect("it stays").count();
    assert_eq!(left, 0);
}

#[test]
fn a_pipe_among_the_results_of_an_earlier_version_hangs_nothing() {
    let scratch = tempfile::tempdir().expect("a directory");
    let output = scratch.path().join("out");
    succeeds(&run(&output, &["--simulate=5", "--csv"]));
    std::fs::remove_file(output.join(".cobre-files")).expect("it is removed");
    let table = output.join("training/timings.csv");
    std::fs::remove_file(&table).expect("it is removed");
    let made = Command::new("mkfifo").arg(&table).status();
    assert!(made.expect("mkfifo starts").success());
    refuses(&run(&output, &["--csv"]), &table);
}

#[test]
fn a_report_does_not_replace_the_results_that_it_is_of() {
    let scratch = tempfile::tempdir().expect("a directory");
    let output = scratch.path().join("out");
    succeeds(&run(&output, &[]));
    for name in ["policy/cuts.parquet", "run.json"] {
        let place = output.join(name);
        let before = std::fs::read(&place).expect("it is there");
        let words = finish(cobre(&["report"]).arg(&output).arg("--output").arg(&place));
        refuses(&words, &place);
        assert!(
            std::fs::read(&place).expect("it is there") == before,
            "{name}"
        );
    }
}

#[test]
fn a_lock_on_the_directory_keeps_no_run_out() {
    let scratch = tempfile::tempdir().expect("a directory");
    let output = scratch.path().join("out");
    std::fs::create_dir(&output).expect("a directory");
    let directory = std::fs::File::open(&output).expect("it can be read");
    directory.lock().expect("nobody has it");
    succeeds(&run(&output, &[]));
}

#[test]
fn files_of_the_users_own_in_the_place_of_results_are_refused_by_name() {
    let scratch = tempfile::tempdir().expect("a directory");
    let output = scratch.path().join("out");
    succeeds(&run(&output, &["--simulate=5", "--csv"]));
    succeeds(&finish(cobre(&["report"]).arg(&output)));
    // Those that the next run would replace, and those that it would remove.
    for name in [
        "dictionary.csv",
        "report.html",
        "training/convergence.csv",
        "policy/cuts.parquet",
        "simulation/paths.parquet",
        "run.json",
    ] {
        let place = output.join(name);
        let ours = std::fs::read(&place).unwrap_or_else(|error| panic!("{name}: {error}"));
        std::fs::write(&place, "my own text").expect("it is written");
        let before = files(&output);
        refuses(&run(&output, &[]), &place);
        assert!(files(&output) == before, "{name}: nothing is written");
        std::fs::write(&place, ours).expect("it is written");
    }
    succeeds(&run(&output, &[]));
}

#[test]
fn tables_of_the_users_own_beside_a_policy_are_no_results() {
    let scratch = tempfile::tempdir().expect("a directory");
    let (output, mine) = (scratch.path().join("out"), scratch.path().join("mine"));
    succeeds(&run(&output, &[]));
    std::fs::create_dir_all(mine.join("training")).expect("a directory");
    std::fs::create_dir_all(mine.join("policy")).expect("a directory");
    for name in ["policy/manifest.json", "policy/cuts.parquet"] {
        std::fs::copy(output.join(name), mine.join(name)).expect("a copy");
    }
    let place = mine.join("training/convergence.parquet");
    for text in [
        b"text".to_vec(),
        std::fs::read(output.join("policy/cuts.parquet")).expect("it"),
    ] {
        std::fs::write(&place, text).expect("a file");
        let before = files(&mine);
        refuses(&run(&mine, &[]), &place);
        assert!(files(&mine) == before, "nothing is written");
    }
    std::fs::remove_file(&place).expect("it is removed");
    succeeds(&run(&mine, &[]));
}

#[test]
fn a_run_leaves_the_logs_of_its_launcher() {
    let scratch = tempfile::tempdir().expect("a directory");
    let output = scratch.path().join("out");
    for _ in 0..2 {
        let mut launch = cobre(&["launch", "-n", "2", "--backend", "shm", "--logs"]);
        launch
            .arg(&output)
            .args(["--", env!("CARGO_BIN_EXE_cobre"), "run"]);
        launch.args(["--bound=0", "--iterations=3", "--output"]);
        succeeds(&finish(launch.arg(&output).arg(example())));
        for rank in 0..2 {
            let place = output.join(format!("rank-{rank}.log"));
            assert!(place.is_file(), "{} is gone", place.display());
        }
        let text = std::fs::read_to_string(output.join("rank-0.log")).expect("it is there");
        assert!(text.contains("lower bound"), "{text}");
    }
}

#[test]
fn a_register_that_a_killed_process_left_keeps_no_run_out() {
    let scratch = tempfile::tempdir().expect("a directory");
    let output = scratch.path().join("out");
    put(&output.join(".cobre-files"), "{\"cobre\":\"fi");
    succeeds(&run(&output, &[]));
    // A name that no file can have.
    let register = output.join(".cobre-files");
    let mut text = std::fs::read_to_string(&register).expect("it is there");
    text.extend(["\"", &"a".repeat(300), "\"\n"]);
    std::fs::write(&register, text).expect("it is written");
    succeeds(&run(&output, &[]));
    // Killed in the first write of a table that the next run does not have, and another process has settled since.
    let mut text = std::fs::read_to_string(&register).expect("it is there");
    text.push_str("\"simulation/paths.parquet\"\n");
    std::fs::write(&register, text).expect("it is written");
    put(&output.join("simulation/.paths.parquet.part"), "half");
    succeeds(&finish(cobre(&["report"]).arg(&output)));
    succeeds(&run(&output, &["--simulate=5"]));
}

#[test]
fn output_that_a_full_disk_does_not_take_is_an_error() {
    let scratch = tempfile::tempdir().expect("a directory");
    succeeds(&run(scratch.path(), &[]));
    let full = std::fs::File::options().write(true).open("/dev/full");
    let mut summary = cobre(&["summary"]);
    summary.arg(scratch.path());
    summary.stdout(full.expect("Linux has it"));
    summary.stderr(std::process::Stdio::piped());
    let ended = summary
        .spawn()
        .and_then(std::process::Child::wait_with_output);
    let ended = ended.expect("it ends");
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
}
