//! Method, resource and `comp` to operation (spec: queue-operations 1.2).

use common::Version;
use http::Method;
use percent_encoding::percent_decode_str;
use protocol::{QueryString, names};
use queue_model::Refusal;
use queue_service::{Access, Need};
use queue_wire::{QueueVersion as _, names as queue_names};

/// What an address names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resource {
    Service,
    Queue(String),
    Messages {
        queue: String,
    },
    Message {
        queue: String,
        id: String,
    },
    /// Nothing that the service has.
    Nothing,
}

impl Resource {
    /// The path behind the account. A slash at its end means nothing.
    pub fn parse(path: &str) -> Self {
        let path = path.strip_prefix('/').unwrap_or(path);
        let path = path.strip_suffix('/').unwrap_or(path);
        // What is no UTF-8 is no name either.
        let mut segments = path.split('/').map(|segment| percent_decode_str(segment).decode_utf8_lossy());
        let first = segments.next().unwrap_or_default().into_owned();
        match (segments.next(), segments.next(), segments.next()) {
            (None, ..) if first.is_empty() => Self::Service,
            (None, ..) => Self::Queue(first),
            (Some(second), ..) if !second.eq_ignore_ascii_case(queue_names::MESSAGES) => Self::Nothing,
            (Some(_), None, _) => Self::Messages { queue: first },
            (Some(_), Some(id), None) => Self::Message { queue: first, id: id.into_owned() },
            (Some(_), Some(_), Some(_)) => Self::Nothing,
        }
    }

    /// The queue that is addressed, valid or not; empty if none is.
    pub fn queue(&self) -> &str {
        match self {
            Self::Queue(queue) | Self::Messages { queue } | Self::Message { queue, .. } => queue,
            Self::Service | Self::Nothing => "",
        }
    }
}

/// Every operation of the Queue service this server knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    ListQueues,
    GetProperties,
    SetProperties,
    GetStatistics,
    GetDelegationKey,
    CreateQueue,
    DeleteQueue,
    GetMetadata,
    SetMetadata,
    GetPolicies,
    SetPolicies,
    PutMessage,
    GetMessages,
    PeekMessages,
    ClearMessages,
    UpdateMessage,
    DeleteMessage,
}

impl Operation {
    /// What it asks of the caller.
    pub fn need(self, version: Version) -> Need {
        match self {
            Self::ListQueues => Need::ListQueues,
            Self::GetProperties | Self::GetStatistics => Need::ReadService,
            Self::SetProperties => Need::WriteService,
            Self::GetDelegationKey => Need::DelegationKey,
            Self::CreateQueue => Need::CreateQueue,
            Self::DeleteQueue => Need::DeleteQueue,
            Self::GetMetadata => Need::ReadMetadata,
            Self::SetMetadata => Need::WriteMetadata,
            Self::GetPolicies | Self::SetPolicies => {
                Need::Policies { for_bearers: version.shows_policies_to_bearers() }
            }
            Self::PutMessage => Need::Messages(Access::Put),
            Self::GetMessages => Need::Messages(Access::Get),
            Self::PeekMessages => Need::Messages(Access::Peek),
            Self::ClearMessages => Need::Messages(Access::Clear),
            Self::UpdateMessage => Need::Messages(Access::Update),
            Self::DeleteMessage => Need::Messages(Access::Delete),
        }
    }
}

/// The operation that a request asks for. `comp` is judged before the method is.
pub fn resolve(
    method: &Method,
    resource: &Resource,
    query: &QueryString,
    secondary: bool,
) -> Result<Operation, Refusal> {
    let value = |name| query.get_ignoring_case(name).unwrap_or_default();
    let comp = value(names::COMP);
    let of_service = value(names::RESTYPE).eq_ignore_ascii_case("service");
    let is_comp = |name: &str| comp.eq_ignore_ascii_case(name);
    let by_method = |operations: &[(Method, Operation)]| {
        let found = operations.iter().find(|(known, _)| known == method);
        found.map(|(_, operation)| *operation).ok_or(Refusal::VerbNotSupported)
    };
    // Named, but by none of the names that this resource has.
    let unknown_comp = || Refusal::ParameterInvalid { name: names::COMP, value: comp.to_owned(), reason: "" };
    match resource {
        Resource::Service if of_service && is_comp("properties") => {
            by_method(&[(Method::GET, Operation::GetProperties), (Method::PUT, Operation::SetProperties)])
        }
        // Only the secondary has something to tell of replication.
        Resource::Service if of_service && is_comp("stats") && secondary => {
            by_method(&[(Method::GET, Operation::GetStatistics)])
        }
        Resource::Service if of_service && is_comp("userdelegationkey") => {
            by_method(&[(Method::POST, Operation::GetDelegationKey)])
        }
        Resource::Service if is_comp("list") => by_method(&[(Method::GET, Operation::ListQueues)]),
        Resource::Service => Err(unknown_comp()),
        Resource::Queue(_) if is_comp("metadata") => by_method(&[
            (Method::GET, Operation::GetMetadata),
            (Method::HEAD, Operation::GetMetadata),
            (Method::PUT, Operation::SetMetadata),
        ]),
        Resource::Queue(_) if is_comp("acl") => by_method(&[
            (Method::GET, Operation::GetPolicies),
            (Method::HEAD, Operation::GetPolicies),
            (Method::PUT, Operation::SetPolicies),
        ]),
        Resource::Queue(_) if !comp.is_empty() => Err(unknown_comp()),
        // A queue is read by one of its parts.
        Resource::Queue(_) if matches!(*method, Method::GET | Method::HEAD) => Err(unknown_comp()),
        Resource::Queue(_) => {
            by_method(&[(Method::PUT, Operation::CreateQueue), (Method::DELETE, Operation::DeleteQueue)])
        }
        Resource::Messages { .. } => {
            let peeks = value(queue_names::PEEK_ONLY).eq_ignore_ascii_case("true");
            let get = if peeks { Operation::PeekMessages } else { Operation::GetMessages };
            by_method(&[
                (Method::POST, Operation::PutMessage),
                (Method::GET, get),
                (Method::DELETE, Operation::ClearMessages),
            ])
        }
        Resource::Message { .. } => {
            by_method(&[(Method::PUT, Operation::UpdateMessage), (Method::DELETE, Operation::DeleteMessage)])
        }
        Resource::Nothing => Err(common::Refusal::UriInvalid.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &str, target: &str, expected: &str) {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let query = QueryString::parse(query).unwrap();
        let shown = match resolve(&method, &Resource::parse(path), &query, false) {
            Ok(operation) => format!("{operation:?}"),
            Err(refusal) => refusal.code().to_owned(),
        };
        assert_eq!(shown, expected, "{method} {target}");
    }

    #[test]
    fn every_operation_has_its_address() {
        check("GET", "/?comp=list", "ListQueues");
        check("GET", "?comp=list", "ListQueues");
        check("GET", "/?COMP=List&_=123", "ListQueues");
        check("GET", "/?restype=service&comp=properties", "GetProperties");
        check("PUT", "/?comp=properties&restype=service", "SetProperties");
        check("POST", "/?restype=service&comp=userdelegationkey", "GetDelegationKey");
        check("PUT", "/q", "CreateQueue");
        check("PUT", "/q/", "CreateQueue");
        check("DELETE", "/q?timeout=30", "DeleteQueue");
        check("GET", "/q?comp=metadata", "GetMetadata");
        check("HEAD", "/q?comp=metadata", "GetMetadata");
        check("PUT", "/q?comp=metadata", "SetMetadata");
        check("GET", "/q?comp=acl", "GetPolicies");
        check("HEAD", "/q?comp=acl", "GetPolicies");
        check("PUT", "/q?comp=acl", "SetPolicies");
        check("POST", "/q/messages", "PutMessage");
        check("GET", "/q/messages/", "GetMessages");
        check("GET", "/q/messages?peekonly=false", "GetMessages");
        check("GET", "/q/messages?peekonly=True", "PeekMessages");
        check("DELETE", "/q/messages", "ClearMessages");
        check("PUT", "/q/messages/id", "UpdateMessage");
        check("DELETE", "/q/messages/id", "DeleteMessage");
    }

    #[test]
    fn what_is_none_is_refused() {
        check("GET", "/", "InvalidQueryParameterValue");
        check("GET", "/?comp=queues", "InvalidQueryParameterValue");
        check("GET", "/?comp=properties", "InvalidQueryParameterValue");
        check("GET", "/?restype=service&comp=stats", "InvalidQueryParameterValue");
        check("GET", "/q", "InvalidQueryParameterValue");
        check("HEAD", "/q", "InvalidQueryParameterValue");
        check("PUT", "/q?comp=other", "InvalidQueryParameterValue");
        check("POST", "/?comp=list", "UnsupportedHttpVerb");
        check("POST", "/q", "UnsupportedHttpVerb");
        check("PATCH", "/q/messages", "UnsupportedHttpVerb");
        check("HEAD", "/q/messages", "UnsupportedHttpVerb");
        check("GET", "/q/messages/id", "UnsupportedHttpVerb");
        check("DELETE", "/q?comp=acl", "UnsupportedHttpVerb");
        check("GET", "/q/other", "InvalidUri");
        check("DELETE", "/q/messages/id/x", "InvalidUri");
    }

    #[test]
    fn only_the_secondary_has_statistics() {
        let query = QueryString::parse("restype=service&comp=stats").unwrap();
        let resolved = resolve(&Method::GET, &Resource::Service, &query, true);
        assert_eq!(resolved, Ok(Operation::GetStatistics));
    }

    #[test]
    fn segments_are_decoded_once() {
        assert_eq!(Resource::parse("/a%2Db%2f"), Resource::Queue("a-b/".to_owned()));
        let message = Resource::Message { queue: "q".to_owned(), id: "a%20".to_owned() };
        assert_eq!(Resource::parse("/q/messages/a%2520"), message);
        assert_eq!(Resource::parse("//").queue(), "");
    }
}
