//! Content of Azurite: parts of files, which its databases name by extents.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::stream::{self, Stream};

use super::AzuriteError;
use super::database::Database;
use super::records::{self, ExtentRecord, Place};
use crate::plain_file;

/// Stands for zeros that are in no file.
pub const ZEROS: &str = "*ZERO*";
const PIECE_BYTES: u64 = 256 * 1024;
/// No file system takes a longer name.
const NAME_BYTES_MAX: usize = 255;

/// Where extents are.
#[derive(Clone, Debug)]
pub struct Contents {
    /// That of Azurite's --location.
    location: PathBuf,
    /// Where the extents are in it.
    folder: PathBuf,
    paths: Arc<HashMap<String, String>>,
}

impl Contents {
    /// `blob` or `queue`.
    pub async fn of(folder: &Path, service: &str) -> Result<Self, AzuriteError> {
        let database = Database::of(folder, &format!("{service}_extent"));
        let (mut records, mut paths) = (database.records(), HashMap::new());
        while let Some(record) = records.next().await? {
            if record.collection == records::EXTENTS {
                let extent: ExtentRecord = database.parse(&record)?;
                // A file in the folder, and nothing else: the database may come from somebody else.
                let is_name = !matches!(extent.path.as_str(), "" | "." | "..")
                    && extent.path.len().max(extent.id.len()) <= NAME_BYTES_MAX
                    && !extent.path.contains(['/', '\\', '\0']);
                if !is_name {
                    return Err(AzuriteError::Record {
                        path: database.path().to_owned(),
                        what: format!("the extent {:?}", start(&extent.id)),
                        why: format!("{:?} is not the name of a file", start(&extent.path)),
                    });
                }
                paths.insert(extent.id, extent.path);
            }
        }
        let location = folder.to_owned();
        Ok(Self { folder: location.join(format!("__{service}storage__")), location, paths: Arc::new(paths) })
    }

    /// All of a part, which its caller knows to be small.
    pub fn read(&self, place: &Place) -> Result<Vec<u8>, AzuriteError> {
        let mut reading = self.open(place)?;
        let mut all = Vec::new();
        while let Some(piece) = reading.next()? {
            all.extend_from_slice(&piece);
        }
        Ok(all)
    }

    /// These parts, one after the other, piece by piece.
    pub fn stream(&self, places: Vec<Place>) -> impl Stream<Item = Result<bytes::Bytes, AzuriteError>> {
        let start = (self.clone(), places.into_iter(), None::<Reading>);
        stream::try_unfold(start, |(contents, mut places, mut reading)| async move {
            loop {
                if let Some(open) = &mut reading
                    && let Some(piece) = open.next()?
                {
                    return Ok(Some((piece.into(), (contents, places, reading))));
                }
                match places.next() {
                    Some(place) => reading = Some(contents.open(&place)?),
                    None => return Ok(None),
                }
            }
        })
    }

    fn open(&self, place: &Place) -> Result<Reading, AzuriteError> {
        if place.id == ZEROS {
            return Ok(Reading { path: PathBuf::new(), file: None, rest: place.count });
        }
        // Azurite names a file after its extent.
        let name = self.paths.get(&place.id).ok_or_else(|| AzuriteError::Record {
            path: self.folder.clone(),
            what: format!("the extent {:?}", start(&place.id)),
            why: "the database of extents does not have it".to_owned(),
        })?;
        let path = self.folder.join(name);
        let open = || {
            let mut file = plain_file::open(&self.location, &path)?;
            file.seek(SeekFrom::Start(place.offset))?;
            Ok(file)
        };
        match open() {
            Ok(file) => Ok(Reading { path, file: Some(file), rest: place.count }),
            Err(source) => Err(AzuriteError::Unreadable { path, source }),
        }
    }
}

/// As much of a text as an error shows.
fn start(text: &str) -> String {
    text.chars().take(100).collect()
}

/// A part of a file.
struct Reading {
    path: PathBuf,
    /// None for zeros.
    file: Option<File>,
    rest: u64,
}

impl Reading {
    fn next(&mut self) -> Result<Option<Vec<u8>>, AzuriteError> {
        if self.rest == 0 {
            return Ok(None);
        }
        let mut piece = vec![0; self.rest.min(PIECE_BYTES) as usize];
        if let Some(file) = &mut self.file {
            // A file that is too short is an error: its content would be cut.
            file.read_exact(&mut piece).map_err(|source| AzuriteError::Unreadable {
                path: self.path.clone(),
                source: match source.kind() {
                    ErrorKind::UnexpectedEof => {
                        io::Error::other("it ends before the content that should be in it")
                    }
                    _ => source,
                },
            })?;
        }
        self.rest -= piece.len() as u64;
        Ok(Some(piece))
    }
}
