//! What an operation can end in: a refusal the protocol knows, or a fault that is ours.

use blob_model::Refusal;
use store::Fault;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::TableNotFound => Refusal::ContainerNotFound.into(),
            store::Error::TableAlreadyExists => Refusal::ContainerAlreadyExists.into(),
            // Operations that have conditions answer this themselves.
            store::Error::Rejected { index, reason } => {
                Fault::bug(format!("operation {index} in a container was rejected: {reason:?}")).into()
            }
            store::Error::Frozen => Refusal::Shared(common::Refusal::Frozen).into(),
            store::Error::Busy => Refusal::Shared(common::Refusal::Busy).into(),
            // The SDKs take this answer for "may have happened", which is the truth.
            store::Error::OutcomeUnknown => Refusal::Shared(common::Refusal::TimedOut).into(),
            store::Error::Fault(fault) => fault.into(),
        }
    }
}
