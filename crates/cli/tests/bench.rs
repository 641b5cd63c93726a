//! `partita bench` against the real binary, and against a server with wrong answers.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Output;

use crate::support::{ACCOUNT, KEY, Partita, binary};
use serde_json::Value;

/// So that a workload takes a fraction of a second.
const SMALL: [&str; 4] = ["--warmup", "0", "--connections", "4"];

/// With the smallest data set.
fn bench(address: SocketAddr, arguments: &[&str]) -> Output {
    bench_with("1000", address, arguments)
}

fn bench_with(entities: &str, address: SocketAddr, arguments: &[&str]) -> Output {
    let connection = connection_string("Table", address);
    let mut command = binary();
    command
        .args(["bench", "--connection-string", &connection, "--entities", entities])
        .args(SMALL)
        .args(arguments);
    command.output().unwrap()
}

fn connection_string(service: &str, address: SocketAddr) -> String {
    format!("AccountName={ACCOUNT};AccountKey={KEY};{service}Endpoint=http://{address}/{ACCOUNT}")
}

/// With few messages.
fn bench_queues(address: SocketAddr, arguments: &[&str]) -> Output {
    bench_queues_with(["60", "100"], address, arguments)
}

fn bench_queues_with([waiting, bytes]: [&str; 2], address: SocketAddr, arguments: &[&str]) -> Output {
    let mut command = binary();
    command
        .args(["bench", "--connection-string", &connection_string("Queue", address)])
        .args(["--waiting", waiting, "--message-bytes", bytes])
        .args(SMALL)
        .args(arguments);
    command.output().unwrap()
}

fn report(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{}", error(output)))
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn every_workload_runs_without_failures() {
    let directory = tempfile::tempdir().unwrap();
    let server = Partita::in_directory(directory.path());
    let pid = server.process_id().to_string();
    let output = bench(server.address, &["tables", "--count", "20", "--json", "--pid", &pid]);
    assert!(output.status.success(), "{}", error(&output));
    let report = report(&output);
    let workloads = report["endpoints"][0]["workloads"].as_array().unwrap();
    let counts: Vec<_> = workloads
        .iter()
        .map(|workload| {
            assert_eq!(workload["operations"], 20, "{workload}");
            assert!(workload["server"]["resident_kib"].as_u64().unwrap() > 0, "{workload}");
            (workload["workload"].as_str().unwrap(), workload["entities"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(
        counts,
        [
            ("insert", 20),
            ("insert-one-partition", 20),
            ("batch", 2000),
            ("get", 20),
            ("page", 20_000),
            ("page-select", 20_000),
            ("partition-scan", 20_000),
            ("table-scan", 20_000),
            ("merge", 20),
            ("mixed", 20),
        ]
    );
    let headers = [("Accept", "application/json;odata=nometadata"), ("x-ms-version", "2019-02-02")];
    let tables = server.client().send("GET", "/Tables", &headers, b"");
    assert_eq!(tables.text(), r#"{"value":[]}"#, "tables are deleted in the end");
}

#[test]
fn a_kept_table_is_used_only_with_reuse() {
    let server = Partita::in_memory();
    let run = |entities: &str, arguments: &[&str], expected: Result<(), &str>| {
        let output = bench_with(entities, server.address, &[&["get", "--count", "5"], arguments].concat());
        match expected {
            Ok(()) => assert!(output.status.success(), "{}", error(&output)),
            Err(text) => {
                assert!(!output.status.success() && error(&output).contains(text), "{}", error(&output));
            }
        }
    };
    run("2000", &["--reuse"], Err("load it with --keep, and without --reuse"));
    run("2000", &["--keep"], Ok(()));
    run("2000", &["--keep"], Err("use it with --reuse, or choose another --table"));
    run("2000", &["--reuse"], Ok(()));
    for (entities, bytes) in [("1000", "1024"), ("1999", "1024"), ("2001", "1024"), ("2000", "300")] {
        run(entities, &["--reuse", "--value-bytes", bytes], Err("does not hold the data set"));
    }
}

#[test]
fn two_endpoints_are_measured_in_turns() {
    let (first, second) = (Partita::in_memory(), Partita::in_memory());
    let other = connection_string("Table", second.address);
    let output =
        bench(first.address, &["insert,get", "--count", "5", "--rounds", "2", "--json", "--compare", &other]);
    assert!(output.status.success(), "{}", error(&output));
    let report = report(&output);
    assert_eq!(report["endpoints"].as_array().unwrap().len(), 2);
    assert_eq!(report["ratios"].as_array().unwrap().len(), 2);
    for endpoint in report["endpoints"].as_array().unwrap() {
        assert_eq!(endpoint["workloads"][1]["operations"], 10);
        assert_eq!(endpoint["workloads"][1]["rounds"], 2);
    }
}

#[test]
fn wrong_arguments_are_explained() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (arguments, expected) in [
        (["get", "--count", "1"], "is the server running there?"),
        (["gets", "--count", "1"], "\"gets\" is not a workload"),
        (["get", "--pid", "4294967295"], "4294967295 is not the id of a process; is the server running?"),
        (
            ["get", "--rate", "0"],
            "--rate 0 is out of range; it takes more than 0, and up to 1000000 operations a second",
        ),
        (["queues", "--queues", "0"], "--queues 0 is out of range"),
    ] {
        let output = bench(nobody, &arguments);
        assert!(!output.status.success());
        assert!(error(&output).contains(expected), "{}", error(&output));
    }
}

/// Accepts every write, and answers every read with these bytes.
fn lying_server(answer: &'static str) -> SocketAddr {
    server(move |method, body| {
        let operations = body.matches("POST ").count();
        match method {
            "GET" => answer.to_owned(),
            "POST" if operations > 0 => {
                let body = "HTTP/1.1 204 No Content\r\n".repeat(operations);
                format!("HTTP/1.1 202 Accepted\r\nContent-Length: {}\r\n\r\n{body}", body.len())
            }
            _ => "HTTP/1.1 204 No Content\r\nETag: x\r\n\r\n".to_owned(),
        }
    })
}

/// Answers by the method and the body of a request.
fn server(answer: impl Fn(&str, &str) -> String + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // The thread ends with the test's process.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let answer = answer.clone();
            std::thread::spawn(move || serve(&stream.unwrap(), answer));
        }
    });
    address
}

fn serve(stream: &TcpStream, answer: impl Fn(&str, &str) -> String) {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut head, mut length) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            let start = head.len();
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
            let value = head[start..].strip_prefix("Content-Length: ");
            length = value.map_or(length, |value| value.trim().parse().unwrap());
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let answer = answer(head.split([' ', '/']).next().unwrap(), &String::from_utf8_lossy(&body));
        let mut stream = stream;
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

#[test]
fn wrong_answers_are_detected() {
    let check = |answer: &'static str, workload: &str, label: &str, sample: &str| {
        let output = bench(lying_server(answer), &[workload, "--count", "6", "--json"]);
        assert!(!output.status.success(), "{workload}: {answer}");
        assert!(error(&output).contains("operations failed"), "{}", error(&output));
        let summary = &report(&output)["endpoints"][0]["workloads"][0];
        let failed = &summary["failures"][label];
        assert!(failed["count"].as_u64() > Some(0), "{summary}");
        assert!(failed["sample"].as_str().unwrap().contains(sample), "{summary}");
    };
    const OTHER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n\
                         {\"PartitionKey\":\"p000000\",\"RowKey\":\"no\"}";
    const BUSY: &str = "HTTP/1.1 503 Busy\r\nx-ms-error-code: ServerBusy\r\nContent-Length: 4\r\n\r\nbusy";
    const EMPTY: &str = "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{\"value\":[]}";
    check(OTHER, "get", "wrong answer", "has not RowKey = ");
    check(OTHER, "insert", "read back: wrong answer", "has not PartitionKey = ");
    check(EMPTY, "page", "wrong answer", "a page has 0 entities instead of 1000");
    check(EMPTY, "partition-scan", "wrong answer", "a query found 0 entities instead of 10");
    check(BUSY, "get", "503 ServerBusy", "busy");
    check("SSH-2.0-OpenSSH\r\n\r\n", "get", "broken connection", "not an HTTP answer");
}

#[test]
fn answers_are_not_checked_with_trust_answers() {
    let address = lying_server("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    let output = bench(address, &["get,insert,page", "--count", "6", "--trust-answers"]);
    assert!(output.status.success(), "{}", error(&output));
}

#[test]
fn every_workload_of_queues_runs_without_failures() {
    let directory = tempfile::tempdir().unwrap();
    let server = Partita::in_directory(directory.path());
    let pid = server.process_id().to_string();
    for queues in ["1", "7"] {
        // More than a slice of messages that are consumed, and not a multiple of it.
        for (workloads, count) in [("queues", 21), ("queue-get-delete", 2100)] {
            let arguments =
                [workloads, "--count", &count.to_string(), "--json", "--pid", &pid, "--queues", queues];
            let output = bench_queues(server.queue_address(), &arguments);
            assert!(output.status.success(), "{}", error(&output));
            let report = report(&output);
            let workloads = report["endpoints"][0]["workloads"].as_array().unwrap();
            assert_eq!(workloads.len(), if count == 21 { 5 } else { 1 });
            for workload in workloads {
                assert_eq!(workload["operations"], count, "{workload}");
                assert_eq!(workload["entities"], count, "{workload}");
                assert!(workload["server"]["cpu_micros_per_operation"].as_f64() > Some(0.0), "{workload}");
            }
        }
    }
    let left = server.queue_client().send("GET", "/?comp=list", &[("x-ms-version", "2019-02-02")], b"");
    assert!(left.text().contains("<Queues />"), "queues are deleted in the end: {}", left.text());
}

#[test]
fn kept_queues_are_used_only_with_reuse() {
    let server = Partita::in_memory();
    let run = |sizes: [&str; 2], kept: &str, expected: Result<(), &str>| {
        let output = bench_queues_with(sizes, server.queue_address(), &["queue-mixed", "--count", "9", kept]);
        match expected {
            Ok(()) => assert!(output.status.success(), "{}", error(&output)),
            Err(text) => {
                assert!(!output.status.success() && error(&output).contains(text), "{}", error(&output));
            }
        }
    };
    let sizes = ["60", "100"];
    run(sizes, "--reuse", Err("load them with --keep, and without --reuse"));
    run(sizes, "--keep", Ok(()));
    run(sizes, "--keep", Err("use it with --reuse, or choose another --table"));
    run(sizes, "--reuse", Ok(()));
    run(["100", "100"], "--reuse", Ok(()));
    run(["60", "101"], "--reuse", Err("has not the text that it was put with"));
}

#[test]
fn wrong_answers_of_queues_are_detected() {
    let check = |text: &'static str, workload: &str, label: &str, sample: &str| {
        let address = server(move |method, body| {
            let list = |status: &str, messages: &str| {
                let body = format!("<QueueMessagesList>{messages}</QueueMessagesList>");
                format!(
                    "HTTP/1.1 {status}\r\nx-ms-approximate-messages-count: 3\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                )
            };
            let ids = "<MessageId>1</MessageId><PopReceipt>2</PopReceipt>";
            match method {
                "GET" if text.is_empty() => list("200 OK", ""),
                "GET" => list(
                    "200 OK",
                    &format!("<QueueMessage>{ids}<MessageText>{text}</MessageText></QueueMessage>"),
                ),
                "POST" if text == "no receipt" => list("201 Created", ""),
                "POST" => list("201 Created", &format!("<QueueMessage>{ids}</QueueMessage>")),
                "PUT" if body.is_empty() => "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n".to_owned(),
                "PUT" => "HTTP/1.1 204 No Content\r\nx-ms-popreceipt: 2\r\n\r\n".to_owned(),
                _ => "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
            }
        });
        let output = bench_queues_with(["60", "16"], address, &[workload, "--count", "6", "--json"]);
        assert!(!output.status.success(), "{workload}: {text}");
        if label.is_empty() {
            assert!(error(&output).contains(sample), "{}", error(&output));
            return;
        }
        let summary = &report(&output)["endpoints"][0]["workloads"][0];
        let failed = &summary["failures"][label];
        assert!(failed["count"].as_u64() > Some(0), "{summary}");
        assert!(failed["sample"].as_str().unwrap().contains(sample), "{summary}");
    };
    let other = "has not the text that it was put with";
    check("no number at all", "queue-peek", "wrong answer", other);
    check("0000000000000001x", "queue-peek", "wrong answer", other);
    check("", "queue-peek", "wrong answer", "an answer has 0 messages instead of 1");
    check("", "queue-mixed", "wrong answer", "an answer has 0 messages instead of 1");
    check("0000000000000001", "queue-get-delete", "wrong answer", "message 1 was given out twice");
    check("0000000000000001", "queue-update", "wrong answer", "an update gave the old receipt");
    check("0000000000000001", "queue-peek", "count: wrong answer", "have 3 messages and should have 60");
    check("no receipt", "queue-put", "", "can't load: wrong answer: an answer has no id or no receipt");
}

/// With few blobs, whose blocks are smaller than they are.
fn bench_blobs(bytes: &str, address: SocketAddr, arguments: &[&str]) -> Output {
    let mut command = binary();
    command
        .args(["bench", "--connection-string", &connection_string("Blob", address)])
        .args(["--blobs", "130", "--blob-bytes", bytes, "--block-bytes", "40000", "--range-bytes", "1000"])
        .args(SMALL)
        .args(arguments);
    command.output().unwrap()
}

#[test]
fn every_workload_of_blobs_runs_without_failures() {
    let directory = tempfile::tempdir().unwrap();
    let server = Partita::in_directory(directory.path());
    let pid = server.process_id().to_string();
    for bytes in [100, 100_000] {
        let output = bench_blobs(
            &bytes.to_string(),
            server.blob_address(),
            &["blobs", "--count", "21", "--json", "--pid", &pid],
        );
        assert!(output.status.success(), "{}", error(&output));
        let report = report(&output);
        let workloads = report["endpoints"][0]["workloads"].as_array().unwrap();
        assert_eq!(workloads.len(), 8);
        for workload in workloads {
            assert_eq!(workload["operations"], 21, "{workload}");
            assert!(workload["server"]["cpu_micros_per_operation"].as_f64() > Some(0.0), "{workload}");
            let moved = match workload["workload"].as_str().unwrap() {
                "blob-list" | "blob-folders" => None,
                "blob-range" => Some(f64::from(bytes.min(1000))),
                _ => Some(f64::from(bytes)),
            };
            let speed = workload["operations_per_second"].as_f64().unwrap();
            assert_eq!(workload["bytes_per_second"].as_f64(), moved.map(|moved| moved * speed), "{workload}");
        }
    }
    let left = server.blob_client().send("GET", "/?comp=list", &[("x-ms-version", "2019-02-02")], b"");
    assert!(left.text().contains("<Containers />"), "containers are deleted in the end: {}", left.text());
}

#[test]
fn kept_blobs_are_used_only_with_reuse() {
    let server = Partita::in_memory();
    let run = |bytes: &str, kept: &str, expected: Result<(), &str>| {
        let output = bench_blobs(bytes, server.blob_address(), &["blob-get,blob-list", "--count", "9", kept]);
        match expected {
            Ok(()) => assert!(output.status.success(), "{}", error(&output)),
            Err(text) => {
                assert!(!output.status.success() && error(&output).contains(text), "{}", error(&output));
            }
        }
    };
    run("100", "--reuse", Err("load it with --keep, and without --reuse"));
    run("100", "--keep", Ok(()));
    run("100", "--keep", Err("use it with --reuse, or choose another --table"));
    run("100", "--reuse", Ok(()));
    run("101", "--reuse", Err("load it with --keep, and without --reuse"));
}

#[test]
fn wrong_answers_of_blobs_are_detected() {
    let check = |content: &'static str, workload: &'static str, label: &str, sample: &str| {
        let address = server(move |method, _| {
            let (status, body) = match method {
                "GET" if workload == "blob-range" => ("206 Partial Content", content),
                "GET" => ("200 OK", content),
                "DELETE" => ("202 Accepted", ""),
                _ => ("201 Created\r\nx-ms-blob-append-offset: 100", ""),
            };
            format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        });
        let output = bench_blobs("100", address, &[workload, "--count", "6", "--json"]);
        assert!(!output.status.success(), "{workload}: {content}");
        let summary = &report(&output)["endpoints"][0]["workloads"][0];
        let failed = &summary["failures"][label];
        assert!(failed["count"].as_u64() > Some(0), "{summary}");
        assert!(failed["sample"].as_str().unwrap().contains(sample), "{summary}");
    };
    const HUNDRED: &str = "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789";
    let other = "of the content is another than was put there";
    check(HUNDRED, "blob-get", "wrong answer", other);
    check(HUNDRED, "blob-range", "wrong answer", other);
    check("short", "blob-get", "wrong answer", "content has 5 bytes instead of 100");
    check(HUNDRED, "blob-put", "read back: wrong answer", other);
    check(HUNDRED, "blob-blocks", "read back: wrong answer", other);
    check("<Name>other</Name>", "blob-list", "wrong answer", "name 0 of the list of 100/000000/");
    check("", "blob-folders", "wrong answer", "has 0 names instead of 2");
    check(HUNDRED, "blob-append", "wrong answer", "a block was appended at Some(100) and not at 0");
}

#[test]
fn at_a_fixed_rate_requests_begin_in_time_and_latency_counts_from_then() {
    const TAKES: std::time::Duration = std::time::Duration::from_millis(20);
    let address = server(move |method, _| {
        if method == "GET" {
            std::thread::sleep(TAKES);
        }
        let body = "<MessageId>1</MessageId><PopReceipt>2</PopReceipt>";
        let status = if method == "GET" { "200 OK" } else { "201 Created" };
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    });
    let run = |arguments: &[&str]| {
        let fixed = ["queue-peek", "--trust-answers", "--json", "--warmup", "0", "--waiting", "1"];
        let output = binary()
            .args(["bench", "--connection-string", &connection_string("Queue", address)])
            .args(fixed)
            .args(arguments)
            .output()
            .unwrap();
        let report = report(&output);
        let workload = report["endpoints"][0]["workloads"][0].clone();
        let latency = |name: &str| workload["latency_micros"][name].as_u64().unwrap();
        (workload["operations"].as_u64().unwrap(), latency("p50"), latency("max"))
    };
    // With one connection, the last of 200 has to wait until 199 have ended. They are so many that a pause of the machine can't
    // make most of the others as late.
    let (operations, waiting, longest) = run(&["--rate", "100", "--seconds", "2", "--connections", "1"]);
    assert_eq!(operations, 200);
    assert!(waiting >= 800_000 && longest >= 1_900_000, "{waiting} {longest}");
    // 100 a second of 20 ms each keep two connections busy: with 16, none waits for another.
    let (operations, middle, _) = run(&["--rate", "100", "--seconds", "2", "--connections", "16"]);
    assert_eq!(operations, 200);
    assert!(middle < waiting, "{middle} {waiting}");
    // A closed loop does not notice that one connection is too few.
    let (_, middle, _) = run(&["--count", "50", "--connections", "1"]);
    assert!(middle < waiting, "{middle} {waiting}");
}
