//! The upper convex hull of heights over a rectangular grid.
//!
//! Places on the grid are whole numbers, and heights become whole numbers of one part in 2⁴⁰ of the largest. So
//! every comparison is exact: faces never cross, overlap or get lost, and the result does not depend on rounding.
//! Faces are found by gift wrapping, each as the polygon of all points that lie on it.

use std::collections::{HashSet, VecDeque};

/// The number that stands for the largest height.
const UNITS: f64 = (1_u64 << 40) as f64;

/// A point over the grid: row, column and height.
type Point = [i128; 3];

/// The upper hull over a grid.
pub(super) struct UpperHull {
    points: Vec<Point>,
    rows: usize,
    columns: usize,
}

impl UpperHull {
    /// The hull of `heights`, row by row.
    pub(super) fn new(rows: usize, columns: usize, heights: &[f64]) -> Self {
        let largest = heights
            .iter()
            .fold(0.0_f64, |most, height| most.max(height.abs()));
        let unit = if largest > 0.0 { UNITS / largest } else { 0.0 };
        let points = heights.iter().enumerate().map(|(place, height)| {
            let at = |number: usize| number as i128;
            [
                at(place / columns),
                at(place % columns),
                (height * unit).round() as i128,
            ]
        });
        Self {
            points: points.collect(),
            rows,
            columns,
        }
    }

    /// Three places of the grid on each face, in an order that depends on the heights alone. A grid of one row has
    /// edges in place of faces, with the second place given twice.
    pub(super) fn faces(&self) -> Vec<[usize; 3]> {
        if self.rows == 1 {
            let chain = self.chain(0);
            let edges = chain.windows(2);
            return edges.map(|edge| [edge[0], edge[1], edge[1]]).collect();
        }
        let chain = self.chain(0);
        let mut found = Vec::new();
        let mut seen: HashSet<(usize, usize)> = HashSet::new();
        let mut open: VecDeque<(usize, usize)> = VecDeque::new();
        // The inside is to the left of an edge.
        open.extend(chain.windows(2).map(|edge| (edge[1], edge[0])));
        while let Some(edge) = open.pop_front() {
            if seen.contains(&edge) {
                continue;
            }
            let Some(face) = self.face(edge) else {
                seen.insert(edge);
                continue;
            };
            for (place, from) in face.iter().enumerate() {
                let to = face[(place + 1) % face.len()];
                seen.insert((*from, to));
                if !self.on_border(*from, to) {
                    open.push_back((to, *from));
                }
            }
            let third = face.len() / 3;
            found.push([face[0], face[third.max(1)], face[(2 * third).max(2)]]);
        }
        found
    }

    /// The upper hull of one row of the grid, by column.
    fn chain(&self, row: usize) -> Vec<usize> {
        let places = row * self.columns..(row + 1) * self.columns;
        let mut chain: Vec<usize> = Vec::new();
        for place in places {
            while let [.., before, last] = chain[..] {
                let [a, b, c] = [before, last, place].map(|place| self.points[place]);
                let turn = (b[1] - a[1]) * (c[2] - a[2]) - (b[2] - a[2]) * (c[1] - a[1]);
                if turn < 0 {
                    break;
                }
                chain.pop();
            }
            chain.push(place);
        }
        chain
    }

    /// The polygon of the face to the left of an edge, counter-clockwise.
    fn face(&self, (from, to): (usize, usize)) -> Option<Vec<usize>> {
        let (a, b) = (self.points[from], self.points[to]);
        let mut best: Option<Point> = None;
        for point in &self.points {
            if turn(a, b, *point) > 0 && best.is_none_or(|best| above(a, b, best, *point) > 0) {
                best = Some(*point);
            }
        }
        let c = best?;
        let on_it = (0..self.points.len()).filter(|place| above(a, b, c, self.points[*place]) == 0);
        Some(self.polygon(&on_it.collect::<Vec<_>>()))
    }

    /// The corners of the convex hull of places, seen from above, counter-clockwise. Places ascend by row and column.
    fn polygon(&self, places: &[usize]) -> Vec<usize> {
        let mut corners: Vec<usize> = Vec::new();
        let mut half = |places: &mut dyn Iterator<Item = usize>| {
            let start = corners.len();
            for place in places {
                while corners.len() >= start + 2 {
                    let [.., before, last] = corners[..] else {
                        break;
                    };
                    let [a, b, c] = [before, last, place].map(|place| self.points[place]);
                    if turn(a, b, c) > 0 {
                        break;
                    }
                    corners.pop();
                }
                corners.push(place);
            }
            corners.pop();
        };
        half(&mut places.iter().copied());
        half(&mut places.iter().rev().copied());
        corners
    }

    /// True if an edge lies on a side of the grid.
    fn on_border(&self, from: usize, to: usize) -> bool {
        let ends = [self.points[from], self.points[to]];
        let last = [self.rows as i128 - 1, self.columns as i128 - 1];
        (0..2).any(|axis| {
            [0, last[axis]]
                .iter()
                .any(|side| ends.iter().all(|end| end[axis] == *side))
        })
    }
}

/// Above zero if `c` is to the left of the way from `a` to `b`, seen from above.
fn turn(a: Point, b: Point, c: Point) -> i128 {
    (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
}

/// Above zero if `point` is above the plane through three points, which turn to the left.
fn above(first: Point, second: Point, third: Point, point: Point) -> i128 {
    let less = |point: Point| [0, 1, 2].map(|axis| point[axis] - first[axis]);
    let [along, across, up] = [second, third, point].map(less);
    let minor = |one: usize, two: usize| along[one] * across[two] - along[two] * across[one];
    up[0] * minor(1, 2) + up[1] * minor(2, 0) + up[2] * minor(0, 1)
}

#[cfg(test)]
mod tests {
    use super::UpperHull;

    /// The height of a face over a place.
    fn height(corners: [[f64; 3]; 3], row: f64, column: f64) -> f64 {
        let [first, second, third] = corners;
        let less = |point: [f64; 3]| [0, 1, 2].map(|axis| point[axis] - first[axis]);
        let (along, across) = (less(second), less(third));
        let size = along[0] * across[1] - along[1] * across[0];
        let (rows, columns) = (row - first[0], column - first[1]);
        let part = (rows * across[1] - columns * across[0]) / size;
        let other = (along[0] * columns - along[1] * rows) / size;
        first[2] + part * along[2] + other * across[2]
    }

    fn corners(face: [usize; 3], columns: usize, heights: &[f64]) -> [[f64; 3]; 3] {
        face.map(|place| {
            [
                (place / columns) as f64,
                (place % columns) as f64,
                heights[place],
            ]
        })
    }

    /// Every face is above all points and touches three; the lowest face over a point of a concave function is at it.
    fn check(rows: usize, columns: usize, heights: &[f64], concave: bool) -> usize {
        let faces = UpperHull::new(rows, columns, heights).faces();
        assert!(!faces.is_empty());
        let largest = heights
            .iter()
            .fold(0.0_f64, |most, height| most.max(height.abs()));
        for (place, point) in heights.iter().enumerate() {
            let (row, column) = ((place / columns) as f64, (place % columns) as f64);
            let lowest = faces
                .iter()
                .map(|face| height(corners(*face, columns, heights), row, column))
                .fold(f64::INFINITY, f64::min);
            let gap = lowest - point;
            assert!(gap > -1e-9 * (1.0 + largest), "{gap} at {place}");
            assert!(!concave || gap < 1e-9 * (1.0 + largest), "{gap} at {place}");
        }
        faces.len()
    }

    #[test]
    fn faces_of_a_concave_function_meet_every_point() {
        let heights: Vec<f64> = (0..81)
            .map(|place| {
                let (row, column) = (f64::from(place / 9), f64::from(place % 9));
                60.0 - (row - 3.3).powi(2) - (column - 2.7).powi(2) - 0.3 * row * column
            })
            .collect();
        assert!(check(9, 9, &heights, true) > 60);
    }

    #[test]
    fn faces_of_any_function_are_above_it() {
        let mut number = 1_u64;
        for size in [(2, 2), (2, 7), (5, 3), (8, 8)] {
            for _ in 0..50 {
                let heights: Vec<f64> = (0..size.0 * size.1)
                    .map(|_| {
                        number = number
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1);
                        ((number >> 33) % 7) as f64
                    })
                    .collect();
                check(size.0, size.1, &heights, false);
            }
        }
    }

    #[test]
    fn points_on_one_plane_have_one_face() {
        let heights: Vec<f64> = (0..30)
            .map(|place| 3.0 + 0.1 * f64::from(place / 6) + 0.7 * f64::from(place % 6))
            .collect();
        let faces = UpperHull::new(5, 6, &heights).faces().len();
        // Rounding to units may tilt a few.
        assert!(faces <= 40, "{faces}");
        assert_eq!(UpperHull::new(3, 4, &[0.0; 12]).faces().len(), 1);
    }

    #[test]
    fn one_row_has_edges() {
        let faces = UpperHull::new(1, 5, &[0.0, 3.0, 4.0, 4.5, 5.0]).faces();
        assert_eq!(faces, [[0, 1, 1], [1, 2, 2], [2, 4, 4]]);
    }
}
