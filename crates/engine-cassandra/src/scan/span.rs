//! Key ranges in terms of what the cluster can be asked for: partitions, and stretches of rows in them.

use model::{Cut, KeyRange};

use crate::keys::KeyBytes;

/// From one edge up to another, in (partition, row) order; without a second edge to the end of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    low: Edge,
    high: Option<Edge>,
}

/// A position before this partition and row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    partition: KeyBytes,
    row: KeyBytes,
}

/// A stretch of one partition's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub from: KeyBytes,
    /// The first row behind it; `None` if it has no end.
    pub to: Option<KeyBytes>,
}

/// Longer than any key. A range may contain a longer text; this much of it decides the order against all keys.
const KEY_BYTES_MAX: usize = 3 * model::limits::STORED_KEY_UNITS_MAX + 2;

impl Span {
    /// `None` if nothing can lie in the range.
    pub fn of(range: &KeyRange) -> Option<Self> {
        let low = Edge::of(&range.start)?;
        let high = Edge::of(&range.end);
        high.as_ref().is_none_or(|high| low < *high).then_some(Self { low, high })
    }

    /// The partition, if the whole span lies in one.
    pub fn partition(&self) -> Option<&KeyBytes> {
        let low = &self.low.partition;
        let high = self.high.as_ref()?;
        let within =
            high.partition == *low || (high.partition == low.successor() && high.row <= KeyBytes::lowest());
        within.then_some(low)
    }

    /// The first partition key that may lie in the span.
    pub fn first_partition(&self) -> &KeyBytes {
        &self.low.partition
    }

    /// The rows of a partition that lie in the span; `None` if this partition, and so every later one, lies behind the
    /// span. The partition must not lie before the span.
    pub fn rows_in(&self, partition: &KeyBytes) -> Option<Stretch> {
        let from = if *partition == self.low.partition { self.low.row.clone() } else { KeyBytes::lowest() };
        match &self.high {
            None => Some(Stretch { from, to: None }),
            Some(high) if *partition < high.partition => Some(Stretch { from, to: None }),
            Some(high) if *partition == high.partition && from < high.row => {
                Some(Stretch { from, to: Some(high.row.clone()) })
            }
            Some(_) => None,
        }
    }
}

impl Edge {
    /// `None` is above everything.
    fn of(cut: &Cut) -> Option<Self> {
        Some(match cut {
            Cut::Before(partition, row) => Self { partition: bytes(partition), row: bytes(row) },
            Cut::After(partition, row) => Self { partition: bytes(partition), row: bytes(row).successor() },
            Cut::AfterPartition(partition) => {
                Self { partition: bytes(partition).successor(), row: KeyBytes::lowest() }
            }
            Cut::End => return None,
        })
    }
}

fn bytes(text: &str) -> KeyBytes {
    let whole = KeyBytes::of(text);
    match whole.as_bytes().get(..KEY_BYTES_MAX) {
        Some(enough) => KeyBytes::stored(enough.to_vec()),
        None => whole,
    }
}

impl Stretch {
    pub fn is_all(&self) -> bool {
        self.from <= KeyBytes::lowest() && self.to.is_none()
    }

    /// The row, if the stretch can hold only one.
    pub fn point(&self) -> Option<&KeyBytes> {
        (self.to.as_ref() == Some(&self.from.successor())).then_some(&self.from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text() -> impl Strategy<Value = String> {
        prop_oneof![8 => "[ab𝄞\u{ffff}\u{1}/ ]{0,3}", 1 => Just("a".repeat(13_000)), 1 => Just("\u{ffff}".repeat(4096))]
    }

    fn cut() -> impl Strategy<Value = Cut> {
        prop_oneof![
            (text(), text()).prop_map(|(p, r)| Cut::before(&p, &r)),
            (text(), text()).prop_map(|(p, r)| Cut::after(&p, &r)),
            text().prop_map(|p| Cut::after_partition(&p)),
            Just(Cut::End),
        ]
    }

    fn key() -> impl Strategy<Value = String> {
        prop_oneof![8 => "[ab𝄞\u{ffff} ]{0,3}", 1 => Just("\u{ffff}".repeat(4096)), 1 => Just("a".repeat(4096))]
    }

    proptest! {
        #[test]
        fn a_span_holds_the_rows_of_its_range(start in cut(), end in cut(), p in key(), r in key()) {
            let range = KeyRange { start, end };
            let (partition, row) = (KeyBytes::of(&p), KeyBytes::of(&r));
            let found = Span::of(&range).is_some_and(|span| {
                let reached = span.first_partition() <= &partition;
                let stretch = if reached { span.rows_in(&partition) } else { None };
                let alone = span.partition().is_none_or(|only| *only == partition);
                alone && stretch.is_some_and(|s| s.from <= row && s.to.is_none_or(|to| row < to))
            });
            prop_assert_eq!(found, range.contains(&p, &r), "{:?} {:?}", (p, r), range);
        }

        #[test]
        fn a_range_within_one_partition_is_recognized(p in key(), a in key(), b in key()) {
            for (range, point) in [
                (KeyRange::partition(&p), false),
                (KeyRange::entity(&p, &a), true),
                (KeyRange { start: Cut::before(&p, &a), end: Cut::after_partition(&p) }, false),
                (KeyRange { start: Cut::before(&p, &a), end: Cut::after(&p, &b) }, a == b),
            ] {
                let Some(span) = Span::of(&range) else { continue };
                prop_assert_eq!(span.partition(), Some(&KeyBytes::of(&p)));
                let stretch = span.rows_in(&KeyBytes::of(&p)).unwrap();
                prop_assert_eq!(stretch.point().is_some(), point);
            }
            let wide = KeyRange { start: Cut::before(&p, &a), end: Cut::End };
            prop_assert!(Span::of(&wide).unwrap().partition().is_none());
        }
    }
}
