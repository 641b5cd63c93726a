//! The `$Metrics…` tables: created, filled and expired here; clients read them like any other table.

use std::sync::Arc;

use model::{Cut, EntityKey, Key, KeyRange, limits};
use store::{
    Budget, Change, Condition, Engine, Gate, RowDraft, RowOperation, RowView, Scan, TableRef, Transaction,
};

/// How often another server on the same store may change the row first.
const ATTEMPTS: usize = 8;

#[derive(Clone)]
pub struct MetricsTables {
    pub engine: Arc<dyn Engine>,
    pub gate: Arc<Gate>,
}

impl std::fmt::Debug for MetricsTables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MetricsTables")
    }
}

impl MetricsTables {
    pub async fn ensure(&self, table: &TableRef) -> Result<(), store::Error> {
        let _pass = self.gate.pass().await?;
        match self.engine.create_table(table, None).await {
            Ok(()) | Err(store::Error::TableAlreadyExists) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Replaces the row, if any, by what `change` makes of it.
    pub async fn change(
        &self,
        table: &TableRef,
        key: &EntityKey,
        change: impl Fn(Option<RowView<'_>>) -> RowDraft,
    ) -> Result<(), store::Error> {
        let _pass = self.gate.pass().await?;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let present = self.engine.get(table, key).await?;
            let present = present.as_ref().map(|row| row.raw().open()).transpose()?;
            let condition = present.map_or(Condition::Absent, |row| Condition::Version(row.timestamp()));
            let put = Change::Put(change(present));
            match self.engine.apply(table, Transaction::of_one(key.clone(), condition, put)).await {
                Err(store::Error::Rejected { .. }) if attempts < ATTEMPTS => {}
                outcome => return outcome.map(drop),
            }
        }
    }

    /// Deletes the rows of all partitions before this one; returns how many.
    pub async fn expire(&self, table: &TableRef, before: &Key) -> Result<u64, store::Error> {
        let _pass = self.gate.pass().await?;
        let range = KeyRange { end: Cut::before(before.as_str(), ""), ..KeyRange::all() };
        let budget = Budget {
            rows: limits::PAGE_ENTITIES_MAX,
            bytes: limits::PAGE_BYTES_MAX,
            time: limits::QUERY_TIME_MAX,
            examined: u64::MAX,
        };
        let mut deleted = 0;
        loop {
            let scan = Scan { ranges: vec![range.clone()], budget, filter: None, lasts: false };
            let page = self.engine.scan(table, scan).await?;
            let keys: Vec<EntityKey> =
                page.entities.iter().map(|entity| entity.key()).collect::<Result<_, _>>()?;
            for partition in keys.chunk_by(|a, b| a.partition == b.partition) {
                for rows in partition.chunks(limits::BATCH_OPERATIONS_MAX) {
                    let delete = |row: Key| RowOperation {
                        row,
                        condition: Condition::Anything,
                        change: Change::Delete,
                    };
                    let operations = rows.iter().map(|key| delete(key.row.clone())).collect();
                    // Always `Some`: the rows of a scan are distinct, and a chunk is not empty.
                    if let Some(transaction) = Transaction::new(rows[0].partition.clone(), operations) {
                        self.engine.apply(table, transaction).await?;
                        deleted += rows.len() as u64;
                    }
                }
            }
            if page.next.is_none() {
                return Ok(deleted);
            }
        }
    }
}
