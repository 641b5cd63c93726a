//! What operations on blobs ask for and answer, in plain values: no headers, no XML.
//!
//! [`Request`] carries the conditions and the lease of each of them.

use std::fmt;
use std::pin::Pin;

use blob_model::{
    AccessTier, BlobName, BlobProperties, BlockChoice, BlockId, ByteRange, Conditions, ContainerName,
    ContentHeaders, CopyStatus, Crc64, DateTime, Etag, Guid, ListedBlock, Md5, Metadata, PageRange,
    RehydratePriority, SequenceCondition, SequenceNumber, SequenceNumberAction, SnapshotTime, Span, Sums,
    TagCondition, Tags,
};
use bytes::Bytes;
use futures_core::Stream;
use store::{Fault, MemoryShare};

use crate::{BlobRef, Request, Which};

/// What a new blob is made with: Put Blob, Put Block List, Put Blob From URL.
#[derive(Clone, Debug, Default)]
pub struct NewBlob {
    /// Without a type, it is `application/octet-stream`.
    pub content: ContentHeaders,
    pub metadata: Metadata,
    pub tags: Tags,
    /// Without one, it is the account's.
    pub tier: Option<AccessTier>,
}

/// What the sender of a body says of it, and how long it may be.
#[derive(Clone, Copy, Debug)]
pub struct BodyChecks {
    pub md5: Option<Md5>,
    pub crc64: Option<Crc64>,
    pub bytes_max: u64,
}

/// The answer of a write that stores its body: both checksums of a Put Blob, and the MD5 of others only if it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    pub etag: Etag,
    pub sums: Sums,
}

#[derive(Clone, Debug, Default)]
pub struct NewPageBlob {
    pub new: NewBlob,
    pub length: u64,
    pub sequence_number: SequenceNumber,
}

/// Which checksum of a range Get Blob is to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeChecksum {
    Md5,
    Crc64,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct GetBlob {
    pub range: Option<ByteRange>,
    /// Only of a range of at most 4 MiB.
    pub checksum: Option<RangeChecksum>,
}

/// Content as it is read: the bytes that were asked for, in pieces.
pub type BlobContent = Pin<Box<dyn Stream<Item = Result<Bytes, Fault>> + Send>>;

/// The answer of Get Blob.
pub struct Download {
    pub properties: BlobProperties,
    /// The part that was asked for: the answer is a 206.
    pub part: Option<Span>,
    /// Of the part, if it was asked for.
    pub sums: Option<Sums>,
    pub content: BlobContent,
}

impl fmt::Debug for Download {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Download")
            .field("properties", &self.properties)
            .field("part", &self.part)
            .finish_non_exhaustive()
    }
}

/// Set Blob Properties.
#[derive(Clone, Debug, Default)]
pub struct SetProperties {
    /// All six, if the request names any of them.
    pub content: Option<ContentHeaders>,
    /// Of a page blob.
    pub length: Option<u64>,
    /// Of a page blob.
    pub sequence_number: Option<SequenceNumberAction>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PropertiesSet {
    pub etag: Etag,
    /// Of a page blob.
    pub sequence_number: Option<SequenceNumber>,
}

/// The header `x-ms-delete-snapshots`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteSnapshots {
    Include,
    Only,
}

#[derive(Clone, Debug, Default)]
pub struct DeleteBlob {
    pub which: Which,
    pub snapshots: Option<DeleteSnapshots>,
    /// `deletetype=permanent`.
    pub is_permanent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deleted {
    /// It can't be undeleted.
    pub is_permanent: bool,
}

/// What List Blobs asks for.
#[derive(Clone, Debug, Default)]
pub struct BlobQuery {
    pub prefix: String,
    /// None, or not empty.
    pub delimiter: Option<String>,
    /// The first item to list.
    pub from: Option<BlobPlace>,
    pub limit: usize,
    pub snapshots: bool,
    pub uncommitted: bool,
    pub deleted: bool,
}

/// An item of a list: a blob, one of its snapshots, or a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobPlace {
    pub name: String,
    /// [`SnapshotTime::BASE`] for the blob itself.
    pub snapshot: SnapshotTime,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobPage {
    /// In the order of their names.
    pub entries: Vec<BlobEntry>,
    /// The first item of the next page.
    pub next: Option<BlobPlace>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlobEntry {
    Blob(Box<ListedEntry>),
    /// The start that the names of some blobs share, up to the delimiter and with it.
    Prefix(String),
}

/// A blob or a snapshot in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedEntry {
    pub name: String,
    pub snapshot: Option<SnapshotTime>,
    pub deleted: Option<DeletedEntry>,
    /// None for a blob that has nothing but uncommitted blocks.
    pub properties: Option<BlobProperties>,
}

/// What was deleted and can still be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletedEntry {
    pub time: DateTime,
    /// Whole days, 0 on the last.
    pub remaining_days: u16,
}

/// Put Block List: the blocks in their order.
pub type ChosenBlocks = Vec<(BlockChoice, BlockId)>;

/// Get Block List: of which state, and which of the lists.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockListQuery {
    pub which: Which,
    pub committed: bool,
    pub uncommitted: bool,
}

/// The answer of Get Block List. A list that was not asked for is empty.
#[derive(Debug)]
pub struct BlockLists {
    pub committed: Vec<ListedBlock>,
    pub uncommitted: Vec<ListedBlock>,
    /// ETag and length, if the blob is committed.
    pub blob: Option<(Etag, u64)>,
    /// The memory that they take.
    pub held: Option<MemoryShare>,
}

/// What Append Block and Seal ask of the blob's length.
#[derive(Clone, Copy, Debug, Default)]
pub struct AppendCondition {
    pub position: Option<u64>,
    /// The length afterwards.
    pub max_size: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    pub etag: Etag,
    /// Where the block begins.
    pub offset: u64,
    pub blocks: u32,
    pub sums: Sums,
}

/// Put Page and clear.
#[derive(Clone, Copy, Debug)]
pub struct PageWrite {
    pub range: PageRange,
    pub sequence: SequenceCondition,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagesWritten {
    pub etag: Etag,
    pub sequence_number: SequenceNumber,
    /// Of what was written; none if pages were cleared.
    pub sums: Option<Sums>,
}

/// Get Page Ranges.
#[derive(Clone, Copy, Debug, Default)]
pub struct PageQuery {
    pub which: Which,
    pub range: Option<ByteRange>,
    /// The snapshot to compare with.
    pub previous: Option<SnapshotTime>,
    /// Where the page begins, in bytes.
    pub from: u64,
    /// All of them if none.
    pub limit: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundPages {
    Written(PageRange),
    /// Cleared since the earlier snapshot.
    Cleared(PageRange),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRanges {
    /// In the order of their offsets.
    pub ranges: Vec<FoundPages>,
    /// Where the next page begins, in bytes.
    pub next: Option<u64>,
    pub etag: Etag,
    pub length: u64,
}

/// The source of a copy: a blob of this server that the caller may read.
#[derive(Clone, Debug)]
pub struct CopySource {
    pub blob: BlobRef,
    pub which: Which,
    pub conditions: Conditions,
    /// Its address as it may be shown.
    pub shown: String,
}

/// Which tags a copy has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyTags {
    Replace(Tags),
    Copy,
}

/// Copy Blob, and Copy Blob From URL.
#[derive(Clone, Debug)]
pub struct CopyBlob {
    pub source: CopySource,
    /// The source's if there is none.
    pub metadata: Metadata,
    pub tags: CopyTags,
    pub tier: Option<AccessTier>,
    pub priority: Option<RehydratePriority>,
    /// `x-ms-seal-blob`; without it a copy is as sealed as its source.
    pub seal: Option<bool>,
    /// `x-ms-requires-sync`: Copy Blob From URL.
    pub is_sync: bool,
    /// What the source must have, of Copy Blob From URL.
    pub source_md5: Option<Md5>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    pub etag: Etag,
    pub id: Guid,
    pub status: CopyStatus,
    /// Of the content; only of a copy from a URL.
    pub crc64: Option<Crc64>,
}

/// Put Blob From URL.
#[derive(Clone, Debug)]
pub struct PutFromUrl {
    pub source: CopySource,
    pub new: NewBlob,
    /// The source's content headers count where the request has none.
    pub takes_headers: bool,
    /// The source's tags count.
    pub takes_tags: bool,
    pub checks: BodyChecks,
}

/// A part of a blob as a block, as an append block or as pages.
#[derive(Clone, Debug)]
pub struct PartFromUrl {
    pub source: CopySource,
    /// All of it if none.
    pub range: Option<ByteRange>,
    pub checks: BodyChecks,
}

/// Find Blobs by Tags: all of these conditions, in this container or in any.
#[derive(Clone, Debug)]
pub struct TagQuery<'a> {
    pub container: Option<ContainerName>,
    pub conditions: &'a [TagCondition],
    /// The first place to look at.
    pub from: Option<FoundPlace>,
    pub limit: usize,
}

/// Where a page of what was found begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPlace {
    pub container: ContainerName,
    /// A place that only this service understands.
    pub within: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundBlob {
    pub container: ContainerName,
    pub name: BlobName,
    /// All of them.
    pub tags: Tags,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPage {
    /// In the order of their containers.
    pub blobs: Vec<FoundBlob>,
    pub next: Option<FoundPlace>,
}

impl Request {
    /// Without conditions and lease.
    pub fn plain() -> Self {
        Self::default()
    }
}
