//! Secondary indexes within a partition: one transaction stores an entity once for each index.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::index_key::IndexKey;
use super::parts;
use super::steps::{OVERTAKEN_MAX, overtaken, step_aside};
use partita_client::{
    ETag, Entity, Error, Match, Result, StoredEntity, Table, Transaction, partition_key, row_key,
};

/// The entity's own row key, in every copy.
const PRIMARY_ROW: &str = "PrimaryRow";

/// A table whose entities can be found by other values than their row key, within a partition.
///
/// Each entity is stored under its own row key with a prefix (`empid_000223`), and again under each index
/// (`email_jonesj@contoso.com`), with all properties, so that a look-up is one request. One transaction writes all copies,
/// so they are always equal. Callers see only the entity's own row key.
///
/// All changes must use these methods, or the copies differ.
///
/// ```no_run
/// # async fn run(table: partita_client::Table) -> partita_client::Result<()> {
/// use partita_client::Entity;
/// use partita_client_patterns::intra_index::IntraIndex;
///
/// let employees = IntraIndex::new(&table, "empid").unique("email", "Email").index("last", "LastName");
/// let jones = Entity::new("Sales", "000223").with("Email", "jonesj@contoso.com").with("LastName", "Jones");
/// employees.insert(&jones).await?;
/// let found: Vec<Entity> = employees.find("Sales", "email", "jonesj@contoso.com").await?;
/// assert_eq!(found[0].row_key, "000223");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct IntraIndex {
    table: Table,
    primary: String,
    indexes: Vec<Index>,
}

#[derive(Clone, Debug)]
struct Index {
    name: String,
    key: IndexKey,
    unique: bool,
}

impl Index {
    /// The row key of a value; if values are not unique, that of this entity.
    fn row(&self, value: &str, primary_row: &str) -> String {
        let prefix = self.prefix(value);
        if self.unique { prefix } else { format!("{prefix}{}", parts::escape(primary_row)) }
    }

    /// The prefix of the row keys of a value. For a unique index it is the row key.
    fn prefix(&self, value: &str) -> String {
        let end = if self.unique { "" } else { "~" };
        format!("{}_{}{end}", self.name, parts::escape(value))
    }
}

impl IntraIndex {
    /// `primary` is the prefix of the entities' own rows: `empid` for `empid_000223`.
    pub fn new(table: &Table, primary: impl Into<String>) -> Self {
        Self { table: table.clone(), primary: primary.into(), indexes: Vec::new() }
    }

    /// Adds an index with unique values: a second entity of the partition with the same value is refused (409). Row keys
    /// begin with the index's name, so no name may be the beginning of another.
    pub fn unique(self, name: impl Into<String>, key: impl Into<IndexKey>) -> Self {
        self.with(Index { name: name.into(), key: key.into(), unique: true })
    }

    /// Adds an index whose values any number of entities can share.
    pub fn index(self, name: impl Into<String>, key: impl Into<IndexKey>) -> Self {
        self.with(Index { name: name.into(), key: key.into(), unique: false })
    }

    fn with(mut self, index: Index) -> Self {
        self.indexes.push(index);
        self
    }

    /// Inserts an entity. Fails if it exists, or another has the same unique value (409).
    pub async fn insert<T: Serialize + ?Sized>(&self, entity: &T) -> Result<ETag> {
        let entity = Entity::from_typed(entity)?;
        let mut transaction = Transaction::new();
        transaction.insert(&self.primary(&entity))?;
        for row in self.rows(&entity) {
            transaction.insert(&copy(&entity, row))?;
        }
        self.submit(transaction).await
    }

    /// Replaces an entity with all its copies. Fails if it does not exist (404), has another version (412), or another entity
    /// has its new unique value (409).
    pub async fn replace<T: Serialize + ?Sized>(
        &self,
        entity: &T,
        condition: impl Into<Match>,
    ) -> Result<ETag> {
        let entity = Entity::from_typed(entity)?;
        let (partition, row) = (&entity.partition_key, &entity.row_key);
        self.change(partition, row, condition.into(), |old, version| {
            let mut transaction = Transaction::new();
            transaction.replace(&self.primary(&entity), version)?;
            let (before, after) = (self.rows(old), self.rows(&entity));
            for row in &after {
                let copy = copy(&entity, row.clone());
                // Inserted, so that it fails if the row belongs to another entity.
                if before.contains(row) {
                    transaction.upsert_replace(&copy)?
                } else {
                    transaction.insert(&copy)?
                };
            }
            for row in before.into_iter().filter(|row| !after.contains(row)) {
                transaction.delete(partition, row, Match::Any);
            }
            Ok(transaction)
        })
        .await
    }

    /// Deletes an entity with all its copies. Fails if it does not exist (404), or has another version (412).
    pub async fn delete(&self, partition: &str, row: &str, condition: impl Into<Match>) -> Result<()> {
        let change = self.change(partition, row, condition.into(), |old, version| {
            let mut transaction = Transaction::new();
            transaction.delete(partition, self.primary_row(row), version);
            for row in self.rows(old) {
                transaction.delete(partition, row, Match::Any);
            }
            Ok(transaction)
        });
        change.await.map(drop)
    }

    /// Reads an entity by its row key. Fails if it does not exist (404).
    pub async fn get<T: DeserializeOwned>(&self, partition: &str, row: &str) -> Result<StoredEntity<T>> {
        let stored: StoredEntity<Entity> = self.table.get(partition, &self.primary_row(row)).await?;
        stored.map(restore).into_typed()
    }

    /// Finds entities by an index, in the order of row keys. To change one, [`get`](Self::get) it first: the version is that
    /// of its own row.
    pub async fn find<T: DeserializeOwned>(
        &self,
        partition: &str,
        index: &str,
        value: &str,
    ) -> Result<Vec<T>> {
        let index = self.indexes.iter().find(|known| known.name == index).ok_or_else(|| {
            let names: Vec<_> = self.indexes.iter().map(|index| index.name.as_str()).collect();
            Error::Invalid(format!("there is no index {index:?}; there are {}", names.join(", ")))
        })?;
        let prefix = index.prefix(value);
        let copies = if index.unique {
            self.table.find(partition, &prefix).await?.into_iter().collect()
        } else {
            let rows = partition_key().eq(partition).and(row_key().starts_with(&prefix));
            self.table.query().filter(rows).all::<Entity>().await?
        };
        copies.into_iter().map(|stored| Ok(stored.map(restore).into_typed::<T>()?.into_inner())).collect()
    }

    /// Reads an entity and submits the transaction that `make` returns. Repeats this if somebody else has changed the entity
    /// and the condition allows any version.
    async fn change(
        &self,
        partition: &str,
        row: &str,
        condition: Match,
        make: impl Fn(&Entity, Match) -> Result<Transaction>,
    ) -> Result<ETag> {
        for _ in 0..OVERTAKEN_MAX {
            let old: StoredEntity<Entity> = self.table.get(partition, &self.primary_row(row)).await?;
            let old = old.map(restore);
            // Index rows change only together with the entity's own row, so its version stands for all of them.
            let version = match &condition {
                Match::Any => Match::from(&old.etag),
                version => version.clone(),
            };
            match self.submit(make(&old, version)?).await {
                Err(error) if error.is_changed() && condition == Match::Any => {
                    step_aside().await;
                }
                other => return other,
            }
        }
        Err(overtaken(&Entity::new(partition, row)))
    }

    /// Returns the version that the first operation wrote.
    async fn submit(&self, transaction: Transaction) -> Result<ETag> {
        let etags = self.table.submit(transaction).await?;
        Ok(etags.into_iter().next().flatten().unwrap_or_else(|| ETag::new("")))
    }

    fn primary(&self, entity: &Entity) -> Entity {
        copy(entity, self.primary_row(&entity.row_key))
    }

    fn primary_row(&self, row: &str) -> String {
        format!("{}_{}", self.primary, parts::escape(row))
    }

    /// The row keys of the copies of an entity.
    fn rows(&self, entity: &Entity) -> Vec<String> {
        let row = |index: &Index| Some(index.row(&index.key.value(entity)?, &entity.row_key));
        self.indexes.iter().filter_map(row).collect()
    }
}

fn copy(entity: &Entity, row: String) -> Entity {
    let mut copy = entity.clone().with(PRIMARY_ROW, entity.row_key.as_str());
    copy.row_key = row;
    copy
}

/// The entity with its own row key.
fn restore(mut copy: Entity) -> Entity {
    if let Some(model::Value::String(row)) = copy.remove(PRIMARY_ROW) {
        copy.row_key = row;
    }
    copy
}

#[cfg(test)]
mod tests {
    use super::*;
    use partita_client::TableService;

    #[test]
    fn rows_of_an_entity_are_named_by_index_and_value() {
        let service = TableService::from_connection_string("UseDevelopmentStorage=true").unwrap();
        let table = service.table("Employees").unwrap();
        let employees = IntraIndex::new(&table, "empid").unique("email", "Email").index("last", "LastName");
        let jones = Entity::new("Sales", "000223").with("Email", "j@x").with("LastName", "Jones");
        assert_eq!(employees.primary(&jones).row_key, "empid_000223");
        assert_eq!(employees.rows(&jones), ["email_j@x", "last_Jones~000223"]);
        assert_eq!(
            employees.rows(&Entity::new("Sales", "1").with("LastName", "a~b/c")),
            ["last_a!7eb!2fc~1"]
        );
        assert_eq!(restore(employees.primary(&jones)), jones);
    }
}
