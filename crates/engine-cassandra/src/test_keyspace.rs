//! For tests: independent servers on a keyspace of their own, on a real node.

use std::sync::Arc;
use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::clock::{Clock, Lease};
use crate::cluster::{Cluster, Link};
use crate::counters::Counts;
use crate::options::Options;
use crate::session::open as connect;
use crate::statements::Statements;

const NODES: &str = "PARTITA_TEST_CASSANDRA";

pub struct TestKeyspace(Options);

impl TestKeyspace {
    /// Each server has its own session, clock and slot.
    pub async fn with_servers(count: i64) -> Option<(Self, Vec<Arc<Cluster>>)> {
        let nodes = testing::needed(NODES, "`./test rust` starts a Cassandra node and sets it")?;
        let nodes: Vec<String> = nodes.split(',').map(str::to_owned).collect();
        let copies = nodes.len().min(3);
        let options = Options::new(nodes, format!("test_{}", Uuid::new_v4().simple()));
        let replication = format!("{{'class': 'SimpleStrategy', 'replication_factor': {copies}}}");
        crate::init(&connect(&options).await.unwrap(), &options.keyspace, &replication).await.unwrap();
        let mut clusters = Vec::new();
        for slot in 0..count {
            let session = connect(&options).await.unwrap();
            session.use_keyspace(&options.keyspace, true).await.unwrap();
            let counts = Arc::new(Counts::default());
            let statements = Statements::prepare(&session, options.reads, &counts).await.unwrap();
            let lease = Lease { below: i64::MAX, until: Instant::now() + Duration::from_secs(3600) };
            let clock = Arc::new(Clock::new(slot, 0, lease));
            clusters
                .push(Arc::new(Cluster { link: Arc::new(Link::new(session, statements, counts)), clock }));
        }
        Some((Self(options), clusters))
    }

    pub async fn end(self) {
        let session = connect(&self.0).await.unwrap();
        // A busy node may take longer than the timeout, and still does it.
        let _ = session.query_unpaged(format!("DROP KEYSPACE {}", self.0.keyspace), ()).await;
    }
}
