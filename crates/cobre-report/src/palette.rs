//! The colours of charts, told apart also by people who see few: the set of Okabe and Ito, without its yellow,
//! which is lost on white paper.

/// A colour on light and on dark ground.
pub(crate) struct Color {
    pub(crate) light: &'static str,
    pub(crate) dark: &'static str,
}

const fn color(light: &'static str, dark: &'static str) -> Color {
    Color { light, dark }
}

/// Water.
pub(crate) const BLUE: usize = 0;
/// Fuel.
pub(crate) const VERMILION: usize = 1;
/// Wind and sun.
pub(crate) const GREEN: usize = 2;
/// Deficits and other shortages.
pub(crate) const PURPLE: usize = 3;
pub(crate) const ORANGE: usize = 4;
pub(crate) const SKY: usize = 5;
/// The reference that other series are compared with.
pub(crate) const INK: usize = 6;

/// All colours, by number.
pub(crate) const COLORS: [Color; 8] = [
    color("#0072b2", "#4aa8e0"),
    color("#d55e00", "#ff8a3d"),
    color("#009e73", "#2fc79b"),
    color("#b5508a", "#e396c1"),
    color("#c98500", "#f2b33d"),
    color("#3a9bdc", "#8fd0f7"),
    color("#333a45", "#d5dae2"),
    color("#7a5195", "#b795d4"),
];

/// The colour of the series with this number among many.
pub(crate) fn nth(number: usize) -> usize {
    number % COLORS.len()
}
