//! The stream of events.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use super::kit::{JSON, TOKEN, Visitor, other_owner, owner, two_accounts};
use crate::support::{ACCOUNT, Partita, binary};

/// Whatever is awaited comes long before.
const PULSES_MAX: usize = 60;

struct Stream(BufReader<TcpStream>);

impl Stream {
    fn open(address: SocketAddr, cookie: &str) -> Self {
        Self::ask(address, cookie).unwrap_or_else(|head| panic!("{head:?}"))
    }

    /// The stream, or the head of another answer.
    fn ask(address: SocketAddr, cookie: &str) -> Result<Self, Vec<String>> {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let head = format!(
            "GET /api/events HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nCookie: {cookie}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut stream = Self(BufReader::new(stream));
        let head: Vec<String> =
            std::iter::from_fn(|| stream.line().filter(|line| !line.is_empty())).collect();
        let is_stream = head.iter().any(|line| line == "content-type: text/event-stream");
        if head[0].contains("200") && is_stream { Ok(stream) } else { Err(head) }
    }

    /// The status of an answer that is no stream.
    fn refused(address: SocketAddr, cookie: &str) -> String {
        let Err(head) = Self::ask(address, cookie) else { panic!("a stream was opened") };
        head[0].clone()
    }

    /// `None` at the end.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.0.read_line(&mut line).unwrap();
        (read > 0).then(|| line.trim_end().to_owned())
    }

    /// The next event of a name.
    fn next(&mut self, name: &str) -> Option<Value> {
        let mut pulses = 0;
        loop {
            let line = self.line()?;
            if line == format!("event: {name}") {
                let data = self.line()?;
                return serde_json::from_str(data.strip_prefix("data: ").unwrap()).ok();
            }
            pulses += usize::from(line == "event: pulse");
            assert!(pulses < PULSES_MAX, "no {name} in {pulses} pulses");
        }
    }

    /// Reads what is left, of which there must be an end.
    fn drain(mut self) {
        let pulses = std::iter::from_fn(|| self.next("pulse")).take(PULSES_MAX).count();
        assert!(pulses < PULSES_MAX, "it goes on after {pulses} pulses");
    }
}

#[test]
fn a_session_hears_the_pulse_and_its_own_accounts_requests() {
    let server = two_accounts(&[]);
    let visitor = Visitor::signed_in(&server, &owner());
    let mut stream = Stream::open(server.admin_address(), &visitor.cookie);
    assert_eq!(stream.next("pulse").unwrap()["connections"], Value::Null, "those of the server");
    let mut other = Visitor::signed_in(&server, &other_owner());
    assert_eq!(other.table("GET", "/Private()", "").status, 404);
    assert_eq!(server.client().send("GET", "/Missing()?$filter=Secret%20eq%201", &[JSON], b"").status, 404);
    let heard = stream.next("request").unwrap();
    assert_eq!(heard["path"], "/devstoreaccount1/Missing()", "only its own, without the query");
    assert_eq!((heard["status"].as_u64(), heard["account"].as_str()), (Some(404), Some("devstoreaccount1")));
    assert_eq!((heard["service"].as_str(), heard["method"].as_str()), (Some("table"), Some("GET")));
    let hot = stream.next("hot").unwrap();
    assert!(hot["this_minute"]["partitions"].is_array(), "{hot}");
}

#[test]
fn the_pulse_of_a_session_is_that_of_its_account_and_the_administrators_that_of_the_server() {
    let server = two_accounts(&[]);
    let visitor = Visitor::signed_in(&server, &owner());
    let mut stream = Stream::open(server.admin_address(), &visitor.cookie);
    stream.next("pulse").unwrap();
    let mut other = Visitor::signed_in(&server, &other_owner());
    for _ in 0..5 {
        assert_eq!(other.table("GET", "/Private()", "").status, 404);
    }
    assert_eq!(server.client().send("GET", "/Missing()", &[JSON], b"").status, 404);
    // Those of the other account came first, so they would be counted by now.
    let (mut requests, mut errors) = (0, 0);
    while requests == 0 {
        let pulse = stream.next("pulse").unwrap();
        requests += pulse["requests"].as_u64().unwrap();
        errors += pulse["errors"].as_u64().unwrap();
        assert!(requests == 0 || pulse["p99_ms"].as_f64().unwrap() > 0.0, "{pulse}");
    }
    assert_eq!((requests, errors), (1, 1));

    let admin = Visitor::signed_in(&server, &json!({ "admin_token": TOKEN }));
    let mut stream = Stream::open(server.admin_address(), &admin.cookie);
    let pulse = stream.next("pulse").unwrap();
    for name in ["connections", "entities_examined", "bytes_out", "resident_bytes"] {
        assert!(pulse[name].is_u64(), "{name}: {pulse}");
    }
}

#[test]
fn only_so_many_follow() {
    let server = Partita::in_memory();
    let mut visitor = Visitor::developer(&server);
    let streams: Vec<_> = (0..16).map(|_| Stream::open(server.admin_address(), &visitor.cookie)).collect();
    let refused = Stream::refused(server.admin_address(), &visitor.cookie);
    assert!(refused.starts_with("HTTP/1.1 429"), "{refused}");
    drop(streams);
    // The server notices when it sends the next pulse.
    let mut tries = 0;
    while visitor.get("/api/session").status == 200 && tries < 600 {
        let mut stream = TcpStream::connect(server.admin_address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        write!(stream, "GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        if line.contains("200") {
            return;
        }
        tries += 1;
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("the places of the streams that ended are not given back");
}

#[test]
fn a_stream_ends_with_its_session() {
    let server = Partita::in_memory();
    let mut visitor = Visitor::developer(&server);
    let mut stream = Stream::open(server.admin_address(), &visitor.cookie);
    stream.next("pulse").unwrap();
    assert_eq!(visitor.send("DELETE", "/api/session", &[], b"").status, 204);
    stream.drain();
}

#[test]
fn a_stream_ends_with_the_key_of_its_session() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("partita.toml");
    let write =
        |key: &str| std::fs::write(&file, format!("[[account]]\nname = 'shop'\nkey = '{key}'\n")).unwrap();
    let (old, new) = ("AAAAAAAAAAAAAAAAAAAAAA==", "BBBBBBBBBBBBBBBBBBBBBA==");
    write(old);
    let file = file.display().to_string();
    let server = Partita::start(&["--in-memory", "--config", &file, "--admin-token", TOKEN]);
    let mut visitor = Visitor::signed_in(&server, &json!({ "account": "shop", "key": old }));
    let mut stream = Stream::open(server.admin_address(), &visitor.cookie);
    stream.next("pulse").unwrap();
    write(new);
    let bearer = format!("Bearer {TOKEN}");
    let reloaded = visitor.plain("POST", "/api/commands/reload", &[("authorization", &bearer)], b"");
    assert_eq!(reloaded.status, 200, "{}", reloaded.text());
    stream.drain();
    let refused = Stream::refused(server.admin_address(), &visitor.cookie);
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
}

#[test]
fn a_token_hears_how_many_requests_there_are_and_not_which() {
    let server = two_accounts(&[]);
    let made = binary().args(["sas", "table", "--table", "Own", "--permissions", "r"]).output().unwrap();
    let sas = String::from_utf8(made.stdout).unwrap();
    let guest = json!({ "sas": format!("?{}", sas.trim()), "account": ACCOUNT });
    let guest = Visitor::signed_in(&server, &guest);
    let mut stream = Stream::open(server.admin_address(), &guest.cookie);
    stream.next("pulse").unwrap();
    let secret = "/Secret(PartitionKey='hidden',RowKey='r')";
    assert_eq!(server.client().send("GET", secret, &[JSON], b"").status, 404);
    // A request is counted when it is told, so that it would be told before the pulse that counts it.
    loop {
        let line = stream.line().unwrap();
        assert!(!line.contains("hidden") && line != "event: request" && line != "event: hot", "{line}");
        let data = line.strip_prefix("data: ").unwrap_or("{}");
        if serde_json::from_str::<Value>(data).unwrap()["requests"].as_u64().is_some_and(|count| count > 0) {
            break;
        }
    }
}

#[test]
fn an_account_that_follows_as_often_as_it_can_keeps_nobody_else_from_it() {
    let server = two_accounts(&[]);
    let greedy = Visitor::signed_in(&server, &owner());
    let streams: Vec<_> = (0..8).map(|_| Stream::open(server.admin_address(), &greedy.cookie)).collect();
    let refused = Stream::refused(server.admin_address(), &greedy.cookie);
    assert!(refused.starts_with("HTTP/1.1 429"), "{refused}");
    for credential in [other_owner(), json!({ "admin_token": TOKEN })] {
        let visitor = Visitor::signed_in(&server, &credential);
        Stream::open(server.admin_address(), &visitor.cookie).next("pulse").unwrap();
    }
    drop(streams);
}

#[test]
fn a_stream_does_not_keep_a_server_from_stopping() {
    // Far more than a stop may take here.
    let server = Partita::start(&["--in-memory", "--shutdown-seconds", "600"]);
    let visitor = Visitor::developer(&server);
    let mut stream = Stream::open(server.admin_address(), &visitor.cookie);
    stream.next("pulse").unwrap();
    assert!(server.stop().success());
    stream.drain();
}

#[test]
fn a_client_that_does_not_read_hears_how_much_it_missed() {
    let server = Partita::in_memory();
    let visitor = Visitor::developer(&server);
    let mut stream = Stream::open(server.admin_address(), &visitor.cookie);
    stream.next("pulse").unwrap();
    let mut client = server.client();
    for _ in 0..200 {
        client.send("GET", "/Tables", &[JSON], b"");
    }
    let skipped = stream.next("skipped").unwrap();
    assert!(skipped.as_u64().is_some_and(|count| count > 0), "{skipped}");
}
