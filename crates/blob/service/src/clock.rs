//! The server's clock. An ETag is a time, so no two changes may have the same one.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};

use blob_model::DateTime;

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
        let now = (self.source)().ticks();
        let next = |last: i64| now.max(last + 1);
        let last = self.last.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |last| Some(next(last)));
        // The update never declines.
        let last = last.unwrap_or_else(|last| last);
        DateTime::from_ticks(next(last)).unwrap_or(DateTime::MAX)
    }

    /// Now, or one tick above this time, whichever is later.
    pub fn tick_above(&self, time: DateTime) -> DateTime {
        self.last.fetch_max(time.ticks(), Ordering::SeqCst);
        self.tick()
    }

    /// Now, as leases are judged by it: it may be the same for many.
    pub fn now(&self) -> DateTime {
        (self.source)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock").field("last", &self.last).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn ticks_grow_though_time_stands_or_goes_back() {
        let start = DateTime::parse("2026-11-17T10:00:00.1234567Z").unwrap();
        let time = Arc::new(AtomicI64::new(start.ticks()));
        let source = time.clone();
        let clock = Clock::of(move || DateTime::from_ticks(source.load(Ordering::SeqCst)).unwrap());
        assert_eq!(clock.tick(), start);
        assert_eq!(clock.tick().ticks(), start.ticks() + 1);
        time.fetch_sub(1_000_000, Ordering::SeqCst);
        assert_eq!(clock.tick().ticks(), start.ticks() + 2);
        assert_eq!(clock.now().ticks(), start.ticks() - 1_000_000);
        let above = DateTime::from_ticks(start.ticks() + 500).unwrap();
        assert_eq!(clock.tick_above(above).ticks(), start.ticks() + 501);
        time.fetch_add(9_000_000, Ordering::SeqCst);
        assert_eq!(clock.tick_above(above).ticks(), start.ticks() + 8_000_000);
    }
}
