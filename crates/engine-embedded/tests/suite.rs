//! The embedded engine keeps every promise.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::sync::Arc;
use std::sync::Mutex;

use engine_embedded::{EmbeddedEngine, EmbeddedObjects, Options};
use store::{Engine, Objects};
use tempfile::TempDir;

#[tokio::test(flavor = "multi_thread")]
async fn keeps_every_promise() {
    let directories = Mutex::new(Vec::new());
    store_suite::run(|| async {
        let directory = TempDir::new().unwrap();
        let engine = EmbeddedEngine::open(Options::new(directory.path())).unwrap();
        directories.lock().unwrap().push(directory);
        Arc::new(engine) as Arc<dyn Engine>
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_every_promise_of_objects() {
    let directories = Mutex::new(Vec::new());
    store_suite::objects::run(|| async {
        let directory = TempDir::new().unwrap();
        let engine = Arc::new(EmbeddedEngine::open(Options::new(directory.path())).unwrap());
        directories.lock().unwrap().push(directory);
        Arc::new(EmbeddedObjects::new(engine)) as Arc<dyn Objects>
    })
    .await;
}
