//! One page of a scan, read from one snapshot by one thread, or by two.
//!
//! A long scan that is the only one gets a helper: the next window of its range is cut in two, the helper fills
//! a page of its own from the second half, and that page is taken in behind the first half's if all of it fits.
//! If not, it is thrown away and its half read again in order, so that rows and bytes given back and the place
//! to go on from are always those of reading alone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use rocksdb::{ReadOptions, Snapshot};
use store::{Fault, Page, PageBuilder, Scan};

use crate::counters::Tally;
use crate::db::{self, Db};
use crate::layout::TableId;
use crate::split::{self, Ground, Pieces, Stored};
use crate::turns::{Turn, Turns};

/// Rows of a range to look at before asking for help. Most pages are full by then, and a thread costs some tens
/// of microseconds to start.
const PATIENCE_ROWS: u64 = 4096;

/// Rows shared out at a time, as far as can be told: few at first, because a page that fills up in the first half
/// has wasted the second.
const WINDOW_ROWS_MIN: u64 = 16 * 1024;
const WINDOW_ROWS_MAX: u64 = 256 * 1024;

/// Rows between two looks at whether a helper is still wanted.
const ROWS_PER_LOOK: u64 = 64;

pub struct Scanner<'a> {
    pub db: &'a Db,
    pub snapshot: Snapshot<'a>,
    pub tally: &'a Tally,
    pub turns: &'a Turns,
    pub turn: &'a Turn,
    /// Nobody waits for the page any more.
    pub gone: &'a AtomicBool,
}

/// Why reading a range stopped.
#[derive(Debug, PartialEq, Eq)]
enum Stop {
    /// No row is left in it.
    Exhausted,
    /// The page has its place to go on from.
    Complete,
    /// Whoever reads was asked to; the rows from here on have not been looked at.
    Paused(Vec<u8>),
}

/// A part of the range for the helper, and the page to put its rows in.
struct Errand<'p> {
    page: PageBuilder<'p>,
    start: Vec<u8>,
    end: Vec<u8>,
}

type Done<'p> = (PageBuilder<'p>, Result<Stop, Fault>);

/// What has been read of a range: tells how many bytes on the disk a row takes.
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
                // No help now; asking again each time the work has doubled costs next to nothing.
                patience = (page.examined() - before).saturating_mul(2);
            }
        }
        Ok(page.finish())
    }

    /// Cuts the page short if others have waited long enough, or nobody waits for it.
    fn watch(&self, page: &mut PageBuilder<'_>) {
        if self.gone.load(Ordering::Relaxed) || self.turn.is_over() {
            page.cut_short();
        }
    }

    /// Ranges without a row in them have no place to go on from: that is the first row behind them.
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
        self.tally.seeks.add(1);
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
        let mut options = ReadOptions::default();
        options.set_iterate_upper_bound(end);
        let mut rows = self.snapshot.raw_iterator_cf_opt(self.db.data(), options);
        rows.seek(start);
        let mut rows_read = 0;
        let mut stop = Stop::Exhausted;
        while let Some((key, value)) = rows.item() {
            if pause(page) {
                stop = Stop::Paused(key.to_vec());
                break;
            }
            if page.is_clock_due() {
                self.watch(page);
            }
            rows_read += 1;
            if !page.offer(TableId::strip(key), value)? {
                stop = Stop::Complete;
                break;
            }
            rows.next();
        }
        self.tally.seeks.add(1);
        self.tally.rows_read.add(rows_read);
        // An iterator that can't go on looks like one at its end; only its status tells them apart.
        rows.status().map_err(|error| db::fault("could not read on in a scan", error))?;
        Ok(stop)
    }

    /// Reads on with a second thread, for as long as that pays; paused at once if it does not.
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
        // No bytes: all of it is in the memtable, which can't be asked.
        let least = row_bytes * WINDOW_ROWS_MIN;
        if least == 0 || ground.size(&start, end) < least || !self.turns.is_alone() {
            return Ok(Stop::Paused(start));
        }
        let unwanted = &AtomicBool::new(false);
        let (errands, to_do) = mpsc::channel::<Errand<'_>>();
        let (results, done) = mpsc::channel();
        // Owns its end of both channels, so that should it panic, nobody waits for its result.
        let help = move || {
            for Errand { mut page, start, end } in to_do {
                let pause = |page: &PageBuilder<'_>| {
                    page.examined().is_multiple_of(ROWS_PER_LOOK) && unwanted.load(Ordering::Relaxed)
                };
                let stop = self.read(&mut page, &start, &end, pause);
                // Whoever no longer listens has all the rows there is room for.
                let _ = results.send((page, stop));
            }
        };
        thread::scope(|threads| {
            let helper = thread::Builder::new().name("partita-scan".to_owned());
            if helper.spawn_scoped(threads, help).is_err() {
                return Ok(Stop::Paused(start));
            }
            self.tally.shared_scans.add(1);
            let stop = self.share(page, (start, end), &mut ground, row_bytes, (&errands, &done));
            // The helper ends with what it is doing and finds no more to do.
            unwanted.store(true, Ordering::Relaxed);
            drop(errands);
            stop
        })
    }

    /// Window after window: the first half here, the second half there.
    fn share<'p>(
        &self,
        page: &mut PageBuilder<'p>,
        (mut start, end): (Vec<u8>, &[u8]),
        ground: &mut impl Ground,
        row_bytes: u64,
        (errands, done): (&mpsc::Sender<Errand<'p>>, &mpsc::Receiver<Done<'p>>),
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
            // A helper's fault counts for nothing: it may lie behind the last row there is room for, and is met
            // again if not.
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

    fn ground(&self, start: &[u8], end: &[u8]) -> Stored<'_> {
        let mut options = ReadOptions::default();
        options.set_iterate_lower_bound(start);
        options.set_iterate_upper_bound(end);
        Stored { db: self.db, rows: self.snapshot.raw_iterator_cf_opt(self.db.data(), options) }
    }
}
