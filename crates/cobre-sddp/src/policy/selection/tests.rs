//! Tests of cut selection, and its cost.

use super::*;
use crate::policy::cuts::{RecordLayout, record_width};
use crate::problem::StateColumns;

const STATES: [StateColumns; 1] = [StateColumns {
    incoming: 0,
    outgoing: 1,
}];

/// Cuts as (intercept, slope, trial point), one per slot.
fn records(cuts: &[(f64, f64, f64)]) -> Vec<f64> {
    cuts.iter().flat_map(|cut| [cut.0, cut.1, cut.2]).collect()
}

fn select(rule: &str, cuts: &[(f64, f64, f64)]) -> Vec<u32> {
    let records = records(cuts);
    let layout = RecordLayout {
        passes: cuts.len(),
        width: 3,
        levels: 1,
        given: 0,
    };
    let all = Cuts::new(&[], (layout, 1), (vec![(0, &records)], &[0]), &STATES);
    let mut selection_state = SelectionState::default();
    let selection = rule.parse().expect("a rule");
    let slots: Vec<u32> = (0..cuts.len() as u32).collect();
    let (first, rest) = slots.split_at(1);
    let used = selection_state.select(selection, &all, first, first, &[]);
    selection_state.select(selection, &all, rest, rest, &used)
}

/// One cut and one trial point come in at a node with 10,000 of both and 1,000 states; `--nocapture` shows the time.
#[test]
fn a_cut_among_ten_thousand_leaves_the_others_in_their_order() {
    const CUTS: u32 = 10_000;
    let states = vec![STATES[0]; 1_000];
    let width = record_width(states.len());
    let number = |at: usize| ((at * 7_919) % 1_009) as f64 / 1_009.0;
    let records: Vec<f64> = (0..CUTS as usize * width).map(number).collect();
    let layout = RecordLayout {
        passes: CUTS as usize,
        width,
        levels: 1,
        given: 0,
    };
    let all = Cuts::new(&[], (layout, 1), (vec![(0, &records)], &[0]), &states);
    let used: Vec<u32> = (0..CUTS - 1).rev().collect();
    for (rule, kept) in [("level1", 9_999), ("lml1", 9_999), ("lml1:9000", 9_000)] {
        // Every cut is highest at its own point.
        let mut state = SelectionState {
            cuts: (0..CUTS - 1).collect(),
            points: (0..CUTS - 1).map(|slot| (slot, 1e9, vec![slot])).collect(),
        };
        let (new, start) = ([CUTS - 1], std::time::Instant::now());
        let selection = rule.parse().expect("a rule");
        let found = state.select(selection, &all, &new, &new, &used);
        println!("{rule}: {:.1} ms", 1e3 * start.elapsed().as_secs_f64());
        let old = found.iter().take_while(|slot| **slot < CUTS - 1).count();
        assert!(old >= kept - 1, "{rule}: {old}");
        assert!(
            found[..old].is_sorted_by(|one, other| one > other),
            "{rule}"
        );
    }
}

#[test]
fn cuts_that_come_back_follow_those_in_use() {
    // Slots 0 and 2 are highest; 2 is in use, 0 was dropped by a cap.
    let cuts = [(0.0, -1.0, -5.0), (0.0, 0.0, 0.0), (0.0, 1.0, 5.0)];
    let records = records(&cuts);
    let layout = RecordLayout {
        passes: 3,
        width: 3,
        levels: 1,
        given: 0,
    };
    let all = Cuts::new(&[], (layout, 1), (vec![(0, &records)], &[0]), &STATES);
    let mut state = SelectionState::default();
    let rule = "level1".parse().expect("a rule");
    state.select(rule, &all, &[0, 1, 2], &[0, 1, 2], &[]);
    assert_eq!(state.select(rule, &all, &[], &[], &[2]), [2, 0, 1]);
}

#[test]
fn a_cut_that_is_nowhere_highest_goes() {
    let cuts = [(0.0, 0.0, 1.0), (1.0, 0.0, 2.0), (0.5, 1.0, 3.0)];
    assert_eq!(select("none", &cuts), [0, 1, 2]);
    assert_eq!(select("level1", &cuts), [2]);
}

#[test]
fn of_equal_cuts_limited_memory_keeps_the_oldest() {
    let cuts = [(1.0, 0.0, 0.0), (1.0, 1.0, 0.0), (0.0, 0.0, 0.0)];
    assert_eq!(select("level1", &cuts), [0, 1]);
    assert_eq!(select("lml1", &cuts), [0]);
}

#[test]
fn a_cap_drops_the_oldest_of_the_least_useful() {
    let cuts = [(1.0, 0.0, 0.0), (0.0, 1.0, 5.0), (0.0, -1.0, -5.0)];
    assert_eq!(select("level1:2", &cuts), [1, 2]);
    assert_eq!(select("none:1", &cuts), [2]);
}
