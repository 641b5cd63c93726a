//! A keyspace of a test's own on a cluster that `PARTITA_TEST_CASSANDRA` names.

use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use super::binary;

/// The cluster's nodes, with commas; says so if there are none, and the test that asked passes.
pub fn nodes() -> Option<String> {
    let nodes = std::env::var("PARTITA_TEST_CASSANDRA").ok().filter(|nodes| !nodes.is_empty());
    if nodes.is_none() {
        eprintln!("not run: PARTITA_TEST_CASSANDRA names no cluster");
    }
    nodes
}

/// An address of a keyspace that nobody else has, and that is not there yet. One copy of everything will do.
pub fn new_address(nodes: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let (number, process) = (NEXT.fetch_add(1, Ordering::Relaxed), std::process::id());
    format!("cassandra://{nodes}/test_{:x}_{process}_{number}", now.as_millis())
}

/// A keyspace ready for servers, and the address that they take.
pub fn new_store(nodes: &str) -> String {
    let address = new_address(nodes);
    let output = partita(&["store", "init", &address, "--replication-factor", "1"]);
    assert!(output.status.success(), "{output:?}");
    format!("{address}?unsafe=true&table-lease-ms=100")
}

pub fn partita(arguments: &[&str]) -> Output {
    binary().args(arguments).stdin(Stdio::null()).output().unwrap()
}
