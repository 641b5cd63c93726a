//! A cluster to test against, if the environment names one, and a keyspace for each test.

#![allow(clippy::unwrap_used, reason = "these are tests: what is unwrapped is asserted")]

use std::sync::Arc;
use std::time::Duration;

use engine_cassandra::{CassandraEngine, Options, connect, init};
use scylla::client::session::Session;
use scylla::statement::unprepared::Statement;
use uuid::Uuid;

/// `host[:port]`, with commas between; `./test` starts a node and sets it.
const NODES: &str = "PARTITA_TEST_CASSANDRA";

/// The nodes to test against, if there are any.
pub fn nodes() -> Option<Vec<String>> {
    let nodes = testing::needed(NODES, "`./test rust` starts a Cassandra node and sets it")?;
    Some(nodes.split(',').map(str::to_owned).collect())
}

/// Options for a new keyspace, with leases short enough for tests.
pub async fn fresh_keyspace(nodes: &[String]) -> Options {
    let mut options = Options::new(nodes.to_vec(), format!("test_{}", Uuid::new_v4().simple()));
    options.table_lease = Duration::from_millis(50);
    let session = connect(&options).await.unwrap();
    let copies = nodes.len().min(3);
    init(
        &session,
        &options.keyspace,
        &format!("{{'class': 'SimpleStrategy', 'replication_factor': {copies}}}"),
    )
    .await
    .unwrap();
    options
}

/// Runs a statement that changes tables. Other tests do that too, and a cluster does one after the other.
pub async fn change_schema(session: &Session, text: impl Into<String>) {
    let mut statement = Statement::new(text);
    statement.set_request_timeout(Some(Duration::from_secs(300)));
    session.query_unpaged(statement, ()).await.unwrap();
}

/// Drops the keyspace if the cluster does it in time. A keyspace that stays harms no other test.
pub async fn drop_keyspace(options: &Options) {
    let session = connect(options).await.unwrap();
    if let Err(error) = session.query_unpaged(format!("DROP KEYSPACE {}", options.keyspace), ()).await {
        eprintln!("keyspace {} stays: {error}", options.keyspace);
    }
}

pub async fn open(options: &Options) -> Arc<CassandraEngine> {
    let session = connect(options).await.unwrap();
    Arc::new(CassandraEngine::open(session, options).await.unwrap())
}
