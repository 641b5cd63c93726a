//! One page of a scan, read from one snapshot by one thread, or by two.
//!
//! A long scan gets a helper thread if no other scan is running. The next window of its range is cut in two, and the
//! helper fills a page of its own from the second half. If that page fits behind the first half, it is appended. If
//! not, it is discarded and the second half is read again in order. So the result is always that of one thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use rocksdb::{ReadOptions, Snapshot};
use row_walk::{Reads, Walk};
use store::{Fault, Page, PageBuilder, Scan};

use crate::counters::LiveCounters;
use crate::db::{self, Db};
use crate::layout::TableId;
use crate::split::{self, Ground, Pieces, StoredGround};
use crate::turns::{Turn, Turns};

/// Rows to read before asking for a helper. Most pages are full by then, and starting a thread takes some tens of
/// microseconds.
const PATIENCE_ROWS: u64 = 4096;

/// The estimated number of rows in a window. Few at first: if the first half fills the page, the work on the second
/// is wasted.
const WINDOW_ROWS_MIN: u64 = 16 * 1024;
const WINDOW_ROWS_MAX: u64 = 256 * 1024;

/// Rows between two checks whether a helper is still useful.
const ROWS_PER_LOOK: u64 = 64;

pub struct Scanner<'a> {
    pub db: &'a Db,
    pub snapshot: Snapshot<'a>,
    pub counts: &'a LiveCounters,
    pub turns: &'a Turns,
    pub turn: &'a Turn,
    /// The caller no longer waits for the page.
    pub gone: &'a AtomicBool,
}

/// Why reading a range stopped.
#[derive(Debug, PartialEq, Eq)]
enum Stop {
    /// The range has no more rows.
    Exhausted,
    /// The page is full and has its continuation.
    Complete,
    /// It was asked to pause. The rows from this key on were not read.
    Paused(Vec<u8>),
}

/// A part of the range for the helper, and the page to put its rows in.
struct Errand<'p> {
    page: PageBuilder<'p>,
    start: Vec<u8>,
    end: Vec<u8>,
}

type HelperResult<'p> = (PageBuilder<'p>, Result<Stop, Fault>);

/// What has been read of a range. It tells how many bytes a row takes on disk.
#[derive(Clone, Copy)]
struct Behind<'a> {
    start: &'a [u8],
    rows: u64,
}

impl Scanner<'_> {
    pub fn page(&self, table: TableId, scan: &Scan) -> Result<Page, Fault> {
        let mut page = PageBuilder::new(scan);
        'ranges: for (index, range) in scan.ranges.iter().enumerate() {
            let Some((range_start, end)) = table.range(range) else { continue };
            if index > 0 {
                self.watch(&mut page);
                if !page.has_time_for_a_range() {
                    self.end_at_the_next_row(&mut page, table, scan, &range_start)?;
                    break;
                }
            }
            let (mut start, before, mut patience) = (range_start.clone(), page.examined(), PATIENCE_ROWS);
            loop {
                let stop = self.read(&mut page, &start, &end, |page| page.examined() - before >= patience)?;
                let stop = match stop {
                    Stop::Paused(at) => {
                        let behind = Behind { start: &range_start, rows: page.examined() - before };
                        self.read_with_help(&mut page, behind, at, &end)?
                    }
                    other => other,
                };
                match stop {
                    Stop::Exhausted => break,
                    Stop::Complete => break 'ranges,
                    Stop::Paused(at) => start = at,
                }
                // No helper is free. Asking again each time the work has doubled costs next to nothing.
                patience = (page.examined() - before).saturating_mul(2);
            }
        }
        Ok(page.finish())
    }

    /// Ends the page early if other scans have waited long enough, or if nobody waits for the page.
    fn watch(&self, page: &mut PageBuilder<'_>) {
        if self.gone.load(Ordering::Relaxed) || self.turn.is_over() {
            page.cut_short();
        }
    }

    /// A range without rows has no continuation of its own: it is the first row behind the range.
    fn end_at_the_next_row(
        &self,
        page: &mut PageBuilder<'_>,
        table: TableId,
        scan: &Scan,
        start: &[u8],
    ) -> Result<(), Fault> {
        let Some((_, end)) = scan.ranges.last().and_then(|last| table.range(last)) else { return Ok(()) };
        let mut options = ReadOptions::default();
        options.set_iterate_upper_bound(end);
        let mut rows = self.snapshot.raw_iterator_cf_opt(self.db.data(), options);
        rows.seek(start);
        self.counts.seeks.add(1);
        if let Some(key) = rows.key() {
            page.end_before(TableId::strip(key))?;
        }
        rows.status().map_err(|error| db::fault("could not read on in a scan", error))
    }

    fn read<'p>(
        &self,
        page: &mut PageBuilder<'p>,
        start: &[u8],
        end: &[u8],
        pause: impl Fn(&PageBuilder<'p>) -> bool,
    ) -> Result<Stop, Fault> {
        let reads = if page.copies_all_rows() { Reads::Whole } else { Reads::Front };
        let mut rows = Walk::new(self.db.data(), &self.snapshot, start, end, reads);
        let mut rows_read = 0;
        let mut stop = Stop::Exhausted;
        while let Some((key, value)) = rows.next_row() {
            if pause(page) {
                stop = Stop::Paused(key.to_vec());
                break;
            }
            if page.is_clock_due() {
                self.watch(page);
            }
            if !page.offer(TableId::strip(key), value)? {
                stop = Stop::Complete;
                break;
            }
            // Not the row at which a page ends: the page that begins with it counts it.
            rows_read += 1;
        }
        self.counts.seeks.add(1);
        self.counts.rows_read.add(rows_read);
        self.counts.note_blocks();
        // A walk that fails looks like one at its end. Only its status tells them apart.
        rows.status().map_err(|error| match error.is_damage {
            true => Fault::damaged("could not read on in a scan").because(error),
            false => Fault::disk("could not read on in a scan").because(error),
        })?;
        Ok(stop)
    }

    /// Reads on with a second thread as long as that helps; returns `Paused` at once if it does not.
    fn read_with_help(
        &self,
        page: &mut PageBuilder<'_>,
        behind: Behind<'_>,
        start: Vec<u8>,
        end: &[u8],
    ) -> Result<Stop, Fault> {
        let Ok(_permit) = self.turns.helpers.try_acquire() else { return Ok(Stop::Paused(start)) };
        let mut ground = self.ground(&start, end);
        let row_bytes = ground.size(behind.start, &start) / behind.rows.max(1);
        // Zero bytes: all rows are in the memtable, whose size is not known.
        let least = row_bytes * WINDOW_ROWS_MIN;
        if least == 0 || ground.size(&start, end) < least || !self.turns.is_alone() {
            return Ok(Stop::Paused(start));
        }
        let unwanted = &AtomicBool::new(false);
        let (errands, to_do) = mpsc::channel::<Errand<'_>>();
        let (results, done) = mpsc::channel();
        // The helper owns its ends of both channels, so that nobody waits for its result if it panics.
        let help = move || {
            for Errand { mut page, start, end } in to_do {
                let pause = |page: &PageBuilder<'_>| {
                    page.examined().is_multiple_of(ROWS_PER_LOOK) && unwanted.load(Ordering::Relaxed)
                };
                let stop = self.read(&mut page, &start, &end, pause);
                // Nobody receives it if the page is full already.
                let _ = results.send((page, stop));
            }
        };
        thread::scope(|threads| {
            let helper = thread::Builder::new().name("partita-scan".to_owned());
            if helper.spawn_scoped(threads, help).is_err() {
                return Ok(Stop::Paused(start));
            }
            self.counts.shared_scans.add(1);
            let stop = self.share(page, (start, end), &mut ground, row_bytes, (&errands, &done));
            // The helper finishes its part and then ends.
            unwanted.store(true, Ordering::Relaxed);
            drop(errands);
            stop
        })
    }

    /// Window after window: the first half on this thread, the second half on the helper.
    fn share<'p>(
        &self,
        page: &mut PageBuilder<'p>,
        (mut start, end): (Vec<u8>, &[u8]),
        ground: &mut impl Ground,
        row_bytes: u64,
        (errands, done): (&mpsc::Sender<Errand<'p>>, &mpsc::Receiver<HelperResult<'p>>),
    ) -> Result<Stop, Fault> {
        let never = |_: &PageBuilder<'_>| false;
        let mut rows = WINDOW_ROWS_MIN;
        while start.as_slice() < end {
            let least = row_bytes * WINDOW_ROWS_MIN;
            let pieces = split::split(ground, (&start, end), row_bytes * rows, least);
            let Some(Pieces { middle, end: window_end }) = pieces.filter(|_| self.turns.is_alone()) else {
                return Ok(Stop::Paused(start));
            };
            let errand = Errand { page: page.ahead(), start: middle.clone(), end: window_end.clone() };
            let sent = errands.send(errand).is_ok();
            if self.read(page, &start, &middle, never)? == Stop::Complete {
                return Ok(Stop::Complete);
            }
            let ahead = if sent { done.recv().ok() } else { None };
            // A fault of the helper is ignored: it may lie behind the last row of the page. If it does not, this
            // thread meets it again.
            let absorbed = ahead.is_some_and(|(ahead, stop)| stop.is_ok() && page.absorb(ahead));
            if !absorbed {
                self.read(page, &middle, &window_end, never)?;
            }
            if page.is_complete() {
                return Ok(Stop::Complete);
            }
            start = window_end;
            rows = (rows * 2).min(WINDOW_ROWS_MAX);
        }
        Ok(Stop::Exhausted)
    }

    fn ground(&self, start: &[u8], end: &[u8]) -> StoredGround<'_> {
        let mut options = ReadOptions::default();
        options.set_iterate_lower_bound(start);
        options.set_iterate_upper_bound(end);
        StoredGround { db: self.db, rows: self.snapshot.raw_iterator_cf_opt(self.db.data(), options) }
    }
}
