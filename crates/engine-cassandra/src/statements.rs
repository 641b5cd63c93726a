//! Every statement sent to the cluster, prepared once.
//!
//! Rows are written only by conditional statements (`IF`), all of them at SERIAL. Reads that decide something
//! are SERIAL as well; those of the directory are QUORUM.

use std::sync::Arc;

use scylla::client::session::Session;
use scylla::policies::retry::RetryPolicy;
use scylla::statement::Consistency;
use scylla::statement::prepared::PreparedStatement;

use crate::counters::Counts;
use crate::options::Reads;
use crate::retry::OtherNode;
use crate::trouble::Trouble;

/// The columns of `rows_of` and `stamps_of`. The last four belong to the partition.
pub type RowColumns =
    (Vec<u8>, Option<i64>, Option<Vec<u8>>, Option<i64>, Option<i8>, Option<i64>, Option<i64>);
pub type StampColumns = (Vec<u8>, Option<i64>, Option<i64>, Option<i8>, Option<i64>, Option<i64>);
/// The columns of `partition_state`.
pub type StateColumns = (Option<i64>, Option<i8>, Option<i64>, Option<i64>);

#[derive(Debug)]
pub struct Statements {
    // Rows and their partition.
    pub put_row: PreparedStatement,
    pub delete_row: PreparedStatement,
    /// One of these four is part of every write. This one is for a write that only replaces rows: it stores the stamp
    /// of the write, conditional on the epoch.
    pub mark_written: PreparedStatement,
    /// The same for a write that inserts rows: the last delete must have a smaller stamp.
    pub mark_inserted: AfterDelete,
    /// The same for a write that deletes rows: it becomes the last delete.
    pub mark_deleted: AfterDelete,
    /// The same for a write that also changes the epoch.
    pub mark_registered: PreparedStatement,
    pub change_epoch: PreparedStatement,
    /// Goes with it, for a partition that has no rows.
    pub clear_rows: PreparedStatement,
    pub partition_state: PreparedStatement,
    /// Never applied. The refusal shows the partition's state.
    pub refused: PreparedStatement,
    pub any_row: PreparedStatement,
    /// Rows by key, with their partition's state; or only their stamps.
    pub rows_of: PreparedStatement,
    pub stamps_of: PreparedStatement,
    /// A single row, for `get`.
    pub get_row: PreparedStatement,
    /// Rows from a key on, or up to a key, for scans of one partition or of many.
    pub range: Ranges,
    pub range_quorum: Ranges,
    /// Deletes the rows of a dropped table. No other rows are deleted without a condition.
    pub purge_rows: PreparedStatement,

    // The directory.
    /// An entry with its epoch as timestamp. It lists a partition or strikes it off (`Listed`).
    pub enter: PreparedStatement,
    pub directory_page: PreparedStatement,
    pub drop_segment: PreparedStatement,
    pub map: PreparedStatement,
    pub map_version: PreparedStatement,
    /// Part of every change of a map, before the statements that change its segments.
    pub set_map_version: PreparedStatement,
    pub set_segment: PreparedStatement,
    pub remove_segment: PreparedStatement,
    pub drop_map: PreparedStatement,

    // Tables, service properties, slots, purges.
    pub create_table: PreparedStatement,
    pub create_table_with_metadata: PreparedStatement,
    /// Goes with it: the account's first row, which is no table (`roster`).
    pub seat_account: PreparedStatement,
    pub find_table: PreparedStatement,
    pub list_tables: PreparedStatement,
    pub table_accounts: PreparedStatement,
    pub doom_table: PreparedStatement,
    /// The same if it has this metadata.
    pub doom_table_if: PreparedStatement,
    pub forget_table: PreparedStatement,
    pub replace_table_metadata: PreparedStatement,
    pub service_accounts: PreparedStatement,
    pub table_service: Documents,
    pub queue_service: Documents,
    pub blob_service: Documents,
    pub frozen: PreparedStatement,
    pub set_frozen: PreparedStatement,
    pub add_purge: PreparedStatement,
    pub list_purges: PreparedStatement,
    pub remove_purge: PreparedStatement,
    // Content. `objects` says which timestamp a write has.
    pub put_chunk: PreparedStatement,
    pub get_chunk: PreparedStatement,
    pub remove_chunks: PreparedStatement,
    pub add_object_hour: PreparedStatement,
    pub add_object_part: PreparedStatement,
    /// The same for an old name, which may have been removed before.
    pub add_object_part_again: PreparedStatement,
    pub object_parts: PreparedStatement,
    pub remove_object_part: PreparedStatement,
    pub object_hours: PreparedStatement,
    pub objects_of_hour: PreparedStatement,
    pub drop_object_parts: PreparedStatement,
    pub drop_object_hour: PreparedStatement,
    pub all_slots: PreparedStatement,
    /// Taken by a new owner; and renewed, released or given free.
    pub take_slot: PreparedStatement,
    pub set_slot: PreparedStatement,
    /// Notes that its owner obeys the freeze and has no write in flight.
    pub note_quiet: PreparedStatement,
}

/// A statement for a partition without deletes, and the same for one whose last delete must have a smaller stamp. A
/// null is not smaller than a number.
#[derive(Debug)]
pub struct AfterDelete {
    pub first: PreparedStatement,
    pub later: PreparedStatement,
}

/// Rows of one partition from a row key on, to the end or up to another row key. The last value is a limit.
#[derive(Debug)]
pub struct Ranges {
    pub from: PreparedStatement,
    pub between: PreparedStatement,
}

/// The documents of one service.
#[derive(Debug)]
pub struct Documents {
    pub read: PreparedStatement,
    pub replace: PreparedStatement,
}

const WHERE_ROW: &str = "WHERE tid = ? AND pk = ? AND rk = ?";
const WHERE_PARTITION: &str = "WHERE tid = ? AND pk = ?";
/// A key below all rows. A read with this key meets no tombstones of other rows. If the row exists, a read of the
/// partition's own columns finds it first.
const WHERE_NO_ROW: &str = "WHERE tid = ? AND pk = ? AND rk = 0x00";

impl Statements {
    pub async fn prepare(session: &Session, reads: Reads, counts: &Arc<Counts>) -> Result<Self, Trouble> {
        let other_node: Arc<dyn RetryPolicy> = Arc::new(OtherNode(counts.clone()));
        let prepare = async |text: &str, consistency: Consistency| {
            let mut statement = driver::prepare(session, text).await?;
            statement.set_consistency(consistency);
            // A read, or a write with its own timestamp: sending it twice is harmless.
            let repeatable = !text.contains(" IF ");
            statement.set_is_idempotent(repeatable);
            if repeatable {
                statement.set_retry_policy(Some(other_node.clone()));
            }
            Ok::<_, Trouble>(statement)
        };
        let conditional = async |text: &str| prepare(text, Consistency::Quorum).await;
        let serial = async |text: &str| prepare(text, Consistency::Serial).await;
        let quorum = async |text: &str| prepare(text, Consistency::Quorum).await;
        let chosen = match reads {
            Reads::Serial => Consistency::Serial,
            Reads::Quorum => Consistency::Quorum,
        };
        let columns = "SELECT rk, body, written FROM entities";
        let ranges = async |consistency| {
            Ok::<_, Trouble>(Ranges {
                from: prepare(&format!("{columns} {WHERE_PARTITION} AND rk >= ? LIMIT ?"), consistency)
                    .await?,
                between: prepare(
                    &format!("{columns} {WHERE_PARTITION} AND rk >= ? AND rk < ? LIMIT ?"),
                    consistency,
                )
                .await?,
            })
        };
        let after_delete = async |columns: &str| {
            let text = format!("UPDATE entities SET {columns} {WHERE_PARTITION} IF epoch = ? AND deleted");
            Ok::<_, Trouble>(AfterDelete {
                first: conditional(&format!("{text} = null")).await?,
                later: conditional(&format!("{text} < ?")).await?,
            })
        };
        // `column` is a constant of ours, never input of a client.
        let documents = async |column: &str| {
            Ok::<_, Trouble>(Documents {
                read: serial(&format!("SELECT {column} FROM services WHERE account = ?")).await?,
                replace: conditional(&format!(
                    "UPDATE services SET {column} = ? WHERE account = ? IF {column} = ?"
                ))
                .await?,
            })
        };
        Ok(Self {
            put_row: conditional(&format!("UPDATE entities SET stamp = ?, body = ? {WHERE_ROW} IF stamp = ?")).await?,
            delete_row: conditional(&format!("DELETE FROM entities {WHERE_ROW} IF stamp = ?")).await?,
            mark_written: conditional(&format!("UPDATE entities SET written = ? {WHERE_PARTITION} IF epoch = ?"))
                .await?,
            mark_inserted: after_delete("written = ?").await?,
            mark_deleted: after_delete("written = ?, deleted = ?").await?,
            mark_registered: conditional(&format!(
                "UPDATE entities SET written = ?, deleted = ?, epoch = ?, registered = ? {WHERE_PARTITION} \
                 IF epoch = ? AND deleted = ?"
            ))
            .await?,
            change_epoch: conditional(&format!(
                "UPDATE entities SET epoch = ?, registered = ?, body = 0x {WHERE_NO_ROW} IF epoch = ? AND stamp = null"
            ))
            .await?,
            clear_rows: conditional(&format!("DELETE FROM entities {WHERE_PARTITION} AND rk >= 0x01")).await?,
            partition_state: serial(&format!(
                "SELECT DISTINCT epoch, registered, written, deleted FROM entities {WHERE_PARTITION}"
            ))
            .await?,
            refused: conditional(&format!(
                "UPDATE entities SET body = 0x {WHERE_NO_ROW} \
                 IF epoch = -1 AND registered = -1 AND written = -1 AND deleted = -1 AND stamp = null"
            ))
            .await?,
            any_row: serial(&format!(
                "SELECT rk FROM entities {WHERE_PARTITION} AND rk >= ? AND rk < ? LIMIT 1"
            ))
            .await?,
            rows_of: serial(&format!(
                "SELECT rk, stamp, body, epoch, registered, written, deleted FROM entities {WHERE_PARTITION} AND rk IN ?"
            ))
            .await?,
            stamps_of: serial(&format!(
                "SELECT rk, stamp, epoch, registered, written, deleted FROM entities {WHERE_PARTITION} AND rk IN ?"
            ))
            .await?,
            get_row: prepare(&format!("SELECT body FROM entities {WHERE_ROW}"), chosen).await?,
            range: ranges(chosen).await?,
            range_quorum: ranges(Consistency::Quorum).await?,
            purge_rows: quorum(&format!("DELETE FROM entities USING TIMESTAMP ? {WHERE_PARTITION}")).await?,

            enter: quorum("INSERT INTO directory (segment, pk, epoch) VALUES (?, ?, ?) USING TIMESTAMP ?").await?,
            directory_page: quorum(
                "SELECT pk, epoch FROM directory WHERE segment = ? AND pk >= ? AND pk < ? LIMIT ?",
            )
            .await?,
            drop_segment: quorum("DELETE FROM directory USING TIMESTAMP ? WHERE segment = ?").await?,
            map: quorum(
                "SELECT version, start, segment, state, low, high, cut, retired FROM segments \
                 WHERE tid = ? AND start >= ? AND start < ?",
            )
            .await?,
            map_version: quorum("SELECT DISTINCT version FROM segments WHERE tid = ?").await?,
            set_map_version: conditional("UPDATE segments SET version = ? WHERE tid = ? IF version = ?").await?,
            set_segment: conditional(
                "UPDATE segments SET segment = ?, state = ?, low = ?, high = ?, cut = ?, retired = ? \
                 WHERE tid = ? AND start = ?",
            )
            .await?,
            remove_segment: conditional("DELETE FROM segments WHERE tid = ? AND start = ?").await?,
            drop_map: quorum("DELETE FROM segments USING TIMESTAMP ? WHERE tid = ?").await?,

            create_table: conditional(
                "INSERT INTO tables (account, name, id, shown, state) VALUES (?, ?, ?, ?, 1) IF NOT EXISTS",
            )
            .await?,
            create_table_with_metadata: conditional(
                "INSERT INTO tables (account, name, id, shown, state, metadata) VALUES (?, ?, ?, ?, 1, ?) IF NOT EXISTS",
            )
            .await?,
            seat_account: conditional("UPDATE tables SET state = 0 WHERE account = ? AND name = '!'").await?,
            find_table: serial("SELECT id, shown, state, metadata FROM tables WHERE account = ? AND name = ?").await?,
            list_tables: serial(
                "SELECT name, shown, id, state FROM tables WHERE account = ? AND name >= ? AND name < ? LIMIT ?",
            )
            .await?,
            table_accounts: quorum("SELECT DISTINCT account FROM tables").await?,
            doom_table: conditional("UPDATE tables SET state = 2 WHERE account = ? AND name = ? IF id = ? AND state = 1")
                .await?,
            doom_table_if: conditional(
                "UPDATE tables SET state = 2 WHERE account = ? AND name = ? IF id = ? AND state = 1 AND metadata = ?",
            )
            .await?,
            forget_table: conditional("DELETE FROM tables WHERE account = ? AND name = ? IF id = ?").await?,
            replace_table_metadata: conditional(
                "UPDATE tables SET metadata = ? WHERE account = ? AND name = ? IF id = ? AND state = 1 AND metadata = ?",
            )
            .await?,
            service_accounts: quorum("SELECT DISTINCT account FROM services").await?,
            table_service: documents("metadata").await?,
            queue_service: documents("queue_metadata").await?,
            blob_service: documents("blob_metadata").await?,
            frozen: serial("SELECT frozen, freeze FROM switches WHERE id = 0").await?,
            set_frozen: conditional(
                "UPDATE switches SET frozen = ?, freeze = ? WHERE id = 0 IF frozen = ? AND freeze = ?",
            )
            .await?,
            add_purge: quorum("INSERT INTO purges (shard, tid) VALUES (0, ?)").await?,
            list_purges: quorum("SELECT tid FROM purges WHERE shard = 0").await?,
            remove_purge: quorum("DELETE FROM purges WHERE shard = 0 AND tid = ?").await?,
            put_chunk: quorum(
                "INSERT INTO chunks (object, part, number, body) VALUES (?, ?, ?, ?) USING TIMESTAMP ?",
            )
            .await?,
            get_chunk: quorum("SELECT body FROM chunks WHERE object = ? AND part = ? AND number = ?").await?,
            remove_chunks: quorum("DELETE FROM chunks USING TIMESTAMP ? WHERE object = ? AND part = ?").await?,
            add_object_hour: quorum("INSERT INTO object_hours (shard, hour) VALUES (0, ?) USING TIMESTAMP ?").await?,
            add_object_part: quorum(
                "INSERT INTO objects (hour, object, part) VALUES (?, ?, ?) USING TIMESTAMP ?",
            )
            .await?,
            add_object_part_again: quorum(
                "INSERT INTO objects (hour, object, part, removed) VALUES (?, ?, ?, false) USING TIMESTAMP ?",
            )
            .await?,
            object_parts: quorum(
                "SELECT object, part, removed, WRITETIME(removed) FROM objects WHERE hour = ? AND object = ?",
            )
            .await?,
            remove_object_part: quorum(
                "UPDATE objects USING TIMESTAMP ? SET removed = true WHERE hour = ? AND object = ? AND part = ?",
            )
            .await?,
            object_hours: quorum("SELECT hour FROM object_hours WHERE shard = 0 AND hour >= ? LIMIT ?").await?,
            objects_of_hour: quorum(
                "SELECT object, part, removed, WRITETIME(removed) FROM objects WHERE hour = ? AND (object, part) > (?, ?) LIMIT ?",
            )
            .await?,
            drop_object_parts: quorum("DELETE FROM objects USING TIMESTAMP ? WHERE hour = ?").await?,
            drop_object_hour: quorum("DELETE FROM object_hours USING TIMESTAMP ? WHERE shard = 0 AND hour = ?").await?,
            all_slots: quorum("SELECT id, owner, high, lease, frozen FROM slots").await?,
            take_slot: conditional(
                "UPDATE slots SET owner = ?, high = ?, lease = ?, frozen = null WHERE id = ? IF owner = ? AND high = ?",
            )
            .await?,
            note_quiet: conditional("UPDATE slots SET frozen = ? WHERE id = ? IF owner = ?").await?,
            set_slot: conditional("UPDATE slots SET owner = ?, high = ? WHERE id = ? IF owner = ? AND high = ?").await?,
        })
    }
}
