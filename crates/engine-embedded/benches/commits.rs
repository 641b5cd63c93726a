//! How fast commits are, without HTTP before them: `cargo bench --bench commits -- [MEBIBYTES] [SECONDS]`.
//!
//! First fills a new store with so many mebibytes, then lets one writer, 16 and 64 insert rows of 1 KiB, and 16
//! writers insert batches of 100. Rows per second, and how long a writer waited.

#![allow(clippy::unwrap_used, reason = "a benchmark: whatever fails ends it")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use engine_embedded::{EmbeddedEngine, Options};
use model::{Key, Value};
use store::{Change, Condition, Engine, RowOperation, Transaction};
use store_suite::{draft, table};

const ROW_BYTES: usize = 1024;
const BATCH: usize = 100;

static NEXT: AtomicUsize = AtomicUsize::new(0);

fn inserts(rows: usize) -> Transaction {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    // Spread over the key space, as partitions of a real table are.
    let partition =
        Key::parse(format!("{:016x}", (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))).unwrap();
    let insert = |row| {
        let noise: Vec<u8> = (0..ROW_BYTES / 8).flat_map(|_| rand::random::<[u8; 8]>()).collect();
        let change = Change::Put(draft(&[("Noise", Value::Binary(noise))]));
        RowOperation { row: Key::parse(format!("{row:03}")).unwrap(), condition: Condition::Absent, change }
    };
    Transaction::new(partition, (0..rows).map(insert).collect()).unwrap()
}

/// How long each transaction took.
async fn run(
    engine: &Arc<EmbeddedEngine>,
    writers: usize,
    rows: usize,
    until: impl Fn(usize) -> bool + Send + Sync + 'static,
) -> Vec<Duration> {
    let (until, done) = (Arc::new(until), Arc::new(AtomicUsize::new(0)));
    let writers = (0..writers).map(|_| {
        let (engine, until, done) = (engine.clone(), until.clone(), done.clone());
        tokio::spawn(async move {
            let mut waits = Vec::new();
            while !until(done.fetch_add(rows, Ordering::Relaxed)) {
                let transaction = inserts(rows);
                let started = Instant::now();
                engine.apply(&table("Bench"), transaction).await.unwrap();
                waits.push(started.elapsed());
            }
            waits
        })
    });
    let writers: Vec<_> = writers.collect();
    let mut waits = Vec::new();
    for writer in writers {
        waits.extend(writer.await.unwrap());
    }
    waits.sort_unstable();
    waits
}

#[tokio::main]
async fn main() {
    let numbers: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let mebibytes = numbers.first().copied().unwrap_or(256);
    let seconds = Duration::from_secs(numbers.get(1).copied().unwrap_or(5) as u64);
    let directory = tempfile::TempDir::new().unwrap();
    let engine = Arc::new(EmbeddedEngine::open(Options::new(directory.path())).unwrap());
    engine.create_table(&table("Bench"), None).await.unwrap();
    run(&engine, 16, BATCH, move |rows| rows * ROW_BYTES >= mebibytes << 20).await;
    for (writers, rows) in [(1, 1), (16, 1), (64, 1), (16, BATCH)] {
        let end = Instant::now() + seconds;
        let waits = run(&engine, writers, rows, move |_| Instant::now() >= end).await;
        let at = |part: f64| waits[((waits.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
        println!(
            "{writers:>3} writers of {rows:>3}: {:>8.0} rows/s   p50 {:>6.2}   p99 {:>6.2}   p99.9 {:>6.2}   max {:>6.1} ms",
            (waits.len() * rows) as f64 / seconds.as_secs_f64(),
            at(0.5),
            at(0.99),
            at(0.999),
            at(1.0),
        );
    }
    engine.close().await;
}
