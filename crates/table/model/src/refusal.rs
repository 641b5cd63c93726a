//! Every "no" of the Table service alone: status, code and words. Those of all services are `common::Refusal`; `Shared` holds
//! them, and `?` and `into` convert them.
//!
//! The words are the service's own, with its spelling, because clients match on them. One variant is one
//! answer; several answers share a code.

use std::fmt;

use common::ServiceKind;
use thiserror::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyName {
    PartitionKey,
    RowKey,
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PartitionKey => "PartitionKey",
            Self::RowKey => "RowKey",
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// One that all services have.
    #[error("{}", .0.message(ServiceKind::Table))]
    Shared(common::Refusal),

    // Does this resource understand the request?
    #[error("JSON format is not supported.")]
    JsonFormatNotSupported,
    #[error("Atom format is not supported.")]
    AtomFormatNotSupported,
    #[error("None of the provided media types are supported")]
    MediaTypeNotSupported,
    #[error("The request uses X-HTTP-Method with an HTTP verb other than POST.")]
    XMethodNotUsingPost,
    #[error("The specified X-HTTP-Method is invalid.")]
    XMethodIncorrectValue,
    #[error("More than one X-HTTP-Method is specified.")]
    XMethodIncorrectCount,
    #[error("The requested method is not allowed on the specified resource.")]
    MethodNotAllowed,
    #[error("Bad Request - Error in query syntax.")]
    QuerySyntax,
    #[error(
        "The number of keys specified in the URI does not match number of key properties for the resource '{resource}'."
    )]
    KeyCount { resource: String },
    #[error("The table specified does not exist.")]
    TableNotFound,
    #[error("{message}")]
    Syntax { message: String },
    #[error(
        "The etag value '{etag}' specified in one of the request headers is not valid. Please make sure only one etag value is specified and is valid."
    )]
    EtagNotValid { etag: String },
    #[error("If-None-Match HTTP header cannot be specified for {verb} operations.")]
    IfNoneMatch { verb: &'static str },
    #[error(
        "Both If-Match and If-None-Match HTTP headers cannot be specified at the same time. Please specify either one of the headers or none of them."
    )]
    BothMatchHeaders,

    /// Partita's own: the caller, or the operator, has set a limit.
    #[error(
        "The query looked at more than {max} entities for one page. Filter on PartitionKey and RowKey, or raise the limit: x-partita-max-examined, or --max-examined of the server."
    )]
    ScanTooLarge { max: u64 },

    // Is the body an entity or a table that can be stored?
    #[error("An error occurred while processing this request.")]
    BodyNotReadable,
    #[error("The property name exceeds the maximum allowed length (255).")]
    PropertyNameTooLong,
    #[error("The property name is invalid.")]
    PropertyNameInvalid,
    #[error("A property is specified more than one time.")]
    DuplicateProperties,
    #[error(
        "The entity contains more properties than allowed. Each entity can include up to 252 properties to store data. Each entity also has 3 system properties."
    )]
    TooManyProperties,
    #[error("The entity is larger than the maximum allowed size (1MB).")]
    EntityTooLarge,
    #[error(
        "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is UTF-16 encoded and the maximum number of characters should be 32K or less."
    )]
    PropertyValueTooLarge,
    #[error("The values are not specified for all properties in the entity.")]
    PropertiesNeedValue,
    #[error("The '{name}' parameter of value '{value}' is out of range.")]
    ParameterOutOfRange { name: String, value: String },

    // Is it a valid batch?
    #[error("The batch request operation exceeds the maximum 100 changes per change set.")]
    TooManyChanges,
    #[error("All commands in a batch must operate on same entity group.")]
    DifferentPartitions,
    #[error(
        "The batch request contains multiple changes with same row key. An entity can appear only once in a batch request."
    )]
    DuplicateRow,

    // Does the stored data allow it?
    #[error("The table specified already exists.")]
    TableAlreadyExists,
    #[error("The specified table is being deleted. Try operation later.")]
    TableBeingDeleted,
    #[error("The specified entity already exists.")]
    EntityAlreadyExists,
    #[error("The update condition specified in the request was not satisfied.")]
    UpdateConditionNotSatisfied,
}

impl From<common::Refusal> for Refusal {
    fn from(shared: common::Refusal) -> Self {
        Self::Shared(shared)
    }
}

/// So that a refusal can be compared with a shared one directly.
impl PartialEq<common::Refusal> for Refusal {
    fn eq(&self, other: &common::Refusal) -> bool {
        matches!(self, Self::Shared(shared) if shared == other)
    }
}

impl Refusal {
    /// The HTTP status and the error code.
    pub const fn answer(&self) -> (u16, &'static str) {
        match self {
            Self::Shared(shared) => shared.answer(ServiceKind::Table),
            Self::JsonFormatNotSupported => (415, "JsonFormatNotSupported"),
            Self::AtomFormatNotSupported => (415, "AtomFormatNotSupported"),
            Self::MediaTypeNotSupported => (415, "MediaTypeNotSupported"),
            Self::XMethodNotUsingPost => (400, "XMethodNotUsingPost"),
            Self::XMethodIncorrectValue => (400, "XMethodIncorrectValue"),
            Self::XMethodIncorrectCount => (400, "XMethodIncorrectCount"),
            Self::MethodNotAllowed => (405, "MethodNotAllowed"),
            Self::QuerySyntax
            | Self::KeyCount { .. }
            | Self::Syntax { .. }
            | Self::EtagNotValid { .. }
            | Self::IfNoneMatch { .. }
            | Self::BothMatchHeaders
            | Self::BodyNotReadable
            | Self::TooManyChanges => (400, "InvalidInput"),
            Self::ParameterOutOfRange { .. } => (400, "OutOfRangeInput"),
            Self::TableNotFound => (404, "TableNotFound"),
            Self::ScanTooLarge { .. } => (400, "ScanTooLarge"),
            Self::PropertyNameTooLong => (400, "PropertyNameTooLong"),
            Self::PropertyNameInvalid => (400, "PropertyNameInvalid"),
            Self::DuplicateProperties => (400, "DuplicatePropertiesSpecified"),
            Self::TooManyProperties => (400, "TooManyProperties"),
            Self::EntityTooLarge => (400, "EntityTooLarge"),
            Self::PropertyValueTooLarge => (400, "PropertyValueTooLarge"),
            Self::PropertiesNeedValue => (400, "PropertiesNeedValue"),
            Self::DifferentPartitions => (400, "CommandsInBatchActOnDifferentPartitions"),
            Self::DuplicateRow => (400, "InvalidDuplicateRow"),
            Self::TableAlreadyExists => (409, "TableAlreadyExists"),
            Self::TableBeingDeleted => (409, "TableBeingDeleted"),
            Self::EntityAlreadyExists => (409, "EntityAlreadyExists"),
            Self::UpdateConditionNotSatisfied => (412, "UpdateConditionNotSatisfied"),
        }
    }

    pub const fn status(&self) -> u16 {
        self.answer().0
    }

    pub const fn code(&self) -> &'static str {
        self.answer().1
    }

    /// The request is not at fault and may succeed later. Clients must see this status, also of a batch.
    pub const fn is_ours(&self) -> bool {
        matches!(self, Self::Shared(shared) if shared.is_ours())
    }

    /// Answered by the service's front end, before the table server sees the request: with other headers and other XML.
    pub const fn is_front_end(&self) -> bool {
        matches!(self, Self::Shared(shared) if shared.is_front_end())
    }

    /// Found by looking at an entity or at stored data. Only these answers have `Cache-Control` and repeat the preference
    /// (spec: 2.3).
    pub const fn reached_the_store(&self) -> bool {
        matches!(
            self,
            Self::PropertyNameTooLong
                | Self::PropertyNameInvalid
                | Self::DuplicateProperties
                | Self::TooManyProperties
                | Self::EntityTooLarge
                | Self::PropertyValueTooLarge
                | Self::PropertiesNeedValue
                | Self::ParameterOutOfRange { .. }
                | Self::TooManyChanges
                | Self::DuplicateRow
                | Self::TableAlreadyExists
                | Self::TableBeingDeleted
                | Self::EntityAlreadyExists
                | Self::UpdateConditionNotSatisfied
                | Self::Shared(
                    common::Refusal::ResourceNotFound
                        // Nothing was looked at yet, but the service answers like this.
                        | common::Refusal::AuthorizationPermissionMismatch
                        | common::Refusal::AuthorizationResourceTypeMismatch
                )
        )
    }

    /// Whether the answer names the index even in a change set of one operation (spec: 6.4).
    pub const fn names_index_when_alone(&self) -> bool {
        !matches!(
            self,
            Self::Shared(common::Refusal::ResourceNotFound)
                | Self::EntityAlreadyExists
                | Self::UpdateConditionNotSatisfied
                | Self::PropertyValueTooLarge
                | Self::EntityTooLarge
        )
    }
}
