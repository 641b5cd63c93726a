//! Wide entities, with more than 252 properties or more than 1 MiB, stored as several rows.
//!
//! The first row has the entity's own keys, the others have the row keys `key~1`, `key~2` and so on. One transaction changes
//! all of them. Each row has the id of its write and the number of rows, so that rows of different writes are never joined.
//! The limit is that of a transaction: 4 MiB and 100 rows. For more see [`large`](super::large).
//!
//! ```no_run
//! # async fn run(table: partita_client::Table) -> partita_client::Result<()> {
//! use partita_client_patterns::wide;
//! use partita_client::{Entity, StoredEntity};
//!
//! let mut survey = Entity::new("surveys", "2026");
//! for question in 0..1000 {
//!     survey.set(format!("Answer{question}"), "yes");
//! }
//! wide::put(&table, &survey).await?;
//! let found: StoredEntity<Entity> = wide::get(&table, "surveys", "2026").await?;
//! assert_eq!(found.entity, survey);
//! # Ok(())
//! # }
//! ```

mod parts;

use serde::Serialize;
use serde::de::DeserializeOwned;

use partita_client::{
    ETag, Entity, Error, Filter, Match, Operation, OperationKind, Result, StoredEntity, Table, Transaction,
    partition_key, row_key,
};

/// How often to retry a read or a write that conflicts with changes by others.
const ATTEMPTS: usize = 8;

/// Inserts an entity. Fails if it exists (409). Returns the version of its first row, which every write changes.
pub async fn insert<T: Serialize + ?Sized>(table: &Table, entity: &T) -> Result<ETag> {
    let operation = Operation::new(OperationKind::Insert, entity)?;
    let old = other_rows(table, &operation.entity.partition_key, &operation.entity.row_key).await?;
    write(table, &operation, old).await
}

/// Inserts an entity, or replaces it if it exists, in any version.
pub async fn put<T: Serialize + ?Sized>(table: &Table, entity: &T) -> Result<ETag> {
    let mut operation = Operation::new(OperationKind::Insert, entity)?;
    let mut attempts = 1;
    loop {
        let (partition, row) = (&operation.entity.partition_key, &operation.entity.row_key);
        // Conditional, too: which rows to delete depends on the rows that exist.
        let kind = match version(table, partition, row).await? {
            Some(etag) => OperationKind::Replace(Match::Version(etag)),
            None => OperationKind::Insert,
        };
        let old = other_rows(table, partition, row).await?;
        operation.kind = kind;
        match write(table, &operation, old).await {
            Err(error) if was_overtaken(&error) && attempts < ATTEMPTS => attempts += 1,
            outcome => return outcome,
        }
    }
}

/// Replaces an entity. Fails if it does not exist (404), or has another version (412).
pub async fn replace<T: Serialize + ?Sized>(
    table: &Table,
    entity: &T,
    condition: impl Into<Match>,
) -> Result<ETag> {
    let condition = condition.into();
    let mut operation = Operation::new(OperationKind::Replace(condition.clone()), entity)?;
    let mut attempts = 1;
    loop {
        let (partition, row) = (&operation.entity.partition_key, &operation.entity.row_key);
        let exact = match (&condition, version(table, partition, row).await?) {
            (Match::Any, Some(etag)) => Match::Version(etag),
            // The service refuses the write.
            _ => condition.clone(),
        };
        let old = other_rows(table, partition, row).await?;
        operation.kind = OperationKind::Replace(exact);
        match write(table, &operation, old).await {
            Err(error) if condition == Match::Any && error.is_changed() && attempts < ATTEMPTS => {
                attempts += 1;
            }
            outcome => return outcome,
        }
    }
}

/// Reads a wide entity by its keys. Fails if it does not exist (404).
pub async fn get<T: DeserializeOwned>(table: &Table, partition: &str, row: &str) -> Result<StoredEntity<T>> {
    for _ in 0..ATTEMPTS {
        let first: StoredEntity<Entity> = table.get(partition, row).await?;
        let others = match parts::count(&first)? {
            1 => Vec::new(),
            _ => table.query().filter(others(partition, row)).all::<Entity>().await?,
        };
        let others = others.into_iter().map(StoredEntity::into_inner).collect();
        if let Some(entity) = parts::join(first.entity.clone(), others) {
            return first.map(|_| entity).into_typed();
        }
    }
    Err(Error::Unreadable(format!(
        "the rows of the wide entity with PartitionKey '{partition}' and RowKey '{row}' are not of one write; \
         it is being changed all the time, or a row was changed by itself"
    )))
}

/// Reads a wide entity by its keys; `None` if it does not exist.
pub async fn find<T: DeserializeOwned>(
    table: &Table,
    partition: &str,
    row: &str,
) -> Result<Option<StoredEntity<T>>> {
    match get(table, partition, row).await {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.code() == Some("ResourceNotFound") => Ok(None),
        Err(error) => Err(error),
    }
}

/// Deletes all rows of an entity, in any version. Returns whether it existed.
pub async fn delete(table: &Table, partition: &str, row: &str) -> Result<bool> {
    let mut attempts = 1;
    loop {
        let Some(etag) = version(table, partition, row).await? else { return Ok(false) };
        let mut transaction = Transaction::new();
        transaction.delete(partition, row, etag);
        for other in other_rows(table, partition, row).await? {
            transaction.delete(partition, other, Match::Any);
        }
        match table.submit(transaction).await {
            Ok(_) => return Ok(true),
            Err(error) if was_overtaken(&error) && attempts < ATTEMPTS => attempts += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Writes all rows in one transaction, and deletes old rows that are not among them.
async fn write(table: &Table, whole: &Operation, old: Vec<String>) -> Result<ETag> {
    let rows = parts::split(whole.entity.clone(), &crate::ids::random())?;
    let mut transaction = Transaction::new();
    for (number, row) in rows.iter().enumerate() {
        let kind = if number == 0 { whole.kind.clone() } else { OperationKind::UpsertReplace };
        let mut operation = Operation::new(kind, row)?;
        operation.encrypted =
            whole.encrypted.iter().filter(|name| row.get(name).is_some()).cloned().collect();
        transaction.push(operation);
    }
    for name in old {
        if rows.iter().all(|row| row.row_key != name) {
            transaction.delete(whole.entity.partition_key.as_str(), name, Match::Any);
        }
    }
    let etags = table.submit(transaction).await?;
    Ok(etags.into_iter().next().flatten().unwrap_or_else(|| ETag::new("")))
}

/// The version of the first row, if there is one.
async fn version(table: &Table, partition: &str, row: &str) -> Result<Option<ETag>> {
    let first = partition_key().eq(partition).and(row_key().eq(row));
    let found = table
        .without_encryption()
        .query()
        .filter(first)
        .select([wire::names::ROW_KEY])
        .first::<Entity>()
        .await?;
    Ok(found.map(|found| found.etag))
}

/// The row keys of all but the first.
async fn other_rows(table: &Table, partition: &str, row: &str) -> Result<Vec<String>> {
    let query =
        table.without_encryption().query().filter(others(partition, row)).select([wire::names::ROW_KEY]);
    let found = query.all::<Entity>().await?;
    Ok(found.into_iter().map(|found| found.into_inner().row_key).collect())
}

fn others(partition: &str, row: &str) -> Filter {
    // Only digits follow the mark.
    let mark = parts::MARK;
    partition_key().eq(partition).and(row_key().between(format!("{row}{mark}0"), format!("{row}{mark}:")))
}

/// Whether somebody changed the entity between the read and the write; then nothing was written.
fn was_overtaken(error: &Error) -> bool {
    error.is_changed() || matches!(error.code(), Some("EntityAlreadyExists" | "ResourceNotFound"))
}
