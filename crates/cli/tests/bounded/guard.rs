//! Sends every kind of request in its largest legal form and in its worst known form, many at once, and checks the
//! server's peak memory against the bound in `SECURITY.md`.

use std::net::SocketAddr;

use super::kit::{BATCH, JSON, JSON_BODY, Target, change_set, flood, query_batch};
use super::queues;
use crate::support::Client;

const CACHE_MIB: u64 = 64;
const REQUEST_MIB: u64 = 64;
const CONNECTIONS: u64 = 64;
/// `SECURITY.md`: the memory of each connection besides the memory for requests, and of everything else together.
const CONNECTION_KIB: u64 = 64;
const ELSE_MIB: u64 = 192;

/// Connections at once, and requests on each.
const AT_ONCE: usize = 12;
const ROUNDS: usize = 2;

const ATOM: (&str, &str) = ("Accept", "application/atom+xml");
const OLD: (&str, &str) = ("x-ms-version", "2013-08-15");
const XML: (&str, &str) = ("Content-Type", "application/xml");

/// Writes rows of about a megabyte: with control characters, which are six times as long in JSON; with flags of short
/// names, which become long in Atom; and with wide rows.
pub fn fill(target: &Target, client: &mut Client) {
    for row in 0..8 {
        let text = "\\u0001".repeat(30_000);
        let values: Vec<String> = (0..15).map(|n| format!(r#""V{n}":"{text}""#)).collect();
        target.insert(client, &format!("controls{row}"), &values.join(","));
        let flags: Vec<String> = (0..250).map(|n| format!(r#""{}":true"#, name(n))).collect();
        target.insert(client, &format!("flags{row}"), &flags.join(","));
        let wide: Vec<String> =
            (0..250).map(|n| format!(r#""{}":"{}""#, name(n), "v".repeat(1900))).collect();
        target.insert(client, &format!("wide{row}"), &wide.join(","));
    }
}

fn name(n: usize) -> String {
    format!("{}{}", (b'a' + (n / 26) as u8) as char, (b'a' + (n % 26) as u8) as char)
}

/// Repeats a word, up to this many bytes.
pub fn repeated(word: impl Fn(usize) -> String, bytes: usize) -> String {
    let mut out = String::new();
    for n in 0.. {
        let next = word(n);
        if out.len() + next.len() > bytes {
            break;
        }
        out.push_str(&next);
    }
    out
}

const URL: usize = 60_000;
const BODY: usize = 4 * 1024 * 1024 - 4096;

/// The requests, each with a name.
pub fn forms(client: &Client) -> Vec<(&'static str, Vec<u8>)> {
    let get = |path: &str, headers: &[(&str, &str)]| client.signed("GET", path, headers, b"");
    let long_key = format!(
        "PartitionKey+eq+'{}'+and+(RowKey+eq+'a'{})",
        "k".repeat(510),
        repeated(|n| format!("+or+RowKey+eq+'a{n}'"), URL - 1000)
    );
    let product = format!(
        "(PartitionKey+eq+'a'{})+and+(RowKey+eq+'a'{})",
        repeated(|n| format!("+or+PartitionKey+eq+'{n}{}'", "k".repeat(490)), URL / 2),
        repeated(|n| format!("+or+RowKey+eq+'a{n}'"), URL / 2 - 100)
    );
    let names = format!("A+eq+1{}", repeated(|n| format!("+or+A{n}+eq+1"), URL));
    let absent = repeated(|n| format!("n{n:03}{},", "x".repeat(250)), 255 * 230);
    let some = repeated(|n| format!("{},", name(n + 250)), 255 * 3);
    let mut forms = vec![
        ("get, JSON", get("/Big(PartitionKey='p',RowKey='controls0')", &[JSON])),
        ("get, Atom", get("/Big(PartitionKey='p',RowKey='controls1')", &[ATOM, OLD])),
        (
            "get, full metadata, flags",
            get(
                "/Big(PartitionKey='p',RowKey='flags0')",
                &[("Accept", "application/json;odata=fullmetadata")],
            ),
        ),
        ("query, JSON", get("/Big()", &[JSON])),
        ("query, Atom", get("/Big()", &[ATOM, OLD])),
        ("query, one long partition key and rows", get(&format!("/Big()?$filter={long_key}"), &[JSON])),
        ("query, partitions and rows", get(&format!("/Big()?$filter={product}"), &[JSON])),
        ("query, thousands of names", get(&format!("/Big()?$filter={names}"), &[JSON])),
        ("query, absent long names", get(&format!("/Big()?$select={absent}"), &[JSON])),
        ("query, absent names of wide rows", get(&format!("/Big()?$select={some}"), &[JSON])),
        ("query, options of one letter", get(&format!("/Big()?{}", "a&".repeat(URL / 2)), &[JSON])),
        ("tables, thousands of names", get(&format!("/Tables?$filter={names}"), &[JSON])),
        ("a long head", get("/Big()?$top=1", &[JSON, ("x-ms-meta", &"h".repeat(120_000))])),
    ];
    let batch = |body: &[u8]| client.signed("POST", "/$batch", &[BATCH, JSON], body);
    forms.push(("batch of a query", batch(&query_batch("/Big()"))));
    forms.push((
        "batch of a query, thousands of names",
        batch(&query_batch(&format!("/Big()?$filter={names}"))),
    ));
    forms.push((
        "batch of a query, too long",
        batch(&query_batch(&format!("/Big()?{}", "a&".repeat(BODY / 2)))),
    ));
    let each = |row: &str| format!("/Big(PartitionKey='p',RowKey='{row}')");
    let large = |method, headers, body: &'static str| {
        let rows =
            (0..8).flat_map(|n| [format!("controls{n}"), format!("wide{n}")]).chain(["missing".to_owned()]);
        change_set(rows.map(move |row| (method, each(&row), headers, body.to_owned())))
    };
    forms.push(("conditions on large rows", batch(&large("PUT", "If-Match: *\r\n", "{}"))));
    forms.push(("merges into large rows, refused", batch(&large("MERGE", "If-Match: *\r\n", r#"{"Z":1}"#))));
    let inserts = (0..100).map(|n| {
        let flags: Vec<String> = (0..250).map(|n| format!(r#""{}":true"#, name(n))).collect();
        let text = "\\u0001".repeat(6_000);
        (
            "POST",
            "/Big".to_owned(),
            "",
            format!(r#"{{"PartitionKey":"q","RowKey":"{n}","t":"{text}",{}}}"#, flags.join(",")),
        )
    });
    forms.push(("a batch of inserts, shown", batch(&change_set(inserts))));
    let post = |path: &str, headers: &[(&str, &str)], body: &str| {
        client.signed("POST", path, headers, body.as_bytes())
    };
    forms.push((
        "insert of members",
        post(
            "/Big",
            &[JSON_BODY, JSON],
            &format!("{{{}\"b\":0}}", repeated(|_| r#""a":0,"#.to_owned(), BODY)),
        ),
    ));
    forms.push((
        "insert of annotations",
        post(
            "/Big",
            &[JSON_BODY, JSON],
            &format!("{{{}\"b\":0}}", repeated(|_| r#""a@odata.type":"","#.to_owned(), BODY)),
        ),
    ));
    let atom = "<entry xmlns='http://www.w3.org/2005/Atom' xmlns:m='http://schemas.microsoft.com/ado/2007/08/dataservices/metadata' xmlns:d='http://schemas.microsoft.com/ado/2007/08/dataservices'><content><m:properties>";
    let atom_type = ("Content-Type", "application/atom+xml");
    forms.push((
        "Atom insert of elements",
        post(
            "/Big",
            &[atom_type, OLD],
            &format!("{atom}{}</m:properties></content></entry>", repeated(|_| "<d:a/>".to_owned(), BODY)),
        ),
    ));
    forms.push((
        "Atom insert of references",
        post(
            "/Big",
            &[atom_type, OLD],
            &format!(
                "{atom}<d:a>{}</d:a></m:properties></content></entry>",
                repeated(|_| "&#1;".to_owned(), BODY)
            ),
        ),
    ));
    forms.push((
        "table of members",
        post(
            "/Tables",
            &[JSON_BODY, JSON],
            &format!("{{{}\"b\":0}}", repeated(|_| r#""a":0,"#.to_owned(), BODY)),
        ),
    ));
    let put = |path: &str, body: &str| client.signed("PUT", path, &[XML], body.as_bytes());
    forms.push((
        "service properties of elements",
        put(
            "/?restype=service&comp=properties",
            &format!(
                "<StorageServiceProperties>{}</StorageServiceProperties>",
                repeated(|_| "<Cors/>".to_owned(), BODY)
            ),
        ),
    ));
    forms.push((
        "policies of elements",
        put(
            "/Big?comp=acl",
            &format!("<SignedIdentifiers>{}</SignedIdentifiers>", repeated(|_| "<a/>".to_owned(), BODY)),
        ),
    ));
    let mut chunks = client.signed("POST", "/Big", &[JSON_BODY, JSON, ("Transfer-Encoding", "chunked")], b"");
    // Each chunk costs the server more than a microsecond, and a request has only 30 seconds, even on a busy machine.
    chunks.extend(b"1\r\n \r\n".repeat(256 * 1024));
    chunks.extend(b"0\r\n\r\n");
    forms.push(("a body in pieces of one byte", chunks));
    forms
}

#[test]
fn the_peak_of_every_kind_of_request_is_within_the_stated_bound() {
    let target = guarded();
    let mut client = target.client();
    fill(&target, &mut client);
    check(&target, target.server.address, forms(&client));
}

#[test]
fn the_peak_of_every_kind_of_request_for_queues_is_within_the_stated_bound() {
    let target = guarded();
    let mut client = target.server.queue_client();
    queues::fill(&target, &mut client);
    check(&target, target.server.queue_address(), queues::forms(&client));
}

fn guarded() -> Target {
    let (cache, request, connections) =
        (CACHE_MIB.to_string(), REQUEST_MIB.to_string(), CONNECTIONS.to_string());
    Target::start_with(&["--cache-mib", &cache, "--request-mib", &request, "--max-connections", &connections])
}

fn check(target: &Target, address: SocketAddr, forms: Vec<(&str, Vec<u8>)>) {
    for (name, request) in forms {
        let mut statuses = Vec::new();
        let grown = target.peak_of(|| statuses = flood(address, AT_ONCE, ROUNDS, &request));
        statuses.sort_unstable();
        statuses.dedup();
        println!("{name}: {grown} MiB, {statuses:?}");
        // 0: the connection was closed while the body was sent, because there was no memory for it.
        assert!(statuses.iter().all(|status| matches!(status, 0 | 200..=499 | 503)), "{name}: {statuses:?}");
        target.is_well();
        let bound = CACHE_MIB + REQUEST_MIB + CONNECTIONS * CONNECTION_KIB / 1024 + ELSE_MIB;
        let peak = target.server.peak_memory_kib() / 1024;
        assert!(peak <= bound, "{name}: {peak} MiB is above the bound of {bound} MiB");
    }
}
