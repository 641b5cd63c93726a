//! Asks the cluster regularly whether it answers, so that readiness is known at any time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use store::Fault;

use crate::cluster::Cluster;
use crate::freeze::Freeze;
use crate::trouble::Trouble;

const ASK_EVERY: Duration = Duration::from_secs(1);
/// When a node dies, its requests in flight get no answer, and the next ones go to other nodes. Only a longer silence
/// is reported.
const SILENT_AFTER: Duration = Duration::from_secs(6);

#[derive(Debug)]
pub struct Health {
    last: Mutex<Last>,
}

#[derive(Debug)]
struct Last {
    answered: Instant,
    trouble: Option<Trouble>,
}

impl Health {
    pub fn new() -> Self {
        Self { last: Mutex::new(Last { answered: Instant::now(), trouble: None }) }
    }

    /// A fault if the cluster has not answered for a while, or the right to write is lost.
    pub fn check(&self) -> Result<(), Fault> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &last.trouble {
            Some(trouble) if last.answered.elapsed() > SILENT_AFTER => {
                let seconds = last.answered.elapsed().as_secs();
                Err(Fault::cluster(format!("the cluster has not answered for {seconds} s"))
                    .because(trouble.clone()))
            }
            _ if last.answered.elapsed() > 3 * SILENT_AFTER => {
                Err(Fault::cluster("the cluster does not answer"))
            }
            _ => Ok(()),
        }
    }

    /// Asks as long as it is polled. The question is whether writes are frozen: every server has to know that, and the
    /// answer takes a quorum.
    pub async fn watch(self: Arc<Self>, cluster: Arc<Cluster>, freeze: Arc<Freeze>) {
        loop {
            let trouble = match freeze.look().await {
                Ok(_) if cluster.clock.is_leased() => None,
                Ok(_) => Some(Trouble::refused("the slot lease has expired")),
                Err(trouble) => Some(trouble),
            };
            {
                let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
                if trouble.is_none() {
                    last.answered = Instant::now();
                }
                last.trouble = trouble;
            }
            tokio::time::sleep(ASK_EVERY).await;
        }
    }
}
