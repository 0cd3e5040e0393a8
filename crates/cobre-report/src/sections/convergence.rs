//! The convergence of training.

use cobre_results::ResultsError;
use cobre_results::layout::convergence;
use cobre_results::statistics::mean;

use crate::chart::{Panel, Positions, Section, Series, SeriesMark, View};
use crate::input::ReportInput;
use crate::palette;
use crate::statistics::half_width;

/// The bound and the estimate, iteration by iteration, and what the policy costs in the end.
pub(super) fn section(input: &ReportInput) -> Result<Section, ResultsError> {
    let table = &input.convergence;
    let iterations = table.all_numbers(convergence::ITERATION)?;
    let cuts = table.all_numbers(convergence::CUTS)?;
    let mut section = Section::new("convergence", "Convergence");
    if iterations.is_empty() {
        let text = "Training has made no iteration.";
        section.text.push(text.to_owned());
        return Ok(section);
    }
    let series = series(input, iterations.len())?;
    let (word, unit) = (input.value_word(), input.value_unit());
    let mut view = View::scaled("", word, unit, series);
    view.focus = focus(&view.series);
    let about = about(input, view.focus.is_some());
    let panel = |id: &str, title: &str, about: &str, view: View| Panel {
        id: id.to_owned(),
        title: title.to_owned(),
        about: about.to_owned(),
        pick: String::new(),
        x: "iteration".to_owned(),
        at: Positions::Numbers(iterations.clone()),
        views: vec![view],
    };
    section
        .panels
        .push(panel("convergence", "Bound and estimate", &about, view));
    let cuts = Series::new("cuts in use", SeriesMark::Line, palette::PURPLE, cuts);
    let view = View::scaled("", "cuts", "", vec![cuts]);
    let about = "Number of cuts of the policy after each iteration.";
    section
        .panels
        .push(panel("cuts", "Cuts in use", about, view));
    Ok(section)
}

/// The side from which the bound comes.
fn sided(input: &ReportInput) -> &'static str {
    if input.maximised {
        "upper bound"
    } else {
        "lower bound"
    }
}

/// The estimate of each iteration, the simulated mean beside it, and the bound.
fn series(input: &ReportInput, iterations: usize) -> Result<Vec<Series>, ResultsError> {
    let table = &input.convergence;
    let bound = table.all_numbers(convergence::BOUND)?;
    let estimate = table.all_numbers(convergence::ESTIMATE_MEAN)?;
    let width = table.all_numbers(convergence::ESTIMATE_HALF_WIDTH_95)?;
    let mut series = Vec::new();
    // One forward pass says nothing of its confidence.
    if width.iter().any(|width| width.is_finite()) {
        let edges = estimate.iter().zip(&width);
        let edges = edges.map(|(mean, width)| (mean - width, mean + width));
        let (low, high) = edges.unzip();
        let band = "estimate, 95 % confidence";
        series.push(Series::band(band, palette::ORANGE, 24, low, high));
    }
    let name = "estimate (mean of the forward passes)";
    let (line, dashes) = (SeriesMark::Line, SeriesMark::Dashes);
    series.push(Series::new(name, line, palette::ORANGE, estimate));
    if let Some(simulation) = &input.simulation {
        let level = mean(simulation.totals.iter().copied());
        let half = half_width(&simulation.totals);
        let flat = |value: f64| vec![value; iterations];
        let (low, high) = (flat(level - half), flat(level + half));
        let band = "simulated, 95 % confidence";
        series.push(Series::band(band, palette::GREEN, 24, low, high));
        let name = "mean of the simulated scenarios";
        series.push(Series::new(name, dashes, palette::GREEN, flat(level)));
    }
    let line = SeriesMark::Line;
    series.push(Series::new(sided(input), line, palette::BLUE, bound));
    Ok(series)
}

/// The text above the chart.
fn about(input: &ReportInput, focused: bool) -> String {
    let (sided, word) = (sided(input), input.value_word());
    let outside = if focused {
        " The first iterations leave the chart; “All values” shows them."
    } else {
        ""
    };
    let meets = if input.neutral {
        "The policy is near its best when the bound meets the estimate."
    } else {
        "The policy is averse to risk, and so is the bound: it need not meet the mean."
    };
    format!(
        "The {sided} of each iteration, and the {word} that its forward passes estimate. \
         {meets}{outside}"
    )
}

/// The range of the later half of the iterations, if the whole is so much wider that it hides them.
fn focus(series: &[Series]) -> Option<(f64, f64)> {
    let range = |skip: fn(usize) -> usize| {
        let values = series.iter().flat_map(|of| {
            let both = [&of.values, &of.low];
            both.into_iter()
                .flat_map(move |values| &values[skip(values.len())..])
        });
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(*value), high.max(*value))
        })
    };
    let (low, high) = range(|_| 0);
    let (later_low, later_high) = range(|count| count / 2);
    let room = (later_high - later_low) * 0.5;
    let narrow = room > 0.0 && (high - low) > 4.0 * (later_high - later_low);
    narrow.then_some(((later_low - room).max(low), (later_high + room).min(high)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wild_start_is_left_out_of_view() {
        let line = |values: Vec<f64>| vec![Series::new("bound", SeriesMark::Line, 0, values)];
        let (low, high) = focus(&line(vec![-1000.0, 8.0, 9.0, 10.0])).expect("it is");
        assert!(low > 8.0 && low < 9.0 && high == 10.0, "{low} {high}");
        assert_eq!(focus(&line(vec![7.0, 8.0, 9.0, 10.0])), None);
        assert_eq!(focus(&line(vec![1.0])), None);
    }
}
