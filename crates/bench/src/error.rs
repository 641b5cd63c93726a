//! Why a run ends early, or its figures are invalid.

use std::io;

use connection::{ConnectorError, EndpointError};
use thiserror::Error;
use tokio::task::JoinError;

use crate::TABLE_PREFIX_MAX;
use crate::blobs::{BLOBS_MAX, BLOCK_BYTES_MAX, BLOCKS_MAX};
use crate::data::{PAGE_ROWS, SMALL_VALUES_BYTES, VALUE_BYTES_MAX};
use crate::messages::{QUEUES_MAX, TEXT_BYTES_MAX, TEXT_BYTES_MIN};
use crate::pace::RATE_MAX;
use crate::tally::OperationFailure;
use crate::workload::{LISTS, Workload};

pub type Result<T> = std::result::Result<T, BenchError>;

#[derive(Debug, Error)]
pub enum BenchError {
    // The flags.
    #[error("--threads 0 can't do anything; it takes 1 or more")]
    NoThreads,
    #[error("--connections 0 can't measure anything; it takes 1 or more")]
    NoConnections,
    #[error(
        "--table {0:?} can't begin a table's name; it takes a letter, then letters and digits, \
         {TABLE_PREFIX_MAX} in all"
    )]
    TablePrefix(String),
    #[error(
        "{name:?} is not a workload; there are {}, {}",
        LISTS.join(", "),
        Workload::ALL.map(Workload::name).join(", ")
    )]
    UnknownWorkload { name: String },
    #[error("no workload is named; all runs every one")]
    NoWorkload,
    #[error("--entities {0} is too few; one page alone holds {PAGE_ROWS}")]
    TooFewEntities(u64),
    #[error("--value-bytes {bytes} is out of range; it takes {} to {VALUE_BYTES_MAX}", SMALL_VALUES_BYTES + 1)]
    ValueBytes { bytes: usize },
    #[error("--queues {0} is out of range; it takes 1 to {QUEUES_MAX}")]
    Queues(u64),
    #[error("--waiting {waiting} is too few; each of the {queues} queues needs a message")]
    TooFewMessages { waiting: u64, queues: u64 },
    #[error("--message-bytes {bytes} is out of range; it takes {TEXT_BYTES_MIN} to {TEXT_BYTES_MAX}")]
    MessageBytes { bytes: usize },
    #[error("--blobs {0} is out of range; it takes 1 to {BLOBS_MAX}")]
    Blobs(u64),
    #[error(
        "--blob-bytes {bytes} is out of range; it takes 1 to {}, {BLOCKS_MAX} blocks of --block-bytes",
        BLOCKS_MAX.saturating_mul(*block_bytes)
    )]
    BlobBytes { bytes: u64, block_bytes: u64 },
    #[error("--blob-bytes {bytes} is too long for {}; it takes {most} at most", .workload.name())]
    BlobTooLong { workload: Workload, bytes: u64, most: u64 },
    #[error("--block-bytes {0} is out of range; it takes 1 to {BLOCK_BYTES_MAX}")]
    BlockBytes(u64),
    #[error("--parallel-blocks 0 can't upload anything; it takes 1 or more")]
    NoParallelBlocks,
    #[error("--range-bytes 0 reads nothing; it takes 1 or more")]
    NoRange,
    #[error("--rate {0} is out of range; it takes more than 0, and up to {RATE_MAX} operations a second")]
    Rate(f64),
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    #[error(transparent)]
    Connector(#[from] ConnectorError),

    // This machine.
    #[error("can't start its threads: {source}; raise the system's limit on threads")]
    Threads { source: io::Error },
    #[error("{0} is not the id of a process; is the server running?")]
    NotAProcess(u32),
    #[error("can't read the processor time of process {process}: {source}; is the server running?")]
    ProcessorTime { process: i32, source: nix::Error },
    #[error("can't read {path}: {source}; is the server running?")]
    Unreadable { path: String, source: io::Error },
    #[error("/proc/{0}/status has no VmRSS and VmHWM; is the server running?")]
    NoMemory(i32),
    #[error("the task of a connection ended early: {0}; run it again")]
    TaskEnded(#[from] JoinError),
    #[error("interrupted")]
    Interrupted,

    // The endpoint.
    #[error("can't create {what} at {url}: {failure}{}", if *.exists { EXISTS } else { "" })]
    NotMade { what: String, url: String, exists: bool, failure: OperationFailure },
    #[error("can't delete {what}: {failure}; delete it by hand")]
    NotDeleted { what: String, failure: OperationFailure },
    #[error("can't delete {what}: no answer in time; delete it by hand")]
    NotDeletedInTime { what: String },
    #[error(
        "table {table} does not hold the data set of --entities and --value-bytes ({failure}); load it with --keep, \
         and without --reuse"
    )]
    NotLoaded { table: String, failure: OperationFailure },
    #[error(
        "queue {queue} does not hold the messages of --waiting and --message-bytes ({failure}); load them with --keep, \
         and without --reuse"
    )]
    NotWaiting { queue: String, failure: OperationFailure },
    #[error(
        "container {container} does not hold the data set of --blobs and --blob-bytes ({failure}); load it with --keep, \
         and without --reuse"
    )]
    BlobsNotLoaded { container: String, failure: OperationFailure },
    #[error("queue {queue} can't be read: {failure}")]
    NotCounted { queue: String, failure: OperationFailure },
    #[error("can't load: {0}")]
    Load(OperationFailure),
    #[error("every connection is gone; is the server running?")]
    NoConnectionLeft,
    #[error("{}: the server left an operation unanswered for {seconds} seconds", .workload.name())]
    Unanswered { workload: Workload, seconds: u64 },
    #[error("{0} operations failed; the report has one of each kind")]
    OperationsFailed(u64),
    #[error("the report can't be written as JSON: {0}")]
    Report(#[from] serde_json::Error),
}

const EXISTS: &str = "; use it with --reuse, or choose another --table";
