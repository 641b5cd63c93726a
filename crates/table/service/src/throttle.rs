//! The service's scalability targets as token buckets: one per account, one per partition.
//!
//! Every entity written, deleted or scanned costs one token, or one for each KiB of it. What a scan will cost is
//! known only afterwards, so a bucket may go into debt: who finds it empty is refused until it has refilled.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use model::{AccountName, Refusal};
use store::TableRef;

/// Entities of 1 KiB each second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Targets {
    pub account: u32,
    pub partition: u32,
}

impl Targets {
    /// What the cloud promises.
    pub const AZURE: Self = Self { account: 20_000, partition: 2_000 };
}

#[derive(Debug)]
pub struct Throttle {
    accounts: Buckets<AccountName>,
    partitions: Buckets<(String, String, String)>,
}

impl Throttle {
    pub fn new(targets: Targets) -> Self {
        Self { accounts: Buckets::new(targets.account), partitions: Buckets::new(targets.partition) }
    }

    /// Whether there is anything left to spend, on the partition too if it is known.
    pub fn admit(&self, table: &TableRef, partition: Option<&str>, now: Instant) -> Result<(), Refusal> {
        if self.accounts.is_empty(&table.account, now) {
            return Err(Refusal::AccountBusy);
        }
        match partition {
            Some(partition) if self.partitions.is_empty(&place(table, partition), now) => Err(Refusal::Busy),
            _ => Ok(()),
        }
    }

    pub fn spend(&self, table: &TableRef, partition: Option<&str>, cost: u64, now: Instant) {
        self.accounts.spend(table.account.clone(), cost, now);
        if let Some(partition) = partition {
            self.partitions.spend(place(table, partition), cost, now);
        }
    }
}

/// Entities of this many bytes cost this many tokens.
pub fn cost_of(bytes: usize) -> u64 {
    bytes.div_ceil(1024).max(1) as u64
}

fn place(table: &TableRef, partition: &str) -> (String, String, String) {
    (table.account.as_str().to_owned(), table.name.folded().to_owned(), partition.to_owned())
}

/// One bucket a key, each holding a second's worth when full.
#[derive(Debug)]
struct Buckets<K> {
    rate: f64,
    levels: Mutex<HashMap<K, Level>>,
}

#[derive(Clone, Copy, Debug)]
struct Level {
    tokens: f64,
    at: Instant,
}

/// Above this many, those that have refilled are forgotten: a full bucket and none are the same.
const LEVELS_MAX: usize = 10_000;
/// No scan, however large, shuts a caller out for longer than this.
const DEBT_TIME_MAX: Duration = Duration::from_secs(5);

impl<K: Eq + Hash> Buckets<K> {
    fn new(rate: u32) -> Self {
        Self { rate: f64::from(rate.max(1)), levels: Mutex::new(HashMap::new()) }
    }

    fn is_empty(&self, key: &K, now: Instant) -> bool {
        let levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        levels.get(key).is_some_and(|level| self.refilled(*level, now) <= 0.0)
    }

    fn spend(&self, key: K, cost: u64, now: Instant) {
        let mut levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        if levels.len() >= LEVELS_MAX {
            levels.retain(|_, level| self.refilled(*level, now) < self.rate);
        }
        let present = levels.get(&key).map_or(self.rate, |level| self.refilled(*level, now));
        let floor = -self.rate * DEBT_TIME_MAX.as_secs_f64();
        levels.insert(key, Level { tokens: (present - cost as f64).max(floor), at: now });
    }

    fn refilled(&self, level: Level, now: Instant) -> f64 {
        let since = now.saturating_duration_since(level.at).as_secs_f64();
        (level.tokens + since * self.rate).min(self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::TableName;

    fn table(account: &str) -> TableRef {
        TableRef::table(AccountName::parse(account).unwrap(), TableName::parse("Books").unwrap())
    }

    #[test]
    fn a_partition_has_a_tenth_of_its_accounts_share() {
        let throttle = Throttle::new(Targets { account: 100, partition: 10 });
        let (mine, start) = (table("mine"), Instant::now());
        let admit = |partition, seconds| {
            throttle.admit(&mine, Some(partition), start + Duration::from_secs_f64(seconds))
        };
        throttle.spend(&mine, Some("a"), 10, start);
        assert_eq!(admit("a", 0.0), Err(Refusal::Busy));
        assert_eq!(admit("b", 0.0), Ok(()));
        assert_eq!(admit("a", 0.2), Ok(()), "two tokens have come back");
        throttle.spend(&mine, None, 95, start);
        assert_eq!(admit("b", 0.0), Err(Refusal::AccountBusy));
        assert_eq!(throttle.admit(&table("theirs"), Some("a"), start), Ok(()), "accounts are apart");
        assert_eq!(admit("b", 1.0), Ok(()));
    }

    #[test]
    fn a_large_scan_is_paid_off_in_time() {
        let throttle = Throttle::new(Targets { account: 100, partition: 10 });
        let (mine, start) = (table("mine"), Instant::now());
        throttle.spend(&mine, None, 1_000_000, start);
        let admit = |seconds| throttle.admit(&mine, None, start + Duration::from_secs_f64(seconds));
        assert_eq!(admit(4.9), Err(Refusal::AccountBusy));
        assert_eq!(admit(5.1), Ok(()));
    }

    #[test]
    fn buckets_that_are_full_again_are_forgotten() {
        let buckets: Buckets<usize> = Buckets::new(1000);
        let start = Instant::now();
        for key in 0..LEVELS_MAX {
            buckets.spend(key, 1, start);
        }
        buckets.spend(LEVELS_MAX, 1, start + Duration::from_secs(1));
        assert_eq!(buckets.levels.lock().unwrap().len(), 1);
    }

    #[test]
    fn size_is_counted_in_kibibytes() {
        assert_eq!([0, 1, 1024, 1025, 65_536].map(cost_of), [1, 1, 1, 2, 64]);
    }
}
