//! The fixed facts of an operation. Each service has a table of them.

#[derive(Debug, PartialEq, Eq)]
pub struct OperationInfo {
    /// In request logs and metrics.
    pub name: &'static str,
    pub class: Class,
    /// The read-only secondary refuses it.
    pub writes: bool,
    /// It needs a body.
    pub takes_body: bool,
    /// It may answer with a document, so `Accept` must allow a format of it.
    pub shows_document: bool,
}

/// Accounts turn on request logs for each class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Read,
    Write,
    Delete,
}
