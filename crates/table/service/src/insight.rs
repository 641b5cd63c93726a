//! What the service observes of its use, for advice and for the list of hot partitions.

use std::sync::Arc;
use std::time::Instant;

use common::ServiceKind;
use common::hot_partitions::{HotPartitions, Load, Place};
use store::TableRef;

use crate::Service;
use crate::advice::Advisor;

/// Cheap to clone. Services that share accounts share the hot partitions.
#[derive(Clone, Debug, Default)]
pub struct Insight {
    pub hot: Arc<HotPartitions>,
    pub advisor: Arc<Advisor>,
}

impl Service {
    /// `None` if nothing is observed.
    pub fn insight(&self) -> Option<&Insight> {
        self.insight.as_ref()
    }

    /// Counts a request to a partition, or to several.
    pub(crate) fn observe(&self, table: &TableRef, partition: Option<&str>, load: Load) {
        let Some(insight) = &self.insight else { return };
        let place = Place { service: ServiceKind::Table, resource: table.name.folded(), partition };
        insight.hot.record(&table.account, place, load, Instant::now());
    }
}
