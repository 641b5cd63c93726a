//! Secondary indexes across partitions: a copy of the entity, under another partition key or in another table.

use std::time::Duration;

use futures_util::TryStreamExt as _;
use serde::de::DeserializeOwned;

use super::collect;
use super::index_key::IndexKey;
use super::indexed::{Reference, VERSION};
use super::outbox::Outbox;
use super::parts;
use super::steps::OutboxStep;
use partita_client::{Entity, Error, Filter, Result, StoredEntity, partition_key, property};

/// The keys of the entity that an entry is a copy of.
const PARTITION: &str = "IndexedPartition";
const ROW: &str = "IndexedRow";
/// False for the mark of a removed entry.
const LIVE: &str = "IndexLive";

/// An index with a copy of the entity for each value, for an [`IndexedTable`](super::indexed::IndexedTable).
///
/// All entities with the same value are in one partition of the index's table, `name~value`; several indexes can share a
/// table, even with the entities themselves.
#[derive(Clone, Debug)]
#[must_use]
pub struct InterIndex {
    name: String,
    table: String,
    key: IndexKey,
}

impl InterIndex {
    /// An index with its name, its table and its key.
    pub fn new(name: impl Into<String>, table: impl Into<String>, key: impl Into<IndexKey>) -> Self {
        Self { name: name.into(), table: table.into(), key: key.into() }
    }

    /// The name for look-ups.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the index's table.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// The value under which the index has this entity.
    pub fn value(&self, entity: &Entity) -> Option<String> {
        self.key.value(entity)
    }

    /// The copies in the index, without reading the entities: one range of one partition. A copy may be outdated, and for a
    /// moment an entity may have two copies, an old and a new one.
    pub async fn copies<T: DeserializeOwned>(&self, outbox: &Outbox, value: &str) -> Result<Vec<T>> {
        let entries = self.entries(outbox, value).await?;
        entries.into_iter().map(|entry| restore(entry)?.into_typed()).collect()
    }

    pub(crate) fn put(&self, value: &str, reference: &Reference, entity: &Entity) -> Result<OutboxStep> {
        let mut entry = self.entry(value, reference, true);
        for (name, value) in &entity.properties {
            entry.properties.entry(name.clone()).or_insert_with(|| value.clone());
        }
        // If the row exists, it is this entry or the mark of its removal.
        OutboxStep::insert_if_absent(&self.table, &entry)
    }

    pub(crate) fn bury(&self, value: &str, reference: &Reference) -> Result<OutboxStep> {
        // The mark is the last write to this key, so a late repetition changes nothing.
        OutboxStep::upsert(&self.table, &self.entry(value, reference, false))
    }

    fn entry(&self, value: &str, reference: &Reference, live: bool) -> Entity {
        let Reference { partition_key, row_key, version } = reference;
        Entity::new(self.partition(value), parts::join([partition_key.as_str(), row_key, version]))
            .with(PARTITION, partition_key.as_str())
            .with(ROW, row_key.as_str())
            .with(VERSION, version.as_str())
            .with(LIVE, live)
    }

    fn partition(&self, value: &str) -> String {
        parts::join([self.name.as_str(), value])
    }

    pub(crate) async fn references(&self, outbox: &Outbox, value: &str) -> Result<Vec<Reference>> {
        let entries = self.entries(outbox, value).await?;
        let references = entries.into_iter().map(|entry| {
            let text = |name: &str| entry.text(name).map(str::to_owned).ok_or_else(|| no_entry(&entry));
            Ok(Reference { partition_key: text(PARTITION)?, row_key: text(ROW)?, version: text(VERSION)? })
        });
        references.collect()
    }

    async fn entries(&self, outbox: &Outbox, value: &str) -> Result<Vec<Entity>> {
        let of_value = partition_key().eq(self.partition(value)).and(property(LIVE).eq(true));
        let query = outbox.table_of(&self.table)?.query().filter(of_value);
        query.stream::<Entity>().map_ok(StoredEntity::into_inner).try_collect().await
    }

    pub(crate) async fn collect(&self, outbox: &Outbox, older_than: Duration) -> Result<u64> {
        let marks = self.all().and(property(LIVE).eq(false));
        collect::collect(&outbox.table_of(&self.table)?, marks, older_than).await
    }

    /// All partitions of this index.
    fn all(&self) -> Filter {
        partition_key().starts_with(&format!("{}~", parts::escape(&self.name)))
    }
}

/// The entity that the entry is a copy of.
fn restore(mut entry: Entity) -> Result<Entity> {
    entry.remove(LIVE);
    match (entry.remove(PARTITION), entry.remove(ROW)) {
        (Some(model::Value::String(partition)), Some(model::Value::String(row))) => {
            (entry.partition_key, entry.row_key) = (partition, row);
            Ok(entry)
        }
        _ => Err(no_entry(&entry)),
    }
}

fn no_entry(entity: &Entity) -> Error {
    Error::Unreadable(format!(
        "the row {:?} of partition {:?} is not an index entry, but is among them",
        entity.row_key, entity.partition_key
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_the_entity_again() {
        let index = InterIndex::new("email", "EmployeesBy", "Email");
        let jones = Entity::new("Sales", "000223").with("Email", "j@x").with(VERSION, "v1");
        let reference = Reference {
            partition_key: "Sales".to_owned(),
            row_key: "000223".to_owned(),
            version: "v1".to_owned(),
        };
        let mut entry = index.entry("j@x", &reference, true);
        assert_eq!((entry.partition_key.as_str(), entry.row_key.as_str()), ("email~j@x", "Sales~000223~v1"));
        entry.set("Email", "j@x");
        assert_eq!(restore(entry).unwrap(), jones);
        assert!(restore(Entity::new("p", "r")).unwrap_err().to_string().contains("is not an index entry"));
    }
}
