//! What every pattern uses: its own tables, queries that show their cost, and checks.
//!
//! It knows nothing about the patterns.

use std::cell::Cell;
use std::fmt::Debug;
use std::future::Future;
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use partita_client::{
    BlobService, Container, Query, Queue, QueueService, RetryPolicy, StoredEntity, Table, TableService,
    partition_key, property, row_key,
};
use partita_client_patterns::bulk::{Bulk, BulkWrite, Report};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cost::{Class, Cost, Shown};

/// Why a pattern failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Client(#[from] partita_client::Error),
    #[error("{0}")]
    System(#[from] std::io::Error),
    /// The result is not the expected one.
    #[error("{0}")]
    Unexpected(String),
    #[error("interrupted")]
    Interrupted,
}

impl Failure {
    /// There is no server, so nothing can be cleaned up and no other pattern can run.
    pub fn is_silence(&self) -> bool {
        matches!(self, Self::Client(partita_client::Error::Unanswered(_)))
    }
}

pub type Outcome<T = ()> = Result<T, Failure>;

/// The entities that were found, and the cost.
#[derive(Debug)]
pub struct ReadResult<T> {
    pub entities: Vec<StoredEntity<T>>,
    pub cost: Cost,
}

/// An account, and tables, queues and containers with a common prefix.
pub struct Stage {
    connection_string: String,
    service: TableService,
    queues: QueueService,
    /// Whether this run has queues to remove; and whether it has containers.
    has_queues: Cell<bool>,
    has_containers: Cell<bool>,
    prefix: String,
    checks: Cell<u32>,
}

impl Stage {
    pub fn new(connection_string: &str) -> Outcome<Self> {
        Self::with_prefix(connection_string, &format!("Pattern{:08x}", rand::random::<u32>()))
    }

    /// Uses the tables of another process.
    pub fn with_prefix(connection_string: &str, prefix: &str) -> Outcome<Self> {
        Ok(Self {
            connection_string: connection_string.to_owned(),
            service: TableService::from_connection_string(connection_string)?,
            queues: QueueService::from_connection_string(connection_string)?,
            has_queues: Cell::new(false),
            has_containers: Cell::new(false),
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

    /// How many checks were made. All of them held.
    pub fn checks(&self) -> u32 {
        self.checks.get()
    }

    /// The name of a table of this run.
    pub fn name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// A table of this run, created if it is missing.
    pub async fn table(&self, name: &str) -> Outcome<Table> {
        let table = self.service.table(&self.name(name))?;
        table.create_if_missing().await?;
        Ok(table)
    }

    /// A queue of this run, created if it is missing.
    pub async fn queue(&self, name: &str) -> Outcome<Queue> {
        let queue = self.queues.queue(&format!("{}-{name}", self.prefix.to_lowercase()))?;
        self.has_queues.set(true);
        queue.create_if_missing().await?;
        Ok(queue)
    }

    /// A container of this run, created if it is missing.
    pub async fn container(&self, name: &str) -> Outcome<Container> {
        let container = self.blobs()?.container(&format!("{}-{name}", self.prefix.to_lowercase()))?;
        self.has_containers.set(true);
        container.create_if_missing().await?;
        Ok(container)
    }

    /// The blobs of the same account.
    fn blobs(&self) -> Outcome<BlobService> {
        Ok(BlobService::from_connection_string(&self.connection_string)?)
    }

    /// The same table with a client that never retries, so that it sees every refusal.
    pub fn impatient(&self, table: &Table) -> Outcome<Table> {
        let service = TableService::builder(&self.connection_string)?.retry(RetryPolicy::never()).build()?;
        Ok(service.table(table.name())?)
    }

    /// Removes every table, queue and container of this run.
    pub async fn clear(&self) -> Outcome {
        let ours = property("TableName").starts_with(&self.prefix);
        let names: Vec<String> = self.service.tables(Some(ours)).try_collect().await?;
        for name in names {
            self.service.table(&name)?.drop().await?;
        }
        if self.has_queues.get() {
            let queues: Vec<_> = self.queues.queues(&self.prefix.to_lowercase()).try_collect().await?;
            for queue in queues {
                self.queues.queue(&queue.name)?.drop().await?;
            }
        }
        if self.has_containers.get() {
            let blobs = self.blobs()?;
            let containers: Vec<_> = blobs.containers(&self.prefix.to_lowercase()).try_collect().await?;
            for container in containers {
                blobs.container(&container.name)?.drop().await?;
            }
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
        // Not `Table::get`: only the answer to a query has the number of entities examined.
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

    /// Everything that a query finds, and its cost.
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

    /// One page of a query: for queries that `take` the first entities.
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

    /// Waits for a change and prints how long it took.
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

    /// Checks that the result is the expected one.
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

    /// Checks that only the returned entities were examined, if the server reports it.
    pub fn scanned_nothing_else(&self, what: &str, cost: Cost) -> Outcome {
        self.scanned(what, cost, cost.returned)
    }

    /// Checks how many entities were examined, if the server reports it.
    pub fn scanned(&self, what: &str, cost: Cost, expected: u64) -> Outcome {
        match cost.examined {
            Some(examined) => self.same(&format!("entities scanned for {what}"), examined, expected),
            None => Ok(()),
        }
    }
}

/// Everything that a query finds.
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

/// Runs futures, eight at a time. The results are in no order.
pub async fn at_once<T, F: Future<Output = partita_client::Result<T>>>(
    work: impl IntoIterator<Item = F>,
) -> Outcome<Vec<T>> {
    Ok(stream::iter(work).buffer_unordered(8).try_collect().await?)
}

/// Inserts entities.
pub async fn fill<T: Serialize>(table: &Table, entities: impl IntoIterator<Item = T>) -> Outcome {
    complete(Bulk::new(table).write(BulkWrite::Insert, entities).await).map(drop)
}

/// How many rows are done; an error if some are not.
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
    fn a_difference_is_a_failure_that_names_both_values() {
        let stage = Stage::new("UseDevelopmentStorage=true").unwrap();
        stage.same("a sum", 4, 4).unwrap();
        assert_eq!(stage.same("a sum", 5, 4).unwrap_err().to_string(), "a sum: expected 4, found 5");
        assert!(stage.holds("a promise", false).is_err());
        assert_eq!(stage.checks(), 1, "only checks that hold are counted");
    }

    #[test]
    fn too_many_scanned_entities_are_a_failure_if_they_are_reported() {
        let stage = Stage::new("UseDevelopmentStorage=true").unwrap();
        let cost = |examined| Cost { examined, ..Cost::sum([]) };
        assert!(stage.scanned("it", cost(Some(7)), 7).is_ok());
        assert!(stage.scanned("it", cost(Some(8)), 7).is_err());
        assert!(stage.scanned("it", cost(None), 7).is_ok());
    }
}
