//! The receipts of the messages that an export has hidden, in a file beside the exported one, so that they can be made
//! visible again at the end, also by a run that continues.
//!
//! The file need not survive a crash of the machine: without it the messages become visible when their time is over.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use partita_client::MessageHandle;

const SUFFIX: &str = ".receipts";

#[derive(Debug)]
pub struct Receipts {
    path: PathBuf,
}

impl Receipts {
    pub fn beside(path: &Path) -> Self {
        let mut name = path.as_os_str().to_owned();
        name.push(SUFFIX);
        Self { path: name.into() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A receipt that was cut short by a kill ends at the next line.
    pub fn add<'a>(&self, handles: impl IntoIterator<Item = &'a MessageHandle>) -> io::Result<()> {
        let lines: Vec<String> =
            handles.into_iter().map(|handle| format!("\n{} {}", handle.id, handle.receipt)).collect();
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
        file.write_all(lines.concat().as_bytes())
    }

    /// All of them, in order.
    pub fn read(&self) -> io::Result<impl Iterator<Item = io::Result<MessageHandle>> + use<>> {
        let file = match File::open(&self.path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let lines = file.into_iter().flat_map(|file| BufReader::new(file).lines());
        Ok(lines.filter_map(|line| match line {
            Ok(line) => line.split_once(' ').map(|(id, receipt)| Ok(MessageHandle::new(id, receipt))),
            Err(error) => Some(Err(error)),
        }))
    }

    pub fn remove(&self) -> io::Result<()> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receipts_are_read_in_order_also_after_one_that_was_cut_short() {
        let directory = tempfile::tempdir().unwrap();
        let receipts = Receipts::beside(&directory.path().join("jobs.jsonl"));
        let read = || -> Vec<(String, String)> {
            let all = receipts.read().unwrap().map(|handle| handle.map(|handle| (handle.id, handle.receipt)));
            all.collect::<io::Result<_>>().unwrap()
        };
        let pair = |id: &str, receipt: &str| (id.to_owned(), receipt.to_owned());
        assert_eq!(read(), []);
        receipts.add(&[MessageHandle::new("1", "A=="), MessageHandle::new("2", "B")]).unwrap();
        OpenOptions::new().append(true).open(receipts.path()).unwrap().write_all(b"\n3").unwrap();
        receipts.add(&[MessageHandle::new("4", "D")]).unwrap();
        assert_eq!(read(), [pair("1", "A=="), pair("2", "B"), pair("4", "D")]);
        receipts.remove().unwrap();
        receipts.remove().unwrap();
        assert_eq!(read(), []);
    }
}
