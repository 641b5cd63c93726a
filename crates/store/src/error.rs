//! Why an engine does not do as asked.

use model::Refusal;
use thiserror::Error;

use crate::Fault;

#[derive(Clone, Debug, Error)]
pub enum Error {
    #[error("the table does not exist")]
    TableNotFound,
    #[error("the table exists already")]
    TableAlreadyExists,
    /// The first operation, in their order, whose condition did not hold. Nothing was changed.
    #[error("operation {index} rejected: {reason:?}")]
    Rejected { index: usize, reason: Reason },
    /// Too much is waiting; nothing was changed.
    #[error("the engine has more work waiting than it may hold")]
    Busy,
    /// Writes are refused while the data moves to another store; nothing was changed.
    #[error("writes are frozen while the data moves to another store")]
    Frozen,
    /// The change may or may not have been made, now or later.
    #[error("the outcome is unknown")]
    OutcomeUnknown,
    /// The storage failed us. Clients never see why.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl Error {
    /// Says of a fault which row or table it is about.
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
    /// What a merge would have stored is over a limit.
    OverLimit(Refusal),
}
