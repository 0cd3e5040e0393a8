//! README.md and the book keep their word: the shell sessions they show are run, their links lead
//! somewhere, and their tables are complete.
//!
//! In a `console` block a line `$ …` is a command. A line `# exits N` below it says how it ends; 0
//! if there is none. Every other line must be a line of what the command prints, in any order, as
//! ranks write when they like; `…` stands for anything. The block below a line `<!-- file: PATH -->`
//! is written to PATH. A `console without-mpi` block shows a build without the backend `mpi`, and runs
//! in one alone; `ci/transcript.py` runs a `console slurm` block, where there is a Slurm. The blocks of one page are one session: it starts in the root of the
//! repository, and a `cd` holds until the page ends.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Longest time one command may take; the slowest compiles a program with all dependencies, on a busy machine.
const DEADLINE: Duration = Duration::from_secs(1800);

/// The language of blocks that show a build without the backend `mpi`.
const WITHOUT_MPI: &str = "console without-mpi";

/// Variables of this process that commands get; others could change what they print.
const PASSED_ON: [&str; 5] = [
    "HOME",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "TMPDIR",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// Path from the root, and text, of each page.
fn pages() -> Vec<(String, String)> {
    let root = root();
    let mut files = vec![root.join("README.md"), root.join("ARCHITECTURE.md")];
    files.extend([root.join("CONTRIBUTING.md"), root.join("SECURITY.md")]);
    let mut folders = vec![root.join("book/src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                files.push(path);
            }
        }
    }
    files.sort();
    let name = |path: &Path| {
        path.strip_prefix(&root)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    };
    files
        .iter()
        .map(|path| (name(path), fs::read_to_string(path).unwrap()))
        .collect()
}

/// A fenced block of a page.
struct Block<'a> {
    language: &'a str,
    /// Where the page says its content belongs.
    file: Option<&'a str>,
    lines: Vec<&'a str>,
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    let (mut blocks, mut above) = (Vec::new(), "");
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            let file = above
                .strip_prefix("<!-- file: ")
                .and_then(|rest| rest.strip_suffix(" -->"));
            let content = lines
                .by_ref()
                .take_while(|line| !line.trim_start().starts_with("```"));
            blocks.push(Block {
                language,
                file,
                lines: content.collect(),
            });
        }
        above = line;
    }
    blocks
}

/// A command and what the page says of it.
#[derive(Debug, Default, PartialEq)]
struct Step {
    command: String,
    exit_code: i32,
    shown: Vec<String>,
}

fn steps(lines: &[&str]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in lines {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step {
                command: command.to_owned(),
                ..Step::default()
            });
            continue;
        }
        let step = steps
            .last_mut()
            .expect("a console block starts with a command");
        if let Some(code) = line.strip_prefix("# exits ") {
            step.exit_code = code.parse().expect("an exit code");
        } else if !line.trim().is_empty() {
            step.shown.push((*line).to_owned());
        }
    }
    steps
}

/// True if `line` is one that `shown` stands for.
fn matches(shown: &str, line: &str) -> bool {
    let pieces: Vec<&str> = shown.trim_end().split('…').collect();
    let [first, middle @ .., last] = &pieces[..] else {
        return pieces[0] == line.trim_end();
    };
    let Some(mut rest) = line.trim_end().strip_prefix(first) else {
        return false;
    };
    for piece in middle {
        let Some(place) = rest.find(piece) else {
            return false;
        };
        rest = &rest[place + piece.len()..];
    }
    rest.ends_with(last)
}

/// The shown lines that are not printed; each printed line stands for one shown line at most.
fn missing(shown: &[String], printed: &str) -> Vec<String> {
    let mut printed: Vec<&str> = printed.lines().collect();
    let mut shown: Vec<&String> = shown.iter().collect();
    // The most specific ones first, so that a wildcard does not take their line.
    shown.sort_by_key(|line| line.matches('…').count());
    shown.retain(|line| {
        let place = printed
            .iter()
            .position(|candidate| matches(line, candidate));
        place.map(|place| printed.remove(place)).is_none()
    });
    shown.into_iter().cloned().collect()
}

/// The commands of one page, run one after the other.
struct Session {
    scratch: TempDir,
    /// Links to all that is in the repository: what a page writes, there or after `cd ..`, goes with the
    /// scratch directory.
    directory: PathBuf,
    path: String,
}

impl Session {
    fn new(binaries: &Path) -> Self {
        let scratch = TempDir::new().unwrap();
        let directory = scratch.path().join("cobre");
        fs::create_dir(&directory).unwrap();
        for entry in fs::read_dir(root()).unwrap() {
            let entry = entry.unwrap();
            std::os::unix::fs::symlink(entry.path(), directory.join(entry.file_name())).unwrap();
        }
        let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap());
        Self {
            scratch,
            directory,
            path,
        }
    }

    fn write(&self, file: &str, lines: &[&str]) {
        // Lines that rustdoc and the book hide begin with `# `.
        let lines: Vec<_> = lines
            .iter()
            .map(|line| line.strip_prefix("# ").unwrap_or(line))
            .collect();
        fs::write(self.directory.join(file), lines.join("\n") + "\n").unwrap();
    }

    /// Runs `step`; what is wrong with it, if anything.
    fn run(&mut self, step: &Step, deadline: Duration) -> Result<(), String> {
        let (code, printed) = self.shell(&step.command, deadline)?;
        let mut wrong = String::new();
        if code != Some(step.exit_code) {
            let _ = writeln!(wrong, "  exits {code:?}, the page says {}", step.exit_code);
        }
        for line in missing(&step.shown, &printed) {
            let _ = writeln!(wrong, "  does not print: {line}");
        }
        if wrong.is_empty() {
            return Ok(());
        }
        Err(format!(
            "$ {}\n{wrong}  it printed:\n{printed}",
            step.command
        ))
    }

    /// Exit code and output of a command. The output goes through a file: a process that the
    /// command leaves behind cannot hold the session up.
    fn shell(
        &mut self,
        command: &str,
        deadline: Duration,
    ) -> Result<(Option<i32>, String), String> {
        let (output, position) = (
            self.scratch.path().join("output"),
            self.scratch.path().join("pwd"),
        );
        let file = File::create(&output).unwrap();
        let script = format!(
            "{command}\nstatus=$?; pwd >'{}'; exit $status",
            position.display()
        );
        let passed_on = PASSED_ON
            .iter()
            .filter_map(|name| Some((name, std::env::var_os(name)?)));
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .current_dir(&self.directory)
            .env_clear()
            .envs(passed_on)
            .envs([
                ("PATH", self.path.as_str()),
                ("PWD", self.directory.to_str().unwrap()),
            ])
            // What a page compiles needs nothing that compiling this test has not fetched.
            .env("CARGO_NET_OFFLINE", "true")
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .process_group(0)
            .spawn()
            .unwrap();
        let end = Instant::now() + deadline;
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > end {
                let group = format!("kill -KILL -{}", child.id());
                assert!(
                    Command::new("sh")
                        .args(["-c", &group])
                        .status()
                        .unwrap()
                        .success()
                );
                child.wait().unwrap();
                return Err(format!("$ {command}\n  is not done after {deadline:?}\n"));
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        if let Ok(position) = fs::read_to_string(&position) {
            self.directory = PathBuf::from(position.trim_end());
        }
        Ok((
            status.code(),
            String::from_utf8_lossy(&fs::read(output).unwrap()).into_owned(),
        ))
    }
}

/// True if the programs of this build have the backend `mpi`.
fn has_mpi() -> bool {
    cobre_comm::available_backends().contains(&"mpi")
}

/// Builds what the pages run, with the features of this test; the folder of the programs.
fn binaries() -> PathBuf {
    let build = [
        "build",
        "--quiet",
        "--release",
        "--workspace",
        "--bins",
        "--examples",
    ];
    let status = Command::new(env!("CARGO"))
        .args(build)
        .args(has_mpi().then_some("--features=mpi"))
        .current_dir(root())
        .status()
        .unwrap();
    assert!(
        status.success(),
        "the programs of the workspace do not build"
    );
    root().join("target/release")
}

#[test]
fn every_shown_command_does_what_its_page_says() {
    let binaries = binaries();
    let (mut commands, mut failures) = (0, String::new());
    for (name, text) in pages() {
        let mut session = Session::new(&binaries);
        for block in blocks(&text) {
            if let Some(file) = block.file {
                session.write(file, &block.lines);
            }
            let runs = match block.language {
                "console" => true,
                WITHOUT_MPI => !has_mpi(),
                _ => false,
            };
            if !runs {
                continue;
            }
            for step in steps(&block.lines) {
                commands += 1;
                if let Err(wrong) = session.run(&step, DEADLINE) {
                    let _ = writeln!(failures, "{name}: {wrong}");
                }
            }
        }
    }
    println!("{commands} commands");
    assert!(failures.is_empty(), "\n{failures}");
    assert!(commands > 20, "the commands were not found");
}

/// A program that an earlier build left in the target directory would hide that its source is gone.
#[test]
fn every_example_that_a_page_runs_has_its_source() {
    let crates: Vec<PathBuf> = fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().path().join("examples"))
        .collect();
    let mut examples = 0;
    for (page, text) in pages() {
        for rest in text.split("target/release/examples/").skip(1) {
            let name: String = rest
                .chars()
                .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
                .collect();
            let name = name.strip_prefix("lib").unwrap_or(&name);
            let is_there = |folder: &PathBuf| {
                folder.join(name).is_dir() || folder.join(format!("{name}.rs")).is_file()
            };
            assert!(crates.iter().any(is_there), "{page}: examples/{name}");
            examples += 1;
        }
    }
    assert!(examples > 3, "the examples were not found");
}

#[test]
fn every_page_with_rust_code_is_compiled() {
    let list = include_str!("../src/book.rs");
    for (name, text) in pages() {
        let has_code = blocks(&text)
            .iter()
            .any(|block| block.language.starts_with("rust"));
        assert_eq!(
            has_code,
            list.contains(&format!("\"{name}\"")),
            "{name} in src/book.rs"
        );
    }
}

#[test]
fn every_block_names_its_language() {
    for (name, text) in pages() {
        for block in blocks(&text) {
            assert!(
                !block.language.is_empty(),
                "{name}: rustdoc takes a bare block for Rust"
            );
        }
    }
}

#[test]
fn every_page_of_the_book_is_in_its_summary() {
    let summary = fs::read_to_string(root().join("book/src/SUMMARY.md")).unwrap();
    for (name, _) in pages() {
        if let Some(page) = name
            .strip_prefix("book/src/")
            .filter(|page| *page != "SUMMARY.md")
        {
            assert!(summary.contains(&format!("({page})")), "{page}");
        }
    }
}

/// The text between `](` and `)` of each link outside code blocks.
fn links(page: &str) -> Vec<&str> {
    let mut code = false;
    let prose = page.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    });
    prose
        .flat_map(|line| {
            line.split("](")
                .skip(1)
                .filter_map(|rest| rest.split(')').next())
        })
        .collect()
}

/// A heading as links name it.
fn anchor(heading: &str) -> String {
    let words = heading
        .trim_start_matches('#')
        .trim()
        .to_lowercase()
        .replace(' ', "-");
    words
        .chars()
        .filter(|letter| letter.is_alphanumeric() || "-_".contains(*letter))
        .collect()
}

#[test]
fn every_link_leads_somewhere() {
    for (name, text) in pages() {
        for link in links(&text)
            .into_iter()
            .filter(|link| !link.contains("://"))
        {
            let (file, fragment) = link.split_once('#').unwrap_or((link, ""));
            let page = root().join(&name);
            let target = if file.is_empty() {
                page
            } else {
                page.parent().unwrap().join(file)
            };
            assert!(target.exists(), "{name}: {link}");
            if !fragment.is_empty() {
                let text = fs::read_to_string(target).unwrap();
                let mut headings = text.lines().filter(|line| line.starts_with('#'));
                assert!(
                    headings.any(|heading| anchor(heading) == fragment),
                    "{name}: {link}"
                );
            }
        }
    }
}

/// The variables that `env.rs` names.
fn variables() -> Vec<&'static str> {
    let source = include_str!("../../cobre-comm/src/env.rs");
    let constant = |line: &'static str| {
        let (_, value) = line.strip_prefix("pub const ")?.split_once("= \"")?;
        let name = value.strip_suffix("\";")?;
        name.starts_with("COBRE_").then_some(name)
    };
    source.lines().filter_map(constant).collect()
}

#[test]
fn every_variable_has_its_row_which_says_what_the_launcher_does_with_it() {
    let page = fs::read_to_string(root().join("book/src/reference/selection.md")).unwrap();
    let variables = variables();
    let job = cobre_comm::env::JOB;
    assert!(job.iter().all(|variable| variables.contains(variable)));
    for variable in variables {
        let start = format!("| `{variable}` |");
        let end = if job.contains(&variable) {
            "| replaces |"
        } else {
            "| passes |"
        };
        assert!(
            page.lines()
                .any(|line| line.starts_with(&start) && line.ends_with(end)),
            "{variable} {end}"
        );
    }
}

#[test]
fn every_page_of_a_backend_has_all_headings() {
    let reference = root().join("book/src/reference");
    let adding = fs::read_to_string(reference.join("adding-a-backend.md")).unwrap();
    let template = blocks(&adding).pop().unwrap().lines;
    let template: Vec<_> = template
        .iter()
        .filter_map(|line| line.split("   ").next())
        .skip(1)
        .collect();
    assert_eq!(template.len(), 9);
    for entry in fs::read_dir(reference.join("backends")).unwrap() {
        let path = entry.unwrap().path();
        let page = fs::read_to_string(&path).unwrap();
        let headings: Vec<_> = page
            .lines()
            .filter(|line| line.starts_with("## "))
            .collect();
        assert_eq!(headings, template, "{}", path.display());
    }
}

fn step(text: &str) -> Step {
    let lines: Vec<_> = text.lines().collect();
    steps(&lines).pop().unwrap()
}

#[test]
fn a_shown_line_that_is_not_printed_is_reported() {
    let mut session = Session::new(Path::new("/nowhere"));
    let run = |session: &mut Session, text| session.run(&step(text), DEADLINE);
    assert_eq!(
        run(&mut session, "$ printf 'a b c\\nx\\n'\nx\na … c"),
        Ok(())
    );
    for wrong in [
        "$ echo abc\nab",
        "$ echo abc\n…d",
        "$ echo a\na\na",
        "$ echo abc\na…c…c",
    ] {
        let error = run(&mut session, wrong).unwrap_err();
        assert!(error.contains("does not print"), "{error}");
    }
}

#[test]
fn another_exit_code_than_the_page_says_is_reported() {
    let mut session = Session::new(Path::new("/nowhere"));
    assert_eq!(session.run(&step("$ exit 3\n# exits 3"), DEADLINE), Ok(()));
    for wrong in ["$ exit 3", "$ true\n# exits 3", "$ kill -9 $$"] {
        assert!(
            session
                .run(&step(wrong), DEADLINE)
                .unwrap_err()
                .contains("the page says")
        );
    }
}

#[test]
fn a_command_that_hangs_is_ended() {
    let mut session = Session::new(Path::new("/nowhere"));
    let start = Instant::now();
    let error = session.run(&step("$ sleep 60 & sleep 60"), Duration::from_millis(100));
    assert!(error.unwrap_err().contains("not done"));
    assert!(start.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_session_remembers_where_it_is() {
    let mut session = Session::new(Path::new("/nowhere"));
    assert_eq!(
        session.run(
            &step("$ test -f Makefile && cd .. && mkdir new && cd new"),
            DEADLINE
        ),
        Ok(())
    );
    session.write("main.rs", &["# let hidden = 1;", "let shown = 2;"]);
    assert_eq!(
        session.run(
            &step("$ cat main.rs\nlet hidden = 1;\nlet shown = 2;"),
            DEADLINE
        ),
        Ok(())
    );
    assert!(!root().join("new").exists());
}
