//! Text on a terminal: the one place that writes to standard output and standard error.
//!
//! Names of files, hosts, keys and programs come from others and may hold anything: escape sequences that steer a
//! terminal, line breaks that pass for messages, marks that turn the direction of what follows. What is written here
//! shows them escaped, so that no message can forget to. Only what ranks of a user's program write is passed on as it
//! is, by their launcher.

use std::fmt::{Arguments, Write as _};
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

/// The longest line of an error, in letters: names come from others, and may be as long as a file.
const LONGEST_LINE: usize = 4000;

/// Standard output has refused something, a full disk for example.
static LOST: AtomicBool = AtomicBool::new(false);

/// True if a letter is no text but steers what shows it: control characters, marks of direction, line and paragraph
/// separators, and letters that are there but never seen.
pub fn steers(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A text on one line: letters that [steer](steers) a terminal are escaped, line breaks among them.
pub fn one_line(text: &str) -> String {
    escaped(text, |letter, line| line.extend(letter.escape_default()))
}

/// A text whose lines have at most 4,000 letters each: of longer ones, the beginning, and the count of letters after it.
pub fn bounded(text: &str) -> String {
    let line = |line: &str| match line.char_indices().nth(LONGEST_LINE) {
        Some((end, _)) => {
            let rest = line[end..].chars().count();
            format!("{} … and {rest} letters more", &line[..end])
        }
        None => line.to_owned(),
    };
    let lines: Vec<String> = text.split('\n').map(line).collect();
    lines.join("\n")
}

/// True if standard output has not taken all that was said, for another reason than that nobody reads it.
pub fn output_was_lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// A text on the lines that it has: as [`one_line`], but line breaks stay.
pub fn lines(text: &str) -> String {
    escaped(text, |letter, lines| match letter {
        '\n' => lines.push('\n'),
        letter => lines.extend(letter.escape_default()),
    })
}

/// A line of JSON: what [`steers`] a terminal is escaped as JSON does, so that readers get it back. Such letters
/// stand inside strings alone.
pub fn json(text: &str) -> String {
    escaped(text, |letter, line| {
        for unit in letter.encode_utf16(&mut [0; 2]) {
            // Writing to a text does not fail.
            let _ = write!(line, "\\u{unit:04x}");
        }
    })
}

fn escaped(text: &str, escape: impl Fn(char, &mut String)) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        if steers(letter) {
            escape(letter, &mut safe);
        } else {
            safe.push(letter);
        }
    }
    safe
}

/// Writes one line to standard output.
///
/// # Errors
/// When that does not take it.
pub fn say(text: Arguments<'_>) -> io::Result<()> {
    out(one_line(&text.to_string()))
}

/// Writes one line of JSON to standard output.
///
/// # Errors
/// When that does not take it.
pub fn say_json(text: &str) -> io::Result<()> {
    out(json(text))
}

/// Writes a text to standard output as it is: a program's own, of which nothing comes from others.
///
/// # Errors
/// When that does not take it.
pub fn say_own(text: &str) -> io::Result<()> {
    io::stdout().write_all(text.as_bytes())
}

/// Writes lines to standard error. Without a reader there is nobody to tell.
pub fn complain(text: &str) {
    let mut text = bounded(&lines(text));
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let _ = io::stderr().write_all(text.as_bytes());
}

fn out(mut line: String) -> io::Result<()> {
    line.push('\n');
    let written = io::stdout().write_all(line.as_bytes());
    if let Err(error) = &written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        LOST.store(true, Ordering::Relaxed);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\u{1b}[2J\0b\r\nc\td\u{7f}\u{9b}\u{202e}\u{2066}\u{2028}\u{e0041}ç´é日";

    #[test]
    fn nothing_that_steers_a_terminal_is_left() {
        for text in [one_line(HOSTILE), json(HOSTILE)] {
            assert!(!text.chars().any(steers), "{text:?}");
        }
        assert_eq!(lines(HOSTILE).matches(steers).collect::<String>(), "\n");
        assert_eq!(
            one_line(HOSTILE),
            "a\\u{1b}[2J\\u{0}b\\r\\nc\\td\\u{7f}\\u{9b}\\u{202e}\\u{2066}\\u{2028}\\u{e0041}ç´é日"
        );
    }

    #[test]
    fn what_is_safe_stays_as_it_is() {
        let text = "Itaipú: 14 000 MW, \"d'água\" \\ 日本 👩‍🔧";
        assert_eq!(one_line(text), text);
        assert_eq!(one_line(&one_line(HOSTILE)), one_line(HOSTILE));
    }

    #[test]
    fn lines_of_errors_are_bounded() {
        let long = format!("short\n{}\n", "é".repeat(300_000));
        let text = bounded(&long);
        assert!(text.starts_with("short\né"), "{text}");
        assert!(
            text.ends_with("é … and 296000 letters more\n"),
            "{}",
            text.len()
        );
        assert_eq!(bounded("a\nb"), "a\nb");
    }

    #[test]
    fn json_escapes_have_four_digits_each() {
        assert_eq!(json("\u{7f}\u{9b}"), "\\u007f\\u009b");
        assert_eq!(json("\u{e0041}"), "\\udb40\\udc41");
    }
}
