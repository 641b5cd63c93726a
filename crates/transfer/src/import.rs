//! `partita import`: files into tables.
//!
//! One thread reads, several connections write. The queue between them is bounded, so a file may have any size.

mod file;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use partita_client::TableService;
use thiserror::Error;

use crate::azurite::AzuriteError;
use crate::command::ImportCommand;
use crate::endpoint::EndpointError;
use crate::format::FileFormat;
use crate::input::InputError;
use crate::progress::{ProgressPrinter, grouped};
use crate::rejects::RejectsError;
use crate::side_file::SideFileError;
use file::{FileImport, StopCause};

/// Of the side file of a file that is being imported.
pub const SUFFIX: &str = ".import-progress";

/// Why not every entity is stored.
#[derive(Debug, Error)]
pub enum ImportError {
    #[error("can't start: {0}")]
    Runtime(#[source] io::Error),
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    #[error(transparent)]
    Azurite(#[from] AzuriteError),
    #[error("--from is missing")]
    NoFile,
    #[error(transparent)]
    SideFile(#[from] SideFileError),
    #[error(transparent)]
    Rejects(#[from] RejectsError),
    #[error("can't create the directory {}: {source}", .path.display())]
    RejectsDirectory { path: PathBuf, source: io::Error },
    #[error("can't read the directory {}: {source}", .path.display())]
    Directory { path: PathBuf, source: io::Error },
    #[error("{} contains no .jsonl and no .csv file", .directory.display())]
    NoFiles { directory: PathBuf },
    #[error(
        "{} and {} are both for the table {table}; import one of them with --table",
        .one.display(), .other.display()
    )]
    SameTable { table: String, one: PathBuf, other: PathBuf },
    #[error(
        "{} is an interrupted export; finish it with `partita export --resume`, or delete {} to import the part \
         that exists",
        .path.display(), .side.display()
    )]
    UnfinishedExport { path: PathBuf, side: PathBuf },
    #[error("an import from standard input can't be resumed; import a file")]
    ResumeFromStandardInput,
    #[error(
        "{} belongs to an import whose {what} was {was}, not {is}; --resume needs the same",
        .side.display()
    )]
    OtherImport { side: PathBuf, what: &'static str, was: String, is: String },
    #[error("{file}: {source}")]
    Input { file: String, source: InputError },
    #[error("{file}: {cause}{}", resume_hint(*.resumable))]
    Stopped {
        file: String,
        #[source]
        cause: Box<StopCause>,
        /// The number of entities that are done, if the import can be resumed.
        resumable: Option<u64>,
    },
    #[error("{} entities were rejected{}", grouped(*.count), place(.rejects.as_deref()))]
    Rejected { count: u64, rejects: Option<PathBuf> },
}

fn resume_hint(resumable: Option<u64>) -> String {
    resumable.map_or_else(String::new, |done| {
        format!("; --resume continues after the {} entities that are done", grouped(done))
    })
}

fn place(rejects: Option<&Path>) -> String {
    rejects.map_or_else(String::new, |path| format!("; they are in {}", path.display()))
}

pub async fn run(
    command: &ImportCommand,
    service: TableService,
    progress: Arc<ProgressPrinter>,
) -> Result<(), ImportError> {
    let one = |path: &Path, table: &str, format, rejects, keeps_side_file| FileImport {
        path: path.to_owned(),
        table: table.to_owned(),
        format,
        rejects,
        keeps_side_file,
        mode: command.mode,
        parallel: command.parallel.into(),
        resume: command.resume,
        service: service.clone(),
        progress: progress.clone(),
    };
    let from = command.from.as_ref().ok_or(ImportError::NoFile)?;
    let Some(table) = &command.table else {
        return all(from, command.rejects.as_deref(), one).await;
    };
    let format = command.format.unwrap_or_else(|| FileFormat::of_path(from));
    let rejected = one(from, table, format, command.rejects.clone(), false).run().await?;
    check_rejected(rejected, command.rejects.as_deref())
}

async fn all(
    directory: &Path,
    rejects: Option<&Path>,
    one: impl Fn(&Path, &str, FileFormat, Option<PathBuf>, bool) -> FileImport,
) -> Result<(), ImportError> {
    let files = files(directory)?;
    for (_, path, _) in &files {
        file::refuse_unfinished(path)?;
    }
    if let Some(rejects) = rejects {
        std::fs::create_dir_all(rejects)
            .map_err(|source| ImportError::RejectsDirectory { path: rejects.to_owned(), source })?;
    }
    let mut rejected = 0;
    for (table, path, format) in &files {
        let rejects = rejects.zip(path.file_name()).map(|(directory, name)| directory.join(name));
        // Side files stay until all files are done, so that a resumed run skips the files that are complete.
        rejected += one(path, table, *format, rejects, true).run().await?;
    }
    for (_, path, _) in &files {
        file::side_file(path).remove()?;
    }
    check_rejected(rejected, rejects)
}

/// The files of a directory with their tables, which their names say, and their formats, which their endings say.
fn files(directory: &Path) -> Result<Vec<(String, PathBuf, FileFormat)>, ImportError> {
    let fault = |source| ImportError::Directory { path: directory.to_owned(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(fault)? {
        let path = entry.map_err(fault)?.path();
        if let (Some(format), Some(table)) =
            (FileFormat::of_ending(&path), path.file_stem().and_then(|stem| stem.to_str()))
        {
            files.push((table.to_owned(), path, format));
        }
    }
    files.sort_by(|(a, ..), (b, ..)| a.cmp(b));
    if let Some(same) = files.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let (table, one, other) = (same[0].0.clone(), same[0].1.clone(), same[1].1.clone());
        return Err(ImportError::SameTable { table, one, other });
    }
    if files.is_empty() {
        return Err(ImportError::NoFiles { directory: directory.to_owned() });
    }
    Ok(files)
}

fn check_rejected(count: u64, rejects: Option<&Path>) -> Result<(), ImportError> {
    match count {
        0 => Ok(()),
        count => Err(ImportError::Rejected { count, rejects: rejects.map(Path::to_owned) }),
    }
}
