//! The cluster that a server keeps its data in, as the status shows it. The program knows which engine that is.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::sync::Mutex;

/// How long a status waits for the cluster.
const TIME_MAX: Duration = Duration::from_secs(2);
/// How long an answer is good for: however many people look, the cluster is asked no more often.
const KEPT: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, Serialize)]
pub struct ClusterStatus {
    pub keyspace: String,
    /// The slot of this server.
    pub slot: i64,
    /// The servers that may write.
    pub front_ends: Vec<FrontEnd>,
    pub nodes: Vec<ClusterNode>,
    /// The directories of the first tables.
    pub segments: Vec<DirectorySegments>,
}

#[derive(Clone, Debug, Serialize)]
pub struct FrontEnd {
    pub slot: i64,
    /// It is this server.
    pub this: bool,
    pub table_lease_ms: Option<i32>,
    pub frozen: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct ClusterNode {
    pub address: String,
    pub datacenter: Option<String>,
    pub rack: Option<String>,
    pub up: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct DirectorySegments {
    pub account: String,
    pub table: String,
    pub segments: usize,
}

type Asked = Pin<Box<dyn Future<Output = Result<ClusterStatus, String>> + Send>>;

/// Asks the engine for the state of its cluster, for one status at a time.
#[derive(Clone)]
pub struct ClusterSource {
    ask: Arc<dyn Fn() -> Asked + Send + Sync>,
    last: Arc<Mutex<Option<(Instant, ClusterAnswer)>>>,
}

impl ClusterSource {
    pub fn new<F>(ask: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<ClusterStatus, String>> + Send + 'static,
    {
        Self { ask: Arc::new(move || Box::pin(ask())), last: Arc::default() }
    }

    pub(crate) async fn ask(&self) -> ClusterAnswer {
        let mut last = self.last.lock().await;
        if let Some((at, answer)) = &*last
            && at.elapsed() < KEPT
        {
            return answer.clone();
        }
        let answer = match tokio::time::timeout(TIME_MAX, (self.ask)()).await {
            Ok(Ok(status)) => ClusterAnswer::Known(status),
            Ok(Err(error)) => ClusterAnswer::Unknown { error },
            Err(_) => ClusterAnswer::Unknown { error: "the cluster does not answer".to_owned() },
        };
        *last = Some((Instant::now(), answer.clone()));
        answer
    }
}

impl fmt::Debug for ClusterSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterSource")
    }
}

#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum ClusterAnswer {
    Known(ClusterStatus),
    Unknown { error: String },
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn however_many_look_at_once_the_cluster_is_asked_once() {
        let asked = Arc::new(AtomicUsize::new(0));
        let source = ClusterSource::new({
            let asked = asked.clone();
            move || {
                asked.fetch_add(1, Ordering::SeqCst);
                async { Err("no node answers".to_owned()) }
            }
        });
        for look in futures_util::future::join_all((0..100).map(|_| source.ask())).await {
            let ClusterAnswer::Unknown { error } = look else { panic!("{look:?}") };
            assert_eq!(error, "no node answers");
        }
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }
}
