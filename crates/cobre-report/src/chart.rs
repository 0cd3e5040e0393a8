//! The data of a chart, without a word on how it is drawn: the page and the pictures draw the same.

use serde::Serialize;

/// A part of the report with a heading.
#[derive(Debug, Serialize)]
pub(crate) struct Section {
    /// Its name in links.
    pub(crate) id: &'static str,
    pub(crate) title: String,
    /// Introduction, as paragraphs.
    pub(crate) text: Vec<String>,
    pub(crate) panels: Vec<Panel>,
    #[serde(skip)]
    pub(crate) tables: Vec<TextTable>,
}

impl Section {
    pub(crate) fn new(id: &'static str, title: &str) -> Self {
        Self {
            id,
            title: title.to_owned(),
            text: Vec::new(),
            panels: Vec::new(),
            tables: Vec::new(),
        }
    }
}

/// A table of words and numbers.
#[derive(Debug)]
pub(crate) struct TextTable {
    pub(crate) caption: String,
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// A chart with its title, or several that a reader picks from.
#[derive(Debug, Serialize)]
pub(crate) struct Panel {
    /// Its name in links and of its picture.
    pub(crate) id: String,
    pub(crate) title: String,
    /// Caption: the content of the chart and the way to read it, in a sentence or two.
    pub(crate) about: String,
    /// The noun for the entity that a reader picks, such as "Reservoir".
    pub(crate) pick: String,
    /// Label of the horizontal axis.
    pub(crate) x: String,
    /// Where the values stand on it.
    pub(crate) at: Positions,
    pub(crate) views: Vec<View>,
}

/// Where values stand on the horizontal axis.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Positions {
    /// At numbers, in ascending order.
    Numbers(Vec<f64>),
    /// At the stages of a study, which have dates: numbers from 0, and a label for each.
    Stages {
        /// Their places.
        numbers: Vec<f64>,
        /// Their dates.
        labels: Vec<String>,
    },
    /// In rows with names, drawn as horizontal bars.
    Names(Vec<String>),
}

/// One of the charts of a panel.
#[derive(Debug, Serialize)]
pub(crate) struct View {
    /// The entity or group that it shows.
    pub(crate) name: String,
    /// Label of the axis of values, with its unit.
    pub(crate) y: String,
    /// Part of the axis to start with, where the whole hides what matters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) focus: Option<(f64, f64)>,
    /// True if the axis of values begins at zero.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) zero: bool,
    /// True if it is worth little room.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) small: bool,
    pub(crate) series: Vec<Series>,
}

/// The shape in which a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SeriesMark {
    Line,
    /// A line that is interrupted.
    Dashes,
    /// The area from `low` to `values`.
    Band,
    /// A bar on top of the bars of the series before it.
    Bar,
}

/// Values with a name.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) mark: SeriesMark,
    /// A place in the palette.
    pub(crate) color: usize,
    /// Opacity of an area, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tint: Option<u8>,
    pub(crate) values: Vec<f64>,
    /// The lower edge of a band.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) low: Vec<f64>,
    /// Which of the single scenarios it is, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) scenario: Option<usize>,
}

impl Series {
    pub(crate) fn new(
        name: impl Into<String>,
        mark: SeriesMark,
        color: usize,
        values: Vec<f64>,
    ) -> Self {
        Self {
            name: name.into(),
            mark,
            color,
            tint: None,
            values,
            low: Vec::new(),
            scenario: None,
        }
    }

    /// The area between two edges.
    pub(crate) fn band(
        name: impl Into<String>,
        color: usize,
        tint: u8,
        low: Vec<f64>,
        high: Vec<f64>,
    ) -> Self {
        Self {
            tint: Some(tint),
            low,
            ..Self::new(name, SeriesMark::Band, color, high)
        }
    }
}

impl View {
    /// A view whose values are told in thousands, millions or billions of `unit` where they are large, with as
    /// many digits as a chart can show.
    pub(crate) fn scaled(
        name: impl Into<String>,
        what: &str,
        unit: &str,
        series: Vec<Series>,
    ) -> Self {
        let largest = largest(&series);
        Self::told_in(scale(largest, unit), name, what, unit, series)
    }

    /// A view whose values are told in multiples of `unit`: the word in front of it and what it stands for.
    pub(crate) fn told_in(
        (word, factor): (String, f64),
        name: impl Into<String>,
        what: &str,
        unit: &str,
        mut series: Vec<Series>,
    ) -> Self {
        for values in series
            .iter_mut()
            .flat_map(|of| [&mut of.values, &mut of.low])
        {
            for value in values {
                *value = rounded(*value / factor);
            }
        }
        let unit = format!("{word}{unit}");
        let y = if unit.is_empty() {
            what.to_owned()
        } else {
            format!("{what} ({unit})")
        };
        Self {
            name: name.into(),
            y,
            focus: None,
            zero: false,
            small: false,
            series,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// The largest value of all, whatever its sign.
fn largest(series: &[Series]) -> f64 {
    let all = series.iter().flat_map(|of| of.values.iter().chain(&of.low));
    all.filter(|value| value.is_finite())
        .fold(0.0, |most: f64, value| most.max(value.abs()))
}

/// The word in front of a unit for values up to `largest`, and what to divide by.
pub(crate) fn scale(largest: f64, unit: &str) -> (String, f64) {
    let (word, factor) = match largest {
        // Percent are never told in thousands.
        _ if unit == "%" => ("", 1.0),
        large if large >= 2e9 => ("billion", 1e9),
        large if large >= 2e6 => ("million", 1e6),
        large if large >= 2e4 => ("thousand", 1e3),
        _ => ("", 1.0),
    };
    // A gap at which no line is broken.
    let gap = if word.is_empty() || unit.is_empty() {
        ""
    } else {
        "\u{a0}"
    };
    (format!("{word}{gap}"), factor)
}

/// A number to five significant digits: more than a chart can show.
pub(crate) fn rounded(value: f64) -> f64 {
    let text = format!("{value:.4e}");
    let short: f64 = text.parse().unwrap_or(value);
    // No chart has use for a zero with a sign.
    if short == 0.0 { 0.0 } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_values_are_told_in_words() {
        let series = Series::new("a", SeriesMark::Line, 0, vec![1.0, 5_389_154_695.7]);
        let view = View::scaled("all", "cost", "$", vec![series]);
        assert_eq!(view.y, "cost (billion\u{a0}$)");
        assert_eq!(view.series[0].values[1], 5.3892);
    }

    #[test]
    fn small_values_stay_as_they_are() {
        let series = Series::new("a", SeriesMark::Line, 0, vec![0.123_456_7, f64::NAN]);
        let view = View::scaled("all", "storage", "hm³", vec![series]);
        assert_eq!(view.y, "storage (hm³)");
        assert_eq!(view.series[0].values[0], 0.12346);
        assert!(view.series[0].values[1].is_nan());
    }
}
