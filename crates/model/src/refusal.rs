//! Every "no" a client can hear: status, code and words.
//!
//! The words are the service's own, with its spelling, because clients match on them. One variant is one
//! answer; several answers share a code.

use std::fmt;

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
    // Who are you, and is this a request at all: answered by the service's front end.
    #[error("The value for one of the HTTP headers is not in the correct format.")]
    HeaderValueInvalid,
    #[error("The requested URI does not represent any resource on the server.")]
    UriInvalid,
    #[error(
        "The required host information is not present in the request. You must send a non-empty Host header or include the absolute URI in the request line."
    )]
    HostMissing,
    #[error("Value for one of the query parameters specified in the request URI is invalid.")]
    QueryParameterValueInvalid,
    #[error(
        "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."
    )]
    NoAuthenticationInformation,
    #[error(
        "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."
    )]
    BearerTokenNotAccepted,
    #[error(
        "Authentication information is not given in the correct format. Check the value of Authorization header."
    )]
    AuthenticationInfoMalformed,
    #[error(
        "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature."
    )]
    AuthenticationFailed,
    #[error("Write operations are not allowed.")]
    WritesNotAllowed,
    #[error("The specified resource does not exist.")]
    AccountNotFound,
    #[error("The request body is too large and exceeds the maximum permissible limit.")]
    RequestBodyTooLarge,
    #[error("The Content-Length header was not specified.")]
    ContentLengthMissing,

    // May you do that, as far as your token says.
    #[error("This request is not authorized to perform this operation.")]
    AuthorizationFailure,
    #[error("This request is not authorized to perform this operation using this permission.")]
    AuthorizationPermissionMismatch,
    #[error("This request is not authorized to perform this operation using this resource type.")]
    AuthorizationResourceTypeMismatch,
    #[error("This request is not authorized to perform this operation using this service.")]
    AuthorizationServiceMismatch,
    #[error("This request is not authorized to perform this operation using this protocol.")]
    AuthorizationProtocolMismatch,
    #[error("This request is not authorized to perform this operation using this source IP {ip}.")]
    AuthorizationSourceIpMismatch { ip: String },
    #[error("A required CORS header is not present.")]
    CorsHeaderMissing,
    #[error("CORS not enabled or no matching rule found for this request.")]
    CorsPreflightFailure,

    // Is it a request this resource understands.
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
    #[error("The requested operation is not implemented on the specified resource.")]
    NotImplemented,
    #[error("Bad Request - Error in query syntax.")]
    QuerySyntax,
    #[error(
        "The number of keys specified in the URI does not match number of key properties for the resource '{resource}'."
    )]
    KeyCount { resource: String },
    #[error("One of the request inputs is out of range.")]
    InputOutOfRange,
    #[error("The specified resource name length is not within the permissible limits.")]
    ResourceNameLength,
    #[error("The specifed resource name contains invalid characters.")]
    ResourceNameCharacters,
    #[error("The table specified does not exist.")]
    TableNotFound,
    #[error("{message}")]
    Syntax { message: String },
    #[error("One of the request inputs is not valid.")]
    InputNotValid,
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

    // Is the body an entity, or a table, that could be stored.
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

    #[error("XML specified is not syntactically valid.")]
    XmlNotValid,
    #[error("The value for one of the XML nodes is not in the correct format.")]
    XmlNodeValue,

    // Is the group a group.
    #[error("The batch request operation exceeds the maximum 100 changes per change set.")]
    TooManyChanges,
    #[error("All commands in a batch must operate on same entity group.")]
    DifferentPartitions,
    #[error(
        "The batch request contains multiple changes with same row key. An entity can appear only once in a batch request."
    )]
    DuplicateRow,

    // Does what is stored allow it.
    #[error("The table specified already exists.")]
    TableAlreadyExists,
    #[error("The specified table is being deleted. Try operation later.")]
    TableBeingDeleted,
    #[error("The specified entity already exists.")]
    EntityAlreadyExists,
    #[error("The specified resource does not exist.")]
    ResourceNotFound,
    #[error("The condition specified using HTTP conditional header(s) is not met.")]
    ConditionNotMet,
    #[error("The update condition specified in the request was not satisfied.")]
    UpdateConditionNotSatisfied,

    // Not the client's doing.
    #[error("Server encountered an internal error. Please try again after some time.")]
    Internal,
    #[error("Operation could not be completed within the specified time.")]
    TimedOut,
    #[error("The server is busy.")]
    Busy,
    #[error("Operations per second is over the account limit.")]
    AccountBusy,
    /// Writes wait until the data has moved to where it is going.
    #[error("The server is busy.")]
    Frozen,
}

impl Refusal {
    /// The HTTP status and the error code.
    pub const fn answer(&self) -> (u16, &'static str) {
        match self {
            Self::HeaderValueInvalid => (400, "InvalidHeaderValue"),
            Self::UriInvalid => (400, "InvalidUri"),
            Self::HostMissing => (400, "HostInformationNotPresent"),
            Self::QueryParameterValueInvalid => (400, "InvalidQueryParameterValue"),
            Self::NoAuthenticationInformation => (401, "NoAuthenticationInformation"),
            Self::BearerTokenNotAccepted => (401, "InvalidAuthenticationInfo"),
            Self::AuthenticationInfoMalformed => (400, "InvalidAuthenticationInfo"),
            Self::AuthenticationFailed => (403, "AuthenticationFailed"),
            Self::WritesNotAllowed => (403, "InsufficientAccountPermissions"),
            Self::AuthorizationFailure => (403, "AuthorizationFailure"),
            Self::AuthorizationPermissionMismatch => (403, "AuthorizationPermissionMismatch"),
            Self::AuthorizationResourceTypeMismatch => (403, "AuthorizationResourceTypeMismatch"),
            Self::AuthorizationServiceMismatch => (403, "AuthorizationServiceMismatch"),
            Self::AuthorizationProtocolMismatch => (403, "AuthorizationProtocolMismatch"),
            Self::AuthorizationSourceIpMismatch { .. } => (403, "AuthorizationSourceIPMismatch"),
            Self::CorsHeaderMissing => (400, "InvalidHeaderValue"),
            Self::CorsPreflightFailure => (403, "CorsPreflightFailure"),
            Self::AccountNotFound | Self::ResourceNotFound => (404, "ResourceNotFound"),
            Self::RequestBodyTooLarge => (413, "RequestBodyTooLarge"),
            Self::ContentLengthMissing => (411, "MissingContentLengthHeader"),
            Self::JsonFormatNotSupported => (415, "JsonFormatNotSupported"),
            Self::AtomFormatNotSupported => (415, "AtomFormatNotSupported"),
            Self::MediaTypeNotSupported => (415, "MediaTypeNotSupported"),
            Self::XMethodNotUsingPost => (400, "XMethodNotUsingPost"),
            Self::XMethodIncorrectValue => (400, "XMethodIncorrectValue"),
            Self::XMethodIncorrectCount => (400, "XMethodIncorrectCount"),
            Self::MethodNotAllowed => (405, "MethodNotAllowed"),
            Self::NotImplemented => (501, "NotImplemented"),
            Self::QuerySyntax
            | Self::KeyCount { .. }
            | Self::Syntax { .. }
            | Self::InputNotValid
            | Self::EtagNotValid { .. }
            | Self::IfNoneMatch { .. }
            | Self::BothMatchHeaders
            | Self::BodyNotReadable
            | Self::TooManyChanges => (400, "InvalidInput"),
            Self::InputOutOfRange | Self::ResourceNameLength | Self::ParameterOutOfRange { .. } => {
                (400, "OutOfRangeInput")
            }
            Self::ResourceNameCharacters => (400, "InvalidResourceName"),
            Self::TableNotFound => (404, "TableNotFound"),
            Self::XmlNotValid => (400, "InvalidXmlDocument"),
            Self::XmlNodeValue => (400, "InvalidXmlNodeValue"),
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
            Self::ConditionNotMet => (412, "ConditionNotMet"),
            Self::UpdateConditionNotSatisfied => (412, "UpdateConditionNotSatisfied"),
            Self::Internal => (500, "InternalError"),
            Self::TimedOut => (500, "OperationTimedOut"),
            Self::Busy | Self::AccountBusy | Self::Frozen => (503, "ServerBusy"),
        }
    }

    pub const fn status(&self) -> u16 {
        self.answer().0
    }

    pub const fn code(&self) -> &'static str {
        self.answer().1
    }

    /// Not the request's fault: the same one may go through later, so clients must see the status itself.
    pub const fn is_ours(&self) -> bool {
        matches!(self, Self::Internal | Self::TimedOut | Self::Busy | Self::AccountBusy | Self::Frozen)
    }

    /// Answered by the service's front end, before the table server sees the request: other headers, and
    /// another shape of XML (spec: table-operations 7.2 C, access-and-service 0.2).
    pub const fn is_front_end(&self) -> bool {
        matches!(
            self,
            Self::UriInvalid
                | Self::HostMissing
                | Self::QueryParameterValueInvalid
                | Self::NoAuthenticationInformation
                | Self::BearerTokenNotAccepted
                | Self::AuthenticationInfoMalformed
                | Self::AuthenticationFailed
                | Self::WritesNotAllowed
                | Self::AccountNotFound
                | Self::CorsHeaderMissing
                | Self::CorsPreflightFailure
                | Self::RequestBodyTooLarge
                | Self::ContentLengthMissing
        )
    }

    /// Found by looking at an entity or at what is stored; only these answers carry `Cache-Control` and repeat
    /// the preference (spec: 2.3).
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
                | Self::ResourceNotFound
                | Self::UpdateConditionNotSatisfied
                // Though nothing was looked at yet: so the service has it.
                | Self::AuthorizationPermissionMismatch
                | Self::AuthorizationResourceTypeMismatch
        )
    }

    /// Whether a change set of a single operation names its index all the same (spec: 6.4).
    pub const fn names_index_when_alone(&self) -> bool {
        !matches!(
            self,
            Self::ResourceNotFound
                | Self::EntityAlreadyExists
                | Self::UpdateConditionNotSatisfied
                | Self::PropertyValueTooLarge
                | Self::EntityTooLarge
        )
    }
}
