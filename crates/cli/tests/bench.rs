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
    let connection =
        format!("AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint=http://{address}/{ACCOUNT}");
    let mut command = binary();
    command
        .args(["bench", "--connection-string", &connection, "--entities", entities])
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
    let output = bench(server.address, &["--count", "20", "--json", "--pid", &pid]);
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
    let other =
        format!("AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint=http://{}/{ACCOUNT}", second.address);
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
    ] {
        let output = bench(nobody, &arguments);
        assert!(!output.status.success());
        assert!(error(&output).contains(expected), "{}", error(&output));
    }
}

/// Accepts every write, and answers every read with these bytes.
fn lying_server(answer: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // The thread ends with the test's process.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || lie(&stream.unwrap(), answer));
        }
    });
    address
}

fn lie(stream: &TcpStream, answer: &str) {
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
        let operations = String::from_utf8_lossy(&body).matches("POST ").count();
        let answer = match head.split([' ', '/']).next().unwrap() {
            "GET" => answer.to_owned(),
            "POST" if operations > 0 => {
                let body = "HTTP/1.1 204 No Content\r\n".repeat(operations);
                format!("HTTP/1.1 202 Accepted\r\nContent-Length: {}\r\n\r\n{body}", body.len())
            }
            _ => "HTTP/1.1 204 No Content\r\nETag: x\r\n\r\n".to_owned(),
        };
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
