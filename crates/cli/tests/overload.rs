//! Overload: the server stays within its memory limit, keeps answering others, answers 503 where it can't, and recovers
//! afterwards.
//!
//! Small by default. `OVERLOAD=full` has the size of docs/reliability.md; prints figures.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

mod support;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use support::{Client, Partita};
use tempfile::TempDir;

const JSON: [(&str, &str); 2] =
    [("Accept", "application/json;odata=nometadata"), ("Content-Type", "application/json")];
/// Memory that the allocator keeps, the engine's buffers, and the copies of one request.
const SLACK_KIB: u64 = 96 * 1024;

fn is_full() -> bool {
    std::env::var("OVERLOAD").is_ok_and(|size| size == "full")
}

fn scaled(small: usize, full: usize) -> usize {
    if is_full() { full } else { small }
}

struct Target {
    server: Partita,
    _directory: TempDir,
}

impl Target {
    /// With a table of `partitions` × 100 rows of 1 KiB.
    fn start(arguments: &[&str], partitions: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().display().to_string();
        let server = Partita::start(&[&["--data", &data, "--cache-mib", "64"], arguments].concat());
        let mut client = server.client();
        assert_eq!(client.send("POST", "/Tables", &JSON, br#"{"TableName":"Books"}"#).status, 201);
        let text = "x".repeat(1000);
        for partition in 0..partitions {
            let bodies = (0..100).map(|row| {
                format!(r#"{{"PartitionKey":"p{partition:05}","RowKey":"r{row:03}","Text":"{text}"}}"#)
            });
            let mut body = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n".to_owned();
            for entity in bodies {
                body.push_str(&format!(
                    "--c\r\nContent-Type: application/http\r\n\r\nPOST /Books HTTP/1.1\r\nPrefer: return-no-content\r\nContent-Type: application/json\r\n\r\n{entity}\r\n"
                ));
            }
            body.push_str("--c--\r\n--b--\r\n");
            let headers = [("Content-Type", "multipart/mixed; boundary=b")];
            assert_eq!(client.send("POST", "/$batch", &headers, body.as_bytes()).status, 202);
        }
        Self { server, _directory: directory }
    }

    fn address(&self) -> SocketAddr {
        self.server.address
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(40))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(40))).unwrap();
        stream
    }

    fn memory(&self) -> u64 {
        self.server.memory_kib()
    }

    fn signed(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
        self.server.client().signed(method, path, headers, body)
    }

    fn is_well(&self) {
        let mut client = self.server.client();
        assert_eq!(get(&mut client), 200);
        assert_eq!(client.send_raw("GET", "/health/ready", &[], b"").unwrap().status, 200);
    }
}

fn get(client: &mut Client) -> u16 {
    client.send("GET", "/Books(PartitionKey='p00000',RowKey='r000')", &JSON, b"").status
}

fn page(client: &mut Client) -> u16 {
    client.send("GET", "/Books()", &JSON, b"").status
}

fn percentile(times: &mut [Duration], of_hundred: usize) -> Duration {
    times.sort();
    times[(times.len() - 1) * of_hundred / 100]
}

#[test]
fn idle_connections_cost_little_and_do_not_block_new_ones() {
    let count = scaled(2_000, 10_000);
    rlimit::increase_nofile_limit(count as u64 + 500).unwrap();
    let target = Target::start(&["--max-connections", &count.to_string()], 1);
    let before = target.memory();
    let mut idle: Vec<TcpStream> = (0..count - 10).map(|_| target.connect()).collect();
    target.is_well();
    let grown = target.memory().saturating_sub(before);
    println!("{count} idle connections: {} KiB each", grown / count as u64);
    assert!(grown / (count as u64) < 64, "grew by {grown} KiB");

    // More than the limit: new connections replace those that have been idle for a second.
    thread::sleep(Duration::from_millis(1100));
    idle.extend((0..50).map(|_| target.connect()));
    target.is_well();
    let mut newest = idle.pop().unwrap();
    newest.write_all(b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = [0; 12];
    newest.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    drop(idle);
    target.is_well();
}

#[test]
fn unread_answers_take_bounded_memory_and_are_closed() {
    let target = Target::start(&["--request-mib", "16", "--idle-seconds", "3"], 40);
    let before = target.memory();
    let count = scaled(60, 400);
    let ask = target.signed("GET", "/Books()", &JSON[..1], b"");
    let mut unread: Vec<TcpStream> = Vec::new();
    let mut client = target.server.client();
    // Again, if the machine is so busy that the first are disconnected before the last have asked.
    let refused = testing::wait_until("16 MiB do not hold so many pages", || {
        unread = (0..count).map(|_| target.connect()).collect();
        for _ in 0..8 {
            for stream in &mut unread {
                // Pipelined, so that the kernel's buffers fill up. A closed connection was served before.
                let _ = stream.write_all(&ask);
            }
        }
        let mut refused = 0;
        for _ in 0..20 {
            assert_eq!(get(&mut client), 200, "a small answer has its place");
            let status = page(&mut client);
            assert!(matches!(status, 200 | 503), "{status}");
            refused += usize::from(status == 503);
        }
        (refused > 0).then_some(refused)
    });
    let grown = target.memory().saturating_sub(before);
    println!("{count} connections that read nothing: grew by {grown} KiB, {refused} of 20 pages refused");
    assert!(grown < 16 * 1024 + 64 * 1024 + SLACK_KIB, "grew by {grown} KiB");

    // Clients that read nothing for three seconds are disconnected.
    testing::wait_until("they hold no memory", || (page(&mut client) == 200).then_some(()));
    drop(unread);
    target.is_well();
}

#[test]
fn bodies_beyond_the_memory_limit_get_503() {
    let target = Target::start(&["--request-mib", "16"], 1);
    let before = target.memory();
    let count = scaled(40, 300);
    let head = target.signed("POST", "/Books", &[JSON[1], ("Content-Length", "4000000")], b"");
    let mut streams: Vec<TcpStream> = (0..count).map(|_| target.connect()).collect();
    let piece = vec![b' '; 3_900_000];
    let senders: Vec<_> = streams
        .iter_mut()
        .map(|stream| {
            stream.write_all(&head).unwrap();
            let (mut stream, piece) = (stream.try_clone().unwrap(), piece.clone());
            thread::spawn(move || {
                // The rest is never sent. A refused connection may already be closed.
                let _ = stream.write_all(&piece);
            })
        })
        .collect();
    for sender in senders {
        sender.join().unwrap();
    }
    target.is_well();
    let grown = target.memory().saturating_sub(before);
    println!("{count} bodies of 4 MB that never end: grew by {grown} KiB");
    assert!(grown < 16 * 1024 + SLACK_KIB, "grew by {grown} KiB");
    let refused = streams.iter_mut().filter_map(|stream| {
        stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).ok().map(|()| String::from_utf8_lossy(&status).into_owned())
    });
    let refused: Vec<String> = refused.collect();
    assert!(!refused.is_empty() && refused.iter().all(|line| line == "HTTP/1.1 503"), "{refused:?}");
    drop(streams);
    target.is_well();
}

#[test]
fn endless_heads_share_the_memory_limit() {
    let count = scaled(400, 8_000);
    rlimit::increase_nofile_limit(count as u64 + 500).unwrap();
    let target = Target::start(&["--request-mib", "16"], 1);
    let before = target.memory();
    let head = format!("GET / HTTP/1.1\r\nHost: x\r\nX-Long: {}", "x".repeat(120 * 1024));
    let mut streams: Vec<TcpStream> = (0..count).map(|_| target.connect()).collect();
    for stream in &mut streams {
        let _ = stream.write_all(head.as_bytes());
    }
    target.is_well();
    let grown = target.memory().saturating_sub(before);
    println!("{count} heads of 120 KiB that never end: grew by {grown} KiB");
    // Plus the cost of each connection, and the uncounted part of each head.
    assert!(grown < 16 * 1024 + count as u64 * 64 + SLACK_KIB, "grew by {grown} KiB");
    let closed = streams.iter().filter(|stream| {
        stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let waits = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
        let mut reader: &TcpStream = stream;
        !reader.read(&mut [0; 1]).is_err_and(|error| waits(&error))
    });
    let closed = closed.count();
    println!("  {closed} of them closed");
    assert!(closed >= count / 2, "16 MiB hold about 150 of them");
    drop(streams);
    target.is_well();
}

#[test]
fn a_flood_of_scans_lets_others_through() {
    let target = Target::start(&[], scaled(100, 1_000));
    let before = target.memory();
    let (floods, asks) = (scaled(64, 2_000), scaled(50, 300));
    rlimit::increase_nofile_limit(floods as u64 + 500).unwrap();
    let stop = &AtomicBool::new(false);
    let query = "/Books()?$filter=Text%20eq%20'nothing'&$select=RowKey";
    thread::scope(|threads| {
        let flood: Vec<_> = (0..floods)
            .map(|_| {
                thread::Builder::new().stack_size(128 * 1024).spawn_scoped(threads, || {
                    let mut statuses = BTreeMap::<u16, usize>::new();
                    let mut client = target.server.client();
                    while !stop.load(Ordering::Relaxed) {
                        let status = match client.try_send("GET", query, &JSON, b"") {
                            // On a very busy machine its time can be over while it waits: as good as turned away.
                            Ok(answer) if answer.code() == "OperationTimedOut" => 503,
                            Ok(answer) => answer.status,
                            Err(_) => 0,
                        };
                        *statuses.entry(status).or_default() += 1;
                    }
                    statuses
                })
            })
            .collect::<Result<_, _>>()
            .unwrap();
        let mut client = target.server.client();
        let mut timed = |ask: &mut dyn FnMut(&mut Client) -> u16| {
            let started = Instant::now();
            let status = ask(&mut client);
            (status, started.elapsed())
        };
        let (mut gets, mut ranges, mut writes) = (Vec::new(), Vec::new(), Vec::new());
        let range = "/Books()?$filter=PartitionKey%20eq%20'p00000'%20and%20RowKey%20lt%20'r010'";
        for n in 0..asks {
            let (status, time) = timed(&mut get);
            assert_eq!(status, 200);
            gets.push(time);
            let (status, time) = timed(&mut |client| client.send("GET", range, &JSON, b"").status);
            assert!(matches!(status, 200 | 503), "{status}");
            ranges.push(time);
            let entity = format!(r#"{{"PartitionKey":"new","RowKey":"{n}"}}"#);
            let (status, time) =
                timed(&mut |client| client.send("POST", "/Books", &JSON, entity.as_bytes()).status);
            assert_eq!(status, 201);
            writes.push(time);
        }
        let grown = target.memory().saturating_sub(before);
        stop.store(true, Ordering::Relaxed);
        let mut statuses = BTreeMap::<u16, usize>::new();
        for (status, count) in flood.into_iter().flat_map(|flood| flood.join().unwrap()) {
            *statuses.entry(status).or_default() += count;
        }
        println!("{floods} scans of everything at a time, by status: {statuses:?}; grew by {grown} KiB");
        for (what, times) in [("get", &mut gets), ("range of 10", &mut ranges), ("insert", &mut writes)] {
            println!("  {what}: p50 {:?}, p99 {:?}", percentile(times, 50), percentile(times, 99));
        }
        assert!(statuses.keys().all(|status| matches!(status, 200 | 503)), "{statuses:?}");
        assert!(grown < 64 * 1024 + SLACK_KIB, "grew by {grown} KiB");
    });
    target.is_well();
}
