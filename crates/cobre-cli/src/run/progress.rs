//! Progress of a run as a bar on a terminal: of this process, or told to the command that has started it and has the
//! terminal.

use std::cell::RefCell;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use cobre_comm::report;
use indicatif::{ProgressBar, ProgressStyle};

/// The time between two messages to the launcher.
const PACE: Duration = Duration::from_millis(100);

/// A part of a run that has a bar of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Training,
    Simulation,
}

impl Part {
    /// The name in messages, and that of the things that are counted.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Training => ("training", "iterations"),
            Self::Simulation => ("simulation", "scenarios"),
        }
    }

    fn named(name: &str) -> Option<Self> {
        let parts = [Self::Training, Self::Simulation];
        parts.into_iter().find(|part| part.names().0 == name)
    }
}

/// Where progress is shown.
enum ProgressTarget {
    Nowhere,
    /// The terminal of this process.
    Terminal(RefCell<Bar>),
    /// The launcher; with the time of the latest message.
    Launcher(Option<Instant>),
}

/// The progress of a run.
pub(super) struct RunProgress(ProgressTarget);

impl RunProgress {
    /// Shows progress if there is anything to show it on.
    pub(super) fn new(talks: bool, spoken_for: bool) -> Self {
        Self(match (talks, spoken_for) {
            (true, true) => ProgressTarget::Launcher(None),
            (true, false) if std::io::stderr().is_terminal() => {
                ProgressTarget::Terminal(RefCell::default())
            }
            _ => ProgressTarget::Nowhere,
        })
    }

    /// So many of all are done; 0 of all is not known.
    pub(super) fn at(&mut self, part: Part, done: usize, all: usize) {
        match &mut self.0 {
            ProgressTarget::Nowhere => {}
            ProgressTarget::Terminal(bar) => bar.borrow_mut().at(part, done, all),
            ProgressTarget::Launcher(latest) => {
                let now = Instant::now();
                let early = latest.is_some_and(|latest| now - latest < PACE);
                if !early || done == all {
                    *latest = Some(now);
                    report::progress(&format!("{} {done} {all}", part.names().0));
                }
            }
        }
    }

    /// Writes lines that the bar must not run into.
    pub(super) fn suspend(&self, write: impl FnOnce()) {
        let ProgressTarget::Terminal(bar) = &self.0 else {
            return write();
        };
        match &bar.borrow().drawn {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Takes the bar away.
    pub(super) fn clear(&self) {
        if let ProgressTarget::Terminal(bar) = &self.0 {
            bar.borrow_mut().clear();
        }
    }
}

/// The bar of the present part, and where and when that began.
#[derive(Default)]
struct Bar {
    drawn: Option<ProgressBar>,
    since: Option<(Part, usize, Instant)>,
}

impl Bar {
    fn at(&mut self, part: Part, done: usize, all: usize) {
        if self.since.is_none_or(|(present, ..)| present != part) {
            self.clear();
            // What was done before counts for no rate: a run that goes on has a place to begin with.
            self.since = Some((part, done, Instant::now()));
        }
        let make = || {
            let bar = ProgressBar::new(all as u64).with_style(style(part, all));
            bar.with_position(done as u64)
        };
        let bar = self.drawn.get_or_insert_with(make);
        if let Some(left) = self.since.and_then(|since| left(since, done, all)) {
            bar.set_message(format!(", {left} left"));
        }
        bar.set_position(done as u64);
    }

    /// Takes it away until there is more to show.
    fn clear(&mut self) {
        if let Some(bar) = self.drawn.take() {
            bar.finish_and_clear();
        }
    }
}

/// The time that the rest takes at the rate so far; none before there is one.
fn left((_, first, start): (Part, usize, Instant), done: usize, all: usize) -> Option<String> {
    let rate = done.checked_sub(first).filter(|count| *count > 0)? as f64;
    let rest = all.checked_sub(done)? as f64;
    let seconds = start.elapsed().as_secs_f64() / rate * rest;
    Some(match seconds {
        few if few < 90.0 => format!("{few:.0} s"),
        some if some < 5400.0 => format!("{:.0} min", some / 60.0),
        many => format!("{:.1} h", many / 3600.0),
    })
}

fn style(part: Part, all: usize) -> ProgressStyle {
    let (name, things) = part.names();
    let template = if all == 0 {
        format!("{name} {{spinner}} {{pos}} {things}")
    } else {
        format!("{name} {{bar:30}} {{pos}}/{{len}} {things}{{msg}}")
    };
    ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

thread_local! {
    /// The bar of the ranks that this process has started.
    static OF_RANKS: RefCell<Bar> = RefCell::default();
}

/// Shows what a rank has told of its progress; with nothing to show it makes room for lines.
pub(super) fn of_ranks(told: Option<&str>) {
    OF_RANKS.with(|bar| {
        let mut bar = bar.borrow_mut();
        let Some(told) = told else {
            return bar.clear();
        };
        let mut words = told.split(' ');
        let part = words.next().and_then(Part::named);
        let mut number = || words.next().and_then(|word| word.parse().ok());
        if let (Some(part), Some(done), Some(all)) = (part, number(), number()) {
            bar.at(part, done, all);
        }
    });
}
