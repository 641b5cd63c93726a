//! The flags of `partita export` and `partita import`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::format::Format;

const EXPORT_HELP: &str = "\
JSON lines hold one entity a line, exactly as the service says it: every type survives. CSV has the columns \
PartitionKey,RowKey,Timestamp,Name,Name@type,... as Azure Storage Explorer writes them. Entities of a table need not \
have the same properties, so the columns are found in a first pass over the table, unless --columns or --select \
says them.

A run that was interrupted has left FILE.progress beside FILE; the same command with --resume goes on from there. \
An export is no snapshot: what is written meanwhile may or may not be in it.

Examples:
  export AZURE_STORAGE_CONNECTION_STRING='UseDevelopmentStorage=true'
  partita export --table Books --to books.jsonl
  partita export --table Books --to books.csv --filter \"PartitionKey eq 'sf'\" --select Title,Year
  partita export --all --to backup
  partita export --table Books --to - | gzip > books.jsonl.gz";

const IMPORT_HELP: &str = "\
Reads what `partita export` and Azure Storage Explorer write. Timestamps of a file are ignored: the service gives every \
entity the time at which it was written. Entities of one partition that stand together are sent as entity group \
transactions, and keep their order. In the mode replace, and in merge, the same import can be run twice without harm.

A run that was interrupted has left FILE.import-progress beside FILE; the same command with --resume goes on from there. \
The exit status is 0 only if every entity is stored.

Examples:
  export AZURE_STORAGE_CONNECTION_STRING='UseDevelopmentStorage=true'
  partita import --table Books --from books.jsonl
  partita import --table Books --from books.csv --mode insert --rejects rejected.csv
  partita import --all --from backup
  gunzip < books.jsonl.gz | partita import --table Books --from -";

/// Whom to speak to, and how much to say.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// The endpoint with its account key or shared access signature; the variable keeps it out of sight of others
    #[arg(long, value_name = "TEXT", env = "AZURE_STORAGE_CONNECTION_STRING", hide_env_values = true)]
    pub connection_string: String,
    /// A certificate authority to trust besides the system's, in PEM
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Say nothing but errors
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Args, Clone, Debug)]
#[command(after_help = EXPORT_HELP)]
pub struct ExportCommand {
    /// The table
    #[arg(long, value_name = "NAME", required_unless_present = "all")]
    pub table: Option<String>,
    /// Every table of the account, each in a file of its name
    #[arg(long, conflicts_with = "table")]
    pub all: bool,
    /// The file to write, - for standard output; with --all a directory
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
    /// [default: by the file's ending, else jsonl]
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Only entities that this $filter keeps
    #[arg(long, value_name = "FILTER")]
    pub filter: Option<String>,
    /// Only these properties, with commas between; keys and Timestamp come with them
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub select: Vec<String>,
    /// Columns of CSV, with commas between; properties without one are left out
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// Go on where an interrupted run has stopped
    #[arg(long, conflicts_with = "overwrite")]
    pub resume: bool,
    /// Replace files that exist
    #[arg(long)]
    pub overwrite: bool,
    #[command(flatten)]
    pub common: Common,
}

/// What happens to an entity that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// It becomes what the file says
    Replace,
    /// It gets the properties of the file and keeps its others
    Merge,
    /// It stays, and that of the file is rejected
    Insert,
}

#[derive(Args, Clone, Debug)]
#[command(after_help = IMPORT_HELP)]
pub struct ImportCommand {
    /// The table, made if it is missing
    #[arg(long, value_name = "NAME", required_unless_present = "all")]
    pub table: Option<String>,
    /// Every .jsonl and .csv file of a directory, each into the table of its name
    #[arg(long, conflicts_with = "table")]
    pub all: bool,
    /// The file to read, - for standard input; with --all a directory
    #[arg(long, value_name = "FILE")]
    pub from: PathBuf,
    /// [default: by the file's ending, else jsonl]
    #[arg(long, value_enum, conflicts_with = "all")]
    pub format: Option<Format>,
    /// What happens to an entity that is there already
    #[arg(long, value_enum, default_value = "replace")]
    pub mode: Mode,
    /// Connections, each with one transaction under way
    #[arg(long, value_name = "NUMBER", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub parallel: u16,
    /// Write lines that are rejected to this file and go on, instead of stopping; with --all a directory
    #[arg(long, value_name = "FILE")]
    pub rejects: Option<PathBuf>,
    /// Go on where an interrupted run has stopped
    #[arg(long)]
    pub resume: bool,
    #[command(flatten)]
    pub common: Common,
}
