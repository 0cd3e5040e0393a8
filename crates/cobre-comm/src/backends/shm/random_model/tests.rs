//! `COBRE_SCHEDULES=100000 COBRE_SCHEDULES_SEED=7 cargo test --release -p cobre-comm random_model` tries so many schedules
//! from this seed in each test.

use super::*;

/// Schedules of each test without [`COUNT`] set.
const SCHEDULES: u64 = 40;
const COUNT: &str = "COBRE_SCHEDULES";
const SEED: &str = "COBRE_SCHEDULES_SEED";

fn setting(variable: &str, otherwise: u64) -> u64 {
    let given = std::env::var(variable).ok();
    given.map_or(otherwise, |text| text.parse().expect(variable))
}

/// Seeds of as many schedules as are asked for.
fn seeds() -> impl Iterator<Item = u64> {
    let first = setting(SEED, 1) << 32;
    (0..setting(COUNT, SCHEDULES)).map(move |number| first + number)
}

fn holds<const MISTAKE: u8>(side: Side<MISTAKE>, ranks: usize, rounds: u64) {
    for seed in seeds() {
        let ended = run(side, ranks, rounds, seed, None);
        assert_eq!(ended, Ok(()), "{ranks} ranks, seed {seed}");
    }
}

fn ring_of_its_size<const MISTAKE: u8>(shared: &Shared<MISTAKE>, me: usize, messages: u64) -> u64 {
    ring(shared, me, messages, 1)
}

#[test]
fn six_ranks_never_miss_a_word_nor_a_wake() {
    holds::<0>(collectives, 6, 4);
}

#[test]
fn five_readers_get_every_message_of_a_ring() {
    holds::<0>(ring_of_its_size, 6, 6);
}

#[test]
fn whoever_of_five_dies_whenever_the_others_return() {
    for (side, steps) in [
        (collectives::<0> as Side<0>, 150),
        (ring_of_its_size::<0>, 80),
    ] {
        for seed in seeds() {
            let victim = (
                (seed % 5) as usize,
                (seed.wrapping_mul(2_654_435_761) >> 7) as u32 % steps,
            );
            let ended = run(side, 5, 4, seed, Some(victim));
            assert_eq!(ended, Ok(()), "seed {seed}, victim {victim:?}");
        }
    }
}

/// The first complaint about a program with a fault built in.
fn noticed<const MISTAKE: u8>(side: Side<MISTAKE>) -> String {
    let mut ends = (0..2000).map(|seed| run(side, 5, 4, seed, None));
    ends.find_map(Result::err)
        .expect("a schedule that shows the fault")
}

fn is_a_deadlock<const MISTAKE: u8>() {
    for side in [collectives::<MISTAKE> as Side<MISTAKE>, ring_of_its_size] {
        let told = noticed(side);
        assert!(told.starts_with("deadlock"), "{told}");
    }
}

#[test]
fn faults_of_the_event_count_are_noticed() {
    is_a_deadlock::<{ Mistake::NoWake as u8 }>();
    is_a_deadlock::<{ Mistake::LateSample as u8 }>();
    is_a_deadlock::<{ Mistake::NoSecondLook as u8 }>();
}

#[test]
fn a_ring_written_without_room_is_noticed() {
    let told = noticed::<0>(|shared, me, messages| ring(shared, me, messages, 2));
    assert!(told.contains("a message for rank"), "{told}");
}
