//! `partita blob export`: a container to a folder of files.
//!
//! A blob is written to a file of its own in `%parts`, made durable, and renamed to its path. Only then does the index get its
//! line. So a file that the index names is whole, and a run that continues begins with the first blob that has no line.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::TryStreamExt as _;
use partita_client::{Blob, BlobEntry, BlobType, Container, Error, PublicAccess};
use thiserror::Error as ThisError;

use super::command::BlobExportCommand;
use super::endpoint::{BlobRequestError, Containers};
use super::index::{BlobLine, ContainerLine, IndexError, IndexReader, IndexWriter, Line};
use super::place::{self, Taken};
use crate::plain_file;
use crate::progress::{ProgressPrinter, grouped, size};

/// Why an export is not complete.
#[derive(Debug, ThisError)]
pub enum BlobExportError {
    #[error(transparent)]
    Request(#[from] BlobRequestError),
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error("can't write {}: {source}; free some space if the disk is full, then continue with --resume", .path.display())]
    Unwritten { path: PathBuf, source: io::Error },
    #[error("{} has an export already; --resume continues one that was interrupted, --overwrite starts again", .folder.display())]
    Exists { folder: PathBuf },
    #[error("{} has files that no export has written; name an empty folder", .folder.display())]
    NotEmpty { folder: PathBuf },
    #[error("{} is an export of {was}, not of {is}; --resume needs the same", .folder.display())]
    OtherExport { folder: PathBuf, was: String, is: String },
    #[error("{signal}; run the same command with --resume to continue")]
    Interrupted { signal: &'static str },
}

pub async fn run(command: &BlobExportCommand) -> Result<(), BlobExportError> {
    let progress = Arc::new(ProgressPrinter::of_blobs(command.quiet));
    let work = async {
        let containers = Containers::connect_patiently(&command.connection, &progress)?;
        let export = Export { command, containers, progress: progress.clone() };
        tokio::select! {
            outcome = export.run() => outcome,
            signal = crate::stop_signal() => Err(BlobExportError::Interrupted { signal }),
        }
    };
    let outcome = work.await;
    progress.clear();
    outcome
}

struct Export<'a> {
    command: &'a BlobExportCommand,
    containers: Containers,
    progress: Arc<ProgressPrinter>,
}

impl Export<'_> {
    async fn run(&self) -> Result<(), BlobExportError> {
        let to = &self.command.to;
        if let Some(name) = &self.command.container {
            return self.folder(&self.containers.container(name)?, to).await;
        }
        let listed: Vec<_> = self.containers.service.containers("").try_collect().await.map_err(|error| {
            let url = || self.containers.service.url();
            BlobRequestError::List(crate::endpoint::RequestError::at(url, error))
        })?;
        // Names become folders here, so they are checked: a hostile endpoint must not choose others than those of containers.
        let containers: Vec<Container> =
            listed.iter().map(|entry| self.containers.container(&entry.name)).collect::<Result<_, _>>()?;
        for container in &containers {
            let folder = to.join(container.name());
            fs::create_dir_all(to)
                .and_then(|()| plain_file::make_folders(to, &folder.join(place::INDEX)))
                .map_err(|source| unwritten(&folder, source))?;
            self.folder(container, &folder).await?;
        }
        self.progress.notice(&format!("containers in {}: {}", to.display(), containers.len()));
        Ok(())
    }

    async fn folder(&self, container: &Container, folder: &Path) -> Result<(), BlobExportError> {
        let name = container.name();
        let of = container.properties().await.map_err(|error| self.containers.failed(name, error))?;
        let first = ContainerLine {
            container: name.to_owned(),
            endpoint: self.containers.service.url(),
            prefix: self.command.prefix.clone(),
            metadata: of.metadata,
            public_access: match of.public_access {
                PublicAccess::Blobs => Some("blob".to_owned()),
                PublicAccess::Container => Some("container".to_owned()),
                _ => None,
            },
        };
        let Some(begun) = self.begin(folder, &first)? else {
            self.progress.notice(&format!("{} is complete", folder.display()));
            return Ok(());
        };
        let Begun { mut index, mut taken, done, mut blobs, mut bytes } = begun;
        self.progress.start(format!("exporting {name}"), blobs, None);
        let parts = folder.join(place::PARTS);
        plain_file::make_empty(&parts).map_err(|source| unwritten(&parts, source))?;
        let list = container.blobs().prefix(&self.command.prefix).with_metadata().with_tags().stream();
        let mut number = 0_u64;
        let downloads = list
            .map_err(|error| BlobExportError::from(self.containers.failed(name, error)))
            .try_filter(|entry| std::future::ready(!done.contains(&place::key(&entry.name))))
            .map_ok(|entry| {
                number += 1;
                let part = parts.join(number.to_string());
                self.download(container, entry, part)
            })
            .try_buffered(usize::from(self.command.parallel));
        let mut downloads = std::pin::pin!(downloads);
        while let Some(downloaded) = downloads.try_next().await? {
            // It was deleted since it was listed.
            let Some(Downloaded { entry, part, length }) = downloaded else { continue };
            let file = taken.place(&entry.name);
            let path = place::in_folder(folder, &file);
            let rename = || {
                plain_file::make_folders(folder, &path)?;
                fs::rename(&part, &path)
            };
            rename().map_err(|source| unwritten(&path, source))?;
            index.add(&BlobLine::of(&entry, length, file))?;
            blobs += 1;
            bytes += length;
            self.progress.update(blobs, bytes);
        }
        index.finish(blobs)?;
        // Nothing is left in it.
        let _ = fs::remove_dir_all(&parts);
        self.progress.notice(&format!(
            "{name}: {} blobs, {}, in {}",
            grouped(blobs),
            size(bytes),
            folder.display()
        ));
        Ok(())
    }

    /// `None` if it is complete.
    fn begin(&self, folder: &Path, first: &ContainerLine) -> Result<Option<Begun>, BlobExportError> {
        fs::create_dir_all(folder).map_err(|source| unwritten(folder, source))?;
        let reader = IndexReader::open(folder)?;
        match (reader, self.command.resume, self.command.overwrite) {
            (Some(reader), true, _) => self.resume(folder, reader, first),
            (Some(_), false, false) => Err(BlobExportError::Exists { folder: folder.to_owned() }),
            (None, _, false) if !is_empty(folder)? => {
                Err(BlobExportError::NotEmpty { folder: folder.to_owned() })
            }
            _ => Ok(Some(Begun {
                index: IndexWriter::create(folder, first)?,
                taken: Taken::default(),
                done: HashSet::new(),
                blobs: 0,
                bytes: 0,
            })),
        }
    }

    fn resume(
        &self,
        folder: &Path,
        mut reader: IndexReader,
        first: &ContainerLine,
    ) -> Result<Option<Begun>, BlobExportError> {
        let subject = |of: &ContainerLine| format!("{}/{} {}", of.endpoint, of.container, of.prefix);
        let (mut taken, mut done, mut blobs, mut bytes) = (Taken::default(), HashSet::new(), 0, 0);
        while let Some(line) = reader.next()? {
            match line {
                Line::Container(was) if subject(&was) != subject(first) => {
                    return Err(BlobExportError::OtherExport {
                        folder: folder.to_owned(),
                        was: subject(&was),
                        is: subject(first),
                    });
                }
                Line::Container(_) => {}
                Line::Blob(blob) => {
                    taken.take(&blob.file);
                    done.insert(place::key(&blob.name));
                    blobs += 1;
                    bytes += blob.length;
                }
                Line::End => return Ok(None),
            }
        }
        let index = match reader.at() {
            // Not even its first line is whole.
            0 => IndexWriter::create(folder, first)?,
            at => IndexWriter::open(folder, at)?,
        };
        Ok(Some(Begun { index, taken, done, blobs, bytes }))
    }

    /// To a file of its own; `None` if it is gone.
    async fn download(
        &self,
        container: &Container,
        entry: BlobEntry,
        part: PathBuf,
    ) -> Result<Option<Downloaded>, BlobExportError> {
        let what = format!("{}/{}", container.name(), entry.name);
        let failed = |error: Error| BlobExportError::from(self.containers.failed(&what, error));
        let blob = container.blob(&entry.name).map_err(failed)?;
        let written = match entry.properties.blob_type {
            BlobType::Page => self.download_pages(&blob, &entry, &part, &what).await,
            BlobType::Block | BlobType::Append => self.download_all(&blob, &part, &what).await,
        };
        match written {
            Ok(length) => Ok(Some(Downloaded { entry, part, length })),
            Err(BlobExportError::Request(BlobRequestError::Failed { source, .. }))
                if source.code() == Some("BlobNotFound") =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    async fn download_all(&self, blob: &Blob, part: &Path, what: &str) -> Result<u64, BlobExportError> {
        let failed = |error: Error| BlobExportError::from(self.containers.failed(what, error));
        let mut download = blob.download().await.map_err(failed)?;
        let length = download.properties().length;
        let unwritten = |source| unwritten(part, source);
        let mut file = File::create_new(part).map_err(unwritten)?;
        while let Some(piece) = download.next().await.map_err(failed)? {
            file.write_all(&piece).map_err(unwritten)?;
        }
        file.sync_all().map_err(unwritten)?;
        Ok(length)
    }

    /// Only what was written; the rest are holes of the file.
    async fn download_pages(
        &self,
        blob: &Blob,
        entry: &BlobEntry,
        part: &Path,
        what: &str,
    ) -> Result<u64, BlobExportError> {
        let failed = |error: Error| BlobExportError::from(self.containers.failed(what, error));
        // The version that was listed: ranges and content must belong together.
        let blob = blob.if_match(&entry.properties.etag);
        let ranges = blob.page_ranges().await.map_err(failed)?;
        let unwritten = |source| unwritten(part, source);
        let mut file = File::create_new(part).map_err(unwritten)?;
        file.set_len(entry.properties.length).map_err(unwritten)?;
        for range in ranges {
            file.seek(SeekFrom::Start(range.start)).map_err(unwritten)?;
            let mut download = blob.download_range(range).await.map_err(failed)?;
            while let Some(piece) = download.next().await.map_err(failed)? {
                file.write_all(&piece).map_err(unwritten)?;
            }
        }
        file.sync_all().map_err(unwritten)?;
        Ok(entry.properties.length)
    }
}

struct Begun {
    index: IndexWriter,
    taken: Taken,
    /// The names that the index has.
    done: HashSet<u128>,
    blobs: u64,
    bytes: u64,
}

struct Downloaded {
    entry: BlobEntry,
    part: PathBuf,
    length: u64,
}

fn is_empty(folder: &Path) -> Result<bool, BlobExportError> {
    let mut entries = fs::read_dir(folder).map_err(|source| unwritten(folder, source))?;
    Ok(entries.next().is_none())
}

fn unwritten(path: &Path, source: io::Error) -> BlobExportError {
    BlobExportError::Unwritten { path: path.to_owned(), source }
}
