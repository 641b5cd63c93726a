//! Table storage as every engine must provide it: the contract and the stored bytes; and the contract for objects, the
//! content that is too large for rows. The crate `store-suite` has the promises of both as tests.
//!
//! Knows nothing of JSON, HTTP or `$filter`. The unit of atomicity is one partition, so that a distributed
//! engine can keep the same promises as an embedded one.

mod counters;
pub mod encoding;
mod engine;
mod error;
mod fault;
mod gate;
mod memory;
mod memory_objects;
mod merge;
mod naming;
mod objects;
mod page;
pub mod private_directory;
mod request_memory;
mod scan;
mod stored_name;
mod transaction;

pub use counters::{
    EngineCounter, EngineCounters, EngineValue, GROUP_SIZES, LiveSpread, SECONDS, Spread, SpreadScale,
};
pub use encoding::raw::{RawRow, StoredRow};
pub use encoding::row::{Row, RowDraft, RowView};
pub use encoding::shown::{ShownName, ShownProperties, ShownValue};
pub use engine::{Engine, TableEstimate, TableRef, TablesPage};
pub use error::{Error, Reason};
pub use fault::{Fault, FaultKind, with_causes};
pub use gate::{Gate, WritePermit};
pub use memory::MemoryEngine;
pub use memory_objects::MemoryObjects;
pub use merge::merge;
pub use naming::{Need, NoObjects, ObjectNaming};
pub use objects::{
    CHUNK_BYTES, CHUNK_BYTES_MAX, CHUNK_SEAL_BYTES, ChunkPart, ChunkSpan, ObjectId, Objects, ObjectsPage,
    check_chunk, chunk_spans,
};
pub use page::{Entities, EntityView, EntityViews, Page, PageGuard, StoredRef};
pub use request_memory::{AccountMemory, FREE_BYTES, MemoryShare, RequestMemory};
pub use scan::{Budget, Candidate, PageBuilder, RowFilter, Scan};
pub use stored_name::{StoredName, place_of};
pub use transaction::{Change, Condition, RowOperation, Transaction, resolve};
