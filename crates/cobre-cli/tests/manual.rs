//! Completions and manual pages say what the command line takes.

use std::process::Command;

fn cobre(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_cobre"))
        .args(arguments)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The subcommands that the help shows.
fn subcommands() -> Vec<String> {
    let help = cobre(&["--help"]);
    let listed = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty());
    let names = listed.filter_map(|line| {
        let entry = line.strip_prefix("  ")?;
        // A description may go on in another line.
        (!entry.starts_with(' ')).then(|| entry.split_whitespace().next())?
    });
    let names = names.filter(|name| *name != "help").map(str::to_owned);
    let names: Vec<String> = names.collect();
    assert!(names.len() > 8, "{names:?}");
    names
}

#[test]
fn every_shell_completes_every_subcommand() {
    for shell in ["bash", "zsh", "fish"] {
        let text = cobre(&["completions", shell]);
        for name in subcommands() {
            assert!(text.contains(&name), "{shell}: {name}");
        }
        assert!(text.contains("forward-passes"), "{shell}");
        assert!(!text.contains("\\u{1b}"), "{shell}");
    }
}

#[test]
fn every_subcommand_has_a_manual_page() {
    let pages = cobre(&["man", "--list"]);
    assert!(pages.lines().any(|page| page == "cobre"), "{pages}");
    for name in subcommands() {
        let page = format!("cobre-{name}");
        assert!(pages.lines().any(|found| found == page), "{pages}");
        let text = cobre(&["man", &page]);
        assert!(
            text.contains(".SH NAME") && text.contains(".SH SYNOPSIS"),
            "{text}"
        );
    }
    assert!(cobre(&["man", "cobre-run"]).contains("forward\\-passes"));
}

#[test]
fn a_page_that_is_not_there_is_named() {
    let output = Command::new(env!("CARGO_BIN_EXE_cobre"))
        .args(["man", "cobre-lightning"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cobre-lightning"));
}

#[test]
fn every_option_of_a_run_is_in_the_table_of_the_book() {
    let page = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../book/src/guide/running.md"
    );
    let page = std::fs::read_to_string(page).unwrap();
    let help = cobre(&["run", "--help"]);
    let options = help.lines().filter_map(|line| {
        let words = line.split([' ', ',']).filter(|word| !word.is_empty());
        let mut options = words.take(2).filter(|word| word.starts_with("--"));
        let is_option = line.trim_start().starts_with('-');
        options.next().filter(|_| is_option)
    });
    let options: Vec<&str> = options.filter(|option| *option != "--help").collect();
    assert!(options.len() > 30, "{options:?}");
    for option in options {
        assert!(page.contains(&format!("`{option}")), "{option}");
    }
}
