//! Writes whose requests or answers are lost, and whose outcome the engine has to settle: on a real node, with a
//! proxy that loses them. The tests drop the keyspace `partita_lost_answers`.

mod alone;
mod between;
mod cases;
mod chaos;
mod deaths;
mod rivals;
mod straggler;
mod tables;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use between::Between;
use cluster_tests::{nodes, open};
use engine_cassandra::{CassandraEngine, Options};
use model::{DateTime, KeyRange, ValueRef};
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session_builder::SessionBuilder;
use store::{Engine as _, StoredRef, TableRef};
use store_suite::{key, scan, table};
use testing::Patience;
use tokio::sync::OnceCell;
use uuid::Uuid;

const KEYSPACE: &str = "partita_lost_answers";

/// An engine behind a proxy, and another that is connected to the node directly.
struct Ground {
    options: Options,
    node: SocketAddr,
    between: Between,
    engine: Arc<CassandraEngine>,
    witness: Arc<CassandraEngine>,
    table: TableRef,
}

impl Ground {
    async fn new() -> Option<Self> {
        let nodes = nodes()?;
        static MADE: OnceCell<()> = OnceCell::const_new();
        let mut options = Options::new(nodes.clone(), KEYSPACE);
        options.table_lease = Duration::from_millis(50);
        MADE.get_or_init(|| make_keyspace(&nodes)).await;
        let node = address(&nodes[0]).await;
        let between = Between::start(node).await;
        let engine = open(&Options { nodes: vec![between.address.clone()], ..options.clone() }).await;
        let witness = open(&options).await;
        let table = table(&format!("Lost{}", Uuid::new_v4().simple()));
        witness.create_table(&table, None).await.unwrap();
        Some(Self { options, node, between, engine, witness, table })
    }

    async fn finish(mut self) {
        self.between.expect_nothing();
        self.engine.close().await;
        self.witness.close().await;
    }

    /// Waits until the engine has a connection again.
    async fn reconnected(&self) {
        let patience = Patience::new("the engine has a connection again");
        while self.engine.get(&self.table, &key("p", "r")).await.is_err() {
            tokio::time::sleep(patience.pause()).await;
        }
    }

    /// Delivers the lost requests. A request whose caller has an answer by now must not be applied.
    async fn deliver_lost(&mut self, what: &str) {
        for write in self.between.lost() {
            assert!(!straggler::deliver(self.node, &write).await, "{what}: applied after its answer");
        }
    }

    /// The partition's rows with their values and stamps.
    async fn rows(&self, partition: &str) -> Vec<(String, i32, DateTime)> {
        let page =
            self.witness.scan(&self.table, scan(vec![KeyRange::partition(partition)], 1000)).await.unwrap();
        let row = |entity: StoredRef<'_>| {
            let row = entity.row.open().unwrap();
            let Some(ValueRef::Int32(value)) = row.property("N") else { panic!("no N") };
            (entity.row_key.to_owned(), value, entity.row.timestamp().unwrap())
        };
        page.entities.iter().map(row).collect()
    }

    /// The same, without stamps.
    async fn values(&self, partition: &str) -> String {
        let rows = self.rows(partition).await;
        rows.iter().map(|(row, value, _)| format!("{row}={value}")).collect::<Vec<_>>().join(" ")
    }
}

/// One keyspace for all tests, new in every run: creating one takes longer than most tests.
async fn make_keyspace(nodes: &[String]) {
    let profile = ExecutionProfile::builder().request_timeout(Some(Duration::from_secs(120))).build();
    let session = SessionBuilder::new()
        .known_nodes(nodes)
        .default_execution_profile_handle(profile.into_handle())
        .build()
        .await
        .unwrap();
    session.query_unpaged(format!("DROP KEYSPACE IF EXISTS {KEYSPACE}"), ()).await.unwrap();
    let copies = nodes.len().min(3);
    let replication = format!("{{'class': 'SimpleStrategy', 'replication_factor': {copies}}}");
    engine_cassandra::init(&session, KEYSPACE, &replication).await.unwrap();
}

async fn address(node: &str) -> SocketAddr {
    let node = if node.contains(':') { node.to_owned() } else { format!("{node}:9042") };
    tokio::net::lookup_host(node).await.unwrap().next().unwrap()
}
