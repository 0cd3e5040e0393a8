//! Names that would steer a terminal: every command shows them escaped, on both streams.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Rounds of random names, each through every command.
const ROUNDS: u64 = 12;
/// The parts of names.
const PARTS: [&[u8]; 14] = [
    b"\x1b[2J\x1b[31m",
    b"\x1b]0;title\x07",
    b"\n",
    b"\ncobre run: all is well",
    b"\r",
    b"\t",
    b"\x7f\x08\x08",
    b"\xc2\x9b31m",
    "\u{202e}gnp.exe".as_bytes(),
    "\u{2066}\u{2028}".as_bytes(),
    b"\xff\xfe",
    b"\xc3(",
    b"plain name",
    "d'água".as_bytes(),
];

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }

    /// A name of a file.
    fn name(&mut self) -> OsString {
        let parts = (0..=self.below(3)).flat_map(|_| PARTS[self.below(PARTS.len())].to_vec());
        OsString::from_vec(parts.collect())
    }
}

fn cobre(directory: &Path, words: &[&OsStr]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cobre"));
    command.current_dir(directory).args(words);
    command.output().expect("it starts")
}

/// True if a letter may be on a terminal.
fn harmless(letter: char) -> bool {
    letter == '\n'
        || !(letter.is_control()
            || matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
}

/// Both streams are text that does not steer, and no line of another name passes for a message.
fn check(words: &[&OsStr], output: &Output) {
    for stream in [&output.stdout, &output.stderr] {
        let text = std::str::from_utf8(stream).unwrap_or_else(|error| panic!("{words:?}: {error}"));
        assert!(text.chars().all(harmless), "{words:?}: {text:?}");
        let faked = text
            .lines()
            .any(|line| line.starts_with("cobre run: all is well"));
        assert!(!faked, "{words:?}: {text:?}");
        assert!(!text.contains("panicked"), "{words:?}: {text}");
    }
    let code = output.status.code();
    assert!(code.is_some(), "{words:?}: {output:?}");
    if words.contains(&OsStr::new("--json")) {
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(text.lines().count(), 1, "{words:?}: {text:?}");
        serde_json::from_str::<serde_json::Value>(&text).expect("it is JSON");
    }
}

/// A case of which a plant has this name and a key that is not known.
fn renamed(directory: &Path, name: &OsStr) -> PathBuf {
    let case = directory.join("renamed");
    let _ = std::fs::remove_dir_all(&case);
    let made = cobre(
        directory,
        &["init".as_ref(), "one-reservoir".as_ref(), case.as_ref()],
    );
    assert!(made.status.success(), "{made:?}");
    let file = case.join("system/thermals.json");
    let text = std::fs::read(&file).expect("it is there");
    let mut value: serde_json::Value = serde_json::from_slice(&text).expect("it is JSON");
    let name = format!("{}\0", name.to_string_lossy());
    value["thermals"][0]["name"] = name.clone().into();
    if name.len() % 2 == 0 {
        value["thermals"][0][name] = 1.into();
    }
    std::fs::write(&file, value.to_string()).expect("it is written");
    case
}

#[test]
fn no_name_steers_the_terminal() {
    let scratch = tempfile::tempdir().expect("a directory");
    let here = scratch.path();
    let mut random = Random(2026);
    for _ in 0..ROUNDS {
        let name = random.name();
        let missing = here
            .join(format!("missing{}", random.below(1000)))
            .join(&name);
        let mut case = OsString::from("case-");
        case.push(&name);
        let mut results = OsString::from("results-");
        results.push(&name);
        let renamed = renamed(here, &name);
        let [name, missing, case, results, renamed]: [&OsStr; 5] = [
            name.as_ref(),
            missing.as_ref(),
            case.as_ref(),
            results.as_ref(),
            renamed.as_ref(),
        ];
        let [json, output, quick, simulate] =
            ["--json", "--output", "--iterations=1", "--simulate=2"].map(OsStr::new);
        let word = OsStr::new;
        let lines: [&[&OsStr]; 25] = [
            &[name],
            &[word("run"), missing],
            &[word("run"), missing, json],
            &[word("run"), word("--solver"), name, missing],
            &[word("run"), word("--solver"), name, json],
            &[word("run"), word("--backend"), name, missing],
            &[word("validate"), missing],
            &[word("validate"), missing, json],
            &[word("init"), name, missing],
            &[word("init"), word("one-reservoir"), case],
            &[word("init"), word("one-reservoir"), case],
            &[word("validate"), case],
            &[
                word("run"),
                case,
                quick,
                simulate,
                output,
                results,
                word("--csv"),
            ],
            &[
                word("run"),
                case,
                quick,
                output,
                results,
                word("--resume"),
                json,
                word("--quiet"),
            ],
            &[word("run"), case, quick, word("--warm-start"), missing],
            &[word("summary"), results],
            &[word("compare"), results, results],
            &[word("compare"), results, missing],
            &[word("report"), results],
            &[word("report"), missing],
            &[word("schema"), missing],
            &[word("launch"), word("-n1"), word("--"), missing],
            &[
                word("launch"),
                word("-n1"),
                word("--backend"),
                name,
                word("--"),
                word("true"),
            ],
            &[word("validate"), renamed],
            &[word("run"), renamed, quick, simulate],
        ];
        for words in lines {
            check(words, &cobre(here, words));
        }
    }
}

#[test]
fn variables_do_not_steer_the_terminal() {
    let mut random = Random(7);
    for variable in [
        "COBRE_COMM_BACKEND",
        "COBRE_SHM_NAME",
        "COBRE_TCP_RANK",
        "COBRE_SHM_SIZE",
    ] {
        let name = random.name();
        let mut command = Command::new(env!("CARGO_BIN_EXE_cobre"));
        command.arg("doctor").env("COBRE_COMM_BACKEND", "shm");
        let output = command.env(variable, &name).output().expect("it starts");
        check(&[variable.as_ref(), &name], &output);
    }
}

#[test]
fn what_ranks_write_is_passed_on_byte_for_byte() {
    let text = OsStr::from_bytes(b"\x1b[31m\xff\r\x07red");
    let here = Path::new(".");
    let words = ["launch", "-n1", "--", "printf", "%s\\n"].map(OsStr::new);
    let output = cobre(here, &[&words[..], &[text]].concat());
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout, b"[0] \x1b[31m\xff\r\x07red\n");
}
