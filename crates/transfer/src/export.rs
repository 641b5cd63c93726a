//! `partita export`: a table page by page into a file. A page at a time is in memory, whatever the table's size.

use std::path::Path;
use std::sync::Arc;

use partita_client::{JsonPage, TableService};

use crate::columns::Columns;
use crate::command::ExportCommand;
use crate::endpoint;
use crate::entity::Page;
use crate::format::Format;
use crate::output::{self, Continuation, Existing, Output, State, Subject};
use crate::progress::{Progress, grouped, size};
use crate::tables;

const SYSTEM: [&str; 3] = [wire::names::PARTITION_KEY, wire::names::ROW_KEY, wire::names::TIMESTAMP];

#[derive(Debug)]
pub struct Export<'a> {
    command: &'a ExportCommand,
    service: TableService,
    progress: Arc<Progress>,
    existing: Existing,
}

impl<'a> Export<'a> {
    pub fn new(command: &'a ExportCommand, service: TableService, progress: Arc<Progress>) -> Self {
        let existing = match (command.resume, command.overwrite) {
            (true, _) => Existing::Resumed,
            (false, true) => Existing::Overwritten,
            (false, false) => Existing::Refused,
        };
        Self { command, service, progress, existing }
    }

    pub async fn run(self) -> Result<(), String> {
        let command = self.command;
        let Some(table) = &command.table else { return self.all(&command.to).await };
        if crate::is_standard(&command.to) {
            if command.resume {
                return Err("what went to standard output can't be resumed; export to a file".to_owned());
            }
            let subject = self.subject(table, command.format.unwrap_or(Format::Jsonl));
            return self.table(Output::Standard, State::new(subject), "standard output").await;
        }
        let format = command.format.unwrap_or_else(|| Format::of_path(&command.to));
        match Output::open(&command.to, self.subject(table, format), self.existing)? {
            Some((output, state)) => self.table(output, state, &command.to.display().to_string()).await,
            None => {
                let (file, side) = (command.to.display(), output::side_file(&command.to));
                Err(format!(
                    "there is nothing to resume: {file} has no {} beside it, so it is complete; --overwrite begins anew",
                    side.path().display()
                ))
            }
        }
    }

    async fn all(&self, directory: &Path) -> Result<(), String> {
        if crate::is_standard(directory) {
            return Err("--all writes a file a table; --to takes a directory".to_owned());
        }
        std::fs::create_dir_all(directory)
            .map_err(|error| format!("can't make the directory {}: {error}", directory.display()))?;
        let format = self.command.format.unwrap_or(Format::Jsonl);
        let names = tables::list(&self.service).await?;
        let path = |name: &str| directory.join(format!("{name}.{}", format.ending()));
        // Before any work: not after an hour of it.
        if self.existing == Existing::Refused
            && let Some(there) = names.iter().map(|name| path(name)).find(|path| path.exists())
        {
            let way_out = "--resume goes on with an interrupted run, --overwrite replaces it";
            return Err(format!("{} is there already; {way_out}", there.display()));
        }
        for name in &names {
            let path = path(name);
            match Output::open(&path, self.subject(name, format), self.existing)? {
                Some((output, state)) => {
                    self.table(output, state, &path.display().to_string()).await?;
                }
                None => self.progress.notice(&format!("{} is complete", path.display())),
            }
        }
        self.progress.notice(&format!("tables in {}: {}", directory.display(), names.len()));
        Ok(())
    }

    fn subject(&self, table: &str, format: Format) -> Subject {
        Subject {
            endpoint: self.service.url(),
            table: table.to_owned(),
            filter: self.command.filter.clone(),
            select: self.command.select.clone(),
            columns: self.command.columns.clone(),
            format,
        }
    }

    async fn table(&self, mut output: Output, mut state: State, place: &str) -> Result<(), String> {
        let columns = match state.subject.format {
            Format::Jsonl => None,
            Format::Csv => Some(self.columns(&mut state).await?),
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
            let page = read(&answer)?;
            for entity in &page.value {
                match &columns {
                    None => {
                        entity.write_line(&mut text);
                        text.push(b'\n');
                    }
                    Some(columns) => {
                        let named = |why: String| match entity.keys() {
                            Ok(keys) => format!("{table}, {keys}: {why}"),
                            Err(_) => format!("{table}: {why}"),
                        };
                        let homeless = columns.write_row(&mut text, entity).map_err(named)?;
                        self.accept_homeless(homeless, &mut left_out).map_err(named)?;
                    }
                }
            }
            state.entities += page.value.len() as u64;
            state.continuation = answer.next.as_ref().map(Continuation::of);
            if state.continuation.is_none() {
                break;
            }
            output.write(&text, &mut state)?;
            text.clear();
            self.progress.update(state.entities, state.bytes);
        }
        output.finish(&text, &mut state)?;
        if !left_out.names().is_empty() {
            self.progress.notice(&format!("left out for want of a column: {}", left_out.names().join(", ")));
        }
        let (entities, bytes) = (grouped(state.entities), size(state.bytes));
        self.progress.notice(&format!("{table}: {entities} entities, {bytes}, in {place}"));
        Ok(())
    }

    /// Whoever names the columns does not want others. Found columns were all there were, a moment ago.
    fn accept_homeless(&self, homeless: Vec<String>, left_out: &mut Columns) -> Result<(), String> {
        match homeless.first() {
            Some(name) if self.command.columns.is_empty() => Err(format!(
                "it got {name} after the columns were found; export again with --overwrite, or with --format jsonl"
            )),
            _ => {
                left_out.extend(homeless);
                Ok(())
            }
        }
    }

    async fn columns(&self, state: &mut State) -> Result<Columns, String> {
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

    async fn find_columns(&self, subject: &Subject) -> Result<Columns, String> {
        self.progress.start(format!("finding the columns of {}", subject.table), 0, None);
        let mut columns = Columns::default();
        let (mut next, mut entities, mut bytes) = (None, 0, 0);
        loop {
            let answer = self.page(subject, next.as_ref()).await?;
            let page = read(&answer)?;
            for entity in &page.value {
                columns.add_all(entity);
            }
            entities += page.value.len() as u64;
            bytes += answer.json.len() as u64;
            self.progress.update(entities, bytes);
            next = answer.next.as_ref().map(Continuation::of);
            if next.is_none() {
                return Ok(columns);
            }
        }
    }

    async fn page(&self, subject: &Subject, from: Option<&Continuation>) -> Result<JsonPage, String> {
        let unread = |why: String| format!("can't read the table {}: {why}", subject.table);
        let mut query = endpoint::table(&self.service, &subject.table).map_err(unread)?.query();
        if let Some(filter) = &subject.filter {
            query = query.filter(filter.as_str());
        }
        if !subject.select.is_empty() {
            query = query.select(with_keys(&subject.select));
        }
        let page = query.json_page(from.map(Continuation::to_client).as_ref()).await;
        page.map_err(|error| unread(endpoint::explain(&self.service, &error)))
    }
}

/// These properties and those without which a line could not be imported.
fn with_keys(select: &[String]) -> Vec<&str> {
    let others = select.iter().map(|name| name.trim()).filter(|name| !SYSTEM.contains(name));
    SYSTEM.into_iter().chain(others).collect()
}

fn read(page: &JsonPage) -> Result<Page<'_>, String> {
    serde_json::from_slice(&page.json)
        .map_err(|error| format!("a page is no JSON that is understood here: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_has_the_keys_and_each_name_once() {
        let select = ["Title", " RowKey", "Year "].map(str::to_owned);
        assert_eq!(with_keys(&select), ["PartitionKey", "RowKey", "Timestamp", "Title", "Year"]);
    }
}
