//! The meta records of a store, and the check of a row.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use model::{AccountName, DateTime, Refusal, ServiceKind};
use store::{Fault, RowView, encoding};
use thiserror::Error;

use crate::fields::Unusable;
use crate::layout::{self, CommitRecord, DroppingRecord, MetaKey, ServiceRecord, TableId, TableRecord};
use crate::report::RowPlace;

/// The meta records.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Records {
    pub tables: HashMap<TableId, (AccountName, TableRecord)>,
    pub services: BTreeMap<(ServiceKind, AccountName), ServiceRecord>,
    pub dropping: HashSet<TableId>,
    pub last: Option<CommitRecord>,
    /// The number of records in the layout of an older format.
    pub outdated: usize,
}

impl Records {
    /// Adds a record of any format, if it can be read and does not contradict an earlier one.
    pub fn take(&mut self, key: &[u8], value: &[u8]) -> Result<(), Unusable> {
        match MetaKey::read(key)? {
            MetaKey::Commit => self.last = Some(CommitRecord::decode(value).ok_or(Unusable::Damaged)?),
            MetaKey::Dropping(id) => {
                DroppingRecord::decode(value)?;
                self.dropping.insert(id);
            }
            MetaKey::Service(service, account) => {
                let record = ServiceRecord::decode(value)?;
                // There may be a record under a key of format 1 and another under one of format 2. The first is kept.
                match self.services.entry((service, account)) {
                    Entry::Vacant(place) => place.insert(record),
                    Entry::Occupied(_) => return Err(Unusable::Damaged),
                };
            }
            MetaKey::Table => {
                let (account, stored_name) = layout::read_table_key(key).ok_or(Unusable::Damaged)?;
                let record = TableRecord::decode(value)?;
                // Two tables can't have the same rows. The first is kept.
                if record.stored_name() != stored_name || self.tables.contains_key(&record.id) {
                    return Err(Unusable::Damaged);
                }
                self.tables.insert(record.id, (account, record));
            }
        }
        self.outdated += usize::from(layout::is_outdated(key, value));
        Ok(())
    }

    pub fn count(&self) -> usize {
        self.tables.len() + self.services.len() + self.dropping.len() + usize::from(self.last.is_some())
    }

    /// The name of a row, with the id of its table if no record names that.
    pub fn place(&self, key: &[u8]) -> Option<RowPlace> {
        let (id, rest) = TableId::split(key)?;
        let (account, table) = match self.tables.get(&id) {
            Some((account, record)) => {
                (Some(account.to_string()), store::place_of(record.service, record.name.as_str()))
            }
            None => (None, id.to_string()),
        };
        let (partition, row) = encoding::key::decode(rest).ok()?;
        let (partition_key, row_key) = (partition.into_owned(), row.into_owned());
        Some(RowPlace { account, table, partition_key, row_key })
    }
}

/// Why a row is not one that this crate has written.
#[derive(Debug, Error)]
pub enum RowError {
    #[error("the key {0:02x?} is too short")]
    ShortKey(Vec<u8>),
    #[error("{}", .0.happened())]
    Unreadable(#[from] Fault),
    #[error("its key is not written as it should be")]
    KeyForm,
    #[error("no entity can have its key")]
    NotAnEntity,
    #[error("a row beyond the limits: {0}")]
    OverLimit(Refusal),
    #[error("its timestamp is before any there can be")]
    Timestamp,
}

/// The table and the row, if this crate can have written them. Without a record, the service of a table is not known.
pub fn check_row<'a>(
    records: &Records,
    key: &[u8],
    value: &'a [u8],
) -> Result<(TableId, RowView<'a>), RowError> {
    let (id, rest) = TableId::split(key).ok_or_else(|| RowError::ShortKey(key.to_vec()))?;
    let entity = encoding::key::decode_key(rest)?;
    if encoding::key::encode(&entity) != rest {
        return Err(RowError::KeyForm);
    }
    let service = records.tables.get(&id).map(|(_, record)| record.service);
    if service == Some(ServiceKind::Table) && !entity.is_entity_key() {
        return Err(RowError::NotAnEntity);
    }
    let row = RowView::open(value)?;
    entity.check_properties(row.properties()).map_err(RowError::OverLimit)?;
    if row.timestamp() < DateTime::MIN_STORED {
        return Err(RowError::Timestamp);
    }
    Ok((id, row))
}
