//! The flags of `partita blob`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::queue::{QueueConnectionFlags as BlobConnectionFlags, Shown, pair};

pub const BLOB_HELP: &str = "\
The endpoint is that of AZURE_STORAGE_CONNECTION_STRING or --connection-string, and without them the development account \
on 127.0.0.1:10000.

Exit status: 0 done, 1 failed, 2 wrong flags, 3 there is no such blob (get, show, delete).

Examples:
  partita blob create-container photos
  partita blob put photos 2026/cat.jpg --file cat.jpg --content-type image/jpeg
  partita blob list photos --prefix 2026/
  partita blob get photos 2026/cat.jpg > cat.jpg
  partita blob show photos 2026/cat.jpg --format json
  partita blob export --container photos --to photos
  partita blob import --container photos --from photos";

const EXPORT_HELP: &str = "\
Each blob becomes a file of its name in the folder. A name that can't be the name of a file everywhere, because it has \
.. or characters such as : or is too long, or differs from another one only in case, becomes a file in %more. The file \
%index.jsonl has a line for each blob: its name, its file, its type, headers, metadata, tags and tier. Snapshots and \
leases are not exported.

An interrupted run can be continued: run the same command with --resume. What is complete is not read again. An export is \
not a snapshot: a blob that is written during the export may be in it in either state.";

const IMPORT_HELP: &str = "\
Reads a folder of `partita blob export`, and writes each blob as it was: type, headers, metadata, tags, tier. A folder \
without %index.jsonl is imported as it is: each file becomes a block blob of its path. Links are not followed. Blobs that \
exist are replaced.

An interrupted run leaves %import-progress in the folder; run the same command with --resume to continue.";

#[derive(Subcommand, Clone, Debug)]
pub enum BlobCommand {
    /// List the containers of an account, or the blobs of a container
    List(BlobListCommand),
    /// Create a container
    CreateContainer(CreateContainerCommand),
    /// Delete a container with all of its blobs
    DeleteContainer(OneContainer),
    /// Write a block blob from standard input or a file, of any length
    Put(Box<BlobPutCommand>),
    /// Write the content of a blob to standard output or a file
    Get(BlobGetCommand),
    /// Print what is known of a blob
    Show(BlobShowCommand),
    /// Delete a blob
    Delete(BlobDeleteCommand),
    /// Export a container, or all containers of an account, to folders of files
    Export(Box<BlobExportCommand>),
    /// Import a folder of files into a container
    Import(Box<BlobImportCommand>),
}

#[derive(Args, Clone, Debug)]
pub struct OneContainer {
    /// The container
    #[arg(value_name = "CONTAINER")]
    pub container: String,
    #[command(flatten)]
    pub connection: BlobConnectionFlags,
}

#[derive(Args, Clone, Debug)]
pub struct OneBlob {
    #[command(flatten)]
    pub of: OneContainer,
    /// The blob
    #[arg(value_name = "NAME")]
    pub name: String,
}

#[derive(Args, Clone, Debug)]
pub struct BlobListCommand {
    /// The container whose blobs are listed [default: list the containers]
    #[arg(value_name = "CONTAINER")]
    pub container: Option<String>,
    /// Only those whose names begin with this
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub prefix: String,
    /// Show what is behind a slash as one folder
    #[arg(long, requires = "container")]
    pub folders: bool,
    /// Also list snapshots
    #[arg(long, requires = "container", conflicts_with = "folders")]
    pub snapshots: bool,
    #[arg(long, value_enum, default_value = "text")]
    pub format: Shown,
    #[command(flatten)]
    pub connection: BlobConnectionFlags,
}

/// What can be read without a key or a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Public {
    /// Blobs, by their names
    Blob,
    /// Blobs and their list
    Container,
}

#[derive(Args, Clone, Debug)]
pub struct CreateContainerCommand {
    #[command(flatten)]
    pub of: OneContainer,
    /// Metadata of the container; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub metadata: Vec<(String, String)>,
    /// What everybody can read
    #[arg(long, value_enum)]
    pub public: Option<Public>,
}

#[derive(Args, Clone, Debug)]
pub struct BlobPutCommand {
    #[command(flatten)]
    pub of: OneBlob,
    /// The file to read [default: standard input]
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The type of the content, such as text/plain
    #[arg(long, value_name = "TYPE")]
    pub content_type: Option<String>,
    /// Metadata of the blob; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub metadata: Vec<(String, String)>,
    /// A tag of the blob; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub tag: Vec<(String, String)>,
    /// Fail if the blob exists
    #[arg(long)]
    pub if_absent: bool,
    /// Number of blocks that are sent at the same time
    #[arg(long, value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub parallel: u16,
}

#[derive(Args, Clone, Debug)]
pub struct BlobGetCommand {
    #[command(flatten)]
    pub of: OneBlob,
    /// The file to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub to: Option<PathBuf>,
    /// The snapshot of this time
    #[arg(long, value_name = "TIME")]
    pub snapshot: Option<String>,
}

#[derive(Args, Clone, Debug)]
pub struct BlobShowCommand {
    #[command(flatten)]
    pub of: OneBlob,
    /// The snapshot of this time
    #[arg(long, value_name = "TIME")]
    pub snapshot: Option<String>,
    #[arg(long, value_enum, default_value = "text")]
    pub format: Shown,
}

#[derive(Args, Clone, Debug)]
pub struct BlobDeleteCommand {
    #[command(flatten)]
    pub of: OneBlob,
    /// Delete its snapshots too; without this, a blob that has some is not deleted
    #[arg(long, conflicts_with = "snapshot")]
    pub snapshots: bool,
    /// Delete only the snapshot of this time
    #[arg(long, value_name = "TIME")]
    pub snapshot: Option<String>,
}

#[derive(Args, Clone, Debug)]
#[command(after_help = EXPORT_HELP)]
pub struct BlobExportCommand {
    /// The container to export
    #[arg(long, value_name = "NAME", required_unless_present = "all")]
    pub container: Option<String>,
    /// Export every container of the account, each to a folder of its name
    #[arg(long, conflicts_with = "container")]
    pub all: bool,
    /// The folder to write
    #[arg(long, value_name = "FOLDER")]
    pub to: PathBuf,
    /// Only blobs whose names begin with this
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub prefix: String,
    /// Number of blobs that are read at the same time
    #[arg(long, value_name = "NUMBER", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub parallel: u16,
    /// Continue an interrupted run
    #[arg(long, conflicts_with = "overwrite")]
    pub resume: bool,
    /// Write over the files of an earlier export; files that it had and this one has not stay
    #[arg(long)]
    pub overwrite: bool,
    /// Print only errors
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub connection: BlobConnectionFlags,
}

#[derive(Args, Clone, Debug)]
#[command(after_help = IMPORT_HELP)]
pub struct BlobImportCommand {
    /// The container to import into; created if missing, with the metadata in the folder
    #[arg(long, value_name = "NAME", required_unless_present = "all")]
    pub container: Option<String>,
    /// Import every folder in a folder, each into the container of its name
    #[arg(long, conflicts_with = "container")]
    pub all: bool,
    /// The folder to read
    #[arg(long, value_name = "FOLDER")]
    pub from: PathBuf,
    /// Number of blobs that are written at the same time
    #[arg(long, value_name = "NUMBER", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub parallel: u16,
    /// Continue an interrupted run
    #[arg(long)]
    pub resume: bool,
    /// Print only errors
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub connection: BlobConnectionFlags,
}
