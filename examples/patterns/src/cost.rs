//! The cost of a query: its class, its requests, and the entities that are examined.

use std::fmt;
use std::time::Duration;

/// How much a query has to examine, the cheapest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Both keys are given.
    Point,
    /// A partition key and a range of row keys, or a whole partition if all of it is wanted.
    Range,
    /// A partition key; every entity of the partition is examined for the rest.
    PartitionScan,
    /// No partition key: the whole table is examined.
    TableScan,
    /// Blobs: no entity is examined.
    Blob,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Point => "point",
            Self::Range => "range in a partition",
            Self::PartitionScan => "partition scan",
            Self::TableScan => "table scan",
            Self::Blob => "blobs",
        })
    }
}

/// The cost of a read.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub requests: u32,
    pub returned: u64,
    /// How many entities were examined, if the server reports it.
    pub examined: Option<u64>,
    pub time: Duration,
}

impl Cost {
    pub fn sum(costs: impl IntoIterator<Item = Self>) -> Self {
        let none = Self { requests: 0, returned: 0, examined: Some(0), time: Duration::ZERO };
        costs.into_iter().fold(none, Self::and)
    }

    /// The cost of both, one after the other.
    pub fn and(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            returned: self.returned + other.returned,
            examined: self.examined.zip(other.examined).map(|(one, other)| one + other),
            time: self.time + other.time,
        }
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let examined = self.examined.map_or_else(|| "not told".to_owned(), |examined| examined.to_string());
        let Self { requests, returned, .. } = self;
        write!(f, "{requests:>8}  {returned:>8}  {examined:>8}  {}", Shown(self.time))
    }
}

/// A time with a fixed width.
#[derive(Debug)]
pub struct Shown(pub Duration);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>6.1} ms", self.0.as_secs_f64() * 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_with_an_unreported_number_is_unreported() {
        let check = |examined: &[Option<u64>], expected| {
            let cost = |examined| Cost { requests: 1, returned: 2, examined, time: Duration::from_millis(3) };
            let sum = Cost::sum(examined.iter().map(|examined| cost(*examined)));
            let count = examined.len() as u32;
            assert_eq!((sum.requests, sum.returned), (count, u64::from(2 * count)));
            assert_eq!(sum.time, Duration::from_millis(3) * count);
            assert_eq!(sum.examined, expected);
        };
        check(&[], Some(0));
        check(&[Some(4), Some(5)], Some(9));
        check(&[Some(4), None, Some(5)], None);
    }
}
