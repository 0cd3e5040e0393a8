//! Reservoirs and tailraces: level and area by storage, level below the plant by outflow.

use std::collections::HashMap;

use super::index::Index;
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::hydraulics::{
    Efficiency, HydraulicLosses, LossKind, Tailrace, TailraceKind,
};
use crate::hydrothermal::files::production::Geometry;
use crate::hydrothermal::files::{Files, system};
use crate::hydrothermal::table::Row;

/// MW of 1 m³/s falling 1 m: density times gravity, in MN/m³.
const WEIGHT: f64 = 0.00981;

/// Straight lines between points; constant beyond the first and the last.
#[derive(Debug, Clone, Default)]
pub(crate) struct PointCurve(Vec<(f64, f64)>);

impl PointCurve {
    /// The value at `x`.
    pub(crate) fn at(&self, x: f64) -> f64 {
        let after = self.0.partition_point(|(own, _)| *own <= x);
        match (
            after.checked_sub(1).and_then(|before| self.0.get(before)),
            self.0.get(after),
        ) {
            (None, Some((_, y))) | (Some((_, y)), None) => *y,
            (Some((x0, y0)), Some((x1, y1))) => y0 + (y1 - y0) * (x - x0) / (x1 - x0),
            (None, None) => 0.0,
        }
    }

    /// The slope of the piece at `x`, or right of it where pieces meet; that of the nearest beyond the ends.
    pub(crate) fn slope(&self, x: f64) -> f64 {
        let after = self.0.partition_point(|(own, _)| *own <= x);
        let after = after.clamp(1, self.0.len().max(2) - 1);
        match (self.0.get(after - 1), self.0.get(after)) {
            (Some((x0, y0)), Some((x1, y1))) => (y1 - y0) / (x1 - x0),
            _ => 0.0,
        }
    }

    /// The least and the most of the first and the last `x`, whose order may be wrong, which is said elsewhere.
    pub(crate) fn ends(&self) -> (f64, f64) {
        let first = self.0.first().map_or(0.0, |point| point.0);
        let last = self.0.last().map_or(first, |point| point.0);
        (first.min(last), first.max(last))
    }
}

/// The curves of a reservoir.
#[derive(Debug, Clone)]
pub(crate) struct Reservoir {
    /// Level, m, by storage, hm³.
    pub(crate) height: PointCurve,
    /// Area, km², by storage, hm³.
    pub(crate) area: PointCurve,
}

/// The curves of every plant that has some.
pub(super) fn resolve(
    files: &Files,
    plants: &Index,
    findings: &mut Findings,
) -> Vec<Option<Reservoir>> {
    let mut rows: HashMap<usize, Vec<(usize, &Geometry)>> = HashMap::new();
    for (number, row) in files.geometry.iter().enumerate() {
        let at = Place::file(Geometry::FILE).row(number);
        if let Some(plant) = plants.find(row.hydro_id, &at, findings) {
            rows.entry(plant).or_default().push((number, row));
        }
    }
    let curves = (0..plants.len()).map(|plant| {
        let rows = rows.remove(&plant)?;
        for pair in rows.windows(2) {
            let (before, (number, row)) = (pair[0].1, pair[1]);
            let at = Place::file(Geometry::FILE).row(number);
            let wrong = if row.volume_hm3.0 <= before.volume_hm3.0 {
                (
                    "volume_hm3",
                    row.volume_hm3.0,
                    "is not above",
                    before.volume_hm3.0,
                )
            } else if row.height_m.0 < before.height_m.0 {
                ("height_m", row.height_m.0, "is below", before.height_m.0)
            } else if row.area_km2.0 < before.area_km2.0 {
                ("area_km2", row.area_km2.0, "is below", before.area_km2.0)
            } else {
                continue;
            };
            let message = format!(
                "{}: {} {} the {} of the row of plant {} before it",
                wrong.0, wrong.1, wrong.2, wrong.3, row.hydro_id
            );
            findings.wrong(&at, message);
        }
        let curve = |pick: fn(&Geometry) -> f64| {
            PointCurve(
                rows.iter()
                    .map(|(_, row)| (row.volume_hm3.0, pick(row)))
                    .collect(),
            )
        };
        Some(Reservoir {
            height: curve(|row| row.height_m.0),
            area: curve(|row| row.area_km2.0),
        })
    });
    curves.collect()
}

/// Level of the water below a plant, m, by outflow, m³/s.
#[derive(Debug, Clone)]
pub(super) enum TailraceCurve {
    Polynomial(Vec<f64>),
    Piecewise(PointCurve),
    /// Between two families, and the share of the second.
    Families([PieceCurve; 2], f64),
}

/// Pieces of polynomials, in the order of outflow: beginning, end, m³/s, and coefficients.
#[derive(Debug, Clone)]
pub(super) struct PieceCurve(pub(super) Vec<(f64, f64, [f64; 5])>);

impl PieceCurve {
    /// The level at an outflow, which counts as the nearest that a piece is for.
    fn at(&self, outflow: f64) -> f64 {
        let own = self.0.iter().find(|(_, to, _)| outflow <= *to);
        let Some((from, to, numbers)) = own.or(self.0.last()) else {
            return 0.0;
        };
        polynomial(numbers, outflow.clamp(*from, *to))
    }
}

fn polynomial(numbers: &[f64], x: f64) -> f64 {
    let horner = |sum: f64, number: &f64| sum * x + number;
    numbers.iter().rev().fold(0.0, horner)
}

impl TailraceCurve {
    fn new(file: Option<&Tailrace>, at: &Place, findings: &mut Findings) -> Self {
        let Some(file) = file else {
            return Self::Polynomial(Vec::new());
        };
        let mut refuse = |given: bool, key: &str| {
            if given {
                findings.wrong(
                    &at.key(key),
                    "it does not go with this type; remove the key",
                );
            }
        };
        match file.r#type {
            TailraceKind::Polynomial => {
                refuse(file.points.is_some(), "points");
                let numbers = file.coefficients.iter().flatten();
                let numbers: Vec<f64> = numbers.map(|number| number.0).collect();
                if numbers.is_empty() {
                    findings.wrong(
                        &at.key("coefficients"),
                        "at least one coefficient is expected",
                    );
                }
                Self::Polynomial(numbers)
            }
            TailraceKind::Piecewise => {
                refuse(file.coefficients.is_some(), "coefficients");
                let points = file.points.iter().flatten();
                let points: Vec<(f64, f64)> = points
                    .map(|point| (point.outflow_m3s.0, point.height_m.0))
                    .collect();
                if points.is_empty() {
                    findings.wrong(&at.key("points"), "at least one point is expected");
                }
                for (place, pair) in points.windows(2).enumerate() {
                    if pair[1].0 <= pair[0].0 {
                        let message =
                            format!("{} is not above the {} before it", pair[1].0, pair[0].0);
                        let at = at.key("points").index(place + 1);
                        findings.wrong(&at.key("outflow_m3s"), message);
                    }
                }
                Self::Piecewise(PointCurve(points))
            }
        }
    }

    fn at(&self, outflow: f64) -> f64 {
        match self {
            Self::Polynomial(numbers) => polynomial(numbers, outflow),
            Self::Piecewise(curve) => curve.at(outflow),
            Self::Families([first, second], share) => {
                (1.0 - share) * first.at(outflow) + share * second.at(outflow)
            }
        }
    }
}

/// The exact production function of a plant.
#[derive(Debug, Clone)]
pub(crate) struct ProductionFunction {
    height: PointCurve,
    tailrace: TailraceCurve,
    /// The part of the gross head that is left, and the height that is lost, m.
    losses: (f64, f64),
    efficiency: f64,
}

impl ProductionFunction {
    /// That of a plant of a file, with the level curve of its reservoir, and a tailrace in place of that of the file.
    pub(super) fn new(
        height: PointCurve,
        plant: &system::Hydro,
        families: Option<TailraceCurve>,
        at: &Place,
        findings: &mut Findings,
    ) -> Self {
        let tailrace = TailraceCurve::new(plant.tailrace.as_ref(), &at.key("tailrace"), findings);
        let tailrace = families.unwrap_or(tailrace);
        let losses = plant.hydraulic_losses.as_ref();
        let losses = losses.map_or((1.0, 0.0), |losses| {
            lost(losses, &at.key("hydraulic_losses"), findings)
        });
        let efficiency = plant.efficiency.as_ref();
        Self {
            height,
            tailrace,
            losses,
            efficiency: efficiency.map_or(1.0, |own: &Efficiency| own.value.0),
        }
    }

    /// That of points of level by storage, a polynomial tailrace, a share of head lost and an efficiency.
    #[cfg(test)]
    pub(super) fn of(
        height: Vec<(f64, f64)>,
        tailrace: Vec<f64>,
        lost: f64,
        efficiency: f64,
    ) -> Self {
        Self {
            height: PointCurve(height),
            tailrace: TailraceCurve::Polynomial(tailrace),
            losses: (1.0 - lost, 0.0),
            efficiency,
        }
    }

    /// The storages that the level curve covers, hm³.
    pub(crate) fn storages(&self) -> (f64, f64) {
        self.height.ends()
    }

    /// Net head, m, at a storage, hm³, and an outflow, m³/s; not below zero.
    pub(crate) fn net_head(&self, storage: f64, outflow: f64) -> f64 {
        let gross = self.height.at(storage) - self.tailrace.at(outflow);
        (self.losses.0 * gross - self.losses.1).max(0.0)
    }

    /// Generation, MW, at a storage, hm³, and a turbined and a spilled flow, m³/s.
    pub(crate) fn power(&self, storage: f64, turbined: f64, spilled: f64) -> f64 {
        WEIGHT * self.efficiency * turbined * self.net_head(storage, turbined + spilled)
    }
}

fn lost(file: &HydraulicLosses, at: &Place, findings: &mut Findings) -> (f64, f64) {
    let (value, height) = (file.value, file.value_m);
    let (wanted, key, other, given) = match file.r#type {
        LossKind::Factor => (value.is_some(), "value", "value_m", height.is_some()),
        LossKind::Constant => (height.is_some(), "value_m", "value", value.is_some()),
    };
    if !wanted {
        findings.wrong(&at.key(key), "the key is missing");
    }
    if given {
        let message = "it does not go with this type; remove the key";
        findings.wrong(&at.key(other), message);
    }
    match file.r#type {
        LossKind::Factor => (1.0 - value.map_or(0.0, |value| value.0), 0.0),
        LossKind::Constant => (1.0, height.map_or(0.0, |height| height.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::PointCurve;

    #[test]
    fn curves_are_straight_between_points_and_flat_beyond() {
        let curve = PointCurve(vec![(0.0, 1.0), (10.0, 3.0), (20.0, 8.0)]);
        let values = [-1.0, 0.0, 5.0, 10.0, 14.0, 20.0, 30.0].map(|x| curve.at(x));
        assert_eq!(values, [1.0, 1.0, 2.0, 3.0, 5.0, 8.0, 8.0]);
        let slopes = [-1.0, 0.0, 5.0, 10.0, 20.0, 30.0].map(|x| curve.slope(x));
        assert_eq!(slopes, [0.2, 0.2, 0.2, 0.5, 0.5, 0.5]);
        let point = PointCurve(vec![(7.0, 2.0)]);
        assert_eq!(
            (point.at(0.0), point.at(7.0), point.slope(7.0)),
            (2.0, 2.0, 0.0)
        );
    }
}
