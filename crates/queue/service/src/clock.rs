//! The server's clock, and the times from which messages are visible.
//!
//! A pop receipt is the time from which its message is visible, so no two receipts of a message may have the same time. The
//! clock gives even ticks that only grow: a message that is visible at once gets such a tick. One that is hidden for some
//! seconds gets an odd tick, whose place within its millisecond is the number of the message's change. The receipts of a
//! message could only meet after `CHANGES_APART` changes that are a whole number of seconds apart, to the millisecond.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use queue_model::DateTime;

/// Ticks of a millisecond. A message may become visible so much later than was asked for.
const BLOCK: i64 = 10_000;
const STEP: i64 = 2;
#[cfg(test)]
const CHANGES_APART: i64 = BLOCK / STEP;

pub struct Clock {
    source: Box<dyn Fn() -> DateTime + Send + Sync>,
    last: AtomicI64,
}

impl Clock {
    pub fn system() -> Self {
        Self::of(DateTime::now)
    }

    /// Goes by what this function tells; if that goes back, the clock stands nearly still.
    pub fn of(source: impl Fn() -> DateTime + Send + Sync + 'static) -> Self {
        Self { source: Box::new(source), last: AtomicI64::new(0) }
    }

    /// Now: later than every tick before.
    pub fn tick(&self) -> DateTime {
        let now = (self.source)().ticks() & !1;
        let next = |last: i64| now.max(last + STEP);
        let last = self.last.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |last| Some(next(last)));
        // The update never declines.
        let last = last.unwrap_or_else(|last| last);
        DateTime::from_ticks(next(last)).unwrap_or(DateTime::MAX)
    }

    /// All later ticks are above this one.
    pub fn raise(&self, to: DateTime) {
        self.last.fetch_max(to.ticks() & !1, Ordering::SeqCst);
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock").field("last", &self.last).finish_non_exhaustive()
    }
}

pub fn earlier(time: DateTime, by: Duration) -> DateTime {
    let ticks = i64::try_from(by.as_nanos() / 100).unwrap_or(i64::MAX);
    DateTime::from_ticks(time.ticks().saturating_sub(ticks)).unwrap_or(DateTime::MIN)
}

/// From when on a message is visible that is hidden from `now` on for so long, which is whole seconds. `change` is the
/// number of the change of a message that was inserted at `inserted`; Put is number 0.
pub fn due(now: DateTime, visibility: Duration, inserted: DateTime, change: u32) -> DateTime {
    if visibility.is_zero() {
        return now;
    }
    let earliest = now.plus(visibility).ticks();
    let place = inserted.ticks() + STEP * i64::from(change);
    let wait = (place - earliest).rem_euclid(BLOCK);
    DateTime::from_ticks(earliest + wait + 1).unwrap_or(DateTime::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::Arc;

    fn start() -> DateTime {
        DateTime::parse("2026-11-17T10:00:00.1234567Z").unwrap()
    }

    #[test]
    fn ticks_grow_though_time_stands_or_goes_back() {
        let time = Arc::new(AtomicI64::new(start().ticks()));
        let source = time.clone();
        let clock = Clock::of(move || DateTime::from_ticks(source.load(Ordering::SeqCst)).unwrap());
        let first = clock.tick();
        assert_eq!(first.ticks(), start().ticks() - 1, "even");
        assert_eq!(clock.tick().ticks(), first.ticks() + STEP);
        time.fetch_sub(1_000_000, Ordering::SeqCst);
        assert_eq!(clock.tick().ticks(), first.ticks() + 2 * STEP);
        clock.raise(DateTime::from_ticks(first.ticks() + 1001).unwrap());
        assert_eq!(clock.tick().ticks(), first.ticks() + 1002);
        time.fetch_add(9_000_000, Ordering::SeqCst);
        assert_eq!(clock.tick().ticks(), first.ticks() + 8_000_000);
    }

    #[test]
    fn a_put_is_visible_to_the_second_and_others_less_than_a_millisecond_late() {
        let inserted = Clock::of(start).tick();
        let second = Duration::from_secs(1);
        assert_eq!(due(inserted, Duration::ZERO, inserted, 0), inserted);
        assert_eq!(due(inserted, 30 * second, inserted, 0).ticks(), inserted.plus(30 * second).ticks() + 1);
        for change in 1..20_000 {
            let now = inserted.plus(Duration::from_micros(u64::from(change) * 777));
            let late = due(now, second, inserted, change).ticks() - now.plus(second).ticks();
            assert!((1..=BLOCK).contains(&late), "{late}");
        }
    }

    #[test]
    fn no_two_of_many_changes_give_the_same_time() {
        // Time moves in whole seconds, so that what was hidden longer before meets what is hidden for less time later.
        let time = Arc::new(AtomicI64::new(start().ticks()));
        let source = time.clone();
        let clock = Clock::of(move || DateTime::from_ticks(source.load(Ordering::SeqCst)).unwrap());
        let inserted = clock.tick();
        let mut seen = HashSet::new();
        for change in 0..CHANGES_APART {
            time.fetch_add(10_000_000 * (change % 3), Ordering::SeqCst);
            let hidden = Duration::from_secs(u64::try_from(change * 7 % 11).unwrap());
            let change = u32::try_from(change).unwrap();
            assert!(seen.insert(due(clock.tick(), hidden, inserted, change)), "change {change}");
        }
    }
}
