//! List Blobs (spec: blob-operations 5.1).

use blob_model::{DateTime, Refusal, SnapshotTime, limits};
use blob_service::{BlobEntry, BlobPlace, BlobQuery, ContainerRef, ListedEntry};
use blob_wire::BlobInclude;
use blob_wire::blob_list::{BlobItem, BlobList, DeletedBlob, ListedBlob};
use blob_wire::marker::BlobMarker;
use common::Refusal as Shared;

use super::Context;
use crate::answer::{Answer, Failure};

/// What a blob usually takes in a list, as it is read and as XML. A page whose blobs take more is held all the same, and
/// counted when it is written.
const ENTRY_BYTES_USUAL: usize = 2 * 1024;

pub async fn run(context: &Context<'_>, container: &ContainerRef) -> Result<Answer, Failure> {
    let asked = &context.asked;
    let text = |name| asked.option(name).unwrap_or_default();
    // The word may be there several times.
    let words: Vec<&str> = asked.query.all_ignoring_case("include").collect();
    let include = BlobInclude::parse(&words.join(","))?;
    let (max_results, limit) = asked.max_results(limits::LIST_MAX)?;
    let limit = limit.unwrap_or(limits::LIST_MAX);
    let delimiter = text("delimiter");
    if include.snapshots && !delimiter.is_empty() {
        let (name, value) = ("include", words.join(","));
        return Err(Refusal::ParameterInvalid {
            name,
            value,
            reason: Some("Snapshots cannot be specified when delimiter is specified."),
        }
        .into());
    }
    let from = match (text("marker"), text("startfrom")) {
        ("", "") => None,
        // Before all of its snapshots.
        ("", start) => Some(BlobMarker { name: start.to_owned(), snapshot: SnapshotTime(DateTime::MIN) }),
        (marker, _) => Some(BlobMarker::read(marker).ok_or(Shared::InputOutOfRange)?),
    };
    let query = BlobQuery {
        prefix: text("prefix").to_owned(),
        delimiter: Some(delimiter).filter(|delimiter| !delimiter.is_empty()).map(str::to_owned),
        from: from.map(|BlobMarker { name, snapshot }| BlobPlace { name, snapshot }),
        limit,
        snapshots: include.snapshots,
        uncommitted: include.uncommitted,
        deleted: include.deleted,
    };
    let mut held = context.hold(limit * ENTRY_BYTES_USUAL)?;
    let page = context.service().list_blobs(container, &query).await?;
    let next = page.next.map(|BlobPlace { name, snapshot }| BlobMarker { name, snapshot }.write());
    let items: Vec<BlobItem> = page.entries.into_iter().map(item).collect();
    let document = BlobList {
        endpoint: &context.site.base,
        container: container.name.as_str(),
        prefix: text("prefix"),
        marker: text("marker"),
        max_results,
        delimiter,
        include,
        items: &items,
        next_marker: next.as_deref().unwrap_or_default(),
    }
    .write();
    // It is there already, so that it is sent in any case.
    held.grow_anyway(document.len().saturating_sub(held.bytes()));
    Ok(Answer::document(200, front::held_bytes(document.into(), held)))
}

fn item(entry: BlobEntry) -> BlobItem {
    match entry {
        BlobEntry::Prefix(prefix) => BlobItem::Prefix(prefix),
        BlobEntry::Blob(entry) => {
            let ListedEntry { name, snapshot, deleted, properties } = *entry;
            BlobItem::Blob(Box::new(ListedBlob {
                name,
                snapshot,
                version: None,
                deleted: deleted.map(|deleted| DeletedBlob {
                    time: deleted.time,
                    remaining_days: deleted.remaining_days,
                }),
                has_versions_only: false,
                tag_count: properties.as_ref().map_or(0, |properties| properties.tags.len()),
                properties,
            }))
        }
    }
}
