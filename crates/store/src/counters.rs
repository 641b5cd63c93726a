//! What an engine counts: named numbers that a monitor shows without knowing the engine.

use std::sync::atomic::{AtomicU64, Ordering};

/// The numbers of an engine at one moment. An engine without any has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EngineCounters(pub Vec<EngineCounter>);

/// One number. Its name has lower-case words with underscores between them, the unit last: `wal_bytes`.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineCounter {
    pub name: &'static str,
    /// Says which part of `name` this is, if there are several: `("outcome", "applied")`.
    pub label: Option<(&'static str, &'static str)>,
    /// For people: what is counted.
    pub meaning: &'static str,
    pub value: EngineValue,
}

#[derive(Clone, Debug, PartialEq)]
pub enum EngineValue {
    /// Counts from the opening of the engine on, and only grows.
    Total(f64),
    /// The state of this moment.
    Now(f64),
    Spread(Spread),
}

impl EngineCounters {
    pub fn total(&mut self, name: &'static str, meaning: &'static str, value: u64) {
        self.push(name, None, meaning, EngineValue::Total(value as f64));
    }

    pub fn now(&mut self, name: &'static str, meaning: &'static str, value: u64) {
        self.push(name, None, meaning, EngineValue::Now(value as f64));
    }

    pub fn spread(&mut self, name: &'static str, meaning: &'static str, value: Spread) {
        self.push(name, None, meaning, EngineValue::Spread(value));
    }

    /// Several totals of one name, told apart by a label.
    pub fn totals<const N: usize>(
        &mut self,
        name: &'static str,
        meaning: &'static str,
        label: &'static str,
        values: [(&'static str, u64); N],
    ) {
        for (of, value) in values {
            self.push(name, Some((label, of)), meaning, EngineValue::Total(value as f64));
        }
    }

    fn push(
        &mut self,
        name: &'static str,
        label: Option<(&'static str, &'static str)>,
        meaning: &'static str,
        value: EngineValue,
    ) {
        self.0.push(EngineCounter { name, label, meaning, value });
    }

    /// Each number with its name. A spread gives the count and the sum of its values.
    pub fn numbers(&self) -> Vec<(String, f64)> {
        let mut numbers = Vec::new();
        for EngineCounter { name, label, value, .. } in &self.0 {
            let name = label.map_or_else(|| (*name).to_owned(), |(_, of)| format!("{name}_{of}"));
            match value {
                EngineValue::Total(number) | EngineValue::Now(number) => numbers.push((name, *number)),
                EngineValue::Spread(spread) => {
                    numbers.push((format!("{name}_count"), spread.count() as f64));
                    numbers.push((format!("{name}_sum"), spread.sum()));
                }
            }
        }
        numbers
    }

    /// The first number of this name.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.numbers().into_iter().find(|(known, _)| known == name).map(|(_, number)| number)
    }
}

/// How values are spread: how many are at most each bound, and their sum. The values are whole numbers, such as
/// nanoseconds; they are shown in a larger unit, such as seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    scale: &'static SpreadScale,
    /// One for each bound, of the values above the bound before it; and one for the values above the last bound.
    counts: Vec<u64>,
    sum: u64,
}

/// The bounds of a spread, from low to high, and how many of their units are one of the unit that is shown.
#[derive(Debug, PartialEq)]
pub struct SpreadScale {
    pub bounds: &'static [u64],
    pub per_shown: u64,
}

impl Spread {
    pub fn empty(scale: &'static SpreadScale) -> Self {
        Self { scale, counts: vec![0; scale.bounds.len() + 1], sum: 0 }
    }

    /// Each bound, in the unit that is shown, with the number of values up to it. The last bound is infinite.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let bounds = self.scale.bounds.iter().map(|bound| self.shown(*bound)).chain([f64::INFINITY]);
        let counts = self.counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        bounds.zip(counts)
    }

    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub fn sum(&self) -> f64 {
        self.shown(self.sum)
    }

    /// Adds the values of a spread of the same scale.
    pub fn add(&mut self, other: &Self) {
        debug_assert_eq!(self.scale, other.scale);
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, more)| *mine += more);
        self.sum = self.sum.wrapping_add(other.sum);
    }

    /// The values that came after an earlier moment.
    pub fn since(&self, earlier: &Self) -> Self {
        let counts = self.counts.iter().zip(&earlier.counts);
        Self {
            scale: self.scale,
            counts: counts.map(|(now, then)| now.saturating_sub(*then)).collect(),
            sum: self.sum.wrapping_sub(earlier.sum),
        }
    }

    /// The value that this part of all values does not exceed, as if the values between two bounds were evenly spread; the
    /// last bound for what lies above it. `None` without values.
    pub fn quantile(&self, part: f64) -> Option<f64> {
        let wanted = self.count() as f64 * part;
        let (mut below, mut low) = (0, 0.0);
        for (bound, up_to) in self.cumulative() {
            if up_to > 0 && up_to as f64 >= wanted {
                let inside = (wanted - below as f64) / ((up_to - below).max(1) as f64);
                return Some(if bound.is_finite() { low + (bound - low) * inside } else { low });
            }
            (below, low) = (up_to, bound);
        }
        None
    }

    fn shown(&self, value: u64) -> f64 {
        value as f64 / self.scale.per_shown as f64
    }
}

/// A spread that several threads add to. It synchronizes nothing.
#[derive(Debug)]
pub struct LiveSpread {
    scale: &'static SpreadScale,
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

impl LiveSpread {
    pub fn new(scale: &'static SpreadScale) -> Self {
        let counts = std::iter::repeat_with(AtomicU64::default).take(scale.bounds.len() + 1);
        Self { scale, counts: counts.collect(), sum: AtomicU64::new(0) }
    }

    pub fn note(&self, value: u64) {
        let place = self.scale.bounds.partition_point(|bound| *bound < value);
        self.counts[place].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    pub fn read(&self) -> Spread {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        Spread { scale: self.scale, counts, sum: self.sum.load(Ordering::Relaxed) }
    }
}

/// Times in nanoseconds, shown in seconds: from a look into memory to the longest request.
pub static SECONDS: SpreadScale = SpreadScale {
    bounds: &[
        100_000,
        250_000,
        500_000,
        1_000_000,
        2_500_000,
        5_000_000,
        10_000_000,
        25_000_000,
        50_000_000,
        100_000_000,
        250_000_000,
        500_000_000,
        1_000_000_000,
        2_500_000_000,
        5_000_000_000,
        10_000_000_000,
        30_000_000_000,
    ],
    per_shown: 1_000_000_000,
};

/// How many transactions are committed together.
pub static GROUP_SIZES: SpreadScale =
    SpreadScale { bounds: &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512], per_shown: 1 };

#[cfg(test)]
mod tests {
    use super::*;

    static TENS: SpreadScale = SpreadScale { bounds: &[10, 20, 40], per_shown: 10 };

    fn spread(values: &[u64]) -> Spread {
        let live = LiveSpread::new(&TENS);
        values.iter().for_each(|value| live.note(*value));
        live.read()
    }

    #[test]
    fn a_value_counts_for_the_first_bound_that_it_does_not_exceed() {
        let spread = spread(&[0, 10, 11, 20, 41]);
        let shown: Vec<_> = spread.cumulative().collect();
        assert_eq!(shown, [(1.0, 2), (2.0, 4), (4.0, 4), (f64::INFINITY, 5)]);
        assert_eq!((spread.count(), spread.sum()), (5, 8.2));
    }

    #[test]
    fn what_was_added_can_be_taken_away_again() {
        let (one, two) = (spread(&[5, 15]), spread(&[15, 100]));
        let mut both = one.clone();
        both.add(&two);
        assert_eq!(both.count(), 4);
        assert_eq!(both.since(&one), two);
        assert_eq!(both.since(&both), Spread::empty(&TENS));
    }

    #[test]
    fn quantiles_lie_between_the_bounds_around_them() {
        assert_eq!(Spread::empty(&TENS).quantile(0.5), None);
        let four = spread(&[11, 12, 13, 14]);
        assert_eq!((four.quantile(0.5), four.quantile(1.0)), (Some(1.5), Some(2.0)));
        assert_eq!(spread(&[1, 1, 1, 30]).quantile(1.0), Some(4.0));
        assert_eq!(spread(&[1000]).quantile(0.99), Some(4.0), "nothing is known above the last bound");
    }

    #[test]
    fn numbers_have_the_names_of_their_labels_and_of_their_parts() {
        let mut counters = EngineCounters::default();
        counters.total("commits", "", 3);
        counters.totals("settled", "", "outcome", [("applied", 1), ("unknown", 2)]);
        counters.spread("wait_seconds", "", spread(&[10, 20]));
        let numbers = counters.numbers();
        let shown: Vec<_> = numbers.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let expected = [
            ("commits", 3.0),
            ("settled_applied", 1.0),
            ("settled_unknown", 2.0),
            ("wait_seconds_count", 2.0),
            ("wait_seconds_sum", 3.0),
        ];
        assert_eq!(shown, expected);
        assert_eq!(counters.number("settled_unknown"), Some(2.0));
    }
}
