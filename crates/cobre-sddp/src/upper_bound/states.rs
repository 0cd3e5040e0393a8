//! Anchors: states that hold all outgoing states of a node together with the visited ones.

use super::reach::Range;
use super::slopes::Slopes;

/// The most states that neither direction has a slope of: each doubles the anchors.
const MOST_OPEN: usize = 8;

/// States of the box of `reach` from which every state in it can be reached at the slopes, and further ones that make
/// the way shorter; none where a range has no end on the side that is needed.
pub(super) fn anchors(slopes: &Slopes, reach: &[Range]) -> Vec<Vec<f64>> {
    let sides = slopes.up.iter().zip(&slopes.down).zip(reach);
    let sides = sides.map(
        |((up, down), [least, most])| match (up.is_finite(), down.is_finite()) {
            // From its least value a state goes up, from its most it goes down.
            (true, true) if least.is_finite() => [*least; 2],
            (true, false) => [*least; 2],
            (_, true) => [*most; 2],
            (false, false) => [*least, *most],
        },
    );
    let sides: Vec<[f64; 2]> = sides.collect();
    let open: Vec<usize> = (0..sides.len())
        .filter(|&state| sides[state][0] != sides[state][1])
        .collect();
    if open.len() > MOST_OPEN || sides.iter().flatten().any(|side| !side.is_finite()) {
        return Vec::new();
    }
    let mut found: Vec<Vec<f64>> = (0..1_usize << open.len())
        .map(|corner| {
            let mut state: Vec<f64> = sides.iter().map(|side| side[0]).collect();
            for (bit, &at) in open.iter().enumerate() {
                state[at] = sides[at][corner >> bit & 1];
            }
            state
        })
        .collect();
    found.extend(near(&sides, reach));
    found
}

/// The corner opposite to the anchors, and the corners that differ from it in one state.
fn near(sides: &[[f64; 2]], reach: &[Range]) -> Vec<Vec<f64>> {
    let opposite = sides
        .iter()
        .zip(reach)
        .map(|([one, other], [least, most])| {
            if one != other {
                0.5 * (least + most)
            } else if one == least {
                *most
            } else {
                *least
            }
        });
    let opposite: Vec<f64> = opposite.collect();
    if opposite.iter().any(|side| !side.is_finite()) {
        return Vec::new();
    }
    let mut found = vec![opposite.clone()];
    if sides.len() > 1 {
        for (state, side) in sides
            .iter()
            .enumerate()
            .filter(|(_, side)| side[0] == side[1])
        {
            let mut corner = opposite.clone();
            corner[state] = side[0];
            found.push(corner);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: f64 = f64::INFINITY;

    #[test]
    fn anchors_are_on_the_side_that_slopes_lead_away_from() {
        let slopes = Slopes {
            up: vec![0.5, NONE],
            down: vec![NONE, 2.0],
        };
        let found = anchors(&slopes, &[[0.0, 10.0], [1.0, 3.0]]);
        assert_eq!(found[0], [0.0, 3.0]);
        assert_eq!(found[1..], [[10.0, 1.0], [0.0, 1.0], [10.0, 3.0]]);
    }

    #[test]
    fn a_state_without_slopes_has_anchors_on_both_sides() {
        let slopes = Slopes {
            up: vec![NONE],
            down: vec![NONE],
        };
        assert_eq!(anchors(&slopes, &[[0.0, 4.0]])[..2], [[0.0], [4.0]]);
        assert!(anchors(&slopes, &[[0.0, NONE]]).is_empty());
    }
}
