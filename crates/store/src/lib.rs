//! Table storage as every engine must provide it: the contract and the stored bytes. The crate `store-suite` has the
//! promises as tests.
//!
//! Knows nothing of HTTP or `$filter`, and of JSON only the spelling of values (`model::spelling`). The unit of atomicity
//! is one partition, so that a distributed engine can keep the same promises as an embedded one.

pub mod encoding;
mod engine;
mod error;
mod fault;
mod gate;
mod memory;
mod merge;
mod page;
pub mod private_directory;
mod request_memory;
mod scan;
mod stored_name;
mod transaction;

pub use encoding::raw::{RawRow, StoredRow};
pub use encoding::row::{Row, RowDraft, RowView};
pub use encoding::shown::{ShownName, ShownProperties, ShownValue};
pub use engine::{Engine, TableRef, TablesPage};
pub use error::{Error, Reason};
pub use fault::{Fault, FaultKind, with_causes};
pub use gate::{Gate, WritePermit};
pub use memory::MemoryEngine;
pub use merge::merge;
pub use page::{Entities, EntityView, EntityViews, Page, PageGuard, StoredRef};
pub use request_memory::{FREE_BYTES, MemoryShare, RequestMemory};
pub use scan::{Budget, Candidate, PageBuilder, RowFilter, Scan};
pub use stored_name::{StoredName, place_of};
pub use transaction::{Change, Condition, RowOperation, Transaction, resolve};
