//! Fast pseudo-random numbers: SplitMix64.

/// A bijection: different numbers give different results, in a pseudo-random order.
pub fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A stream of numbers; the same seed gives the same ones.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// Below `bound`, which must not be 0. The bias is too small to measure.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_bounds_hold() {
        let (mut a, mut b) = (Random::new(7), Random::new(7));
        for bound in 1..1000 {
            let number = a.below(bound);
            assert_eq!(number, b.below(bound));
            assert!(number < bound);
        }
        assert_ne!(Random::new(1).next(), Random::new(2).next());
    }
}
