//! Writes one group of rows: divides and repeats its transaction until the outcome of every row is known.

use std::collections::HashSet;

use futures_util::TryStreamExt as _;
use model::ordinal_cmp;

use super::groups::BulkRow;
use super::many::get_many;
use super::report::FailedRow;
use partita_client::{
    Entity, Error, Operation, OperationKind, Result, Table, Transaction, partition_key, row_key,
};

/// How often to repeat a write with an unknown outcome whose rows are not found.
const DOUBTS_MAX: usize = 2;
/// Concurrent point reads to find out the outcome.
const CONCURRENCY: usize = 8;
/// The largest number of rows to read in search of existing ones.
const LOOKED_THROUGH_MAX: usize = 1000;

/// The outcome of a group.
#[derive(Debug, Default)]
pub struct BulkOutcome {
    pub partition: String,
    pub done: u64,
    pub skipped: u64,
    pub refused: Vec<FailedRow>,
    pub unknown: Vec<FailedRow>,
    /// An error that concerns all rows, and the number of rows that were not written.
    pub stopped: Option<(Error, usize)>,
}

/// Rows of one transaction.
struct Part {
    rows: Vec<BulkRow>,
    /// How often the outcome was unknown.
    doubts: usize,
    /// Existing rows were already removed from it.
    looked: bool,
}

/// Writes these rows of one partition. `skips`: the insert of an existing row and the delete of a missing one count as
/// skipped.
pub async fn apply(table: &Table, partition: String, rows: Vec<BulkRow>, skips: bool) -> BulkOutcome {
    let outcome = BulkOutcome { partition, ..BulkOutcome::default() };
    let mut work = Work { table, skips, parts: vec![Part { rows, doubts: 0, looked: false }], outcome };
    while let Some(part) = work.parts.pop() {
        let step = match submit(table, &part.rows).await {
            Ok(()) => {
                work.outcome.done += part.rows.len() as u64;
                Ok(())
            }
            Err(error) => work.after_failure(part, error).await,
        };
        if let Err(error) = step {
            let untried = work.parts.iter().map(|part| part.rows.len()).sum();
            work.outcome.stopped = Some((error, untried));
            break;
        }
    }
    work.outcome
}

async fn submit(table: &Table, rows: &[BulkRow]) -> Result<()> {
    let transaction: Transaction = rows.iter().map(|row| row.operation.clone()).collect();
    table.submit(transaction).await.map(drop)
}

struct Work<'a> {
    table: &'a Table,
    skips: bool,
    parts: Vec<Part>,
    outcome: BulkOutcome,
}

impl Work<'_> {
    /// Fails if the error concerns all rows.
    async fn after_failure(&mut self, mut part: Part, error: Error) -> Result<()> {
        if matches!(error, Error::OutcomeUnknown(_) | Error::Unreadable(_)) {
            return self.settle(part, error).await;
        }
        if concerns_all(&error) {
            if part.doubts > 0 {
                self.outcome.unknown.extend(part.rows.into_iter().map(|row| failed(row, &error)));
            } else {
                self.parts.push(part);
            }
            return Err(error);
        }
        if part.rows.len() == 1 {
            return self.settle_alone(part, error).await;
        }
        let inserts = part.rows.iter().all(|row| row.operation.kind == OperationKind::Insert);
        if self.skips && inserts && error.is_conflict() && !part.looked {
            part.looked = true;
            return self.skip_those_there(part).await;
        }
        let [first, second] = divide(part, error.index());
        self.parts.extend([first, second]);
        Ok(())
    }

    /// Reads rows whose outcome is unknown. Repeats those that are not as requested.
    async fn settle(&mut self, part: Part, error: Error) -> Result<()> {
        let keys: Vec<(String, String)> = part.rows.iter().map(BulkRow::keys).collect();
        let deletes = part.rows.iter().all(|row| matches!(row.operation.kind, OperationKind::Delete(_)));
        let table = if deletes { self.table.without_encryption() } else { self.table.clone() };
        let found = match get_many::<Entity>(&table, keys, CONCURRENCY).await {
            Ok(found) => found,
            Err(unread) => {
                self.outcome.unknown.extend(part.rows.into_iter().map(|row| failed(row, &error)));
                return if concerns_all(&unread) { Err(unread) } else { Ok(()) };
            }
        };
        let mut left = Vec::new();
        for (row, found) in part.rows.into_iter().zip(found) {
            if is_as_wanted(&row.operation, found.as_deref()) {
                self.outcome.done += 1;
            } else if part.doubts < DOUBTS_MAX {
                left.push(row);
            } else {
                self.outcome.unknown.push(failed(row, &error));
            }
        }
        if !left.is_empty() {
            self.parts.push(Part { rows: left, doubts: part.doubts + 1, looked: part.looked });
        }
        Ok(())
    }

    /// Decides about a row that was sent alone.
    async fn settle_alone(&mut self, part: Part, error: Error) -> Result<()> {
        for row in part.rows {
            let Entity { partition_key, row_key, .. } = &row.operation.entity;
            // An attempt without an answer may have been done after its row was read.
            if part.doubts > 0
                && row.operation.kind == OperationKind::Insert
                && let Ok(found) = self.table.find::<Entity>(partition_key, row_key).await
                && is_as_wanted(&row.operation, found.as_deref())
            {
                self.outcome.done += 1;
            } else if self.skips && is_so_already(&row.operation.kind, &error) {
                self.outcome.skipped += 1;
            } else {
                self.outcome.refused.push(failed(row, &error));
            }
        }
        Ok(())
    }

    /// Removes existing rows, with one query instead of a refusal for each.
    async fn skip_those_there(&mut self, mut part: Part) -> Result<()> {
        let mut names: Vec<&str> =
            part.rows.iter().map(|row| row.operation.entity.row_key.as_str()).collect();
        names.sort_by(|a, b| ordinal_cmp(a, b));
        let (Some(first), Some(last)) = (names.first(), names.last()) else { return Ok(()) };
        let range = partition_key().eq(self.outcome.partition.as_str());
        let range = range.and(row_key().ge(*first)).and(row_key().le(*last));
        let query = self
            .table
            .without_encryption()
            .query()
            .filter(range)
            .select([wire::names::ROW_KEY])
            .take(LOOKED_THROUGH_MAX);
        let there = query.resolve(|found| Ok(found.into_inner().row_key));
        match there.try_collect::<HashSet<String>>().await {
            Ok(there) => {
                let before = part.rows.len();
                part.rows.retain(|row| !there.contains(&row.operation.entity.row_key));
                self.outcome.skipped += (before - part.rows.len()) as u64;
            }
            Err(error) if concerns_all(&error) => {
                self.parts.push(part);
                return Err(error);
            }
            // Then dividing finds them.
            Err(_) => {}
        }
        if !part.rows.is_empty() {
            self.parts.push(part);
        }
        Ok(())
    }
}

/// The row that failed and the others; two halves if it is unknown which failed.
fn divide(part: Part, index: Option<usize>) -> [Part; 2] {
    let Part { mut rows, doubts, looked } = part;
    let other = match index {
        Some(index) if index < rows.len() => vec![rows.remove(index)],
        _ => rows.split_off(rows.len() / 2),
    };
    [rows, other].map(|rows| Part { rows, doubts, looked })
}

/// Whether every other row would fail with the same error.
fn concerns_all(error: &Error) -> bool {
    match error {
        Error::Unanswered(_) => true,
        Error::Refused(refused) => {
            matches!(refused.status, 401 | 403 | 429 | 500..)
                || matches!(refused.code.as_str(), "TableNotFound" | "TableBeingDeleted")
        }
        _ => false,
    }
}

/// Whether the refusal means that the row is already as requested.
fn is_so_already(kind: &OperationKind, error: &Error) -> bool {
    match kind {
        OperationKind::Insert => error.code() == Some("EntityAlreadyExists"),
        OperationKind::Delete(_) => error.code() == Some("ResourceNotFound"),
        OperationKind::Replace(_)
        | OperationKind::Merge(_)
        | OperationKind::UpsertReplace
        | OperationKind::UpsertMerge => false,
    }
}

/// Whether the stored row is what the operation would have written.
fn is_as_wanted(operation: &Operation, found: Option<&Entity>) -> bool {
    let Operation { kind, entity, .. } = operation;
    match (kind, found) {
        (OperationKind::Delete(_), found) => found.is_none(),
        (_, None) => false,
        (OperationKind::Merge(_) | OperationKind::UpsertMerge, Some(found)) => {
            entity.properties.iter().all(|(name, value)| found.get(name) == Some(value))
        }
        (OperationKind::Insert | OperationKind::Replace(_) | OperationKind::UpsertReplace, Some(found)) => {
            found.properties == entity.properties
        }
    }
}

fn failed(row: BulkRow, error: &Error) -> FailedRow {
    let Entity { partition_key, row_key, .. } = row.operation.entity;
    FailedRow { at: row.at, partition_key, row_key, error: error.clone() }
}
