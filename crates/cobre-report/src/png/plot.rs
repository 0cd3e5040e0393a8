//! A chart over numbers: ribbons, stacked bars, lines.

use super::canvas::{Canvas, Paint};
use super::scale::{digits, fixed, range, stacked, ticks};
use super::text;
use crate::chart::{Mark, Series, View};

const ABOVE: f32 = 26.0;
const BELOW: f32 = 38.0;

/// How places and values lie in the picture.
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
    places: &[f64],
    (label, view): (&str, &View),
    series: &[&Series],
) {
    let (left, top, width, height) = frame;
    let values = view.focus.unwrap_or_else(|| range(series));
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
    across(canvas, &area, places);
    canvas.confine(Some((
        area.left,
        area.top - 1.0,
        area.width,
        area.height + 2.0,
    )));
    for of in series.iter().filter(|of| of.mark == Mark::Band) {
        band(canvas, &area, places, of);
    }
    bars(canvas, &area, places, series);
    for of in series {
        line(canvas, &area, places, of);
    }
    canvas.confine(None);
}

/// The whole range of the horizontal axis, with room for bars or a lonely point.
fn whole_range(places: &[f64], series: &[&Series]) -> (f64, f64) {
    let (first, last) = match places {
        [] => return (0.0, 1.0),
        [first, .., last] => (*first, *last),
        [only] => return (only - 0.5, only + 0.5),
    };
    if series.iter().any(|of| of.mark == Mark::Bar) {
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
fn across(canvas: &mut Canvas, area: &Area, places: &[f64]) {
    let whole = places.iter().all(|place| place.fract() == 0.0);
    let (from, to) = area.places;
    let marks = ticks(from, to, f64::from(area.width) / 75.0, whole);
    let after = if whole { 0 } else { digits(&marks) };
    let bottom = area.top + area.height;
    for place in marks {
        let (x, label) = (area.x(place), fixed(place, after));
        canvas.line(&[(x, bottom), (x, bottom + 5.0)], 1.0, false, Paint::Soft);
        let half = text::width(&label, 12.0) / 2.0;
        canvas.text((x - half, bottom + 18.0), 12.0, Paint::Soft, &label);
    }
}

fn band(canvas: &mut Canvas, area: &Area, places: &[f64], of: &Series) {
    let paint = Paint::Series(of.color, of.tint.unwrap_or(100));
    let there = |at: &usize| of.values[*at].is_finite() && of.low[*at].is_finite();
    if let [only] = places {
        if there(&0) {
            let (top, bottom) = (area.y(of.values[0]), area.y(of.low[0]));
            let wide = area.width * 0.15;
            let height = (bottom - top).max(1.0);
            canvas.rect((area.x(*only) - wide, top, 2.0 * wide, height), paint);
        }
        return;
    }
    let there: Vec<usize> = (0..places.len()).filter(there).collect();
    let corner = |values: &[f64], at: usize| (area.x(places[at]), area.y(values[at]));
    let top = there.iter().map(|at| corner(&of.values, *at));
    let bottom = there.iter().rev().map(|at| corner(&of.low, *at));
    canvas.area(&top.chain(bottom).collect::<Vec<_>>(), paint);
}

fn bars(canvas: &mut Canvas, area: &Area, places: &[f64], series: &[&Series]) {
    let bars: Vec<&Series> = series
        .iter()
        .copied()
        .filter(|of| of.mark == Mark::Bar)
        .collect();
    let thick = if places.len() > 1 {
        (area.x(spacing(places)) - area.x(0.0)) * 0.86
    } else {
        area.width * 0.3
    };
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
    if !matches!(of.mark, Mark::Line | Mark::Dashes) {
        return;
    }
    let paint = Paint::Series(of.color, 100);
    let width = if of.scenario.is_some() { 1.5 } else { 2.0 };
    let points: Vec<(f32, f32)> = places
        .iter()
        .zip(&of.values)
        .map(|(place, value)| (area.x(*place), area.y(*value)))
        .collect();
    // A line is broken where values are missing.
    for part in points.split(|(_, y)| !y.is_finite()) {
        match part {
            [only] => canvas.dot(*only, 4.5, paint),
            part => canvas.line(part, width, of.mark == Mark::Dashes, paint),
        }
    }
}
