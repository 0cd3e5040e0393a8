//! A chart over numbers: ribbons, stacked bars, lines.

use super::canvas::{Canvas, Paint};
use super::scale::{digits, fixed, range, stacked, ticks};
use super::text;
use crate::chart::{Series, SeriesMark, View};
use crate::dates::marked;

const ABOVE: f32 = 26.0;
const BELOW: f32 = 38.0;

/// The scales of a plot: from places and values to pixels.
struct Area {
    left: f32,
    top: f32,
    width: f32,
    height: f32,
    places: (f64, f64),
    values: (f64, f64),
}

impl Area {
    fn x(&self, place: f64) -> f32 {
        let (from, to) = self.places;
        self.left + ((place - from) / (to - from)) as f32 * self.width
    }

    fn y(&self, value: f64) -> f32 {
        let (low, high) = self.values;
        self.top + ((high - value) / (high - low)) as f32 * self.height
    }
}

/// Draws a view inside a frame (left, top, width, height).
pub(super) fn draw(
    canvas: &mut Canvas,
    frame: (f32, f32, f32, f32),
    (places, dates): (&[f64], &[String]),
    (label, view): (&str, &View),
    series: &[&Series],
) {
    let (left, top, width, height) = frame;
    let values = view.focus.unwrap_or_else(|| {
        let (low, high) = range(series);
        (if view.zero { low.min(0.0) } else { low }, high)
    });
    let marks = ticks(values.0, values.1, f64::from(height) / 55.0, false);
    let after = digits(&marks);
    let labels: Vec<String> = marks.iter().map(|value| fixed(*value, after)).collect();
    let widest = labels
        .iter()
        .map(|label| text::width(label, 12.0))
        .fold(0.0, f32::max);
    let area = Area {
        left: left + widest + 8.0,
        top: top + ABOVE,
        width: width - widest - 8.0,
        height: height - ABOVE - BELOW,
        places: whole_range(places, series),
        values,
    };
    canvas.text((left, top + 12.0), 12.0, Paint::Ink, &view.y);
    let right = area.left + area.width;
    canvas.text_before((right, top + height - 2.0), Paint::Ink, label);
    for (value, label) in marks.iter().zip(&labels) {
        let y = area.y(*value);
        let paint = if *value == 0.0 {
            Paint::Soft
        } else {
            Paint::Rule
        };
        canvas.line(&[(area.left, y), (right, y)], 1.0, false, paint);
        canvas.text_before((area.left - 7.0, y + 4.0), Paint::Soft, label);
    }
    across(canvas, &area, places, dates);
    canvas.confine(Some((
        area.left,
        area.top - 1.0,
        area.width,
        area.height + 2.0,
    )));
    for of in series.iter().filter(|of| of.mark == SeriesMark::Band) {
        band(canvas, &area, places, of);
    }
    bars(canvas, &area, places, series);
    for of in series {
        line(canvas, &area, places, of);
    }
    canvas.confine(None);
}

/// The whole range of the horizontal axis, with room for bars and lonely points.
fn whole_range(places: &[f64], series: &[&Series]) -> (f64, f64) {
    let (first, last) = match places {
        [] => return (0.0, 1.0),
        [first, .., last] => (*first, *last),
        [only] => return (only - 0.5, only + 0.5),
    };
    let lonely = |of: &Series| runs(&of.values).iter().any(|run| run.len() == 1);
    if series
        .iter()
        .any(|of| of.mark == SeriesMark::Bar || lonely(of))
    {
        let half = spacing(places) / 2.0;
        (first - half, last + half)
    } else {
        (first, last)
    }
}

fn spacing(places: &[f64]) -> f64 {
    let steps = places.windows(2).map(|pair| pair[1] - pair[0]);
    steps.fold(f64::INFINITY, f64::min)
}

/// The marks of the horizontal axis.
fn across(canvas: &mut Canvas, area: &Area, places: &[f64], dates: &[String]) {
    let bottom = area.top + area.height;
    let mut mark = |place: f64, label: &str| {
        let x = area.x(place);
        canvas.line(&[(x, bottom), (x, bottom + 5.0)], 1.0, false, Paint::Soft);
        let half = text::width(label, 12.0) / 2.0;
        canvas.text((x - half, bottom + 18.0), 12.0, Paint::Soft, label);
    };
    if !dates.is_empty() {
        for at in marked(dates.len(), (area.width / 90.0) as usize) {
            mark(places[at], &dates[at]);
        }
        return;
    }
    let whole = places.iter().all(|place| place.fract() == 0.0);
    let (from, to) = area.places;
    let marks = ticks(from, to, f64::from(area.width) / 75.0, whole);
    let after = if whole { 0 } else { digits(&marks) };
    for place in marks {
        mark(place, &fixed(place, after));
    }
}

/// The places of values that are there, in runs without a gap.
fn runs(values: &[f64]) -> Vec<Vec<usize>> {
    let mut runs: Vec<Vec<usize>> = Vec::new();
    for at in (0..values.len()).filter(|at| values[*at].is_finite()) {
        match runs.last_mut() {
            Some(run) if run.last() == at.checked_sub(1).as_ref() => run.push(at),
            _ => runs.push(vec![at]),
        }
    }
    runs
}

fn band(canvas: &mut Canvas, area: &Area, places: &[f64], of: &Series) {
    let paint = Paint::Series(of.color, of.tint.unwrap_or(100));
    let corner = |values: &[f64], at: usize| (area.x(places[at]), area.y(values[at]));
    for run in runs(&of.values) {
        if let [only] = run.as_slice() {
            let ((x, top), (_, bottom)) = (corner(&of.values, *only), corner(&of.low, *only));
            let wide = thickness(area, places) / 2.0;
            canvas.rect((x - wide / 2.0, top, wide, (bottom - top).max(1.0)), paint);
            continue;
        }
        let top = run.iter().map(|at| corner(&of.values, *at));
        let bottom = run.iter().rev().map(|at| corner(&of.low, *at));
        canvas.area(&top.chain(bottom).collect::<Vec<_>>(), paint);
    }
}

/// The width of the bar of a place.
fn thickness(area: &Area, places: &[f64]) -> f32 {
    if places.len() > 1 {
        (area.x(spacing(places)) - area.x(0.0)) * 0.86
    } else {
        area.width * 0.3
    }
}

fn bars(canvas: &mut Canvas, area: &Area, places: &[f64], series: &[&Series]) {
    let bars: Vec<&Series> = series
        .iter()
        .copied()
        .filter(|of| of.mark == SeriesMark::Bar)
        .collect();
    let thick = thickness(area, places);
    for (of, stack) in bars.iter().zip(stacked(&bars)) {
        for (place, (from, to)) in places.iter().zip(stack) {
            let (from, to) = (area.y(from), area.y(to));
            let corner = (area.x(*place) - thick / 2.0, from.min(to));
            let size = (thick, (from - to).abs());
            canvas.rect(
                (corner.0, corner.1, size.0, size.1),
                Paint::Series(of.color, 100),
            );
        }
    }
}

fn line(canvas: &mut Canvas, area: &Area, places: &[f64], of: &Series) {
    if !matches!(of.mark, SeriesMark::Line | SeriesMark::Dashes) {
        return;
    }
    let paint = Paint::Series(of.color, 100);
    let width = if of.scenario.is_some() { 1.5 } else { 2.0 };
    for run in runs(&of.values) {
        let points = run.into_iter();
        let points = points.map(|at| (area.x(places[at]), area.y(of.values[at])));
        match points.collect::<Vec<_>>().as_slice() {
            [only] => canvas.dot(*only, 4.5, paint),
            points => canvas.line(points, width, of.mark == SeriesMark::Dashes, paint),
        }
    }
}
