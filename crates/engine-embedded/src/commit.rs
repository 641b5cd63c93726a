//! The committer: the one thread that writes. It takes all waiting requests, decides each in order, makes them
//! durable with one sync, and only then answers.
//!
//! A single request is committed at once. Requests that arrive during a sync form the next group, so groups grow with
//! the load, and no request waits for others to arrive.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Instant;

use bytes::Bytes;
use model::{AccountName, DateTime, Key, ServiceKind};
use store::{Error, Fault, Row, TableRef, Transaction};
use tokio::sync::oneshot;
use tracing::warn;

use crate::catalog::Catalog;
use crate::counters::LiveCounters;
use crate::db::Db;
use crate::draft::{Draft, Effects};
use crate::health::Health;
use crate::layout::{self, CommitRecord, TableId};
use crate::prepared::{KeyCommits, PreparedTransaction, PublishedCommit};
use crate::queue::{QueueReceiver, Reservation};

/// Limits of a commit group, so that its first request does not wait long until its last one is decided.
pub const GROUP_REQUESTS_MAX: usize = 512;
pub const GROUP_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Roughly the bytes of a RocksDB batch without its requests.
const COMMIT_RECORD_BYTES: usize = 64;

pub type WriteAnswer = Result<WriteOutcome, Error>;

/// The outcome of a write that was not refused.
#[derive(Clone, Debug)]
pub enum WriteOutcome {
    /// A transaction, with the timestamps of its operations.
    Stamped(Vec<DateTime>),
    /// A transaction that was not judged: rows that it merges into were changed after they were read ahead. Merging
    /// them again is left to whoever sent it, because all other writers would wait for it here.
    Returned(Transaction),
    /// Nothing was changed: the stored metadata is not what the caller expected.
    NotAsExpected,
    /// Any other write.
    Changed,
}

#[derive(Debug)]
pub struct WriteRequest {
    pub work: Work,
    /// Its approximate size in bytes, for limits.
    pub weight: usize,
    pub reply: oneshot::Sender<WriteAnswer>,
    /// Kept until the request is answered.
    pub reserved: Reservation,
}

#[derive(Clone, Debug)]
pub enum Work {
    Apply(PreparedTransaction),
    Create(TableRef, Option<Bytes>),
    Drop(TableRef),
    /// Only if the table's metadata is the expected one.
    DropIf {
        table: TableRef,
        expected: Option<Bytes>,
    },
    ReplaceTableMetadata {
        table: TableRef,
        expected: Option<Bytes>,
        metadata: Bytes,
    },
    ReplaceServiceMetadata {
        service: ServiceKind,
        account: AccountName,
        expected: Option<Bytes>,
        metadata: Bytes,
    },
    /// Rows of one partition with their timestamps. `None` removes the row.
    Load(TableRef, Key, Vec<(Key, Option<Row>)>),
    /// Rewrites the range tombstone of a dropped table: the first may have been deleted with its table file.
    Hide(TableId),
    /// The space of these dropped tables is reclaimed; their records can be deleted.
    Forget(Vec<TableId>),
}

pub struct Committer {
    pub db: Arc<Db>,
    pub catalog: Arc<Catalog>,
    pub counts: Arc<LiveCounters>,
    pub health: Arc<Health>,
    pub last: CommitRecord,
    pub published: Arc<PublishedCommit>,
    pub touched: KeyCommits,
    pub committed: CommittedFile,
    pub dropped: Sender<TableId>,
}

impl Committer {
    /// Runs until all senders are dropped.
    pub fn run(mut self, queue: &QueueReceiver) {
        let watch = Watch(self.health.clone());
        while let Some(group) = queue.next_group() {
            self.commit(group);
        }
        drop(watch);
    }

    fn commit(&mut self, group: Vec<WriteRequest>) {
        if let Err(fault) = self.health.check() {
            for request in group {
                answer(request.reply, Err(fault.clone().into()));
            }
            return;
        }
        let bytes = COMMIT_RECORD_BYTES + group.iter().map(|request| request.weight).sum::<usize>();
        let mut draft = Draft::new(&self.db, &self.catalog, &mut self.touched, self.last, group.len(), bytes);
        let mut transactions = 0;
        let mut answers = Vec::with_capacity(group.len());
        for WriteRequest { work, reply, reserved, .. } in group {
            // The caller no longer waits. A write that nobody is told about is better not done.
            if reply.is_closed() {
                continue;
            }
            let verdict = judge(&mut draft, work);
            transactions += usize::from(matches!(verdict, Ok(WriteOutcome::Stamped(_))));
            answers.push((reply, verdict, reserved));
        }
        let effects = draft.into_effects();
        // A group that changes nothing needs no sync: its answers depend only on durable data.
        if !effects.batch.is_empty()
            && let Err(fault) = self.health.clone().watched(|| self.make_durable(effects, transactions))
        {
            self.health.fail(fault.clone());
            for (reply, verdict, _) in answers {
                // After a restart, the log may have these writes or not. A refusal may be due to a row that this group
                // wrote, so it is not certain either.
                let told = verdict.map_or_else(|_| fault.clone().into(), |_| Error::OutcomeUnknown);
                answer(reply, Err(told));
            }
            return;
        }
        for (reply, verdict, _) in answers {
            answer(reply, verdict);
        }
    }

    fn make_durable(&mut self, mut effects: Effects, transactions: usize) -> Result<(), Fault> {
        let record = CommitRecord { counter: self.last.counter + 1, last_stamp: effects.last_stamp };
        effects.batch.put_cf(self.db.meta(), layout::COMMIT_KEY, record.encode());
        for table in &effects.dropped {
            table.doom();
        }
        let begun = Instant::now();
        self.db.write(effects.batch)?;
        self.counts.committed(transactions, begun.elapsed());

        self.last = record;
        self.published.raise(record.counter);
        self.committed.note(record.counter);
        self.counts.pending_drops.add(effects.dropped.len());
        self.counts.pending_drops.subtract(effects.reclaimed);
        self.catalog.publish(effects.changes);
        // After publishing: a table's files must not be deleted while the table can still be found.
        for table in effects.dropped {
            // Fails only if the reclaiming thread has ended. The next open finds the record and reclaims the space.
            let _ = self.dropped.send(table.record.id);
        }
        Ok(())
    }
}

fn judge(draft: &mut Draft<'_>, work: Work) -> WriteAnswer {
    match work {
        Work::Apply(prepared) => return draft.apply(prepared),
        Work::Create(table, metadata) => draft.create(&table, metadata)?,
        Work::Drop(table) => draft.drop_table(&table)?,
        Work::DropIf { table, expected } => {
            if !draft.drop_table_if(&table, expected.as_ref())? {
                return Ok(WriteOutcome::NotAsExpected);
            }
        }
        Work::ReplaceTableMetadata { table, expected, metadata } => {
            if !draft.replace_table_metadata(&table, expected.as_ref(), metadata)? {
                return Ok(WriteOutcome::NotAsExpected);
            }
        }
        Work::ReplaceServiceMetadata { service, account, expected, metadata } => {
            if !draft.replace_service_metadata(service, account, expected.as_ref(), metadata) {
                return Ok(WriteOutcome::NotAsExpected);
            }
        }
        Work::Load(table, partition, rows) => draft.load(&table, &partition, rows)?,
        Work::Hide(id) => draft.hide(id),
        Work::Forget(ids) => draft.forget(&ids),
    }
    Ok(WriteOutcome::Changed)
}

fn answer(reply: oneshot::Sender<WriteAnswer>, verdict: WriteAnswer) {
    // An error means that the caller no longer waits.
    let _ = reply.send(verdict);
}

/// The requests of one group. Waits for the first only.
pub fn gather(queue: &Receiver<WriteRequest>) -> Option<Vec<WriteRequest>> {
    let mut group = vec![queue.recv().ok()?];
    let mut bytes = group[0].weight;
    while group.len() < GROUP_REQUESTS_MAX && bytes < GROUP_BYTES_MAX {
        let Ok(request) = queue.try_recv() else { break };
        bytes += request.weight;
        group.push(request);
    }
    Some(group)
}

/// The commit counter: a file beside the database with the number of durable commits.
///
/// RocksDB takes a hole in its log for the end of the log, and opens without the commits behind the hole. The counter
/// shows at open that they are missing. It is written after each sync and not synced itself, so after a crash it may
/// be behind the database, which is harmless. It is never ahead, because it is written after its commit is on disk.
#[derive(Debug)]
pub struct CommittedFile(pub File);

impl CommittedFile {
    pub fn write(&self, counter: u64) -> io::Result<()> {
        self.0.write_all_at(&layout::committed_bytes(counter), 0)
    }

    fn note(&self, counter: u64) {
        if let Err(error) = self.write(counter) {
            // The commit itself is durable; only the counter is behind.
            warn!(%error, counter, "could not write the commit counter");
        }
    }
}

/// Turns a panic of the committer into a failure of the engine; without it requests would wait for ever.
struct Watch(Arc<Health>);

impl Drop for Watch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(Fault::bug("the committer panicked"));
        }
    }
}
