//! A service on an engine, time that tests move, and short ways to say what tests say often.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use blob_model::{AccountName, ContainerName, DateTime, Guid, LeaseId, Metadata, Refusal};
use blob_service::{BlobService, Clock, ContainerRef, Error};
use store::{Engine, MemoryEngine};

pub fn account() -> AccountName {
    AccountName::parse("devstoreaccount1").unwrap()
}

pub fn container(name: &str) -> ContainerRef {
    ContainerRef::new(&account(), &ContainerName::parse(name).unwrap())
}

pub fn metadata(pairs: &[(&str, &str)]) -> Metadata {
    Metadata::new(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
        .unwrap()
}

pub fn lease(number: u8) -> LeaseId {
    LeaseId(Guid([number; 16]))
}

pub fn refused<T: std::fmt::Debug>(outcome: Result<T, Error>) -> Refusal {
    match outcome {
        Err(Error::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

/// Time that stands still unless a test moves it.
#[derive(Clone, Debug)]
pub struct VirtualTime(Arc<AtomicI64>);

impl VirtualTime {
    pub fn new() -> Self {
        let start = DateTime::parse("2026-11-17T10:00:00.1234567Z").unwrap();
        Self(Arc::new(AtomicI64::new(start.ticks())))
    }

    pub fn pass(&self, duration: Duration) {
        self.0.fetch_add(i64::try_from(duration.as_nanos() / 100).unwrap(), Ordering::SeqCst);
    }

    pub fn now(&self) -> DateTime {
        DateTime::from_ticks(self.0.load(Ordering::SeqCst)).unwrap()
    }

    pub fn clock(&self) -> Arc<Clock> {
        let time = self.clone();
        Arc::new(Clock::of(move || time.now()))
    }
}

pub struct Ground {
    pub service: BlobService,
    pub time: VirtualTime,
    pub engine: Arc<dyn Engine>,
}

impl Ground {
    pub fn new() -> Self {
        Self::on(Arc::new(MemoryEngine::new()), VirtualTime::new())
    }

    fn on(engine: Arc<dyn Engine>, time: VirtualTime) -> Self {
        let service = BlobService::new(engine.clone()).timed(time.clock());
        Self { service, time, engine }
    }

    /// As after a restart: nothing is in memory.
    pub fn again(&self) -> Self {
        Self::on(self.engine.clone(), self.time.clone())
    }
}

/// Whatever there is of the random numbers that tests need: the same for the same seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % bound as u64).unwrap()
    }

    pub fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// A number from the environment.
pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}
