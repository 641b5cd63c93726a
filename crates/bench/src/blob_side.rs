//! The containers of a run: creates them, loads the data set, and deletes them in the end.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use connection::{Target, UnsignedRequest};

use crate::blob_worker::{BlobContext, BlobWorker, put_request};
use crate::blobs::BlobSet;
use crate::control::{Control, Refused};
use crate::error::{BenchError, Result};
use crate::load::{self, Loading};
use crate::session::{BenchPlan, Kept};
use crate::worker::Worker;
use crate::workload::Workload;

const OF_CONTAINER: &str = "restype=container";

#[derive(Debug)]
pub struct BlobSide {
    shared: Arc<BlobContext>,
    control: Control,
    pub workers: Vec<Worker>,
    /// Containers to delete at the end.
    made: Vec<String>,
}

impl BlobSide {
    pub fn new(target: &Arc<Target>, set: BlobSet, plan: &BenchPlan, run: &str) -> Self {
        let prefix = plan.prefix.to_ascii_lowercase();
        let data_container = match plan.kept {
            Kept::No => format!("{prefix}{run}d"),
            Kept::Loaded | Kept::Reused => format!("{prefix}data"),
        };
        let next = AtomicU64::new(set.sizes.blobs);
        let written_container = format!("{prefix}{run}w");
        let shared =
            Arc::new(BlobContext { set, data_container, written_container, next, trust: plan.trust });
        let worker = |seed| BlobWorker::new(target, shared.clone(), seed);
        let workers = plan.seeds().map(|seed| Worker::Blobs(Box::new(worker(seed)))).collect();
        Self { shared, control: Control::new(target.clone()), workers, made: Vec::new() }
    }

    /// Creates the containers and loads the data set, if a workload needs them.
    pub async fn prepare(&mut self, plan: &BenchPlan) -> Result<()> {
        if plan.blobs().any(Workload::writes_own) {
            self.create(self.shared.written_container.clone(), true).await?;
        }
        if !plan.blobs().any(Workload::needs_data) {
            return Ok(());
        }
        let container = self.shared.data_container.clone();
        match plan.kept {
            Kept::Reused => {
                let Some(Worker::Blobs(worker)) = self.workers.first_mut() else {
                    return Err(BenchError::NoConnectionLeft);
                };
                let loaded = worker.expect_loaded().await;
                loaded.map_err(|failure| BenchError::BlobsNotLoaded { container, failure })
            }
            kept => {
                self.create(container, kept == Kept::No).await?;
                load::load(&mut self.workers, Loading::Blobs(self.shared.set.sizes.blobs)).await
            }
        }
    }

    pub fn url(&self) -> String {
        self.control.url()
    }

    /// Deletes the containers of this run.
    pub async fn close(mut self) -> Result<()> {
        for container in std::mem::take(&mut self.made) {
            let path = format!("/{container}");
            let request = UnsignedRequest {
                method: "DELETE",
                path: &path,
                query: OF_CONTAINER,
                headers: "",
                body: None,
            };
            self.control.delete(request, 202, format!("container {container}")).await?;
        }
        Ok(())
    }

    async fn create(&mut self, container: String, delete_after: bool) -> Result<()> {
        let path = format!("/{container}");
        let request = UnsignedRequest { body: Some(b""), ..put_request(&path, OF_CONTAINER) };
        let done = self.control.send(request, &[201], Instant::now()).await.map(drop);
        if let Err(Refused { status, failure }) = done {
            let (what, exists) = (format!("container {container}"), status == Some(409));
            return Err(BenchError::NotMade { what, url: self.url(), exists, failure });
        }
        if delete_after {
            self.made.push(container);
        }
        Ok(())
    }
}
