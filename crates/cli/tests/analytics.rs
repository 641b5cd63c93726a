//! Storage Analytics: which requests are logged, and metrics in tables, as the service properties request. What logs are as
//! blobs is in `logs.rs`.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use crate::support::request_logs::request_logs;
use crate::support::{Answer, Client, Partita};

const JSON: [(&str, &str); 2] =
    [("Accept", "application/json;odata=nometadata"), ("Content-Type", "application/json")];
const ACCOUNT: &str = "devstoreaccount1";

/// `logging` is for reads, writes and deletes.
fn set_properties(client: &mut Client, logging: [bool; 3], minute_metrics: bool) {
    let [read, write, delete] = logging;
    let retention = "<RetentionPolicy><Enabled>true</Enabled><Days>2</Days></RetentionPolicy>";
    let metrics = |on| {
        format!("<Version>1.0</Version><Enabled>{on}</Enabled><IncludeAPIs>{on}</IncludeAPIs>{retention}")
    };
    let body = format!(
        "<StorageServiceProperties><Logging><Version>1.0</Version><Read>{read}</Read><Write>{write}</Write>\
         <Delete>{delete}</Delete>{retention}</Logging><HourMetrics>{}</HourMetrics>\
         <MinuteMetrics>{}</MinuteMetrics></StorageServiceProperties>",
        metrics(true),
        metrics(minute_metrics)
    );
    let answer = client.send("PUT", "/?restype=service&comp=properties", &[], body.as_bytes());
    assert_eq!(answer.status, 202, "{}", answer.text());
}

/// Four requests that succeed, two that fail, one that deletes.
fn make_requests(client: &mut Client) {
    let mut expect = |method: &str, path: &str, body: &str, status: u16| {
        let mut headers = JSON.to_vec();
        if method == "DELETE" {
            headers.push(("If-Match", "*"));
        }
        let answer = client.send(method, path, &headers, body.as_bytes());
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
    };
    let entity = r#"{"PartitionKey":"p","RowKey":"r","Text":"x"}"#;
    expect("POST", "/Tables", r#"{"TableName":"Books"}"#, 201);
    expect("POST", "/Books", entity, 201);
    expect("POST", "/Books", entity, 409);
    expect("PUT", "/Books(PartitionKey='p',RowKey='r')", "{}", 204);
    expect("GET", "/Books(PartitionKey='p',RowKey='r')", "", 200);
    expect("GET", "/Books(PartitionKey='p',RowKey='none')", "", 404);
    expect("DELETE", "/Books(PartitionKey='p',RowKey='r')", "", 204);
}

#[test]
fn each_request_of_an_enabled_class_is_one_line_of_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let server = Partita::in_directory(directory.path());
    let mut client = server.client();
    make_requests(&mut client);
    set_properties(&mut client, [false, true, true], false);
    client.send("DELETE", "/Tables('Books')", &JSON, b"");
    make_requests(&mut client);
    let stranger = client.send_raw("POST", "/devstoreaccount1/Books", &JSON, b"{}");
    assert!(matches!(stranger.unwrap().status, 401 | 403));
    assert!(server.stop().success());

    let server = Partita::in_directory(directory.path());
    let text = request_logs(&mut server.blob_client(), "table/");
    let ended: Vec<String> = text
        .lines()
        .map(|line| {
            let fields: Vec<&str> = line.split(';').collect();
            assert_eq!((fields[0], fields[7], fields[8]), ("1.0", "authenticated", ACCOUNT), "{line}");
            fields[2..5].join(" ")
        })
        .collect();
    assert_eq!(
        ended,
        [
            "DeleteTable Success 204",
            "CreateTable Success 201",
            "InsertEntity Success 201",
            "InsertEntity EntityAlreadyExists 409",
            "InsertOrReplaceEntity Success 204",
            "DeleteEntity Success 204",
        ],
        "neither reads, which are off, nor the stranger who got nothing"
    );
}

fn rows(client: &mut Client, table: &str) -> Answer {
    client.send("GET", &format!("/{table}()"), &JSON, b"")
}

#[test]
fn metrics_survive_a_restart_and_can_be_read_in_their_tables() {
    let directory = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let server = Partita::in_directory(directory.path());
        let mut client = server.client();
        set_properties(&mut client, [false; 3], true);
        make_requests(&mut client);
        client.send("DELETE", "/Tables('Books')", &JSON, b"");
        assert!(server.stop().success());
    }
    let server = Partita::in_directory(directory.path());
    let mut client = server.client();
    for table in [
        "$MetricsHourPrimaryTransactionsTable",
        "$MetricsMinutePrimaryTransactionsTable",
        "$MetricsTransactionsTable",
    ] {
        let answer = rows(&mut client, table);
        assert_eq!(answer.status, 200, "{table}: {}", answer.text());
        let found = answer.json()["value"].as_array().unwrap().clone();
        let sum = |row: &str, name: &str| -> i64 {
            let rows = found.iter().filter(|found| found["RowKey"] == row);
            rows.map(|row| row[name].as_str().unwrap().parse::<i64>().unwrap()).sum()
        };
        assert_eq!(sum("user;All", "TotalRequests"), 18, "{table}: {found:#?}");
        assert_eq!(sum("user;All", "Success"), 14, "{table}");
        assert_eq!(sum("user;All", "ClientOtherError"), 4, "{table}");
        assert_eq!(sum("user;InsertEntity", "TotalRequests"), 4, "{table}");
        assert_eq!(sum("user;QueryEntity", "ClientOtherError"), 2, "{table}");
        assert!(sum("user;All", "TotalIngress") > 18 * 100, "{table}");
        let partition = found[0]["PartitionKey"].as_str().unwrap();
        assert!(partition.len() == 13 && &partition[8..9] == "T", "{partition}");
    }
}

#[test]
fn the_owner_can_read_and_empty_metrics_tables_but_not_write_or_list_them() {
    let server = Partita::in_memory();
    let mut client = server.client();
    let table = "$MetricsHourPrimaryTransactionsTable";
    // On by default, as for a new account of the real service.
    let found = testing::wait_until("the metrics of the first requests are there", || {
        let answer = rows(&mut client, table);
        let has_rows = answer.status == 200 && !answer.json()["value"].as_array().unwrap().is_empty();
        has_rows.then(|| answer.json())
    });
    let mut check = |method: &str, path: &str, body: &str, expected: (u16, &str)| {
        let mut headers = JSON.to_vec();
        headers.push(("If-Match", "*"));
        let answer = client.send(method, path, &headers, body.as_bytes());
        let code = if answer.status < 300 { String::new() } else { answer.code() };
        assert_eq!((answer.status, code.as_str()), expected, "{method} {path}: {}", answer.text());
    };
    let partition = found["value"][0]["PartitionKey"].as_str().unwrap();
    let row = format!("/{table}(PartitionKey='{partition}',RowKey='user%3BAll')");
    let not_allowed = (403, "InsufficientAccountPermissions");
    check("PUT", &row, "{}", not_allowed);
    check("MERGE", &row, "{}", not_allowed);
    check("POST", &format!("/{table}"), r#"{"PartitionKey":"p","RowKey":"r"}"#, not_allowed);
    check("DELETE", &format!("/Tables('{table}')"), "", not_allowed);
    check("POST", "/Tables", r#"{"TableName":"$MetricsMine"}"#, (400, "InvalidResourceName"));
    check("GET", &format!("/Tables('{table}')"), "", (200, ""));
    check("GET", "/$MetricsMinutePrimaryTransactionsTable()", "", (404, "TableNotFound"));
    check("DELETE", &row, "", (204, ""));
    let listed = client.send("GET", "/Tables", &JSON, b"").json();
    assert_eq!(listed["value"].as_array().unwrap().len(), 0, "{listed}");
}
