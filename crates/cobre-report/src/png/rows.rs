//! A chart over names: one horizontal bar each.

use super::canvas::{Canvas, Paint};
use super::scale::told;
use super::text;
use crate::chart::View;

const ROW: f32 = 30.0;
const ABOVE: f32 = 26.0;

/// The height of the chart of so many names.
pub(super) fn height(names: usize) -> f32 {
    ABOVE + names as f32 * ROW
}

/// Draws a bar for each name, with its value behind it.
pub(super) fn draw(
    canvas: &mut Canvas,
    (left, top, width): (f32, f32, f32),
    names: &[String],
    view: &View,
) {
    canvas.text((left, top + 12.0), 12.0, Paint::Ink, &view.y);
    let Some(series) = view.series.first() else {
        return;
    };
    let widest = names
        .iter()
        .map(|name| text::width(name, 12.0))
        .fold(0.0, f32::max);
    let labels = widest.min(width * 0.34);
    let values = series.values.iter().copied();
    let numbers = values.clone().map(|value| text::width(&told(value), 12.0));
    let room = width - labels - 16.0 - numbers.fold(0.0, f32::max);
    let low = values.clone().fold(0.0, f64::min);
    let high = values.fold(0.0, f64::max);
    let whole = if high > low { high - low } else { 1.0 };
    let x = |value: f64| left + labels + 8.0 + ((value - low) / whole) as f32 * room;
    for (at, (name, value)) in names.iter().zip(&series.values).enumerate() {
        let row = top + ABOVE + at as f32 * ROW;
        let name = text::shortened(name, 12.0, labels);
        canvas.text_before((left + labels, row + 17.0), Paint::Soft, &name);
        let (from, to) = (x(0.0).min(x(*value)), x(0.0).max(x(*value)));
        let bar = (from, row + 2.0, (to - from).max(1.0), 22.0);
        canvas.rect(bar, Paint::Series(series.color, 100));
        canvas.text((to + 6.0, row + 17.0), 12.0, Paint::Soft, &told(*value));
    }
}
