//! The state of a partition: its epoch, whether the directory lists it, and its last write.

use scylla::statement::prepared::PreparedStatement;
use scylla::value::CqlValue;
use uuid::Uuid;

use crate::cluster::{Cluster, Conditional, Outcome};
use crate::keys::KeyBytes;
use crate::narrow::Narrow;
use crate::statements::StateColumns;
use crate::trouble::{Trouble, undecodable};

/// A partition of a table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartitionId {
    pub table: Uuid,
    pub key: KeyBytes,
}

/// Whether the directory lists a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registration {
    /// It has no rows. It may be listed all the same, by a writer that never finished.
    None,
    /// It is listed.
    Listed,
    /// It is listed, but a janitor is about to strike it off if it stays empty.
    Closing,
}

impl Registration {
    fn read(stored: Option<i8>) -> Result<Self, Trouble> {
        match stored {
            None | Some(0) => Ok(Self::None),
            Some(1) => Ok(Self::Listed),
            Some(2) => Ok(Self::Closing),
            Some(other) => Err(Trouble::damaged(format!(
                "a partition is in registration {other}, which this release does not know"
            ))),
        }
    }

    pub fn stored(self) -> i8 {
        match self {
            Self::None => 0,
            Self::Listed => 1,
            Self::Closing => 2,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionState {
    /// `None` if nothing was ever written. It changes whenever the registration changes, and no value recurs.
    pub epoch: Option<i64>,
    pub registration: Registration,
    /// The stamp of the last write that was applied, also of a delete.
    pub written: Option<i64>,
    /// The stamp of the last write that deleted rows. No row that was ever deleted here had a larger one, so a new row
    /// with a larger stamp continues the order of whatever row had its key before.
    pub deleted: Option<i64>,
}

impl PartitionState {
    pub const UNTOUCHED: Self =
        Self { epoch: None, registration: Registration::None, written: None, deleted: None };

    pub fn from_columns((epoch, registered, written, deleted): StateColumns) -> Result<Self, Trouble> {
        Ok(Self { epoch, registration: Registration::read(registered)?, written, deleted })
    }
}

impl Cluster {
    /// The present state, by a serial read.
    pub async fn partition_state(&self, id: &PartitionId) -> Result<PartitionState, Trouble> {
        let rows = match self.read(&self.statements.partition_state, (id.table, id.key.as_bytes())).await {
            Err(Trouble::Tombstones(_)) => return self.state_by_refusal(id).await,
            rows => rows?,
        };
        let row: Option<StateColumns> =
            rows.maybe_first_row().map_err(undecodable("the state of a partition"))?;
        row.map_or(Ok(PartitionState::UNTOUCHED), PartitionState::from_columns)
    }

    /// The same from a refused write. A read of the partition's own columns also reads its first row, behind all
    /// tombstones. A condition on a row reads only that row.
    async fn state_by_refusal(&self, id: &PartitionId) -> Result<PartitionState, Trouble> {
        let values = vec![Some(CqlValue::Uuid(id.table)), Some(CqlValue::Blob(id.key.as_bytes().to_vec()))];
        let step = Conditional { statement: &self.statements.refused, values };
        let Outcome::Refused(found) = self.compare_and_set(vec![step]).await? else {
            return Err(Trouble::damaged(format!("partition {id:?} is in an epoch that no server gives")));
        };
        let Some(row) = found.first() else { return Ok(PartitionState::UNTOUCHED) };
        let registered = row.value("registered").and_then(CqlValue::as_tinyint);
        let (epoch, written, deleted) = (row.number("epoch"), row.number("written"), row.number("deleted"));
        PartitionState::from_columns((epoch, registered, written, deleted))
    }

    /// Moves the partition from one epoch to another; false if it is no longer in the first.
    pub async fn change_epoch(
        &self,
        id: &PartitionId,
        from: Option<i64>,
        to: i64,
        registration: Registration,
    ) -> Result<bool, Trouble> {
        self.change_epoch_and(id, from, to, registration, None).await
    }

    /// The same for a partition without rows, whose epoch prevents new ones. It becomes `Registration::None`, and one
    /// tombstone replaces those of its rows.
    pub async fn clear(&self, id: &PartitionId, from: i64, to: i64) -> Result<bool, Trouble> {
        let clear = Some(&self.statements.clear_rows);
        self.change_epoch_and(id, Some(from), to, Registration::None, clear).await
    }

    async fn change_epoch_and(
        &self,
        id: &PartitionId,
        from: Option<i64>,
        to: i64,
        registration: Registration,
        clear: Option<&PreparedStatement>,
    ) -> Result<bool, Trouble> {
        // Epochs are unique because slots are.
        if !self.clock.is_leased() {
            return Err(Trouble::refused("the slot lease has expired"));
        }
        let (table, key) = (Some(CqlValue::Uuid(id.table)), Some(CqlValue::Blob(id.key.as_bytes().to_vec())));
        let mut steps = vec![Conditional {
            statement: &self.statements.change_epoch,
            values: vec![
                Some(CqlValue::BigInt(to)),
                Some(CqlValue::TinyInt(registration.stored())),
                table.clone(),
                key.clone(),
                from.map(CqlValue::BigInt),
            ],
        }];
        steps.extend(clear.map(|statement| Conditional { statement, values: vec![table, key] }));
        Ok(self.compare_and_set(steps).await?.is_applied())
    }

    /// Whether the partition has a row. With many tombstones this takes several reads, so a row that is written
    /// meanwhile may be missed.
    pub async fn has_rows(&self, id: &PartitionId) -> Result<bool, Trouble> {
        let mut narrow = Narrow::new(KeyBytes::lowest().as_bytes(), KeyBytes::above_all().as_bytes());
        while let Some((from, to)) = narrow.next() {
            match self.read(&self.statements.any_row, (id.table, id.key.as_bytes(), from, to)).await {
                Ok(rows) if rows.rows_num() > 0 => return Ok(true),
                Ok(_) => narrow.passed(),
                Err(trouble) => narrow.failed(trouble)?,
            }
        }
        Ok(false)
    }
}
