//! `partita blob import`: a folder of files into a container.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt as _, TryStreamExt as _};
use partita_client::{Blob, Container, Error, PublicAccess, UploadOptions};
use serde::{Deserialize, Serialize};
use thiserror::Error as ThisError;

use super::command::BlobImportCommand;
use super::endpoint::{BlobRequestError, Containers};
use super::index::{BlobLine, ContainerLine, IndexError, IndexReader, Line};
use super::place;
use crate::plain_file;
use crate::progress::{ProgressPrinter, grouped, size};
use crate::side_file::{SideFile, SideFileError};

const PIECE_BYTES: usize = 256 * 1024;
/// The most that an append or a write of pages takes.
const WRITE_BYTES_MAX: usize = 4 * 1024 * 1024;
const PROGRESS: &str = "%import-progress";
/// Blobs between two records of how far the import is.
const RECORDED_EVERY: u64 = 100;

/// Why not every blob is written.
#[derive(Debug, ThisError)]
pub enum BlobImportError {
    #[error(transparent)]
    Request(#[from] BlobRequestError),
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error(transparent)]
    SideFile(#[from] SideFileError),
    #[error("can't read {}: {source}", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error(
        "{} is an interrupted export; finish it with `partita blob export --resume`, or delete its {} to import the files \
         that exist",
        .folder.display(), place::INDEX
    )]
    UnfinishedExport { folder: PathBuf },
    #[error("{} should have {said} bytes, and has {found}; it was changed after the export", .path.display())]
    Length { path: PathBuf, said: u64, found: u64 },
    #[error("{}: {kind:?} is not a type of blobs", .path.display())]
    Kind { path: PathBuf, kind: String },
    #[error("{} is not the name of a blob: it is not UTF-8", .path.display())]
    NotText { path: PathBuf },
    #[error("{} can't be a blob: services read \\ in a name as /, so it could replace another one; rename it", .path.display())]
    Backslash { path: PathBuf },
    #[error("{} belongs to an import into {was}, not into {is}; --resume needs the same", .side.display())]
    OtherImport { side: PathBuf, was: String, is: String },
    #[error("{} has no folder", .folder.display())]
    NoFolders { folder: PathBuf },
    #[error("{signal}; run the same command with --resume to continue")]
    Interrupted { signal: &'static str },
}

/// How far an import is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ImportState {
    target: String,
    /// The first of these, in the order of the folder, are done.
    blobs: u64,
}

pub async fn run(command: &BlobImportCommand) -> Result<(), BlobImportError> {
    let progress = Arc::new(ProgressPrinter::of_blobs(command.quiet));
    let work = async {
        let containers = Containers::connect_patiently(&command.connection, &progress)?;
        let import = Import { command, containers, progress: progress.clone() };
        tokio::select! {
            outcome = import.run() => outcome,
            signal = crate::stop_signal() => Err(BlobImportError::Interrupted { signal }),
        }
    };
    let outcome = work.await;
    progress.clear();
    outcome
}

struct Import<'a> {
    command: &'a BlobImportCommand,
    containers: Containers,
    progress: Arc<ProgressPrinter>,
}

type Sources = Box<dyn Iterator<Item = Result<Source, BlobImportError>> + Send>;

/// A file and the blob that it becomes.
struct Source {
    path: PathBuf,
    line: BlobLine,
}

impl Import<'_> {
    async fn run(&self) -> Result<(), BlobImportError> {
        let from = &self.command.from;
        if let Some(name) = &self.command.container {
            return self.folder(name, from).await;
        }
        let folders: Vec<PathBuf> =
            sorted(from)?.into_iter().filter(|path| plain_file::is_folder(path)).collect();
        if folders.is_empty() {
            return Err(BlobImportError::NoFolders { folder: from.clone() });
        }
        for folder in folders {
            let name = folder.file_name().and_then(|name| name.to_str());
            let name = name.ok_or_else(|| BlobImportError::NotText { path: folder.clone() })?.to_owned();
            self.folder(&name, &folder).await?;
        }
        Ok(())
    }

    async fn folder(&self, name: &str, folder: &Path) -> Result<(), BlobImportError> {
        let container = self.containers.container(name)?;
        let left_out = Arc::new(AtomicU64::new(0));
        let (first, sources) = sources(folder, &left_out)?;
        let side = SideFile::beside(&folder.join(PROGRESS), "");
        let mut state = self.state(&container, &side)?;
        self.create(&container, first).await?;
        self.progress.start(format!("importing {name}"), state.blobs, None);
        let skipped = usize::try_from(state.blobs).unwrap_or(usize::MAX);
        let writes = stream::iter(sources.skip(skipped))
            .map(|source| self.write(&container, folder, source))
            // In order, so that a number says what is done.
            .buffered(usize::from(self.command.parallel));
        let mut writes = std::pin::pin!(writes);
        let (mut bytes, mut recorded) = (0, state.blobs);
        loop {
            match writes.try_next().await {
                Ok(Some(length)) => {
                    state.blobs += 1;
                    bytes += length;
                    self.progress.update(state.blobs, bytes);
                    if state.blobs >= recorded + RECORDED_EVERY {
                        side.save(&state)?;
                        recorded = state.blobs;
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    side.save(&state)?;
                    return Err(error);
                }
            }
        }
        side.remove()?;
        self.progress.notice(&format!(
            "{name}: {} blobs, {}, from {}",
            grouped(state.blobs),
            size(bytes),
            folder.display()
        ));
        let left_out = left_out.load(Ordering::Relaxed);
        if left_out > 0 {
            self.progress.notice(&format!("  left out: {} links and special files", grouped(left_out)));
        }
        Ok(())
    }

    fn state(&self, container: &Container, side: &SideFile) -> Result<ImportState, BlobImportError> {
        let fresh = ImportState { target: container.url(), blobs: 0 };
        if !self.command.resume {
            return Ok(fresh);
        }
        match side.load::<ImportState>()? {
            None => Ok(fresh),
            Some(state) if state.target == fresh.target => Ok(state),
            Some(state) => Err(BlobImportError::OtherImport {
                side: side.path().to_owned(),
                was: state.target,
                is: fresh.target,
            }),
        }
    }

    /// One that exists stays as it is.
    async fn create(
        &self,
        container: &Container,
        first: Option<ContainerLine>,
    ) -> Result<(), BlobImportError> {
        let access = first.as_ref().map_or(PublicAccess::Private, ContainerLine::public_access);
        let metadata = first.map(|first| first.metadata).unwrap_or_default();
        match container.create(&metadata, access).await {
            Err(error) if error.code() == Some("ContainerAlreadyExists") => Ok(()),
            done => Ok(done.map_err(|error| self.containers.failed(container.name(), error))?),
        }
    }

    /// How long it is.
    async fn write(
        &self,
        container: &Container,
        folder: &Path,
        source: Result<Source, BlobImportError>,
    ) -> Result<u64, BlobImportError> {
        let Source { path, line } = source?;
        let what = format!("{}/{}", container.name(), line.name);
        let failed = |error: Error| match error {
            Error::Source(why) => {
                BlobImportError::Unreadable { path: path.clone(), source: io::Error::other(why) }
            }
            error => self.containers.failed(&what, error).into(),
        };
        let blob = container.blob(&line.name).map_err(failed)?;
        let unreadable = |source| BlobImportError::Unreadable { path: path.clone(), source };
        let file = plain_file::open(folder, &path).map_err(unreadable)?;
        let found = file.metadata().map_err(unreadable)?.len();
        if found != line.length {
            return Err(BlobImportError::Length { path: path.clone(), said: line.length, found });
        }
        let options = UploadOptions::new()
            .headers(line.headers())
            .metadata(line.metadata.clone())
            .tags(line.tags.clone());
        match line.kind.as_str() {
            "block" => {
                let options = match &line.tier {
                    Some(tier) => options.tier(tier),
                    None => options,
                };
                blob.upload_stream(pieces(file, PIECE_BYTES), &options).await.map_err(failed)?;
            }
            "append" => append(&blob, &line, file, &options).await.map_err(failed)?,
            "page" => write_pages(&blob, &line, file, &options).await.map_err(failed)?,
            kind => return Err(BlobImportError::Kind { path: path.clone(), kind: kind.to_owned() }),
        }
        Ok(found)
    }
}

async fn append(blob: &Blob, line: &BlobLine, file: File, options: &UploadOptions) -> Result<(), Error> {
    blob.create_append(options).await?;
    let (mut position, mut pieces) = (0, std::pin::pin!(pieces(file, WRITE_BYTES_MAX)));
    while let Some(piece) = pieces.try_next().await.map_err(|error| Error::Source(error.to_string()))? {
        let length = piece.len() as u64;
        blob.append_at(position, piece).await?;
        position += length;
    }
    if line.is_sealed { blob.seal().await } else { Ok(()) }
}

/// Zeros are left out: a page that was never written is zeros.
async fn write_pages(blob: &Blob, line: &BlobLine, file: File, options: &UploadOptions) -> Result<(), Error> {
    blob.create_pages(line.length, line.sequence_number.unwrap_or_default(), options).await?;
    let (mut offset, mut pieces) = (0, std::pin::pin!(pieces(file, PIECE_BYTES)));
    while let Some(piece) = pieces.try_next().await.map_err(|error| Error::Source(error.to_string()))? {
        let length = piece.len() as u64;
        if piece.iter().any(|byte| *byte != 0) {
            blob.write_pages(offset, piece).await?;
        }
        offset += length;
    }
    Ok(())
}

/// A file in pieces, all of this length but the last.
fn pieces(file: File, length: usize) -> impl Stream<Item = io::Result<Bytes>> {
    stream::try_unfold(file, move |mut file| async move {
        let mut piece = Vec::with_capacity(length);
        io::Read::by_ref(&mut file).take(length as u64).read_to_end(&mut piece)?;
        Ok((!piece.is_empty()).then_some((piece.into(), file)))
    })
}

/// The blobs of a folder: those of its index, or all of its files.
fn sources(
    folder: &Path,
    left_out: &Arc<AtomicU64>,
) -> Result<(Option<ContainerLine>, Sources), BlobImportError> {
    let Some(mut reader) = IndexReader::open(folder)? else {
        let (waiting, left_out) = (waiting(folder)?, left_out.clone());
        return Ok((None, Box::new(Walk { folder: folder.to_owned(), waiting, left_out })));
    };
    let first = match reader.next()? {
        Some(Line::Container(first)) => first,
        _ => return Err(BlobImportError::UnfinishedExport { folder: folder.to_owned() }),
    };
    check_complete(folder)?;
    let folder = folder.to_owned();
    let blobs = std::iter::from_fn(move || match reader.next() {
        Ok(Some(Line::Blob(line))) => {
            Some(Ok(Source { path: place::in_folder(&folder, &line.file), line: *line }))
        }
        Ok(_) => None,
        Err(error) => Some(Err(error.into())),
    });
    Ok((Some(first), Box::new(blobs)))
}

/// Before anything is written.
fn check_complete(folder: &Path) -> Result<(), BlobImportError> {
    let mut last = None;
    if let Some(mut reader) = IndexReader::open(folder)? {
        while let Some(line) = reader.next()? {
            last = Some(line);
        }
    }
    match last {
        Some(Line::End) => Ok(()),
        _ => Err(BlobImportError::UnfinishedExport { folder: folder.to_owned() }),
    }
}

/// The files of a folder and of the folders in it, in the order of their names.
struct Walk {
    folder: PathBuf,
    /// In reverse order.
    waiting: Vec<PathBuf>,
    /// What is neither a file nor a folder.
    left_out: Arc<AtomicU64>,
}

impl Iterator for Walk {
    type Item = Result<Source, BlobImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(path) = self.waiting.pop() {
            let kind = match fs::symlink_metadata(&path) {
                Ok(kind) => kind,
                Err(source) => return Some(Err(BlobImportError::Unreadable { path, source })),
            };
            if kind.is_dir() {
                match waiting(&path) {
                    Ok(inside) => self.waiting.extend(inside),
                    Err(error) => return Some(Err(error)),
                }
            } else if !kind.is_file() {
                self.left_out.fetch_add(1, Ordering::Relaxed);
            } else if path != self.folder.join(PROGRESS) {
                return Some(source(&self.folder, path, kind.len()));
            }
        }
        None
    }
}

fn source(folder: &Path, path: PathBuf, length: u64) -> Result<Source, BlobImportError> {
    let parts = path.strip_prefix(folder).unwrap_or(&path).components();
    let parts: Option<Vec<&str>> = parts.map(|part| part.as_os_str().to_str()).collect();
    let name = parts.ok_or_else(|| BlobImportError::NotText { path: path.clone() })?.join("/");
    if name.contains('\\') {
        return Err(BlobImportError::Backslash { path });
    }
    let line = BlobLine { file: name.clone(), name, kind: "block".to_owned(), length, ..BlobLine::default() };
    Ok(Source { path, line })
}

fn waiting(folder: &Path) -> Result<Vec<PathBuf>, BlobImportError> {
    let mut inside = sorted(folder)?;
    inside.reverse();
    Ok(inside)
}

fn sorted(folder: &Path) -> Result<Vec<PathBuf>, BlobImportError> {
    let read = || fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>();
    let mut inside =
        read().map_err(|source| BlobImportError::Unreadable { path: folder.to_owned(), source })?;
    inside.sort();
    Ok(inside)
}
