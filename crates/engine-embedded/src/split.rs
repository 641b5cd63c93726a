//! Divides a range of stored keys into pieces of about given sizes.
//!
//! Sizes are RocksDB's estimates from the indexes of table files: compressed, and without the memtable.

use rocksdb::{DBRawIterator, Range};

use crate::db::Db;

/// What can be known of a range of keys without reading it.
pub trait Ground {
    /// About how many bytes lie between two places.
    fn size(&self, start: &[u8], end: &[u8]) -> u64;
    /// The first key at or behind a place.
    fn first_from(&mut self, place: &[u8]) -> Option<Vec<u8>>;
    /// The last key at or before a place.
    fn last_to(&mut self, place: &[u8]) -> Option<Vec<u8>>;
}

/// The stored rows of a scan, by an iterator with the bounds of the scan.
pub struct StoredGround<'a> {
    pub db: &'a Db,
    pub rows: DBRawIterator<'a>,
}

impl Ground for StoredGround<'_> {
    fn size(&self, start: &[u8], end: &[u8]) -> u64 {
        let sizes = self.db.rocks().get_approximate_sizes_cf(self.db.data(), &[Range::new(start, end)]);
        sizes.first().copied().unwrap_or(0)
    }

    fn first_from(&mut self, place: &[u8]) -> Option<Vec<u8>> {
        self.rows.seek(place);
        self.rows.key().map(<[u8]>::to_vec)
    }

    fn last_to(&mut self, place: &[u8]) -> Option<Vec<u8>> {
        self.rows.seek_for_prev(place);
        self.rows.key().map(<[u8]>::to_vec)
    }
}

/// Two adjacent pieces of a range. The first begins at the start of the range.
#[derive(Debug, PartialEq, Eq)]
pub struct Pieces {
    pub middle: Vec<u8>,
    pub end: Vec<u8>,
}

/// Each step takes some microseconds and halves the keys that are left.
const STEPS_MAX: usize = 24;

/// Two pieces of about `window` bytes together, or of the whole range if it is hardly larger. `None` if the range has
/// less than `least` bytes, or no place to divide it is found.
pub fn split(
    ground: &mut impl Ground,
    (start, end): (&[u8], &[u8]),
    window: u64,
    least: u64,
) -> Option<Pieces> {
    let all = ground.size(start, end);
    if all < least {
        return None;
    }
    let last = ground.last_to(end)?;
    let (end, window) = if all < window + window / 2 {
        (end.to_vec(), all)
    } else {
        (place(ground, start, &last, window)?, window)
    };
    let middle = place(ground, start, last.as_slice().min(&end), window / 2)?;
    (start < &middle[..] && middle < end).then_some(Pieces { middle, end })
}

/// Of the places tried, the one that is nearest to `target` bytes behind the start.
fn place(ground: &mut impl Ground, start: &[u8], last: &[u8], target: u64) -> Option<Vec<u8>> {
    let (mut low, mut high) = (start.to_vec(), last.to_vec());
    let mut nearest: Option<(u64, Vec<u8>)> = None;
    for _ in 0..STEPS_MAX {
        let Some(middle) = between(&low, &high) else { break };
        let found = ground.size(start, &middle);
        let miss = found.abs_diff(target);
        // To the next key in that direction. Without this the search would take many steps in the gap between the
        // last key of one partition and the first key of the next.
        let bound = if found < target {
            ground.first_from(&middle).map(|key| low = key)
        } else {
            ground.last_to(&middle).map(|key| high = key)
        };
        if nearest.as_ref().is_none_or(|(least, _)| miss < *least) {
            nearest = Some((miss, middle));
        }
        if miss <= target / 16 || bound.is_none() {
            break;
        }
    }
    // With very unequal pieces, one thread would wait for the other.
    nearest.filter(|(miss, _)| *miss <= target / 2).map(|(_, place)| place)
}

/// Bytes that sort about halfway between the two; `None` if they are too close.
fn between(low: &[u8], high: &[u8]) -> Option<Vec<u8>> {
    const DIGITS: usize = size_of::<u128>();
    let common = low.iter().zip(high).take_while(|(a, b)| a == b).count();
    let number = |bytes: &[u8]| {
        let mut digits = [0; DIGITS];
        let tail = &bytes[common..bytes.len().min(common + DIGITS)];
        digits[..tail.len()].copy_from_slice(tail);
        u128::from_be_bytes(digits)
    };
    let (low_number, high_number) = (number(low), number(high));
    let half = high_number.checked_sub(low_number)? / 2;
    (half > 0).then(|| [&low[..common], &(low_number + half).to_be_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn the_middle_lies_strictly_between_the_two_keys() {
        const PAIRS: usize = 10_000;
        let (mut random, mut found) = (rand::rng(), 0);
        for _ in 0..PAIRS {
            let mut bytes = || -> Vec<u8> {
                let length = random.random_range(0..24);
                (0..length).map(|_| random.random_range(0..3)).collect()
            };
            let (a, b) = (bytes(), bytes());
            let (low, high) = if a < b { (a, b) } else { (b, a) };
            let middle = between(&low, &high);
            if let Some(middle) = &middle {
                found += 1;
                assert!(low < *middle && *middle < high, "{low:?} {middle:?} {high:?}");
            }
            // Where a byte lies between the first two that differ, there is a place for certain.
            let common = low.iter().zip(&high).take_while(|(a, b)| a == b).count();
            let digit = |bytes: &[u8]| bytes.get(common).copied().unwrap_or(0);
            assert!(
                middle.is_some() || digit(&high) < digit(&low) + 2,
                "nothing between {low:?} and {high:?}"
            );
        }
        assert!(found > PAIRS / 2, "{found} of {PAIRS}");
        assert_eq!(between(b"a", b"a"), None);
        assert_eq!(between(b"b", b"a"), None);
        assert!(between(b"a\0", b"a\x01").is_some());
    }

    /// Every key counts as one byte.
    struct Keys(Vec<String>);

    impl Keys {
        fn below(&self, place: &[u8]) -> usize {
            self.0.partition_point(|key| key.as_bytes() < place)
        }
    }

    impl Ground for Keys {
        fn size(&self, start: &[u8], end: &[u8]) -> u64 {
            self.below(end).saturating_sub(self.below(start)) as u64
        }

        fn first_from(&mut self, place: &[u8]) -> Option<Vec<u8>> {
            self.0.get(self.below(place)).map(|key| key.clone().into_bytes())
        }

        fn last_to(&mut self, place: &[u8]) -> Option<Vec<u8>> {
            let to = self.0.partition_point(|key| key.as_bytes() <= place);
            to.checked_sub(1).map(|at| self.0[at].clone().into_bytes())
        }
    }

    #[test]
    fn pieces_have_about_the_wanted_size() {
        for per_partition in [1, 10, 1_000, 100_000] {
            let key = |n| format!("a long partition key {:06}\0and a long row key {n:06}", n / per_partition);
            let mut keys = Keys((0..100_000).map(key).collect());
            let whole = (&b""[..], &b"\xff"[..]);

            let pieces = split(&mut keys, whole, 10_000, 100).unwrap();
            assert!(keys.size(b"", &pieces.end).abs_diff(10_000) <= 1_000, "{pieces:?}");
            assert!(keys.size(b"", &pieces.middle).abs_diff(5_000) <= 500, "{pieces:?}");

            let pieces = split(&mut keys, whole, 90_000, 100).unwrap();
            assert_eq!(pieces.end, whole.1, "what would be left over is taken along");
            assert!(keys.size(b"", &pieces.middle).abs_diff(50_000) <= 5_000, "{pieces:?}");

            assert_eq!(split(&mut keys, whole, 90_000, 100_001), None, "too little to share");
        }
    }
}
