//! The operations of the Table service, without HTTP: who asks has been settled, what is asked has been read.

mod entities;
mod error;
mod gate;
mod grant;
mod group;
mod metadata;
mod metrics;
mod query;
mod residual;
mod tables;
mod throttle;

use std::sync::Arc;

use store::Engine;

pub use entities::Write;
pub use error::{Error, Result};
pub use gate::Gate;
pub use grant::{Access, AccountGrant, Grant, Need, Role, RoleGrant, TableGrant};
pub use group::Group;
pub use query::{EntityPage, EntityQuery};
pub use tables::{TablePage, TableQuery};
pub use throttle::Targets;
use throttle::Throttle;

/// One method per operation. Cheap to clone.
#[derive(Clone)]
pub struct Service {
    engine: Arc<dyn Engine>,
    throttle: Option<Arc<Throttle>>,
    gate: Arc<Gate>,
    /// Held while service properties change.
    properties: Arc<tokio::sync::Mutex<()>>,
}

impl Service {
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine, throttle: None, gate: Arc::default(), properties: Arc::default() }
    }

    /// Holds callers to these targets, as the cloud does.
    pub fn throttled(self, targets: Targets) -> Self {
        Self { throttle: Some(Arc::new(Throttle::new(targets))), ..self }
    }

    /// Lets writes through only while this gate is open.
    pub fn gated(self, gate: Arc<Gate>) -> Self {
        Self { gate, ..self }
    }

    /// Since when only reads are served, if that is so.
    pub fn frozen_since(&self) -> Option<model::DateTime> {
        self.gate.closed_since()
    }

    /// Whether requests can be served now.
    pub fn check_health(&self) -> std::result::Result<(), store::Fault> {
        self.engine.check_health()
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Service")
    }
}
