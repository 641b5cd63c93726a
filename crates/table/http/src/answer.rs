//! The answer of an operation, whether it is alone or part of a batch.

use std::borrow::Cow;

use bytes::Bytes;
use front::access::Denial;
use front::{BodyFailure, MemoryShare, held_bytes, refusal_of_fault};
use model::Refusal;
use wire::names;

/// The part of an answer that depends on the operation. `respond` and `batch` add the rest.
#[derive(Clone, Debug, Default)]
pub struct TableAnswer {
    pub status: u16,
    pub etag: Option<String>,
    /// The address of the created entity or table.
    pub location: Option<String>,
    /// Whether `DataServiceId` repeats the location.
    pub names_location_twice: bool,
    pub preference_applied: Option<Preference>,
    /// Continuation headers.
    pub continuation: Vec<(&'static str, String)>,
    pub content: Option<Content>,
}

#[derive(Clone, Debug)]
pub struct Content {
    pub content_type: Cow<'static, str>,
    pub bytes: Bytes,
}

impl Content {
    /// The memory stays held until the last byte is sent.
    pub fn holding(self, held: MemoryShare) -> Self {
        Self { bytes: held_bytes(self.bytes, held), ..self }
    }
}

/// `Prefer`: whether the answer to an insert shows the entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preference {
    Content,
    NoContent,
}

impl Preference {
    pub fn parse(text: &str) -> Option<Self> {
        text.split(',').map(str::trim).find_map(|asked| {
            [Self::Content, Self::NoContent]
                .into_iter()
                .find(|known| known.as_str().eq_ignore_ascii_case(asked))
        })
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Content => names::RETURN_CONTENT,
            Self::NoContent => names::RETURN_NO_CONTENT,
        }
    }
}

/// Why there is no answer.
#[derive(Clone, Debug)]
pub struct TableFailure {
    pub refusal: Refusal,
    /// The index of the operation in its batch, if the message shows it.
    pub index: Option<usize>,
    /// Whether the request reached the store. Some headers depend on it.
    pub reached_the_store: bool,
}

impl From<Refusal> for TableFailure {
    fn from(refusal: Refusal) -> Self {
        Self { index: None, reached_the_store: refusal.reached_the_store(), refusal }
    }
}

impl From<common::Refusal> for TableFailure {
    fn from(refusal: common::Refusal) -> Self {
        Refusal::from(refusal).into()
    }
}

/// Tables tell nothing beside the refusal.
impl From<Denial> for TableFailure {
    fn from(denial: Denial) -> Self {
        denial.refusal.into()
    }
}

impl From<BodyFailure> for TableFailure {
    fn from(failure: BodyFailure) -> Self {
        match failure {
            BodyFailure::Refused(refusal) => refusal.into(),
            BodyFailure::Broken => Refusal::BodyNotReadable.into(),
        }
    }
}

impl From<service::Error> for TableFailure {
    fn from(error: service::Error) -> Self {
        match error {
            service::Error::Refused { refusal, index } => Self { index, ..refusal.into() },
            service::Error::Fault(fault) => refusal_of_fault(&fault).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_engine_says_without_a_fault_has_its_answer_too() {
        for (error, status, code) in [
            (store::Error::Busy, 503, "ServerBusy"),
            (store::Error::OutcomeUnknown, 500, "OperationTimedOut"),
            (store::Error::TableNotFound, 404, "TableNotFound"),
            (store::Fault::closed().into(), 503, "ServerBusy"),
            (store::Fault::disk("could not write a commit").into(), 500, "InternalError"),
        ] {
            let shown = error.to_string();
            let TableFailure { refusal, .. } = service::Error::from(error).into();
            assert_eq!((refusal.status(), refusal.code()), (status, code), "{shown}");
        }
    }
}
