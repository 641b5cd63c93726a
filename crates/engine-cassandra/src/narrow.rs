//! Reads a range of keys however many tombstones are in it.
//!
//! A node fails a read that has met 100,000 tombstones (`tombstone_failure_threshold`). It may meet them before the
//! first row, so asking for fewer rows does not help. A part of the range has fewer tombstones, so the range is
//! divided until every part can be read.

use crate::trouble::Trouble;

/// How often a range is halved at once. Keys often have a common prefix. Then all parts but one are empty and are read
/// quickly, whereas each failed read takes long.
const DIVISIONS: u32 = 4;
/// Failed reads after which the range is given up. Each byte of a common prefix costs two.
const FAILURES_MAX: usize = 1000;

/// The keys from the first up to, but without, the second.
type Keys = (Vec<u8>, Vec<u8>);

/// The part of a range that is still to be read.
#[derive(Debug)]
pub struct Narrow {
    /// In reverse order: the last is read next.
    parts: Vec<Keys>,
    failures: usize,
    divide: fn(&[u8], &[u8]) -> Option<Vec<u8>>,
}

impl Narrow {
    pub fn new(from: &[u8], to: &[u8]) -> Self {
        Self { parts: vec![(from.to_vec(), to.to_vec())], failures: 0, divide: middle }
    }

    /// The same for keys that are ASCII text.
    pub fn of_text(from: &str, to: &str) -> Self {
        Self { divide: middle_text, ..Self::new(from.as_bytes(), to.as_bytes()) }
    }

    /// Whether the range had too many tombstones for one read.
    pub fn was_divided(&self) -> bool {
        self.failures > 0
    }

    /// The keys to read next; `None` after the last.
    pub fn next(&self) -> Option<(&[u8], &[u8])> {
        self.parts.last().map(|(from, to)| (from.as_slice(), to.as_slice()))
    }

    /// The keys of `next` were all read.
    pub fn passed(&mut self) {
        self.parts.pop();
    }

    /// The keys of `next` could not be read. If tombstones are the reason, they are divided; otherwise the trouble is
    /// returned.
    pub fn failed(&mut self, trouble: Trouble) -> Result<(), Trouble> {
        let (Trouble::Tombstones(_), Some((from, to))) = (&trouble, self.parts.last()) else {
            return Err(trouble);
        };
        let parts = divided(from, to, self.divide);
        if parts.len() < 2 || self.failures == FAILURES_MAX {
            return Err(trouble);
        }
        self.failures += 1;
        self.parts.pop();
        self.parts.extend(parts.into_iter().rev());
        Ok(())
    }
}

/// Divides the keys into several parts, in order; into one if no key lies between the two.
pub fn parts(from: &[u8], to: &[u8]) -> Vec<Keys> {
    divided(from, to, middle)
}

fn divided(from: &[u8], to: &[u8], divide: fn(&[u8], &[u8]) -> Option<Vec<u8>>) -> Vec<Keys> {
    let mut parts = vec![(from.to_vec(), to.to_vec())];
    for _ in 0..DIVISIONS {
        let halves = parts.into_iter().flat_map(|(from, to)| match divide(&from, &to) {
            Some(middle) => vec![(from, middle.clone()), (middle, to)],
            None => vec![(from, to)],
        });
        parts = halves.collect();
    }
    parts
}

/// A key about half way between the two, taken as fractions; `None` if there is none.
fn middle(from: &[u8], to: &[u8]) -> Option<Vec<u8>> {
    middle_of(from, to, 256)
}

/// The same in ASCII.
fn middle_text(from: &[u8], to: &[u8]) -> Option<Vec<u8>> {
    middle_of(from, to, 128)
}

/// Takes the bytes of the keys as digits of this base.
fn middle_of(from: &[u8], to: &[u8], base: u16) -> Option<Vec<u8>> {
    // With one digit more than the longer key, half of the sum is exact.
    let digits = from.len().max(to.len()) + 1;
    let digit = |of: &[u8], at: usize| of.get(at).map_or(0, |byte| u16::from(*byte).min(base - 1));
    let mut sum = vec![0; digits];
    let mut carry = 0;
    for at in (0..digits).rev() {
        carry += digit(from, at) + digit(to, at);
        sum[at] = carry % base;
        carry /= base;
    }
    let mut half = Vec::with_capacity(digits);
    for digit in sum {
        carry = carry * base + digit;
        half.push(u8::try_from(carry / 2).ok()?);
        carry %= 2;
    }
    let length = half.iter().rposition(|digit| *digit != 0).map_or(0, |last| last + 1);
    half.truncate(length);
    (from < half.as_slice() && half.as_slice() < to).then_some(half)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Reads all rows, where a read that meets more than `passes` tombstones fails. Returns the rows and the number of
    /// reads.
    fn read_all(
        mut narrow: Narrow,
        tombstones: &BTreeSet<Vec<u8>>,
        rows: &BTreeSet<Vec<u8>>,
        passes: usize,
    ) -> (Vec<Vec<u8>>, usize) {
        let (mut seen, mut reads) = (Vec::new(), 0);
        while let Some((from, to)) = narrow.next() {
            reads += 1;
            let range = from.to_vec()..to.to_vec();
            if tombstones.range(range.clone()).count() > passes {
                narrow.failed(Trouble::tombstones("")).unwrap();
            } else {
                seen.extend(rows.range(range).cloned());
                narrow.passed();
            }
        }
        (seen, reads)
    }

    proptest! {
        #[test]
        fn the_middle_lies_between_the_two_unless_no_key_does(
            a in proptest::collection::vec(any::<u8>(), 0..6),
            b in proptest::collection::vec(any::<u8>(), 0..6),
        ) {
            let (from, to) = if a < b { (a, b) } else { (b, a) };
            match middle(&from, &to) {
                Some(middle) => prop_assert!(from < middle && middle < to),
                // They differ only by zero bytes at the end.
                None => prop_assert!(to.get(from.len()..).is_none_or(|rest| rest.iter().all(|b| *b == 0))),
            }
        }

        #[test]
        fn the_middle_of_texts_is_a_text_between_them(a in "[a-z0-9]{0,6}", b in "[a-z0-9]{0,6}") {
            let (from, to) = if a < b { (a, b) } else { (b, a) };
            let middle = middle_text(from.as_bytes(), to.as_bytes());
            prop_assert_eq!(middle.is_some(), from != to);
            let middle = middle.map(|middle| String::from_utf8(middle).unwrap());
            prop_assert!(middle.is_none_or(|middle| middle.is_ascii() && from < middle && middle < to));
        }

        #[test]
        fn every_row_is_read_once_and_in_order(
            tombstones in proptest::collection::btree_set("[ab/]{0,9}", 0..60),
            rows in proptest::collection::btree_set("[ab/]{0,9}", 0..20),
            passes in 1_usize..10,
        ) {
            let bytes = |keys: &BTreeSet<String>| -> BTreeSet<Vec<u8>> {
                keys.iter().map(|key| [&[1], key.as_bytes()].concat()).collect()
            };
            let (tombstones, rows) = (bytes(&tombstones), bytes(&rows));
            let (seen, _) = read_all(Narrow::new(&[1], &[2]), &tombstones, &rows, passes);
            prop_assert_eq!(seen, rows.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_common_prefix_costs_few_reads() {
        let prefix = "invoices-of-2024-";
        let named = |n: usize| format!("{prefix}{n:06}").into_bytes();
        let rows = BTreeSet::from([named(149_999), named(150_000)]);
        let tombstones: BTreeSet<Vec<u8>> = (0..150_000).map(named).collect();
        let text = Narrow::of_text("", "\u{7f}");
        for narrow in [Narrow::new(b"", &[0xff]), text] {
            let (seen, reads) = read_all(narrow, &tombstones, &rows, 100_000);
            assert_eq!(seen, [named(149_999), named(150_000)]);
            assert!(reads < 40 * prefix.len(), "{reads}");
        }
    }

    #[test]
    fn other_trouble_is_returned() {
        let mut narrow = Narrow::new(&[1], &[2]);
        assert!(narrow.failed(Trouble::refused("")).is_err());
        let mut single = Narrow::new(b"a", b"a\0");
        assert!(single.failed(Trouble::tombstones("")).is_err(), "no key lies between");
    }
}
