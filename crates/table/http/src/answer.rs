//! What an operation answers, before it is known whether it stands alone or in a batch.

use std::borrow::Cow;

use bytes::Bytes;
use front::access::Denial;
use front::{BodyFailure, Held, held_bytes};
use model::Refusal;
use store::FaultKind;
use wire::names;

/// An answer's own part: what every answer carries is added where it is sent.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub status: u16,
    pub etag: Option<String>,
    /// The address of what was created.
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
    /// Its bytes take this much of the memory for requests until the last of them is on its way.
    pub fn holding(self, held: Held) -> Self {
        Self { bytes: held_bytes(self.bytes, held), ..self }
    }
}

/// `Prefer`: whether an insert answers with what it stored.
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
pub struct Failure {
    pub refusal: Refusal,
    /// Of the operation within its batch, if that is to be told.
    pub index: Option<usize>,
    /// Whether the request got as far as the store, which some headers tell.
    pub reached_the_store: bool,
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self { index: None, reached_the_store: refusal.reached_the_store(), refusal }
    }
}

impl From<common::Refusal> for Failure {
    fn from(refusal: common::Refusal) -> Self {
        Refusal::from(refusal).into()
    }
}

/// Tables tell nothing beside the refusal.
impl From<Denial> for Failure {
    fn from(denial: Denial) -> Self {
        denial.refusal.into()
    }
}

impl From<BodyFailure> for Failure {
    fn from(failure: BodyFailure) -> Self {
        match failure {
            BodyFailure::Refused(refusal) => refusal.into(),
            BodyFailure::Broken => Refusal::BodyNotReadable.into(),
        }
    }
}

impl From<service::Error> for Failure {
    fn from(error: service::Error) -> Self {
        match error {
            service::Error::Refused { refusal, index } => Self { index, ..refusal.into() },
            service::Error::Fault(fault) => {
                let refusal = refusal_of(fault.kind());
                // The only place where it is said: the client is told the refusal and no more.
                if refusal == Refusal::Busy {
                    tracing::warn!(kind = %fault.kind(), %fault, "the store put off a request");
                } else {
                    tracing::error!(kind = %fault.kind(), %fault, "the store failed a request");
                }
                refusal.into()
            }
        }
    }
}

/// What a client hears of a fault.
fn refusal_of(kind: FaultKind) -> Refusal {
    match kind {
        // Nothing was changed, and the client does right to try again.
        FaultKind::Busy => Refusal::Busy,
        // A cluster that merely did not answer is no fault: its engine says `Error::Busy`, or that it does not know.
        FaultKind::Damaged | FaultKind::Disk | FaultKind::Cluster | FaultKind::Bug => Refusal::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_fault_has_its_answer() {
        for (kind, status, code) in [
            (FaultKind::Damaged, 500, "InternalError"),
            (FaultKind::Disk, 500, "InternalError"),
            (FaultKind::Cluster, 500, "InternalError"),
            (FaultKind::Busy, 503, "ServerBusy"),
            (FaultKind::Bug, 500, "InternalError"),
        ] {
            let refusal = refusal_of(kind);
            assert_eq!((refusal.status(), refusal.code()), (status, code), "{kind}");
        }
    }

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
            let Failure { refusal, .. } = service::Error::from(error).into();
            assert_eq!((refusal.status(), refusal.code()), (status, code), "{shown}");
        }
    }
}
