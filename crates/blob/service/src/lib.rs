//! The operations of the Blob service, without HTTP or XML: who asks has been settled, what is asked has been read. So far
//! those on containers.
//!
//! A container is a table of the engine, and what is known of it is the table's metadata (docs/decisions/0011-blobs.md).

mod clock;
mod container_document;
mod container_ref;
mod containers;
mod error;
pub mod name_key;
mod turns;

use std::sync::Arc;

use store::{Engine, Gate};

pub use clock::Clock;
pub use container_ref::ContainerRef;
pub use containers::{ContainerEntry, ContainerPage, ContainerProperties, ListQuery, Policies, Request};
pub use error::{Error, Result};

use turns::Turns;

/// One method per operation. Cheap to clone.
#[derive(Clone)]
pub struct BlobService {
    engine: Arc<dyn Engine>,
    gate: Arc<Gate>,
    clock: Arc<Clock>,
    turns: Arc<Turns>,
}

impl BlobService {
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine, gate: Arc::default(), clock: Arc::new(Clock::system()), turns: Arc::default() }
    }

    /// Lets writes through only while this gate is open.
    pub fn gated(self, gate: Arc<Gate>) -> Self {
        Self { gate, ..self }
    }

    /// Goes by another clock than the system's.
    pub fn timed(self, clock: Arc<Clock>) -> Self {
        Self { clock, ..self }
    }
}

impl std::fmt::Debug for BlobService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BlobService")
    }
}
