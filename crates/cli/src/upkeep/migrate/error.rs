//! Why `partita migrate` fails, and what to do then.

use std::io;
use std::path::PathBuf;

use engine_cassandra::{OptionsError, Trouble};
use engine_embedded::OpenError;
use thiserror::Error;
use tokio::task::JoinError;

use crate::cluster::ClusterError;
use crate::control::AskError;
use crate::upkeep::checkpoint::{CheckpointError, TurnError};
use crate::upkeep::marks::{Mark, MarkError};

pub type Result<T> = std::result::Result<T, MigrateError>;

#[derive(Debug, Error)]
pub enum MigrateError {
    // What was asked for.
    #[error("name the target with --to")]
    NoTarget,
    #[error("{place} is both the source and the target")]
    SamePlace { place: String },
    #[error("{scheme}:// is not supported; name a data directory or cassandra://HOST/KEYSPACE")]
    Scheme { scheme: String },
    #[error("the name of the store is empty; name a data directory or cassandra://HOST/KEYSPACE")]
    NoPlace,
    #[error(transparent)]
    Address(#[from] OptionsError),
    #[error("{name:?} is not an account name: use 3 to 24 lower-case letters and digits")]
    AccountName { name: String },
    #[error("the data in {} was moved to {} at {}; move it from there", .data.display(), .moved.place, .moved.time)]
    MovedElsewhere { data: PathBuf, moved: Mark },
    #[error(
        "the target already has tables or properties of account {account}; choose another target, or \
         replace them with --replace"
    )]
    Occupied { account: String },

    // Opening source and target.
    #[error("can't start its threads: {source}; raise the system's limit on threads")]
    Threads { source: io::Error },
    #[error("there is no store in {}; name its data directory with --data", .data.display())]
    NoStore { data: PathBuf },
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("{source}; if its server runs, name the server's socket with --control")]
    OpenSource { source: Box<MigrateError> },
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error("a step was interrupted: {0}; run the command again")]
    CutShort(#[from] JoinError),

    // The state of the move.
    #[error("can't use {}: {source}; check its permissions and its free space", .directory.display())]
    Unusable { directory: PathBuf, source: io::Error },
    #[error("another `partita migrate` is running in {}; wait for it", .data.display())]
    AtWork { data: PathBuf },
    #[error("{} can't be read ({source}); remove {} to start again", .file.display(), .directory.display())]
    StateDamaged { file: PathBuf, directory: PathBuf, source: Box<toml::de::Error> },
    #[error(
        "a migration with {begun} is not finished, and this one is with {asked}; finish that one, or remove \
         {} to cancel it",
        .directory.display()
    )]
    OtherMove { begun: String, asked: String, directory: PathBuf },
    #[error("the old snapshots in {} can't be removed: {source}; check its permissions", .directory.display())]
    Snapshots { directory: PathBuf, source: io::Error },
    #[error(transparent)]
    Mark(#[from] MarkError),

    // The source, which others may use.
    #[error(transparent)]
    Turn(#[from] TurnError),
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error(
        "can't move the checkpoint {} to {}: {source}; is --data the server's data directory?",
        .checkpoint.display(), .directory.display()
    )]
    OutOfReach { checkpoint: PathBuf, directory: PathBuf, source: io::Error },
    #[error("a cluster has no snapshots")]
    NoSnapshots,
    #[error("could not freeze or thaw the cluster's servers: {0}; run the command again")]
    Switch(#[from] Trouble),
    #[error("the accounts of the source can't be listed: {0}")]
    Accounts(#[source] ::store::Error),

    // The move itself.
    #[error(transparent)]
    Move(Box<::migrate::Error>),
    #[error("can't read the answer: {source}; with --finish the command does not ask")]
    NoAnswer { source: io::Error },
    #[error("interrupted")]
    Interrupted,
    #[error("the server was thawed or restarted during the last step, and may have accepted writes")]
    Thawed,
    #[error("{source}; nothing was moved, and {}", afterwards(.thaw.as_deref(), .thawed_by))]
    Unfinished {
        source: Box<MigrateError>,
        /// Why writes are still refused, if they are.
        thaw: Option<Box<MigrateError>>,
        thawed_by: String,
    },
}

impl From<::migrate::Error> for MigrateError {
    fn from(error: ::migrate::Error) -> Self {
        Self::Move(Box::new(error))
    }
}

fn afterwards(thaw: Option<&MigrateError>, thawed_by: &str) -> String {
    thaw.map_or("writes are accepted again".to_owned(), |why| {
        format!("writes are still refused, because {why}; run `{thawed_by}` to accept them again")
    })
}
