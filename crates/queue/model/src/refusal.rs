//! Every "no" a client of queues can hear: status, code, words and details. What all services say is `common`'s.
//!
//! The words are the service's own, with its spelling, because clients match on them. One variant is one answer; several
//! answers share a code.

use std::borrow::Cow;

use common::ServiceKind;
use thiserror::Error;

use crate::limits;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// What the other services say too.
    #[error("{}", .0.message(ServiceKind::Queue))]
    Shared(common::Refusal),

    // Is it a request this resource understands.
    #[error("The resource doesn't support specified Http Verb.")]
    VerbNotSupported,
    #[error("Value for one of the query parameters specified in the request URI is invalid.")]
    ParameterInvalid { name: &'static str, value: String, reason: &'static str },
    #[error("One of the query parameters specified in the request URI is outside the permissible range.")]
    ParameterOutOfRange { name: &'static str, value: String, min: u64, max: u64 },
    #[error("A query parameter that's mandatory for this request is not specified.")]
    ParameterMissing { name: &'static str },

    // Is it metadata, or a message, that could be stored.
    #[error("The metadata specified is invalid. It has characters that are not permitted.")]
    MetadataInvalid,
    #[error("The key for one of the metadata key-value pairs is empty.")]
    MetadataKeyEmpty { value: String },
    #[error("The size of the specified metadata exceeds the maximum size permitted.")]
    MetadataTooLarge,
    /// The place of the fault in the document, both counted from one; zeros if the document as a whole is at fault.
    #[error("XML specified is not syntactically valid.")]
    XmlNotValid { line: usize, position: usize, reason: Cow<'static, str> },

    // Does what is stored allow it.
    #[error("The specified queue does not exist.")]
    QueueNotFound,
    #[error("The specified queue already exists.")]
    QueueAlreadyExists,
    #[error("The specified queue is being deleted.")]
    QueueBeingDeleted,
    #[error("The specified message does not exist.")]
    MessageNotFound,
}

impl From<common::Refusal> for Refusal {
    fn from(shared: common::Refusal) -> Self {
        Self::Shared(shared)
    }
}

impl Refusal {
    /// A message would become visible only after it has expired.
    pub fn visible_after_expiry(visibility_seconds: u64) -> Self {
        Self::ParameterInvalid {
            name: "visibilitytimeout",
            value: visibility_seconds.to_string(),
            reason: "messagettl must be greater than visibilitytimeout",
        }
    }

    /// The HTTP status and the error code.
    pub const fn answer(&self) -> (u16, &'static str) {
        match self {
            Self::Shared(shared) => shared.answer(ServiceKind::Queue),
            Self::VerbNotSupported => (405, "UnsupportedHttpVerb"),
            Self::ParameterInvalid { .. } => (400, "InvalidQueryParameterValue"),
            Self::ParameterOutOfRange { .. } => (400, "OutOfRangeQueryParameterValue"),
            Self::ParameterMissing { .. } => (400, "MissingRequiredQueryParameter"),
            Self::MetadataInvalid => (400, "InvalidMetadata"),
            Self::MetadataKeyEmpty { .. } => (400, "EmptyMetadataKey"),
            Self::MetadataTooLarge => (400, "MetadataTooLarge"),
            Self::XmlNotValid { .. } => (400, "InvalidXmlDocument"),
            Self::QueueNotFound => (404, "QueueNotFound"),
            Self::QueueAlreadyExists => (409, "QueueAlreadyExists"),
            Self::QueueBeingDeleted => (409, "QueueBeingDeleted"),
            Self::MessageNotFound => (404, "MessageNotFound"),
        }
    }

    pub const fn status(&self) -> u16 {
        self.answer().0
    }

    pub const fn code(&self) -> &'static str {
        self.answer().1
    }

    /// What the answer says beside code and words: names and values of elements, in order (spec: queue-operations 2.3).
    pub fn details(&self) -> Vec<(&'static str, Cow<'_, str>)> {
        match self {
            Self::ParameterInvalid { name, value, reason } => vec![
                ("QueryParameterName", (*name).into()),
                ("QueryParameterValue", value.into()),
                ("Reason", (*reason).into()),
            ],
            Self::ParameterOutOfRange { name, value, min, max } => vec![
                ("QueryParameterName", (*name).into()),
                ("QueryParameterValue", value.into()),
                ("MinimumAllowed", min.to_string().into()),
                ("MaximumAllowed", max.to_string().into()),
            ],
            Self::ParameterMissing { name } => vec![("QueryParameterName", (*name).into())],
            Self::MetadataKeyEmpty { value } => vec![("MetadataValue", value.into())],
            Self::XmlNotValid { line, position, reason } => vec![
                ("LineNumber", line.to_string().into()),
                ("LinePosition", position.to_string().into()),
                ("Reason", (&**reason).into()),
            ],
            Self::Shared(common::Refusal::RequestBodyTooLarge) => {
                vec![("MaxLimit", limits::TEXT_BYTES_MAX.to_string().into())]
            }
            Self::Shared(common::Refusal::ContentLengthMissing) => {
                vec![("HeaderName", "Content-Length".into())]
            }
            Self::Shared(_)
            | Self::VerbNotSupported
            | Self::MetadataInvalid
            | Self::MetadataTooLarge
            | Self::QueueNotFound
            | Self::QueueAlreadyExists
            | Self::QueueBeingDeleted
            | Self::MessageNotFound => Vec::new(),
        }
    }

    /// Not the request's fault: the same one may go through later.
    pub const fn is_ours(&self) -> bool {
        matches!(self, Self::Shared(shared) if shared.is_ours())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec: queue-operations 2.3 and 8, where recorded.
    #[test]
    fn refusals_are_the_services_to_the_letter() {
        let check = |refusal: Refusal, status, code, message: &str, details: &[(&str, &str)]| {
            assert_eq!(
                (refusal.status(), refusal.code(), refusal.to_string().as_str()),
                (status, code, message)
            );
            let told = refusal.details();
            let told: Vec<(&str, &str)> = told.iter().map(|(name, value)| (*name, &**value)).collect();
            assert_eq!(told, details);
        };
        check(
            Refusal::visible_after_expiry(30),
            400,
            "InvalidQueryParameterValue",
            "Value for one of the query parameters specified in the request URI is invalid.",
            &[
                ("QueryParameterName", "visibilitytimeout"),
                ("QueryParameterValue", "30"),
                ("Reason", "messagettl must be greater than visibilitytimeout"),
            ],
        );
        check(
            Refusal::ParameterOutOfRange { name: "numofmessages", value: "33".to_owned(), min: 1, max: 32 },
            400,
            "OutOfRangeQueryParameterValue",
            "One of the query parameters specified in the request URI is outside the permissible range.",
            &[
                ("QueryParameterName", "numofmessages"),
                ("QueryParameterValue", "33"),
                ("MinimumAllowed", "1"),
                ("MaximumAllowed", "32"),
            ],
        );
        check(
            Refusal::MetadataKeyEmpty { value: "value".to_owned() },
            400,
            "EmptyMetadataKey",
            "The key for one of the metadata key-value pairs is empty.",
            &[("MetadataValue", "value")],
        );
        check(
            common::Refusal::RequestBodyTooLarge.into(),
            413,
            "RequestBodyTooLarge",
            "The request body is too large and exceeds the maximum permissible limit.",
            &[("MaxLimit", "65536")],
        );
        check(Refusal::MessageNotFound, 404, "MessageNotFound", "The specified message does not exist.", &[]);
    }
}
