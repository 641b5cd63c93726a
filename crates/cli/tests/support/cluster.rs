//! A keyspace for one test, on the cluster that `PARTITA_TEST_CASSANDRA` names.

use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use super::binary;

/// The nodes of the cluster to test against, with commas, if there is one.
pub fn nodes() -> Option<String> {
    testing::needed("PARTITA_TEST_CASSANDRA", "`./test rust` starts a Cassandra node and sets it")
}

/// The address of a unique keyspace that does not exist yet.
pub fn new_address(nodes: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let (number, process) = (NEXT.fetch_add(1, Ordering::Relaxed), std::process::id());
    format!("cassandra://{nodes}/test_{:x}_{process}_{number}", now.as_millis())
}

/// Creates a keyspace with one copy of everything. Returns its address for servers.
pub fn new_store(nodes: &str) -> String {
    let address = new_address(nodes);
    let output = partita(&["store", "init", &address, "--replication-factor", "1"]);
    assert!(output.status.success(), "{output:?}");
    format!("{address}?unsafe=true&table-lease-ms=100")
}

pub fn partita(arguments: &[&str]) -> Output {
    binary().args(arguments).stdin(Stdio::null()).output().unwrap()
}
