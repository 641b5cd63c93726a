//! Page blobs: pages of 512 bytes that are written in place. Pages that were never written are zeros.

use std::ops::Range;

use blob_model::limits;
use blob_wire::page_list::{self, ListedPages};
use bytes::Bytes;
use http::Method;
use wire::names;

use super::blob::Blob;
use super::properties::{self, BlobType};
use super::upload::{UploadOptions, with_checksum};
use super::writes::{self, Written};
use crate::error::{Error, Result};
use crate::transport::ServiceRequest;

impl Blob {
    /// Creates a page blob of this length, a multiple of 512, full of zeros.
    pub async fn create_pages(
        &self,
        length: u64,
        sequence_number: u64,
        options: &UploadOptions,
    ) -> Result<Written> {
        let request = self
            .request("create_page_blob", Method::PUT)
            .header(blob_wire::names::BLOB_TYPE, BlobType::Page.name())
            .header("x-ms-blob-content-length", length.to_string())
            .header(blob_wire::names::BLOB_SEQUENCE_NUMBER, sequence_number.to_string());
        let request = options.headers.add(properties::with_metadata(request, &options.metadata)?);
        Written::of(&self.send(writes::with_tags(request, &options.tags)?).await?)
    }

    /// Writes whole pages at this offset, up to 4 MiB.
    pub async fn write_pages(&self, offset: u64, content: impl Into<Bytes>) -> Result<Written> {
        let content = content.into();
        let request = self.page_request("put_pages", "update", offset, content.len() as u64)?;
        Written::of(&self.send(with_checksum(request, content)).await?)
    }

    /// Makes whole pages zeros again.
    pub async fn clear_pages(&self, range: Range<u64>) -> Result<Written> {
        let length = range.end.saturating_sub(range.start);
        Written::of(&self.send(self.page_request("clear_pages", "clear", range.start, length)?).await?)
    }

    /// The ranges that were written, in order. All of them are of one version: if the blob is written while they are read page
    /// by page, that is an error ([`Error::is_changed`](crate::Error::is_changed)).
    pub async fn page_ranges(&self) -> Result<Vec<Range<u64>>> {
        let (mut blob, mut ranges, mut next) = (self.clone(), Vec::new(), None);
        loop {
            let mut request = blob.request("get_page_ranges", Method::GET).query(names::COMP, "pagelist");
            if let Some(marker) = next {
                request = request.query("marker", marker);
            }
            let answer = blob.send(request).await?;
            let page = page_list::read(&answer.body)
                .ok_or_else(|| Error::Unreadable("the page ranges in the answer can't be read".to_owned()))?;
            ranges.extend(page.ranges.into_iter().filter_map(|range| match range {
                ListedPages::Written(range) => Some(range.start()..range.last() + 1),
                ListedPages::Cleared(_) => None,
            }));
            next = page.next_marker.filter(|marker| !marker.is_empty());
            if next.is_none() {
                return Ok(ranges);
            }
            blob = self.if_match(&properties::etag(&answer)?);
        }
    }

    fn page_request(
        &self,
        name: &'static str,
        write: &str,
        offset: u64,
        length: u64,
    ) -> Result<ServiceRequest> {
        let is_whole =
            |number: u64| number.is_multiple_of(limits::PAGE_BYTES) && number <= limits::PAGE_BLOB_BYTES_MAX;
        if length == 0 || !is_whole(offset) || !is_whole(length) {
            return Err(Error::invalid(format!(
                "{length} bytes at {offset} are not whole pages of {} bytes",
                limits::PAGE_BYTES
            )));
        }
        Ok(self
            .request(name, Method::PUT)
            .query(names::COMP, "page")
            .header("x-ms-page-write", write)
            .header("x-ms-range", format!("bytes={offset}-{}", offset + length - 1)))
    }
}
