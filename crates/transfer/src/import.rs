//! `partita import`: files into tables.
//!
//! A thread reads, several connections write. What is between them is bounded, so a file may be of any size.

mod file;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use partita_client::TableService;

use crate::command::ImportCommand;
use crate::format::Format;
use crate::progress::{Progress, grouped};
use file::FileImport;

pub async fn run(
    command: &ImportCommand,
    service: TableService,
    progress: Arc<Progress>,
) -> Result<(), String> {
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
    let from = &command.from;
    let Some(table) = &command.table else {
        return all(from, command.rejects.as_deref(), one).await;
    };
    let format = command.format.unwrap_or_else(|| Format::of_path(from));
    let rejected = one(from, table, format, command.rejects.clone(), false).run().await?;
    told(rejected, command.rejects.as_deref())
}

async fn all(
    directory: &Path,
    rejects: Option<&Path>,
    one: impl Fn(&Path, &str, Format, Option<PathBuf>, bool) -> FileImport,
) -> Result<(), String> {
    let files = files(directory)?;
    for (_, path, _) in &files {
        file::refuse_unfinished(path)?;
    }
    if let Some(rejects) = rejects {
        std::fs::create_dir_all(rejects)
            .map_err(|error| format!("can't make the directory {}: {error}", rejects.display()))?;
    }
    let mut rejected = 0;
    for (table, path, format) in &files {
        let rejects = rejects.zip(path.file_name()).map(|(directory, name)| directory.join(name));
        // Side files stay until all is done, so that a resumed run knows what need not be done again.
        rejected += one(path, table, *format, rejects, true).run().await?;
    }
    for (_, path, _) in &files {
        file::side_file(path).remove()?;
    }
    told(rejected, rejects)
}

/// What each file of a directory is: its table by its name, its form by its ending.
fn files(directory: &Path) -> Result<Vec<(String, PathBuf, Format)>, String> {
    let fault = |error: std::io::Error| format!("can't read the directory {}: {error}", directory.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(fault)? {
        let path = entry.map_err(fault)?.path();
        if let (Some(format), Some(table)) =
            (Format::of_ending(&path), path.file_stem().and_then(|stem| stem.to_str()))
        {
            files.push((table.to_owned(), path, format));
        }
    }
    files.sort_by(|(a, ..), (b, ..)| a.cmp(b));
    if let Some(same) = files.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let (table, one, other) = (&same[0].0, same[0].1.display(), same[1].1.display());
        return Err(format!(
            "{one} and {other} are both of the table {table}; import one of them with --table"
        ));
    }
    if files.is_empty() {
        return Err(format!("{} holds no .jsonl and no .csv file", directory.display()));
    }
    Ok(files)
}

fn told(rejected: u64, rejects: Option<&Path>) -> Result<(), String> {
    match (rejected, rejects) {
        (0, _) => Ok(()),
        (rejected, Some(path)) => {
            Err(format!("{} entities were rejected; they are in {}", grouped(rejected), path.display()))
        }
        (rejected, None) => Err(format!("{} entities were rejected", grouped(rejected))),
    }
}
