//! What strangers can use up at the administration's port, and what of it the services feel.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::kit::{JSON, Visitor};
use crate::support::Partita;

/// Connects and sends half a head, if the server has room for another connection.
async fn dawdle(address: SocketAddr) -> Option<TcpStream> {
    let mut stream =
        tokio::time::timeout(Duration::from_secs(5), TcpStream::connect(address)).await.ok()?.ok()?;
    stream.write_all(b"GET /api/status HTTP/1.1\r\nHost: local").await.ok()?;
    Some(stream)
}

#[test]
fn ten_thousand_slow_connections_are_not_felt_at_the_services_ports() {
    let _ = rlimit::increase_nofile_limit(20_000);
    let server = Partita::in_memory();
    let (address, mut client) = (server.admin_address(), server.client());
    assert_eq!(client.send("GET", "/Tables", &[JSON], b"").status, 200);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let slow: Vec<_> = (0..10_000).map(|_| runtime.spawn(dawdle(address))).collect();
    for _ in 0..500 {
        // On the connection that was there before, and on new ones.
        assert_eq!(client.send("GET", "/Tables", &[JSON], b"").status, 200);
        assert_eq!(server.client().send("GET", "/Tables", &[JSON], b"").status, 200);
    }
    let mut open = Vec::new();
    for connection in slow {
        open.extend(runtime.block_on(connection).unwrap());
    }
    assert!(open.len() > 64, "{} were let in or wait", open.len());
    // 64 are served and one waits for a place; the rest wait in the kernel. The server has few sockets of other kinds.
    let sockets = sockets(server.process_id());
    assert!(sockets < 64 + 36, "{sockets} sockets are open in the server");
    for _ in 0..100 {
        assert_eq!(client.send("GET", "/Tables", &[JSON], b"").status, 200);
    }
    drop(open);
    // Slow ones make room, so that an administrator gets in, if only after those that wait before it.
    let status = Visitor::of(&server).get("/api/status").json();
    assert_eq!(status["connections"]["max"], 10_000, "those of the services");
    assert_eq!(status["memory"]["request_bytes_held"], 0);
    // The services have places of their own, which none of the slow ones took.
    let metrics = server.metrics();
    assert_eq!(metrics["partita_connections_accepted_total"], 501.0, "one that was there, and the new ones");
    assert_eq!(metrics["partita_connections_made_room_total"], 0.0);
}

/// Those that a process has open.
fn sockets(process: u32) -> usize {
    let files = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    let links = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
    links.filter(|link| link.to_string_lossy().starts_with("socket:")).count()
}

#[test]
fn a_long_head_is_refused() {
    let server = Partita::in_memory();
    let mut visitor = Visitor::of(&server);
    // More than twice the bound: what arrives at once with the last allowed byte may still be taken.
    let long = [("x-long", &*"a".repeat(400 * 1024))];
    let sent = std::panic::AssertUnwindSafe(|| visitor.send("GET", "/api/status", &long, b"").status);
    // hyper answers 431, or closes the connection while the rest is sent.
    let refused = std::panic::catch_unwind(sent);
    assert!(matches!(refused, Err(_) | Ok(431)), "{refused:?}");
    assert_eq!(Visitor::of(&server).get("/api/status").status, 200);
}

#[test]
fn strangers_whose_bodies_never_arrive_make_room() {
    let server = Partita::in_memory();
    let address = server.admin_address();
    let head = format!(
        "POST /api/session HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n"
    );
    let slow: Vec<std::net::TcpStream> = (0..64)
        .map(|_| {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            stream.write_all(head.as_bytes()).unwrap();
            stream
        })
        .collect();
    assert_eq!(Visitor::of(&server).get("/api/status").status, 200);
    let closed_unanswered = slow.iter().any(|stream| {
        stream.set_nonblocking(true).unwrap();
        match (&mut &*stream).read(&mut [0]) {
            Ok(answered) => answered == 0,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    });
    assert!(closed_unanswered, "the administrator had to wait until a body was late");
}
