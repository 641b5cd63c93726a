//! What clients without credentials can use up: connections, and lines in the log.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::Partita;

const PLACES: usize = 4;

/// How many of them are still open, whatever they have received.
fn open(streams: &mut [TcpStream]) -> usize {
    let is_open = |stream: &mut TcpStream| {
        stream.set_nonblocking(true).unwrap();
        loop {
            match stream.read(&mut [0; 4096]) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
    };
    streams.iter_mut().filter_map(|stream| is_open(stream).then_some(())).count()
}

/// Whether a new connection is answered although all were in use, and only one of the others was closed.
fn is_let_in(mut newcomer: TcpStream, others: &mut [TcpStream]) -> Result<(), String> {
    newcomer.set_read_timeout(Some(Duration::from_secs(6))).unwrap();
    newcomer.write_all(b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = [0; 12];
    newcomer.read_exact(&mut answer).map_err(|error| format!("it was not answered: {error}"))?;
    assert_eq!(&answer, b"HTTP/1.1 200");
    match open(others) {
        open if open == PLACES - 1 => Ok(()),
        open => Err(format!("one is closed for the new connection, and no other; {open} are open")),
    }
}

/// After this time the server closes such connections also if nobody needs their places. On a busy machine an attempt can take as
/// long; then there is another one.
fn before(time: Duration, attempt: impl Fn() -> Result<(), String>) {
    loop {
        let began = Instant::now();
        match attempt() {
            Ok(()) => return,
            Err(why) => assert!(began.elapsed() >= time, "{why}"),
        }
    }
}

#[test]
fn a_silent_tls_handshake_is_closed_for_a_new_connection() {
    let directory = tempfile::tempdir().unwrap();
    let certificates = directory.path().display().to_string();
    let places = PLACES.to_string();
    let arguments = [
        "--in-memory",
        "--dev-cert",
        &certificates,
        "--tls-listen",
        "127.0.0.1:0",
        "--max-connections",
        &places,
    ];
    let server = Partita::start(&arguments);
    let (_, https) = server.banner.split_once("https://").unwrap();
    let https: std::net::SocketAddr = https.split('/').next().unwrap().parse().unwrap();
    // The limit of a handshake.
    before(Duration::from_secs(10), || {
        let mut silent: Vec<_> = (0..PLACES).map(|_| TcpStream::connect(https).unwrap()).collect();
        // A connection counts as idle only after this time, and nothing signals that it has passed.
        thread::sleep(Duration::from_millis(1200));
        is_let_in(TcpStream::connect(server.address).unwrap(), &mut silent)
    });
}

#[test]
fn a_connection_with_a_refused_body_is_closed_for_a_new_one() {
    let server = Partita::start(&["--in-memory", "--max-connections", &PLACES.to_string()]);
    // The limit of a body that is not read.
    before(Duration::from_secs(5), || {
        let mut refused: Vec<_> = (0..PLACES).map(|_| TcpStream::connect(server.address).unwrap()).collect();
        for stream in &mut refused {
            stream
                .write_all(b"POST /devstoreaccount1/T HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
                .unwrap();
        }
        // A connection counts as idle only after this time, and nothing signals that it has passed.
        thread::sleep(Duration::from_millis(1200));
        is_let_in(TcpStream::connect(server.address).unwrap(), &mut refused)
    });
}

#[test]
fn refusals_are_logged_in_short_lines_and_not_all_of_them() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let server = Partita::logging_to(&log, "warn", &[]);
    let mut client = server.client();
    let path = format!("/devstoreaccount1/T{}", "x".repeat(20_000));
    let wrong = [("Authorization", "SharedKey devstoreaccount1:AAAA"), ("x-ms-date", "yesterday")];
    const REQUESTS: usize = 2000;
    for _ in 0..REQUESTS {
        assert_eq!(client.send_raw("GET", &path, &wrong, b"").unwrap().status, 403);
    }
    let log = std::fs::read_to_string(&log).unwrap();
    let lines = log.lines().filter(|line| line.contains("access refused")).count();
    assert!((1..REQUESTS).contains(&lines), "{lines} lines");
    let longest = log.lines().map(str::len).max().unwrap_or_default();
    assert!(longest <= 4096, "a line of {longest} bytes");
}
