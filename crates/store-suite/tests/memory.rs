//! The in-memory engine keeps every promise.

use std::sync::Arc;

use store::{Engine, MemoryEngine};

#[tokio::test(flavor = "multi_thread")]
async fn keeps_every_promise() {
    store_suite::run(|| async { Arc::new(MemoryEngine::new()) as Arc<dyn Engine> }).await;
}
