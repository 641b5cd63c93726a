//! Walks of random operations on the engine in memory, where everything that the service has in memory is lost again and
//! again, and on the embedded engine, which is dropped without being closed.

use std::sync::Arc;

use engine_embedded::{EmbeddedEngine, Options};
use store::{Engine, MemoryEngine};
use tempfile::TempDir;

use crate::kit::setting;
use crate::walk::{Reopen, Walk};

async fn walks(name: &str, walks: u64, steps: u64, is_shared: bool, reopen: impl Fn() -> Reopen) {
    let (first, steps) = (setting("PARTITA_SEED", 1), setting("PARTITA_STEPS", steps));
    for seed in first..first + setting("PARTITA_WALKS", walks) {
        println!("PARTITA_SEED={seed} PARTITA_STEPS={steps}, {name}");
        let mut walk = Walk::new(seed, reopen(), is_shared).await;
        walk.run(steps).await;
        println!("{} receipts, {} restarts", walk.oracle.receipts.len(), walk.restarts);
    }
}

fn in_memory() -> Reopen {
    Box::new(|before| before.unwrap_or_else(|| Arc::new(MemoryEngine::new())))
}

fn on_disk() -> Reopen {
    let directory = TempDir::new().unwrap();
    Box::new(move |before| {
        drop(before);
        Arc::new(EmbeddedEngine::open(Options::new(directory.path())).unwrap()) as Arc<dyn Engine>
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_those_of_the_oracle_in_memory() {
    walks("in memory", 40, 1500, false, in_memory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_those_of_the_oracle_though_others_may_change_the_queue() {
    walks("in memory, shared", 20, 1500, true, in_memory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_those_of_the_oracle_on_disk() {
    walks("on disk", 4, 1500, false, on_disk).await;
}
