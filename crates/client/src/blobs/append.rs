//! Append blobs: content that only grows.

use bytes::Bytes;
use http::Method;
use wire::names;

use super::blob::Blob;
use super::properties::{self, BlobType};
use super::upload::{UploadOptions, with_checksum};
use super::writes::{self, Written};
use crate::error::{Error, Result};
use crate::transport::{Repeat, ServiceAnswer, ServiceRequest};

impl Blob {
    /// Creates an empty append blob, over any blob that is there; through [`if_absent`](Self::if_absent) only if there is
    /// none.
    pub async fn create_append(&self, options: &UploadOptions) -> Result<Written> {
        let request = self.request("create_append_blob", Method::PUT);
        let request = request.header(blob_wire::names::BLOB_TYPE, BlobType::Append.name());
        let request = options.headers.add(properties::with_metadata(request, &options.metadata)?);
        Written::of(&self.send(writes::with_tags(request, &options.tags)?).await?)
    }

    /// Appends at the end, up to 4 MiB, and returns where the appended bytes begin. Other writers may append in between.
    ///
    /// If the answer is lost, it is not sent again, because the bytes could then be there twice: the outcome is unknown.
    pub async fn append(&self, content: impl Into<Bytes>) -> Result<u64> {
        let answer = self.send(self.appending(content.into()).repeat(Repeat::Never)).await?;
        offset(&answer)
    }

    /// Appends at this position, which must be the end; otherwise it is refused with 412. So only one writer can succeed,
    /// and what is there after an unknown outcome can be told by the length.
    pub async fn append_at(&self, position: u64, content: impl Into<Bytes>) -> Result<()> {
        let request = self.appending(content.into());
        let request = request.header("x-ms-blob-condition-appendpos", position.to_string());
        self.send(request.repeat(Repeat::Ambiguous(&[412]))).await.map(drop)
    }

    /// From now on the blob takes no more.
    pub async fn seal(&self) -> Result<()> {
        let request = self.request("seal_append_blob", Method::PUT).query(names::COMP, "seal");
        self.send(request).await.map(drop)
    }

    fn appending(&self, content: Bytes) -> ServiceRequest {
        let request = self.request("append_block", Method::PUT).query(names::COMP, "appendblock");
        with_checksum(request, content)
    }
}

fn offset(answer: &ServiceAnswer) -> Result<u64> {
    let offset = answer.header("x-ms-blob-append-offset").and_then(|text| text.parse().ok());
    offset.ok_or_else(|| Error::Unreadable("the answer does not say where it was appended".to_owned()))
}
