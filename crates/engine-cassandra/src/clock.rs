//! Unique numbers: stamps for rows and epochs for partitions. No two servers ever make the same.
//!
//! Both are the time, advanced where needed so that they only grow, with the server's slot in the lowest digits. No
//! two servers have the same slot at the same time (`slot`), so their numbers differ even if their clocks are wrong.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use model::DateTime;

/// Servers that can write at one time.
pub const SLOTS: i64 = 100;

/// Ticks between two stamps of one server, 10 µs. The stamps of other servers lie between them.
const STAMP_STEP: i64 = SLOTS;
/// Microseconds between two epochs of one server. Epochs are even: a directory entry is struck off with the odd
/// number after its epoch.
const EPOCH_STEP: i64 = 256;

#[derive(Debug)]
pub struct Clock {
    seat: Mutex<Seat>,
}

/// Guarded by one lock, because a stamp must be within the lease of the slot in its digits.
#[derive(Clone, Copy, Debug)]
struct Seat {
    slot: i64,
    /// The step of the last stamp, and of the last epoch.
    stamp: i64,
    epoch: i64,
    lease: Lease,
}

/// The limits of our slot: the highest stamp, and the time. `slot` renews it.
#[derive(Clone, Copy, Debug)]
pub struct Lease {
    pub below: i64,
    pub until: Instant,
}

impl Lease {
    fn is_current(&self) -> bool {
        Instant::now() < self.until
    }
}

impl Clock {
    /// All stamps and epochs will be above `floor`, the highest stamp that was given out before.
    pub fn new(slot: i64, floor: i64, lease: Lease) -> Self {
        assert!((0..SLOTS).contains(&slot), "slot {slot} of {SLOTS}");
        let floor_micros = floor.saturating_sub(unix_epoch_ticks()) / 10;
        let seat = Seat { slot, stamp: floor / STAMP_STEP, epoch: floor_micros / EPOCH_STEP, lease };
        Self { seat: Mutex::new(seat) }
    }

    /// Continues in another slot, above its floor and above everything that this clock has given out.
    pub fn reseat(&self, slot: i64, floor: i64, lease: Lease) {
        let mut seat = self.seat();
        let next = *Self::new(slot, floor, lease).seat();
        *seat = Seat { stamp: seat.stamp.max(next.stamp), epoch: seat.epoch.max(next.epoch), ..next };
    }

    /// `count` growing stamps, above every stamp given or observed before. `None` if the slot lease does not cover
    /// them: then nothing may be written.
    pub fn stamps(&self, count: usize) -> Option<Vec<DateTime>> {
        let count = i64::try_from(count).ok()?;
        let mut seat = self.seat();
        let first = (DateTime::now().ticks() / STAMP_STEP).max(seat.stamp + 1);
        let end = first + count - 1;
        if !seat.lease.is_current() || (end + 1) * STAMP_STEP >= seat.lease.below {
            return None;
        }
        seat.stamp = seat.stamp.max(end);
        (first..=end).map(|step| DateTime::from_ticks(step * STAMP_STEP + seat.slot)).collect()
    }

    /// The slot whose stamps it gives out.
    pub fn slot(&self) -> i64 {
        self.seat().slot
    }

    /// Whether the slot lease is valid now.
    pub fn is_leased(&self) -> bool {
        self.seat().lease.is_current()
    }

    pub fn renew(&self, lease: Lease) {
        self.seat().lease = lease;
    }

    /// The slot is lost: nothing is given out until there is another one.
    pub fn revoke(&self) {
        self.renew(Lease { below: 0, until: Instant::now() });
    }

    /// Takes note of another server's stamp: our next one will be above it.
    pub fn observe(&self, ticks: i64) {
        let mut seat = self.seat();
        seat.stamp = seat.stamp.max(ticks / STAMP_STEP);
    }

    /// A new epoch above `current`. `None` if the slot lease does not cover it, because the next owner of the slot
    /// could give the same; the next renewal then reserves enough.
    pub fn epoch_above(&self, current: i64) -> Option<i64> {
        let mut seat = self.seat();
        let above = (current / EPOCH_STEP).max(seat.epoch);
        let next = (unix_micros() / EPOCH_STEP).max(above + 1);
        if !seat.lease.is_current() || epoch_ticks(next + 1) >= seat.lease.below {
            seat.epoch = above;
            return None;
        }
        seat.epoch = next;
        Some(next * EPOCH_STEP + 2 * seat.slot)
    }

    /// A time in microseconds that is at least now and later than every epoch given out here.
    pub fn after_epochs(&self) -> i64 {
        unix_micros().max((self.seat().epoch + 1) * EPOCH_STEP)
    }

    /// The highest stamp so far. The next owner of the slot has to start above it. Epochs use the same time.
    pub fn high_water(&self) -> i64 {
        let seat = self.seat();
        (seat.stamp * STAMP_STEP).max(epoch_ticks(seat.epoch))
    }

    /// The value is consistent after every statement, so a poisoned lock is harmless.
    fn seat(&self) -> MutexGuard<'_, Seat> {
        self.seat.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time of an epoch, in the units of stamps.
fn epoch_ticks(step: i64) -> i64 {
    step.saturating_mul(EPOCH_STEP).saturating_mul(10).saturating_add(unix_epoch_ticks())
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
    fn new_stamps_and_epochs_are_above_those_observed() {
        let clock = clock(7, 0);
        let ahead = DateTime::now().ticks() + HOUR;
        clock.observe(ahead);
        assert!(ticks(&clock, 1)[0] > ahead);
        let far = unix_micros() + (1 << 40);
        assert!(clock.epoch_above(far).unwrap() > far);
    }

    #[test]
    fn epochs_are_even_and_never_recur() {
        let (a, b) = (clock(3, 0), clock(4, 0));
        let mut epochs: Vec<i64> =
            (0..1000).flat_map(|_| [a.epoch_above(0).unwrap(), b.epoch_above(0).unwrap()]).collect();
        assert!(epochs.iter().all(|epoch| epoch % 2 == 0));
        epochs.sort_unstable();
        epochs.dedup();
        assert_eq!(epochs.len(), 2000);
    }

    #[test]
    fn a_slots_next_owner_starts_above_the_last() {
        let first = clock(5, DateTime::now().ticks() + HOUR);
        let (stamp, epoch) = (ticks(&first, 3)[2], first.epoch_above(0).unwrap());
        let second = clock(5, first.high_water());
        assert!(ticks(&second, 1)[0] > stamp);
        assert!(second.epoch_above(0).unwrap() > epoch);
    }

    #[test]
    fn no_stamp_is_given_beyond_the_lease() {
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

    #[test]
    fn no_epoch_is_given_beyond_the_lease() {
        let (now, soon) = (DateTime::now().ticks(), Instant::now() + Duration::from_secs(600));
        let over = Clock::new(1, 0, Lease { below: i64::MAX, until: Instant::now() });
        assert_eq!(over.epoch_above(0), None);
        let bounded = Clock::new(1, 0, Lease { below: now + HOUR, until: soon });
        assert!(bounded.epoch_above(0).is_some());
        let ahead = unix_micros() + 2 * HOUR / 10;
        assert_eq!(bounded.epoch_above(ahead), None);
        assert!(bounded.high_water() >= now + HOUR, "the next renewal knows how far to reserve");
        bounded.renew(Lease { below: now + 3 * HOUR, until: soon });
        assert!(bounded.epoch_above(ahead).unwrap() > ahead);
    }

    #[test]
    fn stamps_and_epochs_still_grow_in_another_slot() {
        let (now, soon) = (DateTime::now().ticks(), Instant::now() + Duration::from_secs(600));
        let lease = Lease { below: i64::MAX, until: soon };
        for floor in [0, now + 2 * HOUR] {
            let moved = clock(3, now + HOUR);
            let (stamp, epoch) = (ticks(&moved, 1)[0], moved.epoch_above(0).unwrap());
            moved.revoke();
            assert_eq!((moved.stamps(1), moved.epoch_above(0)), (None, None));
            moved.reseat(8, floor, lease);
            let next = ticks(&moved, 1)[0];
            assert!(next > stamp && next > floor && next % STAMP_STEP == 8, "{next}");
            let next = moved.epoch_above(0).unwrap();
            assert!(next > epoch && next % EPOCH_STEP == 16, "{next}");
        }
    }
}
