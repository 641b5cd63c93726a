//! What is moved, and how it is made to stand still.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::control::{self, Command};
use async_trait::async_trait;
use engine_cassandra::CassandraEngine;
use engine_embedded::EmbeddedEngine;
use migrate::Shared;
use store::Engine as _;

use super::place;
use crate::upkeep::{backup, files};

/// A store that others may be writing to.
#[async_trait]
pub trait Source: Send {
    /// The store as it is now, to be read at leisure; in this directory, if that is what it takes.
    async fn snapshot(&mut self, directory: &Path) -> Result<Shared, String>;

    /// A snapshot that was taken by an earlier run.
    async fn reopen(&mut self, directory: &Path) -> Result<Shared, String>;

    /// Whether nobody writes to it, frozen or not.
    fn stands_still(&self) -> bool;

    /// From now on all writes are refused.
    async fn freeze(&mut self) -> Result<(), String>;

    /// Whether no write can have been made since `freeze`.
    async fn is_still_frozen(&mut self) -> Result<bool, String>;

    async fn thaw(&mut self) -> Result<(), String>;

    /// The command with which others have writes taken again.
    fn thawed_by(&self) -> String;

    /// Lets go of it.
    async fn close(&mut self) {}
}

/// A data directory, with its server or without one.
pub struct Directory {
    data: PathBuf,
    keeper: Keeper,
}

/// Who has it open.
enum Keeper {
    Server {
        socket: PathBuf,
        frozen: Option<String>,
    },
    /// No server: we have, and so nobody else can.
    Ourselves(Arc<EmbeddedEngine>),
}

impl Directory {
    pub async fn open(data: &Path, control: Option<&Path>) -> Result<Self, String> {
        let socket = control.map_or_else(|| data.join(control::SOCKET), Path::to_owned);
        let keeper = if control.is_some() || control::is_answered(&socket) {
            Keeper::Server { socket, frozen: None }
        } else {
            // Opening would make a store of an empty directory.
            if !data.join(files::FORMAT_FILE).exists() {
                let shown = data.display();
                return Err(format!("there is no store in {shown}; name its data directory with --data"));
            }
            Keeper::Ourselves(place::open_at_rest(data).await.map_err(|error| {
                format!("{error}; if its server runs, name the server's socket with --control")
            })?)
        };
        Ok(Self { data: data.to_owned(), keeper })
    }

    pub fn is_served(&self) -> bool {
        matches!(self.keeper, Keeper::Server { .. })
    }
}

async fn ask(socket: &Path, command: Command) -> Result<String, String> {
    let socket = socket.to_owned();
    let asked = tokio::task::spawn_blocking(move || control::ask(&socket, command)).await;
    asked.map_err(|error| error.to_string())?
}

#[async_trait]
impl Source for Directory {
    async fn snapshot(&mut self, directory: &Path) -> Result<Shared, String> {
        // A backup would take our checkpoint for its own.
        let turn = backup::take_turn(&self.data)?;
        let checkpoint = match &self.keeper {
            Keeper::Server { socket, .. } => {
                let socket = socket.clone();
                let asked = tokio::task::spawn_blocking(move || backup::ask_for_checkpoint(&socket)).await;
                asked.map_err(|error| error.to_string())??
            }
            Keeper::Ourselves(engine) => {
                let engine = engine.clone();
                let taken = tokio::task::spawn_blocking(move || engine.checkpoint()).await;
                taken.map_err(|error| error.to_string())?.map_err(|fault| fault.to_string())?
            }
        };
        fs::rename(&checkpoint.directory, directory).map_err(|error| {
            format!(
                "the checkpoint {} can't be taken to {}: {error}; is --data the server's data directory?",
                checkpoint.directory.display(),
                directory.display()
            )
        })?;
        drop(turn);
        self.reopen(directory).await
    }

    async fn reopen(&mut self, directory: &Path) -> Result<Shared, String> {
        place::open_at_rest(directory).await.map(|engine| engine as Shared)
    }

    fn stands_still(&self) -> bool {
        !self.is_served()
    }

    async fn freeze(&mut self) -> Result<(), String> {
        if let Keeper::Server { socket, frozen } = &mut self.keeper {
            *frozen = Some(ask(socket, Command::Freeze).await?);
        }
        Ok(())
    }

    /// A server says since when it is frozen; one that was thawed or restarted meanwhile says another time.
    async fn is_still_frozen(&mut self) -> Result<bool, String> {
        match &self.keeper {
            Keeper::Server { socket, frozen } => Ok(Some(ask(socket, Command::Freeze).await?) == *frozen),
            Keeper::Ourselves(_) => Ok(true),
        }
    }

    async fn thaw(&mut self) -> Result<(), String> {
        match &self.keeper {
            Keeper::Server { socket, .. } => ask(socket, Command::Thaw).await.map(drop),
            Keeper::Ourselves(_) => Ok(()),
        }
    }

    fn thawed_by(&self) -> String {
        "partita thaw".to_owned()
    }
}

/// A cluster, of which we are one more server. It is read as it changes, so no look at it stands for a later one.
pub struct Cluster {
    engine: Arc<CassandraEngine>,
    name: String,
}

impl Cluster {
    pub fn new(engine: Arc<CassandraEngine>, name: String) -> Self {
        Self { engine, name }
    }
}

#[async_trait]
impl Source for Cluster {
    async fn snapshot(&mut self, _directory: &Path) -> Result<Shared, String> {
        Ok(self.engine.clone())
    }

    async fn reopen(&mut self, _directory: &Path) -> Result<Shared, String> {
        Err("a cluster has no snapshots".to_owned())
    }

    fn stands_still(&self) -> bool {
        false
    }

    async fn freeze(&mut self) -> Result<(), String> {
        eprintln!(
            "asking the cluster's servers to refuse writes; up to half a minute until none is under way any more"
        );
        self.engine.freeze().await.map_err(|trouble| trouble.to_string())
    }

    async fn is_still_frozen(&mut self) -> Result<bool, String> {
        self.engine.is_frozen().await.map_err(|trouble| trouble.to_string())
    }

    async fn thaw(&mut self) -> Result<(), String> {
        self.engine.thaw().await.map_err(|trouble| trouble.to_string())
    }

    fn thawed_by(&self) -> String {
        format!("partita store thaw {}", self.name)
    }

    async fn close(&mut self) {
        self.engine.close().await;
    }
}
