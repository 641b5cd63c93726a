//! The services' scalability targets as token buckets: one per account over all services, one per resource that has a target
//! of its own.
//!
//! A service says what an operation costs, which resource it is for, and what a refused client hears. The cost of a scan is
//! known only afterwards, so a bucket may go into debt; requests are refused until it has refilled.

use std::collections::HashMap;
use std::fmt::Write;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::{AccountName, ServiceKind};

/// Tokens each second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Targets {
    pub account: u32,
    /// A table's partition, a queue or a blob.
    pub resource: u32,
}

impl Targets {
    /// What the cloud promises.
    pub const AZURE: Self = Self { account: 20_000, resource: 2_000 };
}

/// Which target leaves nothing to spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Account,
    Resource,
}

/// A resource with a target of its own, as its service names it.
#[derive(Clone, Copy, Debug)]
pub struct ResourceName<'a> {
    pub service: ServiceKind,
    /// A table and a partition key; a queue; a container and a blob. Names that the service compares without case are in
    /// one case.
    pub parts: &'a [&'a str],
}

/// The buckets of all accounts. Services that share accounts share one of these.
#[derive(Debug)]
pub struct Throttle {
    accounts: Buckets<AccountName>,
    resources: Buckets<String>,
}

impl Throttle {
    pub fn new(targets: Targets) -> Self {
        Self { accounts: Buckets::new(targets.account), resources: Buckets::new(targets.resource) }
    }

    /// Whether there is anything left to spend, on the resource too if there is one.
    pub fn admit(
        &self,
        account: &AccountName,
        resource: Option<ResourceName<'_>>,
        now: Instant,
    ) -> Result<(), Target> {
        if self.accounts.is_empty(account, now) {
            return Err(Target::Account);
        }
        match resource {
            Some(resource) if self.resources.is_empty(&key(account, resource), now) => Err(Target::Resource),
            _ => Ok(()),
        }
    }

    pub fn spend(&self, account: &AccountName, resource: Option<ResourceName<'_>>, cost: u64, now: Instant) {
        self.accounts.spend(account.clone(), cost, now);
        if let Some(resource) = resource {
            self.resources.spend(key(account, resource), cost, now);
        }
    }
}

/// Each part comes after its length, so that no two resources have the same key.
fn key(account: &AccountName, resource: ResourceName<'_>) -> String {
    let mut key = format!("{account}/{}", resource.service);
    for part in resource.parts {
        // Writing to a string can't fail.
        let _ = write!(key, "/{}:{part}", part.len());
    }
    key
}

/// One bucket a key. A full one holds the tokens of a second.
#[derive(Debug)]
struct Buckets<K> {
    rate: f64,
    levels: Mutex<Levels<K>>,
}

#[derive(Debug)]
struct Levels<K> {
    by_key: HashMap<K, Level>,
    /// So many buckets make it time to forget those that are full.
    sweep_at: usize,
    #[cfg(test)]
    swept: usize,
}

#[derive(Clone, Copy, Debug)]
struct Level {
    tokens: f64,
    at: Instant,
}

/// From this many on, full buckets are forgotten: a missing bucket counts as full. No bucket takes longer to be full than a
/// second and `DEBT_TIME_MAX`.
const SWEPT_FROM: usize = 10_000;
/// No scan, however large, shuts a caller out for longer than this.
const DEBT_TIME_MAX: Duration = Duration::from_secs(5);

impl<K: Eq + Hash> Buckets<K> {
    fn new(rate: u32) -> Self {
        let levels = Levels {
            by_key: HashMap::new(),
            sweep_at: SWEPT_FROM,
            #[cfg(test)]
            swept: 0,
        };
        Self { rate: f64::from(rate.max(1)), levels: Mutex::new(levels) }
    }

    fn is_empty(&self, key: &K, now: Instant) -> bool {
        let levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        levels.by_key.get(key).is_some_and(|level| self.refilled(*level, now) <= 0.0)
    }

    fn spend(&self, key: K, cost: u64, now: Instant) {
        let mut levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        if levels.by_key.len() >= levels.sweep_at {
            self.sweep(&mut levels, now);
        }
        let present = levels.by_key.get(&key).map_or(self.rate, |level| self.refilled(*level, now));
        let floor = -self.rate * DEBT_TIME_MAX.as_secs_f64();
        levels.by_key.insert(key, Level { tokens: (present - cost as f64).max(floor), at: now });
    }

    /// The next sweep waits until there are twice as many as this one leaves. So a bucket is looked at twice on average, also
    /// if a client spends on ever new resources and none of them is full again.
    fn sweep(&self, levels: &mut Levels<K>, now: Instant) {
        #[cfg(test)]
        {
            levels.swept += levels.by_key.len();
        }
        levels.by_key.retain(|_, level| self.refilled(*level, now) < self.rate);
        levels.sweep_at = SWEPT_FROM.max(2 * levels.by_key.len());
    }

    fn refilled(&self, level: Level, now: Instant) -> f64 {
        let since = now.saturating_duration_since(level.at).as_secs_f64();
        (level.tokens + since * self.rate).min(self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(name: &str) -> AccountName {
        AccountName::parse(name).unwrap()
    }

    fn queue<'a>(parts: &'a [&'a str]) -> Option<ResourceName<'a>> {
        Some(ResourceName { service: ServiceKind::Queue, parts })
    }

    #[test]
    fn a_resource_in_debt_leaves_the_rest_of_its_account_alone() {
        let throttle = Throttle::new(Targets { account: 100, resource: 10 });
        let (mine, start) = (account("mine"), Instant::now());
        let admit =
            |name, seconds| throttle.admit(&mine, queue(&[name]), start + Duration::from_secs_f64(seconds));
        throttle.spend(&mine, queue(&["a"]), 10, start);
        assert_eq!(admit("a", 0.0), Err(Target::Resource));
        assert_eq!(admit("b", 0.0), Ok(()));
        assert_eq!(admit("a", 0.2), Ok(()), "two tokens have come back");
        throttle.spend(&mine, None, 95, start);
        assert_eq!(admit("b", 0.0), Err(Target::Account));
        assert_eq!(throttle.admit(&account("theirs"), queue(&["a"]), start), Ok(()), "accounts are apart");
        assert_eq!(admit("b", 1.0), Ok(()));
    }

    #[test]
    fn services_share_the_account_and_no_resource() {
        let throttle = Throttle::new(Targets { account: 100, resource: 10 });
        let (mine, start) = (account("mine"), Instant::now());
        let named = |service| Some(ResourceName { service, parts: &["a"] });
        throttle.spend(&mine, named(ServiceKind::Queue), 10, start);
        let admitted = ServiceKind::ALL.map(|service| throttle.admit(&mine, named(service), start));
        assert_eq!(admitted, [Ok(()), Err(Target::Resource), Ok(())], "blob, queue, table");
        throttle.spend(&mine, named(ServiceKind::Table), 90, start);
        let admitted = ServiceKind::ALL.map(|service| throttle.admit(&mine, named(service), start));
        assert_eq!(admitted, [Err(Target::Account); 3]);
    }

    #[test]
    fn no_two_resources_have_the_same_key() {
        let names: [&[&str]; 8] =
            [&[], &[""], &["", ""], &["a"], &["a", ""], &["", "a"], &["a/1:b"], &["a", "b"]];
        let keys: std::collections::HashSet<_> = names
            .into_iter()
            .map(|parts| key(&account("mine"), ResourceName { service: ServiceKind::Blob, parts }))
            .collect();
        assert_eq!(keys.len(), names.len(), "{keys:?}");
    }

    #[test]
    fn a_large_debt_is_paid_off_in_time() {
        let throttle = Throttle::new(Targets { account: 100, resource: 10 });
        let (mine, start) = (account("mine"), Instant::now());
        throttle.spend(&mine, None, 1_000_000, start);
        let admit = |seconds| throttle.admit(&mine, None, start + Duration::from_secs_f64(seconds));
        assert_eq!(admit(4.9), Err(Target::Account));
        assert_eq!(admit(5.1), Ok(()));
    }

    #[test]
    fn many_resources_at_once_do_not_make_each_request_look_at_all() {
        let buckets: Buckets<usize> = Buckets::new(1000);
        let start = Instant::now();
        for key in 0..8 * SWEPT_FROM {
            buckets.spend(key, 1, start);
        }
        let swept = buckets.levels.lock().unwrap().swept;
        assert!(swept <= 16 * SWEPT_FROM, "{swept} buckets were looked at");
    }

    #[test]
    fn buckets_that_are_full_again_are_forgotten() {
        let buckets: Buckets<usize> = Buckets::new(1000);
        let start = Instant::now();
        for key in 0..SWEPT_FROM {
            buckets.spend(key, 1, start);
        }
        buckets.spend(SWEPT_FROM, 1, start + Duration::from_secs(1));
        assert_eq!(buckets.levels.lock().unwrap().by_key.len(), 1);
    }
}
