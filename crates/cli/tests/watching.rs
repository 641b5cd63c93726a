//! What a server tells about its requests: metrics, and slow queries in the log.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::thread;
use std::time::{Duration, Instant};

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
    let found = server.metrics();
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

#[test]
fn metrics_count_what_became_of_the_content_of_blobs() {
    const VERSION: (&str, &str) = ("x-ms-version", "2021-08-06");
    const BLOCK: (&str, &str) = ("x-ms-blob-type", "BlockBlob");
    let server = Partita::start(&["--in-memory"]);
    let mut client = server.blob_client();
    let mut send = |method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]| {
        client.send(method, path, &[&[VERSION], headers].concat(), body).status
    };
    assert_eq!(send("PUT", "/box?restype=container", &[], b""), 201);
    for content in [vec![1; 300_000], vec![2; 300_000], b"so short that it lies in its row".to_vec()] {
        assert_eq!(send("PUT", "/box/b", &[BLOCK], &content), 201);
    }
    assert_eq!(send("PUT", "/box/kept", &[BLOCK], &vec![3; 300_000]), 201);
    let of = |outcome: &str| format!("partita_blob_objects_total{{outcome=\"{outcome}\"}}");
    // What is replaced is removed after the answer.
    let started = Instant::now();
    let mut found = server.metrics();
    while found[&of("removed")] < 2.0 && started.elapsed() < Duration::from_secs(30) {
        thread::sleep(Duration::from_millis(20));
        found = server.metrics();
    }
    for (name, expected) in [
        (of("written"), 3.0),
        (of("removed"), 2.0),
        (of("swept"), 0.0),
        ("partita_blob_sweeps_total{outcome=\"done\"}".to_owned(), 0.0),
        ("partita_blob_downloads".to_owned(), 0.0),
        ("partita_blob_objects_held".to_owned(), 0.0),
    ] {
        assert_eq!(found.get(&name), Some(&expected), "{name}");
    }
}
