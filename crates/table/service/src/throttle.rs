//! What the operations on tables cost of the account's and the partition's target, and what a refused client hears.
//!
//! Every entity written, deleted or scanned costs one token, or one for each KiB of it.

use std::time::Instant;

use common::ServiceKind;
use common::hot_partitions::Load;
use common::throttle::{ResourceName, Target};
use store::TableRef;

use crate::Service;

impl Service {
    /// Whether there is anything left to spend, on the partition too if it is known.
    pub(crate) fn admit(&self, table: &TableRef, partition: Option<&str>) -> Result<(), common::Refusal> {
        let Some(throttle) = &self.throttle else { return Ok(()) };
        let parts = partition.map(|partition| [table.name.folded(), partition]);
        let resource = parts.as_ref().map(resource_name);
        throttle.admit(&table.account, resource, Instant::now()).map_err(|target| {
            self.observe(table, partition, Load { requests: 1, refusals: 1, ..Load::default() });
            match target {
                Target::Account => common::Refusal::AccountBusy,
                Target::Resource => common::Refusal::Busy,
            }
        })
    }

    pub(crate) fn spend(&self, table: &TableRef, partition: Option<&str>, cost: u64) {
        let Some(throttle) = &self.throttle else { return };
        let parts = partition.map(|partition| [table.name.folded(), partition]);
        throttle.spend(&table.account, parts.as_ref().map(resource_name), cost, Instant::now());
    }
}

fn resource_name<'a>(table_and_partition: &'a [&'a str; 2]) -> ResourceName<'a> {
    ResourceName { service: ServiceKind::Table, parts: table_and_partition }
}

/// What an entity of so many bytes costs.
pub fn cost_of(bytes: usize) -> u64 {
    bytes.div_ceil(1024).max(1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_is_counted_in_kibibytes() {
        assert_eq!([0, 1, 1024, 1025, 65_536].map(cost_of), [1, 1, 1, 2, 64]);
    }
}
