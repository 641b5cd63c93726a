//! List, create and delete queues; read and replace their metadata.

use http::{HeaderName, HeaderValue};
use queue_model::{Metadata, limits};
use queue_service::{Creation, ListQuery, QueueRef};
use queue_wire::names;
use queue_wire::queue_list::QueueList;

use super::Context;
use crate::answer::{Answer, Failure};
use crate::command::ListCommand;
use crate::headers::APPROXIMATE_MESSAGES_COUNT;

/// What a queue takes in a list, beside its metadata: its name twice, and tags.
const ENTRY_BYTES_MAX: usize = 256;
/// Metadata as it is read, and in XML, where a letter takes up to five.
const METADATA_COPIES: usize = 6;

pub async fn list(context: &Context<'_>, list: &ListCommand<'_>) -> Result<Answer, Failure> {
    let metadata = if list.shows_metadata { METADATA_COPIES * limits::LIST_METADATA_BYTES_MAX } else { 0 };
    let held = context.hold(list.limit * ENTRY_BYTES_MAX + metadata)?;
    let query =
        ListQuery { prefix: list.prefix, from: list.from, limit: list.limit, metadata: list.shows_metadata };
    let page = context.service.list(&context.site.account, query).await?;
    let document = QueueList {
        endpoint: &context.site.base,
        account: context.site.account.as_str(),
        prefix: list.prefix,
        marker: list.marker,
        max_results: list.max_results,
        shows_metadata: list.shows_metadata,
        queues: &page.queues,
        next: page.next.as_ref(),
    }
    .write(context.version);
    Ok(Answer::document(200, front::held_bytes(document.into(), held)))
}

pub async fn create(context: &Context<'_>, queue: &QueueRef, metadata: &Metadata) -> Result<Answer, Failure> {
    Ok(match context.service.create(queue, metadata).await? {
        Creation::Created => Answer::empty(201),
        Creation::Unchanged => Answer::empty(204),
    })
}

pub async fn delete(context: &Context<'_>, queue: &QueueRef) -> Result<Answer, Failure> {
    context.service.delete(queue).await?;
    Ok(Answer::empty(204))
}

pub async fn get_metadata(context: &Context<'_>, queue: &QueueRef) -> Result<Answer, Failure> {
    let (metadata, count) = context.service.look(queue).await?;
    let mut headers = vec![(APPROXIMATE_MESSAGES_COUNT.clone(), HeaderValue::from(count))];
    // Names are identifiers, and values came in headers.
    let pairs = metadata.iter().filter_map(|(name, value)| {
        let name = HeaderName::try_from(format!("{}{name}", names::METADATA_PREFIX)).ok()?;
        Some((name, HeaderValue::from_bytes(value.as_bytes()).ok()?))
    });
    headers.extend(pairs);
    Ok(Answer { headers, ..Answer::empty(200) })
}

pub async fn set_metadata(
    context: &Context<'_>,
    queue: &QueueRef,
    metadata: &Metadata,
) -> Result<Answer, Failure> {
    context.service.set_metadata(queue, metadata).await?;
    Ok(Answer::empty(204))
}
