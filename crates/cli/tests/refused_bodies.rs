//! A refusal reaches the client, even if most of the body is not sent yet.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::support::http::read_answer;
use crate::support::{ACCOUNT, Answer, Partita};

const MIB: usize = 1024 * 1024;
/// How long the server reads the rest of a refused request's body.
const DISCARD_TIME_MAX: Duration = Duration::from_secs(5);
const JSON: (&str, &str) = ("Accept", "application/json;odata=nometadata");
const JSON_BODY: (&str, &str) = ("Content-Type", "application/json");

struct Connection(BufReader<TcpStream>);

impl Connection {
    fn to(server: &Partita) -> Self {
        let stream = TcpStream::connect(server.address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
        Self(BufReader::new(stream))
    }

    fn write(&mut self, bytes: &[u8]) {
        self.try_write(bytes).unwrap();
    }

    fn try_write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.get_mut().write_all(bytes)
    }

    fn answer(&mut self) -> Answer {
        self.try_answer().unwrap()
    }

    fn try_answer(&mut self) -> io::Result<Answer> {
        read_answer(&mut self.0, false)
    }

    fn serves(&mut self, server: &Partita) {
        self.try_serves(server).unwrap();
    }

    /// The server has read the whole body: the next bytes are the next request.
    fn try_serves(&mut self, server: &Partita) -> io::Result<()> {
        self.try_write(&server.client().signed("GET", "/Tables", &[JSON], b""))?;
        assert_eq!(self.try_answer()?.status, 200);
        Ok(())
    }

    fn is_closed(&mut self) -> bool {
        !matches!(self.0.read(&mut [0; 1]), Ok(1..))
    }
}

fn length(bytes: usize) -> (&'static str, String) {
    ("Content-Length", bytes.to_string())
}

fn unsigned(announced: usize, more: &str) -> Vec<u8> {
    format!("POST /{ACCOUNT}/Tables HTTP/1.1\r\nHost: x\r\nContent-Length: {announced}\r\n{more}\r\n")
        .into_bytes()
}

fn signed(server: &Partita, method: &str, path: &str, announced: usize) -> Vec<u8> {
    let (name, value) = length(announced);
    server.client().signed(method, path, &[JSON, JSON_BODY, (name, &value)], b"")
}

/// The answer to a request of whose body `sent` bytes were sent; the rest follows the answer. If that took this process
/// longer than the server waits for the rest, it tries again.
fn hears(server: &Partita, head: &[u8], announced: usize, sent: usize) -> Answer {
    loop {
        let began = Instant::now();
        match try_hears(server, head, announced, sent) {
            Ok(answer) => return answer,
            Err(error) => assert!(began.elapsed() >= DISCARD_TIME_MAX, "{error}"),
        }
    }
}

fn try_hears(server: &Partita, head: &[u8], announced: usize, sent: usize) -> io::Result<Answer> {
    let mut connection = Connection::to(server);
    connection.try_write(head)?;
    connection.try_write(&vec![b' '; sent])?;
    let answer = connection.try_answer()?;
    connection.try_write(&vec![b' '; announced - sent])?;
    connection.try_serves(server)?;
    Ok(answer)
}

#[test]
fn a_request_refused_by_its_head_is_answered_before_its_body() {
    let server = Partita::in_memory();
    let announced = 3 * MIB;
    for sent in [0, 1, announced / 2, announced] {
        let anonymous = hears(&server, &unsigned(announced, ""), announced, sent);
        assert_eq!((anonymous.status, anonymous.code().as_str()), (403, "AuthenticationFailed"), "{sent}");
        let misplaced = hears(&server, &signed(&server, "PUT", "/Tables", announced), announced, sent);
        assert_eq!((misplaced.status, misplaced.code().as_str()), (405, "MethodNotAllowed"), "{sent}");
    }
}

#[test]
fn a_body_that_is_too_large_gets_its_refusal() {
    let server = Partita::in_memory();
    let announced = 5 * MIB;
    for sent in [0, MIB, announced] {
        let answer = hears(&server, &signed(&server, "POST", "/Tables", announced), announced, sent);
        assert_eq!((answer.status, answer.code().as_str()), (413, "RequestBodyTooLarge"), "{sent}");
    }

    // In chunks, the length is not known in advance.
    let chunk = [format!("{MIB:x}\r\n").as_bytes(), &vec![b' '; MIB], b"\r\n"].concat();
    let headers = [JSON, JSON_BODY, ("Transfer-Encoding", "chunked")];
    let mut connection = Connection::to(&server);
    connection.write(&server.client().signed("POST", "/Tables", &headers, b""));
    connection.write(&chunk.repeat(5));
    assert_eq!(connection.answer().status, 413);
    connection.write(&chunk.repeat(3));
    connection.write(b"0\r\n\r\n");
    connection.serves(&server);
}

#[test]
fn a_body_without_memory_for_it_gets_503() {
    let server = Partita::start(&["--in-memory", "--request-mib", "16"]);
    let announced = 4_000_000;
    let head = signed(&server, "POST", "/Tables", announced);
    // A body takes three times its length.
    let most = (11 * MIB) as f64;
    loop {
        // Takes most of the memory, and does not end before the other one is answered.
        let mut unfinished = Connection::to(&server);
        unfinished.write(&head);
        unfinished.write(&vec![b' '; announced - 1]);
        testing::wait_until("the memory is taken", || {
            (server.metrics()["partita_request_memory_bytes"] >= most).then_some(())
        });
        let answer = hears(&server, &head, announced, announced - MIB);
        // The server may have stopped waiting for the end of the first body, and then its memory was free.
        if unfinished
            .try_write(b" ")
            .and_then(|()| unfinished.try_answer())
            .is_ok_and(|end| end.status == 400)
        {
            assert_eq!((answer.status, answer.code().as_str()), (503, "ServerBusy"));
            return;
        }
    }
}

#[test]
fn an_endless_body_is_not_read_forever() {
    let server = Partita::in_memory();
    let mut connection = Connection::to(&server);
    connection.write(&unsigned(1024 * MIB, ""));
    assert_eq!(connection.answer().status, 403);
    let piece = vec![b' '; MIB];
    let sent = (0..256).take_while(|_| connection.0.get_mut().write_all(&piece).is_ok()).count();
    // The kernel buffers some megabytes more than the server reads.
    assert!(sent < 64, "{sent} MiB");
}

#[test]
fn no_100_continue_is_sent_for_a_request_that_is_refused() {
    let server = Partita::in_memory();
    let mut refused = Connection::to(&server);
    refused.write(&unsigned(3 * MIB, "Expect: 100-continue\r\n"));
    assert_eq!(refused.answer().status, 403);
    assert!(refused.is_closed());

    let body = br#"{"TableName":"Books"}"#;
    let (name, value) = length(body.len());
    let headers = [JSON, JSON_BODY, ("Expect", "100-continue"), (name, value.as_str())];
    let mut asked = Connection::to(&server);
    asked.write(&server.client().signed("POST", "/Tables", &headers, b""));
    assert_eq!(asked.answer().status, 100);
    asked.write(body);
    assert_eq!(asked.answer().status, 201);
    asked.serves(&server);
}
