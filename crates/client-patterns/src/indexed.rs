//! A table with indexes in other partitions or tables, which are updated eventually.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use model::limits::CUSTOM_PROPERTIES_MAX;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::index_entities::ListIndex;
use super::inter_index::InterIndex;
use super::outbox::Outbox;
use super::steps::{OVERTAKEN_MAX, OutboxStep, overtaken, step_aside};
use partita_client::{ETag, Entity, Error, Match, Result, StoredEntity, Table, Transaction};

/// The property with the version of an indexed entity. No two versions are equal.
pub const VERSION: &str = "IndexVersion";
/// The largest number of properties that indexes add to an entity.
const ADDED_PROPERTIES_MAX: usize = 5;
/// The number of concurrent reads.
const READS_AT_ONCE: usize = 8;

/// A table whose entities can be found by other values than their keys.
///
/// One transaction in the entity's partition changes the entity and records the changes of the indexes. Then the indexes
/// are updated: at once, or, if the process dies, when another process [heals](Outbox::heal) the outbox. So an index may lag
/// behind, but not forever, and [`find`](Self::find) never returns an entity without the value.
///
/// Every change gives the entity a new version, in the property `IndexVersion`, and an index entry belongs to one version.
/// A removed entry is only marked as removed, so that a slow worker can't write it again later. [`collect`](Self::collect)
/// deletes old marks.
///
/// All changes must use these methods, or the indexes become wrong. [`reindex`](Self::reindex) indexes an entity that was
/// written otherwise.
///
/// ```no_run
/// # async fn run(service: partita_client::TableService) -> partita_client::Result<()> {
/// use partita_client_patterns::{indexed::IndexedTable, inter_index::InterIndex, outbox::Outbox};
/// use partita_client::{Entity, StoredEntity};
///
/// let outbox = Outbox::new(&service, "Employees")?;
/// let employees = IndexedTable::new(outbox).with(InterIndex::new("email", "EmployeesBy", "Email"));
/// let jones = Entity::new("Sales", "000223").with("Email", "jonesj@contoso.com");
/// employees.insert(&jones).await?;
/// let found: Vec<StoredEntity<Entity>> = employees.find("email", "jonesj@contoso.com").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct IndexedTable {
    outbox: Outbox,
    indexes: Vec<Index>,
}

/// An index of an [`IndexedTable`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Index {
    /// A copy of the entity for each value.
    Copies(InterIndex),
    /// A list of keys for each value.
    Lists(ListIndex),
}

impl From<InterIndex> for Index {
    fn from(index: InterIndex) -> Self {
        Self::Copies(index)
    }
}

impl From<ListIndex> for Index {
    fn from(index: ListIndex) -> Self {
        Self::Lists(index)
    }
}

/// The content of an index entry: this version of this entity has the value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reference {
    pub partition_key: String,
    pub row_key: String,
    pub version: String,
}

impl Reference {
    fn key(&self) -> (String, String) {
        (self.partition_key.clone(), self.row_key.clone())
    }
}

/// By their keys.
type Entities = BTreeMap<(String, String), StoredEntity<Entity>>;

impl Index {
    /// The name for look-ups.
    pub fn name(&self) -> &str {
        match self {
            Self::Copies(index) => index.name(),
            Self::Lists(index) => index.name(),
        }
    }

    fn value(&self, entity: &Entity) -> Option<String> {
        match self {
            Self::Copies(index) => index.value(entity),
            Self::Lists(index) => index.value(entity),
        }
    }

    /// Adds the entry of this version of an entity.
    fn put(&self, value: &str, reference: &Reference, entity: &Entity) -> Result<OutboxStep> {
        match self {
            Self::Copies(index) => index.put(value, reference, entity),
            Self::Lists(index) => index.put(value, reference),
        }
    }

    /// Removes the entry for good.
    fn bury(&self, value: &str, reference: &Reference) -> Result<OutboxStep> {
        match self {
            Self::Copies(index) => index.bury(value, reference),
            Self::Lists(index) => index.bury(value, reference),
        }
    }

    async fn references(&self, outbox: &Outbox, value: &str) -> Result<Vec<Reference>> {
        match self {
            Self::Copies(index) => index.references(outbox, value).await,
            Self::Lists(index) => index.references(outbox, value).await,
        }
    }
}

impl IndexedTable {
    /// The table of this outbox, without indexes; add them with [`with`](Self::with).
    pub fn new(outbox: Outbox) -> Self {
        Self { outbox, indexes: Vec::new() }
    }

    /// Adds an index.
    pub fn with(mut self, index: impl Into<Index>) -> Self {
        self.indexes.push(index.into());
        self
    }

    /// The outbox that updates the indexes.
    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    fn table(&self) -> &Table {
        self.outbox.table()
    }

    /// Creates the tables of the entities and of the indexes, if they are missing.
    pub async fn create_tables_if_missing(&self) -> Result<()> {
        self.table().create_if_missing().await?;
        for index in &self.indexes {
            let name = match index {
                Index::Copies(index) => index.table(),
                Index::Lists(index) => index.table(),
            };
            self.outbox.table_of(name)?.create_if_missing().await?;
        }
        Ok(())
    }

    /// Inserts an entity. Fails if it exists (409).
    pub async fn insert<T: Serialize + ?Sized>(&self, entity: &T) -> Result<ETag> {
        let entity = self.next_version(Entity::from_typed(entity)?)?;
        let mut transaction = Transaction::new();
        transaction.insert(&entity)?;
        self.commit(transaction, None, Some(&entity)).await
    }

    /// Replaces the whole entity. Fails if it does not exist (404), or has another version (412).
    pub async fn replace<T: Serialize + ?Sized>(
        &self,
        entity: &T,
        condition: impl Into<Match>,
    ) -> Result<ETag> {
        let entity = self.next_version(Entity::from_typed(entity)?)?;
        let (partition, row) = (&entity.partition_key, &entity.row_key);
        self.change(partition, row, condition.into(), |_| Ok(Some(entity.clone()))).await
    }

    /// Deletes an entity. Fails if it does not exist (404), or has another version (412).
    pub async fn delete(
        &self,
        partition_key: &str,
        row_key: &str,
        condition: impl Into<Match>,
    ) -> Result<()> {
        self.change(partition_key, row_key, condition.into(), |_| Ok(None)).await.map(drop)
    }

    /// Indexes an entity that was written without the indexes, or before they existed.
    pub async fn reindex(&self, partition_key: &str, row_key: &str) -> Result<()> {
        let again = |old: &Entity| self.next_version(old.clone()).map(Some);
        self.change(partition_key, row_key, Match::Any, again).await.map(drop)
    }

    /// Reads an entity by its keys. Fails if it does not exist (404).
    pub async fn get<T: DeserializeOwned>(
        &self,
        partition_key: &str,
        row_key: &str,
    ) -> Result<StoredEntity<T>> {
        self.table().get(partition_key, row_key).await
    }

    /// Finds entities by an index, in the order of keys. They are current and have the value now. An entity that got the
    /// value a moment ago may be missing.
    pub async fn find<T: DeserializeOwned>(&self, index: &str, value: &str) -> Result<Vec<StoredEntity<T>>> {
        let (index, _, entities) = self.look_up(index, value).await?;
        let found = entities.into_values().filter(|entity| index.value(entity).as_deref() == Some(value));
        found.map(StoredEntity::into_typed).collect()
    }

    /// Removes index entries of this value that belong to no current version of an entity. Returns their number. Not
    /// necessary if all changes use these methods.
    pub async fn mend(&self, index: &str, value: &str) -> Result<usize> {
        let (index, references, entities) = self.look_up(index, value).await?;
        // The entry was read before the entity, and versions never recur: an entry with another version is obsolete.
        let stale = references.into_iter().filter(|reference| {
            let now = entities.get(&reference.key()).and_then(|entity| entity.text(VERSION));
            now != Some(&reference.version)
        });
        let steps: Vec<_> = stale.map(|reference| index.bury(value, &reference)).collect::<Result<_>>()?;
        self.outbox.carry_out(&steps).await?;
        Ok(steps.len())
    }

    /// Deletes marks of removed entries that are older than this. Choose a time that is longer than any step can be late; a
    /// week is safe. Returns their number. Reads the whole tables of the indexes.
    pub async fn collect(&self, older_than: Duration) -> Result<u64> {
        let mut collected = 0;
        for index in &self.indexes {
            // Lists remove their old marks by themselves.
            if let Index::Copies(index) = index {
                collected += index.collect(&self.outbox, older_than).await?;
            }
        }
        Ok(collected)
    }

    /// The entries of a value, and the current versions of their entities.
    async fn look_up(&self, index: &str, value: &str) -> Result<(&Index, Vec<Reference>, Entities)> {
        let index = self.indexes.iter().find(|known| known.name() == index).ok_or_else(|| {
            let names: Vec<_> = self.indexes.iter().map(Index::name).collect();
            Error::Invalid(format!("there is no index {index:?}; there are {}", names.join(", ")))
        })?;
        let references = index.references(&self.outbox, value).await?;
        let keys: BTreeSet<_> = references.iter().map(Reference::key).collect();
        let found = stream::iter(keys).map(|key| async move {
            let entity = self.table().find(&key.0, &key.1).await?;
            Ok(entity.map(|entity| (key, entity)))
        });
        let found = found.buffered(READS_AT_ONCE).try_filter_map(async |found| Ok(found));
        Ok((index, references, found.try_collect().await?))
    }

    fn next_version(&self, mut entity: Entity) -> Result<Entity> {
        entity.set(VERSION, crate::ids::random());
        let properties = entity.properties.len() + ADDED_PROPERTIES_MAX;
        if properties > CUSTOM_PROPERTIES_MAX {
            return Err(Error::Invalid(format!(
                "an entity of {} properties; indexed ones can have {}",
                entity.properties.len() - 1,
                CUSTOM_PROPERTIES_MAX - ADDED_PROPERTIES_MAX - 1
            )));
        }
        Ok(entity)
    }

    /// Reads an entity, and replaces it by the result of `make`, or deletes it. Repeats this if somebody else has changed the
    /// entity and the condition allows any version.
    async fn change(
        &self,
        partition_key: &str,
        row_key: &str,
        condition: Match,
        make: impl Fn(&Entity) -> Result<Option<Entity>>,
    ) -> Result<ETag> {
        for _ in 0..OVERTAKEN_MAX {
            let old: StoredEntity<Entity> = self.table().get(partition_key, row_key).await?;
            // The index entries to remove are those of the version that was read, so only that may be replaced.
            let version = match &condition {
                Match::Any => Match::from(&old.etag),
                version => version.clone(),
            };
            let mut transaction = Transaction::new();
            let new = make(&old)?;
            match &new {
                Some(new) => transaction.replace(new, version)?,
                None => transaction.delete(partition_key, row_key, version),
            };
            match self.commit(transaction, Some(&old), new.as_ref()).await {
                Err(error) if error.is_changed() && condition == Match::Any => {
                    step_aside().await;
                }
                other => return other,
            }
        }
        Err(overtaken(&Entity::new(partition_key, row_key)))
    }

    /// Adds new entries before it removes old ones, so that an entity that keeps its value can always be found.
    async fn commit(
        &self,
        transaction: Transaction,
        old: Option<&Entity>,
        new: Option<&Entity>,
    ) -> Result<ETag> {
        let mut steps = Vec::new();
        for (index, value, reference, entity) in new.into_iter().flat_map(|new| self.entries(new)) {
            steps.push(index.put(&value, &reference, entity)?);
        }
        for (index, value, reference, _) in old.into_iter().flat_map(|old| self.entries(old)) {
            steps.push(index.bury(&value, &reference)?);
        }
        let committed = self.outbox.commit(transaction, &steps).await?;
        Ok(committed.etags.into_iter().next().flatten().unwrap_or_else(|| ETag::new("")))
    }

    /// The index entries of this version of an entity; none if it was written without indexes.
    fn entries<'a>(
        &'a self,
        entity: &'a Entity,
    ) -> impl Iterator<Item = (&'a Index, String, Reference, &'a Entity)> {
        let version = entity.text(VERSION);
        self.indexes.iter().filter_map(move |index| {
            let reference = Reference {
                partition_key: entity.partition_key.clone(),
                row_key: entity.row_key.clone(),
                version: version?.to_owned(),
            };
            Some((index, index.value(entity)?, reference, entity))
        })
    }
}
