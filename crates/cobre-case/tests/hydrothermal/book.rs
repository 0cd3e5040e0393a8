//! The book lists every key of every file, as the declarations that read them have it.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use cobre_case::Options;
use cobre_results::TableSchema;
use serde_json::Value;

const HEAD: &str = "# Every file of a case

This page lists every key of every file. A test compares it with the declarations that read the files. A key that is not
listed is an error, and so are keys and files of the format that this version does not support: the message names them.
`\"$schema\"` is allowed in every object, and an optional key may be null, which is the same as leaving it out.

Numbers have their units in their names: MW, m³/s (`m3s`), hm³ (`hm3`), $/MWh, hours. The absolute value of a number is at
most 10¹⁵, because solvers treat larger numbers as infinite. [The model](../reference/hydrothermal-model.md) explains how
each number enters the linear programs.
";

const TABLES_HEAD: &str = "# Every table of a simulation

This page lists the tables that a simulation adds to those that [every run](../guide/results.md) writes, and their
columns. A test compares it with the declarations that write them; `dictionary.csv` in a results directory describes the
tables of that run. Numbers have their units in their names. Costs are in money of their stage; multiply by `discount`
to get money of the first stage. A run does not write a table for elements that the case does not have.
";

/// The constraint on a value, in a few words.
fn kind(schema: &Value) -> String {
    if let Some(options) = schema["anyOf"].as_array() {
        let null = serde_json::json!({"type": "null"});
        let words: Vec<String> = options
            .iter()
            .filter(|option| **option != null)
            .map(kind)
            .collect();
        return words.join(" or ");
    }
    if let Some(text) = schema["const"].as_str() {
        return format!("`\"{text}\"`");
    }
    if let Some(choices) = schema["enum"].as_array() {
        let choices = choices
            .iter()
            .filter_map(Value::as_str)
            .map(|choice| format!("`\"{choice}\"`"));
        return choices.collect::<Vec<_>>().join(", ");
    }
    let limit = |key: &str, sign: &str| match &schema[key] {
        Value::Null => String::new(),
        value if value.as_f64().is_some_and(|value| value.abs() > 1e9) => String::new(),
        value => format!(" {sign} {value}"),
    };
    match schema["type"].as_str().unwrap_or_default() {
        "array" => match kind(&schema["items"]).as_str() {
            "object" => "list".to_owned(),
            element => format!("list of {element}"),
        },
        "" => "any".to_owned(),
        "string" if schema["format"] == "date" => "date".to_owned(),
        "string" => "text".to_owned(),
        "boolean" => "true, false".to_owned(),
        other => format!(
            "{other}{}{}{}{}",
            limit("minimum", "≥"),
            limit("exclusiveMinimum", ">"),
            limit("maximum", "≤"),
            limit("exclusiveMaximum", "<")
        ),
    }
}

/// The keys of an object, and of the objects in it.
fn keys(prefix: &str, schema: &Value, page: &mut String) {
    let options = schema["anyOf"].as_array();
    if let Some(option) = options.and_then(|options| {
        options
            .iter()
            .find(|option| !option["properties"].is_null())
    }) {
        return keys(prefix, option, page);
    }
    if let Some(options) = options {
        for option in options {
            keys(prefix, option, page);
        }
    }
    if schema["type"] == "array" {
        return keys(&format!("{prefix}[]"), &schema["items"], page);
    }
    if schema["additionalProperties"].is_object() {
        return keys(
            &format!("{prefix}.NAME"),
            &schema["additionalProperties"],
            page,
        );
    }
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for (key, value) in schema["properties"].as_object().into_iter().flatten() {
        if key == "$schema" {
            continue;
        }
        let path = format!(
            "{}{}{key}",
            prefix,
            if prefix.is_empty() { "" } else { "." }
        );
        let needed = if required.contains(&key.as_str().into()) {
            "yes"
        } else {
            ""
        };
        let means = value["description"].as_str().unwrap_or_default();
        writeln!(page, "| `{path}` | {} | {needed} | {means} |", kind(value)).expect("memory");
        keys(&path, value, page);
    }
}

#[test]
fn every_template_is_in_the_book() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../book/src/guide/cases.md");
    let page = std::fs::read_to_string(page).expect("it is there");
    for template in cobre_case::template::TEMPLATES {
        let row = format!("| `{}` |", template.name);
        assert!(page.contains(&row), "{row}");
    }
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    page.push_str("\n## JSON files\n");
    for (file, schema) in cobre_case::schemas() {
        let about = schema["description"].as_str().unwrap_or_default();
        write!(
            page,
            "\n### `{file}`\n\n{about}\n\n| key | value | required | meaning |\n|---|---|---|---|\n"
        )
        .expect("memory");
        keys("", &schema, &mut page);
    }
    page.push_str("\n## Parquet tables\n\nCompressed by snappy or zstd, or not at all. int64 is as good as int32, and float as double. A table has at least one\nrow if there is anything that it could be about, and at most ten million.\n");
    for (file, columns) in cobre_case::tables() {
        write!(
            page,
            "\n### `{file}`\n\n| column | type | required | meaning |\n|---|---|---|---|\n"
        )
        .expect("memory");
        for (name, holds, optional, means) in columns {
            let needed = if optional { "" } else { "yes" };
            writeln!(page, "| `{name}` | {holds} | {needed} | {means} |").expect("memory");
        }
    }
    page
}

/// The page of the tables that runs write: those of cases, and of a file.
fn results_page() -> String {
    let mut page = TABLES_HEAD.to_owned();
    let file = root().join("examples/two_reservoirs.sof.json");
    let options = Options {
        bound: Some(0.0),
        ..Options::default()
    };
    let file = cobre_case::load(&file, &options).expect("it is sound");
    page.push_str("\n## Hydrothermal cases\n");
    page.push_str(&described(&cobre_case::simulation_tables()));
    page.push_str("\n## Other problems\n\nThis is what `examples/two_reservoirs.sof.json` gets: a column for each decision and for each constraint.\n");
    page.push_str(&described(&file.tables.tables(&file.problem)));
    page
}

fn described(tables: &[TableSchema]) -> String {
    let mut text = String::new();
    for table in tables {
        let name = &table.name;
        write!(
            text,
            "\n### `{name}`\n\n| column | unit | meaning |\n|---|---|---|\n"
        )
        .expect("memory");
        for column in &table.columns {
            let (name, unit, meaning) = (&column.name, column.unit, &column.meaning);
            writeln!(text, "| `{name}` | {unit} | {meaning} |").expect("memory");
        }
    }
    text
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compares a page of the book with its expected text.
fn compare(page: &str, expected: &str) {
    let place = root().join("book/src").join(page);
    let found = std::fs::read_to_string(place).unwrap_or_default();
    if found != expected {
        let name = page.rsplit('/').next().unwrap_or(page);
        let fresh = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&fresh, expected).expect("it can be written");
        panic!(
            "book/src/{page} is not what the code has; copy {} there",
            fresh.display()
        );
    }
}

#[test]
fn the_book_lists_every_key() {
    compare("guide/case-files.md", &page());
}

#[test]
fn the_book_lists_every_column_of_every_table() {
    compare("reference/tables.md", &results_page());
}
