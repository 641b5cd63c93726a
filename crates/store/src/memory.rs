//! The in-memory engine, for tests and for `--in-memory`. Its data is gone when the process ends.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use model::{AccountName, DateTime, EntityKey, Key, KeyRange, ServiceKind};

use crate::encoding::{key, table_name};
use crate::{
    Engine, Error, Fault, Page, PageBuilder, RawRow, Row, Scan, StoredName, StoredRow, TableEstimate,
    TableRef, TablesPage, Transaction, resolve,
};

/// Rows whose size an estimate adds up.
const SIZED_ROWS: usize = 100;

/// One lock around two maps: so simple that the other engines can be compared with it.
#[derive(Debug, Default)]
pub struct MemoryEngine {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By account and stored name.
    tables: BTreeMap<(AccountName, String), Table>,
    services: BTreeMap<(AccountName, ServiceKind), Bytes>,
    last_stamp: Option<DateTime>,
    closed: bool,
}

#[derive(Debug)]
struct Table {
    name: StoredName,
    rows: BTreeMap<Vec<u8>, Row>,
    metadata: Option<Bytes>,
}

impl State {
    fn table(&mut self, table: &TableRef) -> Result<&mut Table, Error> {
        self.tables.get_mut(&id(table)).ok_or(Error::TableNotFound)
    }
}

fn id(table: &TableRef) -> (AccountName, String) {
    (table.account.clone(), table.stored_name().into_owned())
}

impl MemoryEngine {
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> Result<MutexGuard<'_, State>, Error> {
        // The maps are consistent after every statement, so a poisoned lock is harmless.
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.closed { Err(Fault::closed().into()) } else { Ok(state) }
    }
}

#[async_trait]
impl Engine for MemoryEngine {
    async fn create_table(&self, table: &TableRef, metadata: Option<Bytes>) -> Result<(), Error> {
        let mut state = self.state()?;
        if state.tables.contains_key(&id(table)) {
            return Err(Error::TableAlreadyExists);
        }
        let created = Table { name: table.name.clone(), rows: BTreeMap::new(), metadata };
        state.tables.insert(id(table), created);
        Ok(())
    }

    async fn drop_table(&self, table: &TableRef) -> Result<(), Error> {
        self.state()?.tables.remove(&id(table)).map(drop).ok_or(Error::TableNotFound)
    }

    async fn drop_table_if(&self, table: &TableRef, expected: Option<Bytes>) -> Result<bool, Error> {
        let mut state = self.state()?;
        let as_expected = state.table(table)?.metadata == expected;
        if as_expected {
            state.tables.remove(&id(table));
        }
        Ok(as_expected)
    }

    async fn find_table(&self, table: &TableRef) -> Result<StoredName, Error> {
        self.state()?.table(table).map(|found| found.name.clone())
    }

    async fn list_tables(
        &self,
        account: &AccountName,
        service: ServiceKind,
        from: &str,
        limit: usize,
    ) -> Result<TablesPage, Error> {
        let state = self.state()?;
        let mut names = Vec::new();
        let (start, end) = table_name::range(service, from);
        if start >= end {
            return Ok(TablesPage { names, next: None });
        }
        for table in
            state.tables.range((account.clone(), start)..(account.clone(), end)).map(|(_, table)| table)
        {
            if names.len() == limit {
                return Ok(TablesPage { names, next: Some(table.name.folded().to_owned()) });
            }
            names.push(table.name.clone());
        }
        Ok(TablesPage { names, next: None })
    }

    async fn get(&self, table: &TableRef, key: &EntityKey) -> Result<Option<StoredRow>, Error> {
        let mut state = self.state()?;
        let found = state.table(table)?.rows.get(&key::encode(key));
        Ok(found.map(|row| StoredRow::new(row.as_bytes().to_vec())))
    }

    async fn scan(&self, table: &TableRef, scan: Scan) -> Result<Page, Error> {
        let mut state = self.state()?;
        let rows = &state.table(table)?.rows;
        let mut page = PageBuilder::new(&scan);
        'page: for range in &scan.ranges {
            let Some(bounds) = bounds(range) else { continue };
            for (key, row) in rows.range(bounds) {
                if !page.offer(key, row.as_bytes())? {
                    break 'page;
                }
            }
        }
        Ok(page.finish())
    }

    async fn apply(&self, table: &TableRef, transaction: Transaction) -> Result<Vec<DateTime>, Error> {
        let mut state = self.state()?;
        let mut stamp = state.last_stamp;
        let rows = &mut state.table(table)?.rows;
        let (mut stamps, mut changes) = (Vec::new(), Vec::new());
        let (partition, operations) = transaction.into_parts();
        for (index, operation) in operations.into_iter().enumerate() {
            let next = next_stamp(stamp);
            let mut key = Vec::new();
            key::append(&mut key, partition.as_str(), operation.row.as_str());
            let current = rows.get(&key).map(|row| RawRow::new(row.as_bytes()));
            let outcome = resolve(&partition, operation, current, next)?;
            changes.push((key, outcome.map_err(|reason| Error::Rejected { index, reason })?));
            stamps.push(next);
            stamp = Some(next);
        }
        for (key, change) in changes {
            match change {
                Some(row) => rows.insert(key, row),
                None => rows.remove(&key),
            };
        }
        state.last_stamp = stamp;
        Ok(stamps)
    }

    async fn table_metadata(&self, table: &TableRef) -> Result<Option<Bytes>, Error> {
        Ok(self.state()?.table(table)?.metadata.clone())
    }

    async fn replace_table_metadata(
        &self,
        table: &TableRef,
        expected: Option<Bytes>,
        metadata: Bytes,
    ) -> Result<bool, Error> {
        let mut state = self.state()?;
        let table = state.table(table)?;
        let as_expected = table.metadata == expected;
        if as_expected {
            table.metadata = Some(metadata);
        }
        Ok(as_expected)
    }

    async fn service_metadata(
        &self,
        account: &AccountName,
        service: ServiceKind,
    ) -> Result<Option<Bytes>, Error> {
        Ok(self.state()?.services.get(&(account.clone(), service)).cloned())
    }

    async fn replace_service_metadata(
        &self,
        account: &AccountName,
        service: ServiceKind,
        expected: Option<Bytes>,
        metadata: Bytes,
    ) -> Result<bool, Error> {
        let mut state = self.state()?;
        let owner = (account.clone(), service);
        let as_expected = state.services.get(&owner) == expected.as_ref();
        if as_expected {
            state.services.insert(owner, metadata);
        }
        Ok(as_expected)
    }

    async fn list_accounts(&self) -> Result<Vec<AccountName>, Error> {
        let state = self.state()?;
        let documents = state.services.keys().map(|(account, _)| account);
        let owners = state.tables.keys().map(|(account, _)| account).chain(documents);
        Ok(owners.collect::<BTreeSet<_>>().into_iter().cloned().collect())
    }

    async fn load(
        &self,
        table: &TableRef,
        partition: &Key,
        rows: Vec<(Key, Option<StoredRow>)>,
    ) -> Result<(), Error> {
        let rows = rows.into_iter().map(|(row, stored)| Ok((row, stored.map(StoredRow::open).transpose()?)));
        let rows: Vec<(Key, Option<Row>)> = rows.collect::<Result<_, Fault>>()?;
        let mut state = self.state()?;
        let latest = rows.iter().filter_map(|(_, row)| Some(row.as_ref()?.timestamp())).max();
        let stored = &mut state.table(table)?.rows;
        for (row_key, row) in rows {
            let mut key = Vec::new();
            key::append(&mut key, partition.as_str(), row_key.as_str());
            match row {
                Some(row) => stored.insert(key, row),
                None => stored.remove(&key),
            };
        }
        state.last_stamp = state.last_stamp.max(latest);
        Ok(())
    }

    async fn estimate_table(
        &self,
        table: &TableRef,
        within: &KeyRange,
        _: u64,
    ) -> Result<Option<TableEstimate>, Error> {
        let mut state = self.state()?;
        let rows = &state.table(table)?.rows;
        let Some(bounds) = bounds(within) else { return Ok(Some(TableEstimate::default())) };
        // The map knows how many it has in all.
        let count = match *within == KeyRange::all() {
            true => rows.len(),
            false => rows.range(bounds.clone()).count(),
        };
        // The size of a few is taken for that of all, because everybody waits meanwhile.
        let few = rows.range(bounds).take(SIZED_ROWS);
        let few: u64 = few.map(|(key, row)| (key.len() + row.as_bytes().len()) as u64).sum();
        let (count, sized) = (count as u64, count.min(SIZED_ROWS) as u64);
        Ok(Some(TableEstimate { rows: count, bytes: few * count / sized.max(1), read: 0 }))
    }

    fn check_health(&self) -> Result<(), Fault> {
        match self.state() {
            Err(Error::Fault(fault)) => Err(fault),
            _ => Ok(()),
        }
    }

    async fn close(&self) {
        if let Ok(mut state) = self.state() {
            state.closed = true;
        }
    }
}

type KeyBound = Bound<Vec<u8>>;

/// The stored keys of a range; `None` if nothing can lie in it.
fn bounds(range: &KeyRange) -> Option<(KeyBound, KeyBound)> {
    let (start, end) = key::encode_range(range)?;
    let end = end.map_or(Bound::Unbounded, Bound::Excluded);
    let is_empty = matches!(&end, Bound::Excluded(end) if *end <= start);
    (!is_empty).then_some((Bound::Included(start), end))
}

/// The current time, or one tick after the last timestamp if the clock is not past that.
fn next_stamp(last: Option<DateTime>) -> DateTime {
    let now = DateTime::now();
    match last {
        Some(last) if now <= last => last.plus(std::time::Duration::from_nanos(100)),
        _ => now,
    }
}
