//! What the Blob service talks about: names, metadata, tags, blocks, ranges, tiers, leases, conditions, checksums, limits and
//! refusals. What it shares with the other services is in `common` and shown here too.
//!
//! No I/O, no async, no XML. A value of these types is valid once built; every other crate relies on it. Nothing here reads a
//! clock: whoever asks says what time it is.

mod access_tier;
mod blob_name;
mod block_id;
mod block_list;
mod byte_range;
mod checksum;
mod conditions;
mod container_name;
mod copy;
mod etag;
mod lease;
mod lease_id;
pub mod limits;
mod metadata;
mod page_range;
mod properties;
mod refusal;
mod sequence_number;
mod snapshot_time;
mod tag_expression;
mod tags;

pub use access_tier::{AccessTier, RehydratePriority, TierState};
pub use blob_name::BlobName;
pub use block_id::{BlockId, BlockIdFault};
pub use block_list::{BlockChoice, ListedBlock};
pub use byte_range::{ByteRange, Span};
pub use checksum::{Checksums, Crc64, Md5, Sums};
pub use common::{AccountName, DateTime, Guid, ServiceKind};
pub use conditions::{Conditions, Matches, Operand, Seen, Unmet};
pub use container_name::ContainerName;
pub use copy::{CopyState, CopyStatus, shown_source};
pub use etag::Etag;
pub use lease::{BreakPeriod, Lease, LeaseAction, LeaseDuration, LeaseOutcome, LeaseState, LeaseView};
pub use lease_id::LeaseId;
pub use metadata::Metadata;
pub use page_range::PageRange;
pub use properties::{BlobKind, BlobProperties, BlobType, ContentHeaders, PublicAccess, page_blob_length};
pub use refusal::{CopySourceFault, Leased, Refusal};
pub use sequence_number::{SequenceCondition, SequenceNumber, SequenceNumberAction};
pub use snapshot_time::SnapshotTime;
pub use tag_expression::{Comparison, TagCondition, TagExpression};
pub use tags::{TagFault, Tags};
