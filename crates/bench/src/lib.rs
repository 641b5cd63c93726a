//! `partita bench`: measures the speed and the cost of an endpoint of tables, queues and blobs, and checks its answers.
//!
//! It uses only the protocol, so it measures any endpoint: Partita, Azurite, Azure. It shares only
//! `protocol` with the server.

mod batch;
mod blob_blocks;
mod blob_side;
mod blob_worker;
mod blobs;
mod command;
mod control;
mod data;
mod error;
mod load;
mod measure;
mod messages;
mod pace;
mod process;
mod queue_side;
mod queue_worker;
mod random;
mod report;
mod session;
mod summary;
mod table_side;
mod table_worker;
mod tally;
mod verify;
mod worker;
mod workload;

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

pub use command::BenchCommand;
pub use error::BenchError;

use blobs::{BlobSet, BlobSizes};
use connection::{Endpoint, ServiceKind, Target};
use data::DataSet;
use error::Result;
use measure::{Limits, Measured};
use messages::MessageSet;
use process::Process;
use report::{EndpointReport, Queues, Ratio, Report};
use session::{BenchPlan, Kept, Session, Sides};
use summary::Summary;
use workload::Workload;

const DEFAULT_TIME: Duration = Duration::from_secs(5);
/// The name of a table, a queue or a container has at most 63 characters, and a run adds some.
const TABLE_PREFIX_MAX: usize = 45;
const DEFAULT_ROUNDS_COMPARED: usize = 3;

/// Measures and prints. Fails if anything failed, even a single operation.
pub fn run(command: &BenchCommand) -> Result<()> {
    let runtime = match command.threads {
        0 => return Err(BenchError::NoThreads),
        1 => tokio::runtime::Builder::new_current_thread().enable_all().build(),
        threads => tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build(),
    };
    let (report, closed) =
        runtime.map_err(|source| BenchError::Threads { source })?.block_on(bench(command))?;
    let text = if command.json { report.json()? } else { report.text() };
    // A closed pipe is no error.
    let _ = writeln!(std::io::stdout(), "{}", text.trim_end());
    match report.failed() {
        0 => closed,
        failed => Err(BenchError::OperationsFailed(failed)),
    }
}

/// The report, and whether its tables, queues and containers were deleted. If that failed, the report is still printed.
async fn bench(command: &BenchCommand) -> Result<(Report, Result<()>)> {
    let plan = plan(command)?;
    let (workloads, seed, rate) = (plan.workloads.clone(), plan.seed, plan.rate);
    let queues = plan.has(ServiceKind::Queue).then_some(Queues {
        number: command.queues,
        waiting: command.waiting,
        message_bytes: command.message_bytes,
    });
    let blobs = if plan.has(ServiceKind::Blob) { Some(blob_set(command, &plan)?) } else { None };
    let ends =
        [(Some(&command.connection_string), command.pid), (command.compare.as_ref(), command.compare_pid)];
    let mut sessions = Vec::new();
    let mut outcome = Ok(());
    for (text, pid) in ends {
        let Some(text) = text else { continue };
        match open(command, text, pid, plan.clone()).await {
            Ok(session) => sessions.push(session),
            Err(error) => {
                outcome = Err(error);
                break;
            }
        }
    }
    let rounds =
        command.rounds.unwrap_or(if command.compare.is_some() { DEFAULT_ROUNDS_COMPARED } else { 1 });
    let measured = match outcome {
        Ok(()) => unless_interrupted(measure_in_turns(&mut sessions, &workloads, rounds.max(1))).await,
        Err(error) => Err(error),
    };
    // Deletes tables, queues and containers in any case; returns the first error.
    let mut endpoints: Vec<_> =
        sessions.iter().map(|s| EndpointReport { endpoint: s.url(), workloads: Vec::new() }).collect();
    let mut closed = Ok(());
    for session in sessions {
        closed = closed.and(session.close().await);
    }
    for (workload, of_endpoints) in workloads.iter().zip(measured?) {
        for (endpoint, rounds) in endpoints.iter_mut().zip(of_endpoints) {
            let bytes = blobs.as_ref().and_then(|blobs| blobs.operation_bytes(*workload));
            endpoint.workloads.push(Summary::of(*workload, &rounds, bytes));
        }
    }
    let ratios = match endpoints.as_slice() {
        [first, second] => {
            first.workloads.iter().zip(&second.workloads).map(|(a, b)| Ratio::of(a, b)).collect()
        }
        _ => Vec::new(),
    };
    let entities = if workloads.iter().any(|workload| workload.service() == ServiceKind::Table) {
        Some(DataSet::new(command.entities, command.value_bytes)?.entities())
    } else {
        None
    };
    let (connections, threads) = (command.connections, command.threads);
    let blobs = blobs.map(|blobs| blobs.sizes);
    Ok((Report { connections, threads, rate, entities, queues, blobs, seed, endpoints, ratios }, closed))
}

/// Returns the rounds of each endpoint for each workload. Endpoints take turns, so that a disturbance of the machine affects
/// both.
async fn measure_in_turns(
    sessions: &mut [Session],
    workloads: &[Workload],
    rounds: usize,
) -> Result<Vec<Vec<Vec<Measured>>>> {
    let mut all = Vec::new();
    for workload in workloads {
        let mut of_endpoints = vec![Vec::new(); sessions.len()];
        for _ in 0..rounds {
            for (session, measured) in sessions.iter_mut().zip(&mut of_endpoints) {
                measured.push(session.measure(*workload).await?);
            }
        }
        all.push(of_endpoints);
    }
    Ok(all)
}

/// Ends the work on Ctrl-C, so that the caller can clean up.
async fn unless_interrupted<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::select! {
        outcome = work => outcome,
        _ = tokio::signal::ctrl_c() => Err(BenchError::Interrupted),
    }
}

async fn open(command: &BenchCommand, text: &str, pid: Option<u32>, plan: BenchPlan) -> Result<Session> {
    let target = |service| {
        let endpoint = Endpoint::of(service, text)?;
        let tls = if endpoint.tls { Some(connection::connector(command.ca.as_deref())?) } else { None };
        Ok::<_, BenchError>(Arc::new(Target { service, endpoint, tls }))
    };
    let mut sides = Sides { tables: None, queues: None, blobs: None };
    if plan.has(ServiceKind::Table) {
        let data = DataSet::new(command.entities, command.value_bytes)?;
        sides.tables = Some((target(ServiceKind::Table)?, data));
    }
    if plan.has(ServiceKind::Queue) {
        let messages = MessageSet::new(command.queues, command.waiting, command.message_bytes)?;
        sides.queues = Some((target(ServiceKind::Queue)?, messages));
    }
    if plan.has(ServiceKind::Blob) {
        sides.blobs = Some((target(ServiceKind::Blob)?, blob_set(command, &plan)?));
    }
    let server = pid.map(Process::with_id).transpose()?;
    Session::open(sides, server, plan).await
}

fn blob_set(command: &BenchCommand, plan: &BenchPlan) -> Result<BlobSet> {
    let sizes = BlobSizes {
        blobs: command.blobs,
        bytes: command.blob_bytes,
        block_bytes: command.block_bytes,
        parallel_blocks: command.parallel_blocks,
        range_bytes: command.range_bytes,
    };
    BlobSet::new(sizes, &plan.blobs().collect::<Vec<_>>())
}

fn plan(command: &BenchCommand) -> Result<BenchPlan> {
    if command.connections == 0 {
        return Err(BenchError::NoConnections);
    }
    check_table(&command.table)?;
    if let Some(rate) = command.rate
        && !(rate > 0.0 && rate <= pace::RATE_MAX)
    {
        return Err(BenchError::Rate(rate));
    }
    let time = match (command.seconds, command.count) {
        (None, None) => Some(DEFAULT_TIME),
        (time, _) => time,
    };
    let warmup = Some(command.warmup).filter(|warmup| !warmup.is_zero());
    Ok(BenchPlan {
        workloads: command.workloads()?,
        connections: command.connections,
        limits: Limits { time, operations: command.count },
        warmup: warmup.map(|time| Limits { time: Some(time), operations: command.count }),
        rate: command.rate,
        kept: match (command.keep, command.reuse) {
            (_, true) => Kept::Reused,
            (true, false) => Kept::Loaded,
            (false, false) => Kept::No,
        },
        prefix: command.table.clone(),
        seed: command.random_seed.unwrap_or_else(session::epoch_nanos),
        trust: command.trust_answers,
    })
}

fn check_table(prefix: &str) -> Result<()> {
    let fits = prefix.len() <= TABLE_PREFIX_MAX
        && prefix.starts_with(|first: char| first.is_ascii_alphabetic())
        && prefix.chars().all(|each| each.is_ascii_alphanumeric());
    if fits {
        return Ok(());
    }
    Err(BenchError::TablePrefix(prefix.to_owned()))
}
