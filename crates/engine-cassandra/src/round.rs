//! A group of transactions on one partition, from reading to answer.

use std::collections::BTreeMap;
use std::future::Future;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use lru::LruCache;
use model::{DateTime, Key};
use rand::Rng as _;
use scylla::value::CqlValue;
use store::{Error, Transaction};
use tokio::sync::oneshot;

use crate::cluster::{CLOCK_PATIENCE, CLOCK_PAUSE, Cluster, Conditional, Outcome};
use crate::directory::{Directory, Hints};
use crate::keys::KeyBytes;
use crate::lane::Commits;
use crate::partition::{PartitionId, Registration, State};
use crate::plan::{Knowledge, Plan, ReadRow, Verdict, Write, plan};
use crate::trouble::Trouble;
use crate::unknown::{Attempt, Fate};

const ATTEMPTS: u32 = 8;
/// For a group, from its first reading to the last try to find out what became of its write.
pub const DEADLINE: Duration = Duration::from_secs(20);
/// Partitions whose state is remembered.
const STATES: NonZeroUsize = NonZeroUsize::new(100_000).expect("not zero");

/// A transaction, and who waits for its answer.
#[derive(Debug)]
pub struct Waiting {
    pub transaction: Transaction,
    pub answer: oneshot::Sender<Result<Vec<DateTime>, Error>>,
    pub arrived: Instant,
}

impl Waiting {
    fn answer(self, answer: Result<Vec<DateTime>, Error>) {
        // Who no longer waits needs no answer.
        let _ = self.answer.send(answer);
    }
}

#[derive(Debug)]
pub struct Writer {
    pub cluster: Arc<Cluster>,
    pub directory: Arc<Directory>,
    pub hints: Arc<Hints>,
    states: Mutex<LruCache<PartitionId, State>>,
}

/// What a write is held to and what it leaves behind.
struct Step {
    expected: State,
    next: State,
}

impl Commits for Writer {
    fn commit(
        &self,
        id: &PartitionId,
        group: Vec<Waiting>,
        knowledge: &mut Knowledge,
    ) -> impl Future<Output = ()> + Send {
        self.commit_group(id, group, knowledge)
    }
}

impl Writer {
    pub fn new(cluster: Arc<Cluster>, directory: Arc<Directory>, hints: Arc<Hints>) -> Self {
        Self { cluster, directory, hints, states: Mutex::new(LruCache::new(STATES)) }
    }

    /// Answers every one of the group.
    async fn commit_group(&self, id: &PartitionId, mut group: Vec<Waiting>, knowledge: &mut Knowledge) {
        let deadline = Instant::now() + DEADLINE;
        let mut attempts = 0;
        while !group.is_empty() {
            let outcome = if attempts > ATTEMPTS || Instant::now() > deadline {
                Err(Error::Busy)
            } else {
                self.attempt(id, &mut group, knowledge, deadline).await
            };
            match outcome {
                Ok(Progress::Answered) => attempts = 0,
                Ok(Progress::Learned) => {}
                Ok(Progress::Contended) => {
                    attempts += 1;
                    let most = 2_u64 << attempts.min(5);
                    let pause = rand::rng().random_range(1..=most);
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                }
                Err(error) => {
                    if let Error::Fault(fault) = &error {
                        tracing::error!(%fault, "a write failed");
                    }
                    group.drain(..).for_each(|waiting| waiting.answer(Err(error.clone())));
                }
            }
        }
    }

    async fn attempt(
        &self,
        id: &PartitionId,
        group: &mut Vec<Waiting>,
        knowledge: &mut Knowledge,
        deadline: Instant,
    ) -> Result<Progress, Error> {
        let transactions: Vec<Transaction> =
            group.iter().map(|waiting| waiting.transaction.clone()).collect();
        let Some(first) = transactions.first() else { return Ok(Progress::Answered) };
        let partition = first.partition().clone();
        let count = transactions.iter().map(|transaction| transaction.operations().len()).sum();
        let stamps = self.stamps(count).await?;
        match plan(&partition, &transactions, knowledge, &stamps)? {
            Plan::Read(rows) => {
                let found = self.read_rows(id, rows.iter()).await?;
                knowledge.learn(&rows, found);
                Ok(Progress::Learned)
            }
            Plan::Write { writes, verdicts } => {
                // The last stamp of the group is the write's own, whether or not a row carries it.
                let last = stamps.last().map_or(0, |stamp| stamp.ticks());
                if !writes.is_empty() && !self.write(id, &writes, last, knowledge, deadline).await? {
                    return Ok(Progress::Contended);
                }
                let mut later = Vec::new();
                for (waiting, verdict) in group.drain(..).zip(verdicts) {
                    match verdict {
                        Verdict::Accepted(stamps) => waiting.answer(Ok(stamps)),
                        Verdict::Rejected(error) => waiting.answer(Err(error)),
                        Verdict::Later => later.push(waiting),
                    }
                }
                *group = later;
                knowledge.wrote(&writes);
                Ok(Progress::Answered)
            }
        }
    }

    /// Rows as they are, whatever they were, for moving house: what is there is read, and then replaced.
    pub async fn load(
        &self,
        id: &PartitionId,
        rows: Vec<(Key, Option<(DateTime, store::Row)>)>,
    ) -> Result<(), Error> {
        let deadline = Instant::now() + DEADLINE;
        let keys: Vec<KeyBytes> = rows.iter().map(|(row, _)| KeyBytes::of(row.as_str())).collect();
        for _ in 0..ATTEMPTS {
            let mut knowledge = Knowledge::default();
            let found = self.read_rows(id, keys.iter()).await?;
            let expected: BTreeMap<&KeyBytes, Option<i64>> =
                found.iter().map(|row| (&row.key, row.stamp)).collect();
            let write = |key: &KeyBytes, row: Option<(DateTime, store::Row)>| {
                (key.clone(), Write { expected: expected.get(key).copied().flatten(), row })
            };
            let writes =
                keys.iter().zip(rows.iter().cloned()).map(|(key, (_, row))| write(key, row)).collect();
            let stamps = self.stamps(1).await?;
            let last = stamps.last().map_or(0, |stamp| stamp.ticks());
            if self.write(id, &writes, last, &mut knowledge, deadline).await? {
                return Ok(());
            }
        }
        Err(Error::Busy)
    }

    async fn stamps(&self, count: usize) -> Result<Vec<DateTime>, Error> {
        let until = Instant::now() + CLOCK_PATIENCE;
        loop {
            if let Some(stamps) = self.cluster.clock.stamps(count) {
                return Ok(stamps);
            }
            if Instant::now() > until {
                tracing::debug!("the lease for writing has run out");
                return Err(Error::Busy);
            }
            tokio::time::sleep(CLOCK_PAUSE).await;
        }
    }

    /// Rows by key, all of one moment.
    pub(crate) async fn read_rows(
        &self,
        id: &PartitionId,
        rows: impl Iterator<Item = &KeyBytes>,
    ) -> Result<Vec<ReadRow>, Trouble> {
        let keys: Vec<&[u8]> = rows.map(KeyBytes::as_bytes).collect();
        let values = (id.table, id.key.as_bytes(), keys);
        let rows = self.cluster.read(&self.cluster.statements.rows_of, values).await?;
        type Columns = (Vec<u8>, Option<i64>, Option<Vec<u8>>, Option<i64>, Option<i8>, Option<i64>);
        let mut found = Vec::with_capacity(rows.rows_num());
        for row in rows.rows::<Columns>().map_err(|error| Trouble::fault(error.to_string()))? {
            let (key, stamp, body, epoch, registered, written) =
                row.map_err(|error| Trouble::fault(error.to_string()))?;
            if found.is_empty() {
                self.remember(id, State::from_columns(epoch, registered, written)?);
                written.into_iter().for_each(|stamp| self.cluster.clock.observe(stamp));
            }
            stamp.into_iter().for_each(|stamp| self.cluster.clock.observe(stamp));
            found.push(ReadRow { key: KeyBytes::stored(key), stamp, body: body.map(Bytes::from) });
        }
        Ok(found)
    }

    /// False if the partition is not as expected; why has been learned.
    async fn write(
        &self,
        id: &PartitionId,
        writes: &BTreeMap<KeyBytes, Write>,
        last: i64,
        knowledge: &mut Knowledge,
        deadline: Instant,
    ) -> Result<bool, Error> {
        let state = self.state(id).await?;
        let puts = writes.values().any(|write| write.row.is_some());
        let step = self.step(id, state, puts, last).await?;
        let attempt = Attempt { id, writes, last, expected: step.expected, epoch: step.next.epoch };
        // The server may have stood still since it made the stamps, and another may have its slot by now.
        if !self.cluster.clock.is_leased() {
            return Err(Error::Busy);
        }
        let outcome = match self.cluster.compare_and_set(self.statements(id, writes, last, &step)).await {
            Ok(outcome) => outcome,
            Err(Trouble::Unknown(why)) => {
                tracing::debug!(why, "finding out what became of a write");
                self.forget(id);
                return match attempt.find_out(&self.cluster, deadline).await {
                    Fate::Applied => Ok(true),
                    Fate::NotApplied => Ok(false),
                    Fate::Unknown => Err(Error::OutcomeUnknown),
                };
            }
            Err(other) => {
                self.forget(id);
                return Err(other.into());
            }
        };
        match outcome {
            Outcome::Applied => {
                self.remember(id, step.next);
                if !puts {
                    self.hints.maybe_empty(id);
                }
                Ok(true)
            }
            Outcome::Refused(found) => {
                let epoch = found.iter().find_map(|row| row.number("epoch"));
                if epoch != step.expected.epoch {
                    self.forget(id);
                }
                let rows = found.iter().filter_map(|row| {
                    let stamp = row.number("stamp");
                    stamp.into_iter().for_each(|stamp| self.cluster.clock.observe(stamp));
                    Some(ReadRow { key: row.row_key()?, stamp, body: None })
                });
                knowledge.learn(writes.keys(), rows.collect());
                Ok(false)
            }
        }
    }

    /// Which epoch the write is held to, and which it moves the partition to. A partition that gets its first row
    /// is listed in the directory before.
    async fn step(&self, id: &PartitionId, state: State, puts: bool, last: i64) -> Result<Step, Error> {
        let written = Some(last);
        let next = match state.registration {
            Registration::None if puts => {
                let epoch = self.cluster.epoch_above(state.epoch.unwrap_or(0)).await?;
                self.directory.list(id, epoch).await?;
                State { epoch: Some(epoch), registration: Registration::Listed, written }
            }
            Registration::Closing if puts => {
                let epoch = self.cluster.epoch_above(state.epoch.unwrap_or(0)).await?;
                State { epoch: Some(epoch), registration: Registration::Listed, written }
            }
            _ => State { written, ..state },
        };
        Ok(Step { expected: state, next })
    }

    fn statements<'a>(
        &'a self,
        id: &PartitionId,
        writes: &BTreeMap<KeyBytes, Write>,
        last: i64,
        step: &Step,
    ) -> Vec<Conditional<'a>> {
        let statements = &self.cluster.statements;
        let (table, partition) =
            (Some(CqlValue::Uuid(id.table)), Some(CqlValue::Blob(id.key.as_bytes().to_vec())));
        let mut batch = Vec::with_capacity(writes.len() + 1);
        for (key, write) in writes {
            let row = Some(CqlValue::Blob(key.as_bytes().to_vec()));
            let mut values = Vec::with_capacity(6);
            let statement = match &write.row {
                Some((stamp, row)) => {
                    values.push(Some(CqlValue::BigInt(stamp.ticks())));
                    values.push(Some(CqlValue::Blob(row.as_bytes().to_vec())));
                    &statements.put_row
                }
                None => &statements.delete_row,
            };
            values.extend([table.clone(), partition.clone(), row, write.expected.map(CqlValue::BigInt)]);
            batch.push(Conditional { statement, values });
        }
        let expected = step.expected.epoch.map(CqlValue::BigInt);
        let last = Some(CqlValue::BigInt(last));
        batch.push(match step.next.epoch.filter(|next| Some(*next) != step.expected.epoch) {
            None => Conditional {
                statement: &statements.mark_written,
                values: vec![last, table, partition, expected],
            },
            Some(next) => {
                let registered = Some(CqlValue::TinyInt(step.next.registration.stored()));
                let values = vec![last, Some(CqlValue::BigInt(next)), registered, table, partition, expected];
                Conditional { statement: &statements.mark_registered, values }
            }
        });
        batch
    }

    async fn state(&self, id: &PartitionId) -> Result<State, Trouble> {
        if let Some(state) = self.states().get(id) {
            return Ok(*state);
        }
        let state = self.cluster.partition_state(id).await?;
        state.written.into_iter().for_each(|stamp| self.cluster.clock.observe(stamp));
        self.remember(id, state);
        Ok(state)
    }

    fn remember(&self, id: &PartitionId, state: State) {
        self.states().put(id.clone(), state);
    }

    fn forget(&self, id: &PartitionId) {
        self.states().pop(id);
    }

    fn states(&self) -> std::sync::MutexGuard<'_, LruCache<PartitionId, State>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Progress {
    /// At least one has its answer, or none is left.
    Answered,
    /// Rows were read.
    Learned,
    /// Someone else was faster.
    Contended,
}
