//! Loads entities, messages or blobs over all connections.

use std::io::{IsTerminal as _, Write as _};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::task::JoinSet;

use crate::batch;
use crate::data::DataSet;
use crate::error::{BenchError, Result};
use crate::worker::Worker;

/// What to load, in pieces of one request each.
#[derive(Debug)]
pub enum Loading {
    Entities(Batches),
    /// By message, the queue that it goes to.
    Messages(Vec<u32>),
    /// So many.
    Blobs(u64),
}

/// The data set in batches.
#[derive(Clone, Copy, Debug)]
pub struct Batches {
    /// Entities of a partition, and of a batch.
    rows: u64,
    batch: u64,
    partitions: u64,
}

impl Batches {
    pub fn of(data: &DataSet) -> Self {
        Self { rows: data.rows, batch: batch::operations(data), partitions: data.partitions }
    }

    fn a_partition(&self) -> u64 {
        self.rows.div_ceil(self.batch)
    }

    /// The entities of a batch, all of one partition.
    pub fn numbers(&self, piece: u64) -> Range<u64> {
        let partition = piece / self.a_partition() * self.rows;
        let start = piece % self.a_partition() * self.batch;
        partition + start..partition + self.rows.min(start + self.batch)
    }
}

impl Loading {
    fn pieces(&self) -> u64 {
        match self {
            Self::Entities(batches) => batches.a_partition() * batches.partitions,
            Self::Messages(queues) => queues.len() as u64,
            Self::Blobs(blobs) => *blobs,
        }
    }

    /// How many there are in all, and what they are.
    fn total(&self) -> (u64, &'static str) {
        match self {
            Self::Entities(batches) => (batches.rows * batches.partitions, "entities"),
            Self::Messages(queues) => (queues.len() as u64, "messages"),
            Self::Blobs(blobs) => (*blobs, "blobs"),
        }
    }
}

/// Shows its progress, if there is somebody to see it.
pub async fn load(workers: &mut Vec<Worker>, loading: Loading) -> Result<()> {
    let (total, things) = loading.total();
    let pieces = loading.pieces();
    let loading = Arc::new(loading);
    let (next, loaded) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let shows = std::io::stderr().is_terminal();
    let mut tasks = JoinSet::new();
    for mut worker in std::mem::take(workers) {
        let (loading, next, loaded) = (loading.clone(), next.clone(), loaded.clone());
        tasks.spawn(async move {
            loop {
                let piece = next.fetch_add(1, Ordering::Relaxed);
                if piece >= pieces {
                    return Ok(worker);
                }
                let count = worker.load(&loading, piece).await?;
                let done = loaded.fetch_add(count, Ordering::Relaxed) + count;
                if shows && piece.is_multiple_of(100) {
                    let _ = write!(std::io::stderr(), "\rloading {done} of {total} {things}");
                }
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        workers.push(ended?.map_err(BenchError::Load)?);
    }
    if shows && total > 0 {
        let _ = writeln!(std::io::stderr(), "\rloaded {total} of {total} {things} ");
    }
    Ok(())
}
