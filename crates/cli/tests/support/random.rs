//! Random choices that depend only on a seed, and the settings of randomized tests.

use std::time::{SystemTime, UNIX_EPOCH};

/// SplitMix64: the same on every machine and in every version, so that a printed seed can be used later.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// One of several generators for the same seed.
    pub fn numbered(seed: u64, number: usize) -> Self {
        Self(Self(seed.wrapping_add(number as u64)).next())
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// A number from the environment, or the default.
pub fn setting(name: &str, usual: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, not a number")),
        Err(_) => usual,
    }
}

/// `PARTITA_SEED`, or one from the clock.
pub fn seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    setting("PARTITA_SEED", u64::from(now.subsec_nanos()) ^ now.as_secs())
}
