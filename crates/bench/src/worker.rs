//! One connection, to tables, queues or blobs.

use std::time::Instant;

use crate::blob_worker::BlobWorker;
use crate::load::Loading;
use crate::queue_worker::QueueWorker;
use crate::table_worker::TableWorker;
use crate::tally::OperationFailure;
use crate::workload::Workload;

#[derive(Debug)]
pub enum Worker {
    Tables(Box<TableWorker>),
    Queues(Box<QueueWorker>),
    Blobs(Box<BlobWorker>),
}

impl Worker {
    /// Does one operation and checks it. Returns how many entities, messages or blobs it wrote, returned or examined.
    pub async fn operate(&mut self, workload: Workload, now: Instant) -> Result<u64, OperationFailure> {
        match self {
            Self::Tables(worker) => worker.operate(workload, now).await,
            Self::Queues(worker) => worker.operate(workload, now).await,
            Self::Blobs(worker) => worker.operate(workload, now).await,
        }
    }

    /// What must be there before the workload begins, outside of measurements.
    pub async fn prepare(&mut self, workload: Workload) -> Result<(), OperationFailure> {
        match self {
            Self::Tables(_) | Self::Blobs(_) => Ok(()),
            Self::Queues(worker) => worker.prepare(workload).await,
        }
    }

    /// Checks what the workload has left, outside of measurements.
    pub async fn check(&mut self) -> Result<(), OperationFailure> {
        match self {
            Self::Tables(worker) => worker.read_back().await,
            Self::Queues(worker) => worker.tidy().await,
            Self::Blobs(worker) => worker.read_back().await,
        }
    }

    /// Does one piece of the loading; returns how many entities, messages or blobs that were.
    pub async fn load(&mut self, loading: &Loading, piece: u64) -> Result<u64, OperationFailure> {
        match (self, loading) {
            (Self::Tables(worker), Loading::Entities(pieces)) => {
                let numbers = pieces.numbers(piece);
                let count = numbers.end - numbers.start;
                worker.load(numbers).await.map(|()| count)
            }
            (Self::Queues(worker), Loading::Messages(queues)) => {
                let queue = queues.get(piece as usize).copied();
                let queue = queue.ok_or_else(|| OperationFailure::bug("there is no such message to load"))?;
                worker.load(queue as usize).await.map(|()| 1)
            }
            (Self::Blobs(worker), Loading::Blobs(_)) => worker.load(piece).await.map(|()| 1),
            _ => Err(OperationFailure::bug("the wrong service was loaded")),
        }
    }
}
