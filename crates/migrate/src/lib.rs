//! Moving house: makes one store hold what another one does, to the byte, and proves it.
//!
//! Knows stores by their contract alone. What is read must stand still while it is read, a snapshot or a store that
//! takes no writes; the target must have no other writer. Any call may be cut short and done again: it goes by what
//! the target has, and what is there already is not written a second time.

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

pub use error::{Difference, Error, Found, ServiceTable, Side};
pub use pass::{Passed, pass};
pub use tables::is_empty;
pub use verify::{Verified, VerifiedTable, verify};

pub type Shared = Arc<dyn Engine>;

/// How far it has got.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    pub table: &'a TableRef,
    /// Entities looked at, of all tables up to now.
    pub seen: u64,
    /// Of these, those that the target did not have so.
    pub changed: u64,
}

/// Told every now and then how far it has got.
pub type Watch<'a> = &'a (dyn Fn(Step<'_>) + Send + Sync);

/// Entities between two calls of a `Watch`.
const WATCH_EVERY: u64 = 256;
