//! A server whose peak memory is measured, and helpers for expensive requests.

use std::fmt::Write as _;
use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::support::http::read_answer;
use crate::support::{Answer, Client, Partita};

pub const JSON: (&str, &str) = ("Accept", "application/json;odata=nometadata");
pub const JSON_BODY: (&str, &str) = ("Content-Type", "application/json");
pub const BATCH: (&str, &str) = ("Content-Type", "multipart/mixed; boundary=b");

/// A server with an empty table `Big`.
pub struct Target {
    pub server: Partita,
    _directory: TempDir,
}

impl Target {
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_with(&[&["--cache-mib", "64"], arguments].concat())
    }

    pub fn start_with(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().display().to_string();
        let server = Partita::start(&[&["--data", &data], arguments].concat());
        let target = Self { server, _directory: directory };
        let created = target.client().send("POST", "/Tables", &[JSON_BODY, JSON], br#"{"TableName":"Big"}"#);
        assert_eq!(created.status, 201);
        target
    }

    pub fn client(&self) -> Client {
        self.server.client()
    }

    /// Inserts these properties under a row key of partition `p`.
    pub fn insert(&self, client: &mut Client, row: &str, properties: &str) {
        let comma = if properties.is_empty() { "" } else { "," };
        let body = format!(r#"{{"PartitionKey":"p","RowKey":"{row}"{comma}{properties}}}"#);
        let headers = [JSON_BODY, JSON, ("Prefer", "return-no-content")];
        let answer = client.send("POST", "/Big", &headers, body.as_bytes());
        assert_eq!(answer.status, 204, "{}", answer.text());
    }

    /// How much the work raises the peak memory of the process above the present memory, in MiB.
    pub fn peak_of(&self, work: impl FnOnce()) -> u64 {
        let process = self.server.process_id();
        // Resets the peak to the present memory.
        std::fs::write(format!("/proc/{process}/clear_refs"), "5").unwrap();
        let before = self.server.memory_kib();
        work();
        let peak = self.server.peak_memory_kib();
        let grown = peak.saturating_sub(before) / 1024;
        println!("peak: {grown} MiB above {} MiB", before / 1024);
        grown
    }

    /// Sends the same request on several connections at once, `rounds` times on each. Returns the statuses.
    pub fn flood(&self, connections: usize, rounds: usize, request: &[u8]) -> Vec<u16> {
        flood(self.server.address, connections, rounds, request)
    }

    pub fn connect(&self) -> TcpStream {
        connect(self.server.address)
    }

    pub fn is_well(&self) {
        let answer = self.client().send_raw("GET", "/health/ready", &[], b"").unwrap();
        assert_eq!(answer.status, 200);
    }
}

/// Sends the same request to this address on several connections at once, `rounds` times on each. Returns the statuses.
pub fn flood(address: SocketAddr, connections: usize, rounds: usize, request: &[u8]) -> Vec<u16> {
    thread::scope(|threads| {
        let senders: Vec<_> =
            (0..connections).map(|_| threads.spawn(|| send_often(address, rounds, request))).collect();
        senders.into_iter().flat_map(|sender| sender.join().unwrap()).collect()
    })
}

fn send_often(address: SocketAddr, rounds: usize, request: &[u8]) -> Vec<u16> {
    let mut stream = None;
    let mut statuses = Vec::new();
    for _ in 0..rounds {
        let connection = stream.get_or_insert_with(|| BufReader::new(connect(address)));
        // A server that refuses early may stop reading; its answer can still be read.
        let _ = connection.get_mut().write_all(request);
        match read_answer(connection, false) {
            // On a very busy machine a request can run out of time, which is as good as turned away.
            Ok(answer) if answer.code() == "OperationTimedOut" => statuses.push(503),
            Ok(answer) => statuses.push(answer.status),
            Err(_) => {
                statuses.push(0);
                stream = None;
            }
        }
    }
    statuses
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// A batch of one GET.
pub fn query_batch(target: &str) -> Vec<u8> {
    let accept = "Accept: application/json;odata=nometadata";
    format!(
        "--b\r\nContent-Type: application/http\r\n\r\nGET {target} HTTP/1.1\r\n{accept}\r\n\r\n\r\n--b--\r\n"
    )
    .into_bytes()
}

/// A change set of these parts: method, target, headers and body of each.
pub fn change_set<'a>(parts: impl IntoIterator<Item = (&'a str, String, &'a str, String)>) -> Vec<u8> {
    let mut out = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n".to_owned();
    for (method, target, headers, body) in parts {
        let _ = write!(
            out,
            "--c\r\nContent-Type: application/http\r\n\r\n{method} {target} HTTP/1.1\r\nContent-Type: application/json\r\n{headers}\r\n{body}\r\n"
        );
    }
    out.push_str("--c--\r\n--b--\r\n");
    out.into_bytes()
}

/// Percent-encodes a text for a query string.
pub fn encode(text: &str) -> String {
    text.replace('%', "%25").replace(' ', "%20").replace('\'', "%27")
}

/// The status of the only part of a batch's answer.
pub fn part_status(answer: &Answer) -> u16 {
    let text = answer.text();
    let line = text.lines().find(|line| line.starts_with("HTTP/1.1 ")).unwrap_or_default();
    line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}
