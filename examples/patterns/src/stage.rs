//! What every pattern runs on: tables of its own, queries that tell what they cost, and checks.
//!
//! Knows nothing of any pattern.

use std::cell::Cell;
use std::fmt::Debug;
use std::future::Future;
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use partita_client::{
    Query, RetryPolicy, StoredEntity, Table, TableService, partition_key, property, row_key,
};
use partita_client_patterns::bulk::{Bulk, BulkWrite, Report};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cost::{Class, Cost, Shown};

/// Why a pattern was not carried through.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Client(#[from] partita_client::Error),
    #[error("{0}")]
    System(#[from] std::io::Error),
    /// It was carried through, with another result than it should have.
    #[error("{0}")]
    Unexpected(String),
    #[error("interrupted")]
    Interrupted,
}

impl Failure {
    /// There is no server to clean up at, or to go on with.
    pub fn is_silence(&self) -> bool {
        matches!(self, Self::Client(partita_client::Error::Unanswered(_)))
    }
}

pub type Outcome<T = ()> = Result<T, Failure>;

/// What was found, and what it took.
#[derive(Debug)]
pub struct ReadResult<T> {
    pub entities: Vec<StoredEntity<T>>,
    pub cost: Cost,
}

/// A service and tables whose names begin alike.
pub struct Stage {
    connection_string: String,
    service: TableService,
    prefix: String,
    checks: Cell<u32>,
}

impl Stage {
    pub fn new(connection_string: &str) -> Outcome<Self> {
        Self::with_prefix(connection_string, &format!("Pattern{:08x}", rand::random::<u32>()))
    }

    /// On the tables of another process.
    pub fn with_prefix(connection_string: &str, prefix: &str) -> Outcome<Self> {
        Ok(Self {
            connection_string: connection_string.to_owned(),
            service: TableService::from_connection_string(connection_string)?,
            prefix: prefix.to_owned(),
            checks: Cell::new(0),
        })
    }

    pub fn service(&self) -> &TableService {
        &self.service
    }

    pub fn connection_string(&self) -> &str {
        &self.connection_string
    }

    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// How many checks were made, and so held.
    pub fn checks(&self) -> u32 {
        self.checks.get()
    }

    /// The name of a table of this run.
    pub fn name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// A table of this run, made if it is missing.
    pub async fn table(&self, name: &str) -> Outcome<Table> {
        let table = self.service.table(&self.name(name))?;
        table.create_if_missing().await?;
        Ok(table)
    }

    /// The same table by a client that does not try again, so that it sees every refusal.
    pub fn impatient(&self, table: &Table) -> Outcome<Table> {
        let service = TableService::builder(&self.connection_string)?.retry(RetryPolicy::never()).build()?;
        Ok(service.table(table.name())?)
    }

    /// Removes every table of this run.
    pub async fn clear(&self) -> Outcome {
        let ours = property("TableName").starts_with(&self.prefix);
        let names: Vec<String> = self.service.tables(Some(ours)).try_collect().await?;
        for name in names {
            self.service.table(&name)?.drop().await?;
        }
        Ok(())
    }

    pub fn title(&self, title: &str) {
        println!("\n== {title}");
        println!("  {:<20}  requests  returned   scanned       time", "query");
    }

    pub fn say(&self, text: &str) {
        println!("  {text}");
    }

    /// A point query.
    pub async fn get<T: DeserializeOwned>(
        &self,
        what: &str,
        table: &Table,
        partition: &str,
        row: &str,
    ) -> Outcome<ReadResult<T>> {
        // Not `Table::get`, since only a query is told what it looks at.
        let both = partition_key().eq(partition).and(row_key().eq(row));
        let found = self.look(Class::Point, what, &table.query().filter(both)).await?;
        self.same(&format!("{partition}/{row} is one entity"), found.entities.len(), 1)?;
        Ok(found)
    }

    /// A point query for each of these keys, eight at a time.
    pub async fn get_each<T: DeserializeOwned>(
        &self,
        what: &str,
        table: &Table,
        keys: &[(String, String)],
    ) -> Outcome<ReadResult<T>> {
        let start = Instant::now();
        let queries = keys.iter().map(|(partition, row)| {
            table.query().filter(partition_key().eq(partition.as_str()).and(row_key().eq(row.as_str())))
        });
        let found = stream::iter(queries).map(async |query| read::<T>(&query).await).buffered(8);
        let mut found: Vec<ReadResult<T>> = found.try_collect().await?;
        let entities = found.iter_mut().flat_map(|one| std::mem::take(&mut one.entities)).collect();
        let cost = Cost { time: start.elapsed(), ..Cost::sum(found.iter().map(|one| one.cost)) };
        self.tell(Class::Point, what, cost);
        Ok(ReadResult { entities, cost })
    }

    /// All that a query finds, and what it takes.
    pub async fn look<T: DeserializeOwned>(
        &self,
        class: Class,
        what: &str,
        query: &Query,
    ) -> Outcome<ReadResult<T>> {
        let found = read(query).await?;
        self.tell(class, what, found.cost);
        Ok(found)
    }

    /// One page of what a query finds: for those that `take` the first.
    pub async fn look_first<T: DeserializeOwned>(
        &self,
        class: Class,
        what: &str,
        query: &Query,
    ) -> Outcome<ReadResult<T>> {
        let start = Instant::now();
        let page = query.clone().examined().page(None).await?;
        let (returned, examined) = (page.entities.len() as u64, page.examined);
        let cost = Cost { requests: 1, returned, examined, time: start.elapsed() };
        self.tell(class, what, cost);
        Ok(ReadResult { entities: page.entities, cost })
    }

    pub fn tell(&self, class: Class, what: &str, cost: Cost) {
        println!("  {class:<20}  {cost}  {what}");
    }

    /// Waits for a change and tells how long it took.
    pub async fn timed<T, E>(
        &self,
        what: &str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Outcome<(T, Duration)>
    where
        Failure: From<E>,
    {
        let start = Instant::now();
        let done = work.await?;
        let time = start.elapsed();
        println!("  {:<50}  {}  {what}", "write", Shown(time));
        Ok((done, time))
    }

    /// What was found is what it should be.
    pub fn same<T: Debug + PartialEq>(&self, what: &str, found: T, expected: T) -> Outcome {
        if found == expected {
            self.checks.set(self.checks.get() + 1);
            return Ok(());
        }
        Err(Failure::Unexpected(format!("{what}: expected {expected:?}, found {found:?}")))
    }

    pub fn holds(&self, what: &str, held: bool) -> Outcome {
        self.same(what, held, true)
    }

    /// No entity was looked at in vain, if the server tells.
    pub fn scanned_nothing_else(&self, what: &str, cost: Cost) -> Outcome {
        self.scanned(what, cost, cost.returned)
    }

    /// So many entities were looked at, if the server tells.
    pub fn scanned(&self, what: &str, cost: Cost, expected: u64) -> Outcome {
        match cost.examined {
            Some(examined) => self.same(&format!("entities scanned for {what}"), examined, expected),
            None => Ok(()),
        }
    }
}

/// All that a query finds.
pub async fn read<T: DeserializeOwned>(query: &Query) -> Outcome<ReadResult<T>> {
    let query = query.clone().examined();
    let start = Instant::now();
    let mut entities = Vec::new();
    let mut cost = Cost::sum([]);
    let mut from = None;
    loop {
        let page = query.page(from.as_ref()).await?;
        cost.requests += 1;
        cost.examined = cost.examined.zip(page.examined).map(|(before, here)| before + here);
        entities.extend(page.entities);
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    cost.returned = entities.len() as u64;
    cost.time = start.elapsed();
    Ok(ReadResult { entities, cost })
}

/// Work of one kind, eight at a time; the results are in no order.
pub async fn at_once<T, F: Future<Output = partita_client::Result<T>>>(
    work: impl IntoIterator<Item = F>,
) -> Outcome<Vec<T>> {
    Ok(stream::iter(work).buffer_unordered(8).try_collect().await?)
}

/// Inserts entities.
pub async fn fill<T: Serialize>(table: &Table, entities: impl IntoIterator<Item = T>) -> Outcome {
    complete(Bulk::new(table).write(BulkWrite::Insert, entities).await).map(drop)
}

/// How many rows a report says are done, if it says so of all.
pub fn complete(report: Report) -> Outcome<u64> {
    if report.is_complete() {
        return Ok(report.done);
    }
    Err(Failure::Unexpected(format!("not all rows could be written: {report:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_a_failure_that_names_both() {
        let stage = Stage::new("UseDevelopmentStorage=true").unwrap();
        stage.same("a sum", 4, 4).unwrap();
        assert_eq!(stage.same("a sum", 5, 4).unwrap_err().to_string(), "a sum: expected 4, found 5");
        assert!(stage.holds("a promise", false).is_err());
        assert_eq!(stage.checks(), 1, "only what holds is counted");
    }

    #[test]
    fn too_many_entities_scanned_are_a_failure_where_they_are_told() {
        let stage = Stage::new("UseDevelopmentStorage=true").unwrap();
        let cost = |examined| Cost { examined, ..Cost::sum([]) };
        assert!(stage.scanned("it", cost(Some(7)), 7).is_ok());
        assert!(stage.scanned("it", cost(Some(8)), 7).is_err());
        assert!(stage.scanned("it", cost(None), 7).is_ok());
    }
}
