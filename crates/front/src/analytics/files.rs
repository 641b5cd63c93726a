//! Request logs in files, named as the service names them: `<account>/<service>/YYYY/MM/DD/hh00/nnnnnn.log`.
//!
//! One thread writes all files. Like the service's, the log is best-effort: it never delays a request, and lines that come
//! faster than the disk can write are counted and left out.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use common::{AccountName, DateTime};

use common::ServiceKind;

const QUEUE_LINES_MAX: usize = 16 * 1024;
/// A line has addresses and headers, so it can be as long as a request's head.
const QUEUE_BYTES_MAX: usize = 16 * 1024 * 1024;
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
const FILES_PER_HOUR_MAX: u32 = 1_000_000;

/// Whose log it is.
type Owner = (AccountName, ServiceKind);

struct QueuedLine {
    of: Owner,
    at: DateTime,
    line: String,
}

#[derive(Debug)]
pub struct LogFiles {
    directory: PathBuf,
    queue: Mutex<Option<SyncSender<QueuedLine>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    left_out: Arc<AtomicU64>,
    /// Bytes of the lines in the queue.
    waiting: Arc<AtomicUsize>,
}

impl std::fmt::Debug for QueuedLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("QueuedLine")
    }
}

impl LogFiles {
    /// Creates no file before the first line.
    pub fn new(directory: PathBuf) -> io::Result<Self> {
        let (queue, lines) = sync_channel(QUEUE_LINES_MAX);
        let left_out = Arc::new(AtomicU64::new(0));
        let waiting = Arc::new(AtomicUsize::new(0));
        let (place, missed, written) = (directory.clone(), left_out.clone(), waiting.clone());
        let writer = std::thread::Builder::new()
            .name("request-log".into())
            .spawn(move || write(&place, &lines, &missed, &written))?;
        Ok(Self {
            directory,
            queue: Mutex::new(Some(queue)),
            writer: Mutex::new(Some(writer)),
            left_out,
            waiting,
        })
    }

    pub fn log(&self, of: Owner, at: DateTime, line: String) {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(queue) = queue.as_ref() else { return };
        let bytes = line.len();
        let fits = self.waiting.fetch_add(bytes, Ordering::Relaxed) + bytes <= QUEUE_BYTES_MAX;
        let sent = fits && !matches!(queue.try_send(QueuedLine { of, at, line }), Err(TrySendError::Full(_)));
        if !sent {
            self.waiting.fetch_sub(bytes, Ordering::Relaxed);
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes the lines in the queue and ends the thread.
    pub fn close(&self) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // The thread ends with its queue. A panic of it is already on standard error.
            let _ = writer.join();
        }
    }

    /// Deletes the hours of an account's service that ended before this time; returns how many.
    pub fn expire(&self, of: &Owner, before: DateTime) -> io::Result<usize> {
        let root = directory_of(&self.directory, of);
        // Names have fixed widths, so their order is that of time. The hour of `before` has not ended.
        let last_kept = hour(before);
        let mut deleted = 0;
        for year in children(&root)? {
            for month in children(&year)? {
                for day in children(&month)? {
                    for directory in children(&day)? {
                        let relative = directory.strip_prefix(&root).unwrap_or(&directory);
                        if relative < last_kept.as_path() {
                            fs::remove_dir_all(&directory)?;
                            deleted += 1;
                        }
                    }
                    remove_if_empty(&day);
                }
                remove_if_empty(&month);
            }
            remove_if_empty(&year);
        }
        Ok(deleted)
    }
}

impl Drop for LogFiles {
    fn drop(&mut self) {
        self.close();
    }
}

/// The directory of the log of an account's service.
fn directory_of(directory: &Path, (account, service): &Owner) -> PathBuf {
    directory.join(account.as_str()).join(service.name())
}

fn children(directory: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(directory) {
        Ok(entries) => entries.map(|entry| entry.map(|entry| entry.path())).collect(),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}

fn remove_if_empty(directory: &Path) {
    // Fails if it is not empty, as intended.
    let _ = fs::remove_dir(directory);
}

/// `YYYY/MM/DD/hh00` of this time.
fn hour(at: DateTime) -> PathBuf {
    let text = at.to_fixed_string();
    // `YYYY-MM-DDThh:…`: ASCII of fixed width.
    let (year, month, day, hour) = (&text[0..4], &text[5..7], &text[8..10], &text[11..13]);
    PathBuf::from(year).join(month).join(day).join(format!("{hour}00"))
}

fn write(directory: &Path, lines: &Receiver<QueuedLine>, left_out: &AtomicU64, waiting: &AtomicUsize) {
    let mut open: HashMap<Owner, OpenFile> = HashMap::new();
    let mut flushed = Instant::now();
    loop {
        let entry = lines.recv_timeout(FLUSH_INTERVAL);
        if let Ok(entry) = &entry {
            waiting.fetch_sub(entry.line.len(), Ordering::Relaxed);
        }
        if let Ok(entry) = &entry
            && let Err(error) = append(directory, &mut open, entry)
        {
            tracing::warn!(%error, directory = %directory.display(), "can't write the request log");
            open.remove(&entry.of);
        }
        let ends = matches!(entry, Err(RecvTimeoutError::Disconnected));
        if ends || flushed.elapsed() >= FLUSH_INTERVAL {
            flushed = Instant::now();
            for file in open.values_mut() {
                if let Err(error) = file.writer.flush() {
                    tracing::warn!(%error, directory = %directory.display(), "can't write the request log");
                }
            }
            let missed = left_out.swap(0, Ordering::Relaxed);
            if missed > 0 {
                tracing::warn!(
                    missed,
                    "requests came faster than the request log can be written; lines are missing"
                );
            }
        }
        if ends {
            return;
        }
    }
}

struct OpenFile {
    hour: PathBuf,
    writer: BufWriter<File>,
    bytes: u64,
}

fn append(directory: &Path, open: &mut HashMap<Owner, OpenFile>, entry: &QueuedLine) -> io::Result<()> {
    let hour = hour(entry.at);
    let fits = open.get(&entry.of).is_some_and(|file| file.hour == hour && file.bytes < FILE_BYTES_MAX);
    if !fits {
        if let Some(mut full) = open.remove(&entry.of) {
            full.writer.flush()?;
        }
        let file = create(&directory_of(directory, &entry.of).join(&hour))?;
        open.insert(entry.of.clone(), OpenFile { hour, writer: BufWriter::new(file), bytes: 0 });
    }
    let Some(file) = open.get_mut(&entry.of) else { return Ok(()) };
    file.bytes += entry.line.len() as u64 + 1;
    file.writer.write_all(entry.line.as_bytes())?;
    file.writer.write_all(b"\n")
}

/// The next file of the hour.
fn create(directory: &Path) -> io::Result<File> {
    store::private_directory::create(directory)?;
    let numbers = children(directory)?;
    let number = |path: &PathBuf| path.file_stem()?.to_str()?.parse::<u32>().ok();
    let mut next = numbers.iter().filter_map(number).max().map_or(0, |last| last.saturating_add(1));
    while next < FILES_PER_HOUR_MAX {
        match OpenOptions::new().write(true).create_new(true).open(directory.join(format!("{next:06}.log"))) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => next += 1,
            opened => return opened,
        }
    }
    Err(io::Error::other("the hour already has a million log files"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str) -> Owner {
        (AccountName::parse(name).unwrap(), ServiceKind::Table)
    }

    fn at(text: &str) -> DateTime {
        DateTime::parse(text).unwrap()
    }

    #[test]
    fn lines_go_to_the_file_of_their_hour_account_and_service() {
        let directory = tempfile::tempdir().unwrap();
        for round in ["first", "second"] {
            let log = LogFiles::new(directory.path().to_owned()).unwrap();
            log.log(owner("one"), at("2026-01-02T03:59:59Z"), format!("{round} a"));
            log.log(owner("one"), at("2026-01-02T03:10:00Z"), format!("{round} b"));
            log.log(owner("one"), at("2026-01-02T04:00:00Z"), format!("{round} c"));
            log.log(owner("two"), at("2026-01-02T04:00:00Z"), format!("{round} d"));
            log.log((owner("two").0, ServiceKind::Queue), at("2026-01-02T04:00:00Z"), format!("{round} e"));
            log.close();
        }
        let check = |path: &str, expected: &str| {
            assert_eq!(fs::read_to_string(directory.path().join(path)).unwrap(), expected, "{path}");
        };
        check("one/table/2026/01/02/0300/000000.log", "first a\nfirst b\n");
        check("one/table/2026/01/02/0300/000001.log", "second a\nsecond b\n");
        check("one/table/2026/01/02/0400/000000.log", "first c\n");
        check("two/table/2026/01/02/0400/000001.log", "second d\n");
        check("two/queue/2026/01/02/0400/000001.log", "second e\n");
    }

    #[test]
    fn hours_past_their_time_are_deleted_and_no_others() {
        let directory = tempfile::tempdir().unwrap();
        let log = LogFiles::new(directory.path().to_owned()).unwrap();
        for time in
            ["2025-12-31T23:00:00Z", "2026-01-01T00:00:00Z", "2026-01-01T05:59:00Z", "2026-02-01T00:00:00Z"]
        {
            log.log(owner("one"), at(time), time.to_owned());
            log.log(owner("two"), at(time), time.to_owned());
        }
        log.close();
        assert_eq!(log.expire(&owner("one"), at("2026-01-01T05:30:00Z")).unwrap(), 2);
        let exists = |path: &str| directory.path().join(path).exists();
        assert!(!exists("one/table/2025") && !exists("one/table/2026/01/01/0000"));
        assert!(exists("one/table/2026/01/01/0500/000000.log") && exists("one/table/2026/02"));
        assert!(exists("two/table/2025/12/31/2300/000000.log"));
        assert_eq!(log.expire(&owner("unknown"), at("2026-01-01T05:30:00Z")).unwrap(), 0);
    }
}
