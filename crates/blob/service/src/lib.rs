//! The operations of the Blob service, without HTTP or XML: who asks has been settled, what is asked has been read.
//!
//! A container is a table of the engine, and what is known of it is the table's metadata; a blob is a row, and its content is
//! objects (docs/decisions/0011-blobs.md).

mod blob_key;
mod blob_ref;
mod blob_row;
mod blobs;
mod clock;
mod container_document;
mod container_ref;
mod containers;
pub mod content;
mod error;
mod fields;
mod logs;
pub mod name_key;
mod requests;
mod retention;
mod throttle;
mod turns;
mod upkeep;
mod upload;
mod uploads;

use std::sync::Arc;

use common::hot_partitions::HotPartitions;
use common::throttle::Throttle;
use store::{Engine, Gate, Objects, RequestMemory};

pub use blob_ref::{BlobRef, Which};
pub use clock::Clock;
pub use container_ref::ContainerRef;
pub use containers::{ContainerEntry, ContainerPage, ContainerProperties, ListQuery, Policies, Request};
pub use error::{Error, Result};
pub use requests::*;
pub use retention::{NoRetention, Retention};
pub use upkeep::Cleaned;
pub use upload::Upload;

use content::Contents;
use turns::Turns;
use uploads::Uploads;

/// One method per operation. Cheap to clone.
#[derive(Clone)]
pub struct BlobService {
    engine: Arc<dyn Engine>,
    objects: Arc<dyn Objects>,
    contents: Contents,
    gate: Arc<Gate>,
    throttle: Option<Arc<Throttle>>,
    hot: Option<Arc<HotPartitions>>,
    clock: Arc<Clock>,
    turns: Arc<Turns>,
    /// Who reads all of a page blob's map in its turn waits here first, so that a write waits for one such reader at most.
    walkers: Arc<Turns>,
    uploads: Arc<Uploads>,
    retention: Arc<dyn Retention>,
}

impl BlobService {
    pub fn new(engine: Arc<dyn Engine>, objects: Arc<dyn Objects>) -> Self {
        let clock = Arc::new(Clock::system());
        Self {
            engine,
            contents: Contents::new(objects.clone(), clock.clone()),
            objects,
            gate: Arc::default(),
            throttle: None,
            hot: None,
            clock,
            turns: Arc::default(),
            walkers: Arc::default(),
            uploads: Arc::default(),
            retention: Arc::new(NoRetention),
        }
    }

    /// Holds callers to the targets of this throttle, which other services may share.
    pub fn throttled(self, throttle: Arc<Throttle>) -> Self {
        Self { throttle: Some(throttle), ..self }
    }

    /// Counts the containers that are asked for most.
    pub fn observed(self, hot: Arc<HotPartitions>) -> Self {
        Self { hot: Some(hot), ..self }
    }

    /// Keeps what is deleted as long as this says.
    pub fn retaining(self, retention: Arc<dyn Retention>) -> Self {
        Self { retention, ..self }
    }

    /// Lets writes through only while this gate is open.
    pub fn gated(self, gate: Arc<Gate>) -> Self {
        Self { gate, ..self }
    }

    /// Charges what uploads hold to the memory for requests.
    pub fn charging(self, memory: Arc<RequestMemory>) -> Self {
        Self { contents: self.contents.charging(memory), ..self }
    }

    /// Whether other servers may change the same blobs at the same time.
    pub fn shared(self, is_shared: bool) -> Self {
        let contents = if is_shared { self.contents.shared_by_servers() } else { self.contents };
        Self { contents, ..self }
    }

    /// Before a stop, when no requests are under way: what was deleted last leaves no garbage to the sweep.
    pub async fn finish_removals(&self) {
        self.contents.finish_removals().await;
    }

    /// Goes by another clock than the system's. To be said before the others.
    pub fn timed(self, clock: Arc<Clock>) -> Self {
        Self { contents: Contents::new(self.objects.clone(), clock.clone()), clock, ..self }
    }
}

impl std::fmt::Debug for BlobService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BlobService")
    }
}
