//! The flags of the commands on tables.

use clap::{Args, ValueEnum};

use crate::command::Mode;
use crate::queue::QueueConnectionFlags;

pub const TABLE_HELP: &str = "\
The endpoint is that of AZURE_STORAGE_CONNECTION_STRING or --connection-string, and without them the development account \
on 127.0.0.1:10002.

Exit status: 0 done, 1 failed, 2 wrong flags, 3 there is no such entity (get and delete).";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Layout {
    /// Columns for people, as wide as the terminal
    Table,
    /// One JSON object per line, exactly as the service writes it
    Json,
    /// Comma-separated values with a first line of names
    Csv,
}

/// What `explain` and `top` print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Words {
    /// For people
    Text,
    /// The server's JSON
    Json,
}

#[derive(Args, Clone, Debug)]
#[command(after_help = TABLE_HELP)]
pub struct TablesCommand {
    /// Only tables whose names begin with this
    #[arg(value_name = "PREFIX")]
    pub prefix: Option<String>,
    #[arg(long, value_enum, default_value = "table")]
    pub format: Layout,
    #[command(flatten)]
    pub connection: QueueConnectionFlags,
}

const QUERY_HELP: &str = "\
With --format table, at most 100 entities are shown unless --top says otherwise. Colours are used only on a terminal, and \
not if NO_COLOR is set.

Examples:
  partita query Books
  partita query Books \"Year lt 1970\" --select Title,Year --top 10
  partita query Books \"PartitionKey eq 'sf'\" --format csv > sf.csv

The endpoint is that of AZURE_STORAGE_CONNECTION_STRING or --connection-string, and without them the development account \
on 127.0.0.1:10002.

Exit status: 0 done, 1 failed, 2 wrong flags.";

#[derive(Args, Clone, Debug)]
#[command(after_help = QUERY_HELP)]
pub struct QueryCommand {
    /// The table
    #[arg(value_name = "TABLE")]
    pub table: String,
    /// Only entities that match this $filter
    #[arg(value_name = "FILTER")]
    pub filter: Option<String>,
    /// Only these properties, separated by commas, in this order
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub select: Vec<String>,
    /// At most this many entities
    #[arg(long, value_name = "COUNT")]
    pub top: Option<usize>,
    #[arg(long, value_enum, default_value = "table")]
    pub format: Layout,
    #[command(flatten)]
    pub connection: QueueConnectionFlags,
}

#[derive(Args, Clone, Debug)]
pub struct OneEntity {
    /// The table
    #[arg(value_name = "TABLE")]
    pub table: String,
    /// The partition key
    #[arg(value_name = "PARTITION")]
    pub partition: String,
    /// The row key
    #[arg(value_name = "ROW")]
    pub row: String,
    #[command(flatten)]
    pub connection: QueueConnectionFlags,
}

#[derive(Args, Clone, Debug)]
#[command(after_help = TABLE_HELP)]
pub struct GetCommand {
    #[command(flatten)]
    pub of: OneEntity,
    /// Only these properties, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub select: Vec<String>,
    #[arg(long, value_enum, default_value = "table")]
    pub format: Layout,
}

const PUT_HELP: &str = "\
A property is NAME=TEXT for a String, NAME:=JSON for a number or a Boolean, or NAME:TYPE=VALUE with one of the types \
String, Boolean, Int32, Int64, Double, DateTime, Guid, Binary. Without properties, the entity is read from standard input \
as one JSON object, whose keys may be left out.

Examples:
  partita put Books sf dune Title=Dune Year:=1965 Sold:Int64=20000000
  partita put Books sf dune --mode merge Rating:=4.5
  echo '{\"Title\":\"Dune\"}' | partita put Books sf dune --create

The endpoint is that of AZURE_STORAGE_CONNECTION_STRING or --connection-string, and without them the development account \
on 127.0.0.1:10002.

Exit status: 0 done, 1 failed, 2 wrong flags.";

#[derive(Args, Clone, Debug)]
#[command(after_help = PUT_HELP)]
pub struct PutCommand {
    #[command(flatten)]
    pub of: OneEntity,
    /// The properties
    #[arg(value_name = "PROPERTY")]
    pub properties: Vec<String>,
    /// What happens to an entity that already exists
    #[arg(long, value_enum, default_value = "replace")]
    pub mode: Mode,
    /// Create the table if it does not exist
    #[arg(long)]
    pub create: bool,
}

#[derive(Args, Clone, Debug)]
#[command(after_help = TABLE_HELP)]
pub struct DeleteCommand {
    #[command(flatten)]
    pub of: OneEntity,
    /// Delete only this version
    #[arg(long, value_name = "ETAG")]
    pub if_match: Option<String>,
}

#[derive(Args, Clone, Debug)]
#[command(after_help = TABLE_HELP)]
pub struct CountCommand {
    /// The table
    #[arg(value_name = "TABLE")]
    pub table: String,
    /// Only entities that match this $filter
    #[arg(value_name = "FILTER")]
    pub filter: Option<String>,
    /// Print no progress
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub connection: QueueConnectionFlags,
}

#[derive(Args, Clone, Debug)]
#[command(after_help = TABLE_HELP)]
pub struct ExplainCommand {
    /// The table
    #[arg(value_name = "TABLE")]
    pub table: String,
    /// The $filter of the query
    #[arg(value_name = "FILTER")]
    pub filter: Option<String>,
    /// Only plan the query, without reading a page
    #[arg(long)]
    pub plan: bool,
    #[arg(long, value_enum, default_value = "text")]
    pub format: Words,
    #[command(flatten)]
    pub connection: QueueConnectionFlags,
}

/// What `top` sorts by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TopOrder {
    Requests,
    Entities,
    Kib,
    Refusals,
}

impl TopOrder {
    pub fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Entities => "entities",
            Self::Kib => "kib",
            Self::Refusals => "refusals",
        }
    }
}

#[derive(Args, Clone, Debug)]
#[command(after_help = TABLE_HELP)]
pub struct TopCommand {
    /// The number to sort by
    #[arg(long, value_enum, default_value = "requests")]
    pub by: TopOrder,
    /// How many partitions to show [default: as many as fit the terminal, else 20]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub top: Option<u16>,
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=3600))]
    pub interval: u16,
    /// Print once and end
    #[arg(long)]
    pub once: bool,
    #[arg(long, value_enum, default_value = "text")]
    pub format: Words,
    #[command(flatten)]
    pub connection: QueueConnectionFlags,
}
