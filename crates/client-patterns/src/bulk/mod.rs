//! Writes, deletes or reads many entities.
//!
//! Rows of one partition are sent in transactions of up to 100, and several partitions at the same time. A refused row does
//! not affect others: its transaction is divided until the row is alone. The [`Report`] gives the outcome of every row that
//! was read. You can repeat the same call: [`BulkWrite::InsertMissing`] skips rows that exist, upserts write them again, and
//! deletes skip rows that are gone.
//!
//! ```no_run
//! # async fn run(table: partita_client::Table) -> partita_client::Result<()> {
//! use partita_client_patterns::bulk::{Bulk, BulkWrite, get_many};
//! use partita_client::{Entity, partition_key};
//!
//! let books = (0..10_000).map(|n| Entity::new(format!("shelf-{}", n % 7), n.to_string()).with("Year", 1900));
//! let report = Bulk::new(&table)
//!     .concurrency(4)
//!     .progress(|so_far| println!("{} written", so_far.done))
//!     .write(BulkWrite::InsertMissing, books)
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

use apply::BulkOutcome;
use groups::{BulkRow, Groups};
use partita_client::{Entity, Error, Operation, OperationKind, Query, Result, StoredEntity, Table};

pub use many::get_many;
pub use report::{BulkProgress, FailedRow, Report, Stop};

/// The default number of concurrent transactions.
const CONCURRENCY: usize = 8;

/// How the entities of [`Bulk::write`] are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BulkWrite {
    /// Refuses a row that exists.
    Insert,
    /// Skips a row that exists, whatever its properties. To continue an interrupted call.
    InsertMissing,
    /// Inserts a row, or replaces it if it exists.
    UpsertReplace,
    /// Inserts a row, or sets these properties if it exists.
    UpsertMerge,
}

impl BulkWrite {
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
    progress: Option<Arc<dyn Fn(BulkProgress) + Send + Sync>>,
}

impl fmt::Debug for Bulk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bulk").field("table", &self.table).field("concurrency", &self.concurrency).finish()
    }
}

impl Bulk {
    /// Uses the table's encryption, if it has one.
    pub fn new(table: &Table) -> Self {
        Self { table: table.clone(), concurrency: CONCURRENCY, progress: None }
    }

    /// The number of concurrent transactions, each of another partition; by default 8, at least 1.
    pub fn concurrency(self, transactions: usize) -> Self {
        Self { concurrency: transactions.max(1), ..self }
    }

    /// Calls this after every transaction.
    pub fn progress(self, tell: impl Fn(BulkProgress) + Send + Sync + 'static) -> Self {
        Self { progress: Some(Arc::new(tell)), ..self }
    }

    /// Writes these entities. Entities with the same keys are written in their order.
    pub async fn write<T: Serialize>(
        &self,
        write: BulkWrite,
        entities: impl IntoIterator<Item = T>,
    ) -> Report {
        self.write_stream(write, stream::iter(entities)).await
    }

    /// Writes the entities of a stream, which is read only as fast as its entities are written.
    pub async fn write_stream<T: Serialize>(
        &self,
        write: BulkWrite,
        entities: impl Stream<Item = T>,
    ) -> Report {
        let operations = entities.map(|entity| Operation::new(write.kind(), &entity));
        self.run(operations, write == BulkWrite::InsertMissing, false).await
    }

    /// Deletes the entities that a query finds; without a filter, all entities of the table. A row that has changed since it
    /// was found is refused, because it may not match any more. A row that is gone is skipped.
    pub async fn delete(&self, narrow: impl FnOnce(Query) -> Query) -> Report {
        let query = narrow(self.table.without_encryption().query());
        let query = query.select([wire::names::PARTITION_KEY, wire::names::ROW_KEY]);
        let operations = query.stream::<Entity>().map(|found| {
            let StoredEntity { entity, etag, .. } = found?;
            Ok(Operation::delete(entity.partition_key, entity.row_key, etag))
        });
        // An error in this stream is one of the query, and ends it.
        self.run(operations, true, true).await
    }

    /// `skips`: a row that is already as requested counts as skipped. `ends`: an error of the input ends the call, instead of
    /// counting for one row.
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
                    for group in groups.add(BulkRow { at, operation }) {
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

/// The transactions of one call.
struct Run<'a> {
    bulk: &'a Bulk,
    skips: bool,
    under_way: JoinSet<BulkOutcome>,
    /// Partitions of the transactions in flight. Each partition has one at a time, so that rows are written in order.
    busy: HashSet<String>,
    report: Report,
}

impl Run<'_> {
    /// Waits for the group's turn and sends it, unless the run has stopped.
    async fn start(&mut self, group: Vec<BulkRow>) {
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

    fn note(&mut self, ended: Result<BulkOutcome, tokio::task::JoinError>) {
        let outcome = match ended {
            Ok(outcome) => outcome,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // A task is aborted only if the runtime shuts down.
            Err(_) => return self.report.stop(Error::OutcomeUnknown("the runtime was shut down".to_owned())),
        };
        self.busy.remove(&outcome.partition);
        self.report.add(outcome);
        if let Some(tell) = &self.bulk.progress {
            tell(self.report.progress());
        }
    }
}
