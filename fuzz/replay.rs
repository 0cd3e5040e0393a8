//! The sample of fuzzing in `make test`: the corpus of every target of a crate, and mutants of it under a seed, without
//! coverage. `COBRE_FUZZ_SEED` is another seed, `COBRE_FUZZ_MUTANTS` multiplies their number.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

#[test]
fn no_input_of_the_corpus_nor_a_mutant_of_it_does_harm() {
    let (seed, times) = (
        setting("COBRE_FUZZ_SEED", 2026),
        setting("COBRE_FUZZ_MUTANTS", 1),
    );
    for (target, run, mutants) in super::targets() {
        let corpus = corpus(target);
        let place = Scratch::new(target);
        let mut inputs = 0;
        let mut attempt = |input: &[u8], what: &str| {
            inputs += 1;
            let ended = catch_unwind(AssertUnwindSafe(|| run(&place.0, input)));
            if let Err(panic) = ended {
                let kept = std::env::temp_dir().join(format!("cobre-fuzz-{target}.input"));
                let _ = std::fs::write(&kept, input);
                eprintln!("{target}: {what}; the input is {}", kept.display());
                resume_unwind(panic);
            }
        };
        for (name, input) in &corpus {
            attempt(input, name);
        }
        for number in 0..mutants as u64 * times {
            let mut random = Random(seed ^ (number << 20));
            let input = mutant(&mut random, &corpus);
            attempt(&input, &format!("mutant {number} of seed {seed}"));
        }
        println!("{target}: {inputs} inputs, seed {seed}");
    }
}

fn setting(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().expect("a number"))
}

/// The files of a target in `fuzz/corpus`, in the order of their names.
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let entries =
        std::fs::read_dir(&place).unwrap_or_else(|error| panic!("{}: {error}", place.display()));
    let mut files: Vec<(String, Vec<u8>)> = entries
        .map(|entry| {
            let entry = entry.expect("an entry");
            let bytes = std::fs::read(entry.path()).expect("it is read");
            (entry.file_name().to_string_lossy().into_owned(), bytes)
        })
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", place.display());
    files
}

/// A directory for a target, in memory where that is possible; removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(target: &str) -> Self {
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() {
            memory.to_owned()
        } else {
            std::env::temp_dir()
        };
        let place = parent.join(format!("fuzz-{}-{target}", std::process::id()));
        std::fs::create_dir(&place).expect("a directory");
        Self(place)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Numbers that follow from a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// Numbers at the limits of their types.
const LIMITS: [u64; 9] = [
    0,
    1,
    0x7f,
    0xff,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 40,
    i64::MAX as u64,
    u64::MAX,
];

/// An input of the corpus with a few changes.
fn mutant(random: &mut Random, corpus: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut input = corpus[random.below(corpus.len())].1.clone();
    for _ in 0..=random.below(4) {
        let at = random.below(input.len() + 1);
        let end = input.len().min(at + 1 + random.below(16));
        match random.below(7) {
            0 if at < input.len() => input[at] ^= 1 << random.below(8),
            1 if at < input.len() => input[at] = random.next() as u8,
            2 => drop(input.drain(at..end)),
            3 => {
                let piece = input[at..end].to_vec();
                let to = random.below(input.len() + 1);
                drop(input.splice(to..to, piece));
            }
            4 => {
                let number = LIMITS[random.below(LIMITS.len())].to_le_bytes();
                let bytes = number.into_iter().take([1, 2, 4, 8][random.below(4)]);
                for (place, byte) in input[at..].iter_mut().zip(bytes) {
                    *place = byte;
                }
            }
            5 => {
                let other = &corpus[random.below(corpus.len())].1;
                let from = random.below(other.len() + 1);
                input.truncate(at);
                input.extend(&other[from..]);
            }
            6 if random.below(4) == 0 => input.truncate(at),
            _ => {
                let text = [
                    "-1",
                    "1e999",
                    "NaN",
                    "9223372036854775808",
                    "null",
                    "\"\"",
                    "[]",
                    "{}",
                ];
                drop(input.splice(at..end, text[random.below(text.len())].bytes()));
            }
        }
    }
    input
}
