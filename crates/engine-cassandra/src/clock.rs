//! Numbers that no two servers give out twice: stamps for rows and epochs for partitions.
//!
//! Both are the time, moved on where needed so that they only grow, with the server's slot in the lowest
//! digits. Two servers never hold one slot at a time (`slot`), so their numbers differ whatever their clocks say.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use model::DateTime;

/// Servers that can write at one time.
pub const SLOTS: i64 = 100;

/// Stamps of one server lie this many ticks apart, with the other servers' between them: 10 µs.
const STAMP_STEP: i64 = SLOTS;
/// Epochs of one server lie this many microseconds apart. Even numbers only: what removes an epoch's entry
/// from the directory carries the odd number after it.
const EPOCH_STEP: i64 = 256;

#[derive(Debug)]
pub struct Clock {
    slot: i64,
    /// The step of the last stamp, and of the last epoch.
    stamp: AtomicI64,
    epoch: AtomicI64,
    lease: Mutex<Lease>,
}

/// How far the slot is ours: up to which stamp, and until when. Given by whoever renews it (`slot`).
#[derive(Clone, Copy, Debug)]
pub struct Lease {
    pub below: i64,
    pub until: Instant,
}

impl Clock {
    /// Every stamp and epoch will be above what `floor`, a stamp, says was given out before.
    pub fn new(slot: i64, floor: i64, lease: Lease) -> Self {
        debug_assert!((0..SLOTS).contains(&slot));
        let floor_micros = floor.saturating_sub(unix_epoch_ticks()) / 10;
        Self {
            slot,
            stamp: AtomicI64::new(floor / STAMP_STEP),
            epoch: AtomicI64::new(floor_micros / EPOCH_STEP),
            lease: Mutex::new(lease),
        }
    }

    /// `count` stamps for one transaction, growing, above every stamp given or observed before. `None` while the
    /// slot's lease does not cover them: then nothing may be written.
    pub fn stamps(&self, count: usize) -> Option<Vec<DateTime>> {
        let count = count as i64;
        let now = DateTime::now().ticks() / STAMP_STEP;
        let lease = self.lease();
        let advance = |last: i64| {
            let end = now.max(last + 1) + count - 1;
            ((end + 1) * STAMP_STEP < lease.below).then_some(end)
        };
        if !self.is_leased() {
            return None;
        }
        let last = self.stamp.fetch_update(Ordering::AcqRel, Ordering::Acquire, advance).ok()?;
        let first = now.max(last + 1);
        (0..count).map(|i| DateTime::from_ticks((first + i) * STAMP_STEP + self.slot)).collect()
    }

    /// Whether the slot is ours at this moment.
    pub fn is_leased(&self) -> bool {
        Instant::now() < self.lease().until
    }

    fn lease(&self) -> Lease {
        *self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn renew(&self, lease: Lease) {
        *self.lease.lock().unwrap_or_else(PoisonError::into_inner) = lease;
    }

    /// A stamp that someone else gave: the next one will be above it.
    pub fn observe(&self, ticks: i64) {
        self.stamp.fetch_max(ticks / STAMP_STEP, Ordering::AcqRel);
    }

    /// An epoch above `current`, never given before.
    pub fn epoch_above(&self, current: i64) -> i64 {
        let now = unix_micros() / EPOCH_STEP;
        let next = |last: i64| now.max(current / EPOCH_STEP + 1).max(last + 1);
        let last = self
            .epoch
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |last| Some(next(last)))
            .unwrap_or_else(|last| last);
        next(last) * EPOCH_STEP + 2 * self.slot
    }

    /// The highest stamp up to now: what the slot's next owner has to start above. Epochs follow the same time.
    pub fn high_water(&self) -> i64 {
        let epoch_micros = self.epoch.load(Ordering::Acquire) * EPOCH_STEP;
        let epoch_ticks = epoch_micros.saturating_mul(10).saturating_add(unix_epoch_ticks());
        (self.stamp.load(Ordering::Acquire) * STAMP_STEP).max(epoch_ticks)
    }
}

pub fn unix_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

fn unix_epoch_ticks() -> i64 {
    DateTime::from(UNIX_EPOCH).ticks()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn clock(slot: i64, floor: i64) -> Clock {
        Clock::new(slot, floor, Lease { below: i64::MAX, until: Instant::now() + Duration::from_secs(600) })
    }

    fn ticks(clock: &Clock, count: usize) -> Vec<i64> {
        clock.stamps(count).unwrap().iter().map(|stamp| stamp.ticks()).collect()
    }

    const HOUR: i64 = 36_000_000_000;

    #[test]
    fn stamps_grow_and_no_two_servers_give_the_same() {
        let (a, b) = (clock(0, 0), clock(99, 0));
        let mut given: Vec<i64> = Vec::new();
        for _ in 0..50 {
            let mine = ticks(&a, 100);
            assert!(mine.is_sorted() && given.last().is_none_or(|last| *last < mine[0]));
            given.extend(mine);
        }
        given.extend((0..50).flat_map(|_| ticks(&b, 100)));
        let count = given.len();
        given.sort_unstable();
        given.dedup();
        assert_eq!(given.len(), count);
    }

    #[test]
    fn what_was_observed_is_exceeded() {
        let clock = clock(7, 0);
        let ahead = DateTime::now().ticks() + HOUR;
        clock.observe(ahead);
        assert!(ticks(&clock, 1)[0] > ahead);
        assert!(clock.epoch_above(1 << 60) > 1 << 60);
    }

    #[test]
    fn epochs_are_even_and_never_recur() {
        let (a, b) = (clock(3, 0), clock(4, 0));
        let mut epochs: Vec<i64> = (0..1000).flat_map(|_| [a.epoch_above(0), b.epoch_above(0)]).collect();
        assert!(epochs.iter().all(|epoch| epoch % 2 == 0));
        epochs.sort_unstable();
        epochs.dedup();
        assert_eq!(epochs.len(), 2000);
    }

    #[test]
    fn a_slots_next_owner_starts_above_the_last() {
        let first = clock(5, DateTime::now().ticks() + HOUR);
        let (stamp, epoch) = (ticks(&first, 3)[2], first.epoch_above(0));
        let second = clock(5, first.high_water());
        assert!(ticks(&second, 1)[0] > stamp);
        assert!(second.epoch_above(0) > epoch);
    }

    #[test]
    fn nothing_is_given_beyond_the_lease() {
        let (now, soon) = (DateTime::now().ticks(), Instant::now() + Duration::from_secs(600));
        let over = Clock::new(1, 0, Lease { below: i64::MAX, until: Instant::now() });
        assert_eq!(over.stamps(1), None);
        let bounded = Clock::new(1, 0, Lease { below: now + HOUR, until: soon });
        assert!(bounded.stamps(1).is_some());
        bounded.observe(now + HOUR);
        assert_eq!(bounded.stamps(1), None);
        bounded.renew(Lease { below: now + 2 * HOUR, until: soon });
        assert!(bounded.stamps(1).unwrap()[0].ticks() < now + 2 * HOUR);
    }
}
