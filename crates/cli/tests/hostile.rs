//! Malicious and broken clients. Whatever they send, the server does not panic, keeps answering others, keeps its data, and
//! stays within its memory limit.
//!
//! Count and time are bounded. Random choices come from `HOSTILE_SEED`, which is printed.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

use std::io::{BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use crate::support::http::read_answer;
use crate::support::{ACCOUNT, Client, Partita};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// How much the memory of a server may grow during a test, in KiB. One request can need a page of 4 MiB and a body of 4 MiB,
/// several times during their conversion.
const GROWTH_KIB_MAX: u64 = 192 * 1024;
/// Far longer than an answer takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const GUARDED: &str = r#"{"value":[{"PartitionKey":"p","RowKey":"r","V":"untouched"}]}"#;
const JSON: [(&str, &str); 1] = [("Accept", "application/json;odata=nometadata")];

/// A server under attack, with a table that must not change.
struct Target {
    server: Partita,
    log: std::path::PathBuf,
    memory_before: u64,
    _directory: tempfile::TempDir,
}

impl Target {
    fn start(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let server = Partita::logging_to(&log, "info", arguments);
        let mut target = Self { server, log, memory_before: 0, _directory: directory };
        for table in ["Guarded", "Open"] {
            let body = format!("{{\"TableName\":\"{table}\"}}");
            let headers = [("Content-Type", "application/json"), JSON[0]];
            assert_eq!(target.client().send("POST", "/Tables", &headers, body.as_bytes()).status, 201);
        }
        let entity = br#"{"PartitionKey":"p","RowKey":"r","V":"untouched"}"#;
        let headers = [("Content-Type", "application/json"), JSON[0]];
        assert_eq!(target.client().send("POST", "/Guarded", &headers, entity).status, 201);
        target.memory_before = target.memory();
        target
    }

    fn client(&self) -> Client {
        self.server.client()
    }

    /// Resident memory, in KiB.
    fn memory(&self) -> u64 {
        self.server.memory_kib()
    }

    fn signed(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
        self.client().signed(method, path, headers, body)
    }

    /// Sends bytes, closes the sending side, and returns all received bytes.
    fn throw(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.server.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        // A server that has refused may stop reading; its answer can still be read.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    }

    /// The status of the first answer; 0 if the connection was closed without one.
    fn status(&self, bytes: &[u8]) -> u16 {
        status(&self.throw(bytes))
    }

    /// Checks the promises of this file.
    fn is_well(&self) {
        let mut client = self.client();
        assert_eq!(client.send_raw("GET", "/health/ready", &[], b"").unwrap().status, 200);
        let guarded = client.send("GET", "/Guarded()?$select=PartitionKey,RowKey,V", &JSON, b"");
        assert_eq!(guarded.text(), GUARDED);
        let log = std::fs::read_to_string(&self.log).unwrap();
        assert!(!log.contains("panicked"), "{log}");
        let grown = self.memory().saturating_sub(self.memory_before);
        assert!(grown <= GROWTH_KIB_MAX, "grew by {grown} KiB");
    }

    /// The rows of the table that may be written to.
    fn open_rows(&self, client: &mut Client) -> String {
        client.send("GET", "/Open()", &JSON, b"").text()
    }
}

fn status(answer: &[u8]) -> u16 {
    let line = String::from_utf8_lossy(&answer[..answer.len().min(12)]).into_owned();
    line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

fn seed() -> StdRng {
    let seed = std::env::var("HOSTILE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0x5eed);
    println!("HOSTILE_SEED={seed}");
    StdRng::seed_from_u64(seed)
}

/// A batch of two inserts into the open table.
fn batch() -> Vec<u8> {
    let part = |row: &str| {
        format!(
            "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nPOST /Open HTTP/1.1\r\nContent-Type: application/json\r\nPrefer: return-no-content\r\n\r\n{{\"PartitionKey\":\"p\",\"RowKey\":\"{row}\"}}\r\n"
        )
    };
    let (one, two) = (part("1"), part("2"));
    format!("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n{one}{two}--c--\r\n--b--\r\n")
        .into_bytes()
}

const BATCH: [(&str, &str); 2] =
    [("Content-Type", "multipart/mixed; boundary=b"), ("Accept", "application/json;odata=nometadata")];

/// A proxy and this server must not see different hosts in one request.
#[test]
fn a_request_names_one_host() {
    let server = Partita::in_memory();
    let mut client = server.client();
    let host = server.address.to_string();
    let absolute = format!("http://{host}/{ACCOUNT}/Tables");
    let target = format!("/{ACCOUNT}/Tables");
    let cases: [(&str, &[&str], u16); 8] = [
        (&target, &[&host, &host], 400),
        (&target, &["other.table.x", &host], 400),
        (&target, &["h\u{e9}"], 400),
        (&absolute, &["other.table.x"], 400),
        (&absolute, &[&host, "other.table.x"], 400),
        (&absolute, &[&host], 403),
        (&absolute, &["!"], 403),
        (&target, &[&host], 403),
    ];
    for (target, hosts, expected) in cases {
        let headers: Vec<(&str, &str)> = match hosts {
            ["!"] => vec![("!Host", "")],
            hosts => hosts.iter().map(|host| ("Host", *host)).collect(),
        };
        let answer = client.send_raw("GET", target, &headers, b"").unwrap();
        assert_eq!(answer.status, expected, "{target} {hosts:?}: {}", answer.text());
    }
}

#[test]
fn malformed_http_is_refused_or_dropped() {
    let target = Target::start(&[]);
    for bytes in [
        &b""[..],
        b"\r\n\r\n\r\n",
        b"\0\0\0\0",
        b"GET\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET  /  HTTP/1.1\r\n\r\n",
        b"G\xffT / HTTP/1.1\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost x\r\n\r\n",
        b"GET / HTTP/1.1\r\n: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nA B: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /devstoreaccount1/Tables HTTP/1.1\r\nHost: \r\n\r\n",
        b"GET /devstoreaccount1/Tables HTTP/1.0\r\n\r\n",
        b"GET http://[::1 HTTP/1.1\r\nHost: x\r\n\r\n",
    ] {
        let status = target.status(bytes);
        assert!(
            status == 0 || (400..=501).contains(&status),
            "{status} for {:?}",
            String::from_utf8_lossy(bytes)
        );
    }
    target.is_well();
}

#[test]
fn random_bytes_change_nothing() {
    let target = Target::start(&[]);
    let mut random = seed();
    for _ in 0..300 {
        let mut bytes = vec![0; random.random_range(1..4096)];
        random.fill(bytes.as_mut_slice());
        if random.random_bool(0.5) {
            bytes.splice(..0, *b"POST /devstoreaccount1/Open HTTP/1.1\r\n");
        }
        let status = target.status(&bytes);
        assert!(status == 0 || status >= 400, "{status}");
    }
    assert_eq!(target.open_rows(&mut target.client()), r#"{"value":[]}"#);
    target.is_well();
}

#[test]
fn the_size_of_a_request_head_is_limited() {
    let target = Target::start(&[]);
    // Nearly 64 KiB of URL, and as much of headers, are served.
    let long = "x".repeat(65_000);
    assert_eq!(target.status(&target.signed("GET", &format!("/Open()?x={long}"), &JSON, b"")), 200);
    assert_eq!(target.status(&target.signed("GET", "/Open()", &[("X-Long", &long), JSON[0]], b"")), 200);
    // More than 128 KiB are not.
    let huge = "x".repeat(256 * 1024);
    let many = "X-Many: 1\r\n".repeat(20_000);
    for request in [
        target.signed("GET", &format!("/Open()?x={huge}"), &JSON, b""),
        target.signed("GET", &format!("/{huge}"), &JSON, b""),
        target.signed("GET", "/Open()", &[("X-Long", &huge)], b""),
        format!("GET / HTTP/1.1\r\nHost: x\r\n{many}\r\n").into_bytes(),
        format!("GET / HTTP/1.1\r\nHost: x\r\n{}", "X-Few: 1\r\n".repeat(500) + "\r\n").into_bytes(),
        format!("{huge} / HTTP/1.1\r\n\r\n").into_bytes(),
    ] {
        let status = target.status(&request);
        assert!(matches!(status, 0 | 400 | 404 | 414 | 431), "{status}");
    }
    target.is_well();
}

#[test]
fn an_endless_header_ends_the_connection() {
    let target = Target::start(&[]);
    let mut stream = TcpStream::connect(target.server.address).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nX: ").unwrap();
    let piece = [b'x'; 64 * 1024];
    let mut sent = 0;
    // The kernel may take some megabytes more than the server reads.
    while sent < 256 * 1024 * 1024 && stream.write_all(&piece).is_ok() {
        sent += piece.len();
    }
    assert!(sent < 64 * 1024 * 1024, "took {sent} bytes of one header");
    target.is_well();
}

#[test]
fn slow_senders_do_not_block_others_and_are_closed() {
    let target = Target::start(&["--idle-seconds", "1"]);
    // Half a head, a whole head with half a body, and nothing at all.
    let half_head = b"GET /devstoreaccount1/Tables HTTP/1.1\r\nHost: x\r\nX: ".to_vec();
    let mut half_body = target.signed("POST", "/$batch", &BATCH, &batch());
    half_body.truncate(half_body.len() - 100);
    let mut streams = Vec::new();
    for first in [half_head, half_body, Vec::new()].iter().cycle().take(60) {
        let mut stream = TcpStream::connect(target.server.address).unwrap();
        stream.write_all(first).unwrap();
        streams.push(stream);
    }
    target.is_well();
    // A head that is sent byte by byte is closed, too: the time counts from its first byte.
    let mut dripping = TcpStream::connect(target.server.address).unwrap();
    testing::wait_until("a head that drips is closed", || dripping.write_all(b"G").err());
    drop(streams);
    assert_eq!(target.open_rows(&mut target.client()), r#"{"value":[]}"#);
    target.is_well();
}

#[test]
fn a_request_past_its_own_deadline_gets_a_timeout() {
    let target = Target::start(&[]);
    let mut request = target.signed("POST", "/$batch?timeout=1", &BATCH, &batch());
    request.truncate(request.len() - 100);
    let started = Instant::now();
    let mut stream = TcpStream::connect(target.server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&request).unwrap();
    let answer = read_answer(&mut BufReader::new(stream), false).unwrap();
    assert!(started.elapsed() >= Duration::from_secs(1));
    assert_eq!((answer.status, answer.code().as_str()), (500, "OperationTimedOut"), "{}", answer.text());
    let said = "Operation could not be completed within the specified time.\\nRequestId:";
    assert!(
        answer.text().contains(said) || answer.text().contains(&said.replace("\\n", "\n")),
        "{}",
        answer.text()
    );
    target.is_well();
}

#[test]
fn truncated_bodies_store_nothing() {
    let target = Target::start(&[]);
    let mut client = target.client();
    let whole = target.signed("POST", "/$batch", &BATCH, &batch());
    let head = whole.len() - batch().len();
    // Truncated on the wire: shorter than the announced length.
    for end in (head..whole.len()).step_by(7) {
        let status = target.status(&whole[..end]);
        assert!(status == 0 || status >= 400, "{status} at {end}");
    }
    assert_eq!(target.open_rows(&mut client), r#"{"value":[]}"#);
    // Truncated before sending: the length is right, the batch is incomplete. Only the dashes of the last boundary and the
    // end of the batch may be missing.
    let body = batch();
    let closed = body.windows(5).rposition(|window| window == b"--c--").unwrap();
    for end in 0..=closed {
        let answer = target.throw(&target.signed("POST", "/$batch", &BATCH, &body[..end]));
        let text = String::from_utf8_lossy(&answer).into_owned();
        assert!(status(&answer) == 400 || text.contains("error"), "at {end}: {text}");
    }
    assert_eq!(target.open_rows(&mut client), r#"{"value":[]}"#);
    target.is_well();
}

#[test]
fn truncated_chunks_store_nothing() {
    let target = Target::start(&[]);
    let entity = br#"{"PartitionKey":"p","RowKey":"r"}"#;
    let headers = [
        ("Content-Type", "application/json"),
        ("Transfer-Encoding", "chunked"),
        ("Prefer", "return-no-content"),
    ];
    let head = target.signed("POST", "/Open", &headers, b"");
    let whole = [format!("{:x}\r\n", entity.len()).as_bytes(), entity, b"\r\n0\r\n\r\n"].concat();
    for end in 0..whole.len() - 4 {
        let status = target.status(&[&head, &whole[..end]].concat());
        assert!(status == 0 || status >= 400, "{status} at {end}");
    }
    let bad = [
        &b"zz\r\n{}\r\n0\r\n\r\n"[..],
        b"-1\r\n",
        b"ffffffffffffffffffff\r\n",
        b"5;x=y\r\n{}\r\n0\r\n\r\n",
        b"\r\n\r\n",
    ];
    for chunk in bad {
        let status = target.status(&[&head, chunk].concat());
        assert!(status == 0 || status >= 400, "{status}");
    }
    assert_eq!(target.open_rows(&mut target.client()), r#"{"value":[]}"#);
    assert_eq!(target.status(&[head, whole].concat()), 204, "and the whole is stored");
    target.is_well();
}

#[test]
fn deep_documents_are_refused() {
    let target = Target::start(&[]);
    let json = [("Content-Type", "application/json"), JSON[0]];
    let open = |text: &str| text.repeat(100_000);
    for body in [
        open("["),
        open("{\"a\":"),
        open("[{\"a\":"),
        format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"V\":{}", open("[")),
        format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"V\":{}{}}}", open("["), open("]")),
        format!("{{\"V\":{}}}", open("9")),
        format!("{{\"V\":\"{}", open("\\u0041")),
        open("\""),
    ] {
        let status = target.status(&target.signed("POST", "/Open", &json, body.as_bytes()));
        assert_eq!(status, 400, "{}", &body[..20]);
    }
    // An annotation is ignored whatever its value; half a million levels must not overflow the stack.
    let (open_all, close_all) = ("[".repeat(500_000), "]".repeat(500_000));
    let ignored = format!("{{\"odata.x\":{open_all}{close_all},\"RowKey\":\"r\"}}");
    let answer = target.throw(&target.signed("POST", "/Open", &json, ignored.as_bytes()));
    assert!(String::from_utf8_lossy(&answer).contains("PropertiesNeedValue"));
    let atom = [("Content-Type", "application/atom+xml"), ("x-ms-version", "2014-02-14")];
    let entry = "<entry xmlns=\"http://www.w3.org/2005/Atom\" xmlns:m=\"http://schemas.microsoft.com/ado/2007/08/dataservices/metadata\" xmlns:d=\"http://schemas.microsoft.com/ado/2007/08/dataservices\">";
    let laughs: String =
        (1..10).map(|n| format!("<!ENTITY l{n} \"{}\">", format!("&l{};", n - 1).repeat(10))).collect();
    let laughs = format!(
        "<?xml version=\"1.0\"?><!DOCTYPE x [<!ENTITY l0 \"ha\">{laughs}]>{entry}<content type=\"application/xml\"><m:properties><d:PartitionKey>p</d:PartitionKey><d:RowKey>&l9;</d:RowKey></m:properties></content></entry>"
    );
    let file = format!(
        "<?xml version=\"1.0\"?><!DOCTYPE x [<!ENTITY f SYSTEM \"file:///etc/passwd\">]>{entry}<content type=\"application/xml\"><m:properties><d:PartitionKey>p</d:PartitionKey><d:RowKey>r</d:RowKey><d:V>&f;</d:V></m:properties></content></entry>"
    );
    for body in [
        open("<a>"),
        format!("{entry}{}", open("<a>")),
        format!("{entry}<content><m:properties>{}", open("<d:V>")),
        format!("<a {}", open("b=\"c\" ")),
        format!("{entry}{}", open("<!-- ")),
        laughs,
        file,
    ] {
        let status = target.status(&target.signed("POST", "/Open", &atom, body.as_bytes()));
        assert_eq!(status, 400, "{}", &body[..40.min(body.len())]);
    }
    assert_eq!(target.open_rows(&mut target.client()), r#"{"value":[]}"#);
    target.is_well();
}

#[test]
fn deep_filters_are_refused() {
    let target = Target::start(&[]);
    for opening in ["(", "not+", "not(", "-", "f(", "A+eq+(", "A+and+("] {
        let in_url = opening.repeat(60_000 / opening.len());
        let request = target.signed("GET", &format!("/Open()?$filter={in_url}"), &JSON, b"");
        assert_eq!(target.status(&request), 400, "{opening}");
        // Inside a batch a URL may be as long as outside of it, and no longer.
        let batch = |inner: &str| {
            let body = format!(
                "--b\r\nContent-Type: application/http\r\n\r\nGET /Open()?$filter={inner} HTTP/1.1\r\n\r\n\r\n--b--\r\n"
            );
            target.throw(&target.signed("POST", "/$batch", &BATCH, body.as_bytes()))
        };
        assert_eq!(status(&batch(&opening.repeat(100_000))), 400);
        let answer = batch(&in_url);
        assert_eq!(status(&answer), 202);
        let text = String::from_utf8_lossy(&answer).into_owned();
        assert!(text.contains("HTTP/1.1 400 Bad Request"), "{opening}: {}", &text[..text.len().min(800)]);
    }
    target.is_well();
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    const REQUESTS: usize = 60;
    let target = Target::start(&[]);
    let mut bytes = Vec::new();
    for n in 0..REQUESTS {
        let id = n.to_string();
        let headers =
            [("x-ms-client-request-id", id.as_str()), ("Content-Type", "application/json"), JSON[0]];
        bytes.extend(match n % 3 {
            0 => target.signed(
                "POST",
                "/Open",
                &headers,
                format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"{n}\"}}").as_bytes(),
            ),
            1 => target.signed("GET", "/Open()?$select=RowKey", &headers, b""),
            _ => target.signed("GET", "/Nowhere()", &headers, b""),
        });
    }
    let mut stream = TcpStream::connect(target.server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&bytes).unwrap();
    let mut stream = BufReader::new(stream);
    for n in 0..REQUESTS {
        let answer = read_answer(&mut stream, false).unwrap();
        assert_eq!(answer.header("x-ms-client-request-id"), Some(n.to_string().as_str()));
        assert_eq!(answer.status, [201, 200, 404][n % 3]);
        if n % 3 == 1 {
            // Each query sees the inserts before it and none after it.
            assert_eq!(answer.json()["value"].as_array().unwrap().len(), n / 3 + 1);
        }
    }
    target.is_well();
}

#[test]
fn a_half_closed_socket_still_gets_its_answer() {
    let target = Target::start(&[]);
    let answer = target.throw(&target.signed("GET", "/Guarded()?$select=PartitionKey,RowKey,V", &JSON, b""));
    assert_eq!(status(&answer), 200);
    assert!(String::from_utf8_lossy(&answer).contains(GUARDED));
    // A connection that is closed before its answer does no harm.
    for _ in 0..50 {
        let mut stream = TcpStream::connect(target.server.address).unwrap();
        stream.write_all(&target.signed("GET", "/Guarded()", &JSON, b"")).unwrap();
        drop(stream);
    }
    target.is_well();
}

#[test]
fn text_that_is_not_utf_8_is_refused_everywhere() {
    let target = Target::start(&[]);
    let json = [("Content-Type", "application/json"), JSON[0]];
    let mut requests = Vec::new();
    for path in [
        "/%FF%FE",
        "/Tables(%27%FF%27)",
        "/Open(PartitionKey='%C3',RowKey='')",
        "/Open(PartitionKey='%ED%A0%80',RowKey='')",
        "/Open()?$filter=A+eq+'%FF'",
        "/Open()?$select=%C0%80",
        "/Open()?%FF=1",
        "/Open()?NextPartitionKey=1!4!/w--",
    ] {
        requests.push(target.signed("GET", path, &JSON, b""));
    }
    for body in [
        &b"{\"PartitionKey\":\"\xff\",\"RowKey\":\"r\"}"[..],
        b"{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"\xc3\":1}",
        b"\xff\xfe{\0}\0",
        b"{\"PartitionKey\":\"p\",\"RowKey\":\"\\ud800\"}",
        b"\x80",
    ] {
        requests.push(target.signed("POST", "/Open", &json, body));
    }
    let mut inner = batch();
    let at = inner.windows(5).position(|window| window == b"/Open").unwrap();
    inner[at + 2] = 0xff;
    requests.push(target.signed("POST", "/$batch", &BATCH, &inner));
    let mut in_header = target.signed("GET", "/Open()", &[("x-ms-version", "V"), JSON[0]], b"");
    let at = in_header.windows(2).position(|window| window == b" V").unwrap();
    in_header[at + 1] = 0xff;
    requests.push(in_header);
    for request in requests {
        let status = target.status(&request);
        assert!((400..500).contains(&status), "{status} for {}", String::from_utf8_lossy(&request));
    }
    // A client's own id may hold any bytes a header may.
    let id = target.signed("GET", "/Open()", &[("x-ms-client-request-id", "\u{e9}"), JSON[0]], b"");
    assert_eq!(target.status(&id), 200);
    assert_eq!(target.open_rows(&mut target.client()), r#"{"value":[]}"#);
    target.is_well();
}

#[test]
fn refused_bodies_do_not_accumulate_in_memory() {
    let target = Target::start(&[]);
    let large = vec![b' '; 5 * 1024 * 1024];
    let json = [("Content-Type", "application/json"), JSON[0]];
    for round in 0..20 {
        let signed = target.signed("POST", "/Open", &json, &large);
        let status = target.status(&signed);
        assert!(matches!(status, 413 | 0), "{status}");
        let anonymous =
            format!("POST /{ACCOUNT}/Open HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", large.len());
        let status = target.status(&[anonymous.as_bytes(), &large].concat());
        assert!(matches!(status, 401 | 403 | 0), "{status} in round {round}");
    }
    target.is_well();
}

#[test]
fn mutations_of_valid_requests_are_answered_or_refused() {
    const MUTATIONS: usize = 3000;
    let target = Target::start(&[]);
    let mut client = target.client();
    let mut random = seed();
    let json = [("Content-Type", "application/json"), JSON[0]];
    let entity = br#"{"PartitionKey":"p","RowKey":"r","A":1,"B":1.5,"C@odata.type":"Edm.Int64","C":"7","D@odata.type":"Edm.DateTime","D":"2021-05-06T07:08:09.12Z","E@odata.type":"Edm.Guid","E":"0f8fad5b-d9cb-469f-a165-70867728950e","F@odata.type":"Edm.Binary","F":"AQID","G":true,"H":null}"#;
    let atom_entity = br#"<?xml version="1.0" encoding="utf-8"?><entry xmlns="http://www.w3.org/2005/Atom" xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata" xmlns:d="http://schemas.microsoft.com/ado/2007/08/dataservices"><content type="application/xml"><m:properties><d:PartitionKey>p</d:PartitionKey><d:RowKey>x</d:RowKey><d:A m:type="Edm.Int32">1</d:A></m:properties></content></entry>"#;
    let atom = [("Content-Type", "application/atom+xml"), ("x-ms-version", "2014-02-14")];
    let key = "/Open(PartitionKey='p',RowKey='r')";
    let query = "/Open()?$filter=(A+eq+1+or+D+gt+datetime'2021-01-01T00:00:00Z')+and+not+(E+eq+guid'0f8fad5b-d9cb-469f-a165-70867728950e')&$select=A,B&$top=5&NextPartitionKey=1!4!cA--&NextRowKey=1!4!cg--";
    let delete = [("If-Match", "*"), JSON[0]];
    let templates: [Template<'_>; 10] = [
        ("POST", "/Open", &json, entity),
        ("PUT", key, &json, entity),
        ("MERGE", key, &[json[0], json[1], ("If-Match", "*")], entity),
        ("POST", key, &[json[0], json[1], ("X-HTTP-Method", "MERGE")], entity),
        ("DELETE", key, &delete, b""),
        ("GET", query, &JSON, b""),
        ("GET", key, &JSON, b""),
        ("GET", "/Tables?$filter=TableName+ge+'O'&$top=3", &JSON, b""),
        ("POST", "/$batch", &BATCH, &batch()),
        ("POST", "/Open", &atom, atom_entity),
    ];
    let mut stored = target.open_rows(&mut client);
    let mut answered = [0_usize; 6];
    for _ in 0..MUTATIONS {
        let template = templates[random.random_range(0..templates.len())];
        let request = mutated(&target, &mut random, template);
        let answer = target.throw(&request);
        let status = status(&answer);
        answered[usize::from(status / 100).min(5)] += 1;
        assert!(!matches!(status, 500 | 502..), "{status}: {}", String::from_utf8_lossy(&request));
        let refused = status >= 400 || String::from_utf8_lossy(&answer).contains("odata.error");
        let now = target.open_rows(&mut client);
        if refused {
            assert_eq!(now, stored, "refused, yet stored: {}", String::from_utf8_lossy(&request));
        }
        stored = now;
    }
    println!("closed, 1xx to 5xx: {answered:?}");
    assert!(answered[2] > MUTATIONS / 20 && answered[4] > MUTATIONS / 20, "one-sided: {answered:?}");
    target.is_well();
}

/// Method, path with query, headers, body.
type Template<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a [u8]);

/// Mostly changes the body and the options before the request is built, so that signature and length are right and later
/// checks are reached; in one of four cases changes the bytes of the whole request.
fn mutated(target: &Target, random: &mut StdRng, template: Template<'_>) -> Vec<u8> {
    let (method, path, headers, body) = template;
    if random.random_bool(0.25) {
        let mut request = target.signed(method, path, headers, body);
        mutate(random, &mut request);
        return request;
    }
    let mut body = body.to_vec();
    let (path, options) = path.split_once('?').unwrap_or((path, ""));
    let mut options = options.as_bytes().to_vec();
    for _ in 0..random.random_range(1..=3) {
        if options.is_empty() || (!body.is_empty() && random.random_bool(0.8)) {
            mutate(random, &mut body);
        } else {
            mutate(random, &mut options);
        }
    }
    // Characters that a URL can't contain.
    let escape = |byte: &u8| match byte {
        b'!'..=b'~' if *byte != b'#' => char::from(*byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    let options: String = options.iter().map(escape).collect();
    target.signed(method, &format!("{path}?{options}"), headers, &body)
}

/// Makes one change.
fn mutate(random: &mut StdRng, bytes: &mut Vec<u8>) {
    const NASTY: &[u8] = b"'\"(){}[]<>&%\r\n\0:;,-\xff\\/";
    if bytes.is_empty() {
        bytes.push(b'x');
    }
    let at = random.random_range(0..bytes.len());
    let end = (at + random.random_range(1..40)).min(bytes.len());
    match random.random_range(0..6) {
        0 => bytes[at] = random.random(),
        1 => bytes[at] ^= 1 << random.random_range(0..8),
        2 => bytes.insert(at, NASTY[random.random_range(0..NASTY.len())]),
        3 => drop(bytes.drain(at..end)),
        4 => {
            let piece = bytes[at..end].to_vec();
            bytes.splice(at..at, piece);
        }
        _ => bytes.truncate(at),
    }
}
