//! Spreads one partition over several, because the speed of writes to one partition is limited.

use sha2::{Digest as _, Sha256};

use super::composite;
use partita_client::{Error, Filter, Operand, Result};

/// A partition divided into buckets, which are partitions: instead of `orders`, there are `orders!000` to `orders!015`.
///
/// The id of an entity determines its bucket, so a point read finds it. To read all entities, query every bucket, at the
/// same time. The number of buckets can't change later: entities would be looked for in the wrong bucket.
///
/// ```
/// use partita_client_patterns::keys::Spread;
///
/// let orders = Spread::new("orders", 16)?;
/// assert_eq!(orders.of("order-4711"), "orders!003");
/// assert_eq!(orders.all().count(), 16);
/// # Ok::<(), partita_client::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    name: String,
    buckets: u16,
}

/// Bucket numbers have three digits.
const BUCKETS_MAX: u16 = 1000;

impl Spread {
    /// From 1 to 1,000 buckets of a partition of this name.
    pub fn new(name: impl Into<String>, buckets: u16) -> Result<Self> {
        if !(1..=BUCKETS_MAX).contains(&buckets) {
            return Err(Error::Invalid(format!(
                "a partition spread over {buckets}; it takes 1 to {BUCKETS_MAX}"
            )));
        }
        Ok(Self { name: name.into(), buckets })
    }

    /// The partition key of the entity with this id: bucket `h mod n`, with `h` the first eight bytes of the id's SHA-256.
    pub fn of(&self, id: &str) -> String {
        let digest = Sha256::digest(id.as_bytes());
        let hash = digest.iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte));
        self.bucket(hash % u64::from(self.buckets))
    }

    /// All its partition keys, in order.
    pub fn all(&self) -> impl Iterator<Item = String> {
        (0..u64::from(self.buckets)).map(|number| self.bucket(number))
    }

    /// All buckets as one range of partition keys. Concurrent queries, one for each partition of [`all`](Self::all), are
    /// faster.
    pub fn filter(&self, partition_key: Operand) -> Filter {
        composite::within(partition_key, [&self.name])
    }

    fn bucket(&self, number: u64) -> String {
        composite::join([self.name.as_str(), &format!("{number:03}")])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use partita_client::partition_key;

    #[test]
    fn an_id_has_always_the_same_bucket() {
        // The first eight bytes of the SHA-256 of "abc" are ba7816bf8f01cfea.
        let check = |buckets, expected| assert_eq!(Spread::new("p", buckets).unwrap().of("abc"), expected);
        check(1, "p!000");
        check(16, "p!010");
        check(1000, "p!074");
    }

    #[test]
    fn ids_are_spread_evenly_over_the_buckets() {
        let spread = Spread::new("p", 10).unwrap();
        let mut counts: BTreeMap<String, usize> = spread.all().map(|bucket| (bucket, 0)).collect();
        for id in 0..10_000 {
            *counts.get_mut(&spread.of(&id.to_string())).unwrap() += 1;
        }
        assert!(counts.values().all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn one_range_holds_all_buckets() {
        let spread = Spread::new("a/b", 3).unwrap();
        assert_eq!(
            spread.filter(partition_key()).to_string(),
            "(PartitionKey ge 'a.~b!') and (PartitionKey lt 'a.~b\"')"
        );
    }

    #[test]
    fn no_bucket_or_too_many_are_refused() {
        for buckets in [0, 1001] {
            assert!(Spread::new("p", buckets).is_err());
        }
    }
}
