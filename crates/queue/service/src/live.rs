//! The queues in use, each with its head. All of it can be read again from the engine.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use queue_model::DateTime;
use store::TableRef;

use crate::QueueRef;
use crate::ahead_memory::AheadMemory;
use crate::head::Head;
use crate::message_row::RowKey;

/// More queues in use than this are kept only while they are being used.
const QUEUES_MAX: usize = 1024;

#[derive(Debug, Default)]
pub struct LiveQueues {
    pub ahead_memory: Arc<AheadMemory>,
    queues: Mutex<HashMap<QueueRef, Arc<LiveQueue>>>,
}

/// A queue in use.
#[derive(Debug)]
pub struct LiveQueue {
    pub queue: QueueRef,
    pub table: TableRef,
    head: Mutex<Head>,
    /// Held by whoever reads ahead.
    pub reading: tokio::sync::Mutex<()>,
    pub sweeping: tokio::sync::Mutex<()>,
    /// Held by the request that counts the messages.
    pub counting: tokio::sync::Mutex<()>,
    times: Mutex<Times>,
}

#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub used: Instant,
    pub head_stored: Instant,
    pub swept: Option<Instant>,
    /// How long the last sweep took.
    pub sweep_took: Duration,
    /// When somebody last asked for a count and had to wait for it, and how long that took.
    pub counted: Option<Instant>,
    pub count_took: Duration,
}

impl LiveQueues {
    pub fn find(&self, queue: &QueueRef) -> Option<Arc<LiveQueue>> {
        let found = self.locked().get(queue).cloned()?;
        found.times().used = Instant::now();
        Some(found)
    }

    /// The one that is there, or this new one.
    pub fn insert(&self, live: LiveQueue) -> Arc<LiveQueue> {
        let mut queues = self.locked();
        if queues.len() >= QUEUES_MAX {
            forget_unused(&mut queues);
        }
        queues.entry(live.queue.clone()).or_insert_with(|| Arc::new(live)).clone()
    }

    pub fn forget(&self, queue: &QueueRef) {
        self.locked().remove(queue);
    }

    pub fn all(&self) -> Vec<Arc<LiveQueue>> {
        self.locked().values().cloned().collect()
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<QueueRef, Arc<LiveQueue>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes room for an eighth of them: those that were not used for the longest time and are not in use now.
fn forget_unused(queues: &mut HashMap<QueueRef, Arc<LiveQueue>>) {
    let mut unused: Vec<(Instant, QueueRef)> = queues
        .iter()
        .filter(|(_, live)| Arc::strong_count(live) == 1)
        .map(|(queue, live)| (live.times().used, queue.clone()))
        .collect();
    unused.sort_by_key(|(used, _)| *used);
    for (_, queue) in unused.into_iter().take(QUEUES_MAX / 8) {
        queues.remove(&queue);
    }
}

impl LiveQueue {
    pub fn new(queue: QueueRef, table: TableRef, head: Head) -> Self {
        let now = Instant::now();
        let times = Times {
            used: now,
            head_stored: now,
            swept: None,
            sweep_took: Duration::ZERO,
            counted: None,
            count_took: Duration::ZERO,
        };
        Self {
            queue,
            table,
            head: Mutex::new(head),
            reading: tokio::sync::Mutex::default(),
            sweeping: tokio::sync::Mutex::default(),
            counting: tokio::sync::Mutex::default(),
            times: Mutex::new(times),
        }
    }

    /// No code under the lock leaves it half changed.
    pub fn head(&self) -> MutexGuard<'_, Head> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn times(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A change of a queue's rows that is under way. If nobody says how it ended, because the request was given up or the
/// storage failed, the queue is in doubt.
#[derive(Debug)]
pub struct Writing<'a> {
    live: &'a LiveQueue,
    removed: Vec<RowKey>,
    inserted: Vec<RowKey>,
    dues: Vec<DateTime>,
    has_ended: bool,
}

impl<'a> Writing<'a> {
    pub fn begin(live: &'a LiveQueue, removed: Vec<RowKey>, inserted: Vec<RowKey>) -> Self {
        let dues: Vec<DateTime> = inserted.iter().map(|key| key.due).collect();
        live.head().begin_writing(&dues);
        Self { live, removed, inserted, dues, has_ended: false }
    }

    /// It is done. `expires`: when the first message expires that was not there before.
    pub fn done(mut self, expires: Option<DateTime>) {
        self.has_ended = true;
        let mut head = self.live.head();
        head.end_writing(&self.dues);
        head.changed(&self.removed, &self.inserted, expires);
    }

    /// Nothing was changed, and nothing will be.
    pub fn refused(mut self) {
        self.has_ended = true;
        self.live.head().end_writing(&self.dues);
    }

    /// How it ended, by the answer of the engine.
    pub fn end<T>(self, answer: &Result<T, store::Error>, expires: Option<DateTime>) {
        match answer {
            Ok(_) => self.done(expires),
            Err(store::Error::OutcomeUnknown | store::Error::Fault(_)) => drop(self),
            Err(_) => self.refused(),
        }
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            let mut head = self.live.head();
            head.end_writing(&self.dues);
            head.doubt();
        }
    }
}

/// Messages that a Get has chosen. Whatever becomes of the Get, they are free again afterwards.
#[derive(Debug)]
pub struct Taken<'a> {
    pub live: &'a LiveQueue,
    pub keys: Vec<RowKey>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if !self.keys.is_empty() {
            self.live.head().release(&self.keys);
        }
    }
}

impl<'a> Taken<'a> {
    pub fn none(live: &'a LiveQueue) -> Self {
        Self { live, keys: Vec::new() }
    }
}
