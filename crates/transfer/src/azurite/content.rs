//! Content of Azurite: parts of files, which its databases name by extents.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use futures_util::stream::{self, Stream};

use super::AzuriteError;
use super::database::Database;
use super::records::{self, ExtentRecord, Place};

/// Stands for zeros that are in no file.
const ZEROS: &str = "*ZERO*";
const PIECE_BYTES: u64 = 256 * 1024;

/// Where extents are.
#[derive(Clone, Debug)]
pub struct Contents {
    folder: PathBuf,
    paths: HashMap<String, String>,
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
                    && !extent.path.contains(['/', '\\', '\0']);
                if !is_name {
                    return Err(AzuriteError::Record {
                        path: database.path().to_owned(),
                        what: format!("the extent {:?}", extent.id),
                        why: format!("{:?} is not the name of a file", extent.path),
                    });
                }
                paths.insert(extent.id, extent.path);
            }
        }
        Ok(Self { folder: folder.join(format!("__{service}storage__")), paths })
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
            what: format!("the extent {:?}", place.id),
            why: "the database of extents does not have it".to_owned(),
        })?;
        let path = self.folder.join(name);
        let open = || {
            let mut file = File::open(&path)?;
            file.seek(SeekFrom::Start(place.offset))?;
            Ok(file)
        };
        match open() {
            Ok(file) => Ok(Reading { path, file: Some(file), rest: place.count }),
            Err(source) => Err(AzuriteError::Unreadable { path, source }),
        }
    }
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
            file.read_exact(&mut piece)
                .map_err(|source| AzuriteError::Unreadable { path: self.path.clone(), source })?;
        }
        self.rest -= piece.len() as u64;
        Ok(Some(piece))
    }
}
