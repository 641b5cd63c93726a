//! What an operation answers, and why there is none.

use bytes::Bytes;
use front::access::Denial;
use front::{BodyFailure, refusal_of_fault};
use http::{HeaderName, HeaderValue};
use queue_model::Refusal;

/// An answer's own part: what every answer carries is added where it is sent.
#[derive(Debug, Default)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// XML.
    pub document: Option<Bytes>,
}

impl Answer {
    pub fn empty(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    pub fn document(status: u16, document: impl Into<Bytes>) -> Self {
        Self { status, document: Some(document.into()), ..Self::default() }
    }
}

/// Why there is no answer.
#[derive(Clone, Debug)]
pub struct Failure {
    pub refusal: Refusal,
    /// Why the caller was not let in.
    pub authentication_detail: Option<String>,
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, authentication_detail: None }
    }
}

impl From<common::Refusal> for Failure {
    fn from(refusal: common::Refusal) -> Self {
        Refusal::from(refusal).into()
    }
}

impl From<Denial> for Failure {
    fn from(denial: Denial) -> Self {
        Self { authentication_detail: denial.detail, ..denial.refusal.into() }
    }
}

impl From<BodyFailure> for Failure {
    fn from(failure: BodyFailure) -> Self {
        match failure {
            BodyFailure::Refused(refusal) => refusal.into(),
            BodyFailure::Broken => common::Refusal::InputNotValid.into(),
        }
    }
}

impl From<queue_service::Error> for Failure {
    fn from(error: queue_service::Error) -> Self {
        match error {
            queue_service::Error::Refused(refusal) => refusal.into(),
            queue_service::Error::Fault(fault) => refusal_of_fault(&fault).into(),
        }
    }
}
