//! Round values for axes, and numbers as text: the same as in the page.

use crate::chart::{Series, SeriesMark};

/// Round values that divide a range into about `count` parts; whole ones if `whole`.
pub(super) fn ticks(low: f64, high: f64, count: f64, whole: bool) -> Vec<f64> {
    let rough = (high - low) / count.max(1.0);
    if rough.is_nan() || rough <= 0.0 {
        return vec![low];
    }
    let power = 10_f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|part| part * power);
    let step = steps.into_iter().find(|step| *step >= rough * 0.7);
    let mut step = step.unwrap_or(10.0 * power);
    if whole {
        step = step.round().max(1.0);
    }
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|at| at as f64 * step).collect()
}

/// The digits after the point that tell ticks apart.
pub(super) fn digits(ticks: &[f64]) -> usize {
    let step = match ticks {
        [first, second, ..] => (second - first).abs(),
        [only] if *only != 0.0 => only.abs(),
        _ => 1.0,
    };
    (-(step.log10() + 1e-9).floor()).clamp(0.0, 8.0) as usize
}

/// A number with gaps between thousands.
pub(super) fn fixed(value: f64, digits: usize) -> String {
    let text = format!("{:.digits$}", value.abs());
    let (whole, part) = text
        .split_once('.')
        .map_or((text.as_str(), None), |(whole, part)| (whole, Some(part)));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if whole.len() > 4 && at > 0 && (whole.len() - at) % 3 == 0 {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    let zero = !text.contains(|digit: char| matches!(digit, '1'..='9'));
    let sign = if value < 0.0 && !zero { "−" } else { "" };
    let part = part.map_or_else(String::new, |part| format!(".{part}"));
    format!("{sign}{grouped}{part}")
}

/// A number with five digits.
pub(super) fn told(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let size = value.abs().log10().floor();
    if size < -4.0 {
        return format!("{value:.2e}");
    }
    let text = fixed(value, (4.0 - size).max(0.0) as usize);
    match text.split_once('.') {
        Some(_) => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        None => text,
    }
}

/// Where each bar begins and ends, stacked by place: up from zero, and down.
pub(super) fn stacked(series: &[&Series]) -> Vec<Vec<(f64, f64)>> {
    let count = series.first().map_or(0, |of| of.values.len());
    let (mut up, mut down) = (vec![0.0; count], vec![0.0; count]);
    let place = |(at, value): (usize, &f64)| {
        let side = if *value < 0.0 { &mut down } else { &mut up };
        let from = side[at];
        if value.is_finite() {
            side[at] += value;
        }
        (from, side[at])
    };
    let mut place = place;
    let stacks = series.iter();
    stacks
        .map(|of| of.values.iter().enumerate().map(&mut place).collect())
        .collect()
}

/// The range of values to show.
pub(super) fn range(series: &[&Series]) -> (f64, f64) {
    let (bars, lines): (Vec<&Series>, Vec<&Series>) =
        series.iter().partition(|of| of.mark == SeriesMark::Bar);
    let stacks = stacked(&bars).into_iter().flatten();
    let stacks = stacks.flat_map(|(from, to)| [from, to]);
    let rest = lines.iter().flat_map(|of| of.values.iter().chain(&of.low));
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in stacks
        .chain(rest.copied())
        .filter(|value| value.is_finite())
    {
        low = low.min(value);
        high = high.max(value);
    }
    if low > high {
        return (0.0, 1.0);
    }
    // Zero belongs to bars, and to lines that come near it.
    if !bars.is_empty() || (low > 0.0 && low < 0.4 * high) {
        low = low.min(0.0);
    }
    if !bars.is_empty() || (high < 0.0 && high > 0.4 * low) {
        high = high.max(0.0);
    }
    if low == high {
        return match low {
            0.0 => (0.0, 1.0),
            _ => (low - low.abs() * 0.1, high + high.abs() * 0.1),
        };
    }
    let room = (high - low) * 0.05;
    // What is next to nothing beside the rest needs no room.
    let beyond = |edge: f64, by: f64| {
        if edge.abs() < room / 5.0 {
            edge
        } else {
            edge + by
        }
    };
    (beyond(low, -room), beyond(high, room))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(0.0, 9.0, 5.0, false), [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(ticks(1.0, 3.0, 10.0, true), [1.0, 2.0, 3.0]);
        assert_eq!(ticks(4.0, 4.0, 10.0, true), [4.0]);
    }

    #[test]
    fn numbers_read_as_in_the_page() {
        assert_eq!(fixed(-12345.678, 1), "−12\u{202f}345.7");
        assert_eq!(fixed(-0.001, 1), "0.0");
        assert_eq!(told(5.3892), "5.3892");
        assert_eq!(told(1200.0), "1200");
        assert_eq!(digits(&[0.0, 0.25]), 1);
    }

    #[test]
    fn bars_grow_from_zero_both_ways() {
        let bar = |values: &[f64]| Series::new("x", SeriesMark::Bar, 0, values.to_vec());
        let (first, second) = (bar(&[1.0, -2.0]), bar(&[3.0, -1.0]));
        let stacks = stacked(&[&first, &second]);
        assert_eq!(stacks[1], [(1.0, 4.0), (-2.0, -3.0)]);
        assert_eq!(range(&[&first, &second]), (-3.35, 4.35));
    }
}
