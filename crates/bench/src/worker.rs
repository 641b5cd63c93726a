//! One connection, to tables or to queues.

use std::time::Instant;

use crate::load::Loading;
use crate::queue_worker::QueueWorker;
use crate::table_worker::TableWorker;
use crate::tally::OperationFailure;
use crate::workload::Workload;

#[derive(Debug)]
pub enum Worker {
    Tables(Box<TableWorker>),
    Queues(Box<QueueWorker>),
}

impl Worker {
    /// Does one operation and checks it. Returns how many entities or messages it wrote, returned or examined.
    pub async fn operate(&mut self, workload: Workload, now: Instant) -> Result<u64, OperationFailure> {
        match self {
            Self::Tables(worker) => worker.operate(workload, now).await,
            Self::Queues(worker) => worker.operate(workload, now).await,
        }
    }

    /// What must be there before the workload begins, outside of measurements.
    pub async fn prepare(&mut self, workload: Workload) -> Result<(), OperationFailure> {
        match self {
            Self::Tables(_) => Ok(()),
            Self::Queues(worker) => worker.prepare(workload).await,
        }
    }

    /// Checks what the workload has left, outside of measurements.
    pub async fn check(&mut self) -> Result<(), OperationFailure> {
        match self {
            Self::Tables(worker) => worker.read_back().await,
            Self::Queues(worker) => worker.tidy().await,
        }
    }

    /// Does one piece of the loading; returns how many entities or messages that were.
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
            _ => Err(OperationFailure::bug("the wrong service was loaded")),
        }
    }
}
