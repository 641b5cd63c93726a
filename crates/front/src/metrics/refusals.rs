//! Refusals by their code. Codes are words of the program, so there are about a hundred of them, and a client can't invent
//! one.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use common::ServiceKind;

/// More than all services have together. What does not fit is counted as `OTHER`.
const PLACES: usize = 512;
const SERVICES: usize = ServiceKind::ALL.len();
const OTHER: &str = "Other";
const THROTTLED: u16 = 503;
/// Shown from the start, so that a monitor sees the first of them as a change.
const EXPECTED: [&str; 5] =
    ["AuthenticationFailed", "AuthorizationFailure", "InternalError", "OperationTimedOut", "ServerBusy"];

/// A hash table that only grows, of places that are taken once. No entry is a lock for a reader.
#[derive(Debug)]
pub struct RefusalCounts {
    places: Box<[Place]>,
    /// Of codes without a place.
    others: [AtomicU64; SERVICES],
    throttled: [AtomicU64; SERVICES],
}

#[derive(Debug, Default)]
struct Place {
    code: OnceLock<&'static str>,
    counts: [AtomicU64; SERVICES],
}

impl Default for RefusalCounts {
    fn default() -> Self {
        Self::with_places(PLACES)
    }
}

impl RefusalCounts {
    fn with_places(places: usize) -> Self {
        Self {
            places: std::iter::repeat_with(Place::default).take(places).collect(),
            others: Default::default(),
            throttled: Default::default(),
        }
    }

    pub fn count(&self, service: ServiceKind, code: &'static str, status: u16) {
        self.place(code).unwrap_or(&self.others)[service as usize].fetch_add(1, Ordering::Relaxed);
        if status == THROTTLED {
            self.throttled[service as usize].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The counts of a code: at the place that its letters say, or at one of the next.
    fn place(&self, code: &'static str) -> Option<&[AtomicU64; SERVICES]> {
        let start = hash(code) % self.places.len();
        let (behind, ahead) = self.places.split_at(start);
        let found = ahead.iter().chain(behind).find(|place| *place.code.get_or_init(|| code) == code);
        found.map(|place| &place.counts)
    }

    /// Each code of these services with its count, in order.
    pub fn by_code(&self, services: &[ServiceKind]) -> BTreeMap<(ServiceKind, &'static str), u64> {
        let mut counts: BTreeMap<_, _> =
            services.iter().flat_map(|service| EXPECTED.map(|code| ((*service, code), 0))).collect();
        let others = (OTHER, &self.others);
        let known = self.places.iter().filter_map(|place| Some((*place.code.get()?, &place.counts)));
        for (code, of_code) in known.chain([others]) {
            for service in services {
                let count = of_code[*service as usize].load(Ordering::Relaxed);
                if count > 0 {
                    counts.insert((*service, code), count);
                }
            }
        }
        counts
    }

    /// Answered with 503, by service.
    pub fn throttled(&self) -> [(ServiceKind, u64); SERVICES] {
        ServiceKind::ALL.map(|service| (service, self.throttled[service as usize].load(Ordering::Relaxed)))
    }
}

/// FNV-1a: codes are short and nobody chooses them to collide.
fn hash(code: &str) -> usize {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    code.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, mix) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(counts: &RefusalCounts) -> Vec<(&'static str, &'static str, u64)> {
        let by_code = counts.by_code(&[ServiceKind::Queue, ServiceKind::Table]);
        by_code
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|((s, code), n)| (s.name(), code, n))
            .collect()
    }

    #[test]
    fn each_code_has_its_count_in_each_service() {
        let counts = RefusalCounts::default();
        for (service, code, status) in [
            (ServiceKind::Table, "TableNotFound", 404),
            (ServiceKind::Table, "TableNotFound", 404),
            (ServiceKind::Queue, "ServerBusy", 503),
            (ServiceKind::Table, "ServerBusy", 503),
        ] {
            counts.count(service, code, status);
        }
        let expected =
            [("queue", "ServerBusy", 1), ("table", "ServerBusy", 1), ("table", "TableNotFound", 2)];
        assert_eq!(counted(&counts), expected);
        assert_eq!(counts.throttled().map(|(_, count)| count), [0, 1, 1]);
        let of_tables = counts.by_code(&[ServiceKind::Table]);
        assert_eq!(of_tables.get(&(ServiceKind::Table, "InternalError")), Some(&0), "shown from the start");
    }

    #[test]
    fn a_full_table_counts_further_codes_together() {
        let counts = RefusalCounts::with_places(2);
        for code in ["A", "B", "C", "D", "A", "C"] {
            counts.count(ServiceKind::Table, code, 400);
        }
        assert_eq!(counted(&counts), [("table", "A", 2), ("table", "B", 1), ("table", "Other", 3)]);
    }
}
