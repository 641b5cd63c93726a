//! A run against one endpoint: creates its tables, loads the data set, opens connections, and cleans up.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::batch;
use crate::data::DataSet;
use crate::error::{BenchError, Result};
use crate::measure::{self, Limits, Measured};
use crate::process::Process;
use crate::tally::OperationFailure;
use crate::worker::{Worker, WorkerContext};
use crate::workload::Workload;
use connection::{Client, Target, UnsignedRequest};

const JSON: &str = "Accept: application/json;odata=nometadata\r\nContent-Type: application/json\r\n\
                    Prefer: return-no-content\r\n";

/// How long the deletion of a table may take, so that an interrupted run ends soon.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(60);

/// What happens to the table of the data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataTable {
    /// Created by this run, and deleted after it.
    Temporary,
    /// Created by this run, and kept.
    Kept,
    /// Kept by an earlier run, and kept again.
    Reused,
}

#[derive(Clone, Debug)]
pub struct BenchPlan {
    pub workloads: Vec<Workload>,
    pub connections: usize,
    pub limits: Limits,
    pub warmup: Option<Limits>,
    pub data_table: DataTable,
    pub table: String,
    pub seed: u64,
    pub trust: bool,
}

/// A failed request of the run itself.
struct Refused {
    /// `None` if there was no answer.
    status: Option<u16>,
    failure: OperationFailure,
}

#[derive(Debug)]
pub struct Session {
    plan: BenchPlan,
    shared: Arc<WorkerContext>,
    control: Client,
    workers: Vec<Worker>,
    server: Option<Process>,
    /// Tables to delete at the end.
    made: Vec<String>,
}

impl Session {
    /// Creates the tables and loads the data set, if a workload needs them.
    pub async fn open(
        target: Arc<Target>,
        server: Option<Process>,
        data: DataSet,
        plan: BenchPlan,
    ) -> Result<Self> {
        // On Azure, the name of a deleted table can't be used for a while, so each run has its own names.
        let run = format!("{:08x}", crate::random::mix(plan.seed ^ epoch_nanos()) as u32);
        let data_table = match plan.data_table {
            DataTable::Temporary => format!("{}{run}d", plan.table),
            DataTable::Kept | DataTable::Reused => format!("{}data", plan.table),
        };
        let shared = Arc::new(WorkerContext {
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
                // The first error is returned; a failed deletion adds nothing.
                let _ = session.close().await;
                Err(error)
            }
        }
    }

    async fn prepare(&mut self) -> Result<()> {
        if self.plan.workloads.iter().any(|workload| !workload.needs_data()) {
            self.create(self.shared.written_table.clone(), true).await?;
        }
        if !self.plan.workloads.iter().any(|workload| workload.needs_data()) {
            return Ok(());
        }
        let table = self.shared.data_table.clone();
        match self.plan.data_table {
            DataTable::Reused => {
                let loaded = self.first_worker()?.expect_loaded().await;
                loaded.map_err(|failure| BenchError::NotLoaded { table, failure })
            }
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
    pub async fn measure(&mut self, workload: Workload) -> Result<Measured> {
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

    /// Deletes the tables of this run.
    pub async fn close(mut self) -> Result<()> {
        for table in std::mem::take(&mut self.made) {
            let path = format!("/Tables('{table}')");
            let request =
                UnsignedRequest { method: "DELETE", path: &path, query: "", headers: JSON, body: None };
            let deleted = tokio::time::timeout(CLOSE_TIME_MAX, self.control_request(request, &[204])).await;
            match deleted {
                Ok(Ok(())) => {}
                Ok(Err(Refused { failure, .. })) => return Err(BenchError::NotDeleted { table, failure }),
                Err(_) => return Err(BenchError::NotDeletedInTime { table }),
            }
        }
        Ok(())
    }

    async fn create(&mut self, table: String, delete_after: bool) -> Result<()> {
        let body = format!("{{\"TableName\":\"{table}\"}}");
        let request = UnsignedRequest {
            method: "POST",
            path: "/Tables",
            query: "",
            headers: JSON,
            body: Some(body.as_bytes()),
        };
        if let Err(Refused { status, failure }) = self.control_request(request, &[201, 204]).await {
            let exists = status == Some(409);
            return Err(BenchError::NotMade { table, url: self.url(), exists, failure });
        }
        if delete_after {
            self.made.push(table);
        }
        Ok(())
    }

    async fn control_request(
        &mut self,
        request: UnsignedRequest<'_>,
        expected: &[u16],
    ) -> std::result::Result<(), Refused> {
        let response = self.control.send(request, Instant::now()).await;
        match response {
            Ok(response) if expected.contains(&response.status) => Ok(()),
            Ok(response) => {
                Err(Refused { status: Some(response.status), failure: OperationFailure::status(&response) })
            }
            Err(trouble) => Err(Refused { status: None, failure: trouble.into() }),
        }
    }

    fn first_worker(&mut self) -> Result<&mut Worker> {
        self.workers.first_mut().ok_or(BenchError::NoConnectionLeft)
    }

    /// Fills the table in batches, over all connections.
    async fn load(&mut self) -> Result<()> {
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
            self.workers.push(ended?.map_err(BenchError::Load)?);
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
