//! The number of messages after a restart: exact for a short queue, remembered for a long one, which nobody waits for to be
//! counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use queue_model::Metadata;
use store::{Engine, MemoryEngine, Page, Scan, TableRef};
use store_suite::{EngineDouble, TestEngine};

use crate::kit::{Ground, VirtualTime, text};

/// More than anybody waits for.
const LONG: u64 = 25_000;
/// Rows that are read for somebody who waits, and some more that end the page.
const READ_MAX: u64 = 11_001;

/// Counts the rows that scans read.
struct CountedRows {
    engine: MemoryEngine,
    rows: AtomicU64,
}

#[async_trait]
impl EngineDouble for CountedRows {
    fn engine(&self) -> &dyn Engine {
        &self.engine
    }

    async fn scan(&self, table: &TableRef, scan: Scan) -> Result<Page, store::Error> {
        let page = self.engine.scan(table, scan).await?;
        self.rows.fetch_add(page.examined, Ordering::SeqCst);
        Ok(page)
    }
}

/// A queue with so many messages.
async fn filled(messages: u64) -> (Arc<TestEngine<CountedRows>>, Ground) {
    let rows = AtomicU64::new(0);
    let engine = Arc::new(TestEngine(CountedRows { engine: MemoryEngine::new(), rows }));
    let ground = Ground::on(engine.clone(), VirtualTime::new());
    ground.service.create(&ground.queue, &Metadata::default()).await.unwrap();
    put(&ground, messages).await;
    (engine, ground)
}

async fn put(ground: &Ground, messages: u64) {
    for _ in 0..messages {
        ground.service.put(&ground.queue, text("x"), Duration::ZERO, None).await.unwrap();
    }
}

#[tokio::test]
async fn the_number_of_a_long_queue_is_remembered_over_a_restart() {
    let (engine, before) = filled(LONG).await;
    before.service.close().await;
    let after = before.again();
    assert_eq!(after.count().await, LONG);
    let read = engine.rows.load(Ordering::SeqCst);
    assert!(read <= READ_MAX, "{read} rows were read while somebody waited");
    put(&after, 2).await;
    assert_eq!(after.count().await, LONG + 2, "changes are counted as they come");
    assert_eq!(engine.rows.load(Ordering::SeqCst), read, "one look at the rows is enough");
}

#[tokio::test]
async fn what_a_killed_server_did_not_store_is_counted_in_the_background() {
    let (_, before) = filled(LONG).await;
    before.service.close().await;
    put(&before, 5).await;
    let after = before.again();
    assert_eq!(after.count().await, LONG, "as it was stored");
    after.service.sweep(&after.queue).await.unwrap();
    assert_eq!(after.count().await, LONG + 5);
}

#[tokio::test]
async fn no_number_is_below_what_was_found() {
    let (_, before) = filled(1).await;
    before.service.close().await;
    put(&before, LONG).await;
    let after = before.again();
    let told = after.count().await;
    assert!((10_000..=LONG + 1).contains(&told), "{told}");
    after.service.sweep(&after.queue).await.unwrap();
    assert_eq!(after.count().await, LONG + 1);
}

#[tokio::test]
async fn a_short_queue_is_counted_whatever_is_stored() {
    for is_shared in [false, true] {
        let (_, before) = filled(3).await;
        before.service.close().await;
        put(&before, 2).await;
        assert_eq!(before.again().shared(is_shared).count().await, 5);
        for taken in before.get(4, 30).await {
            before.service.delete_message(&before.queue, taken.message.id, &taken.receipt).await.unwrap();
        }
        assert_eq!(before.again().shared(is_shared).count().await, 1);
    }
}

#[tokio::test]
async fn a_queue_of_which_no_number_is_stored_is_counted_to_its_end() {
    let (engine, before) = filled(LONG).await;
    assert_eq!(before.again().count().await, LONG);
    assert!(engine.rows.load(Ordering::SeqCst) >= LONG);
}
