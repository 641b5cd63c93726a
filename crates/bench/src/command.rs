//! The flags of `partita bench`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use thiserror::Error;

use crate::error;
use crate::workload::Workload;
use connection::DEVELOPMENT;

const EXAMPLES: &str = "\
Workloads of tables:
  insert                one entity, each in its own partition
  insert-one-partition  one entity, all in one partition
  batch                 100 inserts in one entity group transaction
  get                   one entity by its keys
  page                  1,000 entities of a partition
  page-select           the same, one property of each
  partition-scan        a filter that matches 1 in 100 entities of a partition of 10,000
  table-scan            a filter over the whole table that matches nothing; scans count the entities examined
  merge                 one property of an entity
  mixed                 9 get, 1 insert-or-replace

Workloads of queues:
  queue-peek            the first message of a queue
  queue-update          a message gets another text and another receipt
  queue-get-delete      get one message, then delete it: two requests, one operation. After every 2,000, messages are put
                        back, which is not measured
  queue-mixed           put, peek, get and delete in turn; each is one operation
  queue-put             one message

Workloads of blobs:
  blob-get              one blob, whole
  blob-range            a part of one blob, at a random place
  blob-list             the hundred blobs of a folder, by their prefix
  blob-folders          the hundred folders of a folder, by prefix and delimiter
  blob-mixed            9 blob-get, 1 blob-put
  blob-put              one blob in one request
  blob-blocks           one blob in blocks, some at a time, then the list that commits them: one operation
  blob-append           one block to an append blob

all stands for every workload; tables, queues and blobs for those of one service.

Examples:
  partita bench get,insert --pid $(pidof partita)
  partita bench page --entities 1000000 --keep          load once ...
  partita bench page --entities 1000000 --reuse         ... and measure again
  partita bench queue-put --rate 5000                   5,000 a second, however long the answers take
  partita bench queues --queues 100 --waiting 100000
  partita bench blob-put,blob-get --blob-bytes 1048576
  partita bench blob-blocks --blob-bytes 5368709120 --connections 1 --count 1
  partita bench get --connection-string \"$OURS\" --compare \"$THEIRS\" --rounds 5

The client checks every answer; the exit code is 0 only if all were right. On one machine client and server share the
processors: compare the client's time per operation with the server's.";

#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct BenchCommand {
    /// What to measure: names separated by commas, or all
    #[arg(value_name = "WORKLOADS", default_value = "all")]
    pub workloads: String,
    /// The endpoints and their account; UseDevelopmentStorage=true is the development account on 127.0.0.1, tables on port
    /// 10002, queues on 10001 and blobs on 10000
    #[arg(
        long,
        value_name = "TEXT",
        env = "PARTITA_BENCH_CONNECTION_STRING",
        hide_env_values = true,
        default_value = DEVELOPMENT,
    )]
    pub connection_string: String,
    /// A certificate authority to trust besides the system's, in PEM
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Number of connections, each with one request in flight
    #[arg(long, value_name = "NUMBER", default_value_t = 16)]
    pub connections: usize,
    /// Number of threads of this client
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub threads: usize,
    /// Operations that begin in a second, whether or not those before have ended; latency counts from when an operation
    /// should have begun. Without it, each connection begins one when the one before has ended
    #[arg(long, value_name = "NUMBER")]
    pub rate: Option<f64>,
    /// How long each workload runs [default: 5, unless --count is given]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub seconds: Option<Duration>,
    /// Operations after which each workload ends
    #[arg(long, value_name = "NUMBER")]
    pub count: Option<u64>,
    /// How long each workload runs before it is measured
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub warmup: Duration,
    /// Number of entities loaded for workloads that read
    #[arg(long, value_name = "NUMBER", default_value_t = 100_000)]
    pub entities: u64,
    /// Total size of an entity's ten properties
    #[arg(long, value_name = "BYTES", default_value_t = 1024)]
    pub value_bytes: usize,
    /// Number of queues
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub queues: u64,
    /// Number of messages that wait in them, in all
    #[arg(long, value_name = "NUMBER", default_value_t = 1000)]
    pub waiting: u64,
    /// Size of a message's text
    #[arg(long, value_name = "BYTES", default_value_t = 1024)]
    pub message_bytes: usize,
    /// Number of blobs loaded for workloads that read
    #[arg(long, value_name = "NUMBER", default_value_t = 1000)]
    pub blobs: u64,
    /// Size of a blob, and of an append
    #[arg(long, value_name = "BYTES", default_value_t = 1024)]
    pub blob_bytes: u64,
    /// Size of a block of blob-blocks
    #[arg(long, value_name = "BYTES", default_value_t = 8 * 1024 * 1024)]
    pub block_bytes: u64,
    /// Blocks of one blob that are uploaded at the same time, each on a connection of its own
    #[arg(long, value_name = "NUMBER", default_value_t = 4)]
    pub parallel_blocks: usize,
    /// What blob-range reads; the whole blob if it is shorter
    #[arg(long, value_name = "BYTES", default_value_t = 64 * 1024)]
    pub range_bytes: u64,
    /// Prefix of the names of tables, queues and containers
    #[arg(long, value_name = "NAME", default_value = "partitabench")]
    pub table: String,
    /// Keep the loaded table, the queues and the loaded container
    #[arg(long)]
    pub keep: bool,
    /// Use the table, the queues and the container of an earlier run with --keep and the same sizes
    #[arg(long)]
    pub reuse: bool,
    /// Process id of the server, if it runs on this machine; prints its processor time per operation and its memory
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// A second endpoint, measured in turns with the first
    #[arg(long, value_name = "CONNECTION STRING")]
    pub compare: Option<String>,
    /// Process id of the second endpoint's server
    #[arg(long, value_name = "PID", requires = "compare")]
    pub compare_pid: Option<u32>,
    /// How often to measure each workload; prints medians [default: 1, or 3 with --compare]
    #[arg(long, value_name = "NUMBER")]
    pub rounds: Option<usize>,
    /// Do not check the bodies of answers; for servers that store nothing
    #[arg(long)]
    pub trust_answers: bool,
    /// Seed of the random choices; the same seed repeats them
    #[arg(long, value_name = "NUMBER")]
    pub random_seed: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl BenchCommand {
    pub fn workloads(&self) -> error::Result<Vec<Workload>> {
        Workload::parse_list(&self.workloads)
    }
}

/// Why a flag's text is not a time.
#[derive(Debug, Error)]
#[error("it takes seconds, such as 5 or 0.5")]
struct SecondsError;

fn seconds(text: &str) -> Result<Duration, SecondsError> {
    let number: Option<f64> = text.parse().ok().filter(|number| (0.0..=1e6).contains(number));
    number.map(Duration::from_secs_f64).ok_or(SecondsError)
}
