//! Many entities at once: written, deleted, read.
//!
//! Rows of one partition travel together, in transactions of up to 100, and several partitions at a time. A row that is
//! refused does not take others with it: its transaction is divided until it stands alone. Whatever happens, the
//! [`Report`] says what became of every row that was read, and the same call can be made again:
//! [`Write::InsertMissing`] and the upserts leave alone or repeat what is there, and what is deleted stays so.
//!
//! ```no_run
//! # async fn run(table: partita_client::Table) -> partita_client::Result<()> {
//! use partita_client_patterns::bulk::{Bulk, Write, get_many};
//! use partita_client::{Entity, partition_key};
//!
//! let books = (0..10_000).map(|n| Entity::new(format!("shelf-{}", n % 7), n.to_string()).with("Year", 1900));
//! let report = Bulk::new(&table)
//!     .concurrency(4)
//!     .progress(|so_far| println!("{} written", so_far.done))
//!     .write(Write::InsertMissing, books)
//!     .await;
//! for row in report.refused.iter().chain(&report.unknown) {
//!     eprintln!("{} {}: {}", row.partition_key, row.row_key, row.error);
//! }
//!
//! let report = Bulk::new(&table).delete(|all| all.filter(partition_key().eq("shelf-6"))).await;
//! assert!(report.is_complete());
//!
//! let found = get_many::<Entity>(&table, [("shelf-1", "1"), ("shelf-6", "6")], 8).await?;
//! assert!(found[0].is_some() && found[1].is_none());
//! # Ok(())
//! # }
//! ```

mod apply;
mod groups;
mod many;
mod report;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use futures_util::stream::{self, Stream, StreamExt as _};
use serde::Serialize;
use tokio::task::JoinSet;

use apply::Outcome;
use groups::{Groups, Row};
use partita_client::{Entity, Error, Operation, OperationKind, Query, Result, Stored, Table};

pub use many::get_many;
pub use report::{FailedRow, Progress, Report, Stop};

/// Requests at the same time, unless told.
const CONCURRENCY: usize = 8;

/// How the entities of [`Bulk::write`] are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Write {
    /// A row that is there is refused.
    Insert,
    /// A row that is there is skipped, whatever it holds: to go on with what was begun before.
    InsertMissing,
    /// Whether there is such a row or not.
    UpsertReplace,
    /// Whether there is such a row or not; properties that are not named stay.
    UpsertMerge,
}

impl Write {
    fn kind(self) -> OperationKind {
        match self {
            Self::Insert | Self::InsertMissing => OperationKind::Insert,
            Self::UpsertReplace => OperationKind::UpsertReplace,
            Self::UpsertMerge => OperationKind::UpsertMerge,
        }
    }
}

/// Writes or deletes many entities of a table. [The module](self) has an example.
#[derive(Clone)]
#[must_use]
pub struct Bulk {
    table: Table,
    concurrency: usize,
    progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
}

impl fmt::Debug for Bulk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bulk").field("table", &self.table).field("concurrency", &self.concurrency).finish()
    }
}

impl Bulk {
    /// Of this table, and with its encryption if it has a policy.
    pub fn new(table: &Table) -> Self {
        Self { table: table.clone(), concurrency: CONCURRENCY, progress: None }
    }

    /// How many transactions are under way at once, each of another partition: 8 unless told, at least one.
    pub fn concurrency(self, transactions: usize) -> Self {
        Self { concurrency: transactions.max(1), ..self }
    }

    /// Told after every transaction how far it is.
    pub fn progress(self, tell: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Self { progress: Some(Arc::new(tell)), ..self }
    }

    /// Writes these entities. Of two of the same keys the later one is written later.
    pub async fn write<T: Serialize>(&self, write: Write, entities: impl IntoIterator<Item = T>) -> Report {
        self.write_stream(write, stream::iter(entities)).await
    }

    /// The same of a stream, which is read only as fast as its entities are written.
    pub async fn write_stream<T: Serialize>(&self, write: Write, entities: impl Stream<Item = T>) -> Report {
        let operations = entities.map(|entity| Operation::new(write.kind(), &entity));
        self.run(operations, write == Write::InsertMissing, false).await
    }

    /// Deletes what a query of this table finds, the whole table's entities unless it is narrowed. A row that was changed
    /// after it was found is refused, because the query might no longer find it; a row that is gone is skipped.
    pub async fn delete(&self, narrow: impl FnOnce(Query) -> Query) -> Report {
        let query = narrow(self.table.without_encryption().query());
        let query = query.select([wire::names::PARTITION_KEY, wire::names::ROW_KEY]);
        let operations = query.stream::<Entity>().map(|found| {
            let Stored { entity, etag, .. } = found?;
            Ok(Operation::delete(entity.partition_key, entity.row_key, etag))
        });
        // A failure among these is the query's, and there is nothing after it.
        self.run(operations, true, true).await
    }

    /// `skips` says that a row which is as it should be already counts as skipped. `ends` says that a failure of the
    /// input is its end, and not one row's.
    async fn run(
        &self,
        operations: impl Stream<Item = Result<Operation>>,
        skips: bool,
        ends: bool,
    ) -> Report {
        let mut operations = std::pin::pin!(operations.enumerate());
        let mut groups = Groups::default();
        let mut run = Run {
            bulk: self,
            skips,
            under_way: JoinSet::new(),
            busy: HashSet::new(),
            report: Report::default(),
        };
        while run.report.stopped.is_none() {
            let (at, operation) = tokio::select! {
                next = operations.next() => match next {
                    Some((at, operation)) => (at as u64, operation),
                    None => break,
                },
                Some(ended) = run.under_way.join_next() => {
                    run.note(ended);
                    continue;
                }
            };
            match operation {
                Ok(operation) => {
                    for group in groups.add(Row { at, operation }) {
                        run.start(group).await;
                    }
                }
                Err(error) if ends => run.report.stop(error),
                Err(error) => run.report.refused.push(FailedRow::unwritten(at, error)),
            }
        }
        for group in groups.drain() {
            run.start(group).await;
        }
        while let Some(ended) = run.under_way.join_next().await {
            run.note(ended);
        }
        run.report
    }
}

/// One call's transactions and what became of them.
struct Run<'a> {
    bulk: &'a Bulk,
    skips: bool,
    under_way: JoinSet<Outcome>,
    /// Partitions of what is under way. One at a time each, so that rows are written in their order.
    busy: HashSet<String>,
    report: Report,
}

impl Run<'_> {
    /// Sends a group as soon as its turn comes, unless the run has been stopped meanwhile.
    async fn start(&mut self, group: Vec<Row>) {
        let Some(partition) = group.first().map(|row| row.operation.entity.partition_key.clone()) else {
            return;
        };
        while self.under_way.len() >= self.bulk.concurrency || self.busy.contains(&partition) {
            let Some(ended) = self.under_way.join_next().await else { break };
            self.note(ended);
        }
        if self.report.stopped.is_some() {
            self.report.leave(group.len());
            return;
        }
        self.busy.insert(partition.clone());
        let (table, skips) = (self.bulk.table.clone(), self.skips);
        self.under_way.spawn(async move { apply::apply(&table, partition, group, skips).await });
    }

    fn note(&mut self, ended: Result<Outcome, tokio::task::JoinError>) {
        let outcome = match ended {
            Ok(outcome) => outcome,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // Only a runtime that shuts down ends a task before its end.
            Err(_) => return self.report.stop(Error::OutcomeUnknown("the runtime was shut down".to_owned())),
        };
        self.busy.remove(&outcome.partition);
        self.report.add(outcome);
        if let Some(tell) = &self.bulk.progress {
            tell(self.report.progress());
        }
    }
}
