//! The file of rejected lines. It has the form of the input, so it can be imported once the lines are corrected.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use thiserror::Error;

#[derive(Debug, Error)]
pub enum RejectsError {
    #[error("--rejects {} already exists; name another file, or delete it", .path.display())]
    Exists { path: PathBuf },
    #[error("can't write {}: {source}", .path.display())]
    Unwritable { path: PathBuf, source: io::Error },
}

#[derive(Debug)]
pub struct Rejects {
    path: PathBuf,
    /// In CSV: the names of the columns.
    first_line: Vec<u8>,
    /// Opened by the first rejection.
    file: Option<File>,
    bytes: u64,
}

impl Rejects {
    /// `resumed` is the length that an earlier run has recorded. The rest is cut off: those lines are rejected again.
    pub fn open(path: &Path, first_line: &[u8], resumed: Option<u64>) -> Result<Self, RejectsError> {
        if resumed.is_none() && path.exists() {
            return Err(RejectsError::Exists { path: path.to_owned() });
        }
        let mut rejects = Self {
            path: path.to_owned(),
            first_line: first_line.to_vec(),
            file: None,
            bytes: resumed.unwrap_or(0),
        };
        if path.exists() {
            rejects.write(&[])?;
        }
        Ok(rejects)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds lines, each as it is in the input.
    pub fn add<'a>(&mut self, lines: impl IntoIterator<Item = &'a [u8]>) -> Result<(), RejectsError> {
        let mut text = Vec::new();
        for line in lines {
            text.extend_from_slice(line);
            if !line.ends_with(b"\n") {
                text.push(b'\n');
            }
        }
        if text.is_empty() { Ok(()) } else { self.write(&text) }
    }

    fn write(&mut self, text: &[u8]) -> Result<(), RejectsError> {
        let bytes = self
            .try_write(text)
            .map_err(|source| RejectsError::Unwritable { path: self.path.clone(), source })?;
        self.bytes += bytes;
        Ok(())
    }

    fn try_write(&mut self, text: &[u8]) -> io::Result<u64> {
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let mut file =
                    OpenOptions::new().write(true).create(true).truncate(false).open(&self.path)?;
                file.set_len(self.bytes)?;
                file.seek(SeekFrom::End(0))?;
                none.insert(file)
            }
        };
        let mut written = 0;
        if self.bytes == 0 && !text.is_empty() {
            file.write_all(&self.first_line)?;
            written += self.first_line.len();
        }
        file.write_all(text)?;
        Ok((written + text.len()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resumed_run_rejects_nothing_twice() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rejected.csv");
        let text = || std::fs::read_to_string(&path).unwrap();
        let mut rejects = Rejects::open(&path, b"names\r\n", None).unwrap();
        assert!(!path.exists(), "nothing is rejected yet");
        rejects.add([&b"a\r\n"[..]]).unwrap();
        let kept = rejects.bytes();
        rejects.add([&b"b"[..]]).unwrap();
        assert_eq!(text(), "names\r\na\r\nb\n");
        let again = Rejects::open(&path, b"names\r\n", None);
        assert!(matches!(again, Err(RejectsError::Exists { .. })), "{again:?}");
        let mut rejects = Rejects::open(&path, b"names\r\n", Some(kept)).unwrap();
        rejects.add([&b"b"[..]]).unwrap();
        assert_eq!(text(), "names\r\na\r\nb\n");
        Rejects::open(&path, b"names\r\n", Some(0)).unwrap();
        assert_eq!(text(), "");
    }
}
