//! Why an engine does not do what a call asks for.

use model::Refusal;
use thiserror::Error;

use crate::Fault;

#[derive(Clone, Debug, Error)]
pub enum Error {
    #[error("the table does not exist")]
    TableNotFound,
    #[error("the table exists already")]
    TableAlreadyExists,
    /// The condition of this operation, the first such one, did not hold. Nothing was changed.
    #[error("operation {index} rejected: {reason:?}")]
    Rejected { index: usize, reason: Reason },
    /// Too many requests wait. Nothing was changed.
    #[error("the engine has more work waiting than it may hold")]
    Busy,
    /// Writes are refused while the data moves to another store; nothing was changed.
    #[error("writes are frozen while the data moves to another store")]
    Frozen,
    /// The change may or may not have been made, now or later.
    #[error("the outcome is unknown")]
    OutcomeUnknown,
    /// The storage failed. Clients never see why.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl Error {
    /// Adds the row or table to a fault.
    pub fn about(self, place: impl FnOnce() -> String) -> Self {
        match self {
            Self::Fault(fault) => Self::Fault(fault.about(place())),
            other => other,
        }
    }
}

/// Why one operation was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    Exists,
    Missing,
    VersionDiffers,
    /// The merged entity would exceed a limit.
    OverLimit(Refusal),
}
