//! A file that writes go to, synced in groups by one thread: the least a durable write can cost.
//!
//! Its blocks are there from the start and are written over and over: a file that grows costs a file system's
//! journal too at each sync, and the least is what is wanted.

use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::mpsc;

use bytes::Bytes;
use tokio::sync::oneshot;

/// Writes that may wait for one sync.
const GROUP_MAX: usize = 1024;
/// After so many the file begins anew.
const FILE_BYTES: usize = 64 * 1024 * 1024;

#[derive(Debug)]
pub struct Log(mpsc::Sender<Entry>);

type Entry = (Bytes, oneshot::Sender<()>);

/// The disk did not take it.
#[derive(Debug)]
pub struct NotKept;

impl Log {
    pub fn open(path: &Path) -> Result<Self, String> {
        let bad = |error| format!("can't write to --log {}: {error}", path.display());
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path).map_err(bad)?;
        file.write_all(&vec![0; FILE_BYTES]).and_then(|()| file.sync_all()).map_err(bad)?;
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::Builder::new().name("log".to_owned());
        thread.spawn(move || keep(file, &receiver)).map_err(bad)?;
        Ok(Self(sender))
    }

    /// Returns once the bytes are on disk.
    pub async fn append(&self, bytes: Bytes) -> Result<(), NotKept> {
        let (done, kept) = oneshot::channel();
        self.0.send((bytes, done)).map_err(|_| NotKept)?;
        kept.await.map_err(|_| NotKept)
    }
}

/// Takes what is waiting, writes it at once, syncs, and lets everyone know. Ends at the first error: from then
/// on every append fails.
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
            // Nobody waits any more if the client has gone.
            let _ = done.send(());
        }
    }
}
