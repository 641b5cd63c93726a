//! What changes a blob besides its content: metadata, headers, tags, tier, snapshots, copies, deletion.

use std::collections::BTreeMap;

use blob_model::Tags;
use blob_wire::{names as blob_names, tag_document};
use http::Method;
use model::DateTime;
use wire::names;

use super::blob::Blob;
use super::properties::{self, ContentHeaders};
use crate::error::{Error, Result};
use crate::etag::ETag;
use crate::transport::{Repeat, ServiceAnswer, ServiceRequest};

/// The version that a write has made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    pub etag: ETag,
    pub last_modified: DateTime,
}

/// What happens to the snapshots of a blob that is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeleteSnapshots {
    /// A blob that has snapshots is not deleted (409 `SnapshotsPresent`).
    #[default]
    Refuse,
    /// They are deleted with their blob.
    Include,
    /// They are deleted, and the blob stays.
    Only,
}

impl Written {
    pub(super) fn of(answer: &ServiceAnswer) -> Result<Self> {
        Ok(Self { etag: properties::etag(answer)?, last_modified: properties::last_modified(answer)? })
    }
}

impl Blob {
    /// Replaces all of the metadata.
    pub async fn set_metadata(&self, metadata: &BTreeMap<String, String>) -> Result<Written> {
        let request = self.request("set_blob_metadata", Method::PUT).query(names::COMP, "metadata");
        Written::of(&self.send(properties::with_metadata(request, metadata)?).await?)
    }

    /// Replaces all headers of the content.
    pub async fn set_headers(&self, headers: &ContentHeaders) -> Result<Written> {
        let request = self.request("set_blob_properties", Method::PUT).query(names::COMP, "properties");
        // Without any of these headers the service would leave all as they are.
        let request = match headers == &ContentHeaders::default() {
            true => request.header("x-ms-blob-content-type", ""),
            false => headers.add(request),
        };
        Written::of(&self.send(request).await?)
    }

    /// Replaces all tags: up to ten, of letters, digits, spaces and `+ - . / : = _`.
    pub async fn set_tags(&self, tags: &BTreeMap<String, String>) -> Result<()> {
        let document = tag_document::write(&checked_tags(tags)?);
        // Some services refuse the byte order mark that answers begin with.
        let document = document.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&document).to_vec();
        let request = self.request("set_blob_tags", Method::PUT).query(names::COMP, "tags");
        self.send(request.body("application/xml", document)).await.map(drop)
    }

    /// Sets the tier of a block blob: `Hot`, `Cool`, `Cold` or `Archive`.
    pub async fn set_tier(&self, tier: &str) -> Result<()> {
        let request = self.request("set_blob_tier", Method::PUT).query(names::COMP, "tier");
        self.send(request.header(blob_names::ACCESS_TIER, tier)).await.map(drop)
    }

    /// Makes a snapshot, and returns a handle of it. If the answer is lost, the retry makes a second one.
    pub async fn snapshot(&self) -> Result<Self> {
        self.snapshot_with(&BTreeMap::new()).await
    }

    /// The same, with metadata of the snapshot's own; the blob's if there is none.
    pub async fn snapshot_with(&self, metadata: &BTreeMap<String, String>) -> Result<Self> {
        let request = self.request("snapshot_blob", Method::PUT).query(names::COMP, "snapshot");
        let answer = self.send(properties::with_metadata(request, metadata)?).await?;
        match answer.header("x-ms-snapshot") {
            Some(time) => Ok(self.without_condition().at_snapshot(time)),
            None => Err(Error::Unreadable("the answer does not name the snapshot".to_owned())),
        }
    }

    /// Copies another blob over this one: its address, from [`url`](Self::url), with a token behind it if it is in another
    /// account. A copy from another account may take its time; [`BlobProperties::copy`](crate::BlobProperties::copy) tells
    /// how far it is.
    pub async fn copy_from(&self, source: &str) -> Result<Written> {
        let request = self.request("copy_blob", Method::PUT).header(blob_names::COPY_SOURCE, source);
        Written::of(&self.send(request).await?)
    }

    /// Deletes the blob, or the snapshot that this handle is of.
    pub async fn delete(&self, snapshots: DeleteSnapshots) -> Result<()> {
        let request = self.request("delete_blob", Method::DELETE).repeat(Repeat::Achieved(404));
        let request = match snapshots {
            DeleteSnapshots::Refuse => request,
            DeleteSnapshots::Include => request.header("x-ms-delete-snapshots", "include"),
            DeleteSnapshots::Only => request.header("x-ms-delete-snapshots", "only"),
        };
        self.send(request).await.map(drop)
    }

    /// Restores a blob that was deleted, and its snapshots, if the service keeps them.
    pub async fn undelete(&self) -> Result<()> {
        let request = self.request("undelete_blob", Method::PUT).query(names::COMP, "undelete");
        self.send(request).await.map(drop)
    }
}

/// As the header `x-ms-tags` of a write.
pub fn with_tags(request: ServiceRequest, tags: &BTreeMap<String, String>) -> Result<ServiceRequest> {
    if tags.is_empty() {
        return Ok(request);
    }
    let encode = crate::transport::encode;
    let tags = checked_tags(tags)?;
    let pairs: Vec<String> =
        tags.iter().map(|(key, value)| format!("{}={}", encode(key), encode(value))).collect();
    Ok(request.header("x-ms-tags", pairs.join("&")))
}

fn checked_tags(tags: &BTreeMap<String, String>) -> Result<Tags> {
    let pairs = tags.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    Tags::new(pairs).map_err(|fault| Error::invalid(fault.to_string()))
}
