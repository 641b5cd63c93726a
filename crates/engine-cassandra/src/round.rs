//! A commit round: reads what a group of transactions needs, plans, writes, and answers.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use lru::LruCache;
use model::{DateTime, Key};
use rand::Rng as _;
use scylla::deserialize::row::DeserializeRow;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::CqlValue;
use store::{Error, Fault, Transaction};
use tokio::sync::oneshot;

use crate::cluster::{CLOCK_PATIENCE, CLOCK_PAUSE, Cluster, Conditional, Outcome};
use crate::directory::{Directory, Hints};
use crate::keys::KeyBytes;
use crate::lane::Commits;
use crate::partition::{PartitionId, PartitionState, Registration};
use crate::plan::{
    GROUP_BYTES_MAX, Knowledge, ReadRow, RowWrite, TRANSACTION_BYTES_MAX, Verdict, WritePlan, plan, too_large,
};
use crate::statements::{AfterDelete, RowColumns, StampColumns};
use crate::trouble::{Trouble, undecodable};
use crate::unknown::{Attempt, Fate};

const ATTEMPTS: u32 = 8;
/// The time for one group, from its first reading to the last attempt to settle an unknown outcome.
pub const DEADLINE: Duration = Duration::from_secs(20);
/// Rows that are read with their bodies at a time, before their size is known: 16 MiB at most.
const WHOLE_ROWS_MAX: usize = 16;
/// Partitions whose state is remembered.
const STATES: NonZeroUsize = NonZeroUsize::new(100_000).expect("not zero");

/// A transaction, and the sender of its answer.
#[derive(Debug)]
pub struct WaitingTransaction {
    pub transaction: Transaction,
    pub answer: oneshot::Sender<Result<Vec<DateTime>, Error>>,
    pub arrived: Instant,
}

impl WaitingTransaction {
    fn answer(self, answer: Result<Vec<DateTime>, Error>) {
        // Fails if the caller no longer waits.
        let _ = self.answer.send(answer);
    }
}

#[derive(Debug)]
pub struct Writer {
    pub cluster: Arc<Cluster>,
    pub directory: Arc<Directory>,
    pub hints: Arc<Hints>,
    states: Mutex<LruCache<PartitionId, PartitionState>>,
}

/// The partition's state that a write expects, and the state after it.
struct StateChange {
    expected: PartitionState,
    next: PartitionState,
    mark: Mark,
}

/// What a write does to its partition. That decides which of the marking statements goes with it.
///
/// The condition on a row proves that it is as expected. If it is expected to be absent, another server may have
/// inserted and deleted it since the stamps of this write were made; the new row would then be older than the deleted
/// one. So a write that inserts proves also that no delete has a larger stamp than its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Replaced,
    Inserted,
    Deleted,
    Registered,
}

impl Mark {
    fn of(registration: Registration, writes: &BTreeMap<KeyBytes, RowWrite>) -> Self {
        let any = |does: fn(&RowWrite) -> bool| writes.values().any(does);
        if registration != Registration::Listed && any(|write| write.row.is_some()) {
            Self::Registered
        } else if any(|write| write.row.is_none()) {
            Self::Deleted
        } else if any(|write| write.expected.is_none()) {
            Self::Inserted
        } else {
            Self::Replaced
        }
    }
}

impl Commits for Writer {
    fn commit(
        &self,
        id: &PartitionId,
        group: Vec<WaitingTransaction>,
        knowledge: &mut Knowledge,
    ) -> impl Future<Output = ()> + Send {
        let (begun, transactions) = (Instant::now(), group.len());
        async move {
            self.commit_group(id, group, knowledge).await;
            self.cluster.counts.committed(transactions, begun.elapsed());
        }
    }
}

impl Writer {
    pub fn new(cluster: Arc<Cluster>, directory: Arc<Directory>, hints: Arc<Hints>) -> Self {
        Self { cluster, directory, hints, states: Mutex::new(LruCache::new(STATES)) }
    }

    /// Answers every transaction of the group.
    async fn commit_group(
        &self,
        id: &PartitionId,
        mut group: Vec<WaitingTransaction>,
        knowledge: &mut Knowledge,
    ) {
        let deadline = Instant::now() + DEADLINE;
        let mut attempts = 0;
        // How many transactions are tried together.
        let mut together = group.len();
        while !group.is_empty() {
            together = together.clamp(1, group.len());
            let outcome = if attempts > ATTEMPTS || Instant::now() > deadline {
                Err(Error::Busy)
            } else {
                self.attempt(id, &mut group, together, knowledge, deadline).await
            };
            match outcome {
                Ok(RoundProgress::Answered) => {
                    attempts = 0;
                    together *= 2;
                    knowledge.shed();
                }
                Ok(RoundProgress::Learned | RoundProgress::Outrun) => {}
                Ok(RoundProgress::TooMuch) => {
                    together /= 2;
                    knowledge.shed();
                }
                Ok(RoundProgress::Contended) => {
                    self.cluster.counts.contended.add(1);
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
        group: &mut Vec<WaitingTransaction>,
        together: usize,
        knowledge: &mut Knowledge,
        deadline: Instant,
    ) -> Result<RoundProgress, Error> {
        let transactions: Vec<Transaction> =
            group.iter().take(together).map(|waiting| waiting.transaction.clone()).collect();
        let Some(first) = transactions.first() else { return Ok(RoundProgress::Answered) };
        let partition = first.partition().clone();
        let count = transactions.iter().map(|transaction| transaction.operations().len()).sum();
        let stamps = self.stamps(count).await?;
        match plan(&partition, &transactions, knowledge, &stamps)? {
            WritePlan::Read { rows, bodies } => match self.learn(id, &rows, &bodies, knowledge).await? {
                RoundProgress::TooMuch if transactions.len() == 1 => {
                    // A single transaction can't be split, and this one is too large for any write.
                    group.remove(0).answer(Err(too_large(first_of(first, &bodies))));
                    Ok(RoundProgress::Answered)
                }
                progress => Ok(progress),
            },
            WritePlan::Write { writes, verdicts } => {
                // The last stamp of the group is that of the write, even if no row has it.
                let (first, last) = ends_of(&stamps)?;
                let made = ReadyWrite { writes: &writes, first, last, own_stamps: true };
                if !writes.is_empty() {
                    match self.write(id, made, knowledge, deadline).await? {
                        WriteOutcome::Applied => {}
                        WriteOutcome::Outrun => return Ok(RoundProgress::Outrun),
                        WriteOutcome::Contended => return Ok(RoundProgress::Contended),
                    }
                }
                let mut later = Vec::new();
                assert_eq!(verdicts.len(), transactions.len(), "each transaction has its verdict");
                for (waiting, verdict) in group.drain(..verdicts.len()).zip(verdicts) {
                    match verdict {
                        Verdict::Accepted(stamps) => waiting.answer(Ok(stamps)),
                        Verdict::Rejected(error) => waiting.answer(Err(error)),
                        Verdict::Later => later.push(waiting),
                    }
                }
                drop(group.splice(..0, later));
                knowledge.wrote(&writes);
                Ok(RoundProgress::Answered)
            }
        }
    }

    /// Stores rows with their timestamps, for a migration: reads the stamps of the present rows, then replaces them.
    pub async fn load(
        &self,
        id: &PartitionId,
        rows: Vec<(Key, Option<(DateTime, store::Row)>)>,
    ) -> Result<(), Error> {
        let deadline = Instant::now() + DEADLINE;
        let keys: Vec<KeyBytes> = rows.iter().map(|(row, _)| KeyBytes::of(row.as_str())).collect();
        for _ in 0..ATTEMPTS {
            let mut knowledge = Knowledge::default();
            let found = self.read_stamps(id, keys.iter()).await?;
            let expected: BTreeMap<&KeyBytes, Option<i64>> =
                found.iter().map(|row| (&row.key, row.stamp)).collect();
            let write = |key: &KeyBytes, row: Option<(DateTime, store::Row)>| {
                (key.clone(), RowWrite { expected: expected.get(key).copied().flatten(), row })
            };
            let writes =
                keys.iter().zip(rows.iter().cloned()).map(|(key, (_, row))| write(key, row)).collect();
            let (first, last) = ends_of(&self.stamps(1).await?)?;
            let made = ReadyWrite { writes: &writes, first, last, own_stamps: false };
            if self.write(id, made, &mut knowledge, deadline).await? == WriteOutcome::Applied {
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
                tracing::debug!("the slot lease has expired");
                return Err(Error::Busy);
            }
            tokio::time::sleep(CLOCK_PAUSE).await;
        }
    }

    /// Reads these rows, those in `bodies` with their bodies. Few rows are read at one moment; more are read in
    /// parts, so that large rows do not arrive all at once.
    async fn learn(
        &self,
        id: &PartitionId,
        rows: &BTreeSet<KeyBytes>,
        bodies: &BTreeSet<KeyBytes>,
        knowledge: &mut Knowledge,
    ) -> Result<RoundProgress, Trouble> {
        if !bodies.is_empty() && rows.len() <= WHOLE_ROWS_MAX {
            let found = self.read_rows(id, rows.iter()).await?;
            knowledge.learn(rows, found);
            return Ok(RoundProgress::Learned);
        }
        let bodies: Vec<&KeyBytes> = bodies.iter().collect();
        let (mut from, mut count, mut total) = (0, WHOLE_ROWS_MAX, 0);
        while from < bodies.len() {
            let part = &bodies[from..bodies.len().min(from + count)];
            let found = self.read_rows(id, part.iter().copied()).await?;
            let bytes: usize = found.iter().filter_map(|row| row.body.as_ref()).map(Bytes::len).sum();
            knowledge.learn(part.iter().copied(), found);
            total += bytes;
            if total > TRANSACTION_BYTES_MAX {
                return Ok(RoundProgress::TooMuch);
            }
            from += part.len();
            // The next part has as many rows as fit into `GROUP_BYTES_MAX` if they have the same average size.
            let like_these = GROUP_BYTES_MAX / (bytes / part.len()).max(1);
            count = like_these.clamp(WHOLE_ROWS_MAX, 4 * count);
        }
        let stamps: Vec<&KeyBytes> = rows.iter().filter(|key| bodies.binary_search(key).is_err()).collect();
        if !stamps.is_empty() {
            let found = self.read_stamps(id, stamps.iter().copied()).await?;
            knowledge.learn(stamps, found);
        }
        Ok(RoundProgress::Learned)
    }

    /// The stamps of rows by key, all read at one moment.
    async fn read_stamps(
        &self,
        id: &PartitionId,
        rows: impl Iterator<Item = &KeyBytes>,
    ) -> Result<Vec<ReadRow>, Trouble> {
        let without_body = |(key, stamp, epoch, registered, written, deleted): StampColumns| {
            (key, stamp, None, epoch, registered, written, deleted)
        };
        self.read_by_key(id, rows, &self.cluster.statements.stamps_of, without_body).await
    }

    /// Rows by key, all read at one moment.
    async fn read_rows(
        &self,
        id: &PartitionId,
        rows: impl Iterator<Item = &KeyBytes>,
    ) -> Result<Vec<ReadRow>, Trouble> {
        self.read_by_key(id, rows, &self.cluster.statements.rows_of, |columns: RowColumns| columns).await
    }

    /// Runs a statement that reads rows by key, and updates the clock and the partition's known state from the result.
    async fn read_by_key<C>(
        &self,
        id: &PartitionId,
        rows: impl Iterator<Item = &KeyBytes>,
        statement: &PreparedStatement,
        columns_of: impl Fn(C) -> RowColumns,
    ) -> Result<Vec<ReadRow>, Trouble>
    where
        C: for<'r> DeserializeRow<'r, 'r>,
    {
        let keys: Vec<&[u8]> = rows.map(KeyBytes::as_bytes).collect();
        let values = (id.table, id.key.as_bytes(), keys);
        let rows = self.cluster.read(statement, values).await?;
        let mut found = Vec::with_capacity(rows.rows_num());
        for row in rows.rows::<C>().map_err(undecodable("rows of a partition"))? {
            let row = row.map_err(undecodable("rows of a partition"))?;
            let (key, stamp, body, epoch, registered, written, deleted) = columns_of(row);
            if found.is_empty() {
                self.note_state(id, PartitionState::from_columns((epoch, registered, written, deleted))?);
            }
            stamp.into_iter().for_each(|stamp| self.cluster.clock.observe(stamp));
            found.push(ReadRow { key: KeyBytes::stored(key), stamp, body: body.map(Bytes::from) });
        }
        Ok(found)
    }

    fn note_state(&self, id: &PartitionId, state: PartitionState) {
        state.written.into_iter().chain(state.deleted).for_each(|stamp| self.cluster.clock.observe(stamp));
        self.remember(id, state);
    }

    /// If the partition is not as expected, `knowledge` has its present rows afterwards.
    async fn write(
        &self,
        id: &PartitionId,
        made: ReadyWrite<'_>,
        knowledge: &mut Knowledge,
        deadline: Instant,
    ) -> Result<WriteOutcome, Error> {
        let ReadyWrite { writes, first, last, own_stamps } = made;
        let state = self.state(id).await?;
        // The delete became known after the stamps were made.
        if state.deleted.is_some_and(|deleted| deleted >= first) {
            return Ok(WriteOutcome::Outrun);
        }
        let puts = writes.values().any(|write| write.row.is_some());
        let step = self.step(id, state, writes, last).await?;
        let attempt =
            Attempt { id, writes, last, expected: step.expected, epoch: step.next.epoch, own_stamps };
        // This server may have been suspended since it made the stamps, and another may have its slot by now.
        if !self.cluster.clock.is_leased() {
            return Err(Error::Busy);
        }
        let outcome = match self.cluster.compare_and_set(self.statements(id, &made, &step)).await {
            Ok(outcome) => outcome,
            Err(Trouble::Unknown(why)) => {
                tracing::debug!(%why, "a write got no answer; settling its outcome");
                self.forget(id);
                return match attempt.find_out(&self.cluster, deadline).await {
                    Fate::Applied => Ok(WriteOutcome::Applied),
                    Fate::NotApplied => Ok(WriteOutcome::Contended),
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
                Ok(WriteOutcome::Applied)
            }
            Outcome::Refused(found) => {
                let epoch = found.iter().find_map(|row| row.number("epoch"));
                let deleted = found.iter().find_map(|row| row.number("deleted"));
                if epoch != step.expected.epoch {
                    self.forget(id);
                } else if deleted.is_some() {
                    self.note_state(id, PartitionState { deleted, ..step.expected });
                }
                let rows = found.iter().filter_map(|row| {
                    let stamp = row.number("stamp");
                    stamp.into_iter().for_each(|stamp| self.cluster.clock.observe(stamp));
                    Some(ReadRow { key: row.row_key()?, stamp, body: None })
                });
                knowledge.learn(writes.keys(), rows.collect());
                let is_outrun = deleted.is_some_and(|deleted| deleted >= first);
                Ok(if is_outrun { WriteOutcome::Outrun } else { WriteOutcome::Contended })
            }
        }
    }

    /// The state that the write expects, and the one that it sets. Before a partition gets its first row, it is
    /// listed in the directory.
    async fn step(
        &self,
        id: &PartitionId,
        state: PartitionState,
        writes: &BTreeMap<KeyBytes, RowWrite>,
        last: i64,
    ) -> Result<StateChange, Error> {
        let mark = Mark::of(state.registration, writes);
        let mut next = PartitionState { written: Some(last), ..state };
        if mark == Mark::Registered {
            let epoch = self.cluster.epoch_above(state.epoch.unwrap_or(0)).await?;
            if state.registration == Registration::None {
                self.directory.list(id, epoch).await?;
            }
            (next.epoch, next.registration) = (Some(epoch), Registration::Listed);
        }
        if matches!(mark, Mark::Registered | Mark::Deleted) {
            next.deleted = Some(last);
        }
        Ok(StateChange { expected: state, next, mark })
    }

    fn statements<'a>(
        &'a self,
        id: &PartitionId,
        made: &ReadyWrite<'_>,
        step: &StateChange,
    ) -> Vec<Conditional<'a>> {
        let ReadyWrite { writes, first, last, .. } = *made;
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
        let StateChange { expected, next, mark } = step;
        let last = Some(CqlValue::BigInt(last));
        let epoch = expected.epoch.map(CqlValue::BigInt);
        let deleted = expected.deleted.map(CqlValue::BigInt);
        let after_delete = |statement: &'a AfterDelete, mut values: Vec<Option<CqlValue>>| match deleted {
            None => (&statement.first, values),
            Some(_) => {
                values.push(Some(CqlValue::BigInt(first)));
                (&statement.later, values)
            }
        };
        let (statement, values) = match mark {
            Mark::Replaced => (&statements.mark_written, vec![last, table, partition, epoch]),
            Mark::Inserted => after_delete(&statements.mark_inserted, vec![last, table, partition, epoch]),
            Mark::Deleted => {
                after_delete(&statements.mark_deleted, vec![last.clone(), last, table, partition, epoch])
            }
            Mark::Registered => {
                let next_epoch = next.epoch.map(CqlValue::BigInt);
                let registered = Some(CqlValue::TinyInt(next.registration.stored()));
                let values =
                    vec![last.clone(), last, next_epoch, registered, table, partition, epoch, deleted];
                (&statements.mark_registered, values)
            }
        };
        batch.push(Conditional { statement, values });
        batch
    }

    async fn state(&self, id: &PartitionId) -> Result<PartitionState, Trouble> {
        if let Some(state) = self.states().get(id) {
            return Ok(*state);
        }
        let state = self.cluster.partition_state(id).await?;
        self.note_state(id, state);
        Ok(state)
    }

    fn remember(&self, id: &PartitionId, state: PartitionState) {
        self.states().put(id.clone(), state);
    }

    fn forget(&self, id: &PartitionId) {
        self.states().pop(id);
    }

    fn states(&self) -> std::sync::MutexGuard<'_, LruCache<PartitionId, PartitionState>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum RoundProgress {
    /// At least one transaction was answered, or none is left.
    Answered,
    /// Rows were read.
    Learned,
    /// Another server changed the partition first.
    Contended,
    /// Another server deleted rows with a larger stamp first. The next stamps are larger than its. Whenever this
    /// happens somebody else has written, so it is no reason to give up before the deadline.
    Outrun,
    /// The rows that must be read are too large to be read together.
    TooMuch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteOutcome {
    Applied,
    /// The partition is not as expected.
    Contended,
    /// Rows were deleted with a larger stamp than the first of this write.
    Outrun,
}

/// A write that is ready to be sent.
struct ReadyWrite<'a> {
    writes: &'a BTreeMap<KeyBytes, RowWrite>,
    /// The smallest stamp that was made for it.
    first: i64,
    /// The largest, which is the stamp of the write, even if no row has it.
    last: i64,
    /// As in `Attempt`.
    own_stamps: bool,
}

fn ends_of(stamps: &[DateTime]) -> Result<(i64, i64), Fault> {
    let ends = stamps.first().zip(stamps.last()).map(|(first, last)| (first.ticks(), last.ticks()));
    ends.ok_or_else(|| Fault::bug("a write has no stamp"))
}

/// The index of the first operation that needs one of these rows.
fn first_of(transaction: &Transaction, rows: &BTreeSet<KeyBytes>) -> usize {
    let needs = |operation: &store::RowOperation| rows.contains(&KeyBytes::of(operation.row.as_str()));
    transaction.operations().iter().position(needs).unwrap_or(0)
}

#[cfg(test)]
mod tests;
