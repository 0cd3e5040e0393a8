//! Words and small tables for a terminal.

use std::fmt::Write as _;

use cobre_comm::terminal::one_line;

use crate::exit::say;

/// The columns of a terminal that texts are to fit in.
const WIDTH: usize = 80;
/// Those that the first column of a table takes at most.
const WORDS: usize = 36;

/// A count with its noun, in the singular or the plural.
pub(crate) fn plural(count: usize, word: &str) -> String {
    let end = if count == 1 { "" } else { "s" };
    format!("{count} {word}{end}")
}

/// A table for a terminal: the first column is words, the others are numbers.
pub(crate) struct TerminalTable(Vec<Vec<String>>);

impl TerminalTable {
    /// A table with these headings.
    pub(crate) fn new<const N: usize>(headings: [&str; N]) -> Self {
        Self(vec![headings.map(str::to_owned).to_vec()])
    }

    /// Adds a row.
    pub(crate) fn row<const N: usize>(&mut self, mut row: [String; N]) {
        row = row.map(|cell| one_line(&cell));
        row[0] = short(&row[0]);
        self.0.push(row.to_vec());
    }

    /// Prints it.
    pub(crate) fn print(&self) {
        let columns = self.0.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.0.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.0 {
            let mut line = String::from(" ");
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                // Writing to a text does not fail.
                let _ = if column == 0 {
                    write!(line, " {cell:<width$}")
                } else {
                    write!(line, "  {cell:>width$}")
                };
            }
            say!("{}", line.trim_end());
        }
    }
}

/// Words of which the end is left out if they are many.
fn short(text: &str) -> String {
    if text.chars().count() <= WORDS {
        return text.to_owned();
    }
    text.chars().take(WORDS - 1).chain(['…']).collect()
}

/// Prints the title of what follows, after an empty line unless it is the first.
pub(crate) fn title(text: &str, first: bool) {
    if !first {
        say!("");
    }
    say!("{text}");
}

/// Prints what something is and what it says, on as many lines as that takes.
pub(crate) fn fact(name: &str, text: &str) {
    for line in wrapped(&format!("  {name:<11}"), 13, text) {
        say!("{line}");
    }
}

/// The lines of a text after the words `start`, none wider than a terminal if its words allow that; those after the
/// first are indented.
pub(crate) fn wrapped(start: &str, indent: usize, text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = start.to_owned();
    for word in one_line(text).split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    lines.push(line);
    lines
}

/// Amounts of one magnitude: what they are divided by, and what that is called.
pub(crate) fn magnitude(largest: f64) -> (f64, &'static str) {
    match largest.abs() {
        most if most >= 1e9 => (1e6, "million "),
        most if most >= 1e6 => (1e3, "thousand "),
        _ => (1.0, ""),
    }
}

/// A number with about six digits that count.
pub(crate) fn number(value: f64) -> String {
    if value.is_nan() {
        return "-".to_owned();
    }
    let size = value.abs();
    if size >= 1e9 || (size < 1e-3 && size > 0.0) {
        return format!("{value:.4e}");
    }
    let digits = match size {
        size if size >= 10_000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 1.0 => 2,
        _ => 4,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn long_texts_go_on_in_a_further_line() {
        let text = "word ".repeat(30);
        let lines = wrapped("what        ", 12, &text);
        assert_eq!(lines.len(), 3, "{lines:#?}");
        assert!(lines.iter().all(|line| line.chars().count() <= 80));
        assert!(lines[0].starts_with("what         word"), "{lines:#?}");
        assert!(lines[1].starts_with("             word"), "{lines:#?}");
        assert_eq!(wrapped("", 2, "short"), ["short"]);
    }
}
