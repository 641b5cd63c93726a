//! A merge: the properties of a stored row, overlaid with those of a request.
//!
//! Its cost is bounded, because engines also merge where other writers wait: it compares names in the order of
//! n log n, where n is the number of properties of both, and it reads and writes each value once. The test below counts
//! the comparisons.

use std::cmp::Ordering;

use model::{EntityKey, ValueRef};

use crate::{Fault, RawRow, Reason, RowDraft};

/// The properties of both, in the order of their names; of a name in both, the newer value. They are counted and
/// measured before they are sorted.
pub fn merge(key: &EntityKey, old: RawRow<'_>, new: &RowDraft) -> Result<Result<RowDraft, Reason>, Fault> {
    let old = old.open()?.properties().map(named);
    let both = overlay(old, new.view().properties().map(named));
    if let Err(refusal) = key.check_properties(properties(&both)) {
        return Ok(Err(Reason::OverLimit(refusal)));
    }
    Ok(Ok(RowDraft::new(properties(&sorted(both)))))
}

/// As the limit checks and `RowDraft::new` take them.
fn properties<'a>(
    both: &[(Name<'a>, ValueRef<'a>)],
) -> impl ExactSizeIterator<Item = (&'a str, ValueRef<'a>)> + Clone {
    both.iter().map(|(name, value)| (name.0, *value))
}

/// The names in `new` with their values, after those that are only in `old`.
///
/// It is generic so that it can do nothing with a name but compare it, and nothing with a value but copy it.
fn overlay<N: Ord + Copy, V: Copy>(
    old: impl Iterator<Item = (N, V)>,
    new: impl Iterator<Item = (N, V)>,
) -> Vec<(N, V)> {
    let newer = sorted(new.collect());
    let is_newer = |name: &N| newer.binary_search_by(|(known, _)| known.cmp(name)).is_ok();
    let mut both: Vec<(N, V)> = old.filter(|(name, _)| !is_newer(name)).collect();
    both.extend_from_slice(&newer);
    both
}

fn sorted<N: Ord, V>(mut properties: Vec<(N, V)>) -> Vec<(N, V)> {
    properties.sort_by(|(a, _), (b, _)| a.cmp(b));
    properties
}

/// A property's name, ordered as the service orders names. In tests every comparison is counted.
#[derive(Clone, Copy, Debug)]
struct Name<'a>(&'a str);

fn named<'a>((name, value): (&'a str, ValueRef<'a>)) -> (Name<'a>, ValueRef<'a>) {
    (Name(name), value)
}

impl Ord for Name<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        #[cfg(test)]
        tests::COMPARISONS.with(|count| count.set(count.get() + 1));
        model::ordinal_cmp(self.0, other.0)
    }
}

impl PartialOrd for Name<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Name<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Name<'_> {}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use model::{DateTime, Refusal, Value, limits};

    use super::*;
    use crate::{Change, Condition, RowOperation, resolve};

    thread_local! {
        pub static COMPARISONS: Cell<usize> = const { Cell::new(0) };
    }

    /// Three steps of n log n: the new names are sorted, each old one is looked up among them, the result is sorted.
    fn comparisons_max(properties: usize) -> usize {
        3 * properties * properties.next_power_of_two().ilog2() as usize
    }

    /// Names as long as they may be, which differ only at their end. They are not in order, as an insert may leave
    /// them.
    fn names(range: std::ops::Range<usize>) -> Vec<String> {
        let count = range.len();
        let shuffled = (0..count).map(|i| range.start + i * 101 % count);
        shuffled.map(|n| format!("{}{n:03}", "N".repeat(limits::PROPERTY_NAME_UNITS_MAX - 3))).collect()
    }

    fn draft(names: &[String]) -> RowDraft {
        let value = Value::Boolean(true);
        RowDraft::new(names.iter().map(|name| (name.as_str(), value.as_ref())))
    }

    /// The number of comparisons, and how many properties the row has then or why it was refused.
    fn cost(old: &[String], new: &[String]) -> (usize, Result<usize, Reason>) {
        let stamp = DateTime::MIN_STORED;
        let current = draft(old).stamp(stamp);
        let key = EntityKey::parse("p", "r").unwrap();
        let change = Change::Merge(draft(new));
        let operation = RowOperation { row: key.row, condition: Condition::Exists, change };
        COMPARISONS.set(0);
        let row = resolve(&key.partition, operation, Some(RawRow::new(current.as_bytes())), stamp).unwrap();
        let properties = row.map(|row| row.unwrap().view().properties().count());
        (COMPARISONS.get(), properties)
    }

    #[test]
    fn a_merge_takes_n_log_n_comparisons_of_names_whether_it_is_legal_or_not() {
        let most = limits::CUSTOM_PROPERTIES_MAX;
        let too_many = || Err(Reason::OverLimit(Refusal::TooManyProperties));
        let cases = [
            ("the same names, as many as there may be", 0..most, 0..most, Ok(most)),
            ("other names, as many as there may be", 0..most / 2, most / 2..most, Ok(most)),
            ("one more name", 0..most - 1, most - 1..most, Ok(most)),
            ("all names but one", 0..1, 1..most, Ok(most)),
            ("one name too many", 0..most, most..most + 1, too_many()),
            ("other names, twice as many as there may be", 0..most, most..2 * most, too_many()),
            (
                "half of the names are the same, half are too many",
                0..most,
                most / 2..most / 2 + most,
                too_many(),
            ),
        ];
        for (what, old, new, expected) in cases {
            let (old, new) = (names(old), names(new));
            let (comparisons, found) = cost(&old, &new);
            println!("{what}: {} over {} properties, {comparisons} comparisons", new.len(), old.len());
            assert_eq!(found, expected, "{what}");
            let bound = comparisons_max(old.len() + new.len());
            assert!(comparisons <= bound, "{what}: {comparisons} comparisons, more than {bound}");
            // Fewer than this can't tell which names are in both: names were compared that are not counted.
            assert!(comparisons >= old.len(), "{what}: only {comparisons} comparisons were counted");
        }
    }

    #[test]
    fn a_refused_merge_sorts_nothing_but_the_new_properties() {
        let most = limits::CUSTOM_PROPERTIES_MAX;
        let (comparisons, _) = cost(&names(0..most), &names(most..most + 1));
        assert_eq!(comparisons, most, "each old name is compared with the one new name");
    }
}
