//! Shapes and letters on white ground.

use tiny_skia::{
    Color, FillRule, LineCap, LineJoin, Mask, Paint as Brush, Path, PathBuilder, Pixmap, Rect,
    Stroke, StrokeDash, Transform,
};

use super::{SOFTWARE, text};
use crate::palette::COLORS;

/// Pixels per unit.
const SCALE: f32 = 1.5;

/// The colour of a shape.
#[derive(Debug, Clone, Copy)]
pub(super) enum Paint {
    Ink,
    Soft,
    Rule,
    /// A colour of the palette, and how strong it is in percent.
    Series(usize, u8),
}

impl Paint {
    fn color(self) -> Color {
        let (text, tint) = match self {
            Self::Ink => ("#1b2330", 100),
            Self::Soft => ("#566173", 100),
            Self::Rule => ("#e7ebf1", 100),
            Self::Series(number, tint) => (COLORS[number].light, tint),
        };
        let part = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap_or(0);
        let strength = (f32::from(tint) * 2.55).round() as u8;
        Color::from_rgba8(part(1), part(3), part(5), strength)
    }
}

/// A picture in the making.
pub(super) struct Canvas {
    pixels: Pixmap,
    /// Clip mask; `None` paints everywhere.
    window: Option<Mask>,
}

impl Canvas {
    pub(super) fn new(width: f32, height: f32) -> Self {
        let size = |length: f32| (length * SCALE).ceil() as u32;
        let mut pixels = Pixmap::new(size(width), size(height)).expect("pictures have a size");
        pixels.fill(Color::WHITE);
        Self {
            pixels,
            window: None,
        }
    }

    /// Confines what follows to a rectangle (left, top, width, height); to the whole picture if none.
    pub(super) fn confine(&mut self, window: Option<(f32, f32, f32, f32)>) {
        self.window = window.and_then(|(left, top, width, height)| {
            let mut mask = Mask::new(self.pixels.width(), self.pixels.height())?;
            let rect = Rect::from_xywh(left, top, width, height)?;
            let path = PathBuilder::from_rect(rect);
            mask.fill_path(&path, FillRule::Winding, false, Self::transform());
            Some(mask)
        });
    }

    fn transform() -> Transform {
        Transform::from_scale(SCALE, SCALE)
    }

    fn brush(paint: Paint) -> Brush<'static> {
        let mut brush = Brush {
            anti_alias: true,
            ..Brush::default()
        };
        brush.set_color(paint.color());
        brush
    }

    fn fill(&mut self, path: &Path, paint: Paint) {
        let (brush, window) = (Self::brush(paint), self.window.as_ref());
        self.pixels
            .fill_path(path, &brush, FillRule::Winding, Self::transform(), window);
    }

    /// A rectangle: left, top, width, height.
    pub(super) fn rect(&mut self, (left, top, width, height): (f32, f32, f32, f32), paint: Paint) {
        if let Some(rect) = Rect::from_xywh(left, top, width, height) {
            self.fill(&PathBuilder::from_rect(rect), paint);
        }
    }

    /// A disc.
    pub(super) fn dot(&mut self, (x, y): (f32, f32), radius: f32, paint: Paint) {
        if let Some(path) = PathBuilder::from_circle(x, y, radius) {
            self.fill(&path, paint);
        }
    }

    /// The area inside a line.
    pub(super) fn area(&mut self, edge: &[(f32, f32)], paint: Paint) {
        if let Some(path) = joined(edge, true) {
            self.fill(&path, paint);
        }
    }

    /// A line from point to point.
    pub(super) fn line(&mut self, points: &[(f32, f32)], width: f32, dashes: bool, paint: Paint) {
        let Some(path) = joined(points, false) else {
            return;
        };
        let stroke = Stroke {
            width,
            line_cap: LineCap::Butt,
            line_join: LineJoin::Round,
            dash: dashes
                .then(|| StrokeDash::new(vec![6.0, 4.0], 0.0))
                .flatten(),
            ..Stroke::default()
        };
        let (brush, window) = (Self::brush(paint), self.window.as_ref());
        self.pixels
            .stroke_path(&path, &brush, &stroke, Self::transform(), window);
    }

    /// A text that begins at a point.
    pub(super) fn text(&mut self, at: (f32, f32), size: f32, paint: Paint, text: &str) {
        let mut path = PathBuilder::new();
        text::outline(text, size, at, &mut path);
        if let Some(path) = path.finish() {
            self.fill(&path, paint);
        }
    }

    /// A text that ends at a point.
    pub(super) fn text_before(&mut self, (x, y): (f32, f32), paint: Paint, text: &str) {
        self.text((x - text::width(text, 12.0), y), 12.0, paint, text);
    }

    /// The picture as the bytes of a PNG file.
    pub(super) fn png(&self) -> Vec<u8> {
        let pixels = self.pixels.pixels().iter();
        // The ground is opaque, so is all that is painted on it.
        let data: Vec<u8> = pixels
            .flat_map(|pixel| [pixel.red(), pixel.green(), pixel.blue()])
            .collect();
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.pixels.width(), self.pixels.height());
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_compression(png::Compression::High);
        // Flat colours repeat; differences between pixels do not.
        encoder.set_filter(png::Filter::NoFilter);
        encoder
            .add_text_chunk(SOFTWARE.0.to_owned(), SOFTWARE.1.to_owned())
            .expect("letters are what it takes");
        let mut writer = encoder
            .write_header()
            .expect("memory takes what is written");
        let written = writer
            .write_image_data(&data)
            .and_then(|()| writer.finish());
        written.expect("the picture has as many bytes as its size says");
        bytes
    }
}

fn joined(points: &[(f32, f32)], closed: bool) -> Option<Path> {
    let mut path = PathBuilder::new();
    let (first, rest) = points.split_first()?;
    path.move_to(first.0, first.1);
    for (x, y) in rest {
        path.line_to(*x, *y);
    }
    if closed {
        path.close();
    }
    path.finish()
}
