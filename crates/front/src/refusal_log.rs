//! Refusals in the log: short lines, and only a few per second, because anyone can cause them.
//!
//! A line helps an operator to find a wrong key; a million lines fill a disk. Omitted lines are counted, and the next
//! line that is written says how many there were.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

/// A token bucket: lines at once, and lines per second.
const LINES_MAX: f64 = 100.0;
const LINES_PER_SECOND: f64 = 20.0;
/// Of a text that a client sent, or that contains one.
const TEXT_BYTES_MAX: usize = 1024;

/// The log of refusals.
#[derive(Debug, Default)]
pub struct RefusalLog(LinePace);

/// How fast lines may come that strangers can cause.
#[derive(Debug)]
pub struct LinePace {
    level: Mutex<Level>,
    left_out: AtomicU64,
}

#[derive(Clone, Copy, Debug)]
struct Level {
    lines: f64,
    at: Instant,
}

impl Default for LinePace {
    fn default() -> Self {
        let level = Level { lines: LINES_MAX, at: Instant::now() };
        Self { level: Mutex::new(level), left_out: AtomicU64::new(0) }
    }
}

impl RefusalLog {
    /// Writes the line, unless there have been too many.
    pub fn write(&self, line: impl FnOnce()) {
        if let Some(left_out) = self.0.admit(Instant::now()) {
            if left_out > 0 {
                tracing::warn!(left_out, "refusals came faster than they are logged");
            }
            line();
        }
    }
}

impl LinePace {
    /// If a line may be written now: how many were left out since the last one.
    pub fn admit(&self, now: Instant) -> Option<u64> {
        let mut level = self.level.lock();
        let since = now.saturating_duration_since(level.at).as_secs_f64();
        let lines = (level.lines + since * LINES_PER_SECOND).min(LINES_MAX);
        *level = Level { lines: if lines >= 1.0 { lines - 1.0 } else { lines }, at: now };
        if lines >= 1.0 {
            Some(self.left_out.swap(0, Ordering::Relaxed))
        } else {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            None
        }
    }
}

/// The part of a text that is logged.
pub fn cut(text: &str) -> &str {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn lines_are_left_out_and_counted_once_there_were_too_many() {
        let log = LinePace::default();
        let start = Instant::now();
        let written = (0..1000).filter(|_| log.admit(start).is_some()).count();
        assert_eq!(written, LINES_MAX as usize);
        assert_eq!(log.admit(start + Duration::from_millis(100)), Some(900));
        assert_eq!(log.admit(start + Duration::from_millis(100)), Some(0));
        assert_eq!(log.admit(start + Duration::from_millis(100)), None);
        let later = start + Duration::from_secs(3600);
        assert_eq!((0..1000).filter(|_| log.admit(later).is_some()).count(), LINES_MAX as usize);
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(cut("short"), "short");
        assert_eq!(cut(&"a".repeat(5000)).len(), TEXT_BYTES_MAX);
        assert_eq!(cut(&format!("a{}", "é".repeat(5000))).len(), TEXT_BYTES_MAX - 1);
    }
}
