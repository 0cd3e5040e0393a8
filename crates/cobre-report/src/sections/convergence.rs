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
        let text = if input.results.run["warm_start_sha256"].is_string() {
            "This run trained nothing: it simulated a policy of another run."
        } else {
            "Training has made no iteration."
        };
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
    let mut view = View::scaled("", "cuts", "", vec![cuts]);
    view.small = true;
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
        let name = match input.path_stages {
            Some(stages) => format!("mean of {stages} stages of the simulated scenarios"),
            None => "mean of the simulated scenarios".to_owned(),
        };
        series.push(Series::new(&name, dashes, palette::GREEN, flat(level)));
    }
    let line = SeriesMark::Line;
    // Runs of earlier versions have no such column.
    let upper = table
        .all_numbers(convergence::UPPER_BOUND)
        .unwrap_or_default();
    if upper.iter().any(|value| value.is_finite()) {
        let name = if input.maximised {
            "lower bound"
        } else {
            "upper bound"
        };
        series.push(Series::new(
            name,
            SeriesMark::Dashes,
            palette::PURPLE,
            best(upper, input.maximised),
        ));
    }
    series.push(Series::new(sided(input), line, palette::BLUE, bound));
    Ok(series)
}

/// The best value so far of each iteration; missing before the first.
fn best(values: Vec<f64>, maximised: bool) -> Vec<f64> {
    let better = if maximised { f64::max } else { f64::min };
    let mut so_far = f64::NAN;
    let values = values.into_iter().map(|value| {
        // The value that is there, where one is missing.
        so_far = better(so_far, value);
        so_far
    });
    values.collect()
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

/// The range in which the gap is seen: the bound and the middle half of the estimates of the later iterations, and the
/// level of the simulation. None if the whole is not much wider.
fn focus(series: &[Series]) -> Option<(f64, f64)> {
    let mut kept: Vec<f64> = Vec::new();
    let mut all: Vec<f64> = Vec::new();
    for of in series {
        all.extend(
            of.values
                .iter()
                .chain(&of.low)
                .filter(|value| value.is_finite()),
        );
        let later = &of.values[of.values.len() / 2..];
        let flat = later.windows(2).all(|pair| pair[0] == pair[1]);
        match of.mark {
            // The confidence of a few forward passes is wide, that of the simulation is not.
            SeriesMark::Band if !flat => {}
            SeriesMark::Band => kept.extend(later.iter().chain(&of.low)),
            SeriesMark::Line if of.color == ESTIMATE => {
                let mut sorted: Vec<f64> = later.to_vec();
                sorted.sort_by(f64::total_cmp);
                let quarter = sorted.len() / 4;
                kept.extend(&sorted[quarter..sorted.len() - quarter]);
            }
            SeriesMark::Line | SeriesMark::Dashes | SeriesMark::Bar => kept.extend(later),
        }
    }
    let range = |values: &[f64]| {
        let finite = values.iter().filter(|value| value.is_finite());
        finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(*value), high.max(*value))
        })
    };
    let ((low, high), (kept_low, kept_high)) = (range(&all), range(&kept));
    let room = (kept_high - kept_low) * 0.5;
    let narrow = room > 0.0 && (high - low) > 2.5 * (kept_high - kept_low);
    narrow.then_some(((kept_low - room).max(low), (kept_high + room).min(high)))
}

/// The colour of estimates.
const ESTIMATE: usize = palette::ORANGE;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wild_start_is_left_out_of_view() {
        let blue = palette::BLUE;
        let line = |values: Vec<f64>| vec![Series::new("bound", SeriesMark::Line, blue, values)];
        let (low, high) = focus(&line(vec![-1000.0, 8.0, 9.0, 10.0])).expect("it is");
        assert!(low > 8.0 && low < 9.0 && high == 10.0, "{low} {high}");
        assert_eq!(focus(&line(vec![8.0, 8.5, 9.0, 10.0])), None);
        assert_eq!(focus(&line(vec![1.0])), None);
        // Wide confidence of the forward passes does not hide the gap.
        let band = Series::band(
            "95 %",
            ESTIMATE,
            24,
            vec![-90.0; 4],
            vec![90.0, 91.0, 92.0, 93.0],
        );
        let bound = Series::new("bound", SeriesMark::Line, blue, vec![1.0, 8.0, 9.0, 9.5]);
        let simulated = Series::new("mean", SeriesMark::Dashes, palette::GREEN, vec![10.0; 4]);
        let (low, high) = focus(&[band, bound, simulated]).expect("it is");
        assert!(low > 8.0 && high < 11.0, "{low} {high}");
    }
}
