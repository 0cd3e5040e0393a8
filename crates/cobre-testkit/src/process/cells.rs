//! A table of results: one line per cell as it comes, the failures in full, and the counts.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

/// The result of one cell.
#[derive(Debug)]
pub enum Verdict {
    /// As it should be; with a remark for its line.
    Held(String),
    /// Not as it should be: what was found, in full.
    Broken(String),
    /// Not asked, for a reason that is part of the table.
    Excused(String),
    /// Could not be asked here.
    Skipped(String),
}

/// A named question and how to answer it.
pub struct TestCell<'a> {
    /// Unique in its table.
    pub name: String,
    /// Answers it.
    pub run: Box<dyn FnOnce() -> Verdict + 'a>,
}

impl<'a> TestCell<'a> {
    /// A question with its answer to be found by `run`.
    pub fn new(name: String, run: impl FnOnce() -> Verdict + 'a) -> Self {
        let run = Box::new(run);
        Self { name, run }
    }
}

/// Runs the cells whose name contains what the command line asks for, prints each result and the
/// counts, and fails if a cell is broken or, with `CI=true`, skipped.
pub fn run_cells(cells: Vec<TestCell<'_>>) -> ExitCode {
    let request = CellFilter::parse(std::env::args().skip(1));
    let strict = std::env::var("CI").is_ok_and(|ci| ci == "true");
    let all = cells.len();
    let wanted = cells
        .into_iter()
        .filter(|cell| request.wants(&cell.name))
        .collect::<Vec<_>>();
    if request.list {
        for cell in wanted {
            println!("{}: test", cell.name);
        }
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} cells", wanted.len());
    let others = all - wanted.len();
    let start = Instant::now();
    let mut counts = BTreeMap::new();
    let mut failures = Vec::new();
    for TestCell { name, run } in wanted {
        print!("test {name} ... ");
        // Shows which cell it is that takes so long; a closed pipe is found by the next print.
        let _ = std::io::stdout().flush();
        let line = VerdictLine::new(run(), strict);
        println!("{}{}", line.word, line.remark);
        *counts.entry(line.word).or_insert(0) += 1;
        failures.extend(line.failure.map(|text| (name, text)));
    }
    for (name, text) in &failures {
        println!("\n---- {name} ----\n{text}");
    }
    let count = |word| counts.get(word).copied().unwrap_or(0);
    println!(
        "\ntest result: {}. {} passed; {} failed; {} excused; {} skipped; {others} filtered out; \
         finished in {:.2?}\n",
        if failures.is_empty() { OK } else { FAILED },
        count(OK),
        count(FAILED),
        count(EXCUSED),
        count(SKIPPED),
        start.elapsed(),
    );
    ExitCode::from(u8::from(!failures.is_empty()))
}

const OK: &str = "ok";
const FAILED: &str = "FAILED";
const EXCUSED: &str = "excused";
const SKIPPED: &str = "skipped";

/// A verdict as it is printed.
#[derive(Debug, PartialEq, Eq)]
struct VerdictLine {
    word: &'static str,
    remark: String,
    /// Text that is shown in full at the end.
    failure: Option<String>,
}

impl VerdictLine {
    fn new(verdict: Verdict, strict: bool) -> Self {
        let (word, remark, failure) = match verdict {
            Verdict::Held(remark) => (OK, remark, None),
            Verdict::Broken(text) => (FAILED, String::new(), Some(text)),
            Verdict::Excused(reason) => (EXCUSED, reason, None),
            Verdict::Skipped(reason) if strict => (FAILED, "skipped".to_owned(), Some(reason)),
            Verdict::Skipped(reason) => (SKIPPED, reason, None),
        };
        let remark = match remark.as_str() {
            "" => String::new(),
            text => format!(" ({text})"),
        };
        Self {
            word,
            remark,
            failure,
        }
    }
}

/// The filters of a test's command line, as far as they apply here.
#[derive(Debug, Default, PartialEq, Eq)]
struct CellFilter {
    list: bool,
    exact: bool,
    filters: Vec<String>,
    skip: Vec<String>,
}

impl CellFilter {
    fn parse(arguments: impl IntoIterator<Item = String>) -> Self {
        let mut request = Self::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--list" => request.list = true,
                "--exact" => request.exact = true,
                "--skip" => request.skip.extend(arguments.next()),
                // Options of the usual harness that bring a value and mean nothing here.
                "--test-threads" | "--format" | "--color" | "--logfile" | "-Z" => {
                    arguments.next();
                }
                flag if flag.starts_with('-') => {}
                _ => request.filters.push(argument),
            }
        }
        request
    }

    fn wants(&self, name: &str) -> bool {
        let fits = |filter: &String| {
            if self.exact {
                name == filter
            } else {
                name.contains(filter.as_str())
            }
        };
        (self.filters.is_empty() || self.filters.iter().any(fits)) && !self.skip.iter().any(fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(line: &str) -> CellFilter {
        CellFilter::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn names_are_picked_by_part_or_exactly() {
        assert!(request("").wants("local/1/barrier"));
        assert!(request("barrier --nocapture").wants("local/1/barrier"));
        assert!(!request("shm").wants("local/1/barrier"));
        assert!(!request("barrier --exact").wants("local/1/barrier"));
        assert!(!request("--skip barrier").wants("local/1/barrier"));
    }

    #[test]
    fn a_skip_fails_in_ci_and_nowhere_else() {
        let skip = || Verdict::Skipped("shm is not in this build".to_owned());
        assert_eq!(VerdictLine::new(skip(), false).failure, None);
        assert!(VerdictLine::new(skip(), true).failure.is_some());
    }

    #[test]
    fn an_excuse_is_shown_and_never_fails() {
        let line = VerdictLine::new(Verdict::Excused("a world of one".to_owned()), true);
        assert_eq!(
            (line.remark.as_str(), line.failure),
            (" (a world of one)", None)
        );
    }

    #[test]
    fn values_of_options_are_no_filters() {
        assert!(request("--test-threads 1").wants("local/4/barrier"));
    }
}
