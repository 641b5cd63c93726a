//! When to retry, and after how long a pause.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// What a client does about servers that are busy, slow or unreachable.
///
/// It retries after 503 and 429 (the server is busy), 500, 502, 504 and 408 (failed or timed out), and after broken
/// connections. It never retries after another refusal (4xx). Each pause is twice as long as the one before, minus a random
/// part, so that clients that were refused together do not come back together. `Retry-After` is honoured.
///
/// A *write* without an answer may have been done. It is sent again, and the second answer shows more. If the retry of an
/// insert finds that the entity exists, or the retry of a change finds another version, the first attempt may be the
/// reason. Then the client returns [`Error::OutcomeUnknown`](crate::Error::OutcomeUnknown), not the refusal.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct RetryPolicy {
    pub(crate) attempts: u32,
    pub(crate) first_pause: Duration,
    pub(crate) longest_pause: Duration,
    pub(crate) answer_within: Duration,
    pub(crate) repeats_doubtful: bool,
    pub(crate) needs_contact: bool,
    pub(crate) on_pause: Option<OnPause>,
}

type Tell = dyn Fn(&str, Duration) + Send + Sync;

/// Called before each pause.
#[derive(Clone)]
pub(crate) struct OnPause(Arc<Tell>);

impl OnPause {
    pub(crate) fn call(&self, why: &str, pause: Duration) {
        (self.0)(why, pause);
    }
}

impl fmt::Debug for OnPause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnPause(..)")
    }
}

/// Compares the identity of the functions.
impl PartialEq for OnPause {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The longest pause that a server can request.
const TOLD_PAUSE_MAX: Duration = Duration::from_secs(120);

impl Default for RetryPolicy {
    /// Five attempts, pauses of up to 0.8, 1.6, 3.2 and 6.4 s, and 60 s for each answer.
    fn default() -> Self {
        Self {
            attempts: 5,
            first_pause: Duration::from_millis(800),
            longest_pause: Duration::from_secs(60),
            answer_within: Duration::from_secs(60),
            repeats_doubtful: true,
            needs_contact: false,
            on_pause: None,
        }
    }
}

impl RetryPolicy {
    /// One attempt.
    pub fn never() -> Self {
        Self { attempts: 1, ..Self::default() }
    }

    /// The number of attempts, including the first; at least 1.
    pub fn attempts(self, attempts: u32) -> Self {
        Self { attempts: attempts.max(1), ..self }
    }

    /// The first pause, and the longest.
    pub fn pauses(self, first: Duration, longest: Duration) -> Self {
        Self { first_pause: first, longest_pause: longest, ..self }
    }

    /// How long to wait for each answer.
    pub fn answer_within(self, time: Duration) -> Self {
        Self { answer_within: time, ..self }
    }

    /// Whether to retry writes that may have been done; by default true. With false they fail with
    /// [`Error::OutcomeUnknown`](crate::Error::OutcomeUnknown) at once.
    pub fn repeat_doubtful(self, repeat: bool) -> Self {
        Self { repeats_doubtful: repeat, ..self }
    }

    /// Whether to fail at once if the first connection to a service fails; by default false. An interactive program can
    /// thus report a wrong address without a delay.
    pub fn needs_contact(self, needs: bool) -> Self {
        Self { needs_contact: needs, ..self }
    }

    /// Calls this before each pause, with the reason and the length of the pause.
    pub fn on_pause(self, tell: impl Fn(&str, Duration) + Send + Sync + 'static) -> Self {
        Self { on_pause: Some(OnPause(Arc::new(tell))), ..self }
    }

    /// The pause after this many attempts. `random` is from 0 to 1, `told` is the `Retry-After`.
    pub(crate) fn pause(&self, attempts: u32, random: f64, told: Option<Duration>) -> Duration {
        let doubled =
            self.first_pause.saturating_mul(1 << attempts.saturating_sub(1).min(16)).min(self.longest_pause);
        let own = doubled.mul_f64(0.5 + random.clamp(0.0, 1.0) / 2.0);
        own.max(told.unwrap_or_default().min(TOLD_PAUSE_MAX))
    }
}

/// What an answer means for the request it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryVerdict {
    /// The answer is final.
    Final,
    /// The request was not done; retry.
    TurnedAway,
    /// The request may have been done.
    Doubtful,
}

pub fn verdict(status: u16) -> RetryVerdict {
    match status {
        429 | 503 => RetryVerdict::TurnedAway,
        408 | 500 | 502 | 504 => RetryVerdict::Doubtful,
        _ => RetryVerdict::Final,
    }
}

/// Reads `Retry-After`: seconds, or a time.
pub fn told(header: &str, now: SystemTime) -> Option<Duration> {
    match header.trim().parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => Some(httpdate::parse_http_date(header).ok()?.duration_since(now).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_bound_and_differ() {
        let policy = RetryPolicy::default().pauses(Duration::from_millis(200), Duration::from_secs(20));
        let check = |attempts, random, told: Option<u64>, expected| {
            let pause = policy.pause(attempts, random, told.map(Duration::from_secs));
            assert_eq!(pause.as_millis(), expected, "{attempts} {random} {told:?}");
        };
        check(1, 0.0, None, 100);
        check(1, 1.0, None, 200);
        check(4, 0.5, None, 1200);
        check(u32::MAX, 1.0, None, 20_000);
        check(1, 1.0, Some(3), 3000);
        check(1, 1.0, Some(1_000_000), 120_000);
    }

    #[test]
    fn refusals_are_final() {
        for status in [200, 204, 304, 400, 403, 404, 409, 412, 413, 501] {
            assert_eq!(verdict(status), RetryVerdict::Final, "{status}");
        }
        for status in [429, 503] {
            assert_eq!(verdict(status), RetryVerdict::TurnedAway, "{status}");
        }
        for status in [408, 500, 502, 504] {
            assert_eq!(verdict(status), RetryVerdict::Doubtful, "{status}");
        }
    }

    #[test]
    fn a_server_says_when_in_seconds_or_as_a_time() {
        let now = SystemTime::UNIX_EPOCH;
        let check = |header: &str, expected: Option<u64>| {
            assert_eq!(told(header, now), expected.map(Duration::from_secs), "{header}");
        };
        check("7", Some(7));
        check("Thu, 01 Jan 1970 00:01:00 GMT", Some(60));
        check("-1", None);
        check("soon", None);
    }
}
