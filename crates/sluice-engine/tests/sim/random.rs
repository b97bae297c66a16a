//! Random numbers derived from the seed.

use sluice_core::id::Entropy;

/// A stream of random numbers (splitmix64).
#[derive(Debug, Clone)]
pub(crate) struct SeededRandom(u64);

impl SeededRandom {
    /// The stream identified by these numbers.
    pub(crate) fn of(parts: &[u64]) -> SeededRandom {
        let mut chance = SeededRandom(0);
        for part in parts {
            chance.0 = chance.next() ^ *part;
        }
        chance
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// From `low` to `high`, inclusive.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True with a probability of `share` in a thousand.
    pub(crate) fn permille(&mut self, share: u64) -> bool {
        self.below(1000) < share
    }

    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let at = usize::try_from(self.below(of.len() as u64)).expect("a position fits");
        &of[at]
    }
}

impl Entropy for SeededRandom {
    fn bits(&mut self) -> u64 {
        self.next()
    }
}

/// A 128-bit number as two stream ids.
pub(crate) fn halves(number: u128) -> [u64; 2] {
    let low = number & u128::from(u64::MAX);
    [
        u64::try_from(number >> 64).expect("64 bits are left"),
        u64::try_from(low).expect("64 bits are left"),
    ]
}
