//! One client of a store with several front ends. It sends requests to any of them, keeps a ledger, and checks every
//! answer against it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use connection::{Client, Target};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use crate::gaps::{Kind, Times};
use crate::ledger::Ledger;
use crate::operation::{Change, Condition, Operation, Outcome, Place, Stamp, Trace, Verb};
use crate::request::{self, Failure, ReadFailure};

const PARTITIONS: u32 = 40;
const SHARED_PARTITIONS: u32 = 2;
const ROWS: u32 = 40;
const BATCHED_ROWS: u32 = 160;
const BATCH_MAX: u32 = 100;
/// A brief table is dropped when it has this many rows.
const BRIEF_ROWS: usize = 100;

/// An endpoint that does not answer is not used for this time.
const REST: Duration = Duration::from_secs(1);
/// The pause after an answer that the service is too busy.
const TURNED_AWAY_PAUSE: Duration = Duration::from_millis(50);

/// What the clients of a run have in common.
#[derive(Debug)]
pub struct Office {
    pub targets: Vec<Arc<Target>>,
    /// The prefix of all tables of the run.
    pub prefix: String,
    /// How long a client waits for an answer before it closes its connection; without it, as long as `request` does.
    pub give_up: Option<Duration>,
    /// The percentage of writes to brief tables, which are created and dropped again and again.
    pub brief_percent: u32,
    pub stop: AtomicBool,
    pub times: Mutex<Times>,
}

impl Office {
    pub fn shared_table(&self) -> String {
        format!("{}Shared", self.prefix)
    }

    fn answered(&self, endpoint: usize, kind: Kind) {
        self.times.lock().unwrap_or_else(PoisonError::into_inner).answered(endpoint, kind);
    }
}

/// How often each outcome occurred.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub struct Counts {
    pub acknowledged: u64,
    pub refused: u64,
    pub turned_away: u64,
    pub unknown: u64,
    pub not_sent: u64,
    pub reads: u64,
    pub reads_unanswered: u64,
    pub rows_read: u64,
}

#[derive(Debug)]
pub struct Clerk {
    pub ledger: Ledger,
    pub counts: Counts,
    pub violation: Option<String>,
    /// The kinds of unknown outcomes, and how often each occurred.
    pub unknown: std::collections::BTreeMap<String, u64>,
    office: Arc<Office>,
    clients: Vec<Client>,
    resting_until: Vec<Instant>,
    random: StdRng,
    sequence: u32,
}

/// A read, and the rows that it covers.
enum Look {
    Row(String, Place),
    Partition(String, String),
    Table(String),
}

impl Clerk {
    pub fn new(office: Arc<Office>, seed: u64, number: usize) -> Self {
        let now = Instant::now();
        let mut ledger = Ledger::new(number);
        ledger.share_table(&office.shared_table());
        Self {
            ledger,
            counts: Counts::default(),
            violation: None,
            unknown: std::collections::BTreeMap::new(),
            clients: office.targets.iter().cloned().map(Client::new).collect(),
            resting_until: vec![now; office.targets.len()],
            office,
            random: StdRng::seed_from_u64(seed ^ (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)),
            sequence: 0,
        }
    }

    /// Runs until it is told to stop, or gets an answer that can't be right.
    pub async fn run(mut self) -> Self {
        while self.violation.is_none() && !self.office.stop.load(Ordering::Relaxed) {
            let Some(endpoint) = self.endpoint() else {
                tokio::time::sleep(TURNED_AWAY_PAUSE).await;
                continue;
            };
            let outcome = match self.random.random_range(0..100) {
                0..82 => self.write(endpoint).await,
                _ => self.read(endpoint).await,
            };
            self.violation = outcome.err().map(|what| format!("writer {}: {what}", self.ledger.writer));
        }
        self
    }

    /// An endpoint that is in use.
    fn endpoint(&mut self) -> Option<usize> {
        let now = Instant::now();
        let awake: Vec<usize> =
            (0..self.clients.len()).filter(|endpoint| self.resting_until[*endpoint] <= now).collect();
        (!awake.is_empty()).then(|| awake[self.random.random_range(0..awake.len())])
    }

    fn rest(&mut self, endpoint: usize) {
        self.resting_until[endpoint] = Instant::now() + REST;
    }

    async fn write(&mut self, endpoint: usize) -> Result<(), String> {
        let operation = self.next();
        let (writer, number) = (self.ledger.writer, self.ledger.next_number());
        let patience = self.office.give_up;
        let sending = request::send(&mut self.clients[endpoint], writer, number, &operation);
        let sent = match within(patience, sending).await {
            Some(sent) => sent,
            None => {
                self.clients[endpoint].disconnect();
                self.rest(endpoint);
                Ok(Outcome::Unknown("given up".to_owned()))
            }
        };
        let outcome = match sent {
            Ok(outcome) => outcome,
            Err(Failure::NotSent) => {
                self.counts.not_sent += 1;
                self.rest(endpoint);
                return Ok(());
            }
            Err(Failure::Wrong(what)) => return Err(what),
        };
        match &outcome {
            Outcome::Done(_) => {
                self.counts.acknowledged += 1;
                self.office.answered(endpoint, Kind::Write);
            }
            Outcome::Refused(_) => self.counts.refused += 1,
            Outcome::TurnedAway(_) | Outcome::NotTaken => {
                self.counts.turned_away += 1;
                tokio::time::sleep(TURNED_AWAY_PAUSE).await;
            }
            Outcome::Unknown(why) => {
                self.counts.unknown += 1;
                *self.unknown.entry(kind_of(why)).or_default() += 1;
            }
        }
        self.ledger.answered(operation, &outcome)
    }

    async fn read(&mut self, endpoint: usize) -> Result<(), String> {
        let Some(look) = self.look() else { return Ok(()) };
        let seen = match within(self.office.give_up, self.see(endpoint, &look)).await {
            Some(seen) => seen,
            None => {
                self.clients[endpoint].disconnect();
                Err(ReadFailure::Unanswered("given up".to_owned()))
            }
        };
        match seen {
            Ok((rows, verdict)) => {
                self.counts.reads += 1;
                self.counts.rows_read += rows;
                self.office.answered(endpoint, Kind::Read);
                verdict.map_err(|what| format!("through endpoint {endpoint}: {what}"))
            }
            Err(ReadFailure::Unanswered(_)) => {
                self.counts.reads_unanswered += 1;
                self.rest(endpoint);
                Ok(())
            }
            Err(ReadFailure::Wrong(what)) => Err(format!("through endpoint {endpoint}: {what}")),
        }
    }

    /// The number of rows that were read, and whether they are right.
    async fn see(&mut self, endpoint: usize, look: &Look) -> Result<(u64, Result<(), String>), ReadFailure> {
        let (client, shared) = (&mut self.clients[endpoint], self.office.shared_table());
        match look {
            Look::Row(table, place) => match request::get(client, table, place).await {
                Ok(entity) => {
                    Ok((u64::from(entity.is_some()), self.ledger.check_row(table, place, entity.as_ref())))
                }
                Err(failure) => Err(failure),
            },
            Look::Partition(table, partition) => {
                let rows = request::scan_partition(client, table, partition).await;
                rows.map(|rows| {
                    (rows.len() as u64, self.ledger.check(table, Some(partition), &rows, *table == shared))
                })
            }
            Look::Table(table) => {
                let rows = request::scan(client, table).await;
                rows.map(|rows| (rows.len() as u64, self.ledger.check(table, None, &rows, *table == shared)))
            }
        }
    }

    fn look(&mut self) -> Option<Look> {
        let (own, shared) = (self.own_table(), self.office.shared_table());
        let table = if self.random.random_bool(0.7) { own } else { shared };
        let (place, _) = self.some_row(&table)?;
        Some(match self.random.random_range(0..100) {
            0..60 => Look::Row(table, place),
            60..90 => Look::Partition(table, place.0),
            _ => Look::Table(table),
        })
    }

    /// A number for names that changes with every doubt, because rows in doubt are never written again.
    fn fresh(&self) -> usize {
        self.ledger.doubts()
    }

    /// The prefixes of the tables that belong to this client alone.
    pub fn tables(&self) -> [String; 2] {
        ["Own", "Brief"].map(|kind| format!("{}{kind}{}x", self.office.prefix, self.ledger.writer))
    }

    fn own_table(&self) -> String {
        let [own, _] = self.tables();
        self.ledger.table_named(&own).unwrap_or_else(|| format!("{own}{}", self.fresh()))
    }

    fn brief_table(&self) -> String {
        let [_, brief] = self.tables();
        self.ledger.table_named(&brief).unwrap_or_else(|| format!("{brief}{}", self.fresh()))
    }

    fn row(&self, name: impl std::fmt::Display) -> String {
        format!("w{}-{name}", self.ledger.writer)
    }

    fn next(&mut self) -> Operation {
        let own = self.own_table();
        if self.ledger.table(&own).is_none() {
            return Operation::Create { table: own };
        }
        if self.random.random_ratio(self.office.brief_percent, 100) {
            return self.brief();
        }
        match self.random.random_range(0..95) {
            0..20 => self.insert_next(own),
            20..30 => self.insert_alone(own),
            30..40 => self.upsert(own),
            40..52 => self.change_known(own),
            52..55 => self.insert_again(own),
            55..68 => self.delete(own),
            68..80 => self.batch(own, "batches"),
            80..83 => self.batch_with_a_failure(own),
            _ => self.shared(),
        }
    }

    fn change(&mut self, verb: Verb, place: Place, condition: Condition) -> Change {
        self.sequence += 1;
        let slot = self.random.random_range(0..3);
        let length = match self.random.random_range(0..100) {
            0..85 => self.random.random_range(0..300),
            85..99 => self.random.random_range(300..4_000),
            _ => self.random.random_range(4_000..30_000),
        };
        let trace = Trace { slot, sequence: self.sequence, length };
        Change { verb, partition: place.0, row: place.1, condition, trace }
    }

    fn one(&mut self, table: String, verb: Verb, place: Place, condition: Condition) -> Operation {
        let change = self.change(verb, place, condition);
        Operation::Write { table, changes: vec![change] }
    }

    fn insert_next(&mut self, table: String) -> Operation {
        let partition = format!("s{:03}", self.random.random_range(0..PARTITIONS));
        let place = (partition, self.row(format_args!("{:08}", self.sequence)));
        self.one(table, Verb::Insert, place, Condition::None)
    }

    /// The first row of a partition, which stays its only one.
    fn insert_alone(&mut self, table: String) -> Operation {
        let place = (format!("alone{:08}", self.sequence), self.row("only"));
        self.one(table, Verb::Insert, place, Condition::None)
    }

    fn upsert(&mut self, table: String) -> Operation {
        let verb = if self.random.random_bool(0.5) { Verb::Replace } else { Verb::Merge };
        let row = self.random.random_range(0..ROWS);
        let place = ("changed".to_owned(), self.row(format_args!("{}-{row:03}", self.fresh())));
        self.one(table, verb, place, Condition::None)
    }

    /// An existing row with its timestamp.
    fn some_row(&mut self, table: &str) -> Option<(Place, Stamp)> {
        let rows = self.ledger.table(table).filter(|rows| !rows.is_empty())?;
        let (place, row) = rows.iter().nth(self.random.random_range(0..rows.len()))?;
        Some((place.clone(), row.stamp.clone()?))
    }

    /// Changes a row by its ETag, or by a stale ETag, which must be refused.
    fn change_known(&mut self, table: String) -> Operation {
        let Some((place, stamp)) = self.some_row(&table) else { return self.insert_next(table) };
        let verb = if self.random.random_bool(0.5) { Verb::Replace } else { Verb::Merge };
        let stamp = if self.random.random_bool(0.2) { long_ago() } else { stamp };
        self.one(table, verb, place, Condition::Version(stamp))
    }

    fn insert_again(&mut self, table: String) -> Operation {
        let Some((place, _)) = self.some_row(&table) else { return self.insert_next(table) };
        self.one(table, Verb::Insert, place, Condition::None)
    }

    fn delete(&mut self, table: String) -> Operation {
        let Some((place, stamp)) = self.some_row(&table) else { return self.insert_next(table) };
        let exact = self.random.random_bool(0.5);
        let condition = if exact { Condition::Version(stamp) } else { Condition::Exists };
        self.one(table, Verb::Delete, place, condition)
    }

    /// 2 to 100 rows of one partition: inserts or deletes, whichever the row allows, and upserts.
    fn batch(&mut self, table: String, partition: &str) -> Operation {
        let count = self.random.random_range(2..=BATCH_MAX);
        let first = self.random.random_range(0..=BATCHED_ROWS - count);
        let mut changes = Vec::with_capacity(count as usize);
        for row in first..first + count {
            let place = (partition.to_owned(), self.row(format_args!("{}-{row:03}", self.fresh())));
            let there = self.ledger.table(&table).is_some_and(|rows| rows.contains_key(&place));
            let (verb, condition) = match self.random.random_range(0..4) {
                0 if there => (Verb::Delete, Condition::Exists),
                0 => (Verb::Insert, Condition::None),
                1 | 2 => (Verb::Replace, Condition::None),
                _ => (Verb::Merge, Condition::None),
            };
            changes.push(self.change(verb, place, condition));
        }
        Operation::Write { table, changes }
    }

    /// The last part must be refused, and so the whole batch.
    fn batch_with_a_failure(&mut self, table: String) -> Operation {
        let mut operation = self.batch(table, "batches");
        if let Operation::Write { changes, .. } = &mut operation
            && let Some(last) = changes.last_mut()
        {
            (last.verb, last.condition) = (Verb::Replace, Condition::Version(long_ago()));
        }
        operation
    }

    /// Writes its own rows to partitions that all clients write to.
    fn shared(&mut self) -> Operation {
        let table = self.office.shared_table();
        let partition = format!("p{}", self.random.random_range(0..SHARED_PARTITIONS));
        if self.random.random_bool(0.5) {
            return self.batch(table, &partition);
        }
        let row = self.random.random_range(0..BATCHED_ROWS);
        let place = (partition, self.row(format_args!("{}-{row:03}", self.fresh())));
        self.one(table, Verb::Merge, place, Condition::None)
    }

    /// An operation on a brief table.
    fn brief(&mut self) -> Operation {
        let table = self.brief_table();
        match self.ledger.table(&table).map(|rows| rows.len()) {
            // A dropped table accepts no more writes, through any front end and whatever it has cached.
            None if self.random.random_bool(0.3) => self.insert_next(table),
            None => Operation::Create { table },
            Some(0..BRIEF_ROWS) => self.batch(table, "batches"),
            Some(_) => Operation::Drop { table },
        }
    }
}

/// `None` if the work takes longer than `patience`.
async fn within<T>(patience: Option<Duration>, work: impl Future<Output = T>) -> Option<T> {
    match patience {
        Some(patience) => tokio::time::timeout(patience, work).await.ok(),
        None => Some(work.await),
    }
}

fn long_ago() -> Stamp {
    Stamp("2020-02-02T02:02:02.0000002Z".to_owned())
}

/// The kind of a message, without the parts that differ from one message to the next.
fn kind_of(why: &str) -> String {
    let code = why.split("\"code\":\"").nth(1).and_then(|rest| rest.split('"').next());
    match code {
        Some(code) => format!("{} {code}", why.get(..3).unwrap_or_default()),
        None => why.chars().take(60).collect(),
    }
}
