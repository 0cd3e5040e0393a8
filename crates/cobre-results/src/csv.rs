//! Tables as CSV files.
//!
//! Cells that spreadsheets would compute, and the way numbers are written, are what a general library does not
//! decide; the rest is ten lines.

use std::fmt::Write as _;

use crate::rows::{Cell, Rows};
use crate::schema::TableSchema;

/// The first line of a CSV file.
pub(crate) fn header(schema: &TableSchema) -> String {
    let names = schema.columns.iter().map(|column| quoted(&column.name));
    let names: Vec<String> = names.collect();
    names.join(",") + "\n"
}

/// A table as the text of a CSV file.
pub fn text(schema: &TableSchema, rows: &Rows) -> String {
    header(schema) + &lines(rows)
}

/// Rows as lines of CSV. Numbers have as many digits as it takes to get the same number back.
pub(crate) fn lines(rows: &Rows) -> String {
    let mut text = String::new();
    for row in 0..rows.count() {
        for column in 0..rows.columns().len() {
            if column > 0 {
                text.push(',');
            }
            // Writing to a text does not fail.
            let _ = match rows.cell(row, column) {
                Cell::Integer(number) => write!(text, "{number}"),
                Cell::Number(number) | Cell::Maybe(Some(number)) => write!(text, "{number:?}"),
                Cell::Maybe(None) => Ok(()),
                Cell::Text(value) => write!(text, "{}", quoted(value)),
            };
        }
        text.push('\n');
    }
    text
}

/// A text as a cell of CSV. One that a spreadsheet would take for a formula has an apostrophe in front; so has one that
/// looks like such a cell, and whoever takes one apostrophe away has the text.
pub(crate) fn quoted(text: &str) -> String {
    let apostrophe = if is_formula(text.trim_start_matches('\'')) {
        "'"
    } else {
        ""
    };
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{apostrophe}{}\"", text.replace('"', "\"\""))
    } else {
        format!("{apostrophe}{text}")
    }
}

/// True if a spreadsheet would compute a text instead of showing it. A number is what it computes
/// to.
fn is_formula(text: &str) -> bool {
    let starts = [
        '=', '+', '-', '@', '\t', '\r', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
    ];
    text.starts_with(starts) && !text.parse().is_ok_and(f64::is_finite)
}

/// The parts of a text between separators that are not inside quotes.
pub(crate) fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    text.split(move |letter: char| {
        quoted ^= letter == '"';
        letter == separator && !quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Column, Kind};

    #[test]
    fn csv_has_every_digit_and_quotes_what_must_be() {
        let schema = TableSchema::new(
            "a",
            vec![
                Column::new("text", Kind::Text, ""),
                Column::number("x, y", "", ""),
                Column::new("z", Kind::Maybe, ""),
            ],
        );
        let mut rows = Rows::new(&schema);
        rows.push(&["a \"b\"".into(), (0.1 + 0.2).into(), None.into()]);
        rows.push(&["c".into(), 1e300.into(), Some(-2.0).into()]);
        assert_eq!(header(&schema), "text,\"x, y\",z\n");
        let found = lines(&rows);
        assert_eq!(
            found,
            "\"a \"\"b\"\"\",0.30000000000000004,\nc,1e300,-2.0\n"
        );
    }

    #[test]
    fn texts_that_spreadsheets_would_compute_have_an_apostrophe() {
        for (text, cell) in [
            ("=1+1", "'=1+1"),
            ("+cmd", "'+cmd"),
            ("-2+3", "'-2+3"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\tx", "'\tx"),
            ("\r=x", "\"'\r=x\""),
            ("=A1,\"b\"", "\"'=A1,\"\"b\"\"\""),
            ("-inf", "'-inf"),
            ("'=x", "''=x"),
            ("'s", "'s"),
            ("-1.5", "-1.5"),
            ("+2e3", "+2e3"),
            ("a-b", "a-b"),
            ("", ""),
        ] {
            assert_eq!(quoted(text), cell);
        }
        let schema = TableSchema::new("a", vec![Column::number("=x", "", "")]);
        assert_eq!(header(&schema), "'=x\n");
    }
}
