//! The store that is moved, and how to freeze it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::control;
use admin::{Command, MigrationCheck};
use async_trait::async_trait;
use engine_cassandra::CassandraEngine;
use engine_embedded::EmbeddedEngine;
use store::Engine as _;

use super::error::{MigrateError, Result};
use super::location::{self, OpenStore};
use crate::upkeep::checkpoint::{self, CheckpointError};
use crate::upkeep::files;

/// A store that others may write to.
#[async_trait]
pub trait Source: Send {
    /// A snapshot of the store as it is now, in this directory if it needs files.
    async fn snapshot(&mut self, directory: &Path) -> Result<OpenStore>;

    /// Opens a snapshot of an earlier run.
    async fn reopen(&mut self, directory: &Path) -> Result<OpenStore>;

    /// Whether nobody can write to it, even if it is not frozen.
    fn stands_still(&self) -> bool;

    /// On return, all writes are refused.
    async fn freeze(&mut self) -> Result<()>;

    /// Whether no write can have happened since `freeze`.
    async fn is_still_frozen(&mut self) -> Result<bool>;

    async fn thaw(&mut self) -> Result<()>;

    /// The command that accepts writes again.
    fn thawed_by(&self) -> String;

    /// Closes the store, if this process has opened it.
    async fn close(&mut self) {}
}

/// A data directory, with or without a running server.
pub struct DirectorySource {
    data: PathBuf,
    keeper: Keeper,
}

/// Which process has the directory open.
enum Keeper {
    Server {
        socket: PathBuf,
        frozen: Option<String>,
    },
    /// This one, so no server can open it.
    Ourselves(Arc<EmbeddedEngine>),
}

impl DirectorySource {
    pub async fn open(data: &Path, control: Option<&Path>) -> Result<Self> {
        let socket = control.map_or_else(|| data.join(control::SOCKET), Path::to_owned);
        let keeper = if control.is_some() || control::is_answered(&socket) {
            Keeper::Server { socket, frozen: None }
        } else {
            // Opening would create a store in an empty directory.
            if !data.join(files::FORMAT_FILE).exists() {
                return Err(MigrateError::NoStore { data: data.to_owned() });
            }
            let opened = location::open_at_rest(data).await;
            Keeper::Ourselves(opened.map_err(|error| MigrateError::OpenSource { source: Box::new(error) })?)
        };
        Ok(Self { data: data.to_owned(), keeper })
    }

    pub fn is_served(&self) -> bool {
        matches!(self.keeper, Keeper::Server { .. })
    }
}

async fn ask(socket: &Path, command: Command) -> Result<String> {
    let socket = socket.to_owned();
    Ok(tokio::task::spawn_blocking(move || control::ask(&socket, command)).await??)
}

#[async_trait]
impl Source for DirectorySource {
    async fn snapshot(&mut self, directory: &Path) -> Result<OpenStore> {
        // A backup at the same time would use or remove this checkpoint.
        let turn = checkpoint::take_turn(&self.data)?;
        let taken = match &self.keeper {
            Keeper::Server { socket, .. } => {
                let socket = socket.clone();
                tokio::task::spawn_blocking(move || checkpoint::ask_for_checkpoint(&socket)).await??
            }
            Keeper::Ourselves(engine) => {
                let engine = engine.clone();
                let taken = tokio::task::spawn_blocking(move || engine.checkpoint()).await;
                taken?.map_err(CheckpointError::Fault)?
            }
        };
        let held = checkpoint::hold(&taken)?;
        fs::rename(&taken.directory, directory).map_err(|source| MigrateError::OutOfReach {
            checkpoint: taken.directory.clone(),
            directory: directory.to_owned(),
            source,
        })?;
        drop((held, turn));
        self.reopen(directory).await
    }

    async fn reopen(&mut self, directory: &Path) -> Result<OpenStore> {
        location::open_at_rest(directory).await.map(OpenStore::from)
    }

    fn stands_still(&self) -> bool {
        !self.is_served()
    }

    async fn freeze(&mut self) -> Result<()> {
        if let Keeper::Server { socket, frozen } = &mut self.keeper {
            *frozen = Some(ask(socket, Command::Freeze).await?);
        }
        Ok(())
    }

    /// A server answers with the time of its freeze. After a thaw or a restart it answers with another time.
    async fn is_still_frozen(&mut self) -> Result<bool> {
        match &self.keeper {
            Keeper::Server { socket, frozen } => Ok(Some(ask(socket, Command::Freeze).await?) == *frozen),
            Keeper::Ourselves(_) => Ok(true),
        }
    }

    async fn thaw(&mut self) -> Result<()> {
        match &self.keeper {
            Keeper::Server { socket, .. } => ask(socket, Command::Thaw(MigrationCheck::Done)).await.map(drop),
            Keeper::Ourselves(_) => Ok(()),
        }
    }

    fn thawed_by(&self) -> String {
        "partita thaw".to_owned()
    }
}

/// A cluster. This process joins it as one more server. There are no snapshots: it is read while it changes.
pub struct ClusterSource {
    engine: Arc<CassandraEngine>,
    name: String,
}

impl ClusterSource {
    pub fn new(engine: Arc<CassandraEngine>, name: String) -> Self {
        Self { engine, name }
    }
}

#[async_trait]
impl Source for ClusterSource {
    async fn snapshot(&mut self, _directory: &Path) -> Result<OpenStore> {
        Ok(self.engine.clone().into())
    }

    async fn reopen(&mut self, _directory: &Path) -> Result<OpenStore> {
        Err(MigrateError::NoSnapshots)
    }

    fn stands_still(&self) -> bool {
        false
    }

    async fn freeze(&mut self) -> Result<()> {
        eprintln!(
            "asking the cluster's servers to refuse writes; it takes up to half a minute until none is in \
             flight"
        );
        Ok(self.engine.freeze().await?)
    }

    async fn is_still_frozen(&mut self) -> Result<bool> {
        Ok(self.engine.is_frozen().await?)
    }

    async fn thaw(&mut self) -> Result<()> {
        Ok(self.engine.thaw().await?)
    }

    fn thawed_by(&self) -> String {
        format!("partita store thaw {}", self.name)
    }

    async fn close(&mut self) {
        self.engine.close().await;
    }
}
