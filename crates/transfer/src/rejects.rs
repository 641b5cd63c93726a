//! The file of lines that were rejected: in the input's own form, so that it can be imported once it is right.

use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::group::Rejected;

#[derive(Debug)]
pub struct Rejects {
    path: PathBuf,
    /// The names of columns, in CSV.
    first_line: Vec<u8>,
    /// Not there before there is something to write.
    file: Option<File>,
    bytes: u64,
}

impl Rejects {
    /// `resumed` is how long an earlier run has left it; what is beyond that will be rejected again.
    pub fn open(path: &Path, first_line: &[u8], resumed: Option<u64>) -> Result<Self, String> {
        if resumed.is_none() && path.exists() {
            return Err(format!(
                "--rejects {} is there already; name another file, or delete it",
                path.display()
            ));
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

    pub fn add(&mut self, rejected: &[Rejected]) -> Result<(), String> {
        let mut text = Vec::new();
        for line in rejected {
            text.extend_from_slice(&line.raw);
            if !line.raw.ends_with(b"\n") {
                text.push(b'\n');
            }
        }
        if text.is_empty() { Ok(()) } else { self.write(&text) }
    }

    fn write(&mut self, text: &[u8]) -> Result<(), String> {
        let bytes =
            self.try_write(text).map_err(|error| format!("can't write {}: {error}", self.path.display()))?;
        self.bytes += bytes;
        Ok(())
    }

    fn try_write(&mut self, text: &[u8]) -> std::io::Result<u64> {
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
        let reject = |raw: &str| [Rejected { line: 1, why: String::new(), raw: raw.as_bytes().to_vec() }];
        let text = || std::fs::read_to_string(&path).unwrap();
        let mut rejects = Rejects::open(&path, b"names\r\n", None).unwrap();
        assert!(!path.exists(), "nothing is rejected yet");
        rejects.add(&reject("a\r\n")).unwrap();
        let kept = rejects.bytes();
        rejects.add(&reject("b")).unwrap();
        assert_eq!(text(), "names\r\na\r\nb\n");
        assert!(Rejects::open(&path, b"names\r\n", None).unwrap_err().contains("is there already"));
        let mut rejects = Rejects::open(&path, b"names\r\n", Some(kept)).unwrap();
        rejects.add(&reject("b")).unwrap();
        assert_eq!(text(), "names\r\na\r\nb\n");
        Rejects::open(&path, b"names\r\n", Some(0)).unwrap();
        assert_eq!(text(), "");
    }
}
