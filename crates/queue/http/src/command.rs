//! An operation with all that its head says: names, options and metadata within their limits, before any body is read.

use std::time::Duration;

use common::Refusal as Shared;
use front::Request;
use http::HeaderMap;
use queue_model::{MessageId, Metadata, PopReceipt, QueueName, Refusal};
use queue_wire::names;
use queue_wire::queue_list::read_marker;

use crate::parameters;
use crate::queue_request::QueueRequest;
use crate::route::{Operation, Resource};

#[derive(Debug)]
pub enum Command<'q> {
    ListQueues(ListCommand<'q>),
    GetProperties,
    SetProperties,
    GetStatistics,
    OfQueue(QueueName, QueueCommand),
}

#[derive(Debug)]
pub struct ListCommand<'q> {
    pub prefix: &'q str,
    pub marker: &'q str,
    /// The name in the marker; empty without one.
    pub from: &'q str,
    /// As it was asked for.
    pub max_results: Option<&'q str>,
    pub limit: usize,
    pub shows_metadata: bool,
}

#[derive(Debug)]
pub enum QueueCommand {
    Create(Metadata),
    Delete,
    GetMetadata,
    SetMetadata(Metadata),
    GetPolicies,
    SetPolicies,
    Put { visibility: Duration, time_to_live: Option<Duration> },
    Get { count: u32, visibility: Duration },
    Peek { count: u32 },
    Clear,
    Update { lease: Option<Lease>, visibility: Duration },
    DeleteMessage { lease: Option<Lease> },
}

/// A message and the receipt for it. An address that can't name one of this server's messages has none.
#[derive(Clone, Copy, Debug)]
pub struct Lease {
    pub id: MessageId,
    pub receipt: PopReceipt,
}

impl Command<'_> {
    /// Whether it has use for a body.
    pub fn reads_body(&self) -> bool {
        match self {
            Self::SetProperties => true,
            Self::ListQueues(_) | Self::GetProperties | Self::GetStatistics => false,
            Self::OfQueue(_, command) => matches!(
                command,
                QueueCommand::SetPolicies | QueueCommand::Put { .. } | QueueCommand::Update { .. }
            ),
        }
    }
}

/// The name is judged before the options are.
pub fn read<'q>(
    request: &'q Request<'_>,
    account: &str,
    service_request: &QueueRequest,
    operation: Operation,
) -> Result<Command<'q>, Refusal> {
    let query = &request.query;
    match operation {
        Operation::ListQueues => Ok(Command::ListQueues(list(request, account)?)),
        Operation::GetProperties => Ok(Command::GetProperties),
        Operation::SetProperties => Ok(Command::SetProperties),
        Operation::GetStatistics => Ok(Command::GetStatistics),
        // Nobody is permitted to have one.
        Operation::GetDelegationKey => Err(Shared::AuthorizationFailure.into()),
        _ => {
            let queue = QueueName::parse(service_request.resource.queue())?;
            let headers = &request.head.headers;
            let command = match operation {
                Operation::CreateQueue => QueueCommand::Create(metadata(headers)?),
                Operation::DeleteQueue => QueueCommand::Delete,
                Operation::GetMetadata => QueueCommand::GetMetadata,
                Operation::SetMetadata => QueueCommand::SetMetadata(metadata(headers)?),
                Operation::GetPolicies => QueueCommand::GetPolicies,
                Operation::SetPolicies => QueueCommand::SetPolicies,
                Operation::PutMessage => {
                    let (visibility, time_to_live) =
                        parameters::times_of_put(query, request.served_version())?;
                    QueueCommand::Put { visibility, time_to_live }
                }
                Operation::GetMessages => QueueCommand::Get {
                    count: parameters::message_count(query)?,
                    visibility: parameters::visibility_of_get(query)?,
                },
                Operation::PeekMessages => QueueCommand::Peek { count: parameters::message_count(query)? },
                Operation::ClearMessages => QueueCommand::Clear,
                Operation::UpdateMessage => QueueCommand::Update {
                    lease: lease(request, &service_request.resource)?,
                    visibility: parameters::visibility_of_update(query)?,
                },
                Operation::DeleteMessage => {
                    QueueCommand::DeleteMessage { lease: lease(request, &service_request.resource)? }
                }
                Operation::ListQueues
                | Operation::GetProperties
                | Operation::SetProperties
                | Operation::GetStatistics
                | Operation::GetDelegationKey => unreachable!("{operation:?} is of the service"),
            };
            Ok(Command::OfQueue(queue, command))
        }
    }
}

fn list<'q>(request: &'q Request<'_>, account: &str) -> Result<ListCommand<'q>, Refusal> {
    let query = &request.query;
    let text = |name| parameters::option(query, name).unwrap_or_default();
    let (max_results, limit) = parameters::max_results(query)?;
    let shows_metadata = parameters::includes_metadata(query)?;
    let marker = text(names::MARKER);
    let from = match marker {
        "" => "",
        marker => read_marker(account, marker).ok_or(Shared::InputOutOfRange)?,
    };
    Ok(ListCommand { prefix: text(names::PREFIX), marker, from, max_results, limit, shows_metadata })
}

fn lease(request: &Request<'_>, resource: &Resource) -> Result<Option<Lease>, Refusal> {
    let receipt = parameters::pop_receipt(&request.query)?;
    let id = match resource {
        Resource::Message { id, .. } => MessageId::parse(id),
        Resource::Service | Resource::Queue(_) | Resource::Messages { .. } | Resource::Nothing => None,
    };
    Ok(id.zip(receipt).map(|(id, receipt)| Lease { id, receipt }))
}

fn metadata(headers: &HeaderMap) -> Result<Metadata, Refusal> {
    let pairs = headers.iter().filter_map(|(name, value)| {
        let name = name.as_str().strip_prefix(names::METADATA_PREFIX)?;
        let value = std::str::from_utf8(value.as_bytes()).map_err(|_| Refusal::MetadataInvalid);
        Some(value.map(|value| (name.to_owned(), value.to_owned())))
    });
    Metadata::new(pairs.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn metadata_is_in_headers_of_their_prefix() {
        let mut headers = HeaderMap::new();
        for (name, value) in [("x-ms-meta-b", "2"), ("x-ms-date", "now"), ("x-ms-meta-a", "é")] {
            headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let read = metadata(&headers).unwrap();
        assert_eq!(read.iter().collect::<Vec<_>>(), [("b", "2"), ("a", "é")]);
        headers.append("x-ms-meta-a", HeaderValue::from_static("again"));
        assert_eq!(metadata(&headers), Err(Refusal::MetadataInvalid));
        headers.remove("x-ms-meta-a");
        headers.append("x-ms-meta-c", HeaderValue::from_bytes(b"\xff").unwrap());
        assert_eq!(metadata(&headers), Err(Refusal::MetadataInvalid));
        headers.remove("x-ms-meta-c");
        headers.append("x-ms-meta-", HeaderValue::from_static("value"));
        assert_eq!(metadata(&headers), Err(Refusal::MetadataKeyEmpty { value: "value".to_owned() }));
    }
}
