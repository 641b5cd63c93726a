//! What a store says of its tables, and what makes a row of them a sound one.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use model::{AccountName, DateTime, ServiceKind};
use store::{RowView, encoding};

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
    /// How many of them are in the layout of an older format.
    pub outdated: usize,
}

impl Records {
    /// Takes one more, of any format, if it can be read and does not contradict those before it.
    pub fn take(&mut self, key: &[u8], value: &[u8]) -> Result<(), Unusable> {
        match MetaKey::read(key)? {
            MetaKey::Commit => self.last = Some(CommitRecord::decode(value).ok_or(Unusable::Damaged)?),
            MetaKey::Dropping(id) => {
                DroppingRecord::decode(value)?;
                self.dropping.insert(id);
            }
            MetaKey::Service(service, account) => {
                let record = ServiceRecord::decode(value)?;
                // Under a key of format 1 and under one of format 2: the one read first stays.
                match self.services.entry((service, account)) {
                    Entry::Vacant(place) => place.insert(record),
                    Entry::Occupied(_) => return Err(Unusable::Damaged),
                };
            }
            MetaKey::Table => {
                let (account, stored_name) = layout::read_table_key(key).ok_or(Unusable::Damaged)?;
                let record = TableRecord::decode(value)?;
                // Two tables with the same rows: the first one keeps them.
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

    /// A row by its name, whether or not its table's is known.
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

/// The table and the row, if key and row are what this crate would have written.
pub fn check_row<'a>(key: &[u8], value: &'a [u8]) -> Result<(TableId, RowView<'a>), String> {
    let (id, rest) = TableId::split(key).ok_or_else(|| format!("the key {key:02x?} is too short"))?;
    let entity = encoding::key::decode_key(rest).map_err(|fault| fault.happened())?;
    if encoding::key::encode(&entity) != rest {
        return Err("its key is not written as it should be".to_owned());
    }
    let row = RowView::open(value).map_err(|fault| fault.happened())?;
    entity
        .check_properties(row.properties())
        .map_err(|refusal| format!("a row beyond the limits: {refusal}"))?;
    if row.timestamp() < DateTime::MIN_STORED {
        return Err("its timestamp is before any there can be".to_owned());
    }
    Ok((id, row))
}
