//! What an operation answers, and why there is none.

use std::borrow::Cow;
use std::pin::Pin;

use blob_model::Refusal;
use bytes::Bytes;
use front::access::Denial;
use front::{BodyFailure, BrokenStream, refusal_of_fault};
use futures_core::Stream;

/// Content on its way to the client.
pub type Content = Pin<Box<dyn Stream<Item = Result<Bytes, BrokenStream>> + Send>>;

/// An answer's own part: what every answer carries is added where it is sent.
#[derive(Default)]
pub struct Answer {
    pub status: u16,
    /// Names as they are to be spelled.
    pub headers: Vec<(Cow<'static, str>, String)>,
    pub body: AnswerBody,
}

#[derive(Default)]
pub enum AnswerBody {
    #[default]
    None,
    /// XML, in chunks as the service sends it.
    Document(Bytes),
    /// XML with its length.
    SizedDocument(Bytes),
    /// In chunks, of this type.
    Other(String, Bytes),
    Content {
        length: u64,
        content: Content,
    },
}

impl Answer {
    pub fn empty(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    pub fn document(status: u16, document: impl Into<Bytes>) -> Self {
        Self { status, body: AnswerBody::Document(document.into()), ..Self::default() }
    }

    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub fn with_all(mut self, headers: Vec<(Cow<'static, str>, String)>) -> Self {
        self.headers.extend(headers);
        self
    }
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer").field("status", &self.status).finish_non_exhaustive()
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
        of_body(failure).into()
    }
}

/// A body that can't be read.
pub fn of_body(failure: BodyFailure) -> Refusal {
    match failure {
        BodyFailure::Refused(refusal) => refusal.into(),
        BodyFailure::Broken => common::Refusal::InputNotValid.into(),
    }
}

impl From<blob_service::Error> for Failure {
    fn from(error: blob_service::Error) -> Self {
        match error {
            blob_service::Error::Refused(refusal) => refusal.into(),
            blob_service::Error::Fault(fault) => refusal_of_fault(&fault).into(),
        }
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        blob_service::Error::from(error).into()
    }
}
