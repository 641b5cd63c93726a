//! Errors, by what a caller can do about them.

use std::fmt;

/// Any failure of a call.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The service answered and refused. Nothing was changed.
    #[error("{0}")]
    Refused(ServiceRefusal),
    /// A write was sent, and it is unknown whether the service has done it. Read the entity to find out.
    #[error("it is not known whether this was done: {0}")]
    OutcomeUnknown(String),
    /// No answer, and nothing was changed: a read, or a write that was never sent.
    #[error("no answer: {0}")]
    Unanswered(String),
    /// The call is invalid, and nothing was sent. The text says what to change.
    #[error("{0}")]
    Invalid(String),
    /// An answer, or an entity in it, can't be read.
    #[error("{0}")]
    Unreadable(String),
    /// The content to upload could not be read from its source. No blob was written.
    #[error("the content to upload can't be read: {0}")]
    Source(String),
    /// A value could not be encrypted or decrypted.
    #[error("{0}")]
    Encryption(String),
}

/// A refusal by the service.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceRefusal {
    pub status: u16,
    /// Such as `EntityAlreadyExists`; empty if the answer has none.
    pub code: String,
    pub message: String,
    /// Which operation of a transaction failed, counted from 0.
    pub index: Option<usize>,
    /// `x-ms-request-id`, by which the service's operator can find the request.
    pub request_id: String,
}

impl fmt::Display for ServiceRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, code, message, index, request_id } = self;
        if let Some(index) = index {
            write!(f, "operation {index}: ")?;
        }
        write!(f, "{status}")?;
        let message = message.lines().next().unwrap_or_default();
        for (before, text, after) in
            [(" ", code.as_str(), ""), (": ", message, ""), (" (request ", request_id, ")")]
        {
            if !text.is_empty() {
                write!(f, "{before}{text}{after}")?;
            }
        }
        Ok(())
    }
}

impl Error {
    pub(crate) fn invalid(why: impl Into<String>) -> Self {
        Self::Invalid(why.into())
    }

    /// The service's refusal, if it is one.
    pub fn refusal(&self) -> Option<&ServiceRefusal> {
        match self {
            Self::Refused(refused) => Some(refused),
            _ => None,
        }
    }

    /// The status of the service's refusal.
    pub fn status(&self) -> Option<u16> {
        self.refusal().map(|refused| refused.status)
    }

    /// The code of the service's refusal, such as `EntityAlreadyExists`.
    pub fn code(&self) -> Option<&str> {
        self.refusal().map(|refused| refused.code.as_str())
    }

    /// Which operation of a transaction failed, counted from 0.
    pub fn index(&self) -> Option<usize> {
        self.refusal().and_then(|refused| refused.index)
    }

    /// There is no such entity or table (404).
    pub fn is_not_found(&self) -> bool {
        self.status() == Some(404)
    }

    /// The entity or table already exists (409).
    pub fn is_conflict(&self) -> bool {
        self.status() == Some(409)
    }

    /// The entity does not have the expected ETag (412).
    pub fn is_changed(&self) -> bool {
        self.status() == Some(412)
    }

    /// The service may have done the write, or not.
    pub fn is_outcome_unknown(&self) -> bool {
        matches!(self, Self::OutcomeUnknown(_))
    }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_shown_without_its_empty_parts() {
        let check = |code: &str, message: &str, request_id: &str, index, expected: &str| {
            let [code, message, request_id] = [code, message, request_id].map(str::to_owned);
            let refused = ServiceRefusal { status: 503, code, message, index, request_id };
            assert_eq!(refused.to_string(), expected);
        };
        check("Busy", "Later.\nTime:1", "7", Some(2), "operation 2: 503 Busy: Later. (request 7)");
        check("Busy", "", "", None, "503 Busy");
        check("", "<html>", "", None, "503: <html>");
        check("", "", "", None, "503");
    }
}
