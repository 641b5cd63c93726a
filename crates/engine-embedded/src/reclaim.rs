//! Reclaims the space of dropped tables, in the background.
//!
//! For clients a table is gone when its drop is durable; its rows are hidden but still on disk. The `dropping` record
//! stays until they are removed. If the server stops before that, the next open continues.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use rocksdb::{BottommostLevelCompaction, CompactOptions, Range};
use store::{Error, Fault};
use tracing::{debug, warn};

use crate::commit::Work;
use crate::db::{self, Db};
use crate::layout::TableId;
use crate::queue::{self, Queue};

/// Below this, a compaction for the table would rewrite far more rows of other tables than it frees. Such rows are
/// removed by the next ordinary compaction that meets their tombstone.
const COMPACTED_BYTES_MIN: u64 = 1024 * 1024;

const BUSY_PAUSE: Duration = Duration::from_millis(100);

pub struct Reclaimer {
    pub db: Arc<Db>,
    /// Weak, because the committer ends when the queue is dropped, and this thread ends after the committer.
    pub queue: Weak<Queue>,
    pub stopping: Arc<AtomicBool>,
}

impl Reclaimer {
    pub fn run(self, dropped: &Receiver<TableId>) {
        while let Ok(first) = dropped.recv() {
            let mut ids = vec![first];
            ids.extend(dropped.try_iter());
            match self.reclaim(&ids) {
                Ok(()) => debug!(tables = ids.len(), "space of dropped tables reclaimed"),
                Err(_) if self.is_stopping() => return,
                Err(error) => {
                    warn!(%error, tables = ids.len(), "the space of dropped tables is not reclaimed before the next start");
                }
            }
        }
    }

    fn reclaim(&self, ids: &[TableId]) -> Result<(), Error> {
        for id in ids {
            if self.bytes_on_disk(*id) >= COMPACTED_BYTES_MIN {
                self.reclaim_files(*id)?;
            }
            // An interrupted compaction returns like a finished one.
            if self.is_stopping() {
                return Err(Fault::closed().into());
            }
        }
        self.commit(&Work::Forget(ids.to_vec()))
    }

    fn reclaim_files(&self, id: TableId) -> Result<(), Error> {
        let (start, end) = id.all();
        // Files that have only rows of this table are deleted without reading them. This makes the drop of a large
        // table cheap.
        let deleted = self.db.rocks().delete_file_in_range_cf(self.db.data(), &start, &end);
        deleted.map_err(|error| db::fault("could not delete files of a dropped table", error))?;
        // One of these files may have had the table's tombstone, while files shared with other tables still have rows
        // that it hid. Without a new tombstone these rows would stay for ever.
        self.commit(&Work::Hide(id))?;
        let mut options = CompactOptions::default();
        options.set_exclusive_manual_compaction(false);
        options.set_bottommost_level_compaction(BottommostLevelCompaction::ForceOptimized);
        self.db.rocks().compact_range_cf_opt(self.db.data(), Some(start), Some(end), &options);
        Ok(())
    }

    /// The bytes of its rows in table files. Rows that were never flushed are dropped from the buffer because of the
    /// tombstone.
    fn bytes_on_disk(&self, id: TableId) -> u64 {
        let (start, end) = id.all();
        let sizes = self.db.rocks().get_approximate_sizes_cf(self.db.data(), &[Range::new(&start, &end)]);
        sizes.iter().sum()
    }

    /// Tries again while the committer is busy: this is not urgent, and nobody else would try again.
    fn commit(&self, work: &Work) -> Result<(), Error> {
        let closing = || Error::from(Fault::closed());
        loop {
            let open = self.queue.upgrade().ok_or_else(closing)?;
            let reserved = open.reserve(queue::weigh(work));
            let submitted = reserved.and_then(|reserved| open.submit(work.clone(), reserved));
            // Not held while waiting: the committer ends when the last sender is dropped.
            drop(open);
            match submitted {
                Ok(answer) => return answer.blocking_recv().map_err(|_| closing())?.map(drop),
                Err(Error::Busy) => thread::sleep(BUSY_PAUSE),
                Err(error) => return Err(error),
            }
        }
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }
}
