//! A store that does one operation after the other, each at one moment of its interval, so its histories always have an
//! order. It shares no code with the judge, so that the two can be compared.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use histories::choice::{Chooser, Repertoire};
use histories::history::{Action, Found, Operation, Outcome, Refusal, Time, Verb, Version, WRITER, Write};
use histories::random::Random;

pub const PARTITION: &str = "p";

#[derive(Clone, Debug, Default)]
pub struct Store {
    pub rows: BTreeMap<String, (Version, BTreeMap<String, u32>)>,
    pub last_version: Version,
}

impl Store {
    pub fn execute(&mut self, action: &Action) -> Outcome {
        match action {
            Action::Get { row } => Outcome::Found(self.found(row).into_iter().collect()),
            Action::Query => Outcome::Found(self.rows.keys().filter_map(|row| self.found(row)).collect()),
            Action::Write(write) => self.write_all(std::slice::from_ref(write)),
            Action::Batch(writes) => self.write_all(writes),
        }
    }

    fn found(&self, row: &str) -> Option<Found> {
        let (version, values) = self.rows.get(row)?;
        Some(Found { row: row.to_owned(), version: *version, values: values.clone() })
    }

    fn write_all(&mut self, writes: &[Write]) -> Outcome {
        for (index, write) in writes.iter().enumerate() {
            if let Some(refusal) = self.refusal(write) {
                return Outcome::Refused { index, refusal };
            }
        }
        Outcome::Done(writes.iter().map(|write| self.write(write)).collect())
    }

    pub fn refusal(&self, write: &Write) -> Option<Refusal> {
        let row = self.rows.get(&write.row);
        match write.verb {
            Verb::Insert => row.map(|_| Refusal::EntityAlreadyExists),
            Verb::InsertOrReplace | Verb::InsertOrMerge => None,
            Verb::Replace | Verb::Merge | Verb::Delete => match row {
                None => Some(Refusal::ResourceNotFound),
                Some((version, _)) if write.if_match.is_some_and(|wanted| wanted != *version) => {
                    Some(Refusal::UpdateConditionNotSatisfied)
                }
                Some(_) => None,
            },
        }
    }

    /// Writes without checking the condition.
    pub fn write(&mut self, write: &Write) -> Option<Version> {
        let old = self.rows.remove(&write.row);
        if write.verb == Verb::Delete {
            return None;
        }
        let mut values = match (write.verb, old) {
            (Verb::Merge | Verb::InsertOrMerge, Some((_, values))) => values,
            _ => BTreeMap::new(),
        };
        values.insert(WRITER.to_owned(), write.number);
        values.extend(write.extras.iter().map(|name| (name.clone(), write.number)));
        self.last_version += 1;
        self.rows.insert(write.row.clone(), (self.last_version, values));
        Some(self.last_version)
    }
}

/// How answers get lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Losses {
    None,
    /// By a killed server: the operation was done before a known time or never.
    Bounded,
    /// Some operations are done long after their client has given up.
    Any,
}

pub struct Simulator {
    pub store: Store,
    pub history: Vec<Operation>,
    pub clock: Time,
    pub random: Random,
    pub rows: Vec<String>,
    pub numbers: Arc<AtomicU32>,
    choosers: Vec<Chooser>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Start { client: usize },
    Point { client: usize, operation: usize },
    End { client: usize, operation: usize },
}

impl Simulator {
    pub fn new(seed: u64, clients: usize, rows: usize) -> Self {
        let rows: Vec<String> = (0..rows).map(|row| format!("r{row}")).collect();
        let numbers = Arc::new(AtomicU32::new(0));
        let choosers = (0..clients).map(|client| {
            Chooser::new(
                Repertoire::Entities,
                Random::numbered(seed, client as u64),
                rows.clone(),
                numbers.clone(),
            )
        });
        let choosers = choosers.collect();
        let random = Random::new(!seed);
        let store = Store::default();
        Self { store, history: Vec::new(), clock: 0, random, rows, numbers, choosers }
    }

    /// Every client does this many operations. When it returns, nothing is in flight.
    pub fn run(&mut self, operations_each: usize, losses: Losses) {
        let mut left = vec![operations_each; self.choosers.len()];
        let mut pending: BTreeMap<usize, Outcome> = BTreeMap::new();
        let mut events = BinaryHeap::new();
        for client in 0..left.len() {
            events.push(Reverse((self.later(20), Event::Start { client })));
        }
        while let Some(Reverse((time, event))) = events.pop() {
            self.clock = self.clock.max(time);
            match event {
                Event::Start { client } if left[client] > 0 => {
                    left[client] -= 1;
                    let action = self.choosers[client].choose(PARTITION);
                    let reads = matches!(action, Action::Get { .. } | Action::Query);
                    let lost = losses != Losses::None && !reads && self.random.chance(12);
                    let point = self.later(60);
                    let mut end = point + self.random.below(60) as Time;
                    let mut outcome = Outcome::Found(Vec::new());
                    if lost {
                        let bounded = losses == Losses::Bounded || self.random.chance(50);
                        let until = bounded.then_some(end);
                        outcome = Outcome::Unknown { until };
                        if !bounded {
                            end = time + self.random.below((point - time) as usize + 100) as Time;
                        }
                    }
                    let operation = self.history.len();
                    if !lost || self.random.chance(60) {
                        events.push(Reverse((point, Event::Point { client, operation })));
                    }
                    events.push(Reverse((end, Event::End { client, operation })));
                    let partition = PARTITION.to_owned();
                    let client = client as u32;
                    self.history.push(Operation { client, partition, start: time, end, action, outcome });
                }
                Event::Start { .. } => {}
                Event::Point { operation, .. } => {
                    let outcome = self.store.execute(&self.history[operation].action);
                    pending.insert(operation, outcome);
                }
                Event::End { client, operation } => {
                    let recorded = &mut self.history[operation];
                    match recorded.outcome {
                        Outcome::Unknown { .. } => {}
                        // A point is before its end in the order of events, even at the same time.
                        _ => recorded.outcome = pending[&operation].clone(),
                    }
                    self.choosers[client].learn(PARTITION, &recorded.action, &recorded.outcome);
                    let start = self.later(10);
                    events.push(Reverse((start, Event::Start { client })));
                }
            }
        }
        self.clock += 1;
    }

    fn later(&mut self, most: usize) -> Time {
        self.clock + 1 + self.random.below(most) as Time
    }

    /// Adds one operation while nothing else is in flight, with any outcome, also one that the store would not give.
    pub fn alone(&mut self, action: Action, outcome: Outcome) {
        let (start, end) = (self.clock + 1, self.clock + 10);
        self.record(start, end, action, outcome);
    }

    pub fn record(&mut self, start: Time, end: Time, action: Action, outcome: Outcome) {
        let partition = PARTITION.to_owned();
        self.history.push(Operation { client: 99, partition, start, end, action, outcome });
        self.clock = self.clock.max(end + 1);
    }

    pub fn alone_and_correct(&mut self, action: Action) -> Outcome {
        let outcome = self.store.execute(&action);
        self.alone(action, outcome.clone());
        outcome
    }

    pub fn write(&mut self, verb: Verb, row: &str, if_match: Option<Version>) -> Write {
        let number = self.numbers.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        let extras = vec!["A".to_owned()];
        Write { verb, row: row.to_owned(), if_match, number, extras }
    }

    pub fn finish(mut self) -> Vec<Operation> {
        self.history.sort_by_key(|operation| operation.start);
        self.history
    }
}
