//! A group of requests being judged: what is in the database, overlaid with what the group has changed so far.
//!
//! Judging is sequential, so a group means what its requests would mean one after the other. Nothing leaves
//! this draft before the committer has made its batch durable.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::{AccountName, DateTime, Key, ServiceKind};
use rocksdb::WriteBatch;
use store::{Change, Condition, Error, Fault, Operation, RawRow, Reason, Row, TableRef, resolve};

use crate::ahead::{Ahead, Found, FoundRow, Touched};
use crate::catalog::{Catalog, Changes, Table};
use crate::db::Db;
use crate::fields::Fields;
use crate::layout::{self, CommitRecord, DroppingRecord, ServiceRecord, TableId, TableRecord};

const TICK: Duration = Duration::from_nanos(100);

pub struct Draft<'a> {
    db: &'a Db,
    catalog: &'a Catalog,
    touched: &'a mut Touched,
    last_commit: u64,
    /// Whether a request may meet rows that another one of the group has changed.
    shared: bool,
    /// By stored key, as the group has left them; without a value: deleted. Empty if nobody can ask.
    rows: HashMap<Vec<u8>, Option<Row>>,
    effects: Effects,
}

/// What a group does, once it is durable.
pub struct Effects {
    pub batch: WriteBatch,
    pub changes: Changes,
    pub dropped: Vec<Arc<Table>>,
    /// Dropped tables of earlier groups whose space is back.
    pub reclaimed: usize,
    pub last_stamp: DateTime,
}

impl<'a> Draft<'a> {
    /// For a group of this many requests, which take about this many bytes.
    pub fn new(
        db: &'a Db,
        catalog: &'a Catalog,
        touched: &'a mut Touched,
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
        Self { db, catalog, touched, last_commit: last.counter, shared: requests > 1, rows, effects }
    }

    pub fn into_effects(self) -> Effects {
        self.effects
    }

    /// The timestamps given, if every condition holds; else the draft is as it was.
    pub fn apply(&mut self, ahead: Ahead) -> Result<Vec<DateTime>, Error> {
        let Ahead { table, transaction, mut rows, mut seen } = ahead;
        let id = self.table(&table.key).ok_or(Error::TableNotFound)?.record.id;
        let (partition, operations) = transaction.into_parts();
        if id != table.record.id {
            // Dropped and created anew since the rows were read: those were another table's.
            rows = self.read(id, &partition, &operations)?;
            seen = self.last_commit;
        }
        // A row that is missing here would leave an operation out and answer that it was done.
        assert_eq!(rows.len(), operations.len(), "one row is read for each operation");
        let mut stamps = Vec::with_capacity(operations.len());
        let mut changes = Vec::with_capacity(operations.len());
        let mut stamp = next_stamp(self.effects.last_stamp);
        for (index, (operation, FoundRow { key, found })) in operations.into_iter().zip(rows).enumerate() {
            let outcome = self.outcome(&partition, operation, &key, found, seen, stamp)?;
            changes.push((key, outcome.map_err(|reason| Error::Rejected { index, reason })?));
            stamps.push(stamp);
            stamp = stamp.plus(TICK);
        }
        for (key, row) in changes {
            self.put_row(key, row);
        }
        self.effects.last_stamp = stamps.last().copied().unwrap_or(self.effects.last_stamp);
        Ok(stamps)
    }

    /// Rows that have their timestamps already. Every later one is above them.
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

    /// Its name goes, its rows are hidden by one range tombstone, and a record says that they are still there.
    pub fn drop_table(&mut self, table: &TableRef) -> Result<(), Error> {
        let table = self.table(&table_key(table)).ok_or(Error::TableNotFound)?;
        self.effects.batch.delete_cf(self.db.meta(), &table.key);
        self.effects.batch.put_cf(
            self.db.meta(),
            layout::dropping_key(table.record.id),
            DroppingRecord::default().encode(),
        );
        self.hide(table.record.id);
        self.effects.changes.tables.insert(table.key.clone(), None);
        self.effects.dropped.push(table);
        Ok(())
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

    /// False, and nothing is changed, if the service's metadata is not what was expected.
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

    /// Puts a range tombstone above all rows of a dropped table.
    pub fn hide(&mut self, id: TableId) {
        let (start, end) = id.all();
        self.effects.batch.delete_range_cf(self.db.data(), start, end);
    }

    /// A dropped table's space is back: nothing is left to remember.
    ///
    /// What may be left of it is hidden with the same batch. A crash between the deletion of its files and the
    /// tombstone that was to follow has left rows without one, and after this no record would tell whose they are.
    pub fn forget(&mut self, ids: &[TableId]) {
        for id in ids {
            self.hide(*id);
            self.effects.batch.delete_cf(self.db.meta(), layout::dropping_key(*id));
        }
        self.effects.reclaimed += ids.len();
    }

    /// Without a value: deleted.
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

    /// The rows the operations will be judged by, as the last commit left them.
    fn read(
        &self,
        table: TableId,
        partition: &Key,
        operations: &[Operation],
    ) -> Result<Vec<FoundRow>, Fault> {
        let read = |operation: &Operation| {
            let key = table.row(partition, &operation.row);
            let needed = needs_current(operation);
            let found = |row: Option<RawRow<'_>>| Found::of(partition, operation, row);
            let found = if needed { self.db.look(&key, found)?? } else { Found::NotAsked };
            Ok(FoundRow { key, found })
        };
        operations.iter().map(read).collect()
    }

    /// What the operation makes of its row: from what was found ahead, or, if that was changed since, from the row as
    /// the group has left it so far. What this group has changed is touched since every commit there was, so an
    /// untouched row is not looked for among its changes.
    fn outcome(
        &self,
        partition: &Key,
        operation: Operation,
        key: &[u8],
        found: Found,
        seen: u64,
        stamp: DateTime,
    ) -> Result<Result<Option<Row>, Reason>, Fault> {
        let is_touched = !matches!(found, Found::NotAsked) && self.touched.since(key, seen);
        if is_touched {
            return match self.rows.get(key) {
                Some(changed) => {
                    let current = changed.as_ref().map(|row| RawRow::new(row.as_bytes()));
                    resolve(partition, operation, current, stamp)
                }
                None => self.db.look(key, |current| resolve(partition, operation, current, stamp))?,
            };
        }
        let current = match &found {
            Found::NotAsked => None,
            Found::Stamp(current) => *current,
            Found::Merged(current, _) => Some(*current),
        };
        if let Err(reason) = operation.condition.judge(current) {
            return Ok(Err(reason));
        }
        Ok(match (operation.change, found) {
            (Change::Delete, _) => Ok(None),
            (Change::Merge(_), Found::Merged(_, merged)) => merged.map(|merged| Some(merged.stamp(stamp))),
            (Change::Merge(_), Found::Stamp(Some(_)) | Found::NotAsked) => {
                return Err(Fault::bug("a merge reached the committer without the row it merges into"));
            }
            (Change::Put(draft) | Change::Merge(draft), _) => Ok(Some(draft.stamp(stamp))),
        })
    }
}

fn table_key(table: &TableRef) -> Vec<u8> {
    layout::table_key(&table.account, &table.stored_name())
}

/// Whether the present row makes a difference to what becomes of it.
pub fn needs_current(operation: &Operation) -> bool {
    let unconditional = matches!(operation.condition, Condition::Anything);
    !(unconditional && matches!(operation.change, Change::Put(_) | Change::Delete))
}

/// Now, or a tick after the last stamp if the clock has not moved past it, or was set back.
fn next_stamp(last: DateTime) -> DateTime {
    DateTime::now().max(last.plus(TICK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_grow_though_the_clock_stands_or_was_set_back() {
        let tomorrow = DateTime::now().plus(Duration::from_secs(86_400));
        let first = next_stamp(tomorrow);
        assert_eq!(first.ticks(), tomorrow.ticks() + 1);
        assert_eq!(next_stamp(first).ticks(), first.ticks() + 1);
        assert!(next_stamp(DateTime::MIN) > DateTime::parse("2020-01-01").unwrap());
    }
}
