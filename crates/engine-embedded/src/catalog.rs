//! Which tables there are: the meta records, in memory.
//!
//! All threads read it. Only the committer changes it, and only after the change is durable. So everything in it
//! survives a crash.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use model::{AccountName, ServiceKind};
use parking_lot::RwLock;
use store::encoding::table_name;
use store::{StoredName, TableRef, TablesPage};

use crate::layout::{self, ServiceRecord, TableRecord};
use crate::records::Records;

/// A table. A change of its metadata makes another value with the same id.
#[derive(Debug)]
pub struct Table {
    /// The key of its meta record.
    pub key: Vec<u8>,
    pub record: TableRecord,
    doomed: Arc<AtomicBool>,
}

impl Table {
    pub fn new(key: Vec<u8>, record: TableRecord) -> Self {
        Self { key, record, doomed: Arc::default() }
    }

    pub fn with_metadata(&self, metadata: Bytes) -> Self {
        let record = TableRecord { metadata: Some(metadata), ..self.record.clone() };
        Self { key: self.key.clone(), record, doomed: self.doomed.clone() }
    }

    /// Called before the drop is written, so that a reader that sees effects of the drop also sees this mark.
    pub fn doom(&self) {
        self.doomed.store(true, Ordering::SeqCst);
    }

    pub fn is_doomed(&self) -> bool {
        self.doomed.load(Ordering::SeqCst)
    }
}

/// The changes of one commit group, published together. `None` drops the table.
#[derive(Debug, Default)]
pub struct Changes {
    pub tables: HashMap<Vec<u8>, Option<Arc<Table>>>,
    pub services: HashMap<(ServiceKind, AccountName), ServiceRecord>,
}

#[derive(Debug, Default)]
pub struct Catalog {
    tables: RwLock<BTreeMap<Vec<u8>, Arc<Table>>>,
    services: RwLock<HashMap<(ServiceKind, AccountName), ServiceRecord>>,
}

impl Catalog {
    /// The catalog of the meta records of a store.
    pub fn new(records: Records) -> Self {
        let mut changes = Changes { services: records.services.into_iter().collect(), ..Changes::default() };
        for (account, record) in records.tables.into_values() {
            let key = layout::table_key(&account, &record.stored_name());
            changes.tables.insert(key.clone(), Some(Arc::new(Table::new(key, record))));
        }
        let catalog = Self::default();
        catalog.publish(changes);
        catalog
    }

    pub fn table(&self, table: &TableRef) -> Option<Arc<Table>> {
        self.table_by_key(&layout::table_key(&table.account, &table.stored_name()))
    }

    pub fn table_by_key(&self, key: &[u8]) -> Option<Arc<Table>> {
        self.tables.read().get(key).cloned()
    }

    pub fn service(&self, owner: &(ServiceKind, AccountName)) -> Option<ServiceRecord> {
        self.services.read().get(owner).cloned()
    }

    /// The accounts that have tables or service metadata, in order.
    pub fn accounts(&self) -> Vec<AccountName> {
        let mut found: BTreeSet<AccountName> =
            self.services.read().keys().map(|(_, account)| account.clone()).collect();
        let tables = self.tables.read();
        // Only keys that could be read are in the map.
        found.extend(tables.keys().filter_map(|key| Some(layout::read_table_key(key)?.0)));
        found.into_iter().collect()
    }

    pub fn list(&self, account: &AccountName, service: ServiceKind, from: &str, limit: usize) -> TablesPage {
        let tables = self.tables.read();
        let (start, end) = table_name::range(service, from);
        let mut names: Vec<StoredName> = Vec::new();
        if start >= end {
            return TablesPage { names, next: None };
        }
        let range = layout::table_key(account, &start)..layout::table_key(account, &end);
        for table in tables.range(range).map(|(_, table)| table) {
            let name = &table.record.name;
            if names.len() == limit {
                return TablesPage { names, next: Some(name.folded().to_owned()) };
            }
            names.push(name.clone());
        }
        TablesPage { names, next: None }
    }

    pub fn publish(&self, changes: Changes) {
        if !changes.tables.is_empty() {
            let mut tables = self.tables.write();
            for (key, table) in changes.tables {
                match table {
                    Some(table) => tables.insert(key, table),
                    None => tables.remove(&key),
                };
            }
        }
        if !changes.services.is_empty() {
            self.services.write().extend(changes.services);
        }
    }
}
