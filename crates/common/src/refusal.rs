//! The refusals that all services share: status, code and message.
//!
//! The messages are the services' own, with their spelling mistakes, because clients match on them. One variant is one
//! answer; several answers share a code. A service's own refusals are in that service's own type, which wraps this one.

use std::borrow::Cow;
use std::net::IpAddr;

use crate::ServiceKind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    // The request is malformed, or its caller is not authenticated.
    HeaderValueInvalid,
    UriInvalid,
    HostMissing,
    QueryParameterValueInvalid,
    NoAuthenticationInformation,
    /// Answered with a challenge, as a request without a token.
    BearerTokenNotAccepted,
    AuthenticationInfoMalformed,
    AuthenticationFailed,
    /// A write to the read-only secondary, or to data that only the service writes.
    WritesNotAllowed,
    /// No account has this name. Queues and blobs have their own code and message.
    AccountNotFound,
    RequestBodyTooLarge,
    /// Queues and blobs have their own message.
    ContentLengthMissing,

    // The caller is not authorized.
    AuthorizationFailure,
    AuthorizationPermissionMismatch,
    AuthorizationResourceTypeMismatch,
    AuthorizationServiceMismatch,
    AuthorizationProtocolMismatch,
    AuthorizationSourceIpMismatch {
        ip: IpAddr,
    },
    CorsHeaderMissing,
    CorsPreflightFailure,

    // The resource does not support the request, or its content is invalid.
    NotImplemented,
    InputOutOfRange,
    ResourceNameLength,
    ResourceNameCharacters,
    InputNotValid,
    XmlNotValid,
    XmlNodeValue,

    // The stored data does not allow it.
    /// The resource does not exist, or is hidden from this caller.
    ResourceNotFound,
    ConditionNotMet,

    // The server's fault, or its limits.
    Internal,
    TimedOut,
    Busy,
    AccountBusy,
    /// Writes are frozen for the last step of a migration.
    Frozen,
}

impl Refusal {
    /// The HTTP status and the error code.
    pub const fn answer(&self, service: ServiceKind) -> (u16, &'static str) {
        match self {
            Self::HeaderValueInvalid | Self::CorsHeaderMissing => (400, "InvalidHeaderValue"),
            Self::UriInvalid => (400, "InvalidUri"),
            Self::HostMissing => (400, "HostInformationNotPresent"),
            Self::QueryParameterValueInvalid => (400, "InvalidQueryParameterValue"),
            Self::NoAuthenticationInformation => (401, "NoAuthenticationInformation"),
            Self::BearerTokenNotAccepted => (401, "InvalidAuthenticationInfo"),
            Self::AuthenticationInfoMalformed => (400, "InvalidAuthenticationInfo"),
            Self::AuthenticationFailed => (403, "AuthenticationFailed"),
            Self::WritesNotAllowed => (403, "InsufficientAccountPermissions"),
            Self::AccountNotFound => match service {
                ServiceKind::Table => (404, "ResourceNotFound"),
                ServiceKind::Blob | ServiceKind::Queue => (404, "AccountNotFound"),
            },
            Self::RequestBodyTooLarge => (413, "RequestBodyTooLarge"),
            Self::ContentLengthMissing => (411, "MissingContentLengthHeader"),
            Self::AuthorizationFailure => (403, "AuthorizationFailure"),
            Self::AuthorizationPermissionMismatch => (403, "AuthorizationPermissionMismatch"),
            Self::AuthorizationResourceTypeMismatch => (403, "AuthorizationResourceTypeMismatch"),
            Self::AuthorizationServiceMismatch => (403, "AuthorizationServiceMismatch"),
            Self::AuthorizationProtocolMismatch => (403, "AuthorizationProtocolMismatch"),
            Self::AuthorizationSourceIpMismatch { .. } => (403, "AuthorizationSourceIPMismatch"),
            Self::CorsPreflightFailure => (403, "CorsPreflightFailure"),
            Self::NotImplemented => (501, "NotImplemented"),
            Self::InputOutOfRange | Self::ResourceNameLength => (400, "OutOfRangeInput"),
            Self::ResourceNameCharacters => (400, "InvalidResourceName"),
            Self::InputNotValid => (400, "InvalidInput"),
            Self::XmlNotValid => (400, "InvalidXmlDocument"),
            Self::XmlNodeValue => (400, "InvalidXmlNodeValue"),
            Self::ResourceNotFound => (404, "ResourceNotFound"),
            Self::ConditionNotMet => (412, "ConditionNotMet"),
            Self::Internal => (500, "InternalError"),
            Self::TimedOut => (500, "OperationTimedOut"),
            Self::Busy | Self::AccountBusy | Self::Frozen => (503, "ServerBusy"),
        }
    }

    pub const fn status(&self) -> u16 {
        // No status depends on the service.
        self.answer(ServiceKind::Table).0
    }

    pub const fn code(&self, service: ServiceKind) -> &'static str {
        self.answer(service).1
    }

    /// The text of the error.
    pub fn message(&self, service: ServiceKind) -> Cow<'static, str> {
        let words = match self {
            Self::HeaderValueInvalid => "The value for one of the HTTP headers is not in the correct format.",
            Self::UriInvalid => "The requested URI does not represent any resource on the server.",
            Self::HostMissing => {
                "The required host information is not present in the request. You must send a non-empty Host header or include the absolute URI in the request line."
            }
            Self::QueryParameterValueInvalid => {
                "Value for one of the query parameters specified in the request URI is invalid."
            }
            Self::NoAuthenticationInformation | Self::BearerTokenNotAccepted => {
                "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."
            }
            Self::AuthenticationInfoMalformed => {
                "Authentication information is not given in the correct format. Check the value of Authorization header."
            }
            Self::AuthenticationFailed => {
                "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature."
            }
            Self::WritesNotAllowed => "Write operations are not allowed.",
            Self::AccountNotFound => match service {
                ServiceKind::Table => "The specified resource does not exist.",
                ServiceKind::Blob | ServiceKind::Queue => "The specified account does not exist.",
            },
            Self::RequestBodyTooLarge => {
                "The request body is too large and exceeds the maximum permissible limit."
            }
            Self::ContentLengthMissing => match service {
                ServiceKind::Table => "The Content-Length header was not specified.",
                ServiceKind::Blob | ServiceKind::Queue => "Content-Length HTTP header is missing.",
            },
            Self::AuthorizationFailure => "This request is not authorized to perform this operation.",
            Self::AuthorizationPermissionMismatch => {
                "This request is not authorized to perform this operation using this permission."
            }
            Self::AuthorizationResourceTypeMismatch => {
                "This request is not authorized to perform this operation using this resource type."
            }
            Self::AuthorizationServiceMismatch => {
                "This request is not authorized to perform this operation using this service."
            }
            Self::AuthorizationProtocolMismatch => {
                "This request is not authorized to perform this operation using this protocol."
            }
            Self::AuthorizationSourceIpMismatch { ip } => {
                return format!(
                    "This request is not authorized to perform this operation using this source IP {ip}."
                )
                .into();
            }
            Self::CorsHeaderMissing => "A required CORS header is not present.",
            Self::CorsPreflightFailure => "CORS not enabled or no matching rule found for this request.",
            Self::NotImplemented => "The requested operation is not implemented on the specified resource.",
            Self::InputOutOfRange => "One of the request inputs is out of range.",
            Self::ResourceNameLength => {
                "The specified resource name length is not within the permissible limits."
            }
            Self::ResourceNameCharacters => "The specifed resource name contains invalid characters.",
            Self::InputNotValid => "One of the request inputs is not valid.",
            Self::XmlNotValid => "XML specified is not syntactically valid.",
            Self::XmlNodeValue => "The value for one of the XML nodes is not in the correct format.",
            Self::ResourceNotFound => "The specified resource does not exist.",
            Self::ConditionNotMet => "The condition specified using HTTP conditional header(s) is not met.",
            Self::Internal => "Server encountered an internal error. Please try again after some time.",
            Self::TimedOut => "Operation could not be completed within the specified time.",
            Self::Busy | Self::Frozen => "The server is busy.",
            Self::AccountBusy => "Operations per second is over the account limit.",
        };
        Cow::Borrowed(words)
    }

    /// Not the request's fault: it may succeed later. Clients that retry must see the status itself.
    pub const fn is_ours(&self) -> bool {
        matches!(self, Self::Internal | Self::TimedOut | Self::Busy | Self::AccountBusy | Self::Frozen)
    }

    /// The service's front end answers it before the service sees the request: with other headers and another form of
    /// error body (spec: table-operations 7.2 C, access-and-service 0.2).
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_service_says_it_in_its_own_words() {
        let check = |refusal: Refusal, service, expected: (u16, &str, &str)| {
            let (status, code) = refusal.answer(service);
            assert_eq!((status, code, &*refusal.message(service)), expected, "{refusal:?} {service}");
        };
        let (table, queue) = (ServiceKind::Table, ServiceKind::Queue);
        let unknown = "The specified resource does not exist.";
        check(Refusal::AccountNotFound, table, (404, "ResourceNotFound", unknown));
        let unknown = "The specified account does not exist.";
        check(Refusal::AccountNotFound, queue, (404, "AccountNotFound", unknown));
        let missing = "The Content-Length header was not specified.";
        check(Refusal::ContentLengthMissing, table, (411, "MissingContentLengthHeader", missing));
        let missing = "Content-Length HTTP header is missing.";
        check(Refusal::ContentLengthMissing, queue, (411, "MissingContentLengthHeader", missing));
    }
}
