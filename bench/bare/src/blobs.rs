//! Blobs: an upload is a file that is synced before the answer, and a download is read from a file. What is short is written to
//! the log, and read from memory.
//!
//! `partita bench` begins the name of a blob with its length, so that a blob that was never put here can be sent too.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write as _};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use md5::{Digest as _, Md5};
use tokio::task::JoinHandle;

use crate::answer::{self, Body, CONTENT, Content};
use crate::log::{Log, NotKept};

/// A longer body gets a file of its own; a shorter one shares a sync with others.
const LOGGED_BYTES_MAX: u64 = 64 * 1024;
/// What is written to a file at once, while the next bytes are received.
const WRITTEN_AT_ONCE: usize = 1024 * 1024;

/// Whether a request is for blobs or containers. Tables have no further name in their path, and queues only `messages`.
pub fn is_for_blobs<B>(request: &Request<B>) -> bool {
    let path = request.uri().path();
    let names = path.split('/').skip(2).filter(|name| !name.is_empty()).count();
    of_container(request) || (names > 1 && !path.contains("/messages") && !path.contains('('))
}

fn of_container<B>(request: &Request<B>) -> bool {
    request.uri().query().is_some_and(|query| query.contains("restype=container"))
}

pub async fn answer(request: Request<Incoming>, log: Option<&Log>) -> Response<Body> {
    let is_of_container = of_container(&request);
    match *request.method() {
        Method::GET if is_of_container => return answer::blob_list(),
        Method::GET => return download(&request, log).await,
        Method::DELETE => {
            if let Some(log) = log.filter(|_| is_of_container) {
                remove_files(&log.path);
            }
            return answer::blob_deleted();
        }
        _ => {}
    }
    match keep(request, log).await {
        Ok(()) => answer::blob_written(),
        Err(NotKept) => answer::refusal(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

async fn download(request: &Request<Incoming>, log: Option<&Log>) -> Response<Body> {
    let length = request.uri().path().split('/').nth(3).and_then(|length| length.parse().ok());
    let Some(length) = length else { return answer::refusal(StatusCode::NOT_FOUND) };
    let range = range(request.headers());
    let (start, count) =
        range.as_ref().map_or((0, length), |range| (*range.start(), range.end() - range.start() + 1));
    let content = match log.filter(|_| length > LOGGED_BYTES_MAX) {
        None => Content::memory(count),
        Some(log) => {
            let path = file_path(&log.path, name(request));
            match tokio::task::spawn_blocking(move || open_file(&path, length)).await {
                Ok(Ok(file)) => Content::file(file, start, count),
                _ => return answer::refusal(StatusCode::INTERNAL_SERVER_ERROR),
            }
        }
    };
    match range {
        Some(range) => answer::blob_range(range, length, content),
        None => answer::blob(content),
    }
}

/// The file of a blob. If it was never put, or in blocks, it is made.
fn open_file(path: &Path, length: u64) -> io::Result<File> {
    if let Ok(file) = File::open(path)
        && file.metadata()?.len() == length
    {
        return Ok(file);
    }
    let mut file = File::create(path)?;
    let mut left = length;
    while left > 0 {
        let count = left.min(CONTENT.len() as u64);
        file.write_all(&CONTENT[..count as usize])?;
        left -= count;
    }
    file.sync_data()?;
    File::open(path)
}

fn range(headers: &HeaderMap) -> Option<RangeInclusive<u64>> {
    let range = headers.get("x-ms-range").or(headers.get("range"))?.to_str().ok()?;
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some(first..=last)
}

/// Receives the body. With a log, it is on disk then.
async fn keep(request: Request<Incoming>, log: Option<&Log>) -> Result<(), NotKept> {
    let Some(log) = log else {
        let mut body = request.into_body();
        while let Some(frame) = body.frame().await {
            frame.map_err(|_| NotKept)?;
        }
        return Ok(());
    };
    if request.body().size_hint().upper().is_none_or(|bytes| bytes > LOGGED_BYTES_MAX) {
        let path = file_path(&log.path, name(&request));
        // Of a block, the service's answer has no MD5.
        let md5 = (log.hashes && request.uri().query().is_none()).then(Md5::new);
        return write_file(path, request.into_body(), md5).await.map_err(|error| {
            eprintln!("partita-bare: a file could not be written: {error}");
            NotKept
        });
    }
    let body = request.into_body().collect().await.map_err(|_| NotKept)?.to_bytes();
    log.append(if body.is_empty() { Bytes::from_static(&crate::RECORD) } else { body }).await
}

/// Writes what has been received while more is received, and syncs it.
async fn write_file(path: PathBuf, mut body: Incoming, md5: Option<Md5>) -> io::Result<()> {
    let mut writing: JoinHandle<io::Result<Written>> =
        tokio::task::spawn_blocking(move || Ok(Written { file: File::create(path)?, md5 }));
    let mut buffer = Vec::with_capacity(WRITTEN_AT_ONCE);
    while let Some(frame) = body.frame().await {
        let Ok(bytes) = frame.map_err(io::Error::other)?.into_data() else { continue };
        buffer.extend_from_slice(&bytes);
        if buffer.len() >= WRITTEN_AT_ONCE {
            let written = writing.await??;
            let full = std::mem::replace(&mut buffer, Vec::with_capacity(WRITTEN_AT_ONCE));
            writing = tokio::task::spawn_blocking(move || written.and(&full));
        }
    }
    let written = writing.await??;
    tokio::task::spawn_blocking(move || {
        let Written { file, md5 } = written.and(&buffer)?;
        if let Some(md5) = md5 {
            std::hint::black_box(md5.finalize());
        }
        file.sync_data()
    })
    .await?
}

/// A file that grows, and the MD5 of what it has.
struct Written {
    file: File,
    md5: Option<Md5>,
}

impl Written {
    fn and(mut self, bytes: &[u8]) -> io::Result<Self> {
        self.file.write_all(bytes)?;
        if let Some(md5) = &mut self.md5 {
            md5.update(bytes);
        }
        Ok(self)
    }
}

/// Stands for the blob or block in the name of its file.
fn name<B>(request: &Request<B>) -> u64 {
    let mut name = DefaultHasher::new();
    (request.uri().path(), request.uri().query()).hash(&mut name);
    name.finish()
}

/// Beside the log.
fn file_path(log: &Path, name: u64) -> PathBuf {
    log.with_extension(format!("{name:016x}.blob"))
}

fn remove_files(log: &Path) {
    let directory = log.parent().filter(|directory| !directory.as_os_str().is_empty());
    let Ok(files) = fs::read_dir(directory.unwrap_or(Path::new("."))) else { return };
    let stem = log.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    for file in files.flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        let rest = name.strip_prefix(&stem).and_then(|rest| rest.strip_prefix('.')?.strip_suffix(".blob"));
        if rest.is_some_and(|rest| rest.len() == 16) {
            // What can't be removed only takes space.
            let _ = fs::remove_file(file.path());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

    use super::*;

    #[test]
    fn requests_for_blobs_are_told_from_others() {
        let check = |uri: &str, expected: bool| {
            let request = Request::builder().uri(uri).body(()).unwrap();
            assert_eq!(is_for_blobs(&request), expected, "{uri}");
        };
        check("/a/box/1024/000000/00/07", true);
        check("/a/box?restype=container", true);
        check("/a/box?restype=container&comp=list&prefix=x", true);
        check("/a/Tables", false);
        check("/a/$batch", false);
        check("/a/box(PartitionKey='a',RowKey='b')", false);
        check("/a/box(PartitionKey='a%2Fb',RowKey='c/d')", false);
        check("/a/queue", false);
        check("/a/queue/messages", false);
        check("/a/queue/messages/0a1b?popreceipt=x", false);
    }

    #[test]
    fn ranges_are_read() {
        let of = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-ms-range", hyper::header::HeaderValue::from_static(text));
            range(&headers)
        };
        assert_eq!(of("bytes=5-9"), Some(5..=9));
        assert_eq!(of("bytes=9-5"), None);
        assert_eq!(of("bytes=5-"), None);
        assert_eq!(range(&HeaderMap::new()), None);
    }
}
