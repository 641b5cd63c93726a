//! The cluster that a server keeps its data in, as the status shows it. The program knows which engine that is.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

/// How long a status waits for the cluster.
const TIME_MAX: Duration = Duration::from_secs(2);

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

/// Asks the engine for the state of its cluster.
#[derive(Clone)]
pub struct ClusterSource(Arc<dyn Fn() -> Asked + Send + Sync>);

impl ClusterSource {
    pub fn new<F>(ask: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<ClusterStatus, String>> + Send + 'static,
    {
        Self(Arc::new(move || Box::pin(ask())))
    }

    pub(crate) async fn ask(&self) -> ClusterAnswer {
        match tokio::time::timeout(TIME_MAX, (self.0)()).await {
            Ok(Ok(status)) => ClusterAnswer::Known(status),
            Ok(Err(error)) => ClusterAnswer::Unknown { error },
            Err(_) => ClusterAnswer::Unknown { error: "the cluster does not answer".to_owned() },
        }
    }
}

impl fmt::Debug for ClusterSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterSource")
    }
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum ClusterAnswer {
    Known(ClusterStatus),
    Unknown { error: String },
}
