//! Runs a workload over all connections for some time, and measures it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::error::{BenchError, Result};
use crate::process::{MemoryUse, Process};
use crate::tally::{OperationFailure, WorkloadTally};
use crate::worker::Worker;
use crate::workload::Workload;

/// How long to wait after the end for operations without an answer.
const PATIENCE: Duration = Duration::from_secs(300);

/// When to stop: whichever comes first.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub time: Option<Duration>,
    pub operations: Option<u64>,
}

/// One workload against one endpoint, once.
#[derive(Clone, Debug)]
pub struct Measured {
    pub tally: WorkloadTally,
    pub elapsed: Duration,
    pub client_cpu: Duration,
    pub server: Option<ServerUse>,
}

/// What the server used during a measurement.
#[derive(Clone, Copy, Debug)]
pub struct ServerUse {
    pub cpu: Duration,
    pub memory: MemoryUse,
}

/// Returns the workers, to use their connections again.
pub async fn measure(
    workers: Vec<Worker>,
    workload: Workload,
    limits: Limits,
    server: Option<&Process>,
) -> Result<(Vec<Worker>, Measured)> {
    let client = Process::this();
    let server_before = server.map(Process::cpu_time).transpose()?;
    let client_before = client.cpu_time()?;
    let start = Instant::now();
    let (workers, tally) = run(workers, workload, limits, start).await?;
    let elapsed = start.elapsed();
    let client_cpu = client.cpu_time()?.saturating_sub(client_before);
    let server = match (server, server_before) {
        (Some(server), Some(before)) => {
            Some(ServerUse { cpu: server.cpu_time()?.saturating_sub(before), memory: server.memory()? })
        }
        _ => None,
    };
    Ok((workers, Measured { tally, elapsed, client_cpu, server }))
}

async fn run(
    workers: Vec<Worker>,
    workload: Workload,
    limits: Limits,
    start: Instant,
) -> Result<(Vec<Worker>, WorkloadTally)> {
    let started = Arc::new(AtomicU64::new(0));
    let deadline = limits.time.map(|time| start + time);
    let mut tasks = JoinSet::new();
    for worker in workers {
        tasks.spawn(repeat(worker, workload, deadline, limits.operations, started.clone()));
    }
    let (mut workers, mut sum) = (Vec::new(), WorkloadTally::default());
    let patience = limits.time.map_or(Duration::MAX, |time| time.saturating_add(PATIENCE));
    let joined = async {
        while let Some(ended) = tasks.join_next().await {
            let (worker, tally) = ended?;
            workers.push(worker);
            sum.add(tally);
        }
        Ok(())
    };
    match tokio::time::timeout(patience, joined).await {
        Ok(outcome) => outcome.map(|()| (workers, sum)),
        Err(_) => Err(BenchError::Unanswered { workload, seconds: PATIENCE.as_secs() }),
    }
}

/// Does one operation after another. An operation that begins in time is finished and counted.
async fn repeat(
    mut worker: Worker,
    workload: Workload,
    deadline: Option<Instant>,
    operations: Option<u64>,
    started: Arc<AtomicU64>,
) -> (Worker, WorkloadTally) {
    let mut tally = WorkloadTally::default();
    let mut now = Instant::now();
    while deadline.is_none_or(|deadline| now < deadline)
        && operations.is_none_or(|operations| started.fetch_add(1, Ordering::Relaxed) < operations)
    {
        let outcome = worker.operate(workload, now).await;
        let end = Instant::now();
        match outcome {
            Ok(entities) => tally.succeeded(entities, end - now),
            Err(failure) => {
                let fatal = failure.fatal;
                tally.failed(failure);
                if fatal {
                    break;
                }
            }
        }
        now = end;
    }
    (worker, tally)
}

/// Reads back a sample of the written entities; a wrong one counts as failed.
pub async fn read_back(workers: &mut [Worker], tally: &mut WorkloadTally) {
    for worker in workers {
        if let Err(OperationFailure { label, sample, fatal }) = worker.read_back().await {
            tally.failed(OperationFailure { label: format!("read back: {label}"), sample, fatal });
        }
    }
}
