//! Runs a workload over all connections for some time, and measures it.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::error::{BenchError, Result};
use crate::pace::Turns;
use crate::process::{MemoryUse, Process};
use crate::tally::WorkloadTally;
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

impl Measured {
    /// Adds a measurement of the same workload, made directly after this one.
    pub fn add(&mut self, next: Self) {
        self.tally.add(next.tally);
        self.elapsed += next.elapsed;
        self.client_cpu += next.client_cpu;
        self.server = match (self.server, next.server) {
            (Some(first), Some(next)) => Some(ServerUse { cpu: first.cpu + next.cpu, memory: next.memory }),
            (first, next) => next.or(first),
        };
    }
}

/// What to measure, and how.
#[derive(Clone, Copy, Debug)]
pub struct Assignment<'a> {
    pub workload: Workload,
    pub limits: Limits,
    /// Operations that begin in a second; without it, each begins when the one before has ended.
    pub rate: Option<f64>,
    pub server: Option<&'a Process>,
}

/// Uses the connections, and gives them back.
pub async fn measure(workers: &mut Vec<Worker>, assignment: Assignment<'_>) -> Result<Measured> {
    let Assignment { workload, limits, rate, server } = assignment;
    let client = Process::this();
    let server_before = server.map(Process::cpu_time).transpose()?;
    let client_before = client.cpu_time()?;
    let start = Instant::now();
    let tally = run(workers, workload, limits, rate).await?;
    let elapsed = start.elapsed();
    let client_cpu = client.cpu_time()?.saturating_sub(client_before);
    let server = match (server, server_before) {
        (Some(server), Some(before)) => {
            Some(ServerUse { cpu: server.cpu_time()?.saturating_sub(before), memory: server.memory()? })
        }
        _ => None,
    };
    Ok(Measured { tally, elapsed, client_cpu, server })
}

async fn run(
    workers: &mut Vec<Worker>,
    workload: Workload,
    limits: Limits,
    rate: Option<f64>,
) -> Result<WorkloadTally> {
    let (turns, _pacing) = Turns::begin(limits, rate)?;
    let mut tasks = JoinSet::new();
    for worker in std::mem::take(workers) {
        tasks.spawn(repeat(worker, workload, turns.clone()));
    }
    let mut sum = WorkloadTally::default();
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
        Ok(outcome) => outcome.map(|()| sum),
        Err(_) => Err(BenchError::Unanswered { workload, seconds: PATIENCE.as_secs() }),
    }
}

/// Does one operation after another. An operation that begins in time is finished and counted.
async fn repeat(mut worker: Worker, workload: Workload, turns: Turns) -> (Worker, WorkloadTally) {
    let mut tally = WorkloadTally::default();
    let mut ended = Instant::now();
    while let Some(turn) = turns.next(ended).await {
        let outcome = worker.operate(workload, turn.now).await;
        ended = Instant::now();
        match outcome {
            Ok(entities) => tally.succeeded(entities, ended.saturating_duration_since(turn.intended)),
            Err(failure) => {
                let fatal = failure.fatal;
                tally.failed(failure);
                if fatal {
                    break;
                }
            }
        }
    }
    (worker, tally)
}

/// Checks what the workload has left; what is wrong counts as failed.
pub async fn check(workers: &mut [Worker], tally: &mut WorkloadTally) {
    for worker in workers {
        if let Err(failure) = worker.check().await {
            tally.failed(failure.during("read back"));
        }
    }
}
