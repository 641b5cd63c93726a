//! What the operations on messages cost of the account's and the queue's target, and what a refused client hears.
//!
//! Every message put, got or shown costs one token, or one for each KiB of it; every other operation costs one.

use std::time::Instant;

use common::hot_partitions::{Load, Place};
use common::throttle::{ResourceName, Target};
use queue_model::{MessageText, ServiceKind};

use crate::{QueueRef, QueueService, Result};

impl QueueService {
    /// Whether there is anything left to spend.
    pub(crate) fn admit(&self, queue: &QueueRef) -> Result<()> {
        let Some(throttle) = &self.throttle else { return Ok(()) };
        let parts = [queue.name.as_str()];
        let admitted = throttle.admit(&queue.account, Some(resource(&parts)), Instant::now());
        Ok(admitted.map_err(|target| {
            self.observe(queue, Load { requests: 1, refusals: 1, ..Load::default() });
            match target {
                Target::Account => queue_model::Refusal::Shared(common::Refusal::AccountBusy),
                Target::Resource => queue_model::Refusal::Shared(common::Refusal::Busy),
            }
        })?)
    }

    /// For these messages, or for an operation on none.
    pub(crate) fn spend<'a>(&self, queue: &QueueRef, texts: impl Iterator<Item = &'a MessageText>) {
        if self.throttle.is_none() && self.hot.is_none() {
            return;
        }
        let (entities, cost) = texts.fold((0, 0), |(count, cost), text| (count + 1, cost + cost_of(text)));
        self.observe(queue, Load { requests: 1, entities, kibibytes: cost, ..Load::default() });
        let Some(throttle) = &self.throttle else { return };
        throttle.spend(&queue.account, Some(resource(&[queue.name.as_str()])), cost.max(1), Instant::now());
    }

    fn observe(&self, queue: &QueueRef, load: Load) {
        let Some(hot) = &self.hot else { return };
        let place = Place { service: ServiceKind::Queue, resource: queue.name.as_str(), partition: None };
        hot.record(&queue.account, place, load, Instant::now());
    }
}

fn resource<'a>(queue: &'a [&'a str; 1]) -> ResourceName<'a> {
    ResourceName { service: ServiceKind::Queue, parts: queue }
}

fn cost_of(text: &MessageText) -> u64 {
    text.as_str().len().div_ceil(1024).max(1) as u64
}
