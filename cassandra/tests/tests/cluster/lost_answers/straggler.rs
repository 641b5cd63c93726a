//! Delivers a late write: sends the engine's own bytes to the node over a new connection.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const REQUEST: u8 = 0x04;
const STARTUP: u8 = 0x01;
const READY: u8 = 0x02;
const RESULT: u8 = 0x08;
const BATCH: u8 = 0x0d;

/// A string map of one entry.
const OPTIONS: &[u8] = b"\x00\x01\x00\x0bCQL_VERSION\x00\x053.0.0";
/// The end of the answer to an applied write: a column of booleans, and one row with `true`.
const APPLIED: &[u8] = b"[applied]\x00\x04\x00\x00\x00\x01\x00\x00\x00\x01\x01";

/// Returns whether it was applied.
pub async fn deliver(node: SocketAddr, write: &[u8]) -> bool {
    let mut connection = TcpStream::connect(node).await.unwrap();
    assert_eq!(ask(&mut connection, STARTUP, OPTIONS).await.0, READY);
    let (kind, answer) = ask(&mut connection, BATCH, write).await;
    assert_eq!(kind, RESULT, "{}", String::from_utf8_lossy(&answer));
    assert!(answer.windows(9).any(|window| window == b"[applied]"));
    answer.ends_with(APPLIED)
}

async fn ask(connection: &mut TcpStream, kind: u8, body: &[u8]) -> (u8, Vec<u8>) {
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    let frame = [&[REQUEST, 0, 0, 1, kind], length.as_slice(), body].concat();
    connection.write_all(&frame).await.unwrap();
    let mut header = [0; 9];
    connection.read_exact(&mut header).await.unwrap();
    let length = u32::from_be_bytes([header[5], header[6], header[7], header[8]]);
    let mut body = vec![0; length as usize];
    connection.read_exact(&mut body).await.unwrap();
    (header[4], body)
}
