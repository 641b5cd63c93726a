//! The commands that any Table endpoint answers.

use std::io::{self, Read as _, Write as _};
use std::sync::Arc;

use partita_client::{
    Continuation, ETag, Match, Operation, OperationKind, Query, partition_key, property, row_key,
};

use super::command::{
    CountCommand, DeleteCommand, GetCommand, Layout, PutCommand, QueryCommand, TablesCommand,
};
use super::layout::{Cell, Grid, Paint, Screen};
use super::{Chosen, TableError, TableOutcome, connect};
use crate::columns::{self, cell};
use crate::command::Mode;
use crate::csv;
use crate::endpoint::RequestError;
use crate::entity::{self, EntityKeys, JsonEntity, PageBody};
use crate::progress::ProgressPrinter;
use crate::tables as listing;
use futures_util::TryStreamExt as _;
use wire::names::{PARTITION_KEY, ROW_KEY, TABLE_NAME, TIMESTAMP};

/// Entities that a person is shown unless they ask for more.
const SHOWN_USUAL: usize = 100;

pub async fn tables(command: &TablesCommand) -> Result<(), TableError> {
    let service = connect(&command.connection)?;
    let filter = command.prefix.as_deref().map(|prefix| property(TABLE_NAME).starts_with(prefix));
    let screen = Screen::of_stdout();
    let mut listed = std::pin::pin!(service.tables(filter));
    let mut out = if command.format == Layout::Csv { format!("{TABLE_NAME}\r\n") } else { String::new() };
    loop {
        let next = listed.try_next().await.map_err(|error| TableError::Failed {
            what: "can't list the tables".to_owned(),
            source: RequestError::new(&service, error),
        })?;
        let Some(name) = next else { break };
        match command.format {
            Layout::Table => out.push_str(&format!("{}\n", Cell::text(&name).text)),
            Layout::Json => out.push_str(&format!("{}\n", serde_json::json!({ TABLE_NAME: name }))),
            Layout::Csv => out.push_str(&format!("{name}\r\n")),
        }
        screen.print(&std::mem::take(&mut out))?;
    }
    Ok(screen.print(&out)?)
}

pub async fn query(command: &QueryCommand) -> Result<(), TableError> {
    let of = Chosen::new(&command.connection, &command.table)?;
    let mut query = of.table.query();
    if let Some(filter) = &command.filter {
        query = query.filter(filter.as_str());
    }
    if !command.select.is_empty() {
        query = query.select(command.select.iter().map(|name| name.trim()));
    }
    let is_table = command.format == Layout::Table;
    let most = command.top.or(is_table.then_some(SHOWN_USUAL)).unwrap_or(usize::MAX);
    let mut printer = Printer::new(command.format, &command.select);
    let (mut from, mut left) = (None, most);
    while left > 0 {
        let page =
            query.clone().take(left).json_page(from.as_ref()).await.map_err(|error| of.failed(error))?;
        let body: PageBody<'_> = serde_json::from_slice(&page.json).map_err(TableError::Answer)?;
        let entities = &body.value[..body.value.len().min(left)];
        printer.print(entities)?;
        left -= entities.len();
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    printer.finish()?;
    if is_table && from.is_some() && command.top.is_none() {
        note(&format!("the first {SHOWN_USUAL} entities; --top shows more, --format json all"));
    }
    Ok(())
}

pub async fn get(command: &GetCommand) -> Result<TableOutcome, TableError> {
    let of = Chosen::new(&command.of.connection, &command.of.table)?;
    // As a query, because its JSON can be shown as the service has written it. It is a look-up all the same.
    let key = partition_key().eq(command.of.partition.as_str()).and(row_key().eq(command.of.row.as_str()));
    let mut query = of.table.query().filter(key);
    if !command.select.is_empty() {
        query = query.select(command.select.iter().map(|name| name.trim()));
    }
    let page = query.json_page(None).await.map_err(|error| of.failed(error))?;
    let body: PageBody<'_> = serde_json::from_slice(&page.json).map_err(TableError::Answer)?;
    let Some(entity) = body.value.first() else {
        note("there is no such entity");
        return Ok(TableOutcome::NotFound);
    };
    if command.format != Layout::Table {
        let mut printer = Printer::new(command.format, &command.select);
        printer.print(std::slice::from_ref(entity))?;
        printer.finish()?;
        return Ok(TableOutcome::Done);
    }
    let mut rows = Vec::new();
    for (name, json) in entity.properties() {
        let (value, kind) = shown(entity, name, json);
        rows.push(vec![Cell::text(name), Cell::text(kind.trim_start_matches("Edm.")), Cell::text(&value)]);
    }
    let screen = Screen::of_stdout();
    let names = ["Property", "Type", "Value"].map(str::to_owned);
    let grid = Grid::new(names.into(), &rows, &screen);
    let mut out = grid.head(&screen);
    rows.iter().for_each(|row| out.push_str(&grid.row(row)));
    screen.print(&out)?;
    Ok(TableOutcome::Done)
}

pub async fn put(command: &PutCommand) -> Result<(), TableError> {
    let of = Chosen::new(&command.of.connection, &command.of.table)?;
    let keys = EntityKeys { partition: command.of.partition.clone(), row: command.of.row.clone() };
    let body = match command.properties.as_slice() {
        [] => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).map_err(TableError::Input)?;
            with_keys(&keys, &JsonEntity::parse(text.trim())?)
        }
        properties => of_arguments(&keys, properties)?,
    };
    if command.create {
        listing::create(&of.service, &command.of.table).await?;
    }
    let kind = match command.mode {
        Mode::Replace => OperationKind::UpsertReplace,
        Mode::Merge => OperationKind::UpsertMerge,
        Mode::Insert => OperationKind::Insert,
    };
    let operation = Operation::json(kind, keys.partition, keys.row, body);
    let etag = of.table.apply(operation).await.map_err(|error| of.failed(error))?;
    let etag = etag.as_ref().map_or("", ETag::as_str);
    Ok(Screen::of_stdout().print(&format!("{etag}\n"))?)
}

/// A request's body of `NAME=TEXT`, `NAME:TYPE=VALUE` and `NAME:=JSON`.
fn of_arguments(keys: &EntityKeys, properties: &[String]) -> Result<Vec<u8>, TableError> {
    let mut out = keys_json(keys);
    for text in properties {
        let bad = || TableError::Property { text: text.clone() };
        let (name, value) = text.split_once('=').ok_or_else(bad)?;
        let (name, kind) = match name.split_once(':') {
            None => (name, "String"),
            Some((name, kind)) => (name, kind),
        };
        if name.is_empty() {
            return Err(bad());
        }
        let kind = match kind {
            "" if matches!(value, "true" | "false") => "Boolean",
            "" if value.parse::<i32>().is_ok() => "Int32",
            "" if value.parse::<i64>().is_ok() => "Int64",
            "" if value.parse::<f64>().is_ok_and(f64::is_finite) => "Double",
            "" => return Err(bad()),
            kind => kind,
        };
        columns::write_property(&mut out, name, value, kind)?;
    }
    out.push(b'}');
    Ok(out)
}

/// A request's body of an entity in JSON, whose keys may be left out or must be these.
fn with_keys(keys: &EntityKeys, entity: &JsonEntity<'_>) -> Vec<u8> {
    let mut out = keys_json(keys);
    let mut body = Vec::new();
    entity.without_keys().write_body(&mut body);
    if body.len() > "{}".len() {
        out.push(b',');
        out.extend_from_slice(&body[1..]);
    } else {
        out.push(b'}');
    }
    out
}

fn keys_json(keys: &EntityKeys) -> Vec<u8> {
    let mut out = b"{\"PartitionKey\":".to_vec();
    entity::write_text(&mut out, &keys.partition);
    out.extend_from_slice(b",\"RowKey\":");
    entity::write_text(&mut out, &keys.row);
    out
}

pub async fn delete(command: &DeleteCommand) -> Result<TableOutcome, TableError> {
    let of = Chosen::new(&command.of.connection, &command.of.table)?;
    let condition = match &command.if_match {
        None => Match::Any,
        Some(etag) => Match::from(ETag::new(etag)),
    };
    match of.table.delete(&command.of.partition, &command.of.row, condition).await {
        Ok(()) => Ok(TableOutcome::Done),
        Err(error) if error.code() == Some("ResourceNotFound") => {
            note("there is no such entity");
            Ok(TableOutcome::NotFound)
        }
        Err(error) => Err(of.failed(error)),
    }
}

pub async fn count(command: &CountCommand) -> Result<(), TableError> {
    let of = Chosen::new(&command.connection, &command.table)?;
    let mut query: Query = of.table.query().select([PARTITION_KEY]);
    if let Some(filter) = &command.filter {
        query = query.filter(filter.as_str());
    }
    let progress = Arc::new(ProgressPrinter::of_entities(command.quiet));
    progress.start(format!("counting {}", command.table), 0, None);
    let (mut count, mut bytes) = (0, 0);
    let mut from: Option<Continuation> = None;
    loop {
        let page = query.json_page(from.as_ref()).await.map_err(|error| {
            progress.clear();
            of.failed(error)
        })?;
        let body: PageBody<'_> = serde_json::from_slice(&page.json).map_err(TableError::Answer)?;
        count += body.value.len() as u64;
        bytes += page.json.len() as u64;
        progress.update(count, bytes);
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    progress.clear();
    Ok(Screen::of_stdout().print(&format!("{count}\n"))?)
}

/// For people, beside the output.
fn note(text: &str) {
    // Errors are ignored: standard error may be closed.
    let _ = writeln!(io::stderr(), "partita: {text}");
}

/// A value for people, and its type.
fn shown(entity: &JsonEntity<'_>, name: &str, json: &str) -> (String, String) {
    // The service does not annotate its own time.
    let annotated = entity.annotated_type(name).or((name == TIMESTAMP).then_some("Edm.DateTime"));
    match cell(json, annotated) {
        Some((value, kind)) => (value.into_owned(), kind.to_owned()),
        // Half of a surrogate pair, which no text can hold: as the service has written it.
        None => (json.to_owned(), "Edm.String".to_owned()),
    }
}

fn is_number(kind: &str) -> bool {
    matches!(kind, "Edm.Int32" | "Edm.Int64" | "Edm.Double")
}

/// Prints entities page by page. The columns are those of the first page, or those that are selected.
struct Printer {
    format: Layout,
    screen: Screen,
    select: Vec<String>,
    grid: Option<(Vec<String>, Grid)>,
    shown: usize,
}

impl Printer {
    fn new(format: Layout, select: &[String]) -> Self {
        let select = select.iter().map(|name| name.trim().to_owned()).collect();
        Self { format, screen: Screen::of_stdout(), select, grid: None, shown: 0 }
    }

    fn print(&mut self, entities: &[JsonEntity<'_>]) -> Result<(), TableError> {
        self.shown += entities.len();
        let out = match self.format {
            Layout::Json => {
                let mut out = Vec::new();
                for entity in entities {
                    entity.write_line(&mut out);
                    out.push(b'\n');
                }
                String::from_utf8_lossy(&out).into_owned()
            }
            Layout::Table | Layout::Csv => self.columns(entities)?,
        };
        Ok(self.screen.print(&out)?)
    }

    fn columns(&mut self, entities: &[JsonEntity<'_>]) -> Result<String, TableError> {
        if entities.is_empty() {
            return Ok(String::new());
        }
        let is_first = self.grid.is_none();
        let names = match &self.grid {
            Some((names, _)) => names.clone(),
            None if !self.select.is_empty() => self.select.clone(),
            None => names_of(entities, self.format == Layout::Csv),
        };
        let cells = |entity: &JsonEntity<'_>| -> Vec<Cell> {
            let of = |name: &String| match entity.json(name).filter(|json| *json != "null") {
                None => Cell::text(""),
                Some(json) => {
                    let (value, kind) = shown(entity, name, json);
                    match self.format {
                        Layout::Csv => Cell { text: value, is_number: false },
                        _ if is_number(&kind) => Cell::number(value),
                        _ => Cell::text(&value),
                    }
                }
            };
            names.iter().map(of).collect()
        };
        let rows: Vec<Vec<Cell>> = entities.iter().map(cells).collect();
        if self.format == Layout::Csv {
            let mut out = Vec::new();
            if is_first {
                csv::write_record(&mut out, names.iter().map(String::as_str));
            } else if let Some(name) = late_column(entities, &names).filter(|_| self.select.is_empty()) {
                return Err(TableError::LateColumn { name });
            }
            for row in &rows {
                csv::write_record(&mut out, row.iter().map(|cell| cell.text.as_str()));
            }
            self.grid.get_or_insert_with(|| (names, Grid::new(Vec::new(), &[], &self.screen)));
            return Ok(String::from_utf8_lossy(&out).into_owned());
        }
        let screen = self.screen;
        let (_, grid) = self.grid.get_or_insert_with(|| {
            let grid = Grid::new(names.clone(), &rows, &screen);
            (names, grid)
        });
        let mut out = if is_first { grid.head(&screen) } else { String::new() };
        rows.iter().for_each(|row| out.push_str(&grid.row(row)));
        Ok(out)
    }

    /// On a terminal, says how much was shown.
    fn finish(&self) -> Result<(), TableError> {
        if self.format != Layout::Table {
            return Ok(());
        }
        if let Some((_, grid)) = self.grid.as_ref().filter(|(_, grid)| !grid.left_out.is_empty()) {
            note(&format!("no room for the columns {}; --select chooses", grid.left_out.join(", ")));
        }
        if self.screen.width.is_some() {
            let noun = if self.shown == 1 { "entity" } else { "entities" };
            self.screen.print(&format!(
                "{}\n",
                self.screen.painted(&format!("{} {noun}", self.shown), Paint::Dim)
            ))?;
        }
        Ok(())
    }
}

/// The keys, then the properties in the order in which they appear.
fn names_of(entities: &[JsonEntity<'_>], with_timestamp: bool) -> Vec<String> {
    let mut names = vec![PARTITION_KEY.to_owned(), ROW_KEY.to_owned()];
    if with_timestamp {
        names.push(TIMESTAMP.to_owned());
    }
    for entity in entities {
        for (name, _) in entity.properties() {
            if name != TIMESTAMP && !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
    }
    names
}

fn late_column(entities: &[JsonEntity<'_>], names: &[String]) -> Option<String> {
    let mut properties =
        entities.iter().flat_map(|entity| entity.properties().map(|(name, _)| name.to_owned()));
    properties.find(|name| !names.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> EntityKeys {
        EntityKeys { partition: "a\"b".to_owned(), row: "r".to_owned() }
    }

    #[test]
    fn properties_of_the_command_line_have_their_types() {
        let check = |properties: &[&str], expected: &str| {
            let properties: Vec<String> = properties.iter().map(|text| (*text).to_owned()).collect();
            let body = of_arguments(&keys(), &properties).unwrap();
            let expected = format!(r#"{{"PartitionKey":"a\"b","RowKey":"r"{expected}}}"#);
            assert_eq!(String::from_utf8(body).unwrap(), expected, "{properties:?}");
        };
        check(&["Title=a=b"], r#","Title":"a=b""#);
        check(&["Title="], r#","Title":"""#);
        check(&["Year:=1965", "Paid:=true"], r#","Year":1965,"Paid":true"#);
        check(&["N:=9000000000"], r#","N@odata.type":"Edm.Int64","N":"9000000000""#);
        check(&["N:Int64=5"], r#","N@odata.type":"Edm.Int64","N":"5""#);
        for bad in ["Title", "=x", "A:=x", "A:=NaN"] {
            let error = of_arguments(&keys(), &[bad.to_owned()]).unwrap_err();
            assert!(error.to_string().contains("NAME=TEXT"), "{bad}: {error}");
        }
        assert!(of_arguments(&keys(), &["A:Int32=x".to_owned()]).is_err());
        assert!(of_arguments(&keys(), &["A:Text=x".to_owned()]).is_err());
    }

    #[test]
    fn the_keys_of_the_command_line_win_over_those_of_the_input() {
        let check = |entity: &str, expected: &str| {
            let body = with_keys(&keys(), &JsonEntity::parse(entity).unwrap());
            let expected = format!(r#"{{"PartitionKey":"a\"b","RowKey":"r"{expected}}}"#);
            assert_eq!(String::from_utf8(body).unwrap(), expected, "{entity}");
        };
        check("{}", "");
        check(r#"{"A":1}"#, r#","A":1"#);
        check(r#"{"PartitionKey":"x","RowKey":"y","Timestamp":"t","A":1}"#, r#","A":1"#);
    }
}
