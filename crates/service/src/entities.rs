//! Point reads and writes. A single write is a transaction of one: there is no other write path.

use std::sync::Arc;
use std::time::Instant;

use model::{DateTime, Entity, EntityKey, IfMatch, Refusal};
use store::{Change, Condition, Operation, Row, RowDraft, TableRef, Transaction};

use crate::throttle::{Throttle, cost_of};
use crate::{Error, Group, Result, Service};

/// One change to one entity.
#[derive(Clone, Debug)]
pub enum Write {
    Insert(Entity),
    Update(Entity, IfMatch),
    Merge(Entity, IfMatch),
    InsertOrReplace(Entity),
    InsertOrMerge(Entity),
    Delete(EntityKey, IfMatch),
}

impl Write {
    pub fn key(&self) -> &EntityKey {
        match self {
            Self::Insert(entity)
            | Self::Update(entity, _)
            | Self::Merge(entity, _)
            | Self::InsertOrReplace(entity)
            | Self::InsertOrMerge(entity) => &entity.key,
            Self::Delete(key, _) => key,
        }
    }

    pub(crate) fn into_operation(self) -> Operation {
        let (key, condition, change) = match self {
            // Shown in the order they came; every other write leaves its entity sorted by name.
            Self::Insert(entity) => {
                let draft = RowDraft::new(entity.properties.iter());
                (entity.key, Condition::Absent, Change::Put(draft))
            }
            Self::Update(entity, version) => sorted(entity, condition(&version), Change::Put),
            Self::Merge(entity, version) => sorted(entity, condition(&version), Change::Merge),
            Self::InsertOrReplace(entity) => sorted(entity, Condition::Anything, Change::Put),
            Self::InsertOrMerge(entity) => sorted(entity, Condition::Anything, Change::Merge),
            Self::Delete(key, version) => (key, condition(&version), Change::Delete),
        };
        Operation { row: key.row, condition, change }
    }
}

fn sorted(
    mut entity: Entity,
    condition: Condition,
    change: fn(RowDraft) -> Change,
) -> (EntityKey, Condition, Change) {
    entity.properties.sort();
    let draft = RowDraft::new(entity.properties.iter());
    (entity.key, condition, change(draft))
}

fn cost(operation: &Operation) -> u64 {
    match &operation.change {
        Change::Put(draft) | Change::Merge(draft) => cost_of(draft.len()),
        Change::Delete => 1,
    }
}

fn condition(if_match: &IfMatch) -> Condition {
    match if_match {
        IfMatch::Any => Condition::Exists,
        IfMatch::Version(version) => Condition::Version(*version),
        // No row carries year 1: exists but differs, or is missing, exactly as a foreign ETag must be answered.
        IfMatch::Foreign => Condition::Version(DateTime::MIN),
    }
}

impl Service {
    pub async fn get_entity(&self, table: &TableRef, key: &EntityKey) -> Result<Row> {
        let partition = Some(key.partition.as_str());
        self.admit(table, partition)?;
        let found = self.engine.get(table, key).await?;
        self.spend(table, partition, cost_of(found.as_ref().map_or(0, |row| row.as_bytes().len())));
        found.ok_or_else(|| Refusal::ResourceNotFound.into())
    }

    /// The new timestamp, of which the ETag is another spelling.
    pub async fn write_entity(&self, table: &TableRef, write: Write) -> Result<DateTime> {
        let partition = write.key().partition.clone();
        let stamps =
            self.apply(table, partition, vec![write.into_operation()]).await.map_err(Error::without_index)?;
        // `apply` gives one timestamp an operation.
        stamps.first().copied().ok_or_else(|| Refusal::Internal.into())
    }

    /// All of the group's writes, or none. A refusal names the first that failed.
    pub async fn write_group(&self, group: Group) -> Result<Vec<DateTime>> {
        let (table, partition, operations) = group.into_parts().ok_or(Refusal::BodyNotReadable)?;
        self.apply(&table, partition, operations).await
    }

    async fn apply(
        &self,
        table: &TableRef,
        partition: model::Key,
        operations: Vec<Operation>,
    ) -> Result<Vec<DateTime>> {
        let transaction =
            Transaction::new(partition, operations).ok_or(Error::from(Refusal::DuplicateRow))?;
        let only_deletes = || transaction.operations().iter().all(|o| matches!(o.change, Change::Delete));
        if table.name.is_metrics() && !only_deletes() {
            return Err(Refusal::WritesNotAllowed.into());
        }
        let partition = Some(transaction.partition().as_str());
        self.admit(table, partition)?;
        self.spend(table, partition, transaction.operations().iter().map(cost).sum());
        Ok(self.engine.apply(table, transaction).await?)
    }

    pub(crate) fn admit(&self, table: &TableRef, partition: Option<&str>) -> Result<()> {
        let admit = |throttle: &Arc<Throttle>| throttle.admit(table, partition, Instant::now());
        Ok(self.throttle.as_ref().map_or(Ok(()), admit)?)
    }

    pub(crate) fn spend(&self, table: &TableRef, partition: Option<&str>, cost: u64) {
        if let Some(throttle) = &self.throttle {
            throttle.spend(table, partition, cost, Instant::now());
        }
    }
}
