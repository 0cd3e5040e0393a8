//! Hyperplanes fitted to the exact production function of a plant.
//!
//! The points are (storage, turbined flow, generation without spillage, at most the largest) on a grid. The planes
//! are the upper faces of their convex hull, all scaled by one factor so that the lowest of them is nearest to the
//! points in the sense of least squares. The slope by spillage is that of a regression where a plane counts most.

use super::geometry::ProductionFunction;
use super::hull::UpperHull;
use super::production::Plane;

/// Even points of spillage for its slope.
const SPILLAGE_POINTS: usize = 9;
/// Planes that differ by less, as a part of the largest generation, are one; slopes below are zero.
const SAME: f64 = 1e-9;
/// Planes this near to the lowest, as a part of the largest generation, are at a point.
const ACTIVE: f64 = 1e-8;
/// Points of the grid on which errors are measured, for each piece of the grid of the fit.
const FINER: usize = 4;

/// The question of a fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FitGrid {
    /// The storages it covers, hm³; equal if there is only one.
    pub(crate) storages: (f64, f64),
    /// m³/s.
    pub(crate) max_turbined: f64,
    /// MW.
    pub(crate) max_generation: f64,
    /// The spillage up to which the slope by spillage is taken, m³/s.
    pub(crate) max_spilled: f64,
    /// Points of storage and of turbined flow.
    pub(crate) points: (usize, usize),
    /// The most planes to keep.
    pub(crate) most_planes: usize,
}

/// The answer: planes, and their distance from the exact function.
#[derive(Debug, Clone)]
pub(crate) struct Fit {
    pub(crate) planes: Vec<Plane>,
    /// The factor of all planes.
    pub(crate) scale: f64,
    /// Largest and mean distance between planes and function, MW, on a grid finer than that of the fit.
    pub(crate) largest_error: f64,
    pub(crate) mean_error: f64,
}

impl FitGrid {
    fn even((from, to): (f64, f64), count: usize) -> Vec<f64> {
        if from == to {
            return vec![from];
        }
        let last = (count - 1) as f64;
        let at = |place: usize| from + (to - from) * place as f64 / last;
        (0..count)
            .map(|place| if place + 1 == count { to } else { at(place) })
            .collect()
    }

    /// Storages and turbined flows, each piece divided into so many.
    fn axes(&self, finer: usize) -> (Vec<f64>, Vec<f64>) {
        let count = |points: usize| (points - 1) * finer + 1;
        let storages = Self::even(self.storages, count(self.points.0));
        let flows = Self::even((0.0, self.max_turbined), count(self.points.1));
        (storages, flows)
    }

    /// Points of the exact function: storage, turbined flow, generation.
    fn cloud(&self, exact: &ProductionFunction, finer: usize) -> Vec<[f64; 3]> {
        let (storages, flows) = self.axes(finer);
        let power = |storage: f64, flow: f64| {
            let power = exact.power(storage, flow, 0.0).min(self.max_generation);
            [storage, flow, power]
        };
        let of_storage = |&storage: &f64| flows.iter().map(move |&flow| power(storage, flow));
        storages.iter().flat_map(of_storage).collect()
    }

    /// Fits planes to a function.
    pub(crate) fn fit(&self, exact: &ProductionFunction) -> Fit {
        let cloud = self.cloud(exact, 1);
        let mut planes = self.envelope(&cloud);
        self.reduce(&mut planes, &cloud);
        let (mut both, mut own) = (0.0, 0.0);
        for [storage, flow, power] in &cloud {
            let lowest = lowest(&planes, *storage, *flow);
            both += lowest * power;
            own += lowest * lowest;
        }
        let scale = if own > 0.0 { both / own } else { 1.0 };
        for plane in &mut planes {
            plane.constant *= scale;
            plane.storage *= scale;
            plane.turbined *= scale;
        }
        let slopes: Vec<f64> = planes
            .iter()
            .map(|plane| self.spillage(plane, &planes, &cloud, exact))
            .collect();
        for (plane, slope) in planes.iter_mut().zip(slopes) {
            plane.spilled = slope;
        }
        let check = self.cloud(exact, FINER);
        let errors = check.iter().map(|[storage, flow, power]| {
            let lowest = lowest(&planes, *storage, *flow).clamp(0.0, self.max_generation);
            (lowest - power).abs()
        });
        let errors: Vec<f64> = errors.collect();
        Fit {
            scale,
            largest_error: errors.iter().copied().fold(0.0, f64::max),
            mean_error: errors.iter().sum::<f64>() / errors.len() as f64,
            planes,
        }
    }

    /// The upper faces of the hull of the points, each once.
    fn envelope(&self, cloud: &[[f64; 3]]) -> Vec<Plane> {
        let largest = largest(cloud);
        let (storages, flows) = self.axes(1);
        let heights: Vec<f64> = cloud.iter().map(|point| point[2]).collect();
        let faces = UpperHull::new(storages.len(), flows.len(), &heights).faces();
        let widths = (self.storages.1 - self.storages.0, self.max_turbined);
        let small = |number: f64| number.abs() <= SAME * largest;
        let mut planes: Vec<Plane> = Vec::new();
        for face in faces {
            let corners = face.map(|place| cloud[place]);
            let mut plane = Plane::through(corners);
            if small(plane.storage * widths.0) {
                plane.storage = 0.0;
            }
            if small(plane.turbined * widths.1) {
                plane.turbined = 0.0;
            }
            let [storage, flow, power] = corners[0];
            plane.constant = power - plane.storage * storage - plane.turbined * flow;
            if small(plane.constant) {
                plane.constant = 0.0;
            }
            let same = |other: &Plane| {
                small((plane.storage - other.storage) * widths.0)
                    && small((plane.turbined - other.turbined) * widths.1)
                    && small(plane.at(self.storages.0, 0.0) - other.at(self.storages.0, 0.0))
            };
            if !planes.iter().any(same) {
                planes.push(plane);
            }
        }
        planes
    }

    /// Leaves no more planes than asked for: the one without which the lowest rises least goes first, the later of
    /// two.
    fn reduce(&self, planes: &mut Vec<Plane>, cloud: &[[f64; 3]]) {
        while planes.len() > self.most_planes.max(1) {
            let rise = |without: usize| -> f64 {
                let others = planes
                    .iter()
                    .enumerate()
                    .filter(|(place, _)| *place != without);
                let others: Vec<Plane> = others.map(|(_, plane)| *plane).collect();
                cloud
                    .iter()
                    .map(|[storage, flow, _]| lowest(&others, *storage, *flow))
                    .sum()
            };
            let rises = (0..planes.len()).map(|place| (place, rise(place)));
            let least = rises.reduce(|best, other| if other.1 <= best.1 { other } else { best });
            let Some((place, _)) = least else { return };
            planes.remove(place);
        }
    }

    /// The slope by spillage of a plane: that of a regression over even points of spillage, where the plane is the
    /// lowest and generation is largest; the first such point.
    fn spillage(
        &self,
        plane: &Plane,
        planes: &[Plane],
        cloud: &[[f64; 3]],
        exact: &ProductionFunction,
    ) -> f64 {
        let largest = largest(cloud);
        let active = cloud.iter().filter(|[storage, flow, _]| {
            plane.at(*storage, *flow) - lowest(planes, *storage, *flow) <= ACTIVE * largest
        });
        let best = active.reduce(|best, other| {
            let power = |point: &[f64; 3]| exact.power(point[0], point[1], 0.0);
            if power(other) > power(best) {
                other
            } else {
                best
            }
        });
        let Some([storage, flow, _]) = best else {
            return 0.0;
        };
        let samples = Self::even((0.0, self.max_spilled), SPILLAGE_POINTS);
        let powers: Vec<f64> = samples
            .iter()
            .map(|spilled| exact.power(*storage, *flow, *spilled))
            .collect();
        let count = samples.len() as f64;
        let means = [&samples, &powers].map(|values| values.iter().sum::<f64>() / count);
        let (mut both, mut own) = (0.0, 0.0);
        for (spilled, power) in samples.iter().zip(&powers) {
            both += (spilled - means[0]) * (power - means[1]);
            own += (spilled - means[0]).powi(2);
        }
        let slope = if own > 0.0 { both / own } else { 0.0 };
        // Spilled water does not make energy, and noise is none.
        if slope * self.max_spilled < -SAME * largest {
            slope
        } else {
            0.0
        }
    }
}

fn largest(cloud: &[[f64; 3]]) -> f64 {
    cloud.iter().map(|point| point[2]).fold(0.0, f64::max)
}

/// The lowest of planes at a point without spillage.
pub(crate) fn lowest(planes: &[Plane], storage: f64, turbined: f64) -> f64 {
    let values = planes.iter().map(|plane| plane.at(storage, turbined));
    values.fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::super::geometry::ProductionFunction;
    use super::*;

    fn grid(storages: (f64, f64), most_planes: usize) -> FitGrid {
        FitGrid {
            storages,
            max_turbined: 100.0,
            max_generation: 1000.0,
            max_spilled: 200.0,
            points: (5, 5),
            most_planes,
        }
    }

    /// A lake of 300 to 360 m over water that rises by `rise` m per 100 m³/s.
    fn lake(rise: f64) -> ProductionFunction {
        let points = vec![(0.0, 300.0), (50.0, 330.0), (100.0, 345.0), (200.0, 360.0)];
        ProductionFunction::of(points, vec![250.0, rise / 100.0], 0.03, 0.92)
    }

    #[test]
    fn planes_are_near_the_function_and_nothing_without_flow() {
        let fit = grid((0.0, 200.0), usize::MAX).fit(&lake(2.0));
        assert!(fit.planes.len() > 4, "{:?}", fit.planes);
        assert!((0.9..=1.0).contains(&fit.scale), "{}", fit.scale);
        assert!(fit.largest_error < 8.0 && fit.mean_error < 3.0, "{fit:?}");
        for storage in [0.0, 77.0, 200.0] {
            assert!(lowest(&fit.planes, storage, 0.0).abs() < 1e-9);
        }
        assert!(
            fit.planes
                .iter()
                .all(|plane| plane.storage >= 0.0 && plane.spilled <= 0.0)
        );
    }

    #[test]
    fn spilled_water_lowers_generation_by_the_rise_of_the_tailrace() {
        let fit = grid((0.0, 200.0), usize::MAX).fit(&lake(3.0));
        // φ is linear in spillage: its slope is −0.00981 · η · q · (1 − loss) · rise per m³/s, at most at q = 100.
        let most = -0.009_81 * 0.92 * 100.0 * 0.97 * 0.03;
        let least = fit
            .planes
            .iter()
            .map(|plane| plane.spilled)
            .fold(0.0, f64::min);
        assert!((least / most - 1.0).abs() < 1e-9, "{least} is {most}");
        let flat = grid((0.0, 200.0), usize::MAX).fit(&lake(0.0));
        assert!(flat.planes.iter().all(|plane| plane.spilled == 0.0));
    }

    #[test]
    fn one_storage_has_planes_of_flow_alone() {
        let fit = grid((100.0, 100.0), usize::MAX).fit(&lake(2.0));
        assert!(fit.planes.iter().all(|plane| plane.storage == 0.0));
        assert_eq!(fit.planes.len(), 4);
    }

    #[test]
    fn constant_head_has_one_plane() {
        let exact =
            ProductionFunction::of(vec![(0.0, 300.0), (200.0, 300.0)], vec![250.0], 0.0, 1.0);
        let fit = grid((0.0, 200.0), usize::MAX).fit(&exact);
        assert_eq!(fit.planes.len(), 1, "{:?}", fit.planes);
        assert!((fit.planes[0].turbined - 0.009_81 * 50.0).abs() < 1e-12);
        assert!(fit.largest_error < 1e-9);
    }

    #[test]
    fn fewer_planes_are_those_without_which_least_is_lost() {
        let all = grid((0.0, 200.0), usize::MAX).fit(&lake(2.0));
        let some = grid((0.0, 200.0), 3).fit(&lake(2.0));
        assert_eq!(some.planes.len(), 3);
        assert!(some.mean_error < 4.0 * all.mean_error.max(0.5), "{some:?}");
    }
}
