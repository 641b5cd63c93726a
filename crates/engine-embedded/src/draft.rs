//! A commit group while it is decided: the database, overlaid with the changes of the group so far.
//!
//! Requests are decided one after the other, so a group has the same effect as its requests one by one. Nothing of
//! the draft is visible before the committer has made its batch durable.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::{AccountName, DateTime, Key, ServiceKind};
use rocksdb::WriteBatch;
use store::{Change, Condition, Error, Fault, RawRow, Reason, Row, RowOperation, TableRef, resolve};

use crate::catalog::{Catalog, Changes, Table};
use crate::commit::WriteOutcome;
use crate::db::Db;
use crate::fields::Fields;
use crate::layout::{self, CommitRecord, DroppingRecord, ServiceRecord, TableId, TableRecord};
use crate::prepared::{KeyCommits, PreparedRow, PreparedTransaction, RowFacts};

const TICK: Duration = Duration::from_nanos(100);

/// Bytes that the committer may merge itself in one group, because the rows were changed after they were read ahead.
/// Ordinary entities that many clients merge into stay below it.
pub const LATE_BYTES_MAX: usize = 1024 * 1024;

pub struct Draft<'a> {
    db: &'a Db,
    catalog: &'a Catalog,
    touched: &'a mut KeyCommits,
    last_commit: u64,
    /// Whether the group has several requests, so that one may need rows that another has changed.
    shared: bool,
    /// The rows that the group has changed, by stored key; `None` for a deleted row. Empty if the group has one
    /// request.
    rows: HashMap<Vec<u8>, Option<Row>>,
    /// Bytes that were merged here.
    late_bytes: usize,
    effects: Effects,
}

/// The effects of a group, which take place once it is durable.
pub struct Effects {
    pub batch: WriteBatch,
    pub changes: Changes,
    pub dropped: Vec<Arc<Table>>,
    /// The number of dropped tables whose space is reclaimed.
    pub reclaimed: usize,
    pub last_stamp: DateTime,
}

impl<'a> Draft<'a> {
    /// `bytes` is about the size of the batch that these requests make.
    pub fn new(
        db: &'a Db,
        catalog: &'a Catalog,
        touched: &'a mut KeyCommits,
        last: CommitRecord,
        requests: usize,
        bytes: usize,
    ) -> Self {
        let effects = Effects {
            batch: WriteBatch::with_capacity_bytes(bytes),
            changes: Changes::default(),
            dropped: Vec::new(),
            reclaimed: 0,
            last_stamp: last.last_stamp,
        };
        let rows = HashMap::new();
        Self {
            db,
            catalog,
            touched,
            last_commit: last.counter,
            shared: requests > 1,
            rows,
            late_bytes: 0,
            effects,
        }
    }

    pub fn into_effects(self) -> Effects {
        self.effects
    }

    /// Decides a transaction. If a condition does not hold, or the transaction is returned, the draft does not change.
    pub fn apply(&mut self, prepared: PreparedTransaction) -> Result<WriteOutcome, Error> {
        let id = self.table(&prepared.table.key).ok_or(Error::TableNotFound)?.record.id;
        let is_same_table = id == prepared.table.record.id;
        let late_bytes = self.late_bytes + self.late(&prepared)?;
        if prepared.may_return && (!is_same_table || late_bytes > LATE_BYTES_MAX) {
            self.db.counts().returned.add(1);
            return Ok(WriteOutcome::Returned(prepared.transaction));
        }
        self.late_bytes = late_bytes;
        let PreparedTransaction { transaction, mut rows, mut seen, .. } = prepared;
        let (partition, operations) = transaction.into_parts();
        if !is_same_table {
            // The table was dropped and created again since the rows were read: they are another table's.
            rows = self.read(id, &partition, &operations)?;
            seen = self.last_commit;
        }
        // With a row too few, an operation would be left out and still be answered as done.
        assert_eq!(rows.len(), operations.len(), "one row is read for each operation");
        let mut stamps = Vec::with_capacity(operations.len());
        let mut changes = Vec::with_capacity(operations.len());
        let mut stamp = next_stamp(self.effects.last_stamp);
        for (index, (operation, PreparedRow { key, facts })) in operations.into_iter().zip(rows).enumerate() {
            let outcome = self.outcome(&partition, operation, &key, facts, seen, stamp)?;
            changes.push((key, outcome.map_err(|reason| Error::Rejected { index, reason })?));
            stamps.push(stamp);
            stamp = stamp.plus(TICK);
        }
        for (key, row) in changes {
            self.put_row(key, row);
        }
        self.effects.last_stamp = stamps.last().copied().unwrap_or(self.effects.last_stamp);
        Ok(WriteOutcome::Stamped(stamps))
    }

    /// Bytes that would have to be merged here, because the rows were changed after they were read ahead.
    fn late(&self, prepared: &PreparedTransaction) -> Result<usize, Fault> {
        let mut bytes = 0;
        for (operation, PreparedRow { key, .. }) in
            prepared.transaction.operations().iter().zip(&prepared.rows)
        {
            let Change::Merge(draft) = &operation.change else { continue };
            if self.touched.since(key, prepared.seen) {
                let row = match self.rows.get(key) {
                    Some(changed) => changed.as_ref().map_or(0, |row| row.as_bytes().len()),
                    None => self.db.look(key, |row| row.map_or(0, |row| row.bytes().len()))?,
                };
                bytes += draft.len() + row;
            }
        }
        Ok(bytes)
    }

    /// Stores rows that have their timestamps already. All later timestamps are above them.
    pub fn load(
        &mut self,
        table: &TableRef,
        partition: &Key,
        rows: Vec<(Key, Option<Row>)>,
    ) -> Result<(), Error> {
        let id = self.table(&table_key(table)).ok_or(Error::TableNotFound)?.record.id;
        for (row_key, row) in rows {
            let stamp = row.as_ref().map_or(DateTime::MIN, Row::timestamp);
            self.effects.last_stamp = self.effects.last_stamp.max(stamp);
            self.put_row(id.row(partition, &row_key), row);
        }
        Ok(())
    }

    pub fn create(&mut self, table: &TableRef, metadata: Option<Bytes>) -> Result<(), Error> {
        let key = table_key(table);
        if self.table(&key).is_some() {
            return Err(Error::TableAlreadyExists);
        }
        let record = TableRecord::new(TableId::random(), table.service, table.name.clone());
        self.put_table(Table::new(key, TableRecord { metadata, ..record }));
        Ok(())
    }

    pub fn drop_table(&mut self, table: &TableRef) -> Result<(), Error> {
        let table = self.table(&table_key(table)).ok_or(Error::TableNotFound)?;
        self.drop_found(table);
        Ok(())
    }

    /// False, without a change, if the table's metadata is not the expected one.
    pub fn drop_table_if(&mut self, table: &TableRef, expected: Option<&Bytes>) -> Result<bool, Error> {
        let table = self.table(&table_key(table)).ok_or(Error::TableNotFound)?;
        let as_expected = table.record.metadata.as_ref() == expected;
        if as_expected {
            self.drop_found(table);
        }
        Ok(as_expected)
    }

    /// Deletes the table's record, hides its rows with one range tombstone, and adds a record that they still take
    /// space.
    fn drop_found(&mut self, table: Arc<Table>) {
        self.effects.batch.delete_cf(self.db.meta(), &table.key);
        self.effects.batch.put_cf(
            self.db.meta(),
            layout::dropping_key(table.record.id),
            DroppingRecord::default().encode(),
        );
        self.hide(table.record.id);
        self.effects.changes.tables.insert(table.key.clone(), None);
        self.effects.dropped.push(table);
    }

    /// False, and nothing is changed, if the table's metadata is not what was expected.
    pub fn replace_table_metadata(
        &mut self,
        table: &TableRef,
        expected: Option<&Bytes>,
        metadata: Bytes,
    ) -> Result<bool, Error> {
        let table = self.table(&table_key(table)).ok_or(Error::TableNotFound)?;
        let as_expected = table.record.metadata.as_ref() == expected;
        if as_expected {
            self.put_table(table.with_metadata(metadata));
        }
        Ok(as_expected)
    }

    /// False, without a change, if the stored metadata is not the expected one.
    pub fn replace_service_metadata(
        &mut self,
        service: ServiceKind,
        account: AccountName,
        expected: Option<&Bytes>,
        metadata: Bytes,
    ) -> bool {
        let owner = (service, account);
        let changed = self.effects.changes.services.get(&owner).cloned();
        let present = changed.or_else(|| self.catalog.service(&owner));
        if present.as_ref().map(|record| &record.document) != expected {
            return false;
        }
        let unknown = present.map_or_else(Fields::default, |record| record.unknown);
        let record = ServiceRecord { document: metadata, unknown };
        let key = layout::service_key(owner.0, &owner.1);
        self.effects.batch.put_cf(self.db.meta(), key, record.encode());
        self.effects.changes.services.insert(owner, record);
        true
    }

    /// Hides all rows of a dropped table with a range tombstone.
    pub fn hide(&mut self, id: TableId) {
        let (start, end) = id.all();
        self.effects.batch.delete_range_cf(self.db.data(), start, end);
    }

    /// Deletes the records of dropped tables whose space is reclaimed.
    ///
    /// The same batch hides their rows once more: after a crash between the deletion of the files and the next
    /// tombstone, rows may be left without a tombstone, and from now on no record says whose they are.
    pub fn forget(&mut self, ids: &[TableId]) {
        for id in ids {
            self.hide(*id);
            self.effects.batch.delete_cf(self.db.meta(), layout::dropping_key(*id));
        }
        self.effects.reclaimed += ids.len();
    }

    /// `None` deletes the row.
    fn put_row(&mut self, key: Vec<u8>, row: Option<Row>) {
        self.touched.note(&key, self.last_commit + 1);
        match &row {
            Some(row) => self.effects.batch.put_cf(self.db.data(), &key, row.as_bytes()),
            None => self.effects.batch.delete_cf(self.db.data(), &key),
        }
        if self.shared {
            self.rows.insert(key, row);
        }
    }

    fn put_table(&mut self, table: Table) {
        self.effects.batch.put_cf(self.db.meta(), &table.key, table.record.encode());
        self.effects.changes.tables.insert(table.key.clone(), Some(Arc::new(table)));
    }

    fn table(&self, key: &[u8]) -> Option<Arc<Table>> {
        match self.effects.changes.tables.get(key) {
            Some(changed) => changed.clone(),
            None => self.catalog.table_by_key(key),
        }
    }

    /// Reads the rows that the operations need, as of the last commit.
    fn read(
        &self,
        table: TableId,
        partition: &Key,
        operations: &[RowOperation],
    ) -> Result<Vec<PreparedRow>, Fault> {
        let read = |operation: &RowOperation| {
            let key = table.row(partition, &operation.row);
            let needed = needs_current(operation);
            let facts = |row: Option<RawRow<'_>>| RowFacts::of(partition, operation, row);
            let facts = if needed { self.db.look(&key, facts)?? } else { RowFacts::NotAsked };
            Ok(PreparedRow { key, facts })
        };
        operations.iter().map(read).collect()
    }

    /// What the operation makes of its row. It uses what was read ahead or, if the row was changed since, the row as
    /// it is now in this group. Every row that this group has changed counts as changed since, so other rows need not
    /// be looked up among its changes.
    fn outcome(
        &self,
        partition: &Key,
        operation: RowOperation,
        key: &[u8],
        facts: RowFacts,
        seen: u64,
        stamp: DateTime,
    ) -> Result<Result<Option<Row>, Reason>, Fault> {
        let is_touched = !matches!(facts, RowFacts::NotAsked) && self.touched.since(key, seen);
        if is_touched {
            self.db.counts().late_merges.add(usize::from(matches!(operation.change, Change::Merge(_))));
            return match self.rows.get(key) {
                Some(changed) => {
                    let current = changed.as_ref().map(|row| RawRow::new(row.as_bytes()));
                    resolve(partition, operation, current, stamp)
                }
                None => self.db.look(key, |current| resolve(partition, operation, current, stamp))?,
            };
        }
        let current = match &facts {
            RowFacts::NotAsked => None,
            RowFacts::Stamp(current) => *current,
            RowFacts::Merged(current, _) => Some(*current),
        };
        if let Err(reason) = operation.condition.judge(current) {
            return Ok(Err(reason));
        }
        Ok(match (operation.change, facts) {
            (Change::Delete, _) => Ok(None),
            (Change::Merge(_), RowFacts::Merged(_, merged)) => merged.map(|merged| Some(merged.stamp(stamp))),
            (Change::Merge(_), RowFacts::Stamp(Some(_)) | RowFacts::NotAsked) => {
                return Err(Fault::bug("a merge reached the committer without the row it merges into"));
            }
            (Change::Put(draft) | Change::Merge(draft), _) => Ok(Some(draft.stamp(stamp))),
        })
    }
}

fn table_key(table: &TableRef) -> Vec<u8> {
    layout::table_key(&table.account, &table.stored_name())
}

/// Whether the outcome depends on the present row.
pub fn needs_current(operation: &RowOperation) -> bool {
    let unconditional = matches!(operation.condition, Condition::Anything);
    !(unconditional && matches!(operation.change, Change::Put(_) | Change::Delete))
}

/// The current time, or one tick after the last timestamp if the clock is not past that.
fn next_stamp(last: DateTime) -> DateTime {
    DateTime::now().max(last.plus(TICK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_grow_even_if_the_clock_stops_or_is_set_back() {
        let tomorrow = DateTime::now().plus(Duration::from_secs(86_400));
        let first = next_stamp(tomorrow);
        assert_eq!(first.ticks(), tomorrow.ticks() + 1);
        assert_eq!(next_stamp(first).ticks(), first.ticks() + 1);
        assert!(next_stamp(DateTime::MIN) > DateTime::parse("2020-01-01").unwrap());
    }
}
