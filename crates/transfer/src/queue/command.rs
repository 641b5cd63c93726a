//! The flags of `partita queue`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use thiserror::Error;

pub const QUEUE_HELP: &str = "\
The endpoint is that of AZURE_STORAGE_CONNECTION_STRING or --connection-string, and without them the development account \
on 127.0.0.1:10001. Times are seconds, or 90s, 5m, 2h, 7d.

Exit status: 0 done, 1 failed, 2 wrong flags, 3 no message is visible (peek and get).

Examples:
  partita queue create jobs
  partita queue put jobs 'ship ann 1'
  partita queue put jobs --lines < steps.txt
  partita queue put jobs --base64 '{\"id\":7}'      for Azure Functions, which expects Base64
  partita queue peek jobs --count 5
  partita queue get jobs --visibility 5m --format json
  partita queue delete-message jobs ID RECEIPT
  partita queue export --queue jobs --to jobs.jsonl
  partita queue import --queue jobs --from jobs.jsonl";

const EXPORT_HELP: &str = "\
The Queue protocol can't read a message without hiding it, except for the first 32. So an export gets messages, hides them \
for --visibility, and writes them to the file. When all of them are on the disk, it makes them visible again, in their \
order. With --delete it deletes them instead. Each message has then been delivered once more, which its dequeue count \
shows. Messages that are hidden from the export, because a worker has them or because they are delayed, are not in the \
file. `partita backup` copies everything.

Nothing is lost if the export is killed. What it has hidden is visible again when --visibility has passed, or as soon as \
the same command has continued with --resume. A message may then be in the file and in the queue.

The file has one message per line, in JSON. The first line has the queue's name and metadata.";

const IMPORT_HELP: &str = "\
Puts the messages of a file of `partita queue export` or `partita queue get --format json`, in the order of the file. A \
message keeps its text and the time at which it expires; one that has expired is left out. It gets a new id and a dequeue \
count of 0. If a line has `nextVisible`, the message is hidden until then.

An interrupted run leaves FILE.import-progress beside FILE; run the same command with --resume to continue. Nothing is \
lost. After a kill, the messages of the last half second may be put twice. The exit status is 0 only if every line is put \
or had expired.";

#[derive(Subcommand, Clone, Debug)]
pub enum QueueCommand {
    /// List the queues of an account
    List(ListCommand),
    /// Create a queue
    Create(CreateCommand),
    /// Delete a queue with all of its messages
    Delete(OneQueue),
    /// Print about how many messages a queue has, hidden ones included
    Count(CountCommand),
    /// Put a message, or each line of standard input as a message
    Put(PutCommand),
    /// Print the first visible messages and leave them as they are
    Peek(PeekCommand),
    /// Get messages: print them and hide them from others for a while
    Get(GetCommand),
    /// Delete a message by the id and the receipt that `get` has printed
    DeleteMessage(DeleteMessageCommand),
    /// Delete all messages of a queue
    Clear(OneQueue),
    /// Export the messages of a queue, or of all queues of an account, to files
    Export(Box<QueueExportCommand>),
    /// Import files of messages into one or more queues
    Import(Box<QueueImportCommand>),
}

/// The endpoint.
#[derive(Args, Clone, Debug)]
pub struct QueueConnectionFlags {
    /// The endpoint with its account key or shared access signature. Prefer the variable: other users of this machine can
    /// see flags
    #[arg(
        long,
        value_name = "TEXT",
        env = "AZURE_STORAGE_CONNECTION_STRING",
        hide_env_values = true,
        default_value = wire::connection_string::DEVELOPMENT,
    )]
    pub connection_string: String,
    /// A certificate authority to trust besides the system's, in PEM
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
}

/// What is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shown {
    /// For people; on a terminal, long texts are cut
    Text,
    /// One JSON object per line
    Json,
}

#[derive(Args, Clone, Debug)]
pub struct OneQueue {
    /// The queue
    #[arg(value_name = "QUEUE")]
    pub queue: String,
    #[command(flatten)]
    pub connection: QueueConnectionFlags,
}

#[derive(Args, Clone, Debug)]
pub struct ListCommand {
    /// Only queues whose names begin with this
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub prefix: String,
    /// Also print how many messages each queue has, which takes a request for each
    #[arg(long)]
    pub counts: bool,
    #[arg(long, value_enum, default_value = "text")]
    pub format: Shown,
    #[command(flatten)]
    pub connection: QueueConnectionFlags,
}

#[derive(Args, Clone, Debug)]
pub struct CreateCommand {
    #[command(flatten)]
    pub of: OneQueue,
    /// Metadata of the queue; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub metadata: Vec<(String, String)>,
}

#[derive(Args, Clone, Debug)]
pub struct CountCommand {
    #[command(flatten)]
    pub of: OneQueue,
    #[arg(long, value_enum, default_value = "text")]
    pub format: Shown,
}

#[derive(Args, Clone, Debug)]
pub struct PutCommand {
    #[command(flatten)]
    pub of: OneQueue,
    /// The message [default: standard input, as it is]
    #[arg(value_name = "TEXT", conflicts_with = "lines")]
    pub text: Option<String>,
    /// Put each line of standard input as a message; empty lines are left out
    #[arg(long)]
    pub lines: bool,
    /// Encode the message in Base64, as Azure Functions and some SDKs expect it
    #[arg(long)]
    pub base64: bool,
    /// Hide the message for this time at first, up to 7d
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub delay: Option<Duration>,
    /// Delete the message after this time, or never [default: 7d]
    #[arg(long, value_name = "TIME", value_parser = life)]
    pub ttl: Option<Life>,
    #[arg(long, value_enum, default_value = "text")]
    pub format: Shown,
}

/// How long a message lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    For(Duration),
    Forever,
}

#[derive(Args, Clone, Debug)]
pub struct PeekCommand {
    #[command(flatten)]
    pub of: OneQueue,
    /// Number of messages
    #[arg(long, short = 'n', value_name = "NUMBER", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=32))]
    pub count: u32,
    /// Decode the messages from Base64
    #[arg(long)]
    pub base64: bool,
    #[arg(long, value_enum, default_value = "text")]
    pub format: Shown,
}

#[derive(Args, Clone, Debug)]
pub struct GetCommand {
    #[command(flatten)]
    pub of: OneQueue,
    /// Number of messages
    #[arg(long, short = 'n', value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=32))]
    pub count: u32,
    /// How long the messages are hidden from others: 1s to 7d
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    pub visibility: Duration,
    /// Delete the messages after they are printed
    #[arg(long)]
    pub delete: bool,
    /// Decode the messages from Base64
    #[arg(long)]
    pub base64: bool,
    #[arg(long, value_enum, default_value = "text")]
    pub format: Shown,
}

#[derive(Args, Clone, Debug)]
pub struct DeleteMessageCommand {
    #[command(flatten)]
    pub of: OneQueue,
    /// The message's id
    #[arg(value_name = "ID")]
    pub id: String,
    /// The receipt of its latest delivery
    #[arg(value_name = "RECEIPT")]
    pub receipt: String,
}

#[derive(Args, Clone, Debug)]
#[command(after_help = EXPORT_HELP)]
pub struct QueueExportCommand {
    /// The queue to export
    #[arg(long, value_name = "NAME", required_unless_present = "all")]
    pub queue: Option<String>,
    /// Export every queue of the account, each to a file of its name
    #[arg(long, conflicts_with = "queue")]
    pub all: bool,
    /// The file to write; with --all a directory
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
    /// Delete the messages once they are in the file, instead of making them visible again
    #[arg(long)]
    pub delete: bool,
    /// How long messages are hidden from others at most: longer than the export takes
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = time)]
    pub visibility: Duration,
    /// Number of messages that are made visible again at the same time; with more than one, their order is kept only roughly
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub parallel: u16,
    /// Continue an interrupted run
    #[arg(long, conflicts_with = "overwrite")]
    pub resume: bool,
    /// Replace files that exist
    #[arg(long)]
    pub overwrite: bool,
    /// Print only errors
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub connection: QueueConnectionFlags,
}

#[derive(Args, Clone, Debug)]
#[command(after_help = IMPORT_HELP)]
pub struct QueueImportCommand {
    /// The queue to import into; created if missing, with the metadata in the file
    #[arg(long, value_name = "NAME", required_unless_present = "all")]
    pub queue: Option<String>,
    /// Import every .jsonl file of a directory, each into the queue of its name
    #[arg(long, conflicts_with = "queue")]
    pub all: bool,
    /// The file to read, or - for standard input; with --all a directory
    #[arg(long, value_name = "FILE")]
    pub from: PathBuf,
    /// Number of messages that are put at the same time; with more than one, their order is kept only roughly
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub parallel: u16,
    /// Write rejected lines to this file and continue, instead of stopping; with --all a directory
    #[arg(long, value_name = "FILE")]
    pub rejects: Option<PathBuf>,
    /// Continue an interrupted run
    #[arg(long)]
    pub resume: bool,
    /// Print only errors
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub connection: QueueConnectionFlags,
}

/// Why a flag's text can't be used.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum FlagError {
    #[error("it takes seconds, or a time such as 90s, 5m, 2h, 7d")]
    Time,
    #[error("it takes a time such as 90s, 5m, 2h, 7d, or the word never")]
    Life,
    #[error("it takes NAME=VALUE")]
    Pair,
}

fn time(text: &str) -> Result<Duration, FlagError> {
    let (digits, seconds) = match text.strip_suffix(['s', 'm', 'h', 'd']) {
        None => (text, 1),
        Some(digits) if text.ends_with('s') => (digits, 1),
        Some(digits) if text.ends_with('m') => (digits, 60),
        Some(digits) if text.ends_with('h') => (digits, 3600),
        Some(digits) => (digits, 86_400),
    };
    let number: u32 = digits.parse().map_err(|_| FlagError::Time)?;
    Ok(Duration::from_secs(u64::from(number) * seconds))
}

fn life(text: &str) -> Result<Life, FlagError> {
    match text {
        "never" => Ok(Life::Forever),
        text => time(text).map(Life::For).map_err(|_| FlagError::Life),
    }
}

pub fn pair(text: &str) -> Result<(String, String), FlagError> {
    let (name, value) = text.split_once('=').ok_or(FlagError::Pair)?;
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, expected) in [
            ("0", Ok(0)),
            ("90", Ok(90)),
            ("90s", Ok(90)),
            ("5m", Ok(300)),
            ("2h", Ok(7200)),
            ("7d", Ok(604_800)),
            ("", Err(FlagError::Time)),
            ("m", Err(FlagError::Time)),
            ("-1", Err(FlagError::Time)),
            ("1.5h", Err(FlagError::Time)),
            ("1w", Err(FlagError::Time)),
        ] {
            assert_eq!(time(text), expected.map(Duration::from_secs), "{text:?}");
        }
        assert_eq!(life("never"), Ok(Life::Forever));
        assert_eq!(life("1m"), Ok(Life::For(Duration::from_secs(60))));
        assert_eq!(life("ever"), Err(FlagError::Life));
        assert_eq!(pair("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(pair("a"), Err(FlagError::Pair));
    }
}
