//! Why an engine does not do as asked.

use std::sync::Arc;

use model::Refusal;
use thiserror::Error;

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
    #[error(transparent)]
    Fault(#[from] Fault),
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

/// The storage failed us: disk, network or damaged bytes. Says what happened for the operator's log; clients
/// never see it.
#[derive(Clone, Debug, Error)]
#[error("{message}")]
pub struct Fault {
    message: Arc<str>,
}

impl Fault {
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into().into() }
    }
}
