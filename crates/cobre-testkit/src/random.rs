//! Numbers from a counter: every rank can name any number of any stream, with no state that the
//! ranks would have to keep in step.

/// A stream of numbers that its key determines.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream that belongs to `key`; keys that differ anywhere give unrelated streams.
    pub fn new(key: &[u64]) -> Self {
        let state = key
            .iter()
            .fold(key.len() as u64, |state, &part| mix(state ^ mix(part)));
        Self { state }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        finish(self.state)
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        // The bias of the remainder is of the order limit / 2⁶⁴.
        (self.bits() % limit as u64) as usize
    }

    /// True once in `times`, on average.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of `choices`.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// `0..length` in some order.
    pub fn order(&mut self, length: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..length).collect();
        for last in (1..length).rev() {
            order.swap(last, self.below(last + 1));
        }
        order
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// One step of splitmix64: a bijection under which neighbours become unrelated.
pub fn mix(value: u64) -> u64 {
    finish(value.wrapping_add(GOLDEN))
}

fn finish(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of the reference implementation for seed 1234567.
    #[test]
    fn it_is_splitmix64() {
        let mut random = Random { state: 1_234_567 };
        let first = [(); 3].map(|()| random.bits());
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!(first, published);
    }

    #[test]
    fn keys_that_differ_anywhere_give_other_streams() {
        let first = |key: &[u64]| Random::new(key).bits();
        let keys: [&[u64]; 6] = [&[], &[0], &[0, 0], &[1, 0], &[0, 1], &[1, 1]];
        for (i, a) in keys.iter().enumerate() {
            assert_eq!(first(a), first(a));
            for b in &keys[i + 1..] {
                assert_ne!(first(a), first(b), "{a:?} and {b:?}");
            }
        }
    }

    #[test]
    fn an_order_holds_each_position_once() {
        let mut order = Random::new(&[3]).order(20);
        assert_ne!(order, (0..20).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..20).collect::<Vec<_>>());
    }
}
