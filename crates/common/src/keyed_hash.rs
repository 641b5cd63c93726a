//! A fast hash of texts with a secret key, for counting. Not for anything that must resist an attacker who sees hashes.
//!
//! The standard hasher takes several hundred instructions for two short texts, which is most of what counting a request may
//! cost. This one multiplies eight bytes at a time, and folds the product.

use std::hash::{BuildHasher, Hasher, RandomState};

#[derive(Clone, Copy, Debug)]
pub struct KeyedHash {
    start: u64,
    factor: u64,
}

impl KeyedHash {
    /// With a new random key.
    pub fn new() -> Self {
        let random = RandomState::new();
        Self { start: random.hash_one(1_u8), factor: random.hash_one(2_u8) | 1 }
    }

    /// Texts that are divided otherwise have another hash, and so has another `kind`.
    pub fn of(&self, kind: u8, texts: &[&str]) -> u64 {
        let start = self.start ^ u64::from(kind);
        texts.iter().fold(start, |state, text| self.text(state, text.as_bytes()))
    }

    pub fn of_bytes(&self, bytes: &[u8]) -> u64 {
        self.text(self.start, bytes)
    }

    fn text(&self, state: u64, bytes: &[u8]) -> u64 {
        let mut state = self.fold(state ^ bytes.len() as u64);
        let mut rest = bytes;
        while let Some((word, behind)) = rest.split_first_chunk::<8>() {
            state = self.fold(state ^ u64::from_le_bytes(*word));
            rest = behind;
        }
        // Twice: words that differ by little have products that differ by little in their low bits, with some keys.
        self.fold(self.fold(state ^ word_of(rest)))
    }

    fn fold(&self, word: u64) -> u64 {
        let product = u128::from(word) * u128::from(self.factor);
        (product as u64) ^ (product >> 64) as u64
    }
}

/// Up to seven bytes. The two halves of four or more overlap, which harms nothing: the length is hashed too.
fn word_of(bytes: &[u8]) -> u64 {
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some(first), Some(last)) => {
            u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last))
        }
        _ => bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

impl Default for KeyedHash {
    fn default() -> Self {
        Self::new()
    }
}

/// The hasher of maps whose keys are hashes.
#[derive(Clone, Copy, Debug, Default)]
pub struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Not used: the keys are `u64`.
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn different_texts_have_different_hashes() {
        let hash = KeyedHash::new();
        let mut seen = HashSet::new();
        for n in 0..100_000 {
            for text in [format!("{n}"), format!("partition{n:06}"), format!("{}{n}", "long".repeat(20))] {
                assert!(seen.insert(hash.of(0, &["books", &text])), "{text}");
            }
        }
        for texts in [&["ab", "c"][..], &["a", "bc"], &["abc", ""], &["", "abc"], &["abc"], &["abc", "", ""]]
        {
            assert!(seen.insert(hash.of(0, texts)), "{texts:?}");
        }
        for length in 0..40 {
            assert!(seen.insert(hash.of(0, &[&"\0".repeat(length)])), "{length} zeros");
        }
        assert_ne!(hash.of(0, &["a"]), hash.of(1, &["a"]));
        // Both ends of the hash are used: one for the place in a map, one for the tag beside it.
        let spread = |bits: fn(u64) -> u64| seen.iter().map(|hash| bits(*hash)).collect::<HashSet<_>>().len();
        assert_eq!((spread(|hash| hash >> 57), spread(|hash| hash & 0x7f)), (128, 128));
    }

    #[test]
    fn texts_that_differ_in_their_last_bytes_spread_over_the_low_bits_with_every_key() {
        // 200 texts in 32,768 places: 0.6 pairs share one on average, and more than 10 once in a thousand million times.
        for _ in 0..2000 {
            let hash = KeyedHash::new();
            let places: HashSet<u64> =
                (0..200).map(|n| hash.of_bytes(format!("\x01\x02p\0{n}").as_bytes()) & 0x7fff).collect();
            assert!(places.len() >= 190, "{} places for 200 texts, {hash:?}", places.len());
        }
    }

    #[test]
    fn another_key_gives_other_hashes() {
        let (a, b) = (KeyedHash::new(), KeyedHash::new());
        assert_eq!(a.of(0, &["books", "sf"]), a.of(0, &["books", "sf"]));
        assert_ne!(a.of(0, &["books", "sf"]), b.of(0, &["books", "sf"]));
    }
}
