//! Lists in README.md, ARCHITECTURE.md and the book are those of the code: backends, commands, errors,
//! crates, dependencies, figures, the version. A list that is not checked here or generated goes stale.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The cells of each row of all tables of a page.
fn rows(page: &str) -> Vec<Vec<&str>> {
    let cells = |line: &'_ str| -> bool { line.starts_with('|') && !line.starts_with("|---") };
    page.lines()
        .filter(|line| cells(line))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect()
}

/// The texts between backquotes.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The part of a page between a heading and the next one of its level.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let start = page
        .find(&format!("\n{heading}\n"))
        .unwrap_or_else(|| panic!("there is no {heading}"));
    let rest = &page[start + 1 + heading.len()..];
    let level = heading.split(' ').next().unwrap();
    rest.split(&format!("\n{level} ")).next().unwrap()
}

/// The variants of an enum in a source file.
fn variants(source: &str, name: &str) -> Vec<String> {
    let (_, body) = source
        .split_once(&format!("enum {name} {{\n"))
        .unwrap_or_else(|| panic!("there is no enum {name}"));
    let body = body.split("\n}").next().unwrap();
    body.lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.starts_with(char::is_uppercase))
        .map(|line| {
            line.chars()
                .take_while(|letter| letter.is_alphanumeric())
                .collect()
        })
        .collect()
}

/// The names of all backends, built or not: the rows of the table in `backends/mod.rs`.
fn backends() -> Vec<String> {
    let source = text("crates/cobre-comm/src/backends/mod.rs");
    let (_, table) = source.split_once("\nbackends! {\n").unwrap();
    let name = |line: &str| Some(line.split_once(") = \"")?.1.strip_suffix("\",")?.to_owned());
    let found: Vec<String> = table.lines().filter_map(name).collect();
    for built in cobre_comm::available_backends() {
        assert!(
            found.iter().any(|name| name == built),
            "{built}: how are rows read?"
        );
    }
    found
}

#[test]
fn every_backend_is_in_a_table_of_every_page_about_all_of_them() {
    let pages = [
        "introduction.md",
        "guide/backends.md",
        "reference/builds.md",
        "reference/communicator.md",
        "reference/errors.md",
        "reference/regions.md",
        "reference/selection.md",
        "reference/testing.md",
    ];
    for page in pages {
        let text = text(&format!("book/src/{page}"));
        for backend in backends() {
            let named = |cell: &&str| quoted(cell).contains(&backend.as_str());
            let cells: Vec<&str> = rows(&text).concat();
            assert!(cells.iter().any(named), "{page}: {backend} is in no table");
        }
    }
}

#[test]
fn every_backend_has_its_page() {
    for backend in backends() {
        text(&format!("book/src/reference/backends/{backend}.md"));
    }
}

#[test]
fn the_feature_matrix_has_the_features_and_the_defaults() {
    let manifest = text("crates/cobre-comm/Cargo.toml");
    let features = section(&manifest.replace("[features]", "# features"), "# features").to_owned();
    let features = features.split("\n[").next().unwrap();
    let defaults = features
        .lines()
        .find_map(|line| line.strip_prefix("default = "))
        .unwrap();
    let defaults: Vec<&str> = defaults.split('"').skip(1).step_by(2).collect();
    let page = text("book/src/reference/selection.md");
    let rows = rows(section(&page, "## Feature matrix"));
    for backend in backends() {
        let name = format!("`{backend}`");
        let row = rows
            .iter()
            .find(|row| row[0] == name)
            .unwrap_or_else(|| panic!("{backend} has no row"));
        let stated = match row[1] {
            "always" => !features.contains(&format!("\n{backend} = ")),
            other if other.ends_with("a default feature") => defaults.contains(&&*backend),
            other => other == name && !defaults.contains(&&*backend),
        };
        assert!(stated, "{row:?}, by default {defaults:?}");
    }
    let built: Vec<&str> = ["local"].into_iter().chain(defaults).collect();
    let default = rows.iter().find(|row| row[0] == "default").unwrap();
    assert_eq!(quoted(default[1]), built);
}

/// The name of a variant as a command has it: `ExportCuts` is `export-cuts`.
fn kebab(variant: &str) -> String {
    let mut name = String::new();
    for letter in variant.chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.extend(letter.to_lowercase());
    }
    name
}

#[test]
fn every_command_is_in_the_introduction_and_in_the_readme() {
    let commands = variants(&text("crates/cobre-cli/src/main.rs"), "Command");
    assert!(commands.len() >= 10, "{commands:?}");
    for page in ["README.md", "book/src/introduction.md"] {
        let text = text(page);
        for command in &commands {
            let command = kebab(command);
            let names = [format!("`cobre {command}`"), format!("`{command}`")];
            let found = rows(&text)
                .concat()
                .iter()
                .any(|cell| names.iter().any(|name| cell.contains(name)));
            assert!(found, "{page}: cobre {command} is in no table");
        }
    }
}

#[test]
fn every_variant_of_an_error_has_its_row() {
    let (page, source) = (
        text("book/src/reference/errors.md"),
        text("crates/cobre-comm/src/error.rs"),
    );
    for name in ["CommError", "BufferProblem", "Cause", "BackendError"] {
        for variant in variants(&source, name) {
            let starts = |row: &Vec<&str>| row[0].starts_with(&format!("`{variant}"));
            assert!(
                rows(&page).iter().any(starts),
                "{name}::{variant} has no row"
            );
        }
    }
    let causes = variants(&source, "Cause");
    let by_backend = |row: &&Vec<&str>| row.len() == backends().len() + 1;
    let found: BTreeSet<String> = rows(&page)
        .iter()
        .filter(by_backend)
        .flat_map(|row| quoted(row[0]))
        .map(str::to_owned)
        .collect();
    for cause in causes {
        assert!(
            found.contains(&cause),
            "{cause} is missing from the table by backend"
        );
    }
}

#[test]
fn every_kind_and_field_of_an_error_has_its_row() {
    let page = text("book/src/reference/errors.md");
    let python = text("crates/cobre-python/python/cobre/errors.py");
    let rows = rows(&page);
    let row = |name: &str| {
        let cell = format!("`{name}`");
        rows.iter().find(|row| row[0] == cell)
    };
    for kind in cobre_comm::ErrorKind::ALL {
        let exit_code = row(kind.name()).map(|row| row[1].parse::<u8>());
        assert!(matches!(exit_code, Some(Ok(1..))), "{kind:?} has no row");
    }
    for field in cobre_comm::FieldName::ALL {
        let name = field.name();
        assert!(row(name).is_some(), "{field:?} has no row");
        let name = if name == "errors" { "findings" } else { name };
        let attribute = format!("\n    {name}: ");
        assert!(python.contains(&attribute), "{name} is no attribute");
    }
}

/// The folders in `crates/`.
fn crates() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| root().join("crates").join(name).join("Cargo.toml").exists())
        .collect();
    names.sort();
    names
}

/// The dependencies of a crate: name, and whether tests alone have it.
fn dependencies(name: &str) -> Vec<(String, bool)> {
    let manifest = text(&format!("crates/{name}/Cargo.toml"));
    let (mut found, mut tests) = (Vec::new(), None);
    for line in manifest.lines() {
        if line.starts_with('[') {
            tests = match line {
                "[dependencies]" => Some(false),
                "[dev-dependencies]" => Some(true),
                _ => None,
            };
            continue;
        }
        let name: String = line
            .chars()
            .take_while(|letter| letter.is_alphanumeric() || "-_".contains(*letter))
            .collect();
        if let (Some(tests), false) = (tests, name.is_empty()) {
            found.push((name, tests));
        }
    }
    found
}

#[test]
fn the_architecture_has_the_dependencies_between_crates() {
    let page = text("ARCHITECTURE.md");
    let layers = section(&page, "## Layers");
    for name in crates() {
        let row = rows(layers)
            .into_iter()
            .find(|row| row[0] == format!("`{name}`"))
            .unwrap_or_else(|| panic!("{name} has no row"));
        let stated: BTreeSet<&str> = quoted(row[1])
            .into_iter()
            .filter(|word| word.starts_with("cobre-"))
            .collect();
        let dependencies = dependencies(&name);
        let found: BTreeSet<&str> = dependencies
            .iter()
            .filter(|(other, tests)| other.starts_with("cobre-") && !tests)
            .map(|(other, _)| other.as_str())
            .collect();
        assert_eq!(stated, found, "{name}");
    }
}

#[test]
fn every_dependency_has_its_row_with_the_crates_that_use_it() {
    let page = text("book/src/reference/dependencies.md");
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for name in crates() {
        let own: Vec<_> = dependencies(&name);
        let short = name.trim_start_matches("cobre-");
        for (other, tests) in &own {
            // A library that also production code uses is named once.
            if other.starts_with("cobre-") || *tests && own.contains(&(other.clone(), false)) {
                continue;
            }
            let user = if *tests {
                format!("({short})")
            } else {
                short.to_owned()
            };
            found.entry(other.clone()).or_default().insert(user);
        }
    }
    let stated: BTreeMap<String, BTreeSet<String>> = rows(section(&page, "## Rust libraries"))
        .into_iter()
        .skip(1)
        .map(|row| {
            assert!(
                row.len() == 3 && row[2].len() > 10,
                "a row without a reason: {row:?}"
            );
            let users = row[1].split(", ").map(str::to_owned).collect();
            (quoted(row[0])[0].to_owned(), users)
        })
        .collect();
    assert_eq!(stated, found);
}

#[test]
fn every_dependency_is_reviewed() {
    let page = text("book/src/reference/dependencies.md");
    let names = |heading: &str| -> BTreeSet<String> {
        let rows = rows(section(&page, heading)).into_iter().skip(1);
        rows.map(|row| {
            assert!(
                row.len() == 3 && row[1..].iter().all(|cell| !cell.is_empty()),
                "an empty cell: {row:?}"
            );
            quoted(row[0])[0].to_owned()
        })
        .collect()
    };
    assert_eq!(names("## Review"), names("## Rust libraries"));
}

#[test]
fn every_python_library_has_its_row() {
    let page = text("book/src/reference/dependencies.md");
    let manifest = text("crates/cobre-python/pyproject.toml");
    let after = |start: &str, end: &str| -> String {
        let (_, rest) = manifest
            .split_once(start)
            .unwrap_or_else(|| panic!("{start}"));
        rest.split(end).next().unwrap().to_owned()
    };
    let lists = after("\ndependencies = [", "]") + &after("[project.optional-dependencies]", "\n[");
    let name =
        |text: &str| -> String { text.chars().take_while(|c| c.is_alphanumeric()).collect() };
    let found: BTreeSet<String> = lists.split('"').skip(1).step_by(2).map(name).collect();
    let stated: BTreeSet<String> = rows(section(&page, "## Python libraries"))
        .into_iter()
        .skip(1)
        .map(|row| quoted(row[0])[0].to_owned())
        .collect();
    assert_eq!(stated, found);
}

#[test]
fn the_figures_of_the_readme_are_on_the_pages_that_it_links_to() {
    let readme = text("README.md");
    let measured: Vec<Vec<&str>> = rows(&readme)
        .into_iter()
        .skip_while(|row| row[0] != "measured")
        .skip(1)
        .take_while(|row| row[0].starts_with("**"))
        .collect();
    assert_eq!(measured.len(), 3);
    for row in measured {
        let page = row[2].split("](").nth(1).unwrap().trim_end_matches(')');
        let page = text(page.split('#').next().unwrap());
        let figures = row[..2]
            .iter()
            .flat_map(|cell| cell.split("**").skip(1).step_by(2));
        for figure in figures {
            let word = |letter: char| letter.is_alphanumeric() || ",.".contains(letter);
            let found = page
                .split(|letter| !word(letter))
                .any(|other| other.trim_end_matches(['.', ',']) == figure);
            assert!(found, "{figure} is not on the page of {row:?}");
        }
    }
}

#[test]
fn the_largest_nodes_of_the_kernel_are_those_of_the_code() {
    let source = text("crates/cobre-sddp/src/kernel/mod.rs");
    let limits = source.split("FASTER_THAN_HIGHS: Self = Self {").nth(1);
    let limits = limits.and_then(|rest| rest.split('}').next()).unwrap();
    let figure = |field: &str| {
        let line = limits.lines().find(|line| line.contains(field)).unwrap();
        let (_, figure) = line.trim_end_matches(',').split_once(": ").unwrap();
        figure.replace('_', ",")
    };
    let (equalities, rows) = (figure("equalities"), figure("rows"));
    let stated = format!("{equalities} equality rows and {rows} rows");
    for page in ["README.md", "book/src/reference/kernel.md"] {
        assert!(text(page).contains(&stated), "{page} lacks: {stated}");
    }
}

#[test]
fn a_glossary_is_in_order_and_has_every_word_once() {
    let page = text("book/src/glossary.md");
    let mut all = BTreeSet::new();
    for part in page.split("\n## ").skip(1) {
        let words: Vec<String> = rows(part)
            .iter()
            .skip(1)
            .map(|row| row[0].to_lowercase())
            .collect();
        assert!(words.is_sorted(), "{words:?}");
        for word in words {
            assert!(all.insert(word.clone()), "{word} is there twice");
        }
    }
    assert!(all.len() > 80);
}

#[test]
fn the_citation_has_the_version_of_the_crates() {
    let version = format!("\nversion: {}\n", env!("CARGO_PKG_VERSION"));
    assert!(text("CITATION.cff").contains(&version));
}
