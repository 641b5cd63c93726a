//! What is kept in memory keeps every promise.

use std::sync::Arc;

use store::{Engine, MemoryEngine, MemoryObjects, Objects};

#[tokio::test(flavor = "multi_thread")]
async fn keeps_every_promise() {
    store_suite::run(|| async { Arc::new(MemoryEngine::new()) as Arc<dyn Engine> }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_keep_every_promise() {
    store_suite::objects::run(|| async { Arc::new(MemoryObjects::new()) as Arc<dyn Objects> }).await;
}
