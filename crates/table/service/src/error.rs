//! Why an operation failed: a refusal that the protocol defines, or a fault of ours.

use filter::FilterError;
use model::Refusal;
use store::Reason;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// `index` is the index of the operation in its group.
    #[error("{refusal}")]
    Refused { refusal: Refusal, index: Option<usize> },
    #[error(transparent)]
    Fault(store::Fault),
}

impl Error {
    /// For a single write, which has no index.
    pub(crate) fn without_index(self) -> Self {
        match self {
            Self::Refused { refusal, .. } => refusal.into(),
            fault @ Self::Fault(_) => fault,
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused { refusal, index: None }
    }
}

impl From<common::Refusal> for Error {
    fn from(refusal: common::Refusal) -> Self {
        Refusal::from(refusal).into()
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::TableNotFound => Refusal::TableNotFound.into(),
            store::Error::TableAlreadyExists => Refusal::TableAlreadyExists.into(),
            store::Error::Rejected { index, reason } => {
                let refusal = match reason {
                    Reason::Exists => Refusal::EntityAlreadyExists,
                    Reason::Missing => common::Refusal::ResourceNotFound.into(),
                    Reason::VersionDiffers => Refusal::UpdateConditionNotSatisfied,
                    Reason::OverLimit(refusal) => refusal,
                };
                Self::Refused { refusal, index: Some(index) }
            }
            store::Error::Frozen => common::Refusal::Frozen.into(),
            store::Error::Busy => common::Refusal::Busy.into(),
            // The SDKs treat this answer as "may have happened", which is true.
            store::Error::OutcomeUnknown => common::Refusal::TimedOut.into(),
            store::Error::Fault(fault) => Self::Fault(fault),
        }
    }
}

impl From<FilterError> for Error {
    fn from(error: FilterError) -> Self {
        match error {
            FilterError::Syntax(message) => Refusal::Syntax { message }.into(),
            FilterError::NotImplemented => common::Refusal::NotImplemented.into(),
            FilterError::NotValid => common::Refusal::InputNotValid.into(),
        }
    }
}
