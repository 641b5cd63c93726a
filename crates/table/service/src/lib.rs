//! The operations of the Table service, without HTTP. The caller is authenticated and the request parsed before they are
//! called.

pub mod advice;
mod entities;
mod error;
pub mod explain;
mod grant;
mod group;
pub mod insight;
pub mod long_work;
mod policies;
mod query;
mod residual;
mod tables;
mod throttle;

use std::sync::Arc;

use common::throttle::Throttle;
use store::{Engine, Gate};

pub use entities::EntityWrite;
pub use error::{Error, Result};
pub use grant::{Access, Grant, Need, Role, RoleGrant, TableGrant};
pub use group::WriteGroup;
pub use insight::Insight;
pub use query::{EntityPage, EntityQuery};
pub use tables::{TablePage, TableQuery};

/// One method per operation. Cheap to clone.
#[derive(Clone)]
pub struct Service {
    engine: Arc<dyn Engine>,
    throttle: Option<Arc<Throttle>>,
    gate: Arc<Gate>,
    insight: Option<Insight>,
}

impl Service {
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine, throttle: None, gate: Arc::default(), insight: None }
    }

    /// Counts hot partitions and wasteful queries.
    pub fn observed(self, insight: Insight) -> Self {
        Self { insight: Some(insight), ..self }
    }

    /// Holds callers to the targets of this throttle, which other services may share.
    pub fn throttled(self, throttle: Arc<Throttle>) -> Self {
        Self { throttle: Some(throttle), ..self }
    }

    /// Lets writes through only while this gate is open.
    pub fn gated(self, gate: Arc<Gate>) -> Self {
        Self { gate, ..self }
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Service")
    }
}
