//! Failed attempts to prove who one is: a few at once from one address, then a few a second.
//!
//! Addresses are counted apart, so that who guesses keeps nobody else out. The table of addresses is bounded; addresses
//! beyond it share one count.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Failures that one address may make at once.
const AT_ONCE: f64 = 5.0;
/// Failures that it may make each second in the long run.
const PER_SECOND: f64 = 2.0;
/// After so long without a failure, an address has all its attempts again and is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(5);
const ADDRESSES_MAX: usize = 1024;
/// In place of an address that found no room.
const OTHERS: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

#[derive(Debug, Default)]
pub(crate) struct Attempts(Mutex<HashMap<IpAddr, Failures>>);

#[derive(Clone, Copy, Debug)]
struct Failures {
    count: f64,
    at: Instant,
}

impl Failures {
    fn left_at(self, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        (self.count - passed * PER_SECOND).max(0.0)
    }
}

impl Attempts {
    /// Whether this address may try now. A try that is right costs nothing.
    pub fn allows(&self, ip: IpAddr, now: Instant) -> bool {
        let known = self.0.lock();
        let entry = known.get(&network(ip)).or_else(|| {
            let is_full = known.len() >= ADDRESSES_MAX;
            known.get(&OTHERS).filter(|_| is_full)
        });
        entry.is_none_or(|failures| failures.left_at(now) <= AT_ONCE - 1.0)
    }

    pub fn failed(&self, ip: IpAddr, now: Instant) {
        let mut known = self.0.lock();
        if known.len() >= ADDRESSES_MAX {
            known.retain(|_, failures| now.saturating_duration_since(failures.at) < FORGOTTEN);
        }
        let ip = network(ip);
        let has_room = known.len() < ADDRESSES_MAX || known.contains_key(&ip);
        let entry = known.entry(if has_room { ip } else { OTHERS });
        let failures = entry.or_insert(Failures { count: 0.0, at: now });
        *failures = Failures { count: failures.left_at(now) + 1.0, at: now };
    }
}

/// One customer has at least 64 bits of IPv6 addresses.
fn network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => {
            let [a, b, c, d, ..] = ip.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 1))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> IpAddr {
        IpAddr::V4(number.into())
    }

    #[test]
    fn one_address_fails_a_few_times_and_then_waits_and_keeps_nobody_else_out() {
        let (attempts, start) = (Attempts::default(), Instant::now());
        for _ in 0..5 {
            assert!(attempts.allows(address(1), start));
            attempts.failed(address(1), start);
        }
        assert!(!attempts.allows(address(1), start));
        assert!(attempts.allows(address(2), start));
        assert!(!attempts.allows(address(1), start + Duration::from_millis(400)));
        assert!(attempts.allows(address(1), start + Duration::from_millis(600)));
        attempts.failed(address(1), start + Duration::from_millis(600));
        assert!(!attempts.allows(address(1), start + Duration::from_millis(600)));
    }

    #[test]
    fn addresses_of_one_network_count_as_one() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for host in 0..5_u16 {
            attempts.failed(IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 7, 0, 0, 0, host)), now);
        }
        assert!(!attempts.allows("2001:db8:0:7::99".parse().unwrap(), now));
        assert!(attempts.allows("2001:db8:0:8::99".parse().unwrap(), now));
    }

    #[test]
    fn however_many_addresses_fail_the_table_is_bounded_and_the_rest_share_one_count() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for number in 0..100_000 {
            attempts.failed(address(number), now);
        }
        assert!(attempts.0.lock().len() <= ADDRESSES_MAX + 1);
        assert!(!attempts.allows(address(200_000), now), "no room, and the shared count is used up");
        let later = now + FORGOTTEN;
        attempts.failed(address(200_001), later);
        assert_eq!(attempts.0.lock().len(), 1, "what is forgotten makes room");
        assert!(attempts.allows(address(200_000), later));
    }
}
