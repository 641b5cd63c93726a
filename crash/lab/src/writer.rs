//! One client under load: what it sends next, what was acknowledged, and what is unknown.
//!
//! It sends one operation after the other and owns its tables, so their contents can be computed exactly. All writers
//! write to the shared table.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use connection::Client;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use crate::faults::Rule;
use crate::journal::JournalWriter;
use crate::operation::{Change, Condition, Entry, Operation, Outcome, SHARED, Stamp, Trace, Verb};
use crate::request::{self, Failure};
use crate::world::World;

/// Every unknown operation doubles the number of possible worlds.
const UNKNOWN_MAX: usize = 5;
const SHARED_PARTITIONS: u32 = 2;
const SHARED_ROWS: u32 = 120;
const CHANGED_ROWS: u32 = 40;
const BATCHED_ROWS: u32 = 160;
const BATCH_MAX: u32 = 100;

/// What the writers of a round have in common.
#[derive(Debug, Default)]
pub struct Load {
    pub stop: AtomicBool,
    /// Drops of tables that were about to be sent, so that the server can be killed during one.
    pub drops: AtomicU64,
    /// What archivists have asked for, so that the server is killed after some of it however slow the machine is.
    pub filings: AtomicU64,
    pub journal: Option<JournalWriter>,
    /// The rule that makes calls fail.
    pub rule: Option<Arc<Rule>>,
    /// Operations that are sent after the first injected fault must not be acknowledged.
    pub fault_is_final: bool,
    /// Continue after an operation whose outcome is unknown.
    pub persist: bool,
}

#[derive(Clone, Debug)]
pub struct Writer {
    pub number: usize,
    /// As of the last operation before the first unknown one.
    pub world: World,
    pub entries: Vec<Entry>,
    /// The first entry that is not in `world`.
    pub settled: usize,
    /// The latest known timestamp. All new ones must be above it.
    pub latest: String,
    pub violation: Option<String>,
    sequence: u32,
    random: StdRng,
}

impl Writer {
    pub fn new(seed: u64, number: usize) -> Self {
        Self {
            number,
            world: World::default(),
            entries: Vec::new(),
            settled: 0,
            latest: String::new(),
            violation: None,
            sequence: 0,
            random: StdRng::seed_from_u64(seed ^ (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)),
        }
    }

    pub fn unknown(&self) -> usize {
        let unknown = |entry: &&Entry| matches!(entry.outcome, Outcome::Unknown(_));
        self.entries[self.settled..].iter().filter(unknown).count()
    }

    /// Runs until it is told to stop, no server answers, or there are too many possible worlds.
    pub async fn run(mut self, mut client: Client, load: Arc<Load>) -> Self {
        let most = if load.persist { UNKNOWN_MAX } else { 1 };
        while self.violation.is_none() && self.unknown() < most && !load.stop.load(Ordering::Relaxed) {
            let operation = self.next();
            if !self.take(&mut client, &load, operation).await {
                break;
            }
        }
        self
    }

    /// Sends one operation and remembers its outcome; false if no server is there.
    pub async fn take(&mut self, client: &mut Client, load: &Load, operation: Operation) -> bool {
        let number = self.entries.len();
        if matches!(operation, Operation::Drop { .. }) {
            load.drops.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(journal) = &load.journal {
            journal.sent(self.number, number, &operation);
        }
        let injected = load.rule.as_ref().map_or(0, |rule| rule.injected());
        let outcome = match request::send(client, self.number, number, &operation).await {
            // While the disk fails, a 5xx proves nothing.
            Ok(Outcome::TurnedAway(why)) => Outcome::Unknown(why),
            Ok(outcome) => outcome,
            Err(Failure::NotSent) => return false,
            Err(Failure::Wrong(what)) => {
                self.violation = Some(what);
                Outcome::Unknown("no answer".to_owned())
            }
        };
        if let Some(journal) = &load.journal {
            journal.answered(self.number, number, &outcome);
        }
        if load.fault_is_final && injected > 0 && matches!(outcome, Outcome::Done(_)) {
            self.violation = Some(format!("{operation:?} was sent after a failed sync and was acknowledged"));
        }
        self.remember(operation, outcome);
        true
    }

    /// Adds an operation and its outcome to the history. An outcome that can't be right is a violation.
    pub fn remember(&mut self, operation: Operation, outcome: Outcome) {
        let number = self.entries.len();
        let sequences = operation.changes().iter().map(|change| change.trace.sequence);
        self.sequence = sequences.fold(self.sequence, u32::max);
        if let Outcome::Done(stamps) = &outcome {
            self.check_growth(stamps);
        }
        if let Outcome::Refused(status) = &outcome
            && self.settled == number
        {
            let expected = self.world.clone_for(&operation).apply(number, &operation, &[]);
            if expected != Err(*status) {
                self.complain(format!("{operation:?} was refused with {status}, but {expected:?} was due"));
            }
        }
        self.entries.push(Entry { operation, outcome });
        self.advance();
    }

    /// Sets the outcome of an unknown operation after a restart has shown it.
    pub fn settle(&mut self, number: usize, outcome: Outcome) {
        if let Some(entry) = self.entries.get_mut(number) {
            entry.outcome = outcome;
            self.advance();
        }
    }

    /// Applies the operations that are certain to the world, up to the first that is not.
    fn advance(&mut self) {
        while let Some(Entry { operation, outcome }) = self.entries.get(self.settled) {
            match outcome {
                Outcome::Unknown(_) => return,
                Outcome::Refused(_) | Outcome::TurnedAway(_) | Outcome::NotTaken => {}
                Outcome::Done(stamps) => {
                    if let Err(status) = self.world.apply(self.settled, operation, stamps) {
                        let what = format!("{operation:?} was done, but had to be refused with {status}");
                        return self.complain(what);
                    }
                }
            }
            self.settled += 1;
        }
    }

    fn complain(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    fn check_growth(&mut self, stamps: &[Option<Stamp>]) {
        let before = self.latest.clone();
        for stamp in stamps.iter().flatten() {
            let order = stamp.order();
            if order <= before {
                self.complain(format!("timestamp {order} is not above {before}, which was given before"));
            }
            if order > self.latest {
                self.latest = order;
            }
        }
    }

    /// The tables that are this writer's alone.
    pub fn table(&self, kind: &str) -> String {
        format!("{kind}{}", self.number)
    }

    fn next(&mut self) -> Operation {
        let own = self.table("Own");
        if self.number == 0 && !self.world.has_shared_table() {
            return Operation::Create { table: SHARED.to_owned() };
        }
        if !self.world.0.contains_key(&own) {
            return Operation::Create { table: own };
        }
        match self.random.random_range(0..100) {
            0..22 => self.insert_next(own),
            22..34 => self.upsert(own, Verb::Replace),
            34..44 => self.upsert(own, Verb::Merge),
            44..52 => self.change_known(own, false),
            52..55 => self.change_known(own, true),
            55..57 => self.insert_again(own),
            57..63 => self.delete(own),
            63..78 => self.batch(own),
            78..80 => self.batch_with_a_failure(own),
            80..94 => self.shared(),
            _ => self.brief(),
        }
    }

    fn change(&mut self, verb: Verb, partition: &str, row: String, condition: Condition) -> Change {
        self.sequence += 1;
        let slot = self.random.random_range(0..3);
        // Mostly small. Some fill a block of the log, a few fill much of a write buffer.
        let length = match self.random.random_range(0..100) {
            0..80 => self.random.random_range(0..300),
            80..98 => self.random.random_range(300..4_000),
            _ => self.random.random_range(4_000..30_000),
        };
        let trace = Trace { slot, sequence: self.sequence, length };
        Change { verb, partition: partition.to_owned(), row, condition, trace }
    }

    fn one(table: String, change: Change) -> Operation {
        Operation::Write { table, changes: vec![change] }
    }

    fn insert_next(&mut self, table: String) -> Operation {
        let row = format!("{:08}", self.sequence);
        Self::one(table, self.change(Verb::Insert, "sequence", row, Condition::None))
    }

    fn upsert(&mut self, table: String, verb: Verb) -> Operation {
        let row = format!("{:03}", self.random.random_range(0..CHANGED_ROWS));
        Self::one(table, self.change(verb, "changed", row, Condition::None))
    }

    /// An existing row with its timestamp.
    fn some_row(&mut self, table: &str) -> Option<(String, String, Stamp)> {
        let rows = self.world.0.get(table).filter(|rows| !rows.is_empty())?;
        let ((partition, row), found) = rows.iter().nth(self.random.random_range(0..rows.len()))?;
        Some((partition.clone(), row.clone(), found.stamp.clone()?))
    }

    /// Changes a row by its ETag, or by a stale ETag, which must be refused.
    fn change_known(&mut self, table: String, stale: bool) -> Operation {
        let Some((partition, row, stamp)) = self.some_row(&table) else { return self.insert_next(table) };
        let verb = if self.random.random_bool(0.5) { Verb::Replace } else { Verb::Merge };
        let stamp = if stale { Stamp("2020-02-02T02:02:02.0000002Z".to_owned()) } else { stamp };
        Self::one(table, self.change(verb, &partition, row, Condition::Version(stamp)))
    }

    fn insert_again(&mut self, table: String) -> Operation {
        let Some((partition, row, _)) = self.some_row(&table) else { return self.insert_next(table) };
        Self::one(table, self.change(Verb::Insert, &partition, row, Condition::None))
    }

    fn delete(&mut self, table: String) -> Operation {
        let Some((partition, row, stamp)) = self.some_row(&table) else { return self.insert_next(table) };
        let exact = self.random.random_bool(0.5);
        let condition = if exact { Condition::Version(stamp) } else { Condition::Exists };
        Self::one(table, self.change(Verb::Delete, &partition, row, condition))
    }

    /// 2 to 100 rows of one partition: inserts or deletes, whichever the row allows, and upserts.
    fn batch(&mut self, table: String) -> Operation {
        let count = self.random.random_range(2..=BATCH_MAX);
        let first = self.random.random_range(0..=BATCHED_ROWS - count);
        let mut changes = Vec::with_capacity(count as usize);
        for row in first..first + count {
            let place = ("batches".to_owned(), format!("{row:03}"));
            let there = self.world.0.get(&table).is_some_and(|rows| rows.contains_key(&place));
            let (verb, condition) = match self.random.random_range(0..4) {
                0 if there => (Verb::Delete, Condition::Exists),
                0 => (Verb::Insert, Condition::None),
                1 | 2 => (Verb::Replace, Condition::None),
                _ => (Verb::Merge, Condition::None),
            };
            changes.push(self.change(verb, &place.0, place.1, condition));
        }
        Operation::Write { table, changes }
    }

    /// The last part must be refused, and so the whole batch.
    fn batch_with_a_failure(&mut self, table: String) -> Operation {
        let Operation::Write { table, mut changes } = self.batch(table) else { return self.shared() };
        let stale = Condition::Version(Stamp("2020-02-02T02:02:02.0000002Z".to_owned()));
        if let Some(last) = changes.last_mut() {
            (last.verb, last.condition) = (Verb::Replace, stale);
        }
        Operation::Write { table, changes }
    }

    fn shared(&mut self) -> Operation {
        let partition = format!("p{}", self.random.random_range(0..SHARED_PARTITIONS));
        let count = if self.random.random_bool(0.2) { 1 } else { self.random.random_range(2..=BATCH_MAX) };
        let first = self.random.random_range(0..=SHARED_ROWS - count);
        let change = |row| self.change(Verb::Replace, &partition, format!("{row:03}"), Condition::None);
        let changes = (first..first + count).map(change).collect();
        Operation::Write { table: SHARED.to_owned(), changes }
    }

    /// An operation on the table that is created and dropped again and again.
    fn brief(&mut self) -> Operation {
        let table = self.table("Brief");
        match self.world.0.get(&table).map(|rows| rows.len()) {
            None => Operation::Create { table },
            Some(0..100) => self.batch(table),
            Some(_) => Operation::Drop { table },
        }
    }

    /// The operations on one row, oldest first, with all creations and drops of its table.
    pub fn history(&self, table: &str, partition: &str, row: &str) -> String {
        let mut lines = Vec::new();
        for (number, entry) in
            self.entries.iter().enumerate().filter(|(_, entry)| entry.operation.table() == table)
        {
            let changes = entry.operation.changes();
            let at = changes.iter().position(|change| change.partition == partition && change.row == row);
            let outcome = match (&entry.outcome, at) {
                (Outcome::Done(stamps), Some(at)) => format!("done {:?}", stamps.get(at).cloned().flatten()),
                (outcome, _) => format!("{outcome:?}"),
            };
            match at {
                Some(at) => lines.push(format!(
                    "    writer {} operation {number}: part {at} of {}: {:?}: {outcome}",
                    self.number,
                    changes.len(),
                    changes[at]
                )),
                None if changes.is_empty() => {
                    lines.push(format!(
                        "    writer {} operation {number}: {:?}: {outcome}",
                        self.number, entry.operation
                    ));
                }
                None => {}
            }
        }
        lines.join("\n")
    }
}
