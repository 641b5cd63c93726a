//! Chooses what a client of a queue does next, with receipts that it was given: mostly the last one of a message, sometimes
//! an older one.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::history::{Handle, QueueAction, QueueOutcome};
use crate::random::Random;

/// Handles that a client remembers of each kind.
const MEMORY_MAX: usize = 12;
/// How long a Get hides, in seconds.
const GET_VISIBILITIES: [u32; 3] = [1, 1, 2];
/// How long a Put or an Update hides.
const VISIBILITIES: [u32; 5] = [0, 0, 0, 1, 2];
/// Nothing is hidden for longer.
pub const VISIBILITY_MAX: u32 = 2;

#[derive(Debug)]
pub struct Chooser {
    random: Random,
    /// Shared by all clients of the same queues.
    numbers: Arc<AtomicU32>,
    memory: HashMap<String, Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    /// With the last receipt that this client knows.
    held: Vec<Handle>,
    /// With receipts that are certainly stale.
    stale: Vec<Handle>,
}

impl Chooser {
    pub fn new(random: Random, numbers: Arc<AtomicU32>) -> Self {
        Self { random, numbers, memory: HashMap::new() }
    }

    pub fn choose(&mut self, queue: &str) -> QueueAction {
        let visibility = self.random.pick(&GET_VISIBILITIES);
        match self.random.below(100) {
            0..28 => QueueAction::Put { number: self.number(), visibility: self.random.pick(&VISIBILITIES) },
            28..58 => QueueAction::Get { count: 1 + self.random.below(4) as u32, visibility },
            58..66 => QueueAction::Peek { count: 1 + self.random.below(8) as u32 },
            roll => match self.handle(queue) {
                None => QueueAction::Get { count: 1, visibility },
                Some(handle) if roll < 84 => QueueAction::Delete(handle),
                Some(handle) => {
                    let text = self.random.chance(40).then(|| self.number());
                    QueueAction::Update { handle, visibility: self.random.pick(&VISIBILITIES), text }
                }
            },
        }
    }

    /// A pause after an action, in milliseconds: messages become visible again only after a second.
    pub fn pause(&mut self) -> u64 {
        self.random.below(40) as u64
    }

    fn number(&self) -> u32 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn handle(&mut self, queue: &str) -> Option<Handle> {
        let memory = self.memory.entry(queue.to_owned()).or_default();
        let from = if self.random.chance(25) { &memory.stale } else { &memory.held };
        (!from.is_empty()).then(|| self.random.pick(from))
    }

    pub fn learn(&mut self, queue: &str, action: &QueueAction, outcome: &QueueOutcome) {
        let memory = self.memory.entry(queue.to_owned()).or_default();
        match (action, outcome) {
            (_, QueueOutcome::Stored(handle)) => memory.hold(handle.clone()),
            (_, QueueOutcome::Taken(taken)) => taken.iter().for_each(|taken| memory.hold(taken.handle())),
            (QueueAction::Update { handle, .. }, QueueOutcome::Updated(receipt)) => {
                memory.hold(Handle { receipt: receipt.clone(), ..handle.clone() });
            }
            (QueueAction::Update { handle, .. } | QueueAction::Delete(handle), QueueOutcome::NotFound)
            | (QueueAction::Delete(handle), QueueOutcome::Deleted) => memory.drop(handle),
            _ => {}
        }
    }
}

impl Memory {
    fn hold(&mut self, handle: Handle) {
        let (older, held) =
            std::mem::take(&mut self.held).into_iter().partition(|other| other.id == handle.id);
        self.held = held;
        self.stale.extend::<Vec<Handle>>(older);
        self.held.push(handle);
        self.forget();
    }

    fn drop(&mut self, handle: &Handle) {
        self.held.retain(|other| other != handle);
        if !self.stale.contains(handle) {
            self.stale.push(handle.clone());
        }
        self.forget();
    }

    fn forget(&mut self) {
        for handles in [&mut self.held, &mut self.stale] {
            let surplus = handles.len().saturating_sub(MEMORY_MAX);
            handles.drain(..surplus);
        }
    }
}
