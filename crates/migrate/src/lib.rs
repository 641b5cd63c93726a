//! Migration: makes one store a copy of another, byte by byte, and verifies it.
//!
//! It uses only the contracts `Engine` and `Objects`. Content is copied before the row that names it. The source must not change while it is read: it is a checkpoint, or a store
//! that refuses writes. The target must have no other writer. Any call may be interrupted and repeated: it compares
//! with the target, and does not write again what the target has.

mod content;
mod error;
mod loader;
mod merge;
mod pass;
mod patience;
mod rows;
mod tables;
mod verify;

use std::sync::Arc;

use store::{Engine, TableRef};

pub use content::ContentCopy;
pub use error::{Difference, DifferenceKind, Error, ServiceTable, Side};
pub use pass::{PassReport, pass};
pub use tables::is_empty;
pub use verify::{VerifiedTable, VerifyReport, verify};

pub type Shared = Arc<dyn Engine>;

/// How far a migration has got.
#[derive(Clone, Copy, Debug)]
pub struct MigrationProgress<'a> {
    pub table: &'a TableRef,
    /// Entities read so far, of all tables.
    pub seen: u64,
    /// Those of them that were missing or different in the target.
    pub changed: u64,
}

/// Called now and then with the progress.
pub type ProgressWatch<'a> = &'a (dyn Fn(MigrationProgress<'_>) + Send + Sync);

/// Entities between two calls of a `ProgressWatch`.
const WATCH_EVERY: u64 = 256;
