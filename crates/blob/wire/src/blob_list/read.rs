//! A list of blobs as a client reads it.

use blob_model::{
    AccessTier, BlobKind, BlobProperties, ContentHeaders, CopyState, CopyStatus, Guid, Md5,
    RehydratePriority, SequenceNumber, SnapshotTime, Tags, TierState, limits,
};
use protocol::xml_tree::Element;

use super::{BlobItem, DeletedBlob, ListedBlob, ListedVersion};
use crate::{listed, tag_document};

/// A page of blobs and prefixes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobPage {
    pub items: Vec<BlobItem>,
    /// What to ask for the next page with; empty at the end.
    pub next_marker: String,
}

/// `None` if it is no such list.
pub fn read(document: &[u8]) -> Option<BlobPage> {
    // Some thirty properties, ten tags of three elements each, and metadata.
    let tags_max = 16 + limits::LIST_MAX * 128;
    let root = Element::parse_list(document, tags_max).filter(|root| root.name == "EnumerationResults")?;
    let items = listed::child(&root, "Blobs")?.children.iter().map(|item| match item.name.as_str() {
        "Blob" => Some(BlobItem::Blob(Box::new(blob(item)?))),
        "BlobPrefix" => Some(BlobItem::Prefix(listed::name(listed::child(item, "Name")?)?)),
        _ => None,
    });
    let items = items.collect::<Option<_>>()?;
    Some(BlobPage { items, next_marker: listed::text(&root, "NextMarker").unwrap_or_default().to_owned() })
}

fn blob(item: &Element) -> Option<ListedBlob> {
    let properties = listed::child(item, "Properties")?;
    let version = listed::text(item, "VersionId").and_then(SnapshotTime::parse);
    let deleted = match listed::is_true(item, "Deleted") {
        true => Some(DeletedBlob {
            time: listed::time(properties, "DeletedTime")?,
            remaining_days: listed::number(properties, "RemainingRetentionDays")?,
        }),
        false => None,
    };
    // What was never committed has no ETag.
    let is_committed = listed::text(properties, "Etag").is_some();
    Some(ListedBlob {
        name: listed::name(listed::child(item, "Name")?)?,
        snapshot: listed::text(item, "Snapshot").and_then(SnapshotTime::parse),
        version: version
            .map(|id| ListedVersion { id, is_current: listed::is_true(item, "IsCurrentVersion") }),
        deleted,
        has_versions_only: listed::is_true(item, "HasVersionsOnly"),
        properties: if is_committed { Some(of_properties(item, properties)?) } else { None },
        tag_count: listed::number(properties, "TagCount").unwrap_or_default(),
    })
}

fn of_properties(item: &Element, properties: &Element) -> Option<BlobProperties> {
    let text = |name| listed::text(properties, name).map(str::to_owned);
    let kind = match listed::text(properties, "BlobType")? {
        "BlockBlob" => BlobKind::Block { tier: tier(properties)? },
        "PageBlob" => {
            let number = listed::number(properties, "x-ms-blob-sequence-number")?;
            BlobKind::Page { sequence_number: SequenceNumber::new(number)? }
        }
        // A list does not tell how many blocks it has.
        "AppendBlob" => BlobKind::Append { blocks: 0, is_sealed: listed::is_true(properties, "Sealed") },
        _ => return None,
    };
    let tags =
        listed::child(item, "Tags").map_or(Some(Tags::default()), |tags| tag_document::of(tags).ok())?;
    Some(BlobProperties {
        created: listed::time(properties, "Creation-Time")?,
        etag: listed::etag(properties)?,
        length: listed::number(properties, "Content-Length")?,
        content: ContentHeaders {
            content_type: text("Content-Type"),
            encoding: text("Content-Encoding"),
            language: text("Content-Language"),
            md5: text("Content-MD5").and_then(|md5| Md5::of_header(&md5).ok()),
            cache_control: text("Cache-Control"),
            disposition: text("Content-Disposition"),
        },
        kind,
        lease: listed::lease(properties),
        copy: copy(properties),
        metadata: listed::metadata(item)?,
        tags,
    })
}

fn tier(properties: &Element) -> Option<TierState> {
    let target =
        listed::text(properties, "ArchiveStatus").and_then(|s| s.strip_prefix("rehydrate-pending-to-"));
    let rehydrating = match target {
        Some(target) => {
            let priority = listed::text(properties, "RehydratePriority").unwrap_or("Standard");
            Some((AccessTier::parse(target)?, RehydratePriority::parse(priority).ok()?))
        }
        None => None,
    };
    Some(TierState {
        tier: AccessTier::parse(listed::text(properties, "AccessTier")?)?,
        changed: listed::time(properties, "AccessTierChangeTime"),
        rehydrating,
    })
}

fn copy(properties: &Element) -> Option<CopyState> {
    let (copied, total) = listed::text(properties, "CopyProgress")?.split_once('/')?;
    Some(CopyState {
        id: Guid::parse(listed::text(properties, "CopyId")?)?,
        source: listed::text(properties, "CopySource")?.to_owned(),
        status: CopyStatus::parse(listed::text(properties, "CopyStatus")?)?,
        copied: copied.parse().ok()?,
        total: total.parse().ok()?,
        completed: listed::time(properties, "CopyCompletionTime"),
        description: listed::text(properties, "CopyStatusDescription").map(str::to_owned),
    })
}
