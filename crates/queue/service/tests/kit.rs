//! A queue on an engine, time that tests move, and short ways to say what tests say often.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use queue_model::{AccountName, DateTime, MessageText, Metadata, QueueName, Refusal};
use queue_service::{Clock, Error, QueueRef, QueueService};
use store::{Engine, MemoryEngine};

pub fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub fn text(text: &str) -> MessageText {
    MessageText::new(text.to_owned()).unwrap()
}

pub fn account() -> AccountName {
    AccountName::parse("devstoreaccount1").unwrap()
}

pub fn queue(name: &str) -> QueueRef {
    QueueRef::new(&account(), &QueueName::parse(name).unwrap())
}

pub fn metadata(pairs: &[(&str, &str)]) -> Metadata {
    Metadata::new(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
        .unwrap()
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

    pub fn clock(&self) -> Arc<Clock> {
        let ticks = self.0.clone();
        Arc::new(Clock::of(move || DateTime::from_ticks(ticks.load(Ordering::SeqCst)).unwrap()))
    }
}

pub struct Ground {
    pub service: QueueService,
    pub clock: Arc<Clock>,
    pub time: VirtualTime,
    pub engine: Arc<dyn Engine>,
    pub queue: QueueRef,
}

impl Ground {
    /// With one queue, in memory.
    pub async fn new() -> Self {
        let ground = Self::on(Arc::new(MemoryEngine::new()), VirtualTime::new());
        ground.service.create(&ground.queue, &Metadata::default()).await.unwrap();
        ground
    }

    pub fn on(engine: Arc<dyn Engine>, time: VirtualTime) -> Self {
        let clock = time.clock();
        let service = QueueService::new(engine.clone()).timed(clock.clone());
        Self { service, clock, time, engine, queue: queue("orders") }
    }

    /// As one of several servers on one store.
    pub fn shared(self, is_shared: bool) -> Self {
        Self { service: self.service.shared(is_shared), ..self }
    }

    /// As after a restart: nothing is in memory.
    pub fn again(&self) -> Self {
        Self::on(self.engine.clone(), self.time.clone())
    }

    pub async fn put(&self, content: &str) -> queue_model::NewMessage {
        self.service.put(&self.queue, text(content), Duration::ZERO, Some(seconds(604_800))).await.unwrap()
    }

    pub async fn get(&self, count: u32, visibility: u64) -> Vec<queue_model::TakenMessage> {
        self.service.get(&self.queue, count, seconds(visibility)).await.unwrap()
    }

    /// The texts of what a Peek shows.
    pub async fn shown(&self) -> Vec<String> {
        let shown = self.service.peek(&self.queue, 32).await.unwrap();
        shown.into_iter().map(|message| message.text.into_string()).collect()
    }

    pub async fn count(&self) -> u64 {
        self.service.look(&self.queue).await.unwrap().1
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
