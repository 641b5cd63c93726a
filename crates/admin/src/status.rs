//! `GET /api/status`: what runs, how it is, and what it holds.

use std::time::{Duration, Instant};

use common::DateTime;
use front::LocalServices;
use front::metrics::process;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::cluster::ClusterAnswer;
use crate::command::{Backup, Commands, Job};

/// What the program is.
#[derive(Clone, Debug, Serialize)]
pub struct Program {
    pub version: &'static str,
    pub commit: &'static str,
    pub rocksdb: String,
    pub format: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreKind {
    Embedded,
    Cassandra,
    Memory,
}

/// Where the data is.
#[derive(Clone, Debug, Serialize)]
pub struct StorePlace {
    pub kind: StoreKind,
    pub place: String,
}

/// When the server started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub at: DateTime,
    pub instant: Instant,
}

impl Start {
    pub fn now() -> Self {
        Self { at: DateTime::now(), instant: Instant::now() }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Status<'a> {
    #[serde(flatten)]
    program: &'a Program,
    started: String,
    uptime_seconds: u64,
    health: Health,
    store: &'a StorePlace,
    engine: Map<String, Value>,
    connections: ConnectionCounts,
    memory: MemoryUse,
    disk: DiskUse,
    accounts: Vec<String>,
    sessions: usize,
    jobs: Vec<Job>,
    backups: Vec<Backup>,
    /// `None` if the data is not in a cluster.
    cluster: Option<ClusterAnswer>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Health {
    ready: bool,
    /// Why it is not, or what else an operator should know.
    reasons: Vec<String>,
}

#[derive(Debug, Serialize)]
struct ConnectionCounts {
    open: usize,
    max: usize,
}

#[derive(Debug, Serialize)]
struct MemoryUse {
    resident_bytes: Option<u64>,
    request_bytes_held: usize,
    request_bytes_max: usize,
    cache_bytes: Option<f64>,
}

/// Of the data directory, if there is one.
#[derive(Debug, Serialize)]
struct DiskUse {
    used_bytes: Option<f64>,
    free_bytes: Option<f64>,
}

/// What a status is made of.
#[derive(Debug)]
pub(crate) struct StatusParts<'a> {
    pub program: &'a Program,
    pub store: &'a StorePlace,
    pub commands: &'a Commands,
    pub start: Start,
    pub services: &'a LocalServices,
    pub sessions: usize,
}

impl<'a> StatusParts<'a> {
    /// Reads files of the system and the state of the engine.
    pub fn status(&self, cluster: Option<ClusterAnswer>) -> Status<'a> {
        let front = self.services.front();
        let load = front.metrics.load();
        let counters = front.engine.counters();
        let mut accounts: Vec<String> =
            front.accounts.current().names().map(|name| name.as_str().to_owned()).collect();
        accounts.sort_unstable();
        Status {
            program: self.program,
            started: self.start.at.to_seconds_string(),
            uptime_seconds: self.start.instant.elapsed().max(Duration::ZERO).as_secs(),
            health: health(self.services),
            store: self.store,
            connections: ConnectionCounts { open: load.connections, max: load.connections_max },
            memory: MemoryUse {
                resident_bytes: process().resident_bytes,
                request_bytes_held: load.memory_bytes,
                request_bytes_max: load.memory_bytes_max,
                cache_bytes: counters.number("cache_bytes"),
            },
            disk: DiskUse {
                used_bytes: counters.number("disk_used_bytes"),
                free_bytes: counters.number("disk_free_bytes"),
            },
            engine: counters.numbers().into_iter().map(|(name, number)| (name, number.into())).collect(),
            accounts,
            sessions: self.sessions,
            jobs: self.commands.running().into_iter().collect(),
            backups: self.commands.backups(),
            cluster,
        }
    }
}

/// The reasons name files, which an administrator may see.
fn health(services: &LocalServices) -> Health {
    let front = services.front();
    let fault = front.engine.check_health().err();
    let ready = fault.is_none();
    let fault = fault.map(|fault| format!("the store can't be used ({}): {fault}", fault.kind()));
    let frozen = front.gate.closed_since();
    let frozen =
        frozen.map(|since| format!("frozen since {}: writes are refused", since.to_seconds_string()));
    Health { ready, reasons: fault.into_iter().chain(frozen).collect() }
}
