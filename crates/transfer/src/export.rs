//! `partita export`: writes a table to a file, page by page. Only one page is in memory at a time.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use partita_client::{JsonPage, TableService};
use thiserror::Error;

use crate::columns::{CellError, Columns};
use crate::command::ExportCommand;
use crate::endpoint::{self, EndpointError, RequestError};
use crate::entity::{JsonEntity, PageBody};
use crate::format::FileFormat;
use crate::output::{self, Existing, ExportState, Output, OutputError, SavedContinuation, Subject};
use crate::progress::{ProgressPrinter, grouped, size};
use crate::tables;

const SYSTEM: [&str; 3] = [wire::names::PARTITION_KEY, wire::names::ROW_KEY, wire::names::TIMESTAMP];

/// Why an export is not complete.
#[derive(Debug, Error)]
pub enum ExportError {
    #[error("can't start: {0}")]
    Runtime(#[source] io::Error),
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("an export to standard output can't be resumed; export to a file")]
    ResumeToStandardOutput,
    #[error(
        "there is nothing to resume: {} is complete, because {} does not exist; --overwrite starts again",
        .file.display(), .side.display()
    )]
    NothingToResume { file: PathBuf, side: PathBuf },
    #[error("--all writes one file for each table; --to must name a directory")]
    AllToStandardOutput,
    #[error("can't create the directory {}: {source}", .path.display())]
    Directory { path: PathBuf, source: io::Error },
    #[error(
        "{} already exists; --resume continues an interrupted run, --overwrite replaces it",
        .path.display()
    )]
    Exists { path: PathBuf },
    #[error("{entity}: {source}")]
    Cell { entity: String, source: CellError },
    #[error(
        "{entity}: it got the property {name} after the columns were found; export again with --overwrite, or with \
         --format jsonl"
    )]
    NewProperty { entity: String, name: String },
    #[error("{signal}; the output is only a part of the table")]
    PartOfTable { signal: &'static str },
    #[error("{signal}; run the same command with --resume to continue")]
    Interrupted { signal: &'static str },
}

#[derive(Debug)]
pub struct Export<'a> {
    command: &'a ExportCommand,
    service: TableService,
    progress: Arc<ProgressPrinter>,
    existing: Existing,
}

impl<'a> Export<'a> {
    pub fn new(command: &'a ExportCommand, service: TableService, progress: Arc<ProgressPrinter>) -> Self {
        let existing = Existing::of_flags(command.resume, command.overwrite);
        Self { command, service, progress, existing }
    }

    pub async fn run(self) -> Result<(), ExportError> {
        let command = self.command;
        let Some(table) = &command.table else { return self.all(&command.to).await };
        if crate::is_standard(&command.to) {
            if command.resume {
                return Err(ExportError::ResumeToStandardOutput);
            }
            let state = self.fresh(table, command.format.unwrap_or(FileFormat::Jsonl));
            return self.table(Output::Standard, state, "standard output").await;
        }
        let format = command.format.unwrap_or_else(|| FileFormat::of_path(&command.to));
        match Output::open(&command.to, self.fresh(table, format), self.existing)? {
            Some((output, state)) => self.table(output, state, &command.to.display().to_string()).await,
            None => {
                let side = output::side_file(&command.to).path().to_owned();
                Err(ExportError::NothingToResume { file: command.to.clone(), side })
            }
        }
    }

    async fn all(&self, directory: &Path) -> Result<(), ExportError> {
        if crate::is_standard(directory) {
            return Err(ExportError::AllToStandardOutput);
        }
        std::fs::create_dir_all(directory)
            .map_err(|source| ExportError::Directory { path: directory.to_owned(), source })?;
        let format = self.command.format.unwrap_or(FileFormat::Jsonl);
        let names = tables::list(&self.service).await?;
        let path = |name: &str| directory.join(format!("{name}.{}", format.ending()));
        // Checked for all tables first, so that the export does not fail after an hour of work.
        if self.existing == Existing::Refuse
            && let Some(path) = names.iter().map(|name| path(name)).find(|path| path.exists())
        {
            return Err(ExportError::Exists { path });
        }
        for name in &names {
            let path = path(name);
            match Output::open(&path, self.fresh(name, format), self.existing)? {
                Some((output, state)) => {
                    self.table(output, state, &path.display().to_string()).await?;
                }
                None => self.progress.notice(&format!("{} is complete", path.display())),
            }
        }
        self.progress.notice(&format!("tables in {}: {}", directory.display(), names.len()));
        Ok(())
    }

    fn fresh(&self, table: &str, format: FileFormat) -> ExportState {
        ExportState::new(Subject {
            endpoint: self.service.url(),
            table: table.to_owned(),
            filter: self.command.filter.clone(),
            select: self.command.select.clone(),
            columns: self.command.columns.clone(),
            format,
        })
    }

    async fn table(
        &self,
        mut output: Output,
        mut state: ExportState,
        place: &str,
    ) -> Result<(), ExportError> {
        let columns = match state.subject.format {
            FileFormat::Jsonl => None,
            FileFormat::Csv => Some(self.columns(&mut state).await?),
        };
        let table = state.subject.table.clone();
        self.progress.start(format!("exporting {table}"), state.entities, None);
        let mut text = Vec::new();
        if let Some(columns) = columns.as_ref().filter(|_| state.bytes == 0) {
            columns.write_header(&mut text);
        }
        let mut left_out = Columns::default();
        loop {
            let answer = self.page(&state.subject, state.continuation.as_ref()).await?;
            let page = read(&answer, &table)?;
            for entity in &page.value {
                match &columns {
                    None => {
                        entity.write_line(&mut text);
                        text.push(b'\n');
                    }
                    Some(columns) => {
                        let without_column = columns.write_row(&mut text, entity).map_err(|source| {
                            ExportError::Cell { entity: describe(&table, entity), source }
                        })?;
                        match without_column.first() {
                            // The columns were those of the whole table when it was read first.
                            Some(name) if self.command.columns.is_empty() => {
                                let (entity, name) = (describe(&table, entity), name.clone());
                                return Err(ExportError::NewProperty { entity, name });
                            }
                            _ => left_out.extend(without_column),
                        }
                    }
                }
            }
            state.entities += page.value.len() as u64;
            state.continuation = answer.next.as_ref().map(SavedContinuation::of);
            if state.continuation.is_none() {
                break;
            }
            output.write(&text, &mut state)?;
            text.clear();
            self.progress.update(state.entities, state.bytes);
        }
        output.finish(&text, &mut state)?;
        if !left_out.names().is_empty() {
            let names = left_out.names().join(", ");
            self.progress.notice(&format!("left out, because they have no column: {names}"));
        }
        let (entities, bytes) = (grouped(state.entities), size(state.bytes));
        self.progress.notice(&format!("{table}: {entities} entities, {bytes}, in {place}"));
        Ok(())
    }

    async fn columns(&self, state: &mut ExportState) -> Result<Columns, EndpointError> {
        let command = self.command;
        if let Some(names) = &state.found_columns {
            return Ok(Columns::new(names.iter().cloned()));
        }
        let columns = if !command.columns.is_empty() {
            Columns::new(command.columns.iter().cloned())
        } else if !command.select.is_empty() {
            Columns::new(command.select.iter().cloned())
        } else {
            self.find_columns(&state.subject).await?
        };
        state.found_columns = Some(columns.names().to_vec());
        Ok(columns)
    }

    async fn find_columns(&self, subject: &Subject) -> Result<Columns, EndpointError> {
        self.progress.start(format!("finding the columns of {}", subject.table), 0, None);
        let mut columns = Columns::default();
        let (mut next, mut entities, mut bytes) = (None, 0, 0);
        loop {
            let answer = self.page(subject, next.as_ref()).await?;
            let page = read(&answer, &subject.table)?;
            for entity in &page.value {
                columns.add_all(entity);
            }
            entities += page.value.len() as u64;
            bytes += answer.json.len() as u64;
            self.progress.update(entities, bytes);
            next = answer.next.as_ref().map(SavedContinuation::of);
            if next.is_none() {
                return Ok(columns);
            }
        }
    }

    async fn page(
        &self,
        subject: &Subject,
        from: Option<&SavedContinuation>,
    ) -> Result<JsonPage, EndpointError> {
        let unread = |source| EndpointError::Read { table: subject.table.clone(), source };
        let mut query = endpoint::table(&self.service, &subject.table).map_err(unread)?.query();
        if let Some(filter) = &subject.filter {
            query = query.filter(filter.as_str());
        }
        if !subject.select.is_empty() {
            query = query.select(with_keys(&subject.select));
        }
        let page = query.json_page(from.map(SavedContinuation::to_client).as_ref()).await;
        page.map_err(|error| unread(RequestError::new(&self.service, error)))
    }
}

/// These properties, and the keys, without which a line could not be imported.
fn with_keys(select: &[String]) -> Vec<&str> {
    let others = select.iter().map(|name| name.trim()).filter(|name| !SYSTEM.contains(name));
    SYSTEM.into_iter().chain(others).collect()
}

/// Names an entity in an error.
fn describe(table: &str, entity: &JsonEntity<'_>) -> String {
    match entity.keys() {
        Ok(keys) => format!("{table}, {keys}"),
        Err(_) => table.to_owned(),
    }
}

fn read<'a>(page: &'a JsonPage, table: &str) -> Result<PageBody<'a>, EndpointError> {
    serde_json::from_slice(&page.json)
        .map_err(|source| EndpointError::Page { table: table.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_contains_the_keys_and_each_name_once() {
        let select = ["Title", " RowKey", "Year "].map(str::to_owned);
        assert_eq!(with_keys(&select), ["PartitionKey", "RowKey", "Timestamp", "Title", "Year"]);
    }
}
