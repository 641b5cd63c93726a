//! Decides which reads may wait for the disk on a thread that also serves other requests.
//!
//! A block that is not in the block cache is mostly in the system's page cache and read in microseconds, so all
//! threads may wait for it. A disk may take a thousand times as long, and the other connections of the thread wait with
//! it. After two slow reads within 200 ms, no thread waits for 200 ms: what is not in the cache is read on the blocking threads.
//!
//! On a busy machine a read also takes long if the system gives the processor to somebody else meanwhile. That has nothing to
//! do with the disk, and a change of threads would make it worse. So the system is asked whether the thread has read from a
//! disk at all.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A read that takes longer than this came from the disk, or had to wait for a processor.
const LONG: Duration = Duration::from_millis(2);
/// How long a slow read is remembered. One may be chance; the next one makes threads careful, for as long.
const CAREFUL: Duration = Duration::from_millis(200);

thread_local! {
    /// What this thread had read from disks when the system was asked last.
    static DISK_BYTES: Cell<u64> = const { Cell::new(0) };
}

#[derive(Debug)]
pub struct Patience {
    threads: usize,
    careful: Duration,
    waiting: AtomicUsize,
    born: Instant,
    /// In microseconds since `born`.
    careful_until: AtomicU64,
    /// The last slow read, in the same; 0 before the first.
    last_slow: AtomicU64,
    /// The system counts what a thread reads from the disk of the store.
    is_counted: bool,
}

/// The right to wait for the disk; returned when dropped.
#[derive(Debug)]
pub struct WaitPermit<'a> {
    patience: &'a Patience,
    since: Instant,
}

impl Patience {
    /// For so many threads, and a store in this directory.
    pub fn new(threads: usize, directory: &Path) -> Self {
        Self {
            threads,
            careful: CAREFUL,
            waiting: AtomicUsize::new(0),
            born: Instant::now(),
            careful_until: AtomicU64::new(0),
            last_slow: AtomicU64::new(0),
            is_counted: is_counted(directory),
        }
    }

    /// Whether a read that took this long on this thread may have waited for the disk.
    fn is_slow_disk(&self, took: Duration) -> bool {
        took > LONG && (!self.is_counted || has_read_from_disk())
    }

    /// `None` if as many threads as may already wait.
    pub fn wait(&self) -> Option<WaitPermit<'_>> {
        let since = Instant::now();
        let is_careful = self.micros(since) < self.careful_until.load(Ordering::Relaxed);
        let most = if is_careful { 0 } else { self.threads };
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        // Made before the limit is checked. If the limit is exceeded, dropping it undoes the count.
        let waiting = WaitPermit { patience: self, since };
        (before < most).then_some(waiting)
    }

    fn note_slow(&self, now: Instant) {
        let at = self.micros(now).max(1);
        let before = self.last_slow.swap(at, Ordering::Relaxed);
        if before > 0 && at.saturating_sub(before) <= self.careful.as_micros() as u64 {
            self.careful_until.fetch_max(self.micros(now + self.careful), Ordering::Relaxed);
        }
    }

    fn micros(&self, now: Instant) -> u64 {
        now.duration_since(self.born).as_micros() as u64
    }
}

impl Drop for WaitPermit<'_> {
    fn drop(&mut self) {
        self.patience.waiting.fetch_sub(1, Ordering::Relaxed);
        let now = Instant::now();
        if self.patience.is_slow_disk(now.duration_since(self.since)) {
            self.patience.note_slow(now);
        }
    }
}

/// File systems of other programs and of a virtual machine's host do their reading elsewhere.
fn is_counted(directory: &Path) -> bool {
    const FUSE: u64 = 0x6573_5546;
    const PLAN_9: u64 = 0x0102_1997;
    rustix::fs::statfs(directory).is_ok_and(|system| !matches!(system.f_type as u64, FUSE | PLAN_9))
}

/// Whether this thread has read from a disk since the system was asked last. True if the system does not tell.
fn has_read_from_disk() -> bool {
    let told = fs::read_to_string("/proc/thread-self/io").ok();
    told.as_deref().and_then(disk_bytes).is_none_or(|bytes| DISK_BYTES.replace(bytes) < bytes)
}

fn disk_bytes(io: &str) -> Option<u64> {
    io.lines().find_map(|line| line.strip_prefix("read_bytes: "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::os::unix::fs::OpenOptionsExt as _;

    /// It stays careful for longer than a test takes, however busy the machine is.
    fn patience(threads: usize) -> Patience {
        Patience { careful: Duration::from_secs(3600), ..Patience::new(threads, Path::new("/")) }
    }

    /// A read that takes long, and does this meanwhile.
    fn read_slowly(patience: &Patience, meanwhile: impl FnOnce()) {
        let mut slow = patience.wait().expect("nobody waits");
        slow.since = Instant::now().checked_sub(2 * LONG).expect("the machine has been on for longer");
        meanwhile();
    }

    #[test]
    fn as_many_reads_may_wait_as_there_are_workers() {
        let two = patience(2);
        let (first, second) = (two.wait(), two.wait());
        assert!(first.is_some() && second.is_some() && two.wait().is_none());
        drop(first);
        assert!(two.wait().is_some());
        assert!(patience(0).wait().is_none());
    }

    #[test]
    fn after_two_long_reads_from_the_disk_no_thread_waits_for_a_while() {
        // Beside this program. Temporary files may be in memory, and are not read from a disk then.
        let beside = std::env::current_exe().unwrap();
        let file = tempfile::NamedTempFile::new_in(beside.parent().unwrap()).unwrap();
        fs::write(file.path(), [7; 8192]).unwrap();
        file.as_file().sync_all().unwrap();
        let direct = rustix::fs::OFlags::DIRECT.bits() as i32;
        let patience = patience(2);
        let read = || {
            let mut opened =
                fs::OpenOptions::new().read(true).custom_flags(direct).open(file.path()).unwrap();
            let mut bytes = vec![0; 3 * 4096];
            let aligned = bytes.as_ptr().align_offset(4096);
            opened.read_exact(&mut bytes[aligned..][..4096]).unwrap();
        };
        read_slowly(&patience, read);
        assert!(patience.wait().is_some(), "one may be chance");
        read_slowly(&patience, read);
        assert!(patience.wait().is_none());
        patience.careful_until.store(0, Ordering::Relaxed);
        assert!(patience.wait().is_some());
    }

    #[test]
    fn slow_reads_that_are_far_apart_are_chance() {
        let patience = Patience { is_counted: false, careful: CAREFUL, ..patience(2) };
        let now = Instant::now();
        for number in 1..5 {
            patience.note_slow(now + number * 2 * CAREFUL);
            assert_eq!(patience.careful_until.load(Ordering::Relaxed), 0);
        }
    }

    #[test]
    fn a_long_read_without_the_disk_waited_for_a_processor() {
        // What this thread has read before does not count.
        has_read_from_disk();
        let patience = patience(2);
        for _ in 0..3 {
            read_slowly(&patience, || ());
        }
        assert!(patience.wait().is_some());
    }

    #[test]
    fn where_the_system_does_not_count_every_long_read_is_the_disk() {
        let patience = Patience { is_counted: false, ..patience(2) };
        read_slowly(&patience, || ());
        read_slowly(&patience, || ());
        assert!(patience.wait().is_none());
        assert!(!is_counted(Path::new("/no such directory")));
    }

    #[test]
    fn what_the_system_tells_is_read() {
        assert_eq!(disk_bytes("rchar: 6976\nread_bytes: 4096\nwrite_bytes: 0\n"), Some(4096));
        assert_eq!(disk_bytes("rchar: 6976\n"), None);
        assert!(fs::read_to_string("/proc/thread-self/io").is_ok_and(|io| disk_bytes(&io).is_some()));
    }
}
