//! The index of a folder of blobs: JSON lines, first the container, then a line for each blob that is complete, and at the end
//! how many there are.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use partita_client::{BlobEntry, BlobType, ContentHeaders, PublicAccess};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::place;
use crate::plain_file;

/// Longer than any line: names and metadata are short.
const LINE_BYTES_MAX: u64 = 1024 * 1024;

#[derive(Debug, Error)]
pub enum IndexError {
    #[error("can't read {}: {source}", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("can't write {}: {source}; free some space if the disk is full, then continue with --resume", .path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    #[error("{}, line {line}: {why}", .path.display())]
    Line { path: PathBuf, line: u64, why: String },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerLine {
    pub container: String,
    pub endpoint: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_access: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BlobLine {
    pub name: String,
    pub file: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub length: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_encoding: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_language: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_disposition: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<String>,
    #[serde(default, rename = "contentMD5", skip_serializing_if = "Option::is_none")]
    pub content_md5: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence_number: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_sealed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct EndLine {
    end: u64,
}

/// A line of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    Container(ContainerLine),
    Blob(Box<BlobLine>),
    /// The export is complete.
    End,
}

impl ContainerLine {
    pub fn public_access(&self) -> PublicAccess {
        match self.public_access.as_deref() {
            Some("blob") => PublicAccess::Blobs,
            Some("container") => PublicAccess::Container,
            _ => PublicAccess::Private,
        }
    }
}

impl BlobLine {
    pub fn of(entry: &BlobEntry, length: u64, file: String) -> Self {
        let properties = &entry.properties;
        let headers = properties.headers.clone();
        let kind = match properties.blob_type {
            BlobType::Block => "block",
            BlobType::Append => "append",
            BlobType::Page => "page",
        };
        Self {
            name: entry.name.clone(),
            file,
            kind: kind.to_owned(),
            length,
            content_type: headers.content_type,
            content_encoding: headers.encoding,
            content_language: headers.language,
            content_disposition: headers.disposition,
            cache_control: headers.cache_control,
            content_md5: headers.md5,
            metadata: properties.metadata.clone(),
            tags: entry.tags.clone(),
            tier: properties.tier.clone().filter(|_| properties.is_tier_set),
            sequence_number: properties.sequence_number,
            is_sealed: properties.is_sealed,
        }
    }

    pub fn headers(&self) -> ContentHeaders {
        ContentHeaders {
            content_type: self.content_type.clone(),
            encoding: self.content_encoding.clone(),
            language: self.content_language.clone(),
            disposition: self.content_disposition.clone(),
            cache_control: self.cache_control.clone(),
            md5: self.content_md5.clone(),
        }
    }
}

/// Writes an index, a line at a time.
#[derive(Debug)]
pub struct IndexWriter {
    path: PathBuf,
    file: File,
}

impl IndexWriter {
    pub fn create(folder: &Path, first: &ContainerLine) -> Result<Self, IndexError> {
        let path = folder.join(place::INDEX);
        let file =
            File::create(&path).map_err(|source| IndexError::Unwritable { path: path.clone(), source })?;
        let mut index = Self { path, file };
        index.add(first)?;
        Ok(index)
    }

    /// Behind this byte, which follows the last whole line.
    pub fn open(folder: &Path, at: u64) -> Result<Self, IndexError> {
        let path = folder.join(place::INDEX);
        let open = || {
            let mut file = OpenOptions::new().write(true).open(&path)?;
            file.set_len(at)?;
            file.seek(SeekFrom::End(0))?;
            Ok(file)
        };
        match open() {
            Ok(file) => Ok(Self { path, file }),
            Err(source) => Err(IndexError::Unwritable { path, source }),
        }
    }

    pub fn add(&mut self, line: &impl Serialize) -> Result<(), IndexError> {
        let mut write = || {
            let mut text = serde_json::to_vec(line)?;
            text.push(b'\n');
            self.file.write_all(&text)
        };
        write().map_err(|source| IndexError::Unwritable { path: self.path.clone(), source })
    }

    pub fn finish(mut self, blobs: u64) -> Result<(), IndexError> {
        self.add(&EndLine { end: blobs })?;
        self.file.sync_all().map_err(|source| IndexError::Unwritable { path: self.path, source })
    }
}

/// Reads an index, a line at a time.
#[derive(Debug)]
pub struct IndexReader {
    path: PathBuf,
    file: BufReader<File>,
    line: u64,
    /// Behind the last whole line.
    at: u64,
}

impl IndexReader {
    /// `None` if the folder has none.
    pub fn open(folder: &Path) -> Result<Option<Self>, IndexError> {
        let path = folder.join(place::INDEX);
        match plain_file::open(folder, &path) {
            Ok(file) => Ok(Some(Self { path, file: BufReader::new(file), line: 0, at: 0 })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(IndexError::Unreadable { path, source }),
        }
    }

    pub fn at(&self) -> u64 {
        self.at
    }

    /// The next line; `None` at the end, or if the last line is not whole: a kill may have cut it.
    pub fn next(&mut self) -> Result<Option<Line>, IndexError> {
        let mut text = Vec::new();
        let read = io::Read::take(&mut self.file, LINE_BYTES_MAX).read_until(b'\n', &mut text);
        read.map_err(|source| IndexError::Unreadable { path: self.path.clone(), source })?;
        if !text.ends_with(b"\n") {
            return match text.len() as u64 {
                LINE_BYTES_MAX => Err(self.fault("it is too long")),
                _ => Ok(None),
            };
        }
        self.line += 1;
        let line = self.parse(&text)?;
        self.at += text.len() as u64;
        Ok(Some(line))
    }

    fn parse(&self, text: &[u8]) -> Result<Line, IndexError> {
        let fault = |error: serde_json::Error| self.fault(&error.to_string());
        if self.line == 1 {
            return serde_json::from_slice(text).map(Line::Container).map_err(fault);
        }
        if serde_json::from_slice::<EndLine>(text).is_ok() {
            return Ok(Line::End);
        }
        let blob: BlobLine = serde_json::from_slice(text).map_err(fault)?;
        match place::is_safe(&blob.file) {
            true => Ok(Line::Blob(Box::new(blob))),
            false => Err(self.fault(&format!("the file {:?} is not inside the folder", blob.file))),
        }
    }

    fn fault(&self, why: &str) -> IndexError {
        IndexError::Line { path: self.path.clone(), line: self.line, why: why.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container() -> ContainerLine {
        ContainerLine {
            container: "box".to_owned(),
            endpoint: "http://h/a".to_owned(),
            prefix: String::new(),
            metadata: BTreeMap::new(),
            public_access: None,
        }
    }

    fn blob(name: &str, file: &str) -> BlobLine {
        let (name, file) = (name.to_owned(), file.to_owned());
        BlobLine { name, file, kind: "block".to_owned(), length: 3, ..BlobLine::default() }
    }

    #[test]
    fn lines_come_back_and_a_line_that_was_cut_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let mut index = IndexWriter::create(folder.path(), &container()).unwrap();
        index.add(&blob("a", "a")).unwrap();
        let whole = std::fs::metadata(folder.path().join(place::INDEX)).unwrap().len();
        index.file.write_all(br#"{"name":"b","fi"#).unwrap();
        let mut reader = IndexReader::open(folder.path()).unwrap().unwrap();
        assert_eq!(reader.next().unwrap(), Some(Line::Container(container())));
        assert_eq!(reader.next().unwrap(), Some(Line::Blob(Box::new(blob("a", "a")))));
        assert_eq!(reader.next().unwrap(), None);
        assert_eq!(reader.at(), whole);
        let mut index = IndexWriter::open(folder.path(), whole).unwrap();
        index.add(&blob("c", "c")).unwrap();
        index.finish(2).unwrap();
        let mut reader = IndexReader::open(folder.path()).unwrap().unwrap();
        let lines: Vec<_> = std::iter::from_fn(|| reader.next().unwrap()).collect();
        assert_eq!((lines.len(), lines.last()), (4, Some(&Line::End)));
    }

    #[test]
    fn an_index_names_no_file_outside_its_folder() {
        for file in ["../x", "/etc/passwd", "a/../../b", "%index.jsonl", ""] {
            let folder = tempfile::tempdir().unwrap();
            let mut index = IndexWriter::create(folder.path(), &container()).unwrap();
            index.add(&blob("a", file)).unwrap();
            let mut reader = IndexReader::open(folder.path()).unwrap().unwrap();
            reader.next().unwrap();
            let error = reader.next().unwrap_err().to_string();
            assert!(error.contains("line 2") && error.contains("not inside"), "{file}: {error}");
        }
    }
}
