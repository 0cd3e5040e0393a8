//! Going on from a checkpoint: the same bits as a run that was never interrupted, and nothing lost.

#[allow(dead_code, reason = "shared by tests that each use a part of it")]
mod outputs;
#[allow(dead_code, reason = "shared by tests that each use a part of it")]
#[path = "../../cobre-launch/tests/processes/mod.rs"]
mod processes;

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use outputs::newest_checkpoint;
use processes::{command, ranks_of, wait_until};

fn problem() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/two_reservoirs.sof.json")
}

fn cobre(output: &Path, options: &[&str]) -> Command {
    cobre_on(&problem(), output, options)
}

fn cobre_on(problem: &Path, output: &Path, options: &[&str]) -> Command {
    let mut command = command(env!("CARGO_BIN_EXE_cobre"));
    command.arg("run").arg(problem);
    command.args([
        "--bound=0",
        "--forward-passes=3",
        "--simulate=40",
        "--quiet",
    ]);
    command.arg("--output").arg(output).args(options);
    command
}

fn finish(command: &mut Command, code: i32) -> String {
    let output = command.output().expect("cobre starts");
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    text(&output)
}

fn send(signal: &str, pid: u32) {
    let pid = pid.to_string();
    let sent = Command::new("kill").args(["-s", signal, &pid]).status();
    assert!(sent.expect("kill starts").success());
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn results(output: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = outputs::results(output);
    assert!(files.len() >= 6, "{:?}", files.keys());
    files
}

/// The newest state in a directory, and the number of states.
fn newest(output: &Path) -> (PathBuf, usize) {
    let entries = std::fs::read_dir(output.join("checkpoint")).expect("checkpoints are there");
    let paths = entries.flatten().map(|entry| entry.path());
    let is_state = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "state");
    let mut states: Vec<PathBuf> = paths.filter(is_state).collect();
    states.sort();
    let count = states.len();
    (states.pop().expect("a state"), count)
}

#[test]
fn a_run_goes_on_anywhere_with_the_bits_of_one_that_was_never_interrupted() {
    let scratch = tempfile::tempdir().expect("a directory");
    for solver in ["--solver=auto", "--solver=highs"] {
        let whole = scratch.path().join(format!("whole{solver}"));
        finish(
            &mut cobre(&whole, &["--iterations=24", "--cut-selection=lml1", solver]),
            0,
        );
        let expected = results(&whole);
        for (number, layout) in [
            &["--threads=1"][..],
            &["--threads=3"],
            &["-n=3", "--backend=shm"],
            &["-n=2", "--backend=tcp", "--threads=2"],
        ]
        .into_iter()
        .enumerate()
        {
            let part = scratch.path().join(format!("part{number}{solver}"));
            let mut first = cobre(&part, &["--iterations=11", "--cut-selection=lml1", solver]);
            finish(first.args(["-n=2", "--checkpoint=iterations:4"]), 0);
            assert_eq!(newest(&part).1, 2, "the last two are kept");
            let mut second = cobre(&part, &["--iterations=24", "--cut-selection=lml1", solver]);
            finish(second.args(layout).arg("--resume"), 0);
            assert_eq!(results(&part), expected, "{layout:?} {solver}");
            // A finished run gives its result again.
            let mut again = cobre(&part, &["--iterations=24", "--cut-selection=lml1", solver]);
            finish(again.arg("--resume"), 0);
            assert_eq!(results(&part), expected, "{layout:?} {solver}, again");
        }
    }
}

/// The message about a damage, and the function that does it to a state.
type Damage = (&'static str, fn(&Path));

#[test]
fn what_is_not_whole_is_passed_over_for_the_one_before() {
    let scratch = tempfile::tempdir().expect("a directory");
    let whole = scratch.path().join("whole");
    finish(&mut cobre(&whole, &["--iterations=20"]), 0);
    let expected = results(&whole);
    let damages: [Damage; 4] = [
        ("bytes of", |state| {
            let bytes = std::fs::read(state).expect("a state");
            std::fs::write(state, &bytes[..bytes.len() / 2]).expect("it is cut");
        }),
        ("has changed", |state| {
            let mut bytes = std::fs::read(state).expect("a state");
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(state, bytes).expect("it is changed");
        }),
        ("No such file", |state| {
            std::fs::remove_file(state).expect("it is removed");
        }),
        ("cut off or changed", |state| {
            std::fs::write(state.with_extension("json"), "{\"format\": 1, ").expect("it is cut");
        }),
    ];
    for (number, (words, damage)) in damages.into_iter().enumerate() {
        let part = scratch.path().join(number.to_string());
        finish(
            &mut cobre(&part, &["--iterations=9", "--checkpoint=iterations:5"]),
            0,
        );
        damage(&newest(&part).0);
        let told = finish(&mut cobre(&part, &["--iterations=20", "--resume"]), 0);
        assert!(
            told.contains("passed over") && told.contains(words),
            "{words}: {told}"
        );
        assert_eq!(results(&part), expected, "{words}");
    }
}

/// Manifests that differ from one in a value that is another or missing.
fn mutants(manifest: &serde_json::Value) -> Vec<(String, serde_json::Value)> {
    let keys = manifest.as_object().expect("an object").iter();
    let inner = |(key, value): (&String, &serde_json::Value)| {
        let inner = value.as_object().into_iter().flatten();
        let inner = inner.map(|(inner, _)| (format!("/{key}"), inner.clone()));
        let own = (String::new(), key.clone());
        std::iter::once(own).chain(inner).collect::<Vec<_>>()
    };
    let places = keys.flat_map(inner);
    let mutants = places.flat_map(|(around, key)| {
        let changed = |change: fn(&mut serde_json::Map<String, serde_json::Value>, &str)| {
            let mut other = manifest.clone();
            let object = other
                .pointer_mut(&around)
                .and_then(|found| found.as_object_mut());
            change(object.expect("an object"), &key);
            (format!("{around}/{key}"), other)
        };
        let other = changed(|object, key| {
            object[key] = "7".into();
        });
        let missing = changed(|object, key| {
            object.remove(key);
        });
        [other, missing]
    });
    mutants.collect()
}

#[test]
fn a_manifest_with_any_field_changed_is_passed_over() {
    let scratch = tempfile::tempdir().expect("a directory");
    let (whole, part) = (scratch.path().join("whole"), scratch.path().join("part"));
    finish(&mut cobre(&whole, &["--iterations=12"]), 0);
    let expected = results(&whole);
    finish(
        &mut cobre(&part, &["--iterations=9", "--checkpoint=iterations:5"]),
        0,
    );
    let before = outputs::files(&part);
    let newest = newest(&part).0.with_extension("json");
    let text = std::fs::read(&newest).expect("a manifest");
    let manifest = serde_json::from_slice(&text).expect("it is JSON");
    let mutants = mutants(&manifest);
    assert!(mutants.len() > 20, "{}", mutants.len());
    for (field, mutant) in mutants {
        std::fs::remove_dir_all(&part).expect("it is removed");
        for (name, bytes) in &before {
            let place = part.join(name);
            std::fs::create_dir_all(place.parent().expect("a directory")).expect("it is made");
            std::fs::write(place, bytes).expect("it is written");
        }
        std::fs::write(&newest, format!("{mutant:#}\n")).expect("it is written");
        let told = finish(&mut cobre(&part, &["--iterations=12", "--resume"]), 0);
        assert!(told.contains("passed over"), "{field}: {told}");
        assert!(!told.contains("there is no checkpoint"), "{field}: {told}");
        assert!(results(&part) == expected, "{field}");
    }
}

#[test]
fn the_last_two_whole_ones_are_kept_and_nothing_else() {
    let scratch = tempfile::tempdir().expect("a directory");
    let names = |output: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(output.join("checkpoint")).expect("it is there");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("it is there").file_name().into_string())
            .map(|name| name.expect("a name"))
            .filter(|name| name != ".cobre-files")
            .collect();
        names.sort();
        names
    };
    // What a run leaves that is killed while it writes a state, and before it has written its manifest.
    let killed = scratch.path().join("killed");
    finish(
        &mut cobre(&killed, &["--iterations=8", "--checkpoint=iterations:4"]),
        0,
    );
    let place = |name: &str| killed.join("checkpoint").join(name);
    let register = std::fs::File::options()
        .append(true)
        .open(place(".cobre-files"));
    let noted = b"\"00000009.state\"\n\"00000009.json\"\n\"00000010.state\"\n";
    register
        .and_then(|mut file| file.write_all(noted))
        .expect("it is written");
    std::fs::write(place("00000009.state"), "a state").expect("it is written");
    std::fs::write(place(".00000010.state.part"), "half").expect("it is written");
    std::fs::write(place("notes.txt"), "of the user").expect("it is written");
    finish(
        cobre(&killed, &["--iterations=12", "--checkpoint=iterations:12"]).arg("--resume"),
        0,
    );
    let expected = |names: [&str; 5]| names.map(str::to_owned).to_vec();
    let two = [
        "00000008.json",
        "00000008.state",
        "00000012.json",
        "00000012.state",
    ];
    let mut found = names(&killed);
    assert_eq!(found.pop().as_deref(), Some("notes.txt"));
    assert_eq!(
        found,
        expected([two[0], two[1], two[2], two[3], "finished"])
    );

    // A damaged one is none of them.
    let damaged = scratch.path().join("damaged");
    finish(
        &mut cobre(&damaged, &["--iterations=8", "--checkpoint=iterations:2"]),
        0,
    );
    std::fs::write(newest(&damaged).0, "something else").expect("it is written");
    finish(
        cobre(&damaged, &["--iterations=20", "--checkpoint=iterations:20"]).arg("--resume"),
        0,
    );
    let two = [
        "00000006.json",
        "00000006.state",
        "00000020.json",
        "00000020.state",
    ];
    assert_eq!(
        names(&damaged),
        expected([two[0], two[1], two[2], two[3], "finished"])
    );
}

#[test]
fn a_directory_that_is_removed_is_an_error_and_not_made_again() {
    let scratch = tempfile::tempdir().expect("a directory");
    let output = scratch.path().join("output");
    let child = endless(&output, &["-n=2"]);
    // Under another name first: removing what is being written to takes several attempts.
    std::fs::rename(&output, scratch.path().join("gone")).expect("it is moved");
    let ended = child.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    assert!(text(&ended).contains("output/checkpoint"), "{ended:?}");
    assert!(!output.exists());
}

#[test]
fn a_checkpoint_of_another_run_is_refused_and_kept() {
    let scratch = tempfile::tempdir().expect("a directory");
    let part = scratch.path().join("part");
    finish(&mut cobre(&part, &["--iterations=5"]), 0);
    let before = std::fs::read(newest(&part).0).expect("a state");
    for (option, words) in [
        ("--seed=7", "with seed 0, and this one has 7"),
        ("--solver=highs", "with solver auto, and this one has highs"),
        ("--cut-selection=level1", "cut selection"),
        (
            "--basis-memory=7",
            "with basis memory 1073741824, and this one has 7340032",
        ),
        ("--risk=cvar:0.5,0.5", "of another problem"),
    ] {
        for ranks in ["-n=1", "-n=2"] {
            let mut other = cobre(&part, &["--iterations=9", "--resume", option, ranks]);
            let told = finish(&mut other, 1);
            assert!(told.contains(words), "{option} {ranks}: {told}");
        }
    }
    // One number of one opening is another problem too.
    let text = std::fs::read_to_string(problem()).expect("it is there");
    let other = scratch.path().join("other.sof.json");
    let changed = text.replacen("\"inflow_upper\": 23.7", "\"inflow_upper\": 23.8", 1);
    assert_ne!(changed, text);
    std::fs::write(&other, changed).expect("it is written");
    let told = finish(
        &mut cobre_on(&other, &part, &["--iterations=9", "--resume"]),
        1,
    );
    assert!(told.contains("of another problem"), "{told}");
    assert_eq!(std::fs::read(newest(&part).0).expect("a state"), before);
    // It is a finished run's as it was, so the next may begin anew.
    finish(&mut cobre(&part, &["--iterations=5"]), 0);
}

#[test]
fn without_a_checkpoint_a_run_starts_from_the_beginning_and_says_so() {
    let scratch = tempfile::tempdir().expect("a directory");
    let (one, other) = (scratch.path().join("one"), scratch.path().join("other"));
    let told = finish(&mut cobre(&one, &["--iterations=5", "--resume", "-n=2"]), 0);
    assert!(told.contains("there is no checkpoint"), "{told}");
    finish(&mut cobre(&other, &["--iterations=5"]), 0);
    assert_eq!(results(&one), results(&other));
}

/// Starts a run that would not end for a long time, and waits until it has kept something.
fn endless(output: &Path, options: &[&str]) -> std::process::Child {
    let mut command = cobre(
        output,
        &["--iterations=1000000", "--checkpoint=iterations:1"],
    );
    command
        .args(options)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().expect("cobre starts");
    wait_until("a checkpoint", Duration::from_secs(60), || {
        newest_checkpoint(output).is_some()
    });
    child
}

#[test]
fn a_second_run_in_one_directory_is_refused_and_a_dead_one_is_no_obstacle() {
    let scratch = tempfile::tempdir().expect("a directory");
    let mut first = endless(scratch.path(), &[]);
    let mut second = cobre(scratch.path(), &["--iterations=3", "--resume"]);
    let told = finish(&mut second, 2);
    let pid = format!("process {}", first.id());
    assert!(
        told.contains("another run writes there") && told.contains(&pid),
        "{told}"
    );
    first.kill().expect("it can be killed");
    first.wait().expect("it ends");
    // What it has kept is not thrown away without being asked.
    let told = finish(&mut cobre(scratch.path(), &["--iterations=3"]), 1);
    assert!(
        told.contains("has not finished") && told.contains("--resume"),
        "{told}"
    );
    let kept = newest_checkpoint(scratch.path()).expect("a checkpoint");
    let further = format!("--iterations={}", kept + 2);
    finish(&mut cobre(scratch.path(), &[&further, "--resume"]), 0);
    let fresh = tempfile::tempdir().expect("a directory");
    finish(&mut cobre(fresh.path(), &[&further]), 0);
    assert_eq!(results(scratch.path()), results(fresh.path()));
}

#[test]
fn an_interrupted_run_says_how_to_go_on_and_does() {
    let scratch = tempfile::tempdir().expect("a directory");
    let ways: [(&str, &[&str]); 5] = [
        ("INT", &[]),
        ("HUP", &[]),
        ("INT", &["-n=2"]),
        ("USR1", &["-n=2"]),
        ("HUP", &["-n=2"]),
    ];
    for (number, (signal, options)) in ways.into_iter().enumerate() {
        let output = scratch.path().join(number.to_string());
        let child = endless(&output, options);
        send(signal, child.id());
        let ended = child.wait_with_output().expect("it ends");
        assert_eq!(ended.status.code(), Some(5), "{ended:?}");
        let told = text(&ended);
        assert!(
            told.contains("to go on") && told.contains(" run --resume "),
            "{told}"
        );
        let kept = newest_checkpoint(&output).expect("a checkpoint");
        let further = format!("--iterations={}", kept + 3);
        finish(&mut cobre(&output, &[&further, "--resume"]), 0);
        let fresh = scratch.path().join(format!("fresh{number}"));
        finish(&mut cobre(&fresh, &[&further]), 0);
        assert_eq!(results(&output), results(&fresh));
    }
}

#[test]
fn a_second_signal_ends_a_long_iteration_at_once() {
    let scratch = tempfile::tempdir().expect("a directory");
    let (case, output) = (scratch.path().join("case"), scratch.path().join("output"));
    let new = || command(env!("CARGO_BIN_EXE_cobre"));
    finish(new().args(["init", "large"]).arg(&case), 0);
    let mut command = new();
    command.args(["run", "--quiet", "--forward-passes=1000", "--output"]);
    let mut child = command
        .arg(&output)
        .arg(&case)
        .spawn()
        .expect("cobre starts");
    let lock = output.join(".lock");
    wait_until("it trains", Duration::from_secs(60), || lock.exists());
    send("INT", child.id());
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(
        child.try_wait().expect("it is a child"),
        None,
        "it finishes its step"
    );
    send("INT", child.id());
    let ended = child.wait().expect("it ends");
    assert_eq!(ended.signal(), Some(2), "{ended:?}");
}

#[test]
fn a_lost_rank_is_made_good_by_retries() {
    let scratch = tempfile::tempdir().expect("a directory");
    let output = scratch.path().join("output");
    let mut command = cobre(
        &output,
        &["--iterations=400", "--checkpoint=iterations:1", "-n=3"],
    );
    command.args(["--retries=3", "--json", "--seed=987654321"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("cobre starts");
    let start = Instant::now();
    let mut lost = 0;
    while lost < 2 {
        assert!(start.elapsed() < Duration::from_secs(60), "no rank to kill");
        let before = newest_checkpoint(&output);
        std::thread::sleep(Duration::from_millis(50));
        if before != newest_checkpoint(&output)
            && let Some(rank) = ranks_of(child.id()).pop()
        {
            // It may have ended with an attempt that lost another one.
            let mut kill = Command::new("kill");
            let sent = kill.args(["-s", "KILL", &rank.to_string()]).status();
            lost += usize::from(sent.expect("kill starts").success());
            std::thread::sleep(Duration::from_millis(300));
        }
    }
    let ended = child.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let told = text(&ended);
    assert!(
        told.contains("starting again from the newest checkpoint"),
        "{told}"
    );
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert_eq!(said.lines().count(), 1, "{said}");
    let fresh = scratch.path().join("fresh");
    finish(
        &mut cobre(&fresh, &["--iterations=400", "--seed=987654321"]),
        0,
    );
    assert_eq!(results(&output), results(&fresh));
}

#[test]
fn a_full_disk_is_an_error_that_loses_nothing() {
    let scratch = tempfile::tempdir().expect("a directory");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=192k", "cobre-test"])
        .arg(scratch.path())
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        assert!(std::env::var_os("CI").is_none(), "skipped in CI: no mount");
        println!("skipped: a small file system cannot be mounted here");
        return;
    }
    let run = scratch.path().join("run");
    let mut command = cobre(
        &run,
        &["--iterations=100000", "--checkpoint=iterations:1", "-n=2"],
    );
    let ended = command.output();
    let kept = newest_checkpoint(&run);
    let part = std::fs::read_dir(run.join("checkpoint"))
        .expect("it is there")
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().ends_with(".part"))
        .count();
    let unmounted = Command::new("umount").arg(scratch.path()).status();
    assert!(unmounted.expect("umount starts").success());
    let ended = ended.expect("cobre starts");
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    assert!(text(&ended).contains("No space left"), "{ended:?}");
    assert!(kept.is_some(), "an earlier checkpoint is intact");
    assert_eq!(part, 0, "nothing half-written");
}

#[test]
fn a_policy_is_simulated_and_trained_further_by_another_run() {
    let scratch = tempfile::tempdir().expect("a directory");
    let place = |name: &str| scratch.path().join(name);
    let first = place("first");
    finish(&mut cobre(&first, &["--iterations=6"]), 0);
    let warm = format!("--warm-start={}", first.display());

    // What the run itself has found by simulating.
    for (name, ranks) in [("one", "-n=1"), ("two", "-n=2")] {
        let again = place(name);
        finish(&mut cobre(&again, &[&warm, "--simulate-only", ranks]), 0);
        let (again, before) = (results(&again), results(&first));
        let simulated = |name: &&String| name.starts_with("simulation/");
        for file in before.keys().filter(simulated) {
            assert!(again[file] == before[file], "{file} differs");
        }
    }

    // Further training, interrupted or not.
    let whole = place("whole");
    finish(&mut cobre(&whole, &[&warm, "--iterations=8", "-n=2"]), 0);
    let parts = place("parts");
    finish(&mut cobre(&parts, &[&warm, "--iterations=3"]), 0);
    let told = finish(&mut cobre(&parts, &["--iterations=8", "--resume"]), 1);
    assert!(told.contains("warm start"), "{told}");
    finish(
        &mut cobre(&parts, &[&warm, "--iterations=8", "--resume"]),
        0,
    );
    assert_eq!(results(&whole), results(&parts));

    // What cannot be.
    let before = outputs::files(&first);
    let link = place("link");
    std::os::unix::fs::symlink(&first, &link).expect("it is made");
    for same in [&first, &place("one/../first"), &link] {
        for option in ["--simulate-only", "--seed=7", "--resume"] {
            let told = finish(&mut cobre(same, &[&warm, option]), 64);
            assert!(told.contains("another --output"), "{same:?}: {told}");
        }
    }
    assert!(outputs::files(&first) == before, "it is as it was");
    finish(&mut cobre(&place("none"), &["--simulate-only"]), 64);
    let told = finish(&mut cobre(&place("none"), &["--warm-start=nowhere"]), 2);
    assert!(told.contains("nowhere/policy/manifest.json"), "{told}");
    assert!(!place("none").exists());
}
