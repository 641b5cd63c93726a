//! A cache of values from the cluster. A value is used for the length of a lease; requests that wait for it share one
//! read.

use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Above this many entries, outdated ones are removed.
const KEPT: usize = 10_000;

#[derive(Debug)]
pub struct Cached<K, V> {
    lease: Duration,
    entries: Mutex<HashMap<K, Arc<CacheSlot<V>>>>,
}

#[derive(Debug)]
struct CacheSlot<V> {
    last: Mutex<Option<CachedRead<V>>>,
    /// Held while reading; requests that wait for it share the answer.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Clone, Debug)]
struct CachedRead<V> {
    /// The time before the request was sent, so that the answer is at least as new.
    asked: Instant,
    value: Option<V>,
}

impl<K: Clone + Eq + Hash, V: Clone> Cached<K, V> {
    pub fn new(lease: Duration) -> Self {
        Self { lease, entries: Mutex::new(HashMap::new()) }
    }

    /// The cached value if it is within the lease; otherwise what `read` finds. A missing value is never cached,
    /// because another server may just have created it.
    pub async fn get<E, F>(&self, key: &K, read: impl FnOnce() -> F) -> Result<Option<V>, E>
    where
        F: Future<Output = Result<Option<V>, E>>,
    {
        let arrived = Instant::now();
        let entry = self.entry(key);
        let usable = |read: &CachedRead<V>, now: Instant| {
            read.asked >= arrived || (read.value.is_some() && now < read.asked + self.lease)
        };
        let known = || entry.last().filter(|read| usable(read, Instant::now()));
        if let Some(known) = known() {
            return Ok(known.value);
        }
        let _turn = entry.turn.lock().await;
        if let Some(known) = known() {
            return Ok(known.value);
        }
        let asked = Instant::now();
        let value = read().await?;
        entry.set(Some(CachedRead { asked, value: value.clone() }));
        Ok(value)
    }

    /// The next request reads it again.
    pub fn forget(&self, key: &K) {
        self.locked().remove(key);
    }

    fn entry(&self, key: &K) -> Arc<CacheSlot<V>> {
        let mut entries = self.locked();
        if let Some(entry) = entries.get(key) {
            return entry.clone();
        }
        if entries.len() >= KEPT {
            let now = Instant::now();
            entries.retain(|_, entry| {
                Arc::strong_count(entry) > 1 || entry.last().is_some_and(|read| now < read.asked + self.lease)
            });
        }
        let entry = Arc::new(CacheSlot { last: Mutex::new(None), turn: tokio::sync::Mutex::new(()) });
        entries.insert(key.clone(), entry.clone());
        entry
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, HashMap<K, Arc<CacheSlot<V>>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V: Clone> CacheSlot<V> {
    fn last(&self) -> Option<CachedRead<V>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, read: Option<CachedRead<V>>) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = read;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct Source(AtomicUsize);

    impl Source {
        async fn read(&self, found: bool) -> Result<Option<usize>, ()> {
            let reads = self.0.fetch_add(1, Ordering::SeqCst) + 1;
            tokio::task::yield_now().await;
            Ok(found.then_some(reads))
        }
    }

    #[tokio::test]
    async fn a_found_value_is_used_until_its_lease_ends_and_a_missing_one_is_read_again() {
        let source = Source(AtomicUsize::new(0));
        let cached = Cached::new(Duration::from_secs(600));
        assert_eq!(cached.get(&1, || source.read(false)).await, Ok(None));
        assert_eq!(cached.get(&1, || source.read(true)).await, Ok(Some(2)));
        assert_eq!(cached.get(&1, || source.read(true)).await, Ok(Some(2)));
        cached.forget(&1);
        assert_eq!(cached.get(&1, || source.read(true)).await, Ok(Some(3)));
        let brief = Cached::new(Duration::ZERO);
        assert_eq!(brief.get(&1, || source.read(true)).await, Ok(Some(4)));
        assert_eq!(brief.get(&1, || source.read(true)).await, Ok(Some(5)));
    }

    #[tokio::test]
    async fn waiting_callers_share_a_read_that_began_after_they_arrived() {
        let source = Arc::new(Source(AtomicUsize::new(0)));
        let cached = Arc::new(Cached::new(Duration::from_secs(600)));
        let tasks: Vec<_> = (0..50)
            .map(|_| {
                let (source, cached) = (source.clone(), cached.clone());
                tokio::spawn(async move { cached.get(&1, || source.read(false)).await })
            })
            .collect();
        for task in tasks {
            assert_eq!(task.await.unwrap(), Ok(None));
        }
        assert!(source.0.load(Ordering::SeqCst) <= 3, "{:?} reads", source.0);
    }
}
