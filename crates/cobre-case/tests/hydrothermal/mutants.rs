//! Cases with bytes that are wrong anywhere: errors, or another case, and never a panic, a long wait or much memory.
//!
//! `COBRE_HOSTILE` says how many mutants of each file, `COBRE_HOSTILE_SEED` which.

use std::time::{Duration, Instant};

use cobre_case::template::{CaseFiles, Template};
use cobre_case::{Options, load};

use crate::equipment;
use crate::random::{Random, setting};
use crate::water_world::WaterWorld;

/// Mutants of each file if nobody says it.
const USUAL: u64 = 150;
/// The longest that one may take, on a machine with much else to do.
const LONGEST: Duration = Duration::from_secs(20);
/// The most memory that the process may come to have, in KiB.
const MOST_KIB: u64 = 2 << 20;

/// Numbers that are too large, too small or none, as they stand in JSON.
const ODD: [&str; 9] = [
    "-1",
    "1e308",
    "1e400",
    "-0.0",
    "4294967295",
    "9223372036854775807",
    "1e-320",
    "null",
    "[[[[]]]]",
];

/// Bytes with a few changes.
fn mutant(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len());
        match random.below(7) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.below(256) as u8,
            2 => bytes[at] = [0, 0x7f, 0x80, 0xff][random.below(4)],
            3 => bytes.truncate(at.max(1)),
            4 => {
                let end = (at + random.below(40)).min(bytes.len());
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            5 => {
                let end = (at + random.below(8)).min(bytes.len());
                bytes.drain(at..end);
                if bytes.is_empty() {
                    bytes.push(b'{');
                }
            }
            _ => {
                // A number of a text, another in its place.
                let digit = bytes[at..].iter().position(u8::is_ascii_digit);
                if let Some(start) = digit.map(|digit| at + digit) {
                    let is_number = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
                    let length = bytes[start..]
                        .iter()
                        .take_while(|byte| is_number(byte))
                        .count();
                    let odd = ODD[random.below(ODD.len())].bytes();
                    bytes.splice(start..start + length, odd);
                }
            }
        }
    }
    bytes
}

/// The most memory that this process has had, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.unwrap_or(0)
}

fn sound() -> CaseFiles {
    Template::find("cascade").expect("it is there").files()
}

/// Makes mutants of some files of a case, so many of each; counts those that are refused, and all.
fn mutate(files: &CaseFiles, wanted: fn(&str) -> bool, count: u64) -> (u64, u64) {
    let seed = setting("COBRE_HOSTILE_SEED", 1);
    let directory = tempfile::tempdir().expect("a directory");
    files.write(directory.path()).expect("it can be written");
    let (mut refused, mut all) = (0, 0);
    let names = files.iter().map(|(name, _)| name.to_owned());
    let names: Vec<String> = names.filter(|name| wanted(name)).collect();
    for (number, name) in names.iter().enumerate() {
        let place = directory.path().join(name);
        let whole = std::fs::read(&place).expect("it is there");
        for round in 0..count {
            let mut random = Random(seed ^ (number as u64) << 48 ^ round << 8);
            std::fs::write(&place, mutant(&whole, &mut random)).expect("it can be written");
            let start = Instant::now();
            // What a case of other numbers needs may be large; it is not built then.
            let loaded = load(directory.path(), &Options::default());
            assert!(
                start.elapsed() < LONGEST,
                "{name}, round {round} of seed {seed}"
            );
            refused += u64::from(loaded.is_err());
            all += 1;
        }
        std::fs::write(&place, &whole).expect("it can be written");
    }
    (refused, all)
}

#[test]
fn mutants_of_every_file_are_an_error_or_another_case() {
    let count = setting("COBRE_HOSTILE", USUAL);
    let (mut refused, mut all) = mutate(&sound(), |_| true, count);
    // Production functions, curves and the ways of water.
    let (_, files) = WaterWorld::random(3);
    let wanted = |name: &str| name.contains("hydro") || name == "initial_conditions.json";
    let more = mutate(&files, wanted, count.div_ceil(2));
    (refused, all) = (refused + more.0, all + more.1);
    // Equipment and constraints.
    let wanted = |name: &str| {
        let parts = [
            "pumping", "contract", "batter", "generic", "exchange", "thermals", "ncs",
        ];
        parts.iter().any(|part| name.contains(part)) || name == "initial_conditions.json"
    };
    let more = mutate(&equipment::sound(), wanted, count.div_ceil(3));
    (refused, all) = (refused + more.0, all + more.1);
    assert!(refused * 3 > all, "{refused} of {all} were refused");
    assert!(peak_kib() < MOST_KIB, "{} KiB", peak_kib());
}
