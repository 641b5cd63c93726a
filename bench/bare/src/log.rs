//! A file for writes, which one thread syncs in groups: the least that a durable write can cost.
//!
//! Its blocks are allocated at the start and overwritten again and again. In a growing file, each sync would also cost
//! a write to the file system's journal, and this measures the minimum.

use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use bytes::Bytes;
use tokio::sync::oneshot;

/// Writes that may wait for one sync.
const GROUP_MAX: usize = 1024;
/// After this many bytes, writing starts again at the beginning of the file.
const FILE_BYTES: usize = 64 * 1024 * 1024;

#[derive(Debug)]
pub struct Log {
    pub path: PathBuf,
    /// Of each blob that is put, an MD5 is computed.
    pub hashes: bool,
    entries: mpsc::Sender<Entry>,
}

type Entry = (Bytes, oneshot::Sender<()>);

/// The write to the disk failed.
#[derive(Debug)]
pub struct NotKept;

impl Log {
    pub fn open(path: &Path, hashes: bool) -> Result<Self, String> {
        let bad = |error| format!("can't write to --log {}: {error}", path.display());
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path).map_err(bad)?;
        file.write_all(&vec![0; FILE_BYTES]).and_then(|()| file.sync_all()).map_err(bad)?;
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::Builder::new().name("log".to_owned());
        thread.spawn(move || keep(file, &receiver)).map_err(bad)?;
        Ok(Self { path: path.to_owned(), hashes, entries: sender })
    }

    /// Returns once the bytes are on disk.
    pub async fn append(&self, bytes: Bytes) -> Result<(), NotKept> {
        let (done, kept) = oneshot::channel();
        self.entries.send((bytes, done)).map_err(|_| NotKept)?;
        kept.await.map_err(|_| NotKept)
    }
}

/// Takes all waiting writes, writes them at once, syncs, and answers them. Ends at the first error; from then on every
/// append fails.
fn keep(mut file: File, entries: &mpsc::Receiver<Entry>) {
    let (mut bytes, mut waiting) = (Vec::new(), Vec::new());
    let mut left = 0;
    while let Ok(first) = entries.recv() {
        for (entry, done) in std::iter::once(first).chain(entries.try_iter()).take(GROUP_MAX) {
            bytes.extend_from_slice(&entry);
            waiting.push(done);
        }
        if left < bytes.len() {
            left = FILE_BYTES;
        }
        let place = SeekFrom::Start((FILE_BYTES - left) as u64);
        left = left.saturating_sub(bytes.len());
        let kept = file.seek(place).and_then(|_| file.write_all(&bytes)).and_then(|()| file.sync_data());
        if let Err(error) = kept {
            eprintln!("partita-bare: the log failed: {error}");
            return;
        }
        bytes.clear();
        for done in waiting.drain(..) {
            // Fails if the client no longer waits.
            let _ = done.send(());
        }
    }
}
