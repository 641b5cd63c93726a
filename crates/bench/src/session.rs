//! A run against one endpoint: its tables, its data set, its connections, and their end.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::batch;
use crate::data::DataSet;
use crate::measure::{self, Limits, Measured};
use crate::process::Process;
use crate::tally::Failure;
use crate::worker::{Shared, Worker};
use crate::workload::Workload;
use connection::{Client, Request, Target};

const JSON: &str = "Accept: application/json;odata=nometadata\r\nContent-Type: application/json\r\n\
                    Prefer: return-no-content\r\n";

/// How long a deletion may take: nobody should have to kill a run that was interrupted.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(60);

/// Whose table the data set is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataTable {
    /// Made for this run, and deleted after it.
    Temporary,
    /// Made by this run, and left.
    Kept,
    /// Left by an earlier run, and left again.
    Reused,
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub workloads: Vec<Workload>,
    pub connections: usize,
    pub limits: Limits,
    pub warmup: Option<Limits>,
    pub data_table: DataTable,
    pub table: String,
    pub seed: u64,
    pub trust: bool,
}

#[derive(Debug)]
pub struct Session {
    plan: Plan,
    shared: Arc<Shared>,
    control: Client,
    workers: Vec<Worker>,
    server: Option<Process>,
    /// Tables to delete in the end.
    made: Vec<String>,
}

impl Session {
    /// Makes the tables and loads the data set, if a workload needs them.
    pub async fn open(
        target: Arc<Target>,
        server: Option<Process>,
        data: DataSet,
        plan: Plan,
    ) -> Result<Self, String> {
        // A table just deleted can't be made again for a while on Azure, hence a name for each run.
        let run = format!("{:08x}", crate::random::mix(plan.seed ^ epoch_nanos()) as u32);
        let data_table = match plan.data_table {
            DataTable::Temporary => format!("{}{run}d", plan.table),
            DataTable::Kept | DataTable::Reused => format!("{}data", plan.table),
        };
        let shared = Arc::new(Shared {
            data,
            data_table,
            written_table: format!("{}{run}w", plan.table),
            run,
            next: AtomicU64::new(0),
            trust: plan.trust,
        });
        let workers = (0..plan.connections)
            .map(|index| {
                let seed = plan.seed.wrapping_add(1 + index as u64);
                Worker::new(Client::new(target.clone()), shared.clone(), seed)
            })
            .collect();
        let control = Client::new(target);
        let mut session = Self { plan, shared, control, workers, server, made: Vec::new() };
        match crate::unless_interrupted(session.prepare()).await {
            Ok(()) => Ok(session),
            Err(error) => {
                // Said already what is wrong; a table that can't be deleted either adds nothing.
                let _ = session.close().await;
                Err(error)
            }
        }
    }

    async fn prepare(&mut self) -> Result<(), String> {
        if self.plan.workloads.iter().any(|workload| !workload.needs_data()) {
            self.create(self.shared.written_table.clone(), true).await?;
        }
        if !self.plan.workloads.iter().any(|workload| workload.needs_data()) {
            return Ok(());
        }
        let table = self.shared.data_table.clone();
        match self.plan.data_table {
            DataTable::Reused => self.first_worker()?.expect_loaded().await.map_err(|failure| {
                format!(
                    "table {table} does not hold the data set of --entities and --value-bytes ({}: {}); \
                         load it with --keep, and without --reuse",
                    failure.label, failure.sample
                )
            }),
            table_is => {
                self.create(table, table_is == DataTable::Temporary).await?;
                self.load().await
            }
        }
    }

    pub fn url(&self) -> String {
        self.control.endpoint().url()
    }

    /// Runs a workload once, after its warm-up.
    pub async fn measure(&mut self, workload: Workload) -> Result<Measured, String> {
        if let Some(limits) = self.plan.warmup {
            let workers = std::mem::take(&mut self.workers);
            (self.workers, _) = measure::measure(workers, workload, limits, None).await?;
        }
        let workers = std::mem::take(&mut self.workers);
        let (workers, mut measured) =
            measure::measure(workers, workload, self.plan.limits, self.server.as_ref()).await?;
        self.workers = workers;
        measure::read_back(&mut self.workers, &mut measured.tally).await;
        Ok(measured)
    }

    /// Deletes what this run made.
    pub async fn close(mut self) -> Result<(), String> {
        for table in std::mem::take(&mut self.made) {
            let path = format!("/Tables('{table}')");
            let request = Request { method: "DELETE", path: &path, query: "", headers: JSON, body: None };
            let deleted = tokio::time::timeout(CLOSE_TIME_MAX, self.control_request(request, &[204])).await;
            deleted
                .unwrap_or_else(|_| Err("no answer in time".to_owned()))
                .map_err(|why| format!("can't delete table {table}: {why}"))?;
        }
        Ok(())
    }

    async fn create(&mut self, table: String, delete_after: bool) -> Result<(), String> {
        let body = format!("{{\"TableName\":\"{table}\"}}");
        let request = Request {
            method: "POST",
            path: "/Tables",
            query: "",
            headers: JSON,
            body: Some(body.as_bytes()),
        };
        self.control_request(request, &[201, 204]).await.map_err(|why| {
            let way_out =
                if why.starts_with("409") { "; --reuse takes it, another --table avoids it" } else { "" };
            format!("can't make table {table} at {}: {why}{way_out}", self.url())
        })?;
        if delete_after {
            self.made.push(table);
        }
        Ok(())
    }

    async fn control_request(&mut self, request: Request<'_>, expected: &[u16]) -> Result<(), String> {
        let response = self.control.send(request, Instant::now()).await;
        let failure = match response {
            Ok(response) if expected.contains(&response.status) => return Ok(()),
            Ok(response) => Failure::status(&response),
            Err(trouble) => trouble.into(),
        };
        Err(format!("{}: {}", failure.label, failure.sample))
    }

    fn first_worker(&mut self) -> Result<&mut Worker, String> {
        self.workers.first_mut().ok_or_else(|| "every connection is gone".to_owned())
    }

    /// Fills the table in batches, over all connections.
    async fn load(&mut self) -> Result<(), String> {
        let (rows, entities) = (self.shared.data.rows, self.shared.data.entities());
        let batch = batch::operations(&self.shared.data);
        let batches_a_partition = rows.div_ceil(batch);
        let batches = batches_a_partition * self.shared.data.partitions;
        let (next, loaded) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let shows = std::io::stderr().is_terminal();
        let mut tasks = JoinSet::new();
        for mut worker in std::mem::take(&mut self.workers) {
            let (next, loaded) = (next.clone(), loaded.clone());
            tasks.spawn(async move {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= batches {
                        return Ok(worker);
                    }
                    let partition = index / batches_a_partition * rows;
                    let start = index % batches_a_partition * batch;
                    let end = rows.min(start + batch);
                    worker.load(partition + start..partition + end).await?;
                    let done = loaded.fetch_add(end - start, Ordering::Relaxed) + end - start;
                    if shows && index.is_multiple_of(10) {
                        let _ = write!(std::io::stderr(), "\rloading {done} of {entities} entities");
                    }
                }
            });
        }
        while let Some(ended) = tasks.join_next().await {
            let worker: Result<Worker, Failure> = ended.map_err(|error| error.to_string())?;
            let worker =
                worker.map_err(|failure| format!("can't load: {}: {}", failure.label, failure.sample))?;
            self.workers.push(worker);
        }
        if shows {
            let _ = writeln!(std::io::stderr(), "\rloaded {entities} of {entities} entities ");
        }
        Ok(())
    }
}

pub fn epoch_nanos() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}
