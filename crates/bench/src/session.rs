//! A run against one endpoint: prepares tables, queues and containers, measures, and cleans up.

use std::sync::Arc;
use std::time::Duration;

use connection::{ServiceKind, Target};

use crate::blob_side::BlobSide;
use crate::blobs::BlobSet;
use crate::data::DataSet;
use crate::error::{BenchError, Result};
use crate::measure::{self, Assignment, Limits, Measured};
use crate::messages::MessageSet;
use crate::process::Process;
use crate::queue_side::{QueueSide, SLICE};
use crate::table_side::TableSide;
use crate::workload::Workload;

/// What happens to the table, the queues and the container that were loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Created by this run, and deleted after it.
    No,
    /// Created by this run, and kept.
    Loaded,
    /// Kept by an earlier run, and kept again.
    Reused,
}

#[derive(Clone, Debug)]
pub struct BenchPlan {
    pub workloads: Vec<Workload>,
    pub connections: usize,
    pub limits: Limits,
    pub warmup: Option<Limits>,
    pub rate: Option<f64>,
    pub kept: Kept,
    /// Of the names of tables, queues and containers.
    pub prefix: String,
    pub seed: u64,
    pub trust: bool,
}

impl BenchPlan {
    /// A seed for each connection.
    pub fn seeds(&self) -> impl Iterator<Item = u64> {
        (1..=self.connections as u64).map(|connection| self.seed.wrapping_add(connection))
    }

    pub fn has(&self, service: ServiceKind) -> bool {
        self.workloads.iter().any(|workload| workload.service() == service)
    }

    pub fn tables(&self) -> impl Iterator<Item = Workload> {
        self.of(ServiceKind::Table)
    }

    pub fn blobs(&self) -> impl Iterator<Item = Workload> {
        self.of(ServiceKind::Blob)
    }

    fn of(&self, service: ServiceKind) -> impl Iterator<Item = Workload> {
        self.workloads.iter().copied().filter(move |workload| workload.service() == service)
    }
}

/// What a session needs of a service: where it is, and what it is to hold.
#[derive(Debug)]
pub struct Sides {
    pub tables: Option<(Arc<Target>, DataSet)>,
    pub queues: Option<(Arc<Target>, MessageSet)>,
    pub blobs: Option<(Arc<Target>, BlobSet)>,
}

#[derive(Debug)]
pub struct Session {
    plan: BenchPlan,
    server: Option<Process>,
    tables: Option<TableSide>,
    queues: Option<QueueSide>,
    blobs: Option<BlobSide>,
}

impl Session {
    /// Creates and loads what the workloads need.
    pub async fn open(sides: Sides, server: Option<Process>, plan: BenchPlan) -> Result<Self> {
        // On Azure, the name of a deleted table can't be used for a while, so each run has its own names.
        let run = format!("{:08x}", crate::random::mix(plan.seed ^ epoch_nanos()) as u32);
        let tables = sides.tables.map(|(target, data)| TableSide::new(&target, data, &plan, &run));
        let queues = sides.queues.map(|(target, messages)| QueueSide::new(&target, messages, &plan, &run));
        let blobs = sides.blobs.map(|(target, set)| BlobSide::new(&target, set, &plan, &run));
        let mut session = Self { plan, server, tables, queues, blobs };
        match crate::unless_interrupted(session.prepare()).await {
            Ok(()) => Ok(session),
            Err(error) => {
                // The first error is returned; a failed deletion adds nothing.
                let _ = session.close().await;
                Err(error)
            }
        }
    }

    async fn prepare(&mut self) -> Result<()> {
        if let Some(tables) = &mut self.tables {
            tables.prepare(&self.plan).await?;
        }
        if let Some(queues) = &mut self.queues {
            queues.prepare().await?;
        }
        if let Some(blobs) = &mut self.blobs {
            blobs.prepare(&self.plan).await?;
        }
        Ok(())
    }

    pub fn url(&self) -> String {
        let urls = [
            self.tables.as_ref().map(TableSide::url),
            self.queues.as_ref().map(QueueSide::url),
            self.blobs.as_ref().map(BlobSide::url),
        ];
        urls.into_iter().flatten().collect::<Vec<_>>().join(" and ")
    }

    /// Runs a workload once, after its warm-up.
    pub async fn measure(&mut self, workload: Workload) -> Result<Measured> {
        if let Some(limits) = self.plan.warmup {
            self.run(workload, limits, None).await?;
        }
        let server = self.server.clone();
        let mut measured = self.run(workload, self.plan.limits, server.as_ref()).await?;
        match workload.service() {
            ServiceKind::Queue => {
                let queues = self.queues.as_mut().ok_or(BenchError::NoConnectionLeft)?;
                measure::check(&mut queues.workers, &mut measured.tally).await;
                // What failed may have been done or not, so that nobody knows how many there are.
                if measured.tally.failures.is_empty()
                    && let Err(failure) = queues.check_count().await
                {
                    measured.tally.failed(failure.during("count"));
                }
            }
            ServiceKind::Table => {
                let tables = self.tables.as_mut().ok_or(BenchError::NoConnectionLeft)?;
                measure::check(&mut tables.workers, &mut measured.tally).await;
            }
            ServiceKind::Blob => {
                let blobs = self.blobs.as_mut().ok_or(BenchError::NoConnectionLeft)?;
                measure::check(&mut blobs.workers, &mut measured.tally).await;
            }
        }
        Ok(measured)
    }

    async fn run(
        &mut self,
        workload: Workload,
        limits: Limits,
        server: Option<&Process>,
    ) -> Result<Measured> {
        let assignment = Assignment { workload, limits, rate: self.plan.rate, server };
        match workload.service() {
            ServiceKind::Queue => {
                let queues = self.queues.as_mut().ok_or(BenchError::NoConnectionLeft)?;
                run_queues(queues, assignment).await
            }
            ServiceKind::Table => {
                let tables = self.tables.as_mut().ok_or(BenchError::NoConnectionLeft)?;
                measure::measure(&mut tables.workers, assignment).await
            }
            ServiceKind::Blob => {
                let blobs = self.blobs.as_mut().ok_or(BenchError::NoConnectionLeft)?;
                measure::measure(&mut blobs.workers, assignment).await
            }
        }
    }

    /// Deletes the tables, queues and containers of this run; returns the first error.
    pub async fn close(self) -> Result<()> {
        let tables = match self.tables {
            Some(tables) => tables.close().await,
            None => Ok(()),
        };
        let queues = match self.queues {
            Some(queues) => queues.close().await,
            None => Ok(()),
        };
        let blobs = match self.blobs {
            Some(blobs) => blobs.close().await,
            None => Ok(()),
        };
        tables.and(queues).and(blobs)
    }
}

/// A workload that consumes messages is measured in slices, and before each there are enough messages again.
async fn run_queues(queues: &mut QueueSide, whole: Assignment<'_>) -> Result<Measured> {
    let Limits { mut time, mut operations } = whole.limits;
    let is_sliced = whole.workload == Workload::QueueGetDelete;
    let mut sum: Option<Measured> = None;
    loop {
        queues.stock(whole.workload).await?;
        let slice = operations.map_or(SLICE, |operations| operations.min(SLICE));
        let limits = Limits { time, operations: if is_sliced { Some(slice) } else { operations } };
        let measured = measure::measure(&mut queues.workers, Assignment { limits, ..whole }).await?;
        let has_failed = measured.tally.operations < slice;
        time = time.map(|time| time.saturating_sub(measured.elapsed));
        operations = operations.map(|operations| operations.saturating_sub(slice));
        match &mut sum {
            Some(sum) => sum.add(measured),
            none => *none = Some(measured),
        }
        let is_over = time == Some(Duration::ZERO) || operations == Some(0) || (!is_sliced || has_failed);
        if let Some(sum) = sum.take_if(|_| is_over) {
            return Ok(sum);
        }
    }
}

pub fn epoch_nanos() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}
