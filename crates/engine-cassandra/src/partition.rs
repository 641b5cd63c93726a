//! What a partition says of itself: its epoch, whether the directory lists it, and its last write.

use scylla::value::CqlValue;
use uuid::Uuid;

use crate::cluster::{Cluster, Conditional};
use crate::keys::KeyBytes;
use crate::trouble::Trouble;

/// One of an account's partitions, wherever its replicas are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartitionId {
    pub table: Uuid,
    pub key: KeyBytes,
}

/// Whether the directory lists a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registration {
    /// It may be listed all the same, by a writer that never finished. Holds no row.
    None,
    /// It is listed.
    Listed,
    /// Listed still, but a janitor is about to strike it off if it stays empty.
    Closing,
}

impl Registration {
    fn read(stored: Option<i8>) -> Result<Self, Trouble> {
        match stored {
            None | Some(0) => Ok(Self::None),
            Some(1) => Ok(Self::Listed),
            Some(2) => Ok(Self::Closing),
            Some(other) => {
                Err(Trouble::fault(format!("registered is {other}, which this program does not know")))
            }
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
pub struct State {
    /// `None`: nothing was ever written here. Changes with every step between the registrations, and never
    /// comes back to a value it had.
    pub epoch: Option<i64>,
    pub registration: Registration,
    /// The last stamp of the last write that went through, a delete's too.
    pub written: Option<i64>,
}

impl State {
    pub const UNTOUCHED: Self = Self { epoch: None, registration: Registration::None, written: None };

    pub fn from_columns(
        epoch: Option<i64>,
        registered: Option<i8>,
        written: Option<i64>,
    ) -> Result<Self, Trouble> {
        Ok(Self { epoch, registration: Registration::read(registered)?, written })
    }
}

impl Cluster {
    /// As the partition's consensus has it now.
    pub async fn partition_state(&self, id: &PartitionId) -> Result<State, Trouble> {
        let rows = self.read(&self.statements.partition_state, (id.table, id.key.as_bytes())).await?;
        let row: Option<(Option<i64>, Option<i8>, Option<i64>)> =
            rows.maybe_first_row().map_err(|error| Trouble::fault(error.to_string()))?;
        row.map_or(Ok(State::UNTOUCHED), |(epoch, registered, written)| {
            State::from_columns(epoch, registered, written)
        })
    }

    /// Moves the partition from one epoch to the next; false if it is no longer in the first.
    pub async fn change_epoch(
        &self,
        id: &PartitionId,
        from: Option<i64>,
        to: i64,
        registration: Registration,
    ) -> Result<bool, Trouble> {
        // Epochs are unique because slots are.
        if !self.clock.is_leased() {
            return Err(Trouble::Refused("the lease for writing has run out".to_owned()));
        }
        let step = Conditional {
            statement: &self.statements.change_epoch,
            values: vec![
                Some(CqlValue::BigInt(to)),
                Some(CqlValue::TinyInt(registration.stored())),
                Some(CqlValue::Uuid(id.table)),
                Some(CqlValue::Blob(id.key.as_bytes().to_vec())),
                from.map(CqlValue::BigInt),
            ],
        };
        Ok(self.compare_and_set(vec![step]).await?.is_applied())
    }

    /// Whether there is a row at all.
    pub async fn has_rows(&self, id: &PartitionId) -> Result<bool, Trouble> {
        let rows = self.read(&self.statements.any_row, (id.table, id.key.as_bytes())).await?;
        Ok(rows.rows_num() > 0)
    }
}
