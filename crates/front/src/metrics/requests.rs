//! Requests by service, operation and class of status, with their times; entities and bytes.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::available_parallelism;
use std::time::Duration;

use common::ServiceKind;
use store::{LiveSpread, SECONDS, Spread};

use crate::operation_info::OperationInfo;

/// More shards than this would help no machine, and each takes about ten kilobytes.
const SHARDS_MAX: usize = 64;
const SERVICES: usize = ServiceKind::ALL.len();
/// The classes of a status, by its first digit.
pub const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];
/// Of operations that are not in their service's table.
pub const OTHER: &str = "Other";

#[derive(Debug)]
pub struct RequestCounts {
    /// Those of one service follow each other. The last one of each service is `None`: all others.
    operations: Vec<(ServiceKind, Option<&'static OperationInfo>)>,
    /// Where the operations of a service begin and end.
    places: [(usize, usize); SERVICES],
    shards: Box<[Shard]>,
}

/// The counts of some threads, on cache lines that other threads do not write to.
#[derive(Debug)]
#[repr(align(128))]
struct Shard {
    operations: Box<[OperationCounts]>,
    examined: AtomicU64,
    returned: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
}

#[derive(Debug)]
struct OperationCounts {
    classes: [AtomicU64; CLASSES.len()],
    times: LiveSpread,
}

/// The counts of one operation.
#[derive(Debug)]
pub struct OperationTotals {
    pub service: ServiceKind,
    pub operation: &'static str,
    pub classes: [u64; CLASSES.len()],
    pub times: Spread,
}

/// Sums over all services and operations. Two of them give what happened in between.
#[derive(Clone, Debug, PartialEq)]
pub struct Totals {
    pub requests: u64,
    /// Answered with 4xx.
    pub refused: u64,
    /// Answered with 5xx.
    pub failed: u64,
    /// Answered with 503; they are among those that failed.
    pub throttled: u64,
    /// From a request's head to its answer, in seconds.
    pub times: Spread,
    pub entities_examined: u64,
    pub entities_returned: u64,
    pub received_bytes: u64,
    pub sent_bytes: u64,
}

impl Totals {
    /// What came after an earlier moment.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(earlier.requests),
            refused: self.refused.saturating_sub(earlier.refused),
            failed: self.failed.saturating_sub(earlier.failed),
            throttled: self.throttled.saturating_sub(earlier.throttled),
            times: self.times.since(&earlier.times),
            entities_examined: self.entities_examined.saturating_sub(earlier.entities_examined),
            entities_returned: self.entities_returned.saturating_sub(earlier.entities_returned),
            received_bytes: self.received_bytes.saturating_sub(earlier.received_bytes),
            sent_bytes: self.sent_bytes.saturating_sub(earlier.sent_bytes),
        }
    }
}

impl RequestCounts {
    pub fn new(
        of_services: impl IntoIterator<Item = (ServiceKind, &'static [&'static OperationInfo])>,
    ) -> Self {
        let (mut operations, mut places) = (Vec::new(), [(0, 0); SERVICES]);
        for (service, table) in of_services {
            let start = operations.len();
            operations.extend(table.iter().map(|info| (service, Some(*info))));
            operations.push((service, None));
            places[service as usize] = (start, operations.len());
        }
        let shards = available_parallelism().map_or(1, usize::from).next_power_of_two().min(SHARDS_MAX);
        let shard = || Shard::new(operations.len());
        Self { shards: std::iter::repeat_with(shard).take(shards).collect(), operations, places }
    }

    pub fn count(&self, service: ServiceKind, info: &'static OperationInfo, status: u16, elapsed: Duration) {
        let Some(place) = self.place(service, info) else { return };
        let counts = &self.shard().operations[place];
        let class = usize::from(status / 100).clamp(2, 5) - 2;
        counts.classes[class].fetch_add(1, Ordering::Relaxed);
        counts.times.note(elapsed.as_nanos() as u64);
    }

    pub fn entities(&self, examined: u64, returned: u64) {
        let shard = self.shard();
        shard.examined.fetch_add(examined, Ordering::Relaxed);
        shard.returned.fetch_add(returned, Ordering::Relaxed);
    }

    pub fn received(&self, bytes: usize) {
        self.shard().received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub fn sent(&self, bytes: usize) {
        self.shard().sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The place of an operation; `None` if its service is not served. The tables are short, and an operation is known by
    /// its address.
    fn place(&self, service: ServiceKind, info: &'static OperationInfo) -> Option<usize> {
        let (start, end) = self.places[service as usize];
        let of_service = &self.operations[start..end];
        let found =
            of_service.iter().position(|(_, known)| known.is_some_and(|known| std::ptr::eq(known, info)));
        found.map(|at| start + at).or(end.checked_sub(1))
    }

    fn shard(&self) -> &Shard {
        // There is at least one shard, and their number is a power of two.
        &self.shards[thread_number() & (self.shards.len() - 1)]
    }

    pub fn operations(&self) -> impl Iterator<Item = OperationTotals> + '_ {
        self.operations.iter().enumerate().map(|(place, (service, info))| {
            let mut totals = OperationTotals {
                service: *service,
                operation: info.map_or(OTHER, |info| info.name),
                classes: [0; CLASSES.len()],
                times: Spread::empty(&SECONDS),
            };
            for OperationCounts { classes, times } in self.shards.iter().map(|shard| &shard.operations[place])
            {
                totals
                    .classes
                    .iter_mut()
                    .zip(classes)
                    .for_each(|(sum, count)| *sum += count.load(Ordering::Relaxed));
                totals.times.add(&times.read());
            }
            totals
        })
    }

    fn sum(&self, of: fn(&Shard) -> &AtomicU64) -> u64 {
        self.shards.iter().map(|shard| of(shard).load(Ordering::Relaxed)).sum()
    }

    /// The services that are served.
    pub fn services(&self) -> impl Iterator<Item = ServiceKind> + '_ {
        ServiceKind::ALL.into_iter().filter(|service| self.places[*service as usize] != (0, 0))
    }

    /// Without what was throttled, which refusals tell.
    pub fn totals(&self) -> Totals {
        let (mut classes, mut times) = ([0; CLASSES.len()], Spread::empty(&SECONDS));
        for of_operation in self.operations() {
            classes.iter_mut().zip(of_operation.classes).for_each(|(sum, count)| *sum += count);
            times.add(&of_operation.times);
        }
        Totals {
            requests: classes.iter().sum(),
            refused: classes[2],
            failed: classes[3],
            throttled: 0,
            times,
            entities_examined: self.sum(|shard| &shard.examined),
            entities_returned: self.sum(|shard| &shard.returned),
            received_bytes: self.sum(|shard| &shard.received),
            sent_bytes: self.sum(|shard| &shard.sent),
        }
    }
}

impl Shard {
    fn new(operations: usize) -> Self {
        let counts = || OperationCounts { classes: Default::default(), times: LiveSpread::new(&SECONDS) };
        Self {
            operations: std::iter::repeat_with(counts).take(operations).collect(),
            examined: AtomicU64::new(0),
            returned: AtomicU64::new(0),
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
        }
    }
}

/// Threads are numbered in the order in which they first count something.
fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    const NONE: usize = usize::MAX;
    thread_local!(static NUMBER: Cell<usize> = const { Cell::new(NONE) });
    NUMBER.with(|number| match number.get() {
        NONE => {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
            number.get()
        }
        known => known,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation_info::Class;

    const fn info(name: &'static str) -> OperationInfo {
        OperationInfo { name, class: Class::Read, writes: false, takes_body: false, shows_document: false }
    }

    static GET: OperationInfo = info("Get");
    static PUT: OperationInfo = info("Put");
    /// In no table.
    static NEW: OperationInfo = info("New");
    static OF_TABLES: [&OperationInfo; 2] = [&GET, &PUT];
    static OF_QUEUES: [&OperationInfo; 1] = [&PUT];

    fn counts() -> RequestCounts {
        RequestCounts::new([(ServiceKind::Table, &OF_TABLES[..]), (ServiceKind::Queue, &OF_QUEUES[..])])
    }

    #[test]
    fn a_request_counts_for_its_service_its_operation_and_the_class_of_its_status() {
        let counts = counts();
        let millisecond = Duration::from_millis(1);
        for (service, info, status) in [
            (ServiceKind::Table, &GET, 200),
            (ServiceKind::Table, &GET, 404),
            (ServiceKind::Table, &PUT, 204),
            (ServiceKind::Queue, &PUT, 503),
            (ServiceKind::Queue, &PUT, 304),
            (ServiceKind::Queue, &NEW, 200),
            (ServiceKind::Queue, &GET, 200),
            // Not served.
            (ServiceKind::Blob, &GET, 200),
        ] {
            counts.count(service, info, status, millisecond);
        }
        let found: Vec<_> = counts
            .operations()
            .map(|totals| (totals.service.name(), totals.operation, totals.classes, totals.times.count()))
            .collect();
        let expected = [
            ("table", "Get", [1, 0, 1, 0], 2),
            ("table", "Put", [1, 0, 0, 0], 1),
            ("table", "Other", [0, 0, 0, 0], 0),
            ("queue", "Put", [0, 1, 0, 1], 2),
            ("queue", "Other", [2, 0, 0, 0], 2),
        ];
        assert_eq!(found, expected);
        let totals = counts.totals();
        assert_eq!((totals.requests, totals.refused, totals.failed, totals.times.sum()), (7, 1, 1, 0.007));
    }

    #[test]
    fn nothing_is_lost_when_threads_count_at_once() {
        let counts = counts();
        std::thread::scope(|threads| {
            for _ in 0..8 {
                threads.spawn(|| {
                    for _ in 0..1000 {
                        counts.count(ServiceKind::Table, &GET, 200, Duration::ZERO);
                        counts.entities(3, 1);
                        counts.received(10);
                        counts.sent(20);
                    }
                });
            }
        });
        let totals = counts.totals();
        assert_eq!((totals.requests, totals.times.count()), (8000, 8000));
        assert_eq!((totals.entities_examined, totals.entities_returned), (24_000, 8000));
        assert_eq!((totals.received_bytes, totals.sent_bytes), (80_000, 160_000));
        counts.count(ServiceKind::Queue, &PUT, 500, Duration::from_secs(1));
        let since = counts.totals().since(&totals);
        assert_eq!((since.requests, since.failed, since.times.sum()), (1, 1, 1.0));
    }
}
