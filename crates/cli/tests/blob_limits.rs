//! Hostile input to the Blob service: long block lists, ids, ranges, bodies in chunks, abandoned uploads, and names of every
//! kind. Each is answered, and the server goes on.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

use std::io::{BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use front::ServiceKind;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::blobs::server;
use crate::support::http::read_answer;
use crate::support::{Client, KEY, Partita};

const VERSION: (&str, &str) = ("x-ms-version", "2021-08-06");
const BLOCK: (&str, &str) = ("x-ms-blob-type", "BlockBlob");
const CHUNKED: (&str, &str) = ("Transfer-Encoding", "chunked");

pub fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

fn shown(client: &mut Client, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> String {
    let answer = client.send(method, path, &[&[VERSION], headers].concat(), body);
    if answer.status < 300 { answer.status.to_string() } else { answer.code() }
}

#[test]
fn a_block_list_has_at_most_50_000_blocks() {
    let (_server, mut client) = server(&[]);
    let id = STANDARD.encode([7; 64]);
    let path = format!("/box/long?comp=block&blockid={}", encoded(&id));
    assert_eq!(shown(&mut client, "PUT", &path, &[], b"ab"), "201");
    let list = |count: usize| {
        let blocks = format!("<Latest>{id}</Latest>").repeat(count);
        format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>{blocks}</BlockList>").into_bytes()
    };
    let path = "/box/long?comp=blocklist";
    assert_eq!(shown(&mut client, "PUT", path, &[], &list(50_001)), "BlockListTooLong");
    assert_eq!(shown(&mut client, "PUT", path, &[], &list(50_000)), "201");
    let length = client.send("HEAD", "/box/long", &[VERSION], b"");
    assert_eq!(length.header("content-length"), Some("100000"));
    let blocks = client.send("GET", path, &[VERSION], b"").text();
    assert_eq!(blocks.matches("<Block>").count(), 50_000);
    // The last bytes of the last block.
    let last = client.send("GET", "/box/long", &[VERSION, ("x-ms-range", "bytes=99997-")], b"");
    assert_eq!((last.status, last.text().as_str()), (206, "bab"));
}

#[test]
fn blocks_have_ids_of_one_length() {
    let (_server, mut client) = server(&[]);
    let mut put = |id: &str| {
        let path = format!("/box/ids?comp=block&blockid={}", encoded(id));
        shown(&mut client, "PUT", &path, &[], b"x")
    };
    assert_eq!(put("YWE="), "201");
    assert_eq!(put("YQ=="), "InvalidBlobOrBlock");
    assert_eq!(put("YWI="), "201");
    assert_eq!(put("no base64"), "InvalidQueryParameterValue");
    assert_eq!(put(&STANDARD.encode([7; 65])), "OutOfRangeInput");
    assert_eq!(put(""), "MissingRequiredQueryParameter");
    for list in
        ["<BlockList><Latest>YWM=</Latest></BlockList>", "<BlockList><Committed>YWE=</Committed></BlockList>"]
    {
        let code = shown(&mut client, "PUT", "/box/ids?comp=blocklist", &[], list.as_bytes());
        assert_eq!(code, "InvalidBlockList", "{list}");
    }
    let no_base64 = b"<BlockList><Latest>x</Latest></BlockList>";
    assert_eq!(shown(&mut client, "PUT", "/box/ids?comp=blocklist", &[], no_base64), "InvalidBlockId");
    for list in ["", "<BlockList>", "<Blocks/>", "<BlockList><Latest><a/></Latest></BlockList>", "\u{0}"] {
        let code = shown(&mut client, "PUT", "/box/ids?comp=blocklist", &[], list.as_bytes());
        assert_eq!(code, "InvalidXmlDocument", "{list}");
    }
}

#[test]
fn page_ranges_end_with_a_marker_if_there_are_more_than_10_000() {
    const COUNT: u64 = 10_001;
    // Far apart: a write costs more the more ranges lie near it.
    const DISTANCE: u64 = 64 * 1024 * 1024;
    let (_server, mut client) = server(&[]);
    let length = (COUNT * DISTANCE).to_string();
    let new = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", length.as_str())];
    assert_eq!(shown(&mut client, "PUT", "/box/disk", &new, b""), "201");
    for start in (0..COUNT).map(|n| n * DISTANCE) {
        let range = format!("bytes={start}-{}", start + 511);
        let headers = [("x-ms-page-write", "update"), ("x-ms-range", range.as_str())];
        assert_eq!(shown(&mut client, "PUT", "/box/disk?comp=page", &headers, &[7; 512]), "201", "{range}");
    }
    let mut ranges = |options: &str| {
        let answer = client.send("GET", &format!("/box/disk?comp=pagelist{options}"), &[VERSION], b"");
        assert_eq!(answer.status, 200, "{}", answer.text());
        let text = answer.text();
        let next = text.split_once("<NextMarker>").and_then(|(_, rest)| rest.split_once('<'));
        let next = next.map(|(marker, _)| marker.to_owned());
        assert_eq!(next.is_some(), text.contains("NextMarker"));
        (text.matches("<PageRange>").count(), next)
    };
    let (count, next) = ranges("");
    let next = next.filter(|next| !next.is_empty()).expect("there is one more");
    assert_eq!(count, 10_000);
    assert_eq!(ranges(&format!("&marker={}", encoded(&next))), (1, None));
}

#[test]
fn ranges_are_cut_passed_over_or_refused() {
    let (_server, mut client) = server(&[]);
    for (range, status, text) in [
        ("bytes=0-", 206, "content"),
        ("bytes=2-3", 206, "nt"),
        ("bytes=6-18446744073709551615", 206, "t"),
        ("bytes=-1-", 200, "content"),
        ("bytes=-3", 200, "content"),
        ("bytes=3-2", 200, "content"),
        ("bytes=0-1,3-4", 200, "content"),
        ("bytes=99999999999999999999-", 200, "content"),
    ] {
        for name in ["x-ms-range", "Range"] {
            let answer = client.send("GET", "/box/b", &[VERSION, (name, range)], b"");
            assert_eq!((answer.status, answer.text().as_str()), (status, text), "{name}: {range}");
        }
    }
    let past = client.send("GET", "/box/b", &[VERSION, ("Range", "bytes=7-")], b"");
    assert_eq!((past.status, past.code().as_str()), (416, "InvalidRange"));
    assert_eq!(past.header("content-range"), Some("bytes */7"));
    let md5 = ("x-ms-range-get-content-md5", "true");
    assert_eq!(shown(&mut client, "GET", "/box/b", &[md5], b""), "InvalidHeaderValue");
    let whole = ("x-ms-range", "bytes=0-4194304");
    assert_eq!(shown(&mut client, "GET", "/box/b", &[md5, whole], b""), "OutOfRangeInput");
    let part = client.send("GET", "/box/b", &[VERSION, md5, ("x-ms-range", "bytes=0-2")], b"");
    assert_eq!(part.header("content-md5"), Some("ftIB+iDSXSKykdyFrp5c7Q=="), "{:?}", part.headers);
}

#[test]
fn bodies_in_chunks_are_bodies() {
    let (server, mut client) = server(&[]);
    let chunks = b"5\r\nhello\r\n1;note=x\r\n \r\n5\r\nworld\r\n0\r\n\r\n";
    assert_eq!(shown(&mut client, "PUT", "/box/chunks", &[BLOCK, CHUNKED], chunks), "201");
    assert_eq!(client.send("GET", "/box/chunks", &[VERSION], b"").text(), "hello world");
    assert_eq!(shown(&mut client, "PUT", "/box/none", &[BLOCK, CHUNKED], b"0\r\n\r\n"), "201");
    // A block of nothing is none, however it is said.
    let block = "/box/x?comp=block&blockid=YQ%3D%3D";
    assert_eq!(shown(&mut client, "PUT", block, &[CHUNKED], b"0\r\n\r\n"), "InvalidHeaderValue");
    assert_eq!(shown(&mut client, "PUT", block, &[], b""), "InvalidHeaderValue");
    let wrong = ("Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg==");
    assert_eq!(shown(&mut client, "PUT", "/box/wrong", &[BLOCK, CHUNKED, wrong], chunks), "Md5Mismatch");
    let wrong = ("x-ms-content-crc64", "AAAAAAAAAAA=");
    assert_eq!(shown(&mut client, "PUT", "/box/wrong", &[BLOCK, CHUNKED, wrong], chunks), "Crc64Mismatch");
    assert_eq!(shown(&mut client, "HEAD", "/box/wrong", &[], b""), "");
    // What is no chunk is no blob.
    let _ = client.try_send("PUT", "/box/broken", &[VERSION, BLOCK, CHUNKED], b"zz\r\nhello\r\n0\r\n\r\n");
    let mut client = server.blob_client();
    assert_eq!(client.send("HEAD", "/box/broken", &[VERSION], b"").status, 404);
}

#[test]
fn ten_thousand_abandoned_uploads_cost_a_list_nothing() {
    let (_server, mut client) = server(&[]);
    for n in 0..10_000 {
        let path = format!("/box/upload-{n:05}?comp=block&blockid=YQ%3D%3D");
        assert_eq!(client.send("PUT", &path, &[VERSION], b"x").status, 201);
    }
    let list = client.send("GET", "/box?restype=container&comp=list", &[VERSION], b"").text();
    assert_eq!(list.matches("<Blob>").count(), 1, "{list:.2000}");
    let path = "/box?restype=container&comp=list&include=uncommittedblobs";
    let first = client.send("GET", path, &[VERSION], b"").text();
    assert_eq!(first.matches("<Blob>").count(), 5000);
    assert_eq!(client.send("DELETE", "/box?restype=container", &[VERSION], b"").status, 202);
}

#[test]
fn names_have_any_characters() {
    let (_server, mut client) = server(&[]);
    let mut names: Vec<String> = (1..=0x7f_u8).map(|byte| format!("n{}x", char::from(byte))).collect();
    names.extend(
        [
            "ä", "\u{ffff}", "\u{fffe}", "😀", "a//b", "/a", "a/", "a/./b", "a/../b", "..", ".", "%2F",
            "a%20b", "+", "$root",
        ]
        .map(str::to_owned),
    );
    names.push("é".repeat(1024));
    names.push("a/".repeat(253));
    for name in &names {
        let path = format!("/box/{}", encoded(name));
        assert_eq!(shown(&mut client, "PUT", &path, &[BLOCK], name.as_bytes()), "201", "{name:?}");
        let read = client.send("GET", &path, &[VERSION], b"").body;
        // `n\x` and `n/x` are the same name.
        assert!(read == name.as_bytes() || name == "n/x" || name == "n\\x", "{name:?}");
    }
    let mut listed = 0;
    let mut marker = String::new();
    loop {
        let path = format!("/box?restype=container&comp=list&maxresults=50&marker={}", encoded(&marker));
        let page = client.send("GET", &path, &[VERSION], b"");
        assert_eq!(page.status, 200, "{}", page.text());
        let page = page.text();
        listed += page.matches("<Blob>").count();
        match page.split_once("<NextMarker>") {
            Some((_, rest)) => marker = rest.split('<').next().unwrap().to_owned(),
            None => break,
        }
    }
    // With the blob of every test; two names are one.
    assert_eq!(listed, names.len());
    for (name, code) in [("é".repeat(1025), "OutOfRangeInput"), ("a/".repeat(254), "OutOfRangeInput")] {
        let path = format!("/box/{}", encoded(&name));
        assert_eq!(shown(&mut client, "PUT", &path, &[BLOCK], b""), code);
    }
    assert_eq!(shown(&mut client, "PUT", "/box/%ff", &[BLOCK], b""), "InvalidUri");
}

#[test]
fn an_upload_and_a_download_take_little_memory() {
    const MIB: usize = 1024 * 1024;
    let directory = tempfile::tempdir().unwrap();
    let server = Partita::in_directory(directory.path());
    let mut client = server.blob_client();
    assert_eq!(client.send("PUT", "/box?restype=container", &[VERSION], b"").status, 201);
    assert_eq!(shown(&mut client, "PUT", "/box/warm", &[BLOCK], &vec![1; 16 * MIB]), "201");
    let before = server.peak_memory_kib();
    let content: Vec<u8> = (0..256 * MIB).map(|n| (n / 997) as u8).collect();
    assert_eq!(shown(&mut client, "PUT", "/box/large", &[BLOCK], &content), "201");
    assert!(client.send("GET", "/box/large", &[VERSION], b"").body == content);
    let growth = (server.peak_memory_kib() - before) / 1024;
    assert!(growth <= 96, "{growth} MiB for a blob of 256 MiB");
}

/// Uploads that come slowly hold a chunk each. One account must not be able to hold all memory so that others get none.
#[test]
fn slow_uploads_of_one_account_leave_memory_for_others() {
    const MIB: usize = 1024 * 1024;
    let account = |name: &str| format!("{name}:{KEY}");
    let (slow, other) = (account("slow"), account("other"));
    let server =
        Partita::start(&["--in-memory", "--request-mib", "32", "--account", &slow, "--account", &other]);
    let client = |name: &str| Client::of_service(ServiceKind::Blob, server.blob_address(), name, KEY);
    let (mut slow, mut other) = (client("slow"), client("other"));
    for client in [&mut slow, &mut other] {
        assert_eq!(shown(client, "PUT", "/box?restype=container", &[], b""), "201");
    }
    let begin = |n: usize| {
        let mut stream = TcpStream::connect(server.blob_address()).unwrap();
        let head =
            slow.signed("PUT", &format!("/box/{n}"), &[VERSION, BLOCK, ("Content-Length", "4194304")], b"");
        stream.write_all(&head).unwrap();
        // Who is refused may hear it before everything is sent.
        let _ = stream.write_all(&vec![1; MIB - 1]);
        stream
    };
    let uploads: Vec<TcpStream> = (0..48).map(begin).collect();
    let held = || server.metrics()["partita_request_memory_bytes"];
    let refused = |stream: &TcpStream| {
        stream.set_nonblocking(true).unwrap();
        stream.peek(&mut [0; 1]).is_ok()
    };
    testing::wait_until("no more uploads get memory", || uploads.iter().any(refused).then_some(()));
    assert!(held() > 16.0 * MIB as f64, "{}", held());
    for n in 0..10 {
        let content = vec![7; 4 * MIB];
        assert_eq!(shown(&mut other, "PUT", &format!("/box/{n}"), &[BLOCK], &content), "201", "{n}");
        assert!(other.send("GET", &format!("/box/{n}"), &[VERSION], b"").body == content);
    }
    // The slow account is still served, too, where a request needs little.
    assert_eq!(shown(&mut slow, "PUT", "/box/small", &[BLOCK], b"small"), "201");
}

#[test]
fn an_upload_past_its_own_deadline_ends_its_connection() {
    let (server, mut client) = server(&[]);
    let mut request = client.signed("PUT", "/box/late?timeout=1", &[VERSION, BLOCK], &[7; 1000]);
    request.truncate(request.len() - 100);
    let mut stream = TcpStream::connect(server.blob_address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(&request).unwrap();
    let answer = read_answer(&mut BufReader::new(stream), false).unwrap();
    assert_eq!((answer.status, answer.code().as_str()), (500, "OperationTimedOut"), "{}", answer.text());
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(client.send("HEAD", "/box/late", &[VERSION], b"").status, 404);
}
