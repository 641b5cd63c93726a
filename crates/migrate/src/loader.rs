//! Writes changed rows to the target: in groups of one partition, many groups at a time.

use std::sync::Arc;

use bytes::Bytes;
use model::{EntityKey, Key, limits};
use store::{StoredRef, StoredRow, TableRef};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::Shared;
use crate::error::{self, Error, Side};
use crate::patience::persist;

/// The KiB in flight at a time, and the least that each group counts, which limits their number.
const UNDER_WAY_KIB: usize = 64 * 1024;
const GROUP_KIB_MIN: usize = 512;

#[derive(Debug)]
pub struct Loader {
    target: Target,
    group: Group,
    under_way: JoinSet<Result<(), store::Error>>,
    room: Arc<Semaphore>,
}

#[derive(Clone)]
struct Target {
    engine: Shared,
    table: TableRef,
}

#[derive(Debug, Default)]
struct Group {
    partition: Option<Key>,
    rows: Vec<(Key, Option<StoredRow>)>,
    bytes: usize,
}

impl Loader {
    pub fn new(engine: &Shared, table: &TableRef) -> Self {
        Self {
            target: Target { engine: engine.clone(), table: table.clone() },
            group: Group::default(),
            under_way: JoinSet::new(),
            room: Arc::new(Semaphore::new(UNDER_WAY_KIB)),
        }
    }

    pub async fn put(&mut self, entity: StoredRef<'_>) -> Result<(), Error> {
        let row = StoredRow::new(Bytes::copy_from_slice(entity.row.bytes()));
        self.add(entity, Some(row)).await
    }

    pub async fn remove(&mut self, entity: StoredRef<'_>) -> Result<(), Error> {
        self.add(entity, None).await
    }

    /// Waits until all rows are durable.
    pub async fn finish(mut self) -> Result<(), Error> {
        self.send().await?;
        while let Some(ended) = self.under_way.join_next().await {
            self.target.check(ended)?;
        }
        Ok(())
    }

    async fn add(&mut self, entity: StoredRef<'_>, row: Option<StoredRow>) -> Result<(), Error> {
        let EntityKey { partition, row: row_key } =
            entity.key().map_err(|fault| Error::of_table(Side::Source, &self.target.table)(fault.into()))?;
        let bytes = row_key.as_str().len() + row.as_ref().map_or(0, |row| row.raw().bytes().len());
        let fits = self.group.partition.as_ref() == Some(&partition)
            && self.group.rows.len() < limits::BATCH_OPERATIONS_MAX
            && self.group.bytes + bytes <= limits::REQUEST_BODY_BYTES_MAX;
        if !fits {
            self.send().await?;
            self.group.partition = Some(partition);
        }
        self.group.bytes += bytes;
        self.group.rows.push((row_key, row));
        Ok(())
    }

    async fn send(&mut self) -> Result<(), Error> {
        let Group { partition: Some(partition), rows, bytes } = std::mem::take(&mut self.group) else {
            return Ok(());
        };
        // Never more than the whole limit: a group is far smaller.
        let weight = bytes.div_ceil(1024).clamp(GROUP_KIB_MIN, UNDER_WAY_KIB) as u32;
        let room = self.room.clone().acquire_many_owned(weight).await;
        while let Some(ended) = self.under_way.try_join_next() {
            self.target.check(ended)?;
        }
        let Target { engine, table } = self.target.clone();
        self.under_way.spawn(async move {
            let loaded = persist(|| engine.load(&table, &partition, rows.clone())).await;
            drop(room);
            loaded
        });
        Ok(())
    }
}

impl Target {
    fn check(&self, ended: Result<Result<(), store::Error>, tokio::task::JoinError>) -> Result<(), Error> {
        let outcome = ended.unwrap_or_else(|error| Err(error::cut_short(error)));
        outcome.map_err(Error::of_table(Side::Target, &self.table))
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("table", &self.table).finish_non_exhaustive()
    }
}
