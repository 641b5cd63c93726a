//! The operations of the Queue service, without HTTP or XML: who asks has been settled, what is asked has been read.
//!
//! A queue is a table of the engine and a message is a row of it (docs/decisions/0008-queues-are-rows.md). The row key is the
//! time from which the message is visible, so the visible messages are the rows up to now, and every change of visibility
//! moves the row in one transaction. The engine decides who gets a message; what this crate keeps in memory of a queue
//! (`live`, `head`) only makes that cheap, and may be lost at any time.

mod ahead_memory;
mod clear;
mod clock;
mod document;
mod error;
mod grant;
mod head;
mod live;
mod message_row;
mod messages;
mod queue_ref;
mod queues;
mod sweep;
mod throttle;

use std::sync::Arc;

use common::hot_partitions::HotPartitions;
use common::throttle::Throttle;
use store::{Engine, Gate};

pub use clock::Clock;
pub use error::{Error, Result};
pub use grant::{Access, Grant, Need, QueueGrant, Role, RoleGrant};
pub use queue_ref::QueueRef;
pub use queues::{Creation, ListQuery, QueuePage};
pub use sweep::Swept;

use live::LiveQueues;

/// One method per operation. Cheap to clone.
#[derive(Clone)]
pub struct QueueService {
    engine: Arc<dyn Engine>,
    gate: Arc<Gate>,
    throttle: Option<Arc<Throttle>>,
    hot: Option<Arc<HotPartitions>>,
    clock: Arc<Clock>,
    live: Arc<LiveQueues>,
    /// Other servers change the same queues.
    is_shared: bool,
}

impl QueueService {
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        let (clock, live) = (Arc::new(Clock::system()), Arc::default());
        Self { engine, gate: Arc::default(), throttle: None, hot: None, clock, live, is_shared: false }
    }

    /// Lets writes through only while this gate is open.
    pub fn gated(self, gate: Arc<Gate>) -> Self {
        Self { gate, ..self }
    }

    /// Holds callers to the targets of this throttle, which other services may share.
    pub fn throttled(self, throttle: Arc<Throttle>) -> Self {
        Self { throttle: Some(throttle), ..self }
    }

    /// Counts the queues that are asked for most.
    pub fn observed(self, hot: Arc<HotPartitions>) -> Self {
        Self { hot: Some(hot), ..self }
    }

    /// Whether other servers may change the same queues at the same time.
    pub fn shared(self, is_shared: bool) -> Self {
        Self { is_shared, ..self }
    }

    /// Goes by another clock than the system's.
    pub fn timed(self, clock: Arc<Clock>) -> Self {
        Self { clock, ..self }
    }
}

impl std::fmt::Debug for QueueService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("QueueService")
    }
}
