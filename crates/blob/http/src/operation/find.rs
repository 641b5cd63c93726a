//! Find Blobs by Tags (spec: blob-operations 4.5).

use blob_model::{ContainerName, Refusal, Tags, limits};
use blob_service::{ContainerRef, Error, FoundPlace, TagQuery};
use blob_wire::found_blobs::{FoundBlob, FoundBlobs};
use blob_wire::marker::FoundMarker;
use blob_wire::tag_expression::TagSearch;
use common::Refusal as Shared;

use super::Context;
use crate::answer::{Answer, Failure};

/// What a blob usually takes in the list, as it is read and as XML. A page whose blobs take more is held all the same, and
/// counted when it is written.
const ENTRY_BYTES_USUAL: usize = 1024;

pub async fn run(context: &Context<'_>, container: Option<&ContainerRef>) -> Result<Answer, Failure> {
    let asked = &context.asked;
    let name = "where";
    let expression = asked.option(name).ok_or(Refusal::ParameterMissing { name })?;
    let search = TagSearch::parse(expression, container.is_none())?;
    let (max_results, limit) = asked.max_results(limits::LIST_MAX)?;
    let limit = limit.unwrap_or(limits::LIST_MAX);
    let marker = asked.option("marker").unwrap_or_default();
    let from = match marker {
        "" => None,
        marker => Some(read_marker(marker).ok_or(Shared::InputOutOfRange)?),
    };
    let nothing = || Ok(Answer::document(200, document(context, expression, (marker, max_results), &[], "")));
    let within = match (container, &search.container) {
        (Some(container), _) => Some(container.name.clone()),
        // No container has such a name, so that nothing is found.
        (None, Some(named)) => match ContainerName::parse(named) {
            Ok(named) => Some(named),
            Err(_) => return nothing(),
        },
        (None, None) => None,
    };
    let mut held = context.hold(limit * ENTRY_BYTES_USUAL)?;
    let query = TagQuery { container: within, conditions: &search.conditions, from, limit };
    let page = match context.service().find_blobs(context.account(), &query).await {
        // The expression names a container that is not there, so that nothing is found.
        Err(Error::Refused(Refusal::ContainerNotFound)) if container.is_none() => {
            return nothing();
        }
        page => page?,
    };
    let blobs = page.blobs.into_iter().map(|blob| {
        let shown = search.shown(&blob.tags).into_iter();
        let shown = shown.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        // Some of the tags of a blob are tags of a blob.
        let tags = Tags::new(shown).unwrap_or_default();
        FoundBlob { name: blob.name, container: blob.container, tags }
    });
    let blobs: Vec<FoundBlob> = blobs.collect();
    let next = page.next.map(|FoundPlace { container, within }| {
        FoundMarker { container: container.to_string(), name: within }.write()
    });
    let next = next.as_deref().unwrap_or_default();
    let document = document(context, expression, (marker, max_results), &blobs, next);
    // It is there already, so that it is sent in any case.
    held.grow_anyway(document.len().saturating_sub(held.bytes()));
    Ok(Answer::document(200, front::held_bytes(document.into(), held)))
}

fn document(
    context: &Context<'_>,
    expression: &str,
    (marker, max_results): (&str, Option<&str>),
    blobs: &[FoundBlob],
    next_marker: &str,
) -> Vec<u8> {
    let endpoint = &context.site.base;
    let found = FoundBlobs { endpoint, marker, expression, max_results, blobs, next_marker };
    found.write()
}

fn read_marker(marker: &str) -> Option<FoundPlace> {
    let FoundMarker { container, name } = FoundMarker::read(marker)?;
    Some(FoundPlace { container: ContainerName::parse(&container).ok()?, within: name })
}
