//! Short functions that make the tables, rows and scans of the promises.

use std::time::Duration;

use model::{AccountName, EntityKey, Key, KeyRange, ServiceKind, TableName, Value, ValueRef};
use store::{
    Budget, Change, Condition, Error, FaultKind, Page, RowDraft, RowOperation, Scan, StoredName, TableRef,
    Transaction,
};

use crate::Shared;

pub fn account(name: &str) -> AccountName {
    AccountName::parse(name).unwrap()
}

pub fn table(name: &str) -> TableRef {
    TableRef::table(account("devstoreaccount1"), TableName::parse(name).unwrap())
}

/// What another service keeps as a table.
pub fn of_service(service: ServiceKind, name: &str) -> TableRef {
    let name = StoredName::parse(service, name).unwrap();
    TableRef { account: account("devstoreaccount1"), service, name }
}

pub fn key(partition: &str, row: &str) -> EntityKey {
    EntityKey::parse(partition, row).unwrap()
}

pub fn draft(properties: &[(&str, Value)]) -> RowDraft {
    RowDraft::new(properties.iter().map(|(name, value)| (*name, value.as_ref())))
}

pub fn number(value: i32) -> RowDraft {
    draft(&[("N", Value::Int32(value))])
}

pub fn insert(partition: &str, row: &str, value: i32) -> Transaction {
    Transaction::of_one(key(partition, row), Condition::Absent, Change::Put(number(value)))
}

pub(crate) fn write(row: &str, condition: Condition, change: Change) -> RowOperation {
    RowOperation { row: Key::parse(row).unwrap(), condition, change }
}

pub(crate) fn group(partition: &str, operations: Vec<RowOperation>) -> Transaction {
    Transaction::new(Key::parse(partition).unwrap(), operations).unwrap()
}

pub fn scan(ranges: Vec<KeyRange>, rows: usize) -> Scan {
    Scan {
        ranges,
        budget: Budget { rows, bytes: usize::MAX, time: Duration::from_secs(60), examined: u64::MAX },
        filter: None,
        lasts: false,
    }
}

pub(crate) fn keys(page: &Page) -> Vec<String> {
    page.entities.iter().map(|entity| format!("{}|{}", entity.partition, entity.row_key)).collect()
}

pub(crate) async fn value_of(engine: &Shared, table: &TableRef, partition: &str, row: &str) -> Option<i32> {
    let row = engine.get(table, &key(partition, row)).await.unwrap()?;
    match row.raw().open().unwrap().property("N") {
        Some(ValueRef::Int32(value)) => Some(value),
        other => panic!("N is {other:?}"),
    }
}

pub(crate) async fn created(engine: &Shared, name: &str) -> TableRef {
    let table = table(name);
    engine.create_table(&table, None).await.unwrap();
    table
}

pub(crate) async fn filled(engine: &Shared) -> TableRef {
    let table = created(engine, "Books").await;
    for partition in 0..4 {
        let operations = (0..50).map(|row| {
            write(&format!("r{row:02}"), Condition::Absent, Change::Put(number(partition * 100 + row)))
        });
        engine.apply(&table, group(&format!("p{partition}"), operations.collect())).await.unwrap();
    }
    table
}

/// The kind of the fault; panics if the outcome is something else.
pub fn fault_kind<T: std::fmt::Debug>(outcome: Result<T, Error>) -> FaultKind {
    match outcome {
        Err(Error::Fault(fault)) => fault.kind(),
        other => panic!("{other:?}"),
    }
}
