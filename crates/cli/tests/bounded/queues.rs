//! Queues: the largest and the worst bodies, pages of the largest messages, lists with all their metadata, and very many
//! queues.

use std::thread;
use std::time::Duration;

use super::guard::repeated;
use super::kit::Target;
use crate::support::Client;

/// A message's text at most, and the body that may carry it.
const TEXT: usize = 65_536;
const BODY: usize = 6 * TEXT;
/// More queues than a page of metadata has room for.
const QUEUES_WITH_METADATA: usize = 300;
const PEEK: &str = "/big/messages?peekonly=true&numofmessages=32";

fn body(text: &str) -> Vec<u8> {
    format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>").into_bytes()
}

/// Messages that are five times as long in XML, and queues with as much metadata as they may have.
pub fn fill(target: &Target, client: &mut Client) {
    assert_eq!(client.send("PUT", "/big", &[], b"").status, 201);
    let text = body(&"&amp;".repeat(TEXT));
    for _ in 0..64 {
        assert_eq!(client.send("POST", "/big/messages", &[], &text).status, 201);
    }
    let value = "<".repeat(8000);
    on_connections(target, QUEUES_WITH_METADATA, |client, n| {
        let created = client.send("PUT", &format!("/many-{n:04}"), &[("x-ms-meta-a", &value)], b"");
        assert_eq!(created.status, 201);
    });
}

/// Does this for each number, on some connections at the same time.
fn on_connections(target: &Target, count: usize, work: impl Fn(&mut Client, usize) + Sync) {
    const AT_ONCE: usize = 16;
    thread::scope(|threads| {
        for first in 0..AT_ONCE {
            let (server, work) = (&target.server, &work);
            threads.spawn(move || {
                let mut client = server.queue_client();
                (first..count).step_by(AT_ONCE).for_each(|n| work(&mut client, n));
            });
        }
    });
}

/// The requests, each with a name.
pub fn forms(client: &Client) -> Vec<(&'static str, Vec<u8>)> {
    let get = |path: &str| client.signed("GET", path, &[], b"");
    let post = |body: &[u8]| client.signed("POST", "/big/messages?messagettl=1", &[], body);
    let put = |path: &str, body: &str| client.signed("PUT", path, &[], body.as_bytes());
    let around = |inside: String| {
        format!("<QueueMessage>{inside}<MessageText>a</MessageText></QueueMessage>").into_bytes()
    };
    let entities: String =
        (0..60).map(|n| format!("<!ENTITY e{} \"{}\">", n + 1, format!("&e{n};").repeat(10))).collect();
    let bomb = format!(
        "<!DOCTYPE a [<!ENTITY e0 \"aaaaaaaaaa\">{entities}]><QueueMessage><MessageText>&e60;</MessageText></QueueMessage>"
    );
    let message =
        "0a1b2c3d-0000-4000-8000-0123456789ab?popreceipt=AgAAAAMAAAAAAAAAkP0RP0Fx2QE%3D&visibilitytimeout=0";
    let identifier = "<SignedIdentifier><Id>a</Id></SignedIdentifier>";
    let mut chunks = client.signed("POST", "/big/messages", &[("Transfer-Encoding", "chunked")], b"");
    chunks.extend(b"1\r\n \r\n".repeat(256 * 1024));
    chunks.extend(b"0\r\n\r\n");
    let metadata: Vec<(String, String)> =
        (0..80).map(|n| (format!("x-ms-meta-n{n}"), "v".repeat(95))).collect();
    let metadata: Vec<(&str, &str)> =
        metadata.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    // The form that signs every option, by somebody without a key: the server tells what it has signed.
    let foreign = format!(
        "GET /devstoreaccount1/?comp=list{} HTTP/1.1\r\nHost: x\r\nx-ms-date: {}\r\nx-ms-version: 2021-02-12\r\nAuthorization: SharedKey devstoreaccount1:AAAA\r\n\r\n",
        repeated(|n| format!("&a{}", 100_000 - n), 60_000),
        httpdate::fmt_http_date(std::time::SystemTime::now())
    )
    .into_bytes();
    vec![
        ("put, the longest text in the longest form", post(&body(&"&quot;".repeat(TEXT)))),
        ("put, references", post(&body(&"&#65;".repeat(TEXT)))),
        ("put, unknown entities", post(&body(&repeated(|_| "&a;".to_owned(), BODY)))),
        ("put, entities of entities", post(bomb.as_bytes())),
        ("put, comments", post(&around(repeated(|_| "<!---->".to_owned(), BODY)))),
        ("put, a long comment", post(&around(format!("<!--{}-->", "c".repeat(BODY))))),
        ("put, comments in the text", post(&body(&repeated(|_| "<!---->a".to_owned(), BODY)))),
        ("put, deep markup", post(&body(&format!("{}x{}", "<a>".repeat(BODY / 7), "</a>".repeat(BODY / 7))))),
        ("put, deep markup that is not closed", post(&body(&"<a>".repeat(BODY / 3)))),
        ("put, markup", post(&body(&repeated(|_| "<a/>".to_owned(), BODY)))),
        ("put, attributes", post(&body(&format!("<a {}/>", repeated(|n| format!("a{n}='b' "), BODY))))),
        ("put, sections", post(&body(&repeated(|_| "<![CDATA[a]]>".to_owned(), BODY)))),
        ("put, more than a body may have", post(&vec![b'a'; 4 * 1024 * 1024])),
        ("put, pieces of one byte", chunks),
        (
            "update, the longest text",
            put(&format!("/big/messages/{message}"), &String::from_utf8_lossy(&body(&"&quot;".repeat(TEXT)))),
        ),
        ("peek, 32 of the longest", get(PEEK)),
        ("get, 32 of the longest", get("/big/messages?numofmessages=32&visibilitytimeout=1")),
        ("list, all metadata", get("/?comp=list&include=metadata")),
        ("list, 5,000", get("/?comp=list")),
        ("list, a long prefix", get(&format!("/?comp=list&prefix={}", "p".repeat(60_000)))),
        ("list, a long marker", get(&format!("/?comp=list&marker=/devstoreaccount1/{}", "m".repeat(60_000)))),
        ("list, options of one letter", get(&format!("/?comp=list&{}", "a&".repeat(30_000)))),
        ("list, distinct options", get(&format!("/?comp=list{}", repeated(|n| format!("&a{n}"), 60_000)))),
        ("list, distinct options, wrongly signed", foreign),
        ("create, metadata of many names", client.signed("PUT", "/many-0000", &metadata, b"")),
        ("create, a long head", client.signed("PUT", "/big", &[("x-ms-meta-a", &"h".repeat(120_000))], b"")),
        (
            "policies of elements",
            put(
                "/big?comp=acl",
                &format!("<SignedIdentifiers>{}</SignedIdentifiers>", repeated(|_| "<a/>".to_owned(), BODY)),
            ),
        ),
        (
            "policies, too many",
            put(
                "/big?comp=acl",
                &format!(
                    "<SignedIdentifiers>{}</SignedIdentifiers>",
                    repeated(|_| identifier.to_owned(), BODY)
                ),
            ),
        ),
        (
            "service properties of elements",
            put(
                "/?restype=service&comp=properties",
                &format!(
                    "<StorageServiceProperties>{}</StorageServiceProperties>",
                    repeated(|_| "<Cors/>".to_owned(), BODY)
                ),
            ),
        ),
        ("a path of segments", get(&format!("/{}", "a/".repeat(30_000)))),
        ("a long name", get(&format!("/{}?comp=metadata", "a".repeat(60_000)))),
        (
            "a long receipt",
            client.signed("DELETE", &format!("/big/messages/a?popreceipt={}", "A".repeat(60_000)), &[], b""),
        ),
    ]
}

/// Peeks of the largest messages whose readers take nothing: what is held for them is bounded.
#[test]
fn peeks_that_nobody_reads_stay_within_the_memory_for_requests() {
    let target = Target::start(&["--request-mib", "32"]);
    let mut client = target.server.queue_client();
    fill(&target, &mut client);
    let request = client.signed("GET", PEEK, &[], b"");
    let grown = target.peak_of(|| {
        let address = target.server.queue_address();
        let mut unread: Vec<_> = (0..48).map(|_| std::net::TcpStream::connect(address).unwrap()).collect();
        for stream in &mut unread {
            // Pipelined, so that the kernel's buffers fill up. A connection that is closed was answered before.
            let _ = std::io::Write::write_all(stream, &request.repeat(3));
        }
        // The answers are made while nobody reads them, and nothing signals that they are.
        thread::sleep(Duration::from_secs(2));
        let statuses = super::kit::flood(address, 4, 4, &request);
        assert!(statuses.iter().all(|status| matches!(status, 200 | 503)), "{statuses:?}");
    });
    assert!(grown <= 128, "{grown} MiB");
    target.is_well();
}

/// Whoever may create queues decides how many there are. The server remembers some of them, and all of them work.
#[test]
fn ten_thousand_queues_take_no_memory_that_stays() {
    const QUEUES: usize = 10_000;
    let target = Target::start(&["--request-mib", "32"]);
    let grown = target.peak_of(|| {
        on_connections(&target, QUEUES, |client, n| {
            assert_eq!(client.send("PUT", &format!("/queue-{n:05}"), &[], b"").status, 201);
            let put = client.send("POST", &format!("/queue-{n:05}/messages"), &[], &body("a"));
            assert_eq!(put.status, 201);
        });
        on_connections(&target, QUEUES, |client, n| {
            let peeked = client.send("GET", &format!("/queue-{n:05}/messages?peekonly=true"), &[], b"");
            assert!(peeked.text().contains("<MessageText>a</MessageText>"), "{}", peeked.text());
        });
    });
    // The write buffers belong to the cache of 64 MiB.
    assert!(grown <= 96, "{grown} MiB for {QUEUES} queues");
    let page = target.server.queue_client().send("GET", "/?comp=list", &[], b"").text();
    assert_eq!(page.matches("<Queue>").count(), 5000);
    assert!(page.ends_with("<NextMarker>/devstoreaccount1/queue-05000</NextMarker></EnumerationResults>"));
    target.is_well();
}
