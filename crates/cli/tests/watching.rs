//! What a server tells about its requests: metrics, slow queries in the log, and spans to a collector.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use crate::support::{Client, Partita};

const JSON: [(&str, &str); 2] =
    [("Accept", "application/json;odata=nometadata"), ("Content-Type", "application/json")];

fn expect(client: &mut Client, method: &str, path: &str, headers: &[(&str, &str)], body: &str, status: u16) {
    let answer = client.send(method, path, &[&JSON, headers].concat(), body.as_bytes());
    assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
}

fn fill(client: &mut Client, rows: usize) {
    expect(client, "POST", "/Tables", &[], r#"{"TableName":"Books"}"#, 201);
    for row in 0..rows {
        let entity = format!(r#"{{"PartitionKey":"p","RowKey":"{row:03}","Title":"Emma"}}"#);
        expect(client, "POST", "/Books", &[], &entity, 201);
    }
}

#[test]
fn a_query_that_reads_much_is_logged_with_the_shape_of_its_filter_and_no_value() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let server = Partita::logging_to(&log, "warn", &["--scan-log-rows", "9"]);
    let mut client = server.client();
    fill(&mut client, 20);
    expect(
        &mut client,
        "GET",
        "/Books()?$filter=RowKey%20lt%20'005'%20and%20Title%20eq%20'hidden'",
        &[],
        "",
        200,
    );
    let short = std::fs::read_to_string(&log).unwrap();
    let all = "/Books()?$filter=PartitionKey%20eq%20'p'%20and%20Title%20eq%20'hidden'";
    expect(&mut client, "GET", all, &[], "", 200);
    expect(
        &mut client,
        "GET",
        "/Books()?$filter=PartitionKey%20eq%20'p'%20and%20RowKey%20lt%20'007'",
        &[],
        "",
        200,
    );
    assert!(server.stop().success());
    let text = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("slow query")).collect();
    // Without a partition, the first query reads the whole table.
    assert_eq!((short.matches("slow query").count(), lines.len()), (1, 2), "{text}");
    for part in [
        "filter=\"PartitionKey eq String and Title eq String\"",
        "table=\"Books\"",
        "account=\"devstoreaccount1\"",
        "reach=\"partition\"",
        "ranges=1",
        "examined=20",
        "returned=0",
    ] {
        assert!(lines[1].contains(part), "{part} is missing in {}", lines[1]);
    }
    assert!(!text.contains("hidden"), "{text}");
}

/// The metrics of a server, by name and labels.
fn metrics(server: &Partita) -> BTreeMap<String, f64> {
    let (_, rest) = server.banner.split_once("Console and metrics: http://").unwrap();
    let address = rest.split('/').next().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, text) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("text/plain; version=0.0.4"), "{head}");
    let samples = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.rsplit_once(' '));
    samples.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect()
}

#[test]
fn metrics_are_the_counts_of_what_was_asked() {
    let directory = tempfile::tempdir().unwrap();
    let server =
        Partita::start(&["--data", &directory.path().display().to_string(), "--scan-log-rows", "15"]);
    let mut client = server.client();
    fill(&mut client, 20);
    for _ in 0..3 {
        expect(&mut client, "GET", "/Books(PartitionKey='p',RowKey='001')", &[], "", 200);
    }
    expect(&mut client, "GET", "/Books(PartitionKey='p',RowKey='none')", &[], "", 404);
    expect(
        &mut client,
        "GET",
        "/Books()?$filter=Title%20eq%20'Emma'%20and%20RowKey%20lt%20'005'",
        &[],
        "",
        200,
    );
    expect(&mut client, "GET", "/None()", &[], "", 404);
    let stranger = client.send_raw("GET", "/devstoreaccount1/Books()", &JSON, b"").unwrap();
    assert!(stranger.status >= 400);
    let found = metrics(&server);
    let of = |operation: &str, status: &str| {
        format!("partita_requests_total{{service=\"table\",operation=\"{operation}\",status=\"{status}\"}}")
    };
    for (name, expected) in [
        (of("CreateTable", "2xx"), 1.0),
        (of("InsertEntity", "2xx"), 20.0),
        (of("QueryEntity", "2xx"), 3.0),
        (of("QueryEntity", "4xx"), 1.0),
        (of("QueryEntities", "2xx"), 1.0),
        (of("QueryEntities", "4xx"), 2.0),
        (of("DeleteEntity", "2xx"), 0.0),
        (
            r#"partita_request_duration_seconds_count{service="table",operation="QueryEntity"}"#.to_owned(),
            4.0,
        ),
        (r#"partita_refused_requests_total{service="table",code="TableNotFound"}"#.to_owned(), 1.0),
        (r#"partita_refused_requests_total{service="table",code="ResourceNotFound"}"#.to_owned(), 1.0),
        (r#"partita_throttled_requests_total{service="queue"}"#.to_owned(), 0.0),
        // The query reads all rows and finds five; each get reads the one that it finds.
        ("partita_entities_examined_total".to_owned(), 23.0),
        ("partita_entities_returned_total".to_owned(), 8.0),
        ("partita_slow_queries_total".to_owned(), 1.0),
        ("partita_ready".to_owned(), 1.0),
        ("partita_connections_max".to_owned(), 10_000.0),
    ] {
        assert_eq!(found.get(&name), Some(&expected), "{name}");
    }
    // Storage Analytics writes rows of its own.
    let transactions = found["partita_store_transactions_total"];
    assert!(transactions >= 20.0, "{transactions}");
    assert_eq!(found["partita_store_commit_transactions_sum"], transactions);
    assert!(found["partita_received_bytes_total"] > 1000.0 && found["partita_sent_bytes_total"] > 1000.0);
    assert!(found["partita_connections"] >= 1.0 && found["partita_store_disk_free_bytes"] > 0.0);
    let names =
        found.keys().filter(|name| name.contains("p'") || name.contains("Books") || name.contains("Emma"));
    assert_eq!(names.count(), 0, "data of users is in no label");
}

/// A collector that takes messages and hands them to the test.
fn collector() -> (String, Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, received) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream: TcpStream = stream.unwrap();
            let mut bytes = Vec::new();
            let (head_end, length) = loop {
                let mut piece = [0; 4096];
                let count = stream.read(&mut piece).unwrap();
                bytes.extend(&piece[..count]);
                let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
                let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
                break (end + 4, length.parse::<usize>().unwrap());
            };
            while bytes.len() < head_end + length {
                let mut piece = [0; 4096];
                let count = stream.read(&mut piece).unwrap();
                bytes.extend(&piece[..count]);
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
            let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
            if sender.send((head, bytes[head_end..].to_vec())).is_err() {
                return;
            }
        }
    });
    (address, received)
}

/// A protobuf message, read without knowing its schema: the values of each field.
#[derive(Debug)]
enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

impl Field {
    fn number(&self) -> u64 {
        let Self::Number(number) = self else { panic!("{self:?} is not a number") };
        *number
    }

    fn bytes(&self) -> &[u8] {
        let Self::Bytes(bytes) = self else { panic!("{self:?} is not bytes") };
        bytes
    }

    fn text(&self) -> String {
        String::from_utf8(self.bytes().to_vec()).unwrap()
    }
}

type Message = BTreeMap<u64, Vec<Field>>;

fn message(mut bytes: &[u8]) -> Message {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (first, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            value |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                break;
            }
        }
        value
    }
    let mut fields = Message::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let field = match key & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => {
                let (number, rest) = bytes.split_at(8);
                bytes = rest;
                Field::Number(u64::from_le_bytes(number.try_into().unwrap()))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (content, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(content.to_vec())
            }
            other => panic!("wire type {other}"),
        };
        fields.entry(key >> 3).or_default().push(field);
    }
    fields
}

fn attributes(fields: &[Field]) -> BTreeMap<String, String> {
    let attribute = |field: &Field| {
        let attribute = message(field.bytes());
        let value = message(attribute[&2][0].bytes());
        let text = value.get(&1).map(|text| text[0].text());
        (attribute[&1][0].text(), text.unwrap_or_else(|| value[&3][0].number().to_string()))
    };
    fields.iter().map(attribute).collect()
}

/// The spans of a message (ExportTraceServiceRequest, ResourceSpans, ScopeSpans, Span), after a look at their resource.
fn spans(bytes: &[u8]) -> Vec<Message> {
    let request = message(bytes);
    let of_resource = message(request[&1][0].bytes());
    let resource = message(of_resource[&1][0].bytes());
    assert_eq!(attributes(&resource[&1])["service.name"], "partita");
    let of_scope = message(of_resource[&2][0].bytes());
    of_scope[&2].iter().map(|span| message(span.bytes())).collect()
}

#[test]
fn each_request_is_a_span_at_the_collector_in_the_trace_of_its_client() {
    let (address, received) = collector();
    let server = Partita::start(&["--in-memory", "--otlp-endpoint", &address]);
    let mut client = server.client();
    let trace = |flags: &str| format!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-{flags}");
    let (sampled, unsampled) = (trace("01"), trace("00"));
    expect(&mut client, "POST", "/Tables", &[], r#"{"TableName":"Books"}"#, 201);
    expect(&mut client, "GET", "/Books()", &[("traceparent", &sampled)], "", 200);
    expect(&mut client, "GET", "/Books()", &[("traceparent", &unsampled)], "", 200);
    expect(&mut client, "GET", "/None()", &[("traceparent", "nonsense")], "", 404);
    // A stop sends what is left.
    assert!(server.stop().success());
    let mut found = Vec::new();
    while found.len() < 3 {
        let (head, body) = received.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("application/x-protobuf"), "{head}");
        found.extend(spans(&body));
    }
    let names: Vec<String> = found.iter().map(|span| span[&5][0].text()).collect();
    assert_eq!(names, ["CreateTable", "QueryEntities", "QueryEntities"]);
    let [begun, joined, refused] = &found[..] else { panic!("{found:?}") };
    assert_eq!(joined[&1][0].bytes()[..2], [0x0a, 0xf7]);
    assert_eq!(joined[&4][0].bytes()[..2], [0xb7, 0xad]);
    for own in [begun, refused] {
        assert!(
            own[&1][0].bytes().len() == 16
                && own[&1][0].bytes() != joined[&1][0].bytes()
                && !own.contains_key(&4)
        );
    }
    let (start, end) = (joined[&7][0].number(), joined[&8][0].number());
    assert!(start > 1_700_000_000_000_000_000 && end > start, "{start} {end}");
    let of_joined = attributes(&joined[&9]);
    assert_eq!(of_joined["partita.service"], "table");
    assert_eq!(of_joined["partita.account"], "devstoreaccount1");
    assert_eq!(of_joined["http.response.status_code"], "200");
    let of_refused = attributes(&refused[&9]);
    assert_eq!(
        (of_refused["http.response.status_code"].as_str(), of_refused["error.type"].as_str()),
        ("404", "TableNotFound")
    );
    assert!(!refused.contains_key(&15), "a refusal is no error of the server");
}

#[test]
fn a_collector_that_is_not_there_holds_nothing_up() {
    // Nobody listens on a port that was just free.
    let address = format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let server = Partita::logging_to(&log, "warn", &["--otlp-endpoint", &address]);
    let mut client = server.client();
    fill(&mut client, 50);
    assert!(server.stop().success());
    assert!(std::fs::read_to_string(&log).unwrap().contains("traces"), "the operator is told");
}
