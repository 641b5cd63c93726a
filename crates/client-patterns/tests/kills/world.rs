//! One interface for all patterns: rows that have a number or are missing; change, heal and check them.

use std::collections::BTreeMap;
use std::time::Duration;

use partita_client::{
    DateTime, Entity, Match, QueueService, Result, RetryPolicy, StoredEntity, Table, TableService,
    Transaction, row_key,
};
use partita_client_patterns::archive::{Archive, EntityLocation};
use partita_client_patterns::index_entities::{ListIndex, PartitionLists};
use partita_client_patterns::indexed::IndexedTable;
use partita_client_patterns::inter_index::InterIndex;
use partita_client_patterns::intra_index::IntraIndex;
use partita_client_patterns::outbox::Outbox;
use partita_client_patterns::queue::Queue;
use partita_client_patterns::queued_outbox::QueuedOutbox;
use partita_client_patterns::steps::OutboxStep;
use partita_client_patterns::worker::Worker;

use crate::judge;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Copies and lists in other tables, by the outbox.
    Indexed,
    /// Copies in the same partition.
    Intra,
    /// Lists in the same partition.
    Lists,
    /// Even numbers in one table, odd ones in the other.
    Archive,
    /// Messages whose handler writes a row.
    Queue,
    /// Copies in another table, by messages in a queue of the Queue service.
    Queued,
}

impl Pattern {
    pub const ALL: [Self; 6] =
        [Self::Indexed, Self::Intra, Self::Lists, Self::Archive, Self::Queue, Self::Queued];

    pub fn parse(name: &str) -> Self {
        Self::ALL.into_iter().find(|pattern| format!("{pattern:?}") == name).unwrap()
    }
}

/// The requested state of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    pub row: String,
    pub number: Option<u32>,
}

/// The numbers of the rows; missing rows are not in it.
pub type State = BTreeMap<String, u32>;

pub const PARTITION: &str = "Sales";

/// The clock of a world.
#[derive(Clone, Copy, Debug)]
pub enum Time {
    /// Leases are so short that they end while they are used.
    Hasty,
    /// All leases of others have ended.
    Later,
}

/// Both services of one account.
#[derive(Clone)]
pub struct Services {
    pub tables: TableService,
    pub queues: QueueService,
}

impl Services {
    pub fn new(connection_string: &str, retry: RetryPolicy) -> Self {
        let tables = TableService::builder(connection_string).unwrap().retry(retry.clone()).build().unwrap();
        let queues = QueueService::builder(connection_string).unwrap().retry(retry).build().unwrap();
        Self { tables, queues }
    }
}

pub struct World {
    pub pattern: Pattern,
    pub table: Table,
    /// The table of the indexes, the archive, or of what handlers write.
    pub other: Table,
    service: TableService,
    messages: partita_client::Queue,
    time: Time,
}

/// Inserts, replaces or deletes a row of a table. A macro, because the tables of the patterns share no trait.
macro_rules! change {
    ($table:expr, $old:expr, $row:expr, $number:expr) => {{
        let table = &$table;
        match ($old, $number) {
            (Some(old), Some(number)) => table.replace(&entity($row, *number), &old.etag).await.map(drop),
            (Some(old), None) => table.delete(PARTITION, $row, &old.etag).await,
            (None, Some(number)) => table.insert(&entity($row, *number)).await.map(drop),
            (None, None) => Ok(()),
        }
    }};
}

impl World {
    pub fn new(services: &Services, base: &str, pattern: Pattern, time: Time) -> Self {
        let service = services.tables.clone();
        let table = service.table(base).unwrap();
        let other = service.table(&format!("{base}Other")).unwrap();
        let messages = services.queues.queue(&base.to_lowercase()).unwrap();
        Self { pattern, table, other, service, messages, time }
    }

    pub async fn create_tables(&self) {
        self.table.create().await.unwrap();
        self.other.create().await.unwrap();
        self.messages.create_if_missing().await.unwrap();
    }

    /// Brings a row to the requested state.
    pub async fn act(&self, op: &Op) -> Result<()> {
        let Op { row, number } = op;
        match self.pattern {
            Pattern::Indexed => {
                let table = self.indexed();
                change!(table, found(table.get::<Entity>(PARTITION, row).await)?, row, number)
            }
            Pattern::Intra => {
                let table = self.intra();
                change!(table, found(table.get::<Entity>(PARTITION, row).await)?, row, number)
            }
            Pattern::Lists => {
                change!(self.lists(), self.table.find::<Entity>(PARTITION, row).await?, row, number)
            }
            Pattern::Archive => self.move_to(row, number.unwrap()).await,
            Pattern::Queue => self.queue().enqueue(row, row).await.map(drop),
            Pattern::Queued => self.copy(row, *number).await,
        }
    }

    /// Changes a row, and its copy in the other table. A copy of a row that is gone has no number.
    async fn copy(&self, row: &str, number: Option<u32>) -> Result<()> {
        let mut transaction = Transaction::new();
        let mut copy = Entity::new(PARTITION, row);
        match number {
            Some(number) => {
                transaction.upsert_replace(&entity(row, number))?;
                copy = entity(row, number);
            }
            None if self.table.find::<Entity>(PARTITION, row).await?.is_none() => return Ok(()),
            None => {
                transaction.delete(PARTITION, row, Match::Any);
            }
        }
        let copy = copy.with("Version", DateTime::now());
        let step = OutboxStep::upsert_newer(self.other.name(), &copy, "Version")?;
        self.queued().commit(transaction, &[step]).await.map(drop)
    }

    fn queued(&self) -> QueuedOutbox {
        let pause = Duration::from_millis(20);
        let outbox = QueuedOutbox::new(&self.service, self.table.name(), &self.messages).unwrap();
        outbox.visibility(Duration::from_secs(1)).pauses(pause, pause).idle_pause(pause)
    }

    async fn move_to(&self, row: &str, number: u32) -> Result<()> {
        let (away, back) = self.archives();
        match (away.find::<Entity>(PARTITION, row).await?, number % 2) {
            (None, 0) => self.table.insert(&entity(row, 0)).await.map(drop),
            (Some(EntityLocation::Source(found)), 1) => {
                away.store(PARTITION, row, &found.etag).await.map(drop)
            }
            (Some(EntityLocation::Destination(found)), 0) => {
                back.store(PARTITION, row, &found.etag).await.map(drop)
            }
            _ => Ok(()),
        }
    }

    /// The next change of a row; `None` if it can't change now.
    pub async fn next(&self, row: &str, random: u32) -> Result<Option<Op>> {
        let number = match self.pattern {
            Pattern::Archive => match self.archives().0.find::<Entity>(PARTITION, row).await? {
                // Not in the first: perhaps it is moving back.
                None if self.archives().1.find::<Entity>(PARTITION, row).await?.is_some() => return Ok(None),
                None | Some(EntityLocation::Destination(_)) => Some(0),
                Some(EntityLocation::Source(_)) => Some(1),
                Some(_) => return Ok(None),
            },
            Pattern::Queue => Some(1),
            _ => Some(random).filter(|random| random % 4 > 0),
        };
        Ok(Some(Op { row: row.to_owned(), number }))
    }

    /// Heals until nothing is left to do.
    pub async fn heal(&self) -> Result<()> {
        match self.pattern {
            Pattern::Indexed => self.indexed().outbox().run_until_empty().await.map(drop),
            Pattern::Intra | Pattern::Lists => Ok(()),
            Pattern::Archive => {
                self.archives().0.outbox().run_until_empty().await?;
                self.archives().1.outbox().run_until_empty().await.map(drop)
            }
            Pattern::Queue => {
                self.worker().run_until_empty(|message| self.handled(message.id)).await.map(drop)
            }
            Pattern::Queued => self.queued().run_until_empty().await.map(drop),
        }
    }

    /// Heals once what others have left.
    pub async fn heal_once(&self) -> Result<()> {
        match self.pattern {
            Pattern::Indexed => self.indexed().outbox().heal().await.map(drop),
            Pattern::Intra | Pattern::Lists => Ok(()),
            Pattern::Archive => {
                self.archives().0.outbox().heal().await?;
                self.archives().1.outbox().heal().await.map(drop)
            }
            Pattern::Queue => {
                self.worker().run_until_idle(|message| self.handled(message.id)).await.map(drop)
            }
            Pattern::Queued => self.queued().heal().await.map(drop),
        }
    }

    async fn handled(&self, id: String) -> Result<()> {
        self.other.upsert_replace(&Entity::new(PARTITION, id).with("Number", 1)).await.map(drop)
    }

    /// Messages whose steps are not all made, with their tables.
    pub async fn messages(&self) -> Vec<(&Table, Entity)> {
        let mut messages = Vec::new();
        for table in [&self.table, &self.other] {
            for prefix in ["~outbox~m~", "queue~m~"] {
                let rows: Vec<StoredEntity<Entity>> =
                    table.query().filter(row_key().starts_with(prefix)).all().await.unwrap();
                messages.extend(rows.into_iter().map(|row| (table, row.into_inner())));
            }
        }
        messages
    }

    /// Checks that everything is consistent, and returns the state.
    pub async fn state(&self) -> State {
        let rows = |table: &Table| table.query().all::<Entity>();
        let (table, other) = (rows(&self.table).await.unwrap(), rows(&self.other).await.unwrap());
        let (table, other) = (inner(table), inner(other));
        match self.pattern {
            Pattern::Indexed => judge::indexed(&table, &other),
            Pattern::Intra => judge::intra(&table),
            Pattern::Lists => judge::lists(&table),
            Pattern::Archive => judge::archive(&table, &other),
            Pattern::Queue => judge::queue(&table, &other),
            Pattern::Queued => judge::queued(&table, &other),
        }
    }

    pub fn indexed(&self) -> IndexedTable {
        IndexedTable::new(self.outbox(&self.table))
            .with(InterIndex::new("email", self.other.name(), "Email"))
            .with(ListIndex::new("team", self.other.name(), "Team").spread(2))
    }

    fn intra(&self) -> IntraIndex {
        IntraIndex::new(&self.table, "id").unique("email", "Email").index("team", "Team")
    }

    fn lists(&self) -> PartitionLists {
        PartitionLists::new(&self.table).index("email", "Email").index("team", "Team")
    }

    /// The archive, and the one that moves back.
    fn archives(&self) -> (Archive, Archive) {
        let way = |from: &Table, to: &Table| Archive::with_outbox(self.outbox(from), to.name()).unwrap();
        (way(&self.table, &self.other), way(&self.other, &self.table))
    }

    fn outbox(&self, table: &Table) -> Outbox {
        let outbox = Outbox::new(&self.service, table.name()).unwrap().attempts_max(1000);
        let outbox = outbox.pauses(Duration::from_millis(5), Duration::from_millis(20));
        match self.time {
            Time::Hasty => outbox.lease_time(Duration::from_millis(10)),
            Time::Later => outbox.clock(later),
        }
    }

    fn queue(&self) -> Queue {
        let queue = Queue::new(&self.table, PARTITION).dequeues_max(1000);
        match self.time {
            Time::Hasty => queue,
            Time::Later => queue.clock(later),
        }
    }

    fn worker(&self) -> Worker {
        let pause = Duration::from_millis(5);
        let worker = Worker::new(self.queue()).at_once(4).idle_pause(pause).pauses(pause, pause);
        match self.time {
            Time::Hasty => worker.lease_time(Duration::from_millis(10)),
            Time::Later => worker,
        }
    }
}

fn later() -> DateTime {
    DateTime::now().plus(Duration::from_secs(3600))
}

/// Emails are unique, teams are shared, and both depend on the number.
pub fn entity(row: &str, number: u32) -> Entity {
    Entity::new(PARTITION, row)
        .with("Number", i32::try_from(number).unwrap())
        .with("Email", format!("{row}/{}@x", number % 3))
        .with("Team", format!("team {}", number % 2))
}

/// `None` if there is no such row.
fn found(answer: Result<StoredEntity<Entity>>) -> Result<Option<StoredEntity<Entity>>> {
    match answer {
        Ok(row) => Ok(Some(row)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

fn inner(rows: Vec<StoredEntity<Entity>>) -> Vec<Entity> {
    rows.into_iter().map(StoredEntity::into_inner).collect()
}

/// Drops the tables of a world.
pub async fn drop_tables(world: &World) {
    world.table.drop().await.unwrap();
    world.other.drop().await.unwrap();
    world.messages.drop().await.unwrap();
}
