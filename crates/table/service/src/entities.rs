//! Point reads and writes. A single write is a transaction of one: there is no other write path.

use common::hot_partitions::Load;
use model::{DateTime, Entity, EntityKey, IfMatch, Refusal};
use store::{Change, Condition, RowDraft, RowOperation, StoredRow, TableRef, Transaction};

use crate::tables::is_metrics;
use crate::throttle::cost_of;
use crate::{Error, Result, Service, WriteGroup};

/// One change to one entity, with its properties in their stored bytes.
#[derive(Clone, Debug)]
pub struct EntityWrite {
    key: EntityKey,
    condition: Condition,
    change: Change,
}

impl EntityWrite {
    /// The properties keep the order of the request; every other write sorts them by name.
    pub fn insert(entity: Entity<'_>) -> Self {
        let change = Change::Put(RowDraft::new(entity.properties.iter()));
        Self { key: entity.key, condition: Condition::Absent, change }
    }

    pub fn update(entity: Entity<'_>, version: &IfMatch) -> Self {
        Self::sorted(entity, condition(version), Change::Put)
    }

    pub fn merge(entity: Entity<'_>, version: &IfMatch) -> Self {
        Self::sorted(entity, condition(version), Change::Merge)
    }

    pub fn insert_or_replace(entity: Entity<'_>) -> Self {
        Self::sorted(entity, Condition::Anything, Change::Put)
    }

    pub fn insert_or_merge(entity: Entity<'_>) -> Self {
        Self::sorted(entity, Condition::Anything, Change::Merge)
    }

    pub fn delete(key: EntityKey, version: &IfMatch) -> Self {
        Self { key, condition: condition(version), change: Change::Delete }
    }

    fn sorted(mut entity: Entity<'_>, condition: Condition, change: fn(RowDraft) -> Change) -> Self {
        entity.properties.sort();
        let draft = RowDraft::new(entity.properties.iter());
        Self { key: entity.key, condition, change: change(draft) }
    }

    pub fn key(&self) -> &EntityKey {
        &self.key
    }

    /// What the write stores, for an answer that shows it.
    pub fn draft(&self) -> Option<&RowDraft> {
        match &self.change {
            Change::Put(draft) | Change::Merge(draft) => Some(draft),
            Change::Delete => None,
        }
    }

    pub(crate) fn into_operation(self) -> RowOperation {
        RowOperation { row: self.key.row, condition: self.condition, change: self.change }
    }
}

fn cost(operation: &RowOperation) -> u64 {
    match &operation.change {
        Change::Put(draft) | Change::Merge(draft) => cost_of(draft.len()),
        Change::Delete => 1,
    }
}

fn condition(if_match: &IfMatch) -> Condition {
    match if_match {
        IfMatch::Any => Condition::Exists,
        IfMatch::Version(version) => Condition::Version(*version),
        // No row has a timestamp of year 1, so the write is refused: the row differs or is missing, as for any foreign
        // ETag.
        IfMatch::Foreign => Condition::Version(DateTime::MIN),
    }
}

impl Service {
    pub async fn get_entity(&self, table: &TableRef, key: &EntityKey) -> Result<StoredRow> {
        let partition = Some(key.partition.as_str());
        self.admit(table, partition)?;
        let found = self.engine.get(table, key).await?;
        let cost = cost_of(found.as_ref().map_or(0, |row| row.raw().bytes().len()));
        self.spend(table, partition, cost);
        let entities = u64::from(found.is_some());
        self.observe(table, partition, Load { requests: 1, entities, kibibytes: cost, ..Load::default() });
        found.ok_or_else(|| common::Refusal::ResourceNotFound.into())
    }

    /// The new timestamp; the ETag is made of it.
    pub async fn write_entity(&self, table: &TableRef, write: EntityWrite) -> Result<DateTime> {
        let partition = write.key().partition.clone();
        let stamps =
            self.apply(table, partition, vec![write.into_operation()]).await.map_err(Error::without_index)?;
        // `apply` returns one timestamp per operation.
        let none = || Error::Fault(store::Fault::bug("a write was answered without a timestamp"));
        stamps.first().copied().ok_or_else(none)
    }

    /// All of the group's writes, or none. A refusal names the first that failed.
    pub async fn write_group(&self, group: WriteGroup) -> Result<Vec<DateTime>> {
        let (table, partition, operations) = group.into_parts().ok_or(Refusal::BodyNotReadable)?;
        self.apply(&table, partition, operations).await
    }

    async fn apply(
        &self,
        table: &TableRef,
        partition: model::Key,
        operations: Vec<RowOperation>,
    ) -> Result<Vec<DateTime>> {
        let transaction =
            Transaction::new(partition, operations).ok_or(Error::from(Refusal::DuplicateRow))?;
        let only_deletes = || transaction.operations().iter().all(|o| matches!(o.change, Change::Delete));
        if is_metrics(&table.name) && !only_deletes() {
            self.require_table(table).await?;
            return Err(common::Refusal::WritesNotAllowed.into());
        }
        let partition = Some(transaction.partition().as_str());
        self.admit(table, partition)?;
        let cost = transaction.operations().iter().map(cost).sum();
        self.spend(table, partition, cost);
        let writes = transaction.operations().len() as u64;
        self.observe(
            table,
            partition,
            Load { requests: 1, writes, entities: writes, kibibytes: cost, refusals: 0 },
        );
        let _pass = self.gate.pass().await?;
        Ok(self.engine.apply(table, transaction).await?)
    }
}
