//! Secondary indexes within a partition: an entity is stored once for each way to find it, by one transaction.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::index_key::IndexKey;
use super::parts;
use super::steps::{OVERTAKEN_MAX, overtaken, step_aside};
use partita_client::{
    ETag, Entity, Error, Match, Result, Stored, Table, Transaction, partition_key, row_key,
};

/// The row key that the user knows, in every copy.
const PRIMARY_ROW: &str = "PrimaryRow";

/// Entities with other ways to find them than their row key, in the same partition.
///
/// Each entity is stored under its own row key with a prefix (`empid_000223`), and again under each index
/// (`email_jonesj@contoso.com`), whole, so that a look-up is one request. All copies are written by one transaction: there
/// is no time at which they differ. A row key is one of the copies' for the user: entities are given and come back with
/// their own.
///
/// Changes must go through here, or the copies differ.
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
    /// Of a value; or, of many entities with the same value, of this one.
    fn row(&self, value: &str, primary_row: &str) -> String {
        let prefix = self.prefix(value);
        if self.unique { prefix } else { format!("{prefix}{}", parts::escape(primary_row)) }
    }

    /// What the rows of a value begin with. A unique value's only row is this.
    fn prefix(&self, value: &str) -> String {
        let end = if self.unique { "" } else { "~" };
        format!("{}_{}{end}", self.name, parts::escape(value))
    }
}

impl IntraIndex {
    /// Of a table, with what the entities' own rows begin with: `empid` for `empid_000223`.
    pub fn new(table: &Table, primary: impl Into<String>) -> Self {
        Self { table: table.clone(), primary: primary.into(), indexes: Vec::new() }
    }

    /// With one more index, whose values belong to one entity of the partition each: a second is refused (409). Its rows
    /// begin with its name, which none of the others must begin with.
    pub fn unique(self, name: impl Into<String>, key: impl Into<IndexKey>) -> Self {
        self.with(Index { name: name.into(), key: key.into(), unique: true })
    }

    /// With one more index, whose values any number of entities share.
    pub fn index(self, name: impl Into<String>, key: impl Into<IndexKey>) -> Self {
        self.with(Index { name: name.into(), key: key.into(), unique: false })
    }

    fn with(mut self, index: Index) -> Self {
        self.indexes.push(index);
        self
    }

    /// Fails if there is such an entity, or one with the same unique value (409).
    pub async fn insert<T: Serialize + ?Sized>(&self, entity: &T) -> Result<ETag> {
        let entity = Entity::from_typed(entity)?;
        let mut transaction = Transaction::new();
        transaction.insert(&self.primary(&entity))?;
        for row in self.rows(&entity) {
            transaction.insert(&copy(&entity, row))?;
        }
        self.submit(transaction).await
    }

    /// Replaces an entity in all its copies. Fails if there is none (404), if it is not this version (412), or if another
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
                // A row that was not this entity's must be nobody's.
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

    /// Deletes an entity in all its copies. Fails if there is none (404), or not this version (412).
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

    /// By its own row key. Fails if there is none (404).
    pub async fn get<T: DeserializeOwned>(&self, partition: &str, row: &str) -> Result<Stored<T>> {
        let stored: Stored<Entity> = self.table.get(partition, &self.primary_row(row)).await?;
        stored.map(restore).into_typed()
    }

    /// By an index, in the order of row keys. To change one, [`get`](Self::get) it: its version is that of its own row.
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

    /// Reads an entity and submits what `make` makes of it and its version; again, if others changed it in between and any
    /// version will do.
    async fn change(
        &self,
        partition: &str,
        row: &str,
        condition: Match,
        make: impl Fn(&Entity, Match) -> Result<Transaction>,
    ) -> Result<ETag> {
        for _ in 0..OVERTAKEN_MAX {
            let old: Stored<Entity> = self.table.get(partition, &self.primary_row(row)).await?;
            let old = old.map(restore);
            // Index rows change with the entity's own row alone, so its version stands for all of them.
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

    /// The version of what the first operation wrote.
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

    /// Where the copies of an entity are.
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

/// As the user knows it.
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
