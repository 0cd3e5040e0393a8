//! Charts as pictures, drawn like those of the page, for those who have no browser at hand.

mod canvas;
mod plot;
mod rows;
mod scale;
mod text;

use crate::chart::{Panel, Positions, Series, SeriesMark, View};
use crate::simulation::Single;

use self::canvas::{Canvas, Paint};

/// Width of a picture, in the units of the page.
const WIDTH: f32 = 860.0;
/// The height of the part that is drawn by the numbers.
const PLOT_HEIGHT: f32 = 360.0;
const LEGEND_ROW: f32 = 20.0;
/// Between the edge of the picture and what is on it.
const EDGE: f32 = 16.0;

/// The keyword and the text by which a picture is known to be one of a report.
const SOFTWARE: (&str, &str) = ("Software", "cobre report");

/// True if a file that begins with these bytes is a picture of a report.
pub(crate) fn is_own(head: &[u8]) -> bool {
    let mark = [SOFTWARE.0, SOFTWARE.1].join("\0");
    let beginning = &head[..head.len().min(256)];
    head.starts_with(b"\x89PNG")
        && beginning
            .windows(mark.len())
            .any(|part| part == mark.as_bytes())
}

/// The name of the file of a view: that of its panel, and which view of it.
pub(crate) fn file_name(panel: &Panel, view: usize) -> String {
    if view == 0 {
        return format!("{}.png", panel.id);
    }
    let letters = panel.views[view].name.chars();
    let safe = letters.map(|letter| match letter {
        letter if letter.is_ascii_alphanumeric() => letter.to_ascii_lowercase(),
        _ => '-',
    });
    let name: String = safe.take(40).collect();
    let name = name.trim_matches('-');
    format!("{}-{:02}-{name}.png", panel.id, view + 1)
}

/// The picture of a view, as the bytes of a PNG file.
pub(crate) fn picture(panel: &Panel, view: &View, singles: &[Single]) -> Vec<u8> {
    let shown = |series: &&Series| series.scenario.is_none_or(|at| singles[at].shown);
    let series: Vec<&Series> = view.series.iter().filter(shown).collect();
    let names = matches!(panel.at, Positions::Names(_));
    // One kind of bars is what the axis says it is.
    let obvious = matches!(series.as_slice(), [only] if only.mark == SeriesMark::Bar);
    let legend = if names || obvious {
        Vec::new()
    } else {
        legend(&series)
    };
    let rows = legend.last().map_or(0, |(_, _, row)| row + 1);
    let top = EDGE + 46.0 + rows as f32 * LEGEND_ROW;
    let height = match &panel.at {
        Positions::Numbers(_) | Positions::Stages { .. } if view.small => PLOT_HEIGHT / 2.0,
        Positions::Numbers(_) | Positions::Stages { .. } => PLOT_HEIGHT,
        Positions::Names(names) => rows::height(names.len()),
    };
    let mut canvas = Canvas::new(WIDTH, top + height + EDGE);
    let title = if view.name.is_empty() {
        panel.title.clone()
    } else {
        format!("{} – {}", panel.title, view.name)
    };
    let room = WIDTH - 2.0 * EDGE;
    canvas.text(
        (EDGE, EDGE + 18.0),
        18.0,
        Paint::Ink,
        &text::shortened(&title, 18.0, room),
    );
    for (number, (of, left, row)) in legend.into_iter().enumerate() {
        let base = EDGE + 46.0 + row as f32 * LEGEND_ROW;
        swatch(&mut canvas, of, &series[..number], left, base);
        let name = text::shortened(&of.name, 12.0, WIDTH - EDGE - left - 28.0);
        canvas.text((left + 28.0, base), 12.0, Paint::Ink, &name);
    }
    match &panel.at {
        Positions::Numbers(places) => {
            let frame = (EDGE, top, room, height);
            plot::draw(&mut canvas, frame, (places, &[]), (&panel.x, view), &series);
        }
        Positions::Stages { numbers, labels } => {
            let frame = (EDGE, top, room, height);
            plot::draw(
                &mut canvas,
                frame,
                (numbers, labels),
                (&panel.x, view),
                &series,
            );
        }
        Positions::Names(names) => rows::draw(&mut canvas, (EDGE, top, room), names, view),
    }
    canvas.png()
}

/// Where the entries of a legend stand: their left edge and their row.
fn legend<'s>(series: &[&'s Series]) -> Vec<(&'s Series, f32, usize)> {
    let (mut left, mut row) = (EDGE, 0);
    let mut entries = Vec::new();
    for series in series {
        let width = 28.0 + text::width(&series.name, 12.0) + 18.0;
        if left > EDGE && left + width > WIDTH - EDGE {
            left = EDGE;
            row += 1;
        }
        entries.push((*series, left, row));
        left += width;
    }
    entries
}

/// Draws a series in the legend; ribbons lie on those of their colour before them.
fn swatch(canvas: &mut Canvas, series: &Series, before: &[&Series], left: f32, base: f32) {
    let paint = Paint::Series(series.color, series.tint.unwrap_or(100));
    match series.mark {
        SeriesMark::Bar => canvas.rect((left + 4.0, base - 10.0, 14.0, 12.0), paint),
        SeriesMark::Band => {
            let below = before.iter().copied();
            let below = below.filter(|of| of.mark == SeriesMark::Band && of.color == series.color);
            for of in below.chain([series]) {
                let paint = Paint::Series(of.color, of.tint.unwrap_or(100));
                canvas.rect((left, base - 10.0, 22.0, 12.0), paint);
            }
        }
        SeriesMark::Line | SeriesMark::Dashes => {
            let points = [(left, base - 4.0), (left + 22.0, base - 4.0)];
            canvas.line(&points, 2.0, series.mark == SeriesMark::Dashes, paint);
        }
    }
}

#[cfg(test)]
mod tests;
