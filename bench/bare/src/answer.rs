//! The fixed answers, with the headers and framing of the real ones.

use std::io;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::header::{
    CACHE_CONTROL, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, LAST_MODIFIED, SERVER,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::{HeaderMap, Response, StatusCode};
use memchr::memmem;

pub use crate::content::Content;

const REQUEST_ID: &str = "8b0c1e7c-0002-0040-1a2b-3c4d5e000000";
const TIMESTAMP_ETAG: &str = "W/\"datetime'2026-01-01T00%3A00%3A00.0000000Z'\"";
const BATCH_TYPE: &str = "multipart/mixed; boundary=batchresponse_8b0c1e7c-0002-0040-1a2b-3c4d5e000000";

/// The answer for an entity of 1 KiB; its letters do not matter.
const ENTITY: &[u8; 1024] = &{
    let mut bytes = [b'x'; 1024];
    let (head, tail) = (b"{\"PartitionKey\":\"p000000\",\"RowKey\":\"r00000000\",\"Notes\":\"", b"\"}");
    let mut at = 0;
    while at < head.len() {
        bytes[at] = head[at];
        at += 1;
    }
    bytes[1022] = tail[0];
    bytes[1023] = tail[1];
    bytes
};

const PART: &str = "--changesetresponse_0\r\nContent-Type: application/http\r\n\
     Content-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 204 No Content\r\n\
     X-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\nPreference-Applied: return-no-content\r\n\
     DataServiceVersion: 3.0;\r\nETag: W/\"datetime'2026-01-01T00%3A00%3A00.0000000Z'\"\r\n\r\n\r\n";

const MESSAGE_ID: &str = "0a1b2c3d-192b-4f77-a501-2ba4be007ea5";
const RECEIPT: &str = "AgAAAAMAAAAAAAAAO0dZ7P5O1QE=";
const DATE: &str = "Fri, 15 Nov 2024 12:00:00 GMT";

const BLOB_ETAG: &str = "\"0x8DD056A2C8E4A00\"";
const MD5: &str = "1B2M2Y8AsgTpgAmY7PhCfg==";
/// The content of blobs, again and again.
pub static CONTENT: [u8; 1024 * 1024] = [b'x'; 1024 * 1024];

#[derive(Debug)]
pub enum Body {
    /// Sent at once, and in chunks unless it is empty, as Partita sends its documents.
    Document(Option<Bytes>),
    /// Bytes of a blob, which the head tells the number of.
    Content(Content),
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let bytes = match &mut *self {
            Self::Document(bytes) => bytes.take().map(Ok),
            Self::Content(content) => ready!(content.poll_next(context)),
        };
        Poll::Ready(bytes.map(|bytes| bytes.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Document(bytes) => bytes.is_none(),
            Self::Content(content) => content.left == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Document(Some(_)) => SizeHint::default(),
            Self::Document(None) => SizeHint::with_exact(0),
            Self::Content(content) => SizeHint::with_exact(content.left),
        }
    }
}

pub fn entity() -> Response<Body> {
    let mut response = with_headers(StatusCode::OK, Body::Document(Some(Bytes::from_static(ENTITY))));
    put(
        response.headers_mut(),
        CONTENT_TYPE,
        "application/json;odata=nometadata;streaming=true;charset=utf-8",
    );
    put(response.headers_mut(), ETAG, TIMESTAMP_ETAG);
    response
}

pub fn written() -> Response<Body> {
    let mut response = with_headers(StatusCode::NO_CONTENT, Body::Document(None));
    put(response.headers_mut(), ETAG, TIMESTAMP_ETAG);
    put(response.headers_mut(), HeaderName::from_static("preference-applied"), "return-no-content");
    response
}

/// One part for each operation of the request.
pub fn batch(request: &[u8]) -> Response<Body> {
    let parts = memmem::find_iter(request, b"Content-Type: application/http\r\n").count();
    let mut body = Vec::with_capacity(PART.len() * parts + 256);
    body.extend_from_slice(
        b"--batchresponse_0\r\nContent-Type: multipart/mixed; boundary=changesetresponse_0\r\n\r\n",
    );
    for _ in 0..parts {
        body.extend_from_slice(PART.as_bytes());
    }
    body.extend_from_slice(b"--changesetresponse_0--\r\n--batchresponse_0--\r\n");
    let mut response = with_headers(StatusCode::ACCEPTED, Body::Document(Some(body.into())));
    put(response.headers_mut(), CONTENT_TYPE, BATCH_TYPE);
    response
}

static MESSAGE: LazyLock<Bytes> = LazyLock::new(|| {
    let text = "x".repeat(1024);
    message_list(&format!("<DequeueCount>1</DequeueCount><MessageText>{text}</MessageText>"))
});
static NEW_MESSAGE: LazyLock<Bytes> = LazyLock::new(|| message_list(""));

fn message_list(rest: &str) -> Bytes {
    let list = format!(
        "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessagesList><QueueMessage>\
         <MessageId>{MESSAGE_ID}</MessageId><InsertionTime>{DATE}</InsertionTime>\
         <ExpirationTime>{DATE}</ExpirationTime><PopReceipt>{RECEIPT}</PopReceipt>\
         <TimeNextVisible>{DATE}</TimeNextVisible>{rest}</QueueMessage></QueueMessagesList>"
    );
    list.into()
}

/// One message, as Get shows it; its text has 1 KiB.
pub fn message() -> Response<Body> {
    xml(StatusCode::OK, MESSAGE.clone())
}

/// As Put shows it.
pub fn message_put() -> Response<Body> {
    xml(StatusCode::CREATED, NEW_MESSAGE.clone())
}

fn xml(status: StatusCode, body: Bytes) -> Response<Body> {
    let mut response = with_headers(status, Body::Document(Some(body)));
    put(response.headers_mut(), CONTENT_TYPE, "application/xml");
    response
}

/// A message that was updated or deleted.
pub fn message_changed() -> Response<Body> {
    let mut response = with_headers(StatusCode::NO_CONTENT, Body::Document(None));
    put(response.headers_mut(), HeaderName::from_static("x-ms-popreceipt"), RECEIPT);
    put(response.headers_mut(), HeaderName::from_static("x-ms-time-next-visible"), DATE);
    response
}

/// A whole blob.
pub fn blob(content: Content) -> Response<Body> {
    with_content(StatusCode::OK, content)
}

/// These bytes of a blob of this length.
pub fn blob_range(range: RangeInclusive<u64>, length: u64, content: Content) -> Response<Body> {
    let (first, last) = (range.start(), range.end());
    let mut response = with_content(StatusCode::PARTIAL_CONTENT, content);
    if let Ok(value) = HeaderValue::try_from(format!("bytes {first}-{last}/{length}")) {
        response.headers_mut().insert(CONTENT_RANGE, value);
    }
    response
}

fn with_content(status: StatusCode, content: Content) -> Response<Body> {
    let mut response = with_headers(status, Body::Content(content));
    let headers = response.headers_mut();
    put(headers, CONTENT_TYPE, "application/octet-stream");
    put(headers, ETAG, BLOB_ETAG);
    put(headers, LAST_MODIFIED, DATE);
    put(headers, HeaderName::from_static("content-md5"), MD5);
    for (name, value) in [
        ("accept-ranges", "bytes"),
        ("x-ms-blob-type", "BlockBlob"),
        ("x-ms-creation-time", DATE),
        ("x-ms-lease-state", "available"),
        ("x-ms-lease-status", "unlocked"),
        ("x-ms-server-encrypted", "true"),
    ] {
        put(headers, HeaderName::from_static(name), value);
    }
    response
}

/// A blob, block, list or container that was put.
pub fn blob_written() -> Response<Body> {
    let mut response = with_headers(StatusCode::CREATED, Body::Document(None));
    let headers = response.headers_mut();
    put(headers, ETAG, BLOB_ETAG);
    put(headers, LAST_MODIFIED, DATE);
    put(headers, HeaderName::from_static("content-md5"), MD5);
    put(headers, HeaderName::from_static("x-ms-request-server-encrypted"), "true");
    response
}

pub fn blob_deleted() -> Response<Body> {
    with_headers(StatusCode::ACCEPTED, Body::Document(None))
}

static BLOB_LIST: LazyLock<Bytes> = LazyLock::new(|| {
    let blob = format!(
        "<Blob><Name>1024/000000/00/00</Name><Properties><Last-Modified>{DATE}</Last-Modified>\
         <Content-Length>1024</Content-Length><BlobType>BlockBlob</BlobType></Properties></Blob>"
    );
    let list = format!(
        "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults><Blobs>{}</Blobs><NextMarker />\
         </EnumerationResults>",
        blob.repeat(100)
    );
    list.into()
});

/// A hundred blobs.
pub fn blob_list() -> Response<Body> {
    xml(StatusCode::OK, BLOB_LIST.clone())
}

pub fn refusal(status: StatusCode) -> Response<Body> {
    with_headers(status, Body::Document(None))
}

fn with_headers(status: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    put(headers, CACHE_CONTROL, "no-cache");
    put(headers, X_CONTENT_TYPE_OPTIONS, "nosniff");
    put(headers, SERVER, "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0");
    put(headers, HeaderName::from_static("x-ms-request-id"), REQUEST_ID);
    put(headers, HeaderName::from_static("x-ms-version"), "2019-02-02");
    response
}

fn put(headers: &mut HeaderMap, name: HeaderName, value: &'static str) {
    headers.insert(name, HeaderValue::from_static(value));
}
