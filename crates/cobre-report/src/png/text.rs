//! Letters as outlines, so that pictures need no fonts of the machine.
//!
//! The font is Roboto (Apache-2.0), cut down to the letters of European languages: 20 kB.

use std::sync::LazyLock;

use tiny_skia::PathBuilder;
use ttf_parser::{Face, GlyphId, OutlineBuilder};

static FONT: &[u8] = include_bytes!("font/roboto-latin.ttf");
static FACE: LazyLock<Face<'static>> =
    LazyLock::new(|| Face::parse(FONT, 0).expect("the font is part of the program"));

/// The width of a text at a font size.
pub(super) fn width(text: &str, size: f32) -> f32 {
    text.chars()
        .map(|letter| advance(glyph(letter), size))
        .sum()
}

/// The text, with its end left out if it is wider than there is room.
pub(super) fn shortened(text: &str, size: f32, room: f32) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut left = room - width("…", size);
    let fits = |letter: &char| {
        left -= advance(glyph(*letter), size);
        left >= 0.0
    };
    let mut short: String = text.chars().take_while(fits).collect();
    short.push('…');
    short
}

/// Adds the outlines of a text that begins at a point of the line it stands on.
pub(super) fn outline(text: &str, size: f32, (mut x, y): (f32, f32), path: &mut PathBuilder) {
    for letter in text.chars() {
        let glyph = glyph(letter);
        let mut pen = Pen {
            path,
            x,
            y,
            scale: scale(size),
        };
        FACE.outline_glyph(glyph, &mut pen);
        x += advance(glyph, size);
    }
}

/// The glyph of a letter; that of a letter the font has not says so.
fn glyph(letter: char) -> GlyphId {
    let found = FACE.glyph_index(letter);
    // Gaps of any width are gaps.
    let gap = || {
        letter
            .is_whitespace()
            .then(|| FACE.glyph_index(' '))
            .flatten()
    };
    found
        .or_else(gap)
        .or_else(|| FACE.glyph_index('\u{fffd}'))
        .unwrap_or_default()
}

fn scale(size: f32) -> f32 {
    size / f32::from(FACE.units_per_em())
}

fn advance(glyph: GlyphId, size: f32) -> f32 {
    f32::from(FACE.glyph_hor_advance(glyph).unwrap_or(0)) * scale(size)
}

/// Puts outlines of the font, whose heights grow upwards, into a picture.
struct Pen<'p> {
    path: &'p mut PathBuilder,
    x: f32,
    y: f32,
    scale: f32,
}

impl Pen<'_> {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.scale, self.y - y * self.scale)
    }
}

impl OutlineBuilder for Pen<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_with_accents_have_outlines() {
        for letter in "aZ09çãéüßŁ³±–…µ".chars() {
            let known = FACE.glyph_index(letter);
            assert!(known.is_some_and(|glyph| glyph.0 != 0), "{letter}");
        }
    }

    #[test]
    fn a_letter_the_font_has_not_is_seen_to_be_missing() {
        assert_eq!(glyph('水'), glyph('\u{fffd}'));
        assert_eq!(glyph('\u{202f}'), glyph(' '));
    }

    #[test]
    fn what_does_not_fit_is_cut() {
        let short = shortened("a very long name of a plant", 12.0, 60.0);
        assert!(
            short.ends_with('…') && width(&short, 12.0) <= 60.0,
            "{short}"
        );
        assert_eq!(shortened("short", 12.0, 60.0), "short");
    }
}
