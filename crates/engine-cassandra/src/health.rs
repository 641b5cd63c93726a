//! Whether the cluster answers, asked all the time so that readiness can be told at once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use store::Fault;

use crate::cluster::Cluster;
use crate::freeze::Freeze;
use crate::trouble::Trouble;

const ASK_EVERY: Duration = Duration::from_secs(1);
/// A node that dies takes the requests under way with it; the next ones go elsewhere. Only silence longer than
/// that is worth telling.
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

    /// A fault if the cluster has been silent, or the right to write is lost.
    pub fn check(&self) -> Result<(), Fault> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &last.trouble {
            Some(trouble) if last.answered.elapsed() > SILENT_AFTER => {
                let seconds = last.answered.elapsed().as_secs();
                Err(Fault::cluster(format!("the cluster has not answered for {seconds} s"))
                    .because(trouble.clone()))
            }
            _ if last.answered.elapsed() > 3 * SILENT_AFTER => Err(Fault::cluster("the cluster is silent")),
            _ => Ok(()),
        }
    }

    /// Asks for as long as it is polled.
    ///
    /// What is asked is whether writes are to be refused: every server has to know that, and it takes a quorum.
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
