//! Index entities: for each value, a list of the keys of the entities that have it.
//!
//! The list is in another partition or table, and is updated eventually ([`ListIndex`]); or it is in the entities' own
//! partition, and is updated in the same transaction ([`PartitionLists`]). A list is one entity, so its size is limited. The
//! error of a full list says what to do.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::index_key::IndexKey;
use super::indexed::Reference;
use super::key_list::KeyList;
use super::outbox::Outbox;
use super::parts;
use super::steps::{OVERTAKEN_MAX, OutboxStep, is_overtaken, overtaken, step_aside};
use partita_client::{ETag, Entity, Error, Match, Result, StoredEntity, Table, Transaction, partition_key};

/// An index with a list of keys for each value, for an [`IndexedTable`](super::indexed::IndexedTable).
///
/// The list of a value is one entity of the index's table, with about 7,000 keys at most; [`spread`](Self::spread) uses
/// several. A key for which the list has no room stays in the outbox, and is poisoned in the end. Every change of an entity
/// with this value changes this one list. If many entities have the value and change often,
/// [`InterIndex`](super::inter_index::InterIndex) is faster.
#[derive(Clone, Debug)]
#[must_use]
pub struct ListIndex {
    name: String,
    table: String,
    key: IndexKey,
    entities: u32,
}

impl ListIndex {
    /// An index with its name, its table and its key.
    pub fn new(name: impl Into<String>, table: impl Into<String>, key: impl Into<IndexKey>) -> Self {
        Self { name: name.into(), table: table.into(), key: key.into(), entities: 1 }
    }

    /// The number of entities over which the list of a value is spread; by default 1. You can increase it later, never
    /// decrease it.
    pub fn spread(self, entities: u32) -> Self {
        Self { entities: entities.max(1), ..self }
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

    pub(crate) fn put(&self, value: &str, reference: &Reference) -> Result<OutboxStep> {
        let member = member(reference);
        OutboxStep::add_member(&self.table, self.list(value, &member), &member)
    }

    pub(crate) fn bury(&self, value: &str, reference: &Reference) -> Result<OutboxStep> {
        let member = member(reference);
        OutboxStep::remove_member(&self.table, self.list(value, &member), &member)
    }

    pub(crate) async fn references(&self, outbox: &Outbox, value: &str) -> Result<Vec<Reference>> {
        let query = outbox.table_of(&self.table)?.query();
        let entities: Vec<StoredEntity<Entity>> =
            query.filter(partition_key().eq(self.partition(value))).all().await?;
        let mut all = KeyList::default();
        for entity in &entities {
            let KeyList { members, removed } = KeyList::read(entity)?;
            all.members.extend(members);
            all.removed.extend(removed);
        }
        // After `spread` was increased, the mark of a removal can be in another entity than the member.
        let members = all.members.iter().filter(|member| !all.removed.contains_key(*member));
        members.map(|member| reference(member)).collect()
    }

    fn list(&self, value: &str, member: &str) -> Entity {
        Entity::new(self.partition(value), format!("{:04}", hash(member) % self.entities))
    }

    fn partition(&self, value: &str) -> String {
        parts::join([self.name.as_str(), value])
    }
}

fn member(reference: &Reference) -> String {
    parts::join([reference.partition_key.as_str(), &reference.row_key, &reference.version])
}

fn reference(member: &str) -> Result<Reference> {
    match parts::split(member).map(<[String; 3]>::try_from) {
        Some(Ok([partition_key, row_key, version])) => Ok(Reference { partition_key, row_key, version }),
        _ => Err(Error::Unreadable(format!("a list has a member {member:?}, which is no key"))),
    }
}

/// FNV-1a: stable across processes and versions.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Entities with lists of their row keys by other values, in the same partition.
///
/// One transaction changes an entity and its lists, so they always agree. The lists are rows `index~name~value`, with at
/// most about 35,000 row keys of ten characters; further inserts are refused.
///
/// All changes must use these methods, or the lists become wrong.
///
/// ```no_run
/// # async fn run(table: partita_client::Table) -> partita_client::Result<()> {
/// use partita_client::{Entity, StoredEntity};
/// use partita_client_patterns::index_entities::PartitionLists;
///
/// let employees = PartitionLists::new(&table).index("last", "LastName");
/// employees.insert(&Entity::new("Sales", "000223").with("LastName", "Jones")).await?;
/// assert_eq!(employees.row_keys("Sales", "last", "Jones").await?, ["000223"]);
/// let joneses: Vec<StoredEntity<Entity>> = employees.find("Sales", "last", "Jones").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct PartitionLists {
    table: Table,
    indexes: Vec<(String, IndexKey)>,
}

/// The change of a list for an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Has,
    HasNot,
}

impl PartitionLists {
    /// Without indexes; add them with [`index`](Self::index).
    pub fn new(table: &Table) -> Self {
        Self { table: table.clone(), indexes: Vec::new() }
    }

    /// Adds an index.
    pub fn index(mut self, name: impl Into<String>, key: impl Into<IndexKey>) -> Self {
        self.indexes.push((name.into(), key.into()));
        self
    }

    /// Inserts an entity. Fails if it exists (409).
    pub async fn insert<T: Serialize + ?Sized>(&self, entity: &T) -> Result<ETag> {
        let entity = Entity::from_typed(entity)?;
        self.change(&entity.partition_key, &entity.row_key, None, Some(&entity)).await
    }

    /// Replaces the whole entity. Fails if it does not exist (404), or has another version (412).
    pub async fn replace<T: Serialize + ?Sized>(
        &self,
        entity: &T,
        condition: impl Into<Match>,
    ) -> Result<ETag> {
        let entity = Entity::from_typed(entity)?;
        self.change(&entity.partition_key, &entity.row_key, Some(condition.into()), Some(&entity)).await
    }

    /// Deletes an entity. Fails if it does not exist (404), or has another version (412).
    pub async fn delete(&self, partition: &str, row: &str, condition: impl Into<Match>) -> Result<()> {
        self.change(partition, row, Some(condition.into()), None).await.map(drop)
    }

    /// The row keys of the entities that have this value, in order.
    pub async fn row_keys(&self, partition: &str, index: &str, value: &str) -> Result<Vec<String>> {
        if !self.indexes.iter().any(|(name, _)| name == index) {
            let names: Vec<_> = self.indexes.iter().map(|(name, _)| name.as_str()).collect();
            return Err(Error::Invalid(format!(
                "there is no index {index:?}; there are {}",
                names.join(", ")
            )));
        }
        let found: Option<StoredEntity<Entity>> = self.table.find(partition, &list_row(index, value)).await?;
        Ok(match found {
            Some(list) => KeyList::read(&list)?.members.into_iter().collect(),
            None => Vec::new(),
        })
    }

    /// The entities with this value, in the order of row keys. They are read one by one, so changes in between are visible.
    pub async fn find<T: DeserializeOwned>(
        &self,
        partition: &str,
        index: &str,
        value: &str,
    ) -> Result<Vec<StoredEntity<T>>> {
        let mut found = Vec::new();
        for row in self.row_keys(partition, index, value).await? {
            found.extend(self.table.find(partition, &row).await?);
        }
        Ok(found)
    }

    /// `condition` is `None` for an insert.
    async fn change(
        &self,
        partition: &str,
        row: &str,
        condition: Option<Match>,
        new: Option<&Entity>,
    ) -> Result<ETag> {
        for _ in 0..OVERTAKEN_MAX {
            let old: Option<StoredEntity<Entity>> = match &condition {
                Some(_) => Some(self.table.get(partition, row).await?),
                None => None,
            };
            let version = match (&condition, &old) {
                (Some(Match::Any), Some(old)) => Match::from(&old.etag),
                (Some(version), _) => version.clone(),
                (None, _) => Match::Any,
            };
            let mut transaction = Transaction::new();
            match (&old, new) {
                (None, Some(new)) => transaction.insert(new)?,
                (Some(_), Some(new)) => transaction.replace(new, version)?,
                (_, None) => transaction.delete(partition, row, version),
            };
            for (list, told) in self.lists(old.as_deref(), new) {
                self.tell(&mut transaction, partition, list, row, told).await?;
            }
            match self.table.submit(transaction).await {
                Ok(etags) => return Ok(etags.into_iter().next().flatten().unwrap_or_else(|| ETag::new(""))),
                // The entity is operation 0. If another operation failed, somebody else has changed a list: try again.
                Err(error) if is_overtaken(&error) && error.index() != Some(0) => {}
                Err(error) if error.is_changed() && condition == Some(Match::Any) => {}
                Err(error) => return Err(error),
            }
            step_aside().await;
        }
        Err(overtaken(&Entity::new(partition, row)))
    }

    /// The lists that must change.
    fn lists(&self, old: Option<&Entity>, new: Option<&Entity>) -> Vec<(String, Told)> {
        let mut lists = Vec::new();
        for (name, key) in &self.indexes {
            let value = |entity: Option<&Entity>| entity.and_then(|entity| key.value(entity));
            let (before, after) = (value(old), value(new));
            if before != after {
                lists.extend(before.map(|value| (list_row(name, &value), Told::HasNot)));
                lists.extend(after.map(|value| (list_row(name, &value), Told::Has)));
            }
        }
        lists
    }

    async fn tell(
        &self,
        transaction: &mut Transaction,
        partition: &str,
        list: String,
        row: &str,
        told: Told,
    ) -> Result<()> {
        let found: Option<StoredEntity<Entity>> = self.table.find(partition, &list).await?;
        let mut keys = found.as_deref().map(KeyList::read).transpose()?.unwrap_or_default();
        match told {
            Told::Has => keys.members.insert(row.to_owned()),
            Told::HasNot => keys.members.remove(row),
        };
        let mut entity = Entity::new(partition, list);
        match found {
            Some(found) if keys.members.is_empty() => {
                transaction.delete(partition, entity.row_key, &found.etag);
            }
            Some(found) => {
                keys.write(&mut entity)?;
                transaction.replace(&entity, &found.etag)?;
            }
            None if keys.members.is_empty() => {}
            None => {
                keys.write(&mut entity)?;
                transaction.insert(&entity)?;
            }
        }
        Ok(())
    }
}

fn list_row(index: &str, value: &str) -> String {
    parts::join(["index", index, value])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_names_its_entity_and_version() {
        let check = |partition_key: &str, row_key: &str, expected: &str| {
            let found = Reference {
                partition_key: partition_key.to_owned(),
                row_key: row_key.to_owned(),
                version: "v".to_owned(),
            };
            assert_eq!(member(&found), expected);
            assert_eq!(reference(expected).unwrap(), found);
        };
        check("Sales", "000223", "Sales~000223~v");
        check("", "a~b", "~a!7eb~v");
        assert!(reference("Sales~000223").is_err());
    }

    #[test]
    fn a_member_is_always_in_the_same_entity() {
        // As published with the algorithm.
        assert_eq!(hash("foobar"), 0xbf9c_f968);
        let index = ListIndex::new("last", "Lists", "LastName").spread(16);
        assert_eq!(index.list("Jones", "Sales~000223~v"), Entity::new("last~Jones", "0002"));
    }
}
