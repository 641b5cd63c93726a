//! Blobs: an upload is a file that is synced before the answer, and a download is fixed bytes.
//!
//! `partita bench` begins the name of a blob with its length, so that a server that stores nothing can send as much.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write as _};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use tokio::task::JoinHandle;

use crate::answer::{self, Body};
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
        Method::GET => return download(&request),
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

fn download(request: &Request<Incoming>) -> Response<Body> {
    let length = request.uri().path().split('/').nth(3).and_then(|length| length.parse().ok());
    let Some(length) = length else { return answer::refusal(StatusCode::NOT_FOUND) };
    match range(request.headers()) {
        Some(range) => answer::blob_range(range, length),
        None => answer::blob(length),
    }
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
        let mut name = DefaultHasher::new();
        (request.uri().path(), request.uri().query()).hash(&mut name);
        let path = file_path(&log.path, name.finish());
        return write_file(path, request.into_body()).await.map_err(|error| {
            eprintln!("partita-bare: a file could not be written: {error}");
            NotKept
        });
    }
    let body = request.into_body().collect().await.map_err(|_| NotKept)?.to_bytes();
    log.append(if body.is_empty() { Bytes::from_static(&crate::RECORD) } else { body }).await
}

/// Writes what has been received while more is received, and syncs it.
async fn write_file(path: PathBuf, mut body: Incoming) -> io::Result<()> {
    let mut writing: JoinHandle<io::Result<File>> = tokio::task::spawn_blocking(move || File::create(path));
    let mut buffer = Vec::with_capacity(WRITTEN_AT_ONCE);
    while let Some(frame) = body.frame().await {
        let Ok(bytes) = frame.map_err(io::Error::other)?.into_data() else { continue };
        buffer.extend_from_slice(&bytes);
        if buffer.len() >= WRITTEN_AT_ONCE {
            let mut file = writing.await??;
            let full = std::mem::replace(&mut buffer, Vec::with_capacity(WRITTEN_AT_ONCE));
            writing = tokio::task::spawn_blocking(move || file.write_all(&full).map(|()| file));
        }
    }
    let mut file = writing.await??;
    tokio::task::spawn_blocking(move || file.write_all(&buffer).and_then(|()| file.sync_data())).await?
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
