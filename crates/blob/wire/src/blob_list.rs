//! List Blobs, flat and by hierarchy (spec: blob-operations 5.1).

mod read;

use blob_model::{BlobKind, BlobProperties, CopyState, DateTime, SnapshotTime, TierState};

use crate::BlobInclude;
use crate::xml::{Writer, Xml, http_date};

pub use read::{BlobPage, read};

/// A page of blobs, as it was asked for and found.
#[derive(Clone, Copy, Debug)]
pub struct BlobList<'a> {
    /// The address of the account, with its slash.
    pub endpoint: &'a str,
    pub container: &'a str,
    pub prefix: &'a str,
    pub marker: &'a str,
    /// As it was asked for.
    pub max_results: Option<&'a str>,
    pub delimiter: &'a str,
    pub include: BlobInclude,
    /// In the order of their names.
    pub items: &'a [BlobItem],
    /// What to ask for the next page with; empty at the end.
    pub next_marker: &'a str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlobItem {
    Blob(Box<ListedBlob>),
    /// The start that the names of some blobs share, up to the delimiter and with it.
    Prefix(String),
}

/// A blob, a snapshot or a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedBlob {
    pub name: String,
    pub snapshot: Option<SnapshotTime>,
    pub version: Option<ListedVersion>,
    pub deleted: Option<DeletedBlob>,
    /// The blob itself is gone, and only earlier versions of it are there.
    pub has_versions_only: bool,
    /// None for a blob that has nothing but uncommitted blocks.
    pub properties: Option<BlobProperties>,
    /// Also where the tags themselves are not shown.
    pub tag_count: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedVersion {
    pub id: SnapshotTime,
    pub is_current: bool,
}

/// A blob that can still be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletedBlob {
    pub time: DateTime,
    pub remaining_days: u16,
}

impl BlobList<'_> {
    pub fn write(&self) -> Vec<u8> {
        let mut xml = Xml::new(Writer::Old, 512 + self.items.len() * 1024);
        let attributes = [("ServiceEndpoint", self.endpoint), ("ContainerName", self.container)];
        xml.open_with("EnumerationResults", &attributes);
        if !self.prefix.is_empty() {
            xml.encoded("Prefix", self.prefix);
        }
        if !self.marker.is_empty() {
            xml.shown("Marker", self.marker);
        }
        xml.optional("MaxResults", self.max_results);
        if !self.delimiter.is_empty() {
            xml.encoded("Delimiter", self.delimiter);
        }
        if self.items.is_empty() {
            xml.empty("Blobs");
        } else {
            xml.open("Blobs");
            for item in self.items {
                match item {
                    BlobItem::Blob(blob) => self.blob(&mut xml, blob),
                    BlobItem::Prefix(prefix) => {
                        xml.open("BlobPrefix");
                        xml.encoded("Name", prefix);
                        xml.close("BlobPrefix");
                    }
                }
            }
            xml.close("Blobs");
        }
        xml.element("NextMarker", self.next_marker);
        xml.close("EnumerationResults");
        xml.finish()
    }

    fn blob(&self, xml: &mut Xml, blob: &ListedBlob) {
        xml.open("Blob");
        xml.encoded("Name", &blob.name);
        if let Some(snapshot) = blob.snapshot {
            xml.element("Snapshot", &snapshot.to_string());
        }
        if let Some(version) = blob.version {
            xml.element("VersionId", &version.id.to_string());
            xml.optional("IsCurrentVersion", version.is_current.then_some("true"));
        }
        xml.optional("Deleted", blob.deleted.map(|_| "true"));
        xml.optional("HasVersionsOnly", blob.has_versions_only.then_some("true"));
        xml.open("Properties");
        match &blob.properties {
            Some(properties) => self.properties(xml, blob, properties),
            None => uncommitted(xml),
        }
        xml.close("Properties");
        if let Some(properties) = &blob.properties {
            self.extras(xml, properties);
        }
        xml.empty("OrMetadata");
        xml.close("Blob");
    }

    fn properties(&self, xml: &mut Xml, blob: &ListedBlob, properties: &BlobProperties) {
        let content = &properties.content;
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        xml.element("Creation-Time", &http_date(properties.created));
        xml.element("Last-Modified", &http_date(properties.etag.0));
        xml.element("Etag", &properties.etag.to_string());
        xml.element("Content-Length", &properties.length.to_string());
        xml.shown("Content-Type", &text(&content.content_type));
        xml.shown("Content-Encoding", &text(&content.encoding));
        xml.shown("Content-Language", &text(&content.language));
        xml.empty("Content-CRC64");
        xml.element("Content-MD5", &content.md5.map(|md5| md5.to_string()).unwrap_or_default());
        xml.shown("Cache-Control", &text(&content.cache_control));
        xml.shown("Content-Disposition", &text(&content.disposition));
        if let BlobKind::Page { sequence_number } = properties.kind {
            xml.element("x-ms-blob-sequence-number", &sequence_number.get().to_string());
        }
        xml.element("BlobType", properties.kind.blob_type().name());
        if let BlobKind::Block { tier } = &properties.kind {
            write_tier(xml, tier);
        }
        if let Some(lease) = &properties.lease {
            xml.element("LeaseStatus", lease.status);
            xml.element("LeaseState", lease.state);
            xml.optional("LeaseDuration", lease.duration);
        }
        if let Some(copy) = properties.copy.as_ref().filter(|_| self.include.copy) {
            write_copy(xml, copy);
        }
        xml.element("ServerEncrypted", "true");
        if let Some(deleted) = blob.deleted {
            xml.element("DeletedTime", &http_date(deleted.time));
            xml.element("RemainingRetentionDays", &deleted.remaining_days.to_string());
        }
        if blob.tag_count > 0 {
            xml.element("TagCount", &blob.tag_count.to_string());
        }
        if let BlobKind::Append { is_sealed: true, .. } = properties.kind {
            xml.element("Sealed", "true");
        }
    }

    fn extras(&self, xml: &mut Xml, properties: &BlobProperties) {
        if self.include.metadata && !properties.metadata.is_empty() {
            xml.open("Metadata");
            // Each name is an identifier, which every XML name may be.
            properties.metadata.iter().for_each(|(name, value)| xml.element(name, value));
            xml.close("Metadata");
        }
        if self.include.tags && !properties.tags.is_empty() {
            xml.open("Tags");
            crate::tag_document::write_set(xml, properties.tags.iter());
            xml.close("Tags");
        }
    }
}

fn uncommitted(xml: &mut Xml) {
    xml.element("Content-Length", "0");
    xml.element("BlobType", "BlockBlob");
    write_tier(xml, &TierState::INFERRED);
    xml.element("LeaseStatus", "unlocked");
    xml.element("LeaseState", "available");
    xml.element("ServerEncrypted", "true");
}

fn write_tier(xml: &mut Xml, tier: &TierState) {
    xml.element("AccessTier", tier.tier.name());
    xml.optional("AccessTierInferred", tier.changed.is_none().then_some("true"));
    xml.optional("ArchiveStatus", tier.archive_status().as_deref());
    xml.optional("RehydratePriority", tier.rehydrating.map(|(_, priority)| priority.name()));
    xml.optional("AccessTierChangeTime", tier.changed.map(http_date).as_deref());
}

fn write_copy(xml: &mut Xml, copy: &CopyState) {
    xml.element("CopyId", &copy.id.to_string());
    xml.shown("CopySource", &copy.source);
    xml.element("CopyStatus", copy.status.name());
    xml.element("CopyProgress", &copy.progress());
    xml.optional("CopyCompletionTime", copy.completed.map(http_date).as_deref());
    if let Some(description) = &copy.description {
        xml.shown("CopyStatusDescription", description);
    }
}

#[cfg(test)]
mod tests;
