//! Deletes old marks, which patterns keep for a while so that late steps do no harm.

use std::pin::pin;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use model::DateTime;

use partita_client::{Entity, Filter, Result, Table, row_key, timestamp};

/// The prefix of the rows that record which inserts were done.
pub const MARK_PREFIX: &str = "~done~";

/// Deletes marks of inserts that are older than this. Returns their number.
pub async fn collect_marks(table: &Table, older_than: Duration) -> Result<u64> {
    collect(table, row_key().starts_with(MARK_PREFIX), older_than).await
}

/// Deletes the rows that a filter finds and that did not change for this long. Returns their number.
pub async fn collect(table: &Table, filter: Filter, older_than: Duration) -> Result<u64> {
    let query =
        table.query().filter(filter.and(timestamp().le(ago(older_than)))).select(["PartitionKey", "RowKey"]);
    let mut rows = pin!(query.stream::<Entity>());
    let mut deleted = 0;
    while let Some(row) = rows.try_next().await? {
        deleted += u64::from(table.delete_if_there(&row.partition_key, &row.row_key).await?);
    }
    Ok(deleted)
}

/// The time this long ago.
fn ago(time: Duration) -> DateTime {
    let ticks = i64::try_from(time.as_nanos() / 100).unwrap_or(i64::MAX);
    DateTime::from_ticks(DateTime::now().ticks().saturating_sub(ticks)).unwrap_or(DateTime::MIN_STORED)
}
