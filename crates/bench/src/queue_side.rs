//! The queues of a run: creates them, keeps enough messages in them, counts them, and deletes them in the end.

use std::collections::HashSet;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use connection::{Client, Target, UnsignedRequest};

use crate::control::{Control, Refused};
use crate::error::{BenchError, Result};
use crate::load::{self, Loading};
use crate::messages::MessageSet;
use crate::queue_worker::{QueueContext, QueueWorker};
use crate::random::mix;
use crate::session::{BenchPlan, Kept};
use crate::tally::OperationFailure;
use crate::worker::Worker;
use crate::workload::Workload;

/// Messages that are consumed before others are put in their place.
pub const SLICE: u64 = 2000;

#[derive(Debug)]
pub struct QueueSide {
    shared: Arc<QueueContext>,
    control: Control,
    pub workers: Vec<Worker>,
    kept: Kept,
    /// Queues to delete at the end.
    made: Vec<usize>,
}

impl QueueSide {
    pub fn new(target: &Arc<Target>, messages: MessageSet, plan: &BenchPlan, run: &str) -> Self {
        let prefix = plan.prefix.to_ascii_lowercase();
        let names = (0..messages.queues).map(|queue| match plan.kept {
            Kept::No => format!("{prefix}{run}-{queue}"),
            Kept::Loaded | Kept::Reused => format!("{prefix}data-{queue}"),
        });
        let shared = Arc::new(QueueContext {
            names: names.collect(),
            // Not the numbers of another run, whose messages may be there.
            next: AtomicU64::new(mix(plan.seed ^ crate::session::epoch_nanos()) << 32),
            turn: AtomicU64::new(0),
            visible: (0..messages.queues).map(|_| AtomicI64::new(0)).collect(),
            present: AtomicI64::new(0),
            taken: Mutex::new(HashSet::new()),
            trust: plan.trust,
            messages,
        });
        let worker = |seed| QueueWorker::new(Client::new(target.clone()), shared.clone(), seed);
        let workers = plan.seeds().map(|seed| Worker::Queues(Box::new(worker(seed)))).collect();
        let control = Control::new(target.clone());
        Self { shared, control, workers, kept: plan.kept, made: Vec::new() }
    }

    /// Creates the queues and has messages wait in them.
    pub async fn prepare(&mut self) -> Result<()> {
        for queue in 0..self.shared.names.len() {
            match self.kept {
                Kept::Reused => self.find(queue).await?,
                kept => self.create(queue, kept == Kept::No).await?,
            }
        }
        self.fill(0).await
    }

    pub fn url(&self) -> String {
        self.control.url()
    }

    /// Before a workload begins.
    pub async fn stock(&mut self, workload: Workload) -> Result<()> {
        let consumed = if workload == Workload::QueueGetDelete { SLICE } else { 0 };
        // One more, because queues take turns, and the first turn may be that of any queue.
        let reserve = consumed.div_ceil(self.shared.messages.queues) + u64::from(consumed > 0);
        self.fill(reserve).await?;
        for worker in &mut self.workers {
            worker.prepare(workload).await.map_err(BenchError::Load)?;
        }
        Ok(())
    }

    /// Puts messages until each queue has those that are to wait, and so many more.
    async fn fill(&mut self, reserve: u64) -> Result<()> {
        let mut missing: Vec<i64> = Vec::with_capacity(self.shared.names.len());
        for (queue, visible) in self.shared.visible.iter().enumerate() {
            let wanted = self.shared.messages.waiting_in(queue as u64) + reserve;
            missing.push(i64::try_from(wanted).unwrap_or(i64::MAX) - visible.load(Ordering::Relaxed));
        }
        // All queues grow side by side, as they would.
        let mut puts = Vec::new();
        while missing.iter().any(|missing| *missing > 0) {
            for (queue, missing) in missing.iter_mut().enumerate().filter(|(_, missing)| **missing > 0) {
                puts.push(queue as u32);
                *missing -= 1;
            }
        }
        load::load(&mut self.workers, Loading::Messages(puts)).await
    }

    /// Whether there are as many messages as there must be. The service's number may be too high, but not too low.
    pub async fn check_count(&mut self) -> std::result::Result<(), OperationFailure> {
        if self.shared.trust || self.kept == Kept::Reused {
            return Ok(());
        }
        let mut found = 0;
        for queue in 0..self.shared.names.len() {
            found += self.count(queue).await.map_err(|refused| refused.failure)?;
        }
        let expected = self.shared.present.load(Ordering::Relaxed);
        if found >= expected {
            return Ok(());
        }
        let what = format!("the queues have {found} messages and should have {expected}");
        Err(OperationFailure::wrong(what, b""))
    }

    /// Deletes the queues of this run.
    pub async fn close(mut self) -> Result<()> {
        for queue in std::mem::take(&mut self.made) {
            let path = self.path(queue);
            let request =
                UnsignedRequest { method: "DELETE", path: &path, query: "", headers: "", body: None };
            let what = format!("queue {}", self.shared.names[queue]);
            self.control.delete(request, 204, what).await?;
        }
        Ok(())
    }

    async fn create(&mut self, queue: usize, delete_after: bool) -> Result<()> {
        let path = self.path(queue);
        let request = UnsignedRequest { method: "PUT", path: &path, query: "", headers: "", body: Some(b"") };
        // 204: there is one already. A server that stores nothing says what it likes.
        let expected: &[u16] = if self.shared.trust { &[201, 204] } else { &[201] };
        let done = self.control.send(request, expected, Instant::now()).await.map(drop);
        if let Err(Refused { status, failure }) = done {
            let (what, exists) = (format!("queue {}", self.shared.names[queue]), status == Some(204));
            return Err(BenchError::NotMade { what, url: self.url(), exists, failure });
        }
        if delete_after {
            self.made.push(queue);
        }
        Ok(())
    }

    /// A queue of an earlier run: what is in it, and whether that is as this run would have it.
    async fn find(&mut self, queue: usize) -> Result<()> {
        let name = self.shared.names[queue].clone();
        let found = match self.count(queue).await {
            Ok(found) => found,
            Err(Refused { failure, .. }) => return Err(BenchError::NotWaiting { queue: name, failure }),
        };
        let Some(Worker::Queues(worker)) = self.workers.first_mut() else {
            return Err(BenchError::NoConnectionLeft);
        };
        if let Err(failure) = worker.expect_loaded(queue).await {
            return Err(BenchError::NotWaiting { queue: name, failure });
        }
        self.shared.visible[queue].store(found, Ordering::Relaxed);
        Ok(())
    }

    /// How many messages are in a queue, as the service says.
    async fn count(&mut self, queue: usize) -> std::result::Result<i64, Refused> {
        let path = self.path(queue);
        let request =
            UnsignedRequest { method: "GET", path: &path, query: "comp=metadata", headers: "", body: None };
        let trust = self.shared.trust;
        let response = self.control.send(request, &[200], Instant::now()).await?;
        let count = response.header("x-ms-approximate-messages-count");
        let count = count.and_then(|count| std::str::from_utf8(count).ok()?.parse().ok());
        match count {
            Some(count) => Ok(count),
            None if trust => Ok(0),
            None => {
                let failure = OperationFailure::wrong("a queue has no count".to_owned(), response.head);
                Err(Refused { status: Some(200), failure })
            }
        }
    }

    fn path(&self, queue: usize) -> String {
        format!("/{}", self.shared.names[queue])
    }
}
