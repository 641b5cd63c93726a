//! When to try again, and after how long: twice as long each time, less a random part, so that those who were turned
//! away together do not come back together.

use std::time::{Duration, SystemTime};

/// With the pauses below, about two minutes in all.
pub const ATTEMPTS_MAX: u32 = 12;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(20);
/// No server is waited for longer than this because it says so.
const TOLD_PAUSE_MAX: Duration = Duration::from_secs(300);

/// Whether the same request may well be answered otherwise later.
pub fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
}

/// How long to wait after so many attempts. `random` is from 0 to 1, `told` is what the server asked for.
pub fn pause(attempts: u32, random: f64, told: Option<Duration>) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1 << attempts.saturating_sub(1).min(16)).min(PAUSE_MAX);
    let own = doubled.mul_f64(0.5 + random.clamp(0.0, 1.0) / 2.0);
    own.max(told.unwrap_or_default().min(TOLD_PAUSE_MAX))
}

/// What `Retry-After` says: seconds, or a time.
pub fn told(header: &[u8], now: SystemTime) -> Option<Duration> {
    let text = std::str::from_utf8(header).ok()?.trim();
    match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => Some(httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_bound_and_differ() {
        let check = |attempts, random, told: Option<u64>, expected| {
            let pause = pause(attempts, random, told.map(Duration::from_secs));
            assert_eq!(pause.as_millis(), expected, "{attempts} {random} {told:?}");
        };
        check(1, 0.0, None, 100);
        check(1, 1.0, None, 200);
        check(2, 1.0, None, 400);
        check(4, 0.5, None, 1200);
        check(12, 1.0, None, 20_000);
        check(u32::MAX, 1.0, None, 20_000);
        check(1, 1.0, Some(3), 3000);
        check(12, 1.0, Some(3), 20_000);
        check(1, 1.0, Some(1_000_000), 300_000);
    }

    #[test]
    fn a_server_says_when_in_seconds_or_as_a_time() {
        let now = SystemTime::UNIX_EPOCH;
        let check = |header: &str, expected: Option<u64>| {
            assert_eq!(told(header.as_bytes(), now), expected.map(Duration::from_secs), "{header}");
        };
        check("7", Some(7));
        check("Thu, 01 Jan 1970 00:01:00 GMT", Some(60));
        check("-1", None);
        check("soon", None);
        assert_eq!(told(b"Thu, 01 Jan 1970 00:00:00 GMT", SystemTime::now()), Some(Duration::ZERO));
    }
}
