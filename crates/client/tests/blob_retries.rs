//! Blobs over connections that break: what is sent again, from where, and what is not. What takes several requests is of one
//! version.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::quick;
use partita_client::{Blob, BlobService, Error, LeaseTime, UploadOptions};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A request: its first line and its headers, in lower case.
type Head = Arc<str>;
/// What the server writes before it closes the connection. It is told the number of the request, counted from 0.
type Script = dyn Fn(usize, &str) -> String + Send + Sync;

struct Server {
    blob: Blob,
    heads: Arc<Mutex<Vec<Head>>>,
}

impl Server {
    async fn new(script: impl Fn(usize, &str) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/account", listener.local_addr().unwrap());
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (script, seen): (Arc<Script>, _) = (Arc::new(script), heads.clone());
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(serve(connection, script.clone(), seen.clone()));
            }
        });
        let service = BlobService::with_key(&url, "account", "AAAA").unwrap().retry(quick()).build().unwrap();
        Self { blob: service.container("box").unwrap().blob("a").unwrap(), heads }
    }

    fn heads(&self) -> Vec<Head> {
        self.heads.lock().unwrap().clone()
    }

    /// The value of a header of each request.
    fn header(&self, name: &str) -> Vec<String> {
        let value = |head: &Head| {
            let line = head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
            line.unwrap_or("none").trim().to_owned()
        };
        self.heads().iter().map(value).collect()
    }
}

async fn serve(connection: TcpStream, script: Arc<Script>, seen: Arc<Mutex<Vec<Head>>>) {
    let mut reader = BufReader::new(connection);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let start = head.len();
        if reader.read_line(&mut head).await.unwrap() <= 2 {
            break;
        }
        if let Some(value) = head[start..].to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    reader.read_exact(&mut vec![0; length]).await.unwrap();
    let head = head.to_ascii_lowercase();
    let number = {
        let mut seen = seen.lock().unwrap();
        seen.push(head.as_str().into());
        seen.len() - 1
    };
    let _ = reader.into_inner().write_all(script(number, &head).as_bytes()).await;
}

const CONTENT: &str = "0123456789";

/// The answer to a download from this byte on, of which only so much comes.
fn part(from: usize, shown: usize) -> String {
    let range = match from {
        0 => "200 OK\r\n".to_owned(),
        _ => format!("206 Partial Content\r\nContent-Range: bytes {from}-9/10\r\n"),
    };
    format!(
        "HTTP/1.1 {range}Content-Length: {}\r\nETag: \"0x1\"\r\nLast-Modified: Mon, 01 Aug 2022 23:12:39 GMT\r\n\
         x-ms-blob-type: BlockBlob\r\nConnection: close\r\n\r\n{}",
        10 - from,
        &CONTENT[from..from + shown]
    )
}

fn empty(status: u16, headers: &str) -> String {
    format!(
        "HTTP/1.1 {status} x\r\nContent-Length: 0\r\nConnection: close\r\nETag: \"0x1\"\r\n\
         Last-Modified: Mon, 01 Aug 2022 23:12:39 GMT\r\n{headers}\r\n"
    )
}

#[tokio::test]
async fn a_broken_download_goes_on_at_the_next_byte_of_the_same_version() {
    let server = Server::new(|number, _| match number {
        0 => part(0, 4),
        1 => part(4, 0),
        2 => part(4, 5),
        _ => part(9, 1),
    })
    .await;
    let content = server.blob.read(10).await.unwrap();
    assert_eq!(content, CONTENT);
    assert_eq!(server.header("x-ms-range"), ["none", "bytes=4-9", "bytes=4-9", "bytes=9-9"]);
    assert_eq!(server.header("if-match"), ["none", "\"0x1\"", "\"0x1\"", "\"0x1\""]);
}

#[tokio::test]
async fn a_blob_that_changed_during_its_download_is_refused() {
    let changed = "x-ms-error-code: ConditionNotMet\r\n";
    let server =
        Server::new(move |number, _| if number == 0 { part(0, 4) } else { empty(412, changed) }).await;
    let error = server.blob.read(10).await.unwrap_err();
    assert!(error.is_changed(), "{error}");
    assert_eq!(error.code(), Some("ConditionNotMet"));
}

#[tokio::test]
async fn a_download_that_never_comes_further_ends() {
    let server = Server::new(|number, _| if number == 0 { part(0, 4) } else { part(4, 0) }).await;
    let mut download = server.blob.download().await.unwrap();
    assert_eq!(download.next().await.unwrap().unwrap(), "0123");
    assert!(matches!(download.next().await, Err(Error::Unanswered(_))));
    assert_eq!(download.remaining(), 6, "it can still go on");
}

#[tokio::test]
async fn a_wrong_part_is_not_taken_for_the_rest() {
    let server = Server::new(|number, _| if number == 0 { part(0, 4) } else { part(3, 7) }).await;
    assert!(matches!(server.blob.read(10).await, Err(Error::Unreadable(_))));
}

/// The answer to Get Page Ranges: one range of a page, and where the next answer begins.
fn page_list(start: u64, next: &str) -> String {
    let body = format!(
        "<PageList><PageRange><Start>{start}</Start><End>{}</End></PageRange><NextMarker>{next}</NextMarker></PageList>",
        start + 511
    );
    format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nETag: \"0x1\"\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[tokio::test]
async fn page_ranges_are_read_to_their_end_and_of_one_version() {
    let server = Server::new(|number, _| match number {
        0 => page_list(0, "second"),
        1 => page_list(1024, "third"),
        _ => page_list(2048, ""),
    })
    .await;
    assert_eq!(server.blob.page_ranges().await.unwrap(), [0..512, 1024..1536, 2048..2560]);
    let heads = server.heads();
    let markers: Vec<bool> = ["marker=", "marker=second", "marker=third"]
        .iter()
        .zip(&heads)
        .map(|(marker, head)| head.contains(marker))
        .collect();
    assert_eq!(markers, [false, true, true], "{heads:?}");
    assert_eq!(server.header("if-match"), ["none", "\"0x1\"", "\"0x1\""]);
    let changed = "x-ms-error-code: ConditionNotMet\r\n";
    let server =
        Server::new(move |number, _| if number == 0 { page_list(0, "second") } else { empty(412, changed) });
    let error = server.await.blob.page_ranges().await.unwrap_err();
    assert!(error.is_changed(), "{error}");
}

#[tokio::test]
async fn a_block_is_sent_again_by_itself() {
    // The first two blocks are lost.
    let lost = Mutex::new(0);
    let server = Server::new(move |_, head| {
        let mut lost = lost.lock().unwrap();
        if head.contains("comp=block&") && *lost < 2 {
            *lost += 1;
            return String::new();
        }
        empty(201, "")
    })
    .await;
    let options = UploadOptions::new().block_bytes(3).parallel(2);
    server.blob.upload_with(CONTENT, &options).await.unwrap();
    let heads = server.heads();
    let of = |part: &str| heads.iter().filter(|head| head.contains(part)).count();
    assert_eq!((of("comp=block&"), of("comp=blocklist"), heads.len()), (4 + 2, 1, 7));
    assert!(heads.iter().all(|head| head.contains("comp=blocklist") || head.contains("x-ms-content-crc64")));
}

#[tokio::test]
async fn an_append_is_not_sent_again_if_it_may_have_been_done() {
    let server = Server::new(|_, _| String::new()).await;
    assert!(matches!(server.blob.append("x").await, Err(Error::OutcomeUnknown(_))));
    assert_eq!(server.heads().len(), 1);
    let busy = Server::new(|number, _| match number {
        0 => empty(503, ""),
        _ => empty(201, "x-ms-blob-append-offset: 7\r\n"),
    });
    let busy = busy.await;
    assert_eq!(busy.blob.append("x").await.unwrap(), 7, "a busy server has not done it");
}

#[tokio::test]
async fn an_append_at_a_position_tells_that_its_first_attempt_may_have_been_done() {
    let refused = "x-ms-error-code: AppendPositionConditionNotMet\r\n";
    let lost =
        Server::new(move |number, _| if number == 0 { String::new() } else { empty(412, refused) }).await;
    assert!(matches!(lost.blob.append_at(0, "x").await, Err(Error::OutcomeUnknown(_))));
    let server = Server::new(move |_, _| empty(412, refused)).await;
    assert_eq!(
        server.blob.append_at(0, "x").await.unwrap_err().code(),
        Some("AppendPositionConditionNotMet")
    );
}

#[tokio::test]
async fn a_conditional_upload_whose_answer_was_lost_is_not_called_refused() {
    let exists = "x-ms-error-code: BlobAlreadyExists\r\n";
    let server =
        Server::new(move |number, _| if number == 0 { String::new() } else { empty(409, exists) }).await;
    assert!(matches!(server.blob.if_absent().upload("x").await, Err(Error::OutcomeUnknown(_))));
}

#[tokio::test]
async fn a_lease_is_renewed_and_its_loss_is_told() {
    let other = "x-ms-error-code: LeaseIdMismatchWithLeaseOperation\r\n";
    let server = Server::new(move |number, _| match number {
        0 => empty(201, ""),
        1 => empty(200, ""),
        _ => empty(409, other),
    })
    .await;
    let lease = server.blob.lease(LeaseTime::For(Duration::from_secs(15))).await.unwrap();
    let id = lease.id().to_owned();
    assert!(!lease.is_lost());
    let why = lease.lost().await;
    assert_eq!(why.code(), Some("LeaseIdMismatchWithLeaseOperation"));
    assert!(lease.is_lost());
    assert_eq!(server.header("x-ms-lease-action"), ["acquire", "renew", "renew"]);
    assert_eq!(server.header("x-ms-proposed-lease-id"), [id.as_str(), "none", "none"]);
    assert_eq!(server.header("x-ms-lease-id"), ["none", id.as_str(), id.as_str()]);
}

#[tokio::test]
async fn a_download_that_comes_further_each_time_never_gives_up() {
    let server = Server::new(|number, _| part(number, 1)).await;
    assert_eq!(server.blob.read(10).await.unwrap(), CONTENT);
    assert_eq!(server.heads().len(), 10);
}

#[tokio::test]
async fn the_condition_of_an_upload_counts_when_its_blocks_are_committed() {
    let server = Server::new(|_, _| empty(201, "")).await;
    let options = UploadOptions::new().block_bytes(5).tier("Cool");
    server.blob.if_absent().upload_with(CONTENT, &options).await.unwrap();
    for head in server.heads() {
        let is_commit = head.contains("comp=blocklist");
        assert_eq!(head.contains("if-none-match: *"), is_commit, "{head}");
        assert_eq!(head.contains("x-ms-access-tier: cool"), is_commit, "{head}");
    }
}

#[tokio::test]
async fn two_uploads_share_no_blocks() {
    let server = Server::new(|_, _| empty(201, "")).await;
    let options = UploadOptions::new().block_bytes(5);
    for _ in 0..2 {
        server.blob.upload_with(CONTENT, &options).await.unwrap();
    }
    let heads = server.heads();
    let blocks: std::collections::BTreeSet<_> = heads
        .iter()
        .filter(|head| head.contains("comp=block&"))
        .filter_map(|head| head.lines().next())
        .collect();
    assert_eq!(blocks.len(), 4);
}

#[tokio::test]
async fn a_release_whose_answer_was_lost_is_done() {
    let gone = "x-ms-error-code: LeaseIdMismatchWithLeaseOperation\r\n";
    let server = Server::new(move |number, _| match number {
        0 => empty(201, ""),
        1 => String::new(),
        _ => empty(409, gone),
    })
    .await;
    server.blob.lease(LeaseTime::Forever).await.unwrap().release().await.unwrap();
    assert_eq!(server.header("x-ms-lease-action"), ["acquire", "release", "release"]);
}
