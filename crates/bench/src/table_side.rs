//! The tables of a run: creates them, loads the data set, and deletes them in the end.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use connection::{Client, Target, UnsignedRequest};

use crate::control::{Control, Refused};
use crate::data::DataSet;
use crate::error::{BenchError, Result};
use crate::load::{self, Batches, Loading};
use crate::session::{BenchPlan, Kept};
use crate::table_worker::{TableContext, TableWorker};
use crate::worker::Worker;
use crate::workload::Workload;

const JSON: &str = "Accept: application/json;odata=nometadata\r\nContent-Type: application/json\r\n\
                    Prefer: return-no-content\r\n";

#[derive(Debug)]
pub struct TableSide {
    shared: Arc<TableContext>,
    control: Control,
    pub workers: Vec<Worker>,
    /// Tables to delete at the end.
    made: Vec<String>,
}

impl TableSide {
    pub fn new(target: &Arc<Target>, data: DataSet, plan: &BenchPlan, run: &str) -> Self {
        let data_table = match plan.kept {
            Kept::No => format!("{}{run}d", plan.prefix),
            Kept::Loaded | Kept::Reused => format!("{}data", plan.prefix),
        };
        let shared = Arc::new(TableContext {
            data,
            data_table,
            written_table: format!("{}{run}w", plan.prefix),
            run: run.to_owned(),
            next: AtomicU64::new(0),
            trust: plan.trust,
        });
        let worker = |seed| TableWorker::new(Client::new(target.clone()), shared.clone(), seed);
        let workers = plan.seeds().map(|seed| Worker::Tables(Box::new(worker(seed)))).collect();
        Self { shared, control: Control::new(target.clone()), workers, made: Vec::new() }
    }

    /// Creates the tables and loads the data set, if a workload needs them.
    pub async fn prepare(&mut self, plan: &BenchPlan) -> Result<()> {
        if plan.tables().any(Workload::writes_own) {
            self.create(self.shared.written_table.clone(), true).await?;
        }
        if !plan.tables().any(Workload::needs_data) {
            return Ok(());
        }
        let table = self.shared.data_table.clone();
        match plan.kept {
            Kept::Reused => {
                let Some(Worker::Tables(worker)) = self.workers.first_mut() else {
                    return Err(BenchError::NoConnectionLeft);
                };
                let loaded = worker.expect_loaded().await;
                loaded.map_err(|failure| BenchError::NotLoaded { table, failure })
            }
            kept => {
                self.create(table, kept == Kept::No).await?;
                load::load(&mut self.workers, Loading::Entities(Batches::of(&self.shared.data))).await
            }
        }
    }

    pub fn url(&self) -> String {
        self.control.url()
    }

    /// Deletes the tables of this run.
    pub async fn close(mut self) -> Result<()> {
        for table in std::mem::take(&mut self.made) {
            let path = format!("/Tables('{table}')");
            let request =
                UnsignedRequest { method: "DELETE", path: &path, query: "", headers: JSON, body: None };
            self.control.delete(request, 204, format!("table {table}")).await?;
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
        let done = self.control.send(request, &[201, 204], Instant::now()).await.map(drop);
        if let Err(Refused { status, failure }) = done {
            let (what, exists) = (format!("table {table}"), status == Some(409));
            return Err(BenchError::NotMade { what, url: self.url(), exists, failure });
        }
        if delete_after {
            self.made.push(table);
        }
        Ok(())
    }
}
