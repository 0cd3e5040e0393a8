use std::fs::File;
use std::io::Write;
use std::os::unix::fs::symlink;

use serde_json::json;

use super::*;
use crate::register_file::REGISTER;

fn write(register: &mut Register, name: &str) {
    let mut file = register.create(name).expect("it is claimed");
    file.write(b"ours").expect("it is written");
    file.finish().expect("it is put in place");
}

#[test]
fn names_are_known_to_the_next_process() {
    let root = tempfile::tempdir().expect("a directory");
    let mut register = Register::open(root.path()).expect("none");
    assert!(!register.is_there());
    register.make_directory("a").expect("it is made");
    write(&mut register, "a/one.csv");
    // Claimed, and killed while it was written.
    drop(register.create("two\n.csv").map(std::mem::forget));
    let mut next = Register::open(root.path()).expect("it is read");
    let names: Vec<&str> = next.names().collect();
    assert_eq!(names, ["a/", "a/one.csv", "two\n.csv"]);
    write(&mut next, "two\n.csv");
    next.remove("a/one.csv").expect("it is removed");
    next.remove("a/").expect("it is removed");
    next.settle().expect("it is written");
    assert!(!root.path().join("a").exists());
    let last = Register::open(root.path()).expect("it is read");
    assert_eq!(last.names().collect::<Vec<_>>(), ["two\n.csv"]);
}

#[test]
fn what_is_not_on_it_is_refused_and_stays() {
    let root = tempfile::tempdir().expect("a directory");
    let place = |name: &str| root.path().join(name);
    for name in ["run.json", ".page.part"] {
        std::fs::write(place(name), "precious").expect("a file");
    }
    std::fs::create_dir(place("table")).expect("a directory");
    symlink(root.path(), place("link")).expect("a link");
    std::fs::write(place("file"), "precious").expect("a file");
    let mut register = Register::open(root.path()).expect("none");
    for name in [
        "run.json", "page", "table", "link", "link/x", "file/x", "../x", "/x", "",
    ] {
        register.create(name).expect_err(name);
    }
    assert!(!place(".cobre-files").exists(), "nothing is written");
    for name in ["run.json", ".page.part", "file"] {
        assert_eq!(
            std::fs::read(place(name)).expect("it is there"),
            b"precious"
        );
    }
}

#[test]
fn a_hostile_register_reaches_nothing_outside() {
    let root = tempfile::tempdir().expect("a directory");
    let (inside, outside) = (root.path().join("in"), root.path().join("out"));
    for directory in [&inside, &outside] {
        std::fs::create_dir(directory).expect("a directory");
        std::fs::write(directory.join("mine"), "precious").expect("a file");
    }
    symlink(&outside, inside.join("way")).expect("a link");
    symlink(outside.join("mine"), inside.join("direct")).expect("a link");
    std::fs::create_dir(inside.join("kept")).expect("a directory");
    std::fs::write(inside.join("kept/mine"), "precious").expect("a file");
    let absolute = outside.join("mine").display().to_string();
    let names = [
        "../out/mine",
        "way/mine",
        "direct",
        "kept",
        "kept/",
        ".",
        "..",
        "./mine",
        "kept/../mine",
        "way/",
        ".lock",
        ".cobre-files",
        "",
        &absolute,
    ];
    let mut text = "{\"cobre\":\"files\",\"format\":1,\"made\":true}\n".to_owned();
    for name in names {
        text.extend([json!(name).to_string().as_str(), "\n"]);
    }
    text.push_str("nonsense\n\"cut off");
    std::fs::write(inside.join(".cobre-files"), text).expect("a file");
    std::fs::write(inside.join(".lock"), "").expect("a file");
    let register = Register::open(&inside).expect("it is read");
    register.dissolve().expect("what it may remove is removed");
    for kept in [
        "in/mine",
        "out/mine",
        "in/kept/mine",
        "in/direct",
        "in/way",
        "in/.lock",
    ] {
        assert!(root.path().join(kept).exists(), "{kept} is gone");
    }
}

#[test]
fn a_file_of_its_name_that_is_no_register_is_refused() {
    let root = tempfile::tempdir().expect("a directory");
    let place = root.path().join(REGISTER);
    for text in ["my files", "{\"cobre\":\"files\",\"format\":7}\n", "{}"] {
        std::fs::write(&place, text).expect("a file");
        Register::open(root.path()).expect_err(text);
    }
    std::fs::remove_file(&place).expect("it is removed");
    symlink("elsewhere", &place).expect("a link");
    Register::open(root.path()).expect_err("a link");
}

#[test]
fn a_line_that_was_cut_off_spoils_no_other() {
    let root = tempfile::tempdir().expect("a directory");
    let mut register = Register::open(root.path()).expect("none");
    register.claim(["one"]).expect("it is noted");
    let mut file = File::options()
        .append(true)
        .open(root.path().join(REGISTER))
        .expect("it is there");
    file.write_all(b"\"cut").expect("it is written");
    register.claim(["two"]).expect("it is noted");
    let next = Register::open(root.path()).expect("it is read");
    assert_eq!(next.names().collect::<Vec<_>>(), ["one", "two"]);
}

#[test]
fn a_file_that_was_changed_or_replaced_is_refused_and_stays() {
    let root = tempfile::tempdir().expect("a directory");
    let place = root.path().join("page");
    let mut register = Register::open(root.path()).expect("none");
    write(&mut register, "page");
    write(&mut register, "page");
    register.claim(["planned"]).expect("nothing is there");
    std::fs::write(root.path().join("planned"), "mine").expect("a file");
    std::fs::write(&place, "mine").expect("of the same length");
    for mut next in [register, Register::open(root.path()).expect("it is read")] {
        let error = next.check("page").expect_err("it was changed");
        assert!(matches!(error, FileError::Changed { .. }), "{error}");
        next.create("page").expect_err("it was changed");
        next.remove("page").expect_err("it was changed");
        next.check("planned").expect_err("it was never written");
    }
    assert_eq!(std::fs::read(&place).expect("it is there"), b"mine");
    let mut next = Register::open(root.path()).expect("it is read");
    next.settle().expect("it is written");
    assert!(!next.holds("page"), "it is nobody's again");
    assert!(!next.holds("planned"));
}

#[test]
fn a_copy_of_a_directory_is_known_too() {
    let root = tempfile::tempdir().expect("a directory");
    let copy = tempfile::tempdir().expect("a directory");
    write(&mut Register::open(root.path()).expect("none"), "page");
    for name in ["page", REGISTER] {
        std::fs::copy(root.path().join(name), copy.path().join(name)).expect("a copy");
    }
    let mut next = Register::open(copy.path()).expect("it is read");
    next.remove("page").expect("it is ours");
    assert!(!copy.path().join("page").exists());
}

#[test]
fn a_process_killed_at_any_moment_blocks_nothing() {
    let root = tempfile::tempdir().expect("a directory");
    let place = |name: &str| root.path().join(name);
    let mut register = Register::open(root.path()).expect("none");
    write(&mut register, "page");
    // Killed while it wrote the file: the unfinished one is known after others have written the register.
    std::mem::forget(register.create("page").expect("it is claimed"));
    std::mem::forget(register.create("other").expect("it is claimed"));
    register.settle().expect("it is written");
    let mut next = Register::open(root.path()).expect("it is read");
    write(&mut next, "other");
    // Killed between the proof and the file: the old one is known.
    let mut file = next.create("page").expect("it is claimed");
    file.write(b"newer").expect("it is written");
    let proof = json!({"name": "page", "bytes": 5, "sha256": "?", "changed": 0, "inode": 0});
    next.file.append(&[proof]).expect("it is noted");
    std::mem::forget(file);
    let next = Register::open(root.path()).expect("it is read");
    next.check("page").expect("the old one is ours");
    // Killed while it wrote the first line of the register.
    let text = std::fs::read(place(REGISTER)).expect("it is there");
    for length in 0..text.iter().position(|byte| *byte == b'\n').expect("a line") {
        std::fs::write(place(REGISTER), &text[..length]).expect("a file");
        let mut cut = Register::open(root.path()).expect("it is taken for empty");
        cut.claim(["new"]).expect("it is written anew");
        let next = Register::open(root.path()).expect("it is read");
        assert_eq!(next.names().collect::<Vec<_>>(), ["new"]);
    }
}

#[test]
fn names_that_no_file_can_have_are_not_on_it() {
    let root = tempfile::tempdir().expect("a directory");
    let text = format!(
        "{{\"cobre\":\"files\",\"format\":2}}\n\"{}\"\n\"{}\"\n\"sound\"\n",
        "a".repeat(300),
        "a/".repeat(3000)
    );
    std::fs::write(root.path().join(REGISTER), text).expect("a file");
    let mut register = Register::open(root.path()).expect("it is read");
    assert_eq!(register.names().collect::<Vec<_>>(), ["sound"]);
    register.create(&"a".repeat(251)).expect_err("too long");
    write(&mut register, &"a".repeat(249));
}

#[test]
fn logs_grow_and_are_no_results() {
    let root = tempfile::tempdir().expect("a directory");
    let place = root.path().join("rank-0.log");
    let mut register = Register::open(root.path()).expect("none");
    register.claim_logs(["rank-0.log"]).expect("it is noted");
    std::fs::write(&place, "one").expect("a file");
    let mut run = Register::open(root.path()).expect("it is read");
    assert_eq!(run.names_of_results().count(), 0);
    run.settle().expect("it is written");
    std::fs::write(&place, "one, two").expect("it grows");
    register.prove(["rank-0.log"]).expect("it is complete");
    let next = Register::open(root.path()).expect("it is read");
    next.check("rank-0.log").expect("it is ours");
    std::fs::write(&place, "mine").expect("a file");
    next.check("rank-0.log").expect_err("it was changed");
}
