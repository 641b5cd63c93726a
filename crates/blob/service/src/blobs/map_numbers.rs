//! The numbers at which the states of a blob look at a map, and which of its rows they see.
//!
//! A blob may have any number of states, and a segment a row of each: so the numbers are in order, and none is looked at for
//! every row.

/// Each number once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MapNumbers<N = u32>(Vec<N>);

impl<N> Default for MapNumbers<N> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<N: Ord> MapNumbers<N> {
    /// States come in the order of their numbers, so that one is rarely put between others.
    pub fn insert(&mut self, number: N) {
        let at = self.0.partition_point(|other| *other < number);
        if self.0.get(at) != Some(&number) {
            self.0.insert(at, number);
        }
    }

    /// Which of a segment's rows, in order of their numbers, somebody sees who looks at the map with one of these numbers.
    /// `above` is the number of the row behind them, if there is one.
    pub fn see(&self, rows: &[N], above: Option<&N>) -> Vec<bool> {
        let behind = rows.iter().skip(1).map(Some).chain([above]);
        let is_seen = |(row, behind): (&N, Option<&N>)| {
            let first = self.0.partition_point(|number| number < row);
            self.0.get(first).is_some_and(|number| behind.is_none_or(|behind| number < behind))
        };
        rows.iter().zip(behind).map(is_seen).collect()
    }
}

impl<N: Ord> FromIterator<N> for MapNumbers<N> {
    fn from_iter<I: IntoIterator<Item = N>>(numbers: I) -> Self {
        let mut all = Self::default();
        numbers.into_iter().for_each(|number| all.insert(number));
        all
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::cmp::Ordering;
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::MapNumbers;

    fn seen(numbers: &[u32], rows: &[u32], above: Option<u32>) -> Vec<bool> {
        numbers.iter().copied().collect::<MapNumbers>().see(rows, above.as_ref())
    }

    #[test]
    fn a_row_is_needed_by_who_sees_it() {
        assert_eq!(seen(&[0, 3], &[0, 2, 4], None), [true, true, false]);
        assert_eq!(seen(&[5], &[0, 2, 4], None), [false, false, true]);
        assert_eq!(seen(&[5], &[0, 2, 4], Some(5)), [false, false, false]);
        assert_eq!(seen(&[5], &[0, 2, 4], Some(6)), [false, false, true]);
        assert_eq!(seen(&[], &[0], None), [false]);
        assert_eq!(seen(&[0], &[1], None), [false]);
        assert_eq!(seen(&[0], &[], Some(1)), []);
    }

    proptest! {
        #[test]
        fn whoever_looks_sees_the_last_row_that_is_not_above(
            numbers in prop::collection::vec(0..40_u32, 0..12),
            rows in prop::collection::btree_set(0..40_u32, 0..12),
            has_more in any::<bool>(),
        ) {
            let mut rows: Vec<u32> = rows.into_iter().collect();
            let last = |number: &u32| rows.iter().rposition(|row| row <= number);
            let seen_by_one: BTreeSet<usize> = numbers.iter().filter_map(last).collect();
            let mut expected: Vec<bool> = (0..rows.len()).map(|at| seen_by_one.contains(&at)).collect();
            let above = if has_more { rows.pop() } else { None };
            expected.truncate(rows.len());
            prop_assert_eq!(seen(&numbers, &rows, above), expected);
        }
    }

    thread_local! {
        static COMPARED: Cell<u64> = const { Cell::new(0) };
    }

    /// A number that counts how often it is compared.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Counted(u32);

    impl Ord for Counted {
        fn cmp(&self, other: &Self) -> Ordering {
            COMPARED.set(COMPARED.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    impl PartialOrd for Counted {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    #[test]
    fn a_row_is_compared_with_few_numbers() {
        const COUNT: u32 = 10_000;
        // None sees any of these rows.
        let numbers: MapNumbers<Counted> = (0..COUNT).map(|number| Counted(2 * number + 1)).collect();
        let rows: Vec<Counted> = (0..COUNT).map(|row| Counted(3 * COUNT + row)).collect();
        COMPARED.set(0);
        assert!(numbers.see(&rows, None).iter().all(|is_seen| !is_seen));
        let compared = COMPARED.get();
        assert!(compared <= 20 * u64::from(COUNT), "{compared} for {COUNT} rows");
    }
}
