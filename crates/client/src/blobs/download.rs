//! Downloads a blob, or a range of it, as a stream. If the connection breaks, the download goes on at the next byte, and only if
//! the blob is still the same.

use std::ops::{Bound, RangeBounds};

use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, Stream};
use http::Method;

use super::blob::Blob;
use super::properties::{self, BlobProperties};
use crate::error::{Error, Result};
use crate::transport::OpenAnswer;

/// The content of a blob on its way, made by [`Blob::download`].
///
/// ```no_run
/// # async fn run(blob: partita_client::Blob) -> Result<(), Box<dyn std::error::Error>> {
/// use std::io::Write as _;
///
/// let mut download = blob.download().await?;
/// let mut file = std::fs::File::create("backup.tar")?;
/// while let Some(piece) = download.next().await? {
///     file.write_all(&piece)?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Download {
    blob: Blob,
    properties: BlobProperties,
    /// What is still to come: from this byte to that one, which does not belong to it.
    at: u64,
    end: u64,
    answer: Option<OpenAnswer>,
    /// Connections that broke since the last piece.
    broken: u32,
}

impl Blob {
    /// Begins to download all of it.
    pub async fn download(&self) -> Result<Download> {
        Download::begin(self.clone(), 0, None).await
    }

    /// Begins to download a range of bytes, such as `100..200` or `100..`. What is behind the end of the blob is left out; a
    /// range that begins there is refused with 416.
    pub async fn download_range(&self, range: impl RangeBounds<u64>) -> Result<Download> {
        let start = match range.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(start) => start.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(last) => Some(last.saturating_add(1)),
            Bound::Excluded(end) => Some(*end),
            Bound::Unbounded => None,
        };
        if end.is_some_and(|end| end <= start) {
            return Err(Error::invalid("a range of no bytes can't be downloaded"));
        }
        Download::begin(self.clone(), start, end).await
    }

    /// The whole content, if it is not longer than this; for more, [`download`](Self::download).
    pub async fn read(&self, bytes_max: usize) -> Result<Bytes> {
        self.download().await?.collect(bytes_max).await
    }
}

impl Download {
    async fn begin(blob: Blob, start: u64, end: Option<u64>) -> Result<Self> {
        let mut request = blob.request("get_blob", Method::GET);
        if start > 0 || end.is_some() {
            request = request.header("x-ms-range", range(start, end));
        }
        let answer = blob.open(request).await?;
        let (first, bytes, length) = extent(&answer)?;
        if first != start && bytes > 0 {
            return Err(Error::Unreadable(format!("byte {start} was asked for, and byte {first} came")));
        }
        let properties = properties::of_answer(&answer.answer, length)?;
        Ok(Self { blob, properties, at: start, end: start + bytes, answer: Some(answer), broken: 0 })
    }

    /// Of the blob, as it was when the download began. The length is that of the whole.
    pub fn properties(&self) -> &BlobProperties {
        &self.properties
    }

    /// How many bytes are still to come.
    pub fn remaining(&self) -> u64 {
        self.end - self.at
    }

    /// The next piece; `None` at the end. After an error the download can go on with another call, unless the blob has
    /// changed (412) or is gone (404).
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        while self.at < self.end {
            let answer = match &mut self.answer {
                Some(answer) => answer,
                none => none.insert(self.blob.again(&self.properties, self.at, self.end).await?),
            };
            let why = match answer.next().await {
                Some(Ok(piece)) if piece.len() as u64 > self.end - self.at => {
                    return Err(Error::Unreadable("more came than the answer had announced".to_owned()));
                }
                Some(Ok(piece)) => {
                    self.at += piece.len() as u64;
                    self.broken = 0;
                    return Ok(Some(piece));
                }
                Some(Err(why)) => why,
                None => "the answer ended too early".to_owned(),
            };
            self.answer = None;
            self.broken += 1;
            let retry = self.blob.retry();
            if self.broken >= retry.attempts {
                self.broken = 0;
                return Err(Error::Unanswered(why));
            }
            let pause = retry.pause(self.broken, rand::random(), None);
            tracing::debug!(at = self.at, ?pause, why, "the download goes on");
            if let Some(on_pause) = &retry.on_pause {
                on_pause.call(&why, pause);
            }
            tokio::time::sleep(pause).await;
        }
        Ok(None)
    }

    /// The pieces as a stream, which ends after an error.
    pub fn stream(self) -> impl Stream<Item = Result<Bytes>> + Send {
        stream::try_unfold(self, |mut download| async move {
            Ok(download.next().await?.map(|piece| (piece, download)))
        })
    }

    /// All that is still to come, if it is not longer than this.
    pub async fn collect(mut self, bytes_max: usize) -> Result<Bytes> {
        if self.remaining() > bytes_max as u64 {
            return Err(Error::invalid(format!(
                "the content has {} bytes, more than the {bytes_max} that were asked for",
                self.remaining()
            )));
        }
        let mut all = BytesMut::with_capacity(self.remaining() as usize);
        while let Some(piece) = self.next().await? {
            all.extend_from_slice(&piece);
        }
        Ok(all.freeze())
    }
}

impl Blob {
    /// The rest of the same version.
    async fn again(&self, properties: &BlobProperties, at: u64, end: u64) -> Result<OpenAnswer> {
        let request = self.if_match(&properties.etag).request("get_blob_again", Method::GET);
        let answer = self.open(request.header("x-ms-range", range(at, Some(end)))).await?;
        match extent(&answer)? {
            (first, bytes, _) if first == at && bytes == end - at => Ok(answer),
            (first, bytes, _) => Err(Error::Unreadable(format!(
                "bytes {at} to {end} were asked for, and {bytes} from {first} came"
            ))),
        }
    }
}

fn range(start: u64, end: Option<u64>) -> String {
    match end {
        Some(end) => format!("bytes={start}-{}", end - 1),
        None => format!("bytes={start}-"),
    }
}

/// Where the content of an answer begins in the blob, its length, and that of the blob.
fn extent(answer: &OpenAnswer) -> Result<(u64, u64, u64)> {
    let unreadable =
        |what: &str| Error::Unreadable(format!("the answer to a download has no readable {what}"));
    let bytes: u64 = answer
        .answer
        .header("content-length")
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| unreadable("Content-Length"))?;
    let Some(range) = answer.answer.header("content-range") else { return Ok((0, bytes, bytes)) };
    let parse = || {
        let (range, length) = range.strip_prefix("bytes ")?.split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        let length: u64 = length.parse().ok()?;
        (last.checked_sub(first)?.checked_add(1)? == bytes && last < length).then_some((first, bytes, length))
    };
    parse().ok_or_else(|| unreadable("Content-Range"))
}
