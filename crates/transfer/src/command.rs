//! The flags of `partita export` and `partita import`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::format::FileFormat;

const EXPORT_HELP: &str = "\
JSON lines have one entity per line, exactly as the service writes it, and keep every type. CSV has the columns \
PartitionKey,RowKey,Timestamp,Name,Name@type,... as Azure Storage Explorer writes them. The entities of a table can \
have different properties, so an export to CSV first reads the whole table to find the columns, unless --columns or \
--select names them.

An interrupted run leaves FILE.progress beside FILE; run the same command with --resume to continue. An export is not \
a snapshot: an entity that is written during the export may or may not be in it.

Examples:
  export AZURE_STORAGE_CONNECTION_STRING='UseDevelopmentStorage=true'
  partita export --table Books --to books.jsonl
  partita export --table Books --to books.csv --filter \"PartitionKey eq 'sf'\" --select Title,Year
  partita export --all --to backup
  partita export --table Books --to - | gzip > books.jsonl.gz";

const IMPORT_HELP: &str = "\
Reads files of `partita export` and Azure Storage Explorer. Timestamps in a file are ignored: the service gives every \
entity the time of its write. Consecutive entities of one partition are sent as entity group transactions, and keep \
their order. In the modes replace and merge you can repeat an import without harm.

An interrupted run leaves FILE.import-progress beside FILE; run the same command with --resume to continue. The exit \
status is 0 only if every entity is stored.

With --azurite, entities, blobs and their metadata replace those that exist; run the same command again if it was \
interrupted. A queue must not have messages. Snapshots are taken again, and have the times of the import. Blocks that \
were never committed, leases, stored access policies and service properties are left out.

Examples:
  export AZURE_STORAGE_CONNECTION_STRING='UseDevelopmentStorage=true'
  partita import --table Books --from books.jsonl
  partita import --table Books --from books.csv --mode insert --rejects rejected.csv
  partita import --all --from backup
  gunzip < books.jsonl.gz | partita import --table Books --from -
  partita import --azurite ./azurite-data";

/// The endpoint, and how much to print.
#[derive(Args, Clone, Debug)]
pub struct ConnectionFlags {
    /// The endpoint with its account key or shared access signature. Prefer the variable: other users of this machine can
    /// see flags
    #[arg(long, value_name = "TEXT", env = "AZURE_STORAGE_CONNECTION_STRING", hide_env_values = true)]
    pub connection_string: String,
    /// A certificate authority to trust besides the system's, in PEM
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Print only errors
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Args, Clone, Debug)]
#[command(after_help = EXPORT_HELP)]
pub struct ExportCommand {
    /// The table to export
    #[arg(long, value_name = "NAME", required_unless_present = "all")]
    pub table: Option<String>,
    /// Export every table of the account, each to a file of its name
    #[arg(long, conflicts_with = "table")]
    pub all: bool,
    /// The file to write, or - for standard output; with --all a directory
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
    /// The format of the file [default: by its extension, else jsonl]
    #[arg(long, value_enum)]
    pub format: Option<FileFormat>,
    /// Export only entities that match this $filter
    #[arg(long, value_name = "FILTER")]
    pub filter: Option<String>,
    /// Export only these properties, separated by commas; keys and Timestamp are always included
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub select: Vec<String>,
    /// The columns of CSV, separated by commas; other properties are left out
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// Continue an interrupted run
    #[arg(long, conflicts_with = "overwrite")]
    pub resume: bool,
    /// Replace files that exist
    #[arg(long)]
    pub overwrite: bool,
    #[command(flatten)]
    pub common: ConnectionFlags,
}

/// What happens to an entity that already exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// It is replaced by the entity in the file
    Replace,
    /// It gets the properties in the file and keeps its others
    Merge,
    /// It stays as it is, and the entity in the file is rejected
    Insert,
}

#[derive(Args, Clone, Debug)]
#[command(after_help = IMPORT_HELP)]
pub struct ImportCommand {
    /// The table to import into; created if missing
    #[arg(long, value_name = "NAME", required_unless_present_any = ["all", "azurite"])]
    pub table: Option<String>,
    /// Import every .jsonl and .csv file of a directory, each into the table of its name
    #[arg(long, conflicts_with = "table")]
    pub all: bool,
    /// The file to read, or - for standard input; with --all a directory
    #[arg(long, value_name = "FILE", required_unless_present = "azurite")]
    pub from: Option<PathBuf>,
    /// Import the data folder of Azurite instead: all tables, queues and containers of an account. Stop Azurite first
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["table", "all", "from", "format", "rejects", "resume"])]
    pub azurite: Option<PathBuf>,
    /// The account in Azurite's data [default: the only one]
    #[arg(long, value_name = "NAME", requires = "azurite")]
    pub azurite_account: Option<String>,
    /// The format of the file [default: by its extension, else jsonl]
    #[arg(long, value_enum, conflicts_with = "all")]
    pub format: Option<FileFormat>,
    /// What happens to an entity that already exists
    #[arg(long, value_enum, default_value = "replace")]
    pub mode: Mode,
    /// Number of connections, each with one transaction in flight
    #[arg(long, value_name = "NUMBER", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub parallel: u16,
    /// Write rejected lines to this file and continue, instead of stopping; with --all a directory
    #[arg(long, value_name = "FILE")]
    pub rejects: Option<PathBuf>,
    /// Continue an interrupted run
    #[arg(long)]
    pub resume: bool,
    #[command(flatten)]
    pub common: ConnectionFlags,
}
