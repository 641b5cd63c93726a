//! The one thread that writes. It takes what is waiting, judges it in order, makes it durable with one sync,
//! and only then answers.
//!
//! A lone request finds nothing else waiting and goes at once; while one group is being synced the next one
//! gathers, so groups grow with the load and no request waits for company.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use bytes::Bytes;
use model::{AccountName, DateTime, Key, ServiceKind};
use store::{Error, Fault, Row, TableRef};
use tokio::sync::oneshot;
use tracing::warn;

use crate::ahead::{Ahead, Published, Touched};
use crate::catalog::Catalog;
use crate::counters::Tally;
use crate::db::Db;
use crate::draft::{Draft, Effects};
use crate::health::Health;
use crate::layout::{self, CommitRecord, TableId};
use crate::queue::{Queued, Reserved};

/// Bounds on what shares one sync: the first to come should not wait long for the last to be judged.
pub const GROUP_REQUESTS_MAX: usize = 512;
pub const GROUP_BYTES_MAX: usize = 4 * 1024 * 1024;
/// What a batch takes beside its requests, roughly.
const COMMIT_RECORD_BYTES: usize = 64;

pub type Answer = Result<Done, Error>;

/// How work ended that was not refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// A transaction, with the timestamps of its operations.
    Stamped(Vec<DateTime>),
    /// Nothing was changed: what was to be replaced is not what was expected.
    NotAsExpected,
    /// Anything else.
    Changed,
}

#[derive(Debug)]
pub struct Request {
    pub work: Work,
    /// Rough bytes, for budgets.
    pub weight: usize,
    pub reply: oneshot::Sender<Answer>,
    /// Held until it is answered.
    pub reserved: Reserved,
}

#[derive(Clone, Debug)]
pub enum Work {
    Apply(Ahead),
    Create(TableRef, Option<Bytes>),
    Drop(TableRef),
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
    /// Rows of one partition as they are; without a value: removed.
    Load(TableRef, Key, Vec<(Key, Option<Row>)>),
    /// Again a tombstone above a dropped table, whose first one may have gone with a deleted file.
    Hide(TableId),
    /// These tables' space is back.
    Forget(Vec<TableId>),
}

pub struct Committer {
    pub db: Arc<Db>,
    pub catalog: Arc<Catalog>,
    pub tally: Arc<Tally>,
    pub health: Arc<Health>,
    pub last: CommitRecord,
    pub published: Arc<Published>,
    pub touched: Touched,
    pub committed: CommittedFile,
    pub dropped: Sender<TableId>,
}

impl Committer {
    /// Until everyone who could send a request is gone.
    pub fn run(mut self, queue: &Queued) {
        let watch = Watch(self.health.clone());
        while let Some(group) = queue.next_group() {
            self.commit(group);
        }
        drop(watch);
    }

    fn commit(&mut self, group: Vec<Request>) {
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
        for Request { work, reply, reserved, .. } in group {
            // Whoever asked has given up waiting: better not done at all than done unseen.
            if reply.is_closed() {
                continue;
            }
            let is_transaction = matches!(work, Work::Apply(_));
            let verdict = judge(&mut draft, work);
            transactions += usize::from(is_transaction && verdict.is_ok());
            answers.push((reply, verdict, reserved));
        }
        let effects = draft.into_effects();
        // A group that changes nothing rests on what is durable already.
        if !effects.batch.is_empty()
            && let Err(fault) = self.health.clone().watched(|| self.make_durable(effects, transactions))
        {
            self.health.fail(fault.clone());
            for (reply, verdict, _) in answers {
                // What was to be written may be found in the log after a restart, or not. What was refused may
                // have been refused for a row of this very group.
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
        self.db.write(effects.batch)?;

        self.last = record;
        self.published.raise(record.counter);
        self.committed.note(record.counter);
        self.tally.commits.add(1);
        self.tally.transactions.add(transactions);
        self.tally.pending_drops.add(effects.dropped.len());
        self.tally.pending_drops.subtract(effects.reclaimed);
        self.catalog.publish(effects.changes);
        // After publishing: deleting a table's files must not begin while it can still be found.
        for table in effects.dropped {
            // Nobody listens only if the reclaiming thread has ended; the next open takes up the record.
            let _ = self.dropped.send(table.record.id);
        }
        Ok(())
    }
}

fn judge(draft: &mut Draft<'_>, work: Work) -> Answer {
    match work {
        Work::Apply(ahead) => return draft.apply(ahead).map(Done::Stamped),
        Work::Create(table, metadata) => draft.create(&table, metadata)?,
        Work::Drop(table) => draft.drop_table(&table)?,
        Work::ReplaceTableMetadata { table, expected, metadata } => {
            if !draft.replace_table_metadata(&table, expected.as_ref(), metadata)? {
                return Ok(Done::NotAsExpected);
            }
        }
        Work::ReplaceServiceMetadata { service, account, expected, metadata } => {
            if !draft.replace_service_metadata(service, account, expected.as_ref(), metadata) {
                return Ok(Done::NotAsExpected);
            }
        }
        Work::Load(table, partition, rows) => draft.load(&table, &partition, rows)?,
        Work::Hide(id) => draft.hide(id),
        Work::Forget(ids) => draft.forget(&ids),
    }
    Ok(Done::Changed)
}

fn answer(reply: oneshot::Sender<Answer>, verdict: Answer) {
    // An error here means that nobody waits any more, which is theirs to decide.
    let _ = reply.send(verdict);
}

/// The requests of one group, each as the channel gives them; blocks for the first only.
pub fn gather(queue: &Receiver<Request>) -> Option<Vec<Request>> {
    let mut group = vec![queue.recv().ok()?];
    let mut bytes = group[0].weight;
    while group.len() < GROUP_REQUESTS_MAX && bytes < GROUP_BYTES_MAX {
        let Ok(request) = queue.try_recv() else { break };
        bytes += request.weight;
        group.push(request);
    }
    Some(group)
}

/// The file that remembers, beside the database, how many commits were made durable.
///
/// RocksDB takes a hole in its log for the log's end, and then opens without what was behind it. This number
/// was written after those commits were, so at open it tells that they are missing. It is written after each
/// sync and not synced itself: after a crash it may lag behind the database, which proves nothing and is
/// allowed. It never leads, because no number is written before its commit is on the disk.
#[derive(Debug)]
pub struct CommittedFile(pub File);

impl CommittedFile {
    pub fn write(&self, counter: u64) -> io::Result<()> {
        self.0.write_all_at(&layout::committed_bytes(counter), 0)
    }

    fn note(&self, counter: u64) {
        if let Err(error) = self.write(counter) {
            // The commit itself is safe; only the proof of it is older than it could be.
            warn!(%error, counter, "could not note the commit counter beside the database");
        }
    }
}

/// A panic in the committer is a failure like any other: requests would wait for ever.
struct Watch(Arc<Health>);

impl Drop for Watch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(Fault::bug("the committer panicked"));
        }
    }
}
