//! One blob: its address, under which condition it is used, and what can be read of it besides its content.

use std::collections::BTreeMap;
use std::sync::Arc;

use blob_model::BlobName;
use blob_wire::{block_list, tag_document};
use http::Method;
use wire::names;

use super::container::Container;
use super::lease::{Lease, LeaseTime};
use super::properties::{self, BlobProperties};
use crate::error::{Error, Result};
use crate::etag::ETag;
use crate::retry::RetryPolicy;
use crate::sas::{self, BlobSas};
use crate::transport::{OpenAnswer, Repeat, ServiceAnswer, ServiceRequest, encode};

/// A blob of a container, made by [`Container::blob`]. Cheap to clone.
///
/// A handle can carry a condition and a lease. Every request that is made through it carries them too:
///
/// ```no_run
/// # async fn run(blob: partita_client::Blob) -> partita_client::Result<()> {
/// let written = blob.if_absent().upload("first").await?;
/// // Refused with 412 if somebody else has changed it in between.
/// blob.if_match(&written.etag).upload("second").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Blob {
    pub(super) container: Container,
    name: Arc<str>,
    snapshot: Option<Arc<str>>,
    lease: Option<Arc<str>>,
    condition: Option<Condition>,
}

#[derive(Clone, Debug)]
enum Condition {
    Match(ETag),
    Exists,
    Absent,
}

/// A block that a block blob consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockEntry {
    /// In Base64.
    pub id: String,
    pub length: u64,
}

/// Refusals of the retry of a conditional write that the first attempt may have caused.
const CONDITION_STATUSES: &[u16] = &[409, 412];

impl Blob {
    pub(super) fn new(container: Container, name: &str) -> Result<Self> {
        let name = BlobName::parse(name).map_err(|_| {
            Error::invalid(
                "the name of a blob takes 1 to 1,024 characters, in at most 254 parts between slashes",
            )
        })?;
        let name = name.as_str().into();
        Ok(Self { container, name, snapshot: None, lease: None, condition: None })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn container(&self) -> &Container {
        &self.container
    }

    /// The time of the snapshot that this handle is of.
    pub fn snapshot_time(&self) -> Option<&str> {
        self.snapshot.as_deref()
    }

    /// The address, without key or signature, as the source of a copy names it.
    pub fn url(&self) -> String {
        let endpoint = self.container.transport.endpoint.url();
        let snapshot = self.snapshot.as_deref().map(|time| format!("?snapshot={}", encode(time)));
        format!("{endpoint}{}{}", self.path(), snapshot.unwrap_or_default())
    }

    /// A snapshot of this blob, by the time that names it.
    pub fn at_snapshot(&self, time: &str) -> Self {
        Self { snapshot: Some(time.into()), ..self.clone() }
    }

    /// The same blob, whose requests carry this lease.
    pub fn leased(&self, lease: &str) -> Self {
        Self { lease: Some(lease.into()), ..self.clone() }
    }

    /// The same blob, if it has this version; otherwise a request is refused with 412
    /// ([`Error::is_changed`](crate::Error::is_changed)).
    pub fn if_match(&self, etag: &ETag) -> Self {
        Self { condition: Some(Condition::Match(etag.clone())), ..self.clone() }
    }

    /// The same blob, if it exists. A write is refused with 412 if it does not.
    pub fn if_exists(&self) -> Self {
        Self { condition: Some(Condition::Exists), ..self.clone() }
    }

    /// The same blob, if there is none yet. A write is refused with 409 ([`Error::is_conflict`](crate::Error::is_conflict))
    /// if there is one.
    pub fn if_absent(&self) -> Self {
        Self { condition: Some(Condition::Absent), ..self.clone() }
    }

    pub async fn properties(&self) -> Result<BlobProperties> {
        let answer = self.send(self.request("get_blob_properties", Method::HEAD)).await?;
        let length = answer.header("content-length").and_then(|text| text.parse().ok());
        let length = length
            .ok_or_else(|| Error::Unreadable("the answer does not say how long the blob is".to_owned()))?;
        properties::of_answer(&answer, length)
    }

    pub async fn exists(&self) -> Result<bool> {
        match self.properties().await {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.code(), Some("BlobNotFound" | "ContainerNotFound")) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The tags, by which the service finds blobs.
    pub async fn tags(&self) -> Result<BTreeMap<String, String>> {
        let request = self.request("get_blob_tags", Method::GET).query(names::COMP, "tags");
        let answer = self.send(request).await?;
        let tags = tag_document::read(&answer.body)
            .map_err(|_| Error::Unreadable("the tags in the answer can't be read".to_owned()))?;
        Ok(tags.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    }

    /// The committed blocks of a block blob, in order. A blob that was put as a whole may have none.
    pub async fn blocks(&self) -> Result<Vec<BlockEntry>> {
        let request = self.request("get_block_list", Method::GET).query(names::COMP, "blocklist");
        let answer = self.send(request.query("blocklisttype", "committed")).await?;
        let lists = block_list::read(&answer.body)
            .ok_or_else(|| Error::Unreadable("the block list in the answer can't be read".to_owned()))?;
        let blocks = lists.committed.unwrap_or_default().into_iter();
        Ok(blocks.map(|block| BlockEntry { id: block.id.to_string(), length: block.bytes }).collect())
    }

    /// Leases the blob, so that nobody else can write or delete it, and renews the lease in the background.
    ///
    /// ```no_run
    /// # async fn run(blob: partita_client::Blob) -> partita_client::Result<()> {
    /// use std::time::Duration;
    /// use partita_client::LeaseTime;
    ///
    /// let lease = blob.lease(LeaseTime::For(Duration::from_secs(30))).await?;
    /// let mine = blob.leased(lease.id());
    /// tokio::select! {
    ///     written = mine.upload("mine") => drop(written?),
    ///     why = lease.lost() => return Err(why),
    /// }
    /// lease.release().await
    /// # }
    /// ```
    pub async fn lease(&self, time: LeaseTime) -> Result<Lease> {
        let request = self.request("lease_blob", Method::PUT);
        Lease::acquire(self.container.transport.clone(), request, time).await
    }

    /// A shared access signature for this blob, or for this snapshot; needs the account's key.
    pub fn sign(&self, sas: &BlobSas) -> Result<String> {
        let endpoint = &self.container.transport.endpoint;
        sas::sign_blob(endpoint, self.container.name(), &self.name, self.snapshot.as_deref(), sas)
    }

    /// The path in the endpoint. A slash stands for itself.
    fn path(&self) -> String {
        let parts: Vec<String> = self.name.split('/').map(encode).collect();
        format!("/{}/{}", self.container.name(), parts.join("/"))
    }

    /// With the snapshot, the lease and the condition of this handle.
    pub(super) fn request(&self, name: &'static str, method: Method) -> ServiceRequest {
        let mut request = ServiceRequest::new(name, method, self.path());
        if let Some(time) = &self.snapshot {
            request = request.query("snapshot", &**time);
        }
        if let Some(lease) = &self.lease {
            request = request.header(properties::LEASE_ID, &**lease);
        }
        match &self.condition {
            None => request,
            Some(condition) => {
                let request = match condition {
                    Condition::Match(etag) => request.header("if-match", etag.as_str()),
                    Condition::Exists => request.header("if-match", "*"),
                    Condition::Absent => request.header("if-none-match", "*"),
                };
                request.repeat(Repeat::Ambiguous(CONDITION_STATUSES))
            }
        }
    }

    /// For a write whose condition counts when the content is there: a block is put before.
    pub(super) fn without_condition(&self) -> Self {
        Self { condition: None, ..self.clone() }
    }

    pub(super) async fn send(&self, request: ServiceRequest) -> Result<ServiceAnswer> {
        self.container.send(request).await
    }

    pub(super) async fn open(&self, request: ServiceRequest) -> Result<OpenAnswer> {
        self.container.transport.open(request).await
    }

    pub(super) fn retry(&self) -> &RetryPolicy {
        &self.container.transport.retry
    }
}
