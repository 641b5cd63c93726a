//! The in-memory engine with a list of its calls, and helpers that many tests use.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use model::{
    AccountName, Cut, DateTime, Entity, EntityKey, KeyRange, Properties, Refusal, ServiceKind, TableName,
    Value, ValueCow,
};
use service::{EntityWrite, Error, Service};
use store::{
    Change, Engine, MemoryEngine, Page, Scan, StoredName, StoredRow, TableRef, TablesPage, Transaction,
};
use store_suite::{EngineDouble, TestEngine};

#[derive(Default)]
pub struct Recorder {
    engine: MemoryEngine,
    asked: Mutex<Vec<String>>,
    /// The error of the next call.
    error: Mutex<Option<store::Error>>,
    /// The row that the next `get` returns.
    row: Mutex<Option<StoredRow>>,
}

impl Recorder {
    fn note(&self, asked: String) -> Result<(), store::Error> {
        self.asked.lock().unwrap().push(asked);
        self.error.lock().unwrap().take().map_or(Ok(()), Err)
    }
}

#[async_trait]
impl EngineDouble for Recorder {
    fn engine(&self) -> &dyn Engine {
        &self.engine
    }

    async fn create_table(&self, table: &TableRef, metadata: Option<Bytes>) -> Result<(), store::Error> {
        self.note(format!("create {}", table.name))?;
        self.engine.create_table(table, metadata).await
    }

    async fn drop_table(&self, table: &TableRef) -> Result<(), store::Error> {
        self.note(format!("drop {}", table.name))?;
        self.engine.drop_table(table).await
    }

    async fn find_table(&self, table: &TableRef) -> Result<StoredName, store::Error> {
        self.note(format!("find {}", table.name))?;
        self.engine.find_table(table).await
    }

    async fn list_tables(
        &self,
        account: &AccountName,
        service: ServiceKind,
        from: &str,
        limit: usize,
    ) -> Result<TablesPage, store::Error> {
        self.note(format!("list {limit} from {from:?}"))?;
        self.engine.list_tables(account, service, from, limit).await
    }

    async fn get(&self, table: &TableRef, key: &EntityKey) -> Result<Option<StoredRow>, store::Error> {
        self.note(format!("get {}/{}", key.partition.as_str(), key.row.as_str()))?;
        if let Some(row) = self.row.lock().unwrap().take() {
            return Ok(Some(row));
        }
        self.engine.get(table, key).await
    }

    async fn scan(&self, table: &TableRef, scan: Scan) -> Result<Page, store::Error> {
        let ranges: Vec<String> = scan.ranges.iter().map(show_range).collect();
        let filter = if scan.filter.is_some() { " filtered" } else { "" };
        self.note(format!("scan {} for {}{filter}", ranges.join(" "), scan.budget.rows))?;
        self.engine.scan(table, scan).await
    }

    async fn apply(&self, table: &TableRef, transaction: Transaction) -> Result<Vec<DateTime>, store::Error> {
        let rows = transaction.operations().iter().map(|operation| {
            let change = match operation.change {
                Change::Put(_) => "put",
                Change::Merge(_) => "merge",
                Change::Delete => "delete",
            };
            format!("{change} {:?} {}", operation.condition, operation.row.as_str())
        });
        let rows = rows.collect::<Vec<_>>().join(", ");
        self.note(format!("apply {}: {rows}", transaction.partition().as_str()))?;
        self.engine.apply(table, transaction).await
    }
}

/// `a/b..a/c+`: from entity b of partition a up to and including c. `a+` is after all of a.
fn show_range(range: &KeyRange) -> String {
    let cut = |cut: &Cut| match cut {
        Cut::Before(partition, row) => format!("{partition}/{row}"),
        Cut::After(partition, row) => format!("{partition}/{row}+"),
        Cut::AfterPartition(partition) => format!("{partition}+"),
        Cut::End => "end".to_owned(),
    };
    format!("{}..{}", cut(&range.start), cut(&range.end))
}

/// A service, and the calls of its engine.
pub struct Ground {
    pub service: Service,
    pub recorder: Arc<TestEngine<Recorder>>,
}

impl Ground {
    /// With an empty table, whose creation is not in the list of calls.
    pub async fn with(name: &str) -> Self {
        let ground = Self::empty();
        ground.service.create_table(&table(name)).await.unwrap();
        ground.forget();
        ground
    }

    pub fn empty() -> Self {
        let recorder = Arc::new(TestEngine(Recorder::default()));
        Self { service: Service::new(recorder.clone()), recorder }
    }

    /// The calls since the last time.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.recorder.asked.lock().unwrap())
    }

    pub fn forget(&self) {
        self.asked();
    }

    /// The next call of the engine fails with this error.
    pub fn fail_next(&self, error: store::Error) {
        *self.recorder.error.lock().unwrap() = Some(error);
    }

    /// The next get finds these stored bytes.
    pub fn find_next(&self, row: &[u8]) {
        *self.recorder.row.lock().unwrap() = Some(StoredRow::new(row.to_vec()));
    }

    pub async fn insert(&self, name: &str, partition: &str, row: &str, properties: &[(&str, Value)]) {
        let write = EntityWrite::insert(entity(partition, row, properties));
        self.service.write_entity(&table(name), write).await.unwrap();
    }
}

pub fn account() -> AccountName {
    AccountName::parse("shop").unwrap()
}

pub fn table(name: &str) -> TableRef {
    TableRef::table(account(), TableName::parse(name).unwrap())
}

pub fn key(partition: &str, row: &str) -> EntityKey {
    EntityKey::parse(partition, row).unwrap()
}

pub fn entity(partition: &str, row: &str, properties: &[(&str, Value)]) -> Entity<'static> {
    let owned = |(name, value): &(&str, Value)| ((*name).to_owned().into(), ValueCow::Owned(value.clone()));
    let properties = Properties::new(properties.iter().map(owned).collect()).unwrap();
    Entity::new(key(partition, row), properties).unwrap()
}

pub fn number(value: i32) -> Value {
    Value::Int32(value)
}

/// The refusal, and the index of the operation that it is about.
pub fn refusal<T: std::fmt::Debug>(result: Result<T, Error>) -> (Refusal, Option<usize>) {
    match result {
        Err(Error::Refused { refusal, index }) => (refusal, index),
        other => panic!("no refusal: {other:?}"),
    }
}

/// A refusal that is not about one operation of several.
pub fn refused<T: std::fmt::Debug>(result: Result<T, Error>) -> Refusal {
    let (refusal, index) = refusal(result);
    assert_eq!(index, None, "{refusal:?}");
    refusal
}

/// The name of a refusal, whether it is the table's own or shared.
pub fn named(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Shared(shared) => format!("{shared:?}"),
        own => format!("{own:?}"),
    }
}
