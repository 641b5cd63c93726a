//! Who may scan, and for how long.
//!
//! Few scans run at a time, because more threads than cores would only delay single reads. The others wait in two
//! lines: one for scans within a partition, and one for scans across partitions, which gets every fourth turn while
//! both have waiting scans. The more scans wait, the shorter a turn. At the end of its turn a scan ends its page with
//! a continuation, as if its time were over; the next page waits in line again. So a flood of long scans delays the
//! others, but a short scan never waits until a long one ends. When the lines are full, the next scan is refused as
//! busy.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use store::{Error, Fault};
use tokio::sync::{Semaphore, oneshot};

use crate::options::Options;

/// All waiting scans should get their turn within about this time, however many they are.
const ROUND: Duration = Duration::from_secs(1);
/// The shortest turn. Below this, seeking again would cost more than reading on.
const TURN_MIN: Duration = Duration::from_millis(10);
/// One of this many turns is for scans across partitions.
const WIDE_EVERY: usize = 4;

/// How far a scan can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    Partition,
    Table,
}

#[derive(Debug)]
pub struct Turns {
    lines: Mutex<Lines>,
    scans_max: usize,
    waiting_max: usize,
    /// The same number as in `lines`, readable without the lock.
    waiting: AtomicUsize,
    /// Threads that may help a scan while it is the only one.
    pub helpers: Semaphore,
}

#[derive(Debug, Default)]
struct Lines {
    reading: usize,
    given: usize,
    partition: VecDeque<oneshot::Sender<Turn>>,
    table: VecDeque<oneshot::Sender<Turn>>,
}

/// The right to scan. When it is dropped, the next in line gets it.
#[derive(Debug)]
pub struct Turn {
    turns: Arc<Turns>,
    since: Instant,
    is_held: bool,
}

impl Turns {
    pub fn new(options: &Options) -> Self {
        Self {
            lines: Mutex::default(),
            scans_max: options.concurrent_scans.max(1),
            waiting_max: options.waiting_scans,
            waiting: AtomicUsize::new(0),
            helpers: Semaphore::new(options.scan_helpers),
        }
    }

    /// `Busy` if too many scans wait already.
    pub async fn take(self: &Arc<Self>, reach: Reach) -> Result<Turn, Error> {
        let turn = {
            let mut lines = self.lines.lock();
            if lines.reading < self.scans_max {
                lines.reading += 1;
                return Ok(self.turn());
            }
            if lines.len() >= self.waiting_max {
                lines.remove_cancelled();
                self.waiting.store(lines.len(), Ordering::Relaxed);
            }
            if lines.len() >= self.waiting_max {
                return Err(Error::Busy);
            }
            let (given, turn) = oneshot::channel();
            match reach {
                Reach::Partition => lines.partition.push_back(given),
                Reach::Table => lines.table.push_back(given),
            }
            self.waiting.store(lines.len(), Ordering::Relaxed);
            turn
        };
        // `self` outlives the wait, and a line is emptied only by giving turns.
        turn.await.map_err(|_| Fault::bug("a scan that waited for its turn was dropped from its line").into())
    }

    /// Scans that run, and scans that wait.
    pub fn load(&self) -> (usize, usize) {
        let lines = self.lines.lock();
        (lines.reading, lines.len())
    }

    /// Whether the caller's scan is the only one. If there are others, the cores have enough to do.
    pub fn is_alone(&self) -> bool {
        self.lines.lock().reading <= 1 && self.waiting.load(Ordering::Relaxed) == 0
    }

    fn turn(self: &Arc<Self>) -> Turn {
        Turn { turns: self.clone(), since: Instant::now(), is_held: true }
    }

    fn turn_time(&self, waiting: usize) -> Duration {
        let share = ROUND * u32::try_from(self.scans_max).unwrap_or(u32::MAX);
        (share / u32::try_from(waiting).unwrap_or(u32::MAX).max(1)).max(TURN_MIN)
    }

    /// Gives the turn to the next scan whose client still waits, if there is one.
    fn pass_on(self: &Arc<Self>) {
        let mut lines = self.lines.lock();
        let mut turn = self.turn();
        while let Some(next) = lines.next() {
            self.waiting.store(lines.len(), Ordering::Relaxed);
            match next.send(turn) {
                Ok(()) => return,
                Err(back) => turn = back,
            }
        }
        turn.is_held = false;
        lines.reading -= 1;
    }
}

impl Lines {
    fn len(&self) -> usize {
        self.partition.len() + self.table.len()
    }

    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        self.given = self.given.wrapping_add(1);
        let (first, second) = if self.given.is_multiple_of(WIDE_EVERY) {
            (&mut self.table, &mut self.partition)
        } else {
            (&mut self.partition, &mut self.table)
        };
        first.pop_front().or_else(|| second.pop_front())
    }

    /// Removes scans whose clients no longer wait.
    fn remove_cancelled(&mut self) {
        self.partition.retain(|waiting| !waiting.is_closed());
        self.table.retain(|waiting| !waiting.is_closed());
    }
}

impl Turn {
    /// Starts the time of the turn now, not when it was given: it took time until a thread was free.
    pub fn begin(&mut self) {
        self.since = Instant::now();
    }

    /// Whether the turn is over because other scans have waited long enough.
    pub fn is_over(&self) -> bool {
        let waiting = self.turns.waiting.load(Ordering::Relaxed);
        waiting > 0 && self.since.elapsed() >= self.turns.turn_time(waiting)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.is_held {
            self.turns.pass_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn turns(concurrent_scans: usize, waiting_scans: usize) -> Arc<Turns> {
        Arc::new(Turns::new(&Options { concurrent_scans, waiting_scans, ..Options::new("/nowhere") }))
    }

    fn poll<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    macro_rules! ask {
        ($turns:expr, $reach:expr) => {
            Box::pin($turns.take($reach))
        };
    }

    #[test]
    fn a_turn_goes_to_the_next_scan_that_still_waits() {
        let turns = turns(1, 10);
        let held = poll(&mut ask!(turns, Reach::Table)).expect("nobody reads").expect("has room");
        let (mut gone, mut next) = (ask!(turns, Reach::Table), ask!(turns, Reach::Table));
        assert!(poll(&mut gone).is_none() && poll(&mut next).is_none());
        drop(gone);
        drop(held);
        let held = poll(&mut next);
        assert!(matches!(held, Some(Ok(_))));
        assert!(turns.is_alone());
        drop(held);
        assert_eq!(turns.lines.lock().reading, 0);
    }

    #[test]
    fn short_scans_go_before_long_ones_but_not_always() {
        let turns = turns(1, 100);
        let mut held = poll(&mut ask!(turns, Reach::Table)).expect("nobody reads").expect("has room");
        let mut waiting: Vec<_> = "ttpppppppp"
            .chars()
            .map(|line| (line, ask!(turns, if line == 't' { Reach::Table } else { Reach::Partition })))
            .collect();
        assert!(waiting.iter_mut().all(|(_, asked)| poll(asked).is_none()));
        let mut order = String::new();
        while !waiting.is_empty() {
            drop(held);
            let ready = waiting.iter_mut().enumerate().find_map(|(at, (_, asked))| Some((at, poll(asked)?)));
            let (at, turn) = ready.expect("one of them has its turn");
            order.push(waiting.remove(at).0);
            held = turn.expect("a turn");
        }
        assert_eq!(order, "ppptppptpp");
    }

    #[test]
    fn a_full_line_answers_busy_until_a_scan_stops_waiting() {
        let turns = turns(1, 2);
        let _held = poll(&mut ask!(turns, Reach::Table)).expect("nobody reads").expect("has room");
        let (mut first, mut second) = (ask!(turns, Reach::Table), ask!(turns, Reach::Partition));
        assert!(poll(&mut first).is_none() && poll(&mut second).is_none());
        assert!(matches!(poll(&mut ask!(turns, Reach::Partition)), Some(Err(Error::Busy))));
        drop(first);
        assert!(poll(&mut ask!(turns, Reach::Partition)).is_none());
    }

    #[test]
    fn turns_get_shorter_as_more_wait_but_never_too_short() {
        let turns = turns(4, 5000);
        assert_eq!(turns.turn_time(4), Duration::from_secs(1));
        assert_eq!(turns.turn_time(40), Duration::from_millis(100));
        assert_eq!(turns.turn_time(5000), TURN_MIN);
    }
}
