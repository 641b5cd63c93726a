//! The location of a store, as the command names it, and how to open the store.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use engine_cassandra::{CassandraEngine, CassandraObjects};
use engine_embedded::{EmbeddedEngine, EmbeddedObjects, Options};
use migrate::Shared;
use store::Objects;

use super::error::{MigrateError, Result};
use crate::cluster;

/// Small, because a snapshot is read once from beginning to end.
const SNAPSHOT_CACHE_BYTES: usize = 32 << 20;

/// How long to wait for a cluster that does not answer.
const CLUSTER_WAIT: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreLocation {
    Directory(PathBuf),
    Cluster(Box<engine_cassandra::Options>),
}

/// An open store: its rows and its content.
#[derive(Clone)]
pub struct OpenStore {
    pub engine: Shared,
    pub objects: Arc<dyn Objects>,
}

impl From<Arc<EmbeddedEngine>> for OpenStore {
    fn from(engine: Arc<EmbeddedEngine>) -> Self {
        Self { objects: Arc::new(EmbeddedObjects::new(engine.clone())), engine }
    }
}

impl From<Arc<CassandraEngine>> for OpenStore {
    fn from(engine: Arc<CassandraEngine>) -> Self {
        Self { objects: Arc::new(CassandraObjects::of_a_move(engine.clone())), engine }
    }
}

impl StoreLocation {
    pub fn parse(text: &str) -> Result<Self> {
        match text.split_once("://") {
            Some(("cassandra", _)) => {
                Ok(Self::Cluster(Box::new(engine_cassandra::Options::from_address(text)?)))
            }
            Some((scheme, _)) => Err(MigrateError::Scheme { scheme: scheme.to_owned() }),
            None if text.is_empty() => Err(MigrateError::NoPlace),
            None => Ok(Self::Directory(text.into())),
        }
    }

    /// For reading and writing.
    pub async fn open(&self) -> Result<OpenStore> {
        match self {
            Self::Directory(path) => open(Options::new(path)).await.map(OpenStore::from),
            Self::Cluster(options) => open_cluster(options).await.map(OpenStore::from),
        }
    }

    /// `None` for a cluster.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Self::Directory(path) => Some(path),
            Self::Cluster(_) => None,
        }
    }

    /// Does not depend on the current directory. Has no password.
    pub fn name(&self) -> String {
        match self {
            Self::Directory(path) => shown(path),
            Self::Cluster(options) => options.to_string(),
        }
    }

    /// The command that serves it.
    pub fn serve(&self) -> String {
        match self {
            Self::Directory(path) => format!("partita serve --data {}", shown(path)),
            Self::Cluster(options) => format!("partita serve --store {options}"),
        }
    }
}

pub fn shown(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

pub async fn open_cluster(options: &engine_cassandra::Options) -> Result<Arc<CassandraEngine>> {
    Ok(Arc::new(cluster::connect(options.clone(), CLUSTER_WAIT).await?))
}

pub async fn open(options: Options) -> Result<Arc<EmbeddedEngine>> {
    let opened = tokio::task::spawn_blocking(|| EmbeddedEngine::open(options)).await;
    Ok(Arc::new(opened??))
}

/// Opens a snapshot, or a store only to make a snapshot of it.
pub async fn open_at_rest(directory: &Path) -> Result<Arc<EmbeddedEngine>> {
    let mut options = Options::new(directory);
    options.block_cache_bytes = SNAPSHOT_CACHE_BYTES;
    options.write_buffer_bytes = SNAPSHOT_CACHE_BYTES / 2;
    options.at_rest = true;
    open(options).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_a_directory_or_a_cluster() {
        let cluster = StoreLocation::parse("cassandra://u:secret@h:1/k?tls=true").unwrap();
        assert_eq!(cluster.name(), "cassandra://u@h:1/k");
        assert_eq!(StoreLocation::parse("/srv/data").unwrap(), StoreLocation::Directory("/srv/data".into()));
        for unknown in ["", "redis://host", "cassandra://host"] {
            assert!(StoreLocation::parse(unknown).is_err(), "{unknown}");
        }
    }
}
