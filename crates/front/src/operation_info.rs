//! What is known of an operation, whatever its arguments. Each service has a table of these.

#[derive(Debug, PartialEq, Eq)]
pub struct OperationInfo {
    /// In request logs and metrics.
    pub name: &'static str,
    pub class: Class,
    /// The read-only secondary refuses it.
    pub writes: bool,
    /// It can't do without a body.
    pub takes_body: bool,
    /// It may answer with a document, which the client must be able to read.
    pub shows_document: bool,
}

/// Request logs are turned on for each of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Read,
    Write,
    Delete,
}
