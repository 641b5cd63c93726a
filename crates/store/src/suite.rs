//! The promises of [`Engine`], one function each, run against every engine.
//!
//! An engine's crate calls `run` with a function that gives a fresh, empty engine. A broken promise panics.

#![allow(clippy::unwrap_used, reason = "a test by another name: what is unwrapped is what is asserted")]

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::{AccountName, Cut, DateTime, EntityKey, Key, KeyRange, ServiceKind, TableName, Value, ValueRef};

use crate::encoding::row::borrowed;
use crate::{
    Budget, Candidate, Change, Condition, Engine, Error, Fault, Operation, Page, Reason, RowDraft, RowFilter,
    Scan, StoredRow, TableRef, Transaction,
};

type Shared = Arc<dyn Engine>;

pub async fn run<F, Opening>(open: F)
where
    F: Fn() -> Opening,
    Opening: Future<Output = Shared>,
{
    macro_rules! promises {
        ($($promise:ident),* $(,)?) => { $(
            let engine = open().await;
            $promise(engine.clone()).await;
            engine.close().await;
        )* };
    }
    promises!(
        a_table_is_found_in_any_case_under_its_first_name,
        tables_of_accounts_are_apart,
        tables_are_listed_in_order_and_resumed,
        nothing_is_found_in_a_missing_table,
        conditions_hold_as_named,
        a_merge_overlays_and_a_put_replaces,
        a_merge_keeps_within_the_limits,
        a_failing_operation_is_named_and_nothing_is_changed,
        timestamps_only_grow,
        rows_come_in_utf16_order_each_once,
        ranges_read_only_their_rows,
        a_scan_ends_at_its_budget_and_resumes,
        a_filtered_scan_gives_what_its_filter_keeps,
        a_dropped_table_leaves_nothing_behind,
        metadata_lives_and_dies_with_its_owner,
        service_metadata_is_replaced_only_if_it_is_what_was_expected,
        documents_of_two_services_do_not_disturb_each_other,
        accounts_with_tables_or_metadata_are_listed,
        loaded_rows_come_back_byte_for_byte,
        loading_replaces_and_removes,
        later_timestamps_are_above_loaded_ones,
        a_damaged_row_is_not_loaded,
        concurrent_counters_lose_no_step,
        readers_never_see_half_a_transaction,
        concurrent_inserts_have_one_winner,
        a_closed_engine_refuses,
    );
}

pub fn account(name: &str) -> AccountName {
    AccountName::parse(name).unwrap()
}

pub fn table(name: &str) -> TableRef {
    TableRef { account: account("devstoreaccount1"), name: TableName::parse(name).unwrap() }
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

fn write(row: &str, condition: Condition, change: Change) -> Operation {
    Operation { row: Key::parse(row).unwrap(), condition, change }
}

fn group(partition: &str, operations: Vec<Operation>) -> Transaction {
    Transaction::new(Key::parse(partition).unwrap(), operations).unwrap()
}

pub fn scan(ranges: Vec<KeyRange>, rows: usize) -> Scan {
    Scan {
        ranges,
        budget: Budget { rows, bytes: usize::MAX, time: Duration::from_secs(60) },
        filter: None,
        lasts: false,
    }
}

fn keys(page: &Page) -> Vec<String> {
    page.entities.iter().map(|entity| format!("{}|{}", entity.partition, entity.row_key)).collect()
}

async fn value_of(engine: &Shared, table: &TableRef, partition: &str, row: &str) -> Option<i32> {
    let row = engine.get(table, &key(partition, row)).await.unwrap()?;
    match row.raw().open().unwrap().property("N") {
        Some(ValueRef::Int32(value)) => Some(value),
        other => panic!("N is {other:?}"),
    }
}

async fn created(engine: &Shared, name: &str) -> TableRef {
    let table = table(name);
    engine.create_table(&table).await.unwrap();
    table
}

async fn a_table_is_found_in_any_case_under_its_first_name(engine: Shared) {
    created(&engine, "Books").await;
    assert_eq!(engine.find_table(&table("bOOKS")).await.unwrap().as_str(), "Books");
    assert!(matches!(engine.create_table(&table("BOOKS")).await, Err(Error::TableAlreadyExists)));
    engine.apply(&table("books"), insert("p", "r", 7)).await.unwrap();
    assert_eq!(value_of(&engine, &table("Books"), "p", "r").await, Some(7));
}

async fn tables_of_accounts_are_apart(engine: Shared) {
    let mine = created(&engine, "Books").await;
    let theirs = TableRef { account: account("another"), name: mine.name.clone() };
    assert!(matches!(engine.find_table(&theirs).await, Err(Error::TableNotFound)));
    engine.create_table(&theirs).await.unwrap();
    engine.apply(&mine, insert("p", "r", 1)).await.unwrap();
    assert_eq!(value_of(&engine, &theirs, "p", "r").await, None);
    engine.drop_table(&theirs).await.unwrap();
    assert_eq!(value_of(&engine, &mine, "p", "r").await, Some(1));
}

async fn tables_are_listed_in_order_and_resumed(engine: Shared) {
    for name in ["delta", "Beta", "alpha", "Gamma", "betaMax"] {
        created(&engine, name).await;
    }
    engine.create_table(&TableRef { account: account("another"), ..table("zeta") }).await.unwrap();
    let (mut seen, mut from) = (Vec::new(), Some(String::new()));
    while let Some(start) = from {
        let page = engine.list_tables(&account("devstoreaccount1"), &start, 2).await.unwrap();
        assert!(page.names.len() <= 2);
        seen.extend(page.names.iter().map(|name| name.as_str().to_owned()));
        from = page.next;
    }
    assert_eq!(seen, ["alpha", "Beta", "betaMax", "delta", "Gamma"]);
    let page = engine.list_tables(&account("devstoreaccount1"), "betb", 10).await.unwrap();
    assert_eq!(page.names.len(), 2, "a start that is no table stands for the next one");
    assert_eq!(page.next, None);
}

async fn nothing_is_found_in_a_missing_table(engine: Shared) {
    let missing = table("Missing");
    assert!(matches!(engine.find_table(&missing).await, Err(Error::TableNotFound)));
    assert!(matches!(engine.drop_table(&missing).await, Err(Error::TableNotFound)));
    assert!(matches!(engine.get(&missing, &key("p", "r")).await, Err(Error::TableNotFound)));
    assert!(matches!(engine.apply(&missing, insert("p", "r", 1)).await, Err(Error::TableNotFound)));
    assert!(matches!(engine.scan(&missing, scan(vec![KeyRange::all()], 1)).await, Err(Error::TableNotFound)));
    assert!(matches!(engine.table_metadata(&missing).await, Err(Error::TableNotFound)));
    assert!(matches!(engine.set_table_metadata(&missing, Bytes::new()).await, Err(Error::TableNotFound)));
}

async fn conditions_hold_as_named(engine: Shared) {
    let table = created(&engine, "Books").await;
    let stored = engine.apply(&table, insert("p", "here", 1)).await.unwrap()[0];
    let stale = DateTime::from_ticks(stored.ticks() - 1).unwrap();
    let cases = [
        ("here", Condition::Absent, Some(Reason::Exists)),
        ("here", Condition::Version(stale), Some(Reason::VersionDiffers)),
        ("gone", Condition::Exists, Some(Reason::Missing)),
        ("gone", Condition::Version(stored), Some(Reason::Missing)),
        ("here", Condition::Version(stored), None),
        ("here", Condition::Exists, None),
        ("here", Condition::Anything, None),
        ("new1", Condition::Absent, None),
        ("new2", Condition::Anything, None),
    ];
    for (row, condition, expected) in cases {
        for change in [Change::Put(number(2)), Change::Merge(number(2)), Change::Delete] {
            // A delete would spoil the later cases; each refusal is tried with it all the same.
            if expected.is_none() && !matches!(change, Change::Put(_)) {
                continue;
            }
            let answer = engine.apply(&table, Transaction::of_one(key("p", row), condition, change)).await;
            match (answer, &expected) {
                (Ok(_), None) => {}
                (Err(Error::Rejected { index: 0, reason }), Some(wanted)) if reason == *wanted => {}
                (other, _) => panic!("{row} {condition:?}: {other:?}, not {expected:?}"),
            }
        }
    }
    let delete = |condition| Transaction::of_one(key("p", "here"), condition, Change::Delete);
    engine.apply(&table, delete(Condition::Exists)).await.unwrap();
    assert_eq!(value_of(&engine, &table, "p", "here").await, None);
    let again = engine.apply(&table, delete(Condition::Exists)).await;
    assert!(matches!(again, Err(Error::Rejected { index: 0, reason: Reason::Missing })));
}

async fn a_merge_overlays_and_a_put_replaces(engine: Shared) {
    let table = created(&engine, "Books").await;
    let first =
        draft(&[("Z", Value::Int32(1)), ("A", Value::String("old".into())), ("M", Value::Boolean(true))]);
    let over = draft(&[("N", Value::Int64(5)), ("A", Value::Double(1.5))]);
    let names = async || {
        let row = engine.get(&table, &key("p", "r")).await.unwrap().unwrap();
        row.raw()
            .open()
            .unwrap()
            .properties()
            .map(|(name, value)| format!("{name}={value:?}"))
            .collect::<Vec<_>>()
    };
    let apply = async |change| {
        engine.apply(&table, Transaction::of_one(key("p", "r"), Condition::Anything, change)).await.unwrap();
    };
    apply(Change::Put(first.clone())).await;
    assert_eq!(names().await, ["Z=Int32(1)", "A=String(\"old\")", "M=Boolean(true)"]);
    apply(Change::Merge(over.clone())).await;
    assert_eq!(names().await, ["A=Double(1.5)", "M=Boolean(true)", "N=Int64(5)", "Z=Int32(1)"]);
    apply(Change::Put(over)).await;
    assert_eq!(names().await, ["N=Int64(5)", "A=Double(1.5)"]);
    apply(Change::Delete).await;
    apply(Change::Merge(first)).await;
    assert_eq!(names().await, ["Z=Int32(1)", "A=String(\"old\")", "M=Boolean(true)"]);
}

async fn a_merge_keeps_within_the_limits(engine: Shared) {
    let table = created(&engine, "Books").await;
    let many = |prefix: &str| -> Vec<model::Property> {
        let property = |i| model::Property { name: format!("{prefix}{i}"), value: Value::Boolean(true) };
        (0..130).map(property).collect()
    };
    let (a, b) = (many("A"), many("B"));
    let apply = async |change| {
        engine.apply(&table, Transaction::of_one(key("p", "r"), Condition::Anything, change)).await
    };
    apply(Change::Put(RowDraft::new(borrowed(&a)))).await.unwrap();
    let refused = apply(Change::Merge(RowDraft::new(borrowed(&b)))).await;
    let expected = Reason::OverLimit(model::Refusal::TooManyProperties);
    assert!(matches!(refused, Err(Error::Rejected { index: 0, reason }) if reason == expected));

    let large = |name: char| -> Vec<model::Property> {
        let value = || Value::Binary(vec![7; 64 * 1024]);
        (0..9).map(|i| model::Property { name: format!("{name}{i}"), value: value() }).collect()
    };
    apply(Change::Put(RowDraft::new(borrowed(&large('A'))))).await.unwrap();
    let refused = apply(Change::Merge(RowDraft::new(borrowed(&large('B'))))).await;
    let expected = Reason::OverLimit(model::Refusal::EntityTooLarge);
    assert!(matches!(refused, Err(Error::Rejected { index: 0, reason }) if reason == expected));
}

async fn a_failing_operation_is_named_and_nothing_is_changed(engine: Shared) {
    let table = created(&engine, "Books").await;
    engine.apply(&table, insert("p", "b", 1)).await.unwrap();
    engine.apply(&table, insert("p", "c", 1)).await.unwrap();
    let operations = vec![
        write("a", Condition::Absent, Change::Put(number(2))),
        write("b", Condition::Exists, Change::Delete),
        write("c", Condition::Absent, Change::Put(number(2))),
        write("d", Condition::Exists, Change::Put(number(2))),
    ];
    let refused = engine.apply(&table, group("p", operations)).await;
    assert!(matches!(refused, Err(Error::Rejected { index: 2, reason: Reason::Exists })), "{refused:?}");
    let page = engine.scan(&table, scan(vec![KeyRange::all()], 10)).await.unwrap();
    assert_eq!(keys(&page), ["p|b", "p|c"]);
    assert_eq!(value_of(&engine, &table, "p", "b").await, Some(1));
}

async fn timestamps_only_grow(engine: Shared) {
    let table = created(&engine, "Books").await;
    let mut last = DateTime::MIN;
    for round in 0..200 {
        let change = if round % 7 == 6 { Change::Delete } else { Change::Put(number(round)) };
        let deleted = matches!(change, Change::Delete);
        let operation = Transaction::of_one(key("p", "r"), Condition::Anything, change);
        let stamp = engine.apply(&table, operation).await.unwrap()[0];
        assert!(stamp > last, "{stamp} after {last}");
        if !deleted {
            let row = engine.get(&table, &key("p", "r")).await.unwrap().unwrap();
            assert_eq!(row.raw().timestamp().unwrap(), stamp);
        }
        last = stamp;
    }
}

async fn rows_come_in_utf16_order_each_once(engine: Shared) {
    let table = created(&engine, "Books").await;
    let texts =
        ["", " ", "!", "A", "AA", "Z", "a", "b", "é", "\u{d7ff}", "𝄞", "\u{10ffff}", "\u{e000}", "\u{ffff}"];
    for partition in texts.iter().rev() {
        for row in texts {
            engine.apply(&table, insert(partition, row, 1)).await.unwrap();
        }
    }
    let page = engine.scan(&table, scan(vec![KeyRange::all()], 1000)).await.unwrap();
    let expected: Vec<String> =
        texts.iter().flat_map(|p| texts.iter().map(move |r| format!("{p}|{r}"))).collect();
    assert_eq!(keys(&page), expected);
    assert_eq!(page.next, None);
}

async fn filled(engine: &Shared) -> TableRef {
    let table = created(engine, "Books").await;
    for partition in 0..4 {
        let operations = (0..50).map(|row| {
            write(&format!("r{row:02}"), Condition::Absent, Change::Put(number(partition * 100 + row)))
        });
        engine.apply(&table, group(&format!("p{partition}"), operations.collect())).await.unwrap();
    }
    table
}

async fn ranges_read_only_their_rows(engine: Shared) {
    let table = filled(&engine).await;
    let between = |start, end| KeyRange { start, end };
    let cases = [
        (vec![KeyRange::entity("p1", "r07")], 1),
        (vec![KeyRange::entity("p1", "r99")], 0),
        (vec![KeyRange::partition("p2")], 50),
        (vec![between(Cut::before("p1", "r10"), Cut::before("p1", "r20"))], 10),
        (vec![between(Cut::after("p1", "r10"), Cut::after("p1", "r20"))], 10),
        (vec![between(Cut::after_partition("p0"), Cut::before_partition("p3"))], 100),
        (vec![KeyRange::entity("p0", "r00"), KeyRange::partition("p1"), KeyRange::entity("p3", "r49")], 52),
        (vec![between(Cut::before("p9", ""), Cut::End)], 0),
        (vec![], 0),
        (vec![KeyRange::all()], 200),
    ];
    for (ranges, expected) in cases {
        let page = engine.scan(&table, scan(ranges.clone(), 1000)).await.unwrap();
        assert_eq!(page.entities.len(), expected, "{ranges:?}");
        assert_eq!(page.examined, expected as u64, "{ranges:?} must look at nothing else");
        for entity in page.entities.iter() {
            let (partition, row) = (entity.partition, entity.row_key);
            assert!(ranges.iter().any(|range| range.contains(partition, row)), "{ranges:?}");
        }
    }
}

async fn a_scan_ends_at_its_budget_and_resumes(engine: Shared) {
    let table = filled(&engine).await;
    let ranges = [KeyRange::partition("p0"), KeyRange::partition("p2")];
    for (rows, bytes) in [(7, usize::MAX), (50, usize::MAX), (100, usize::MAX), (1000, 100), (1000, 1)] {
        let (mut seen, mut from) = (Vec::new(), Cut::start());
        let mut pages = 0;
        loop {
            let rest = KeyRange { start: from.clone(), end: Cut::End };
            let left: Vec<_> = ranges.iter().map(|r| r.intersect(&rest)).filter(|r| !r.is_empty()).collect();
            let budget = Budget { rows, bytes, time: Duration::from_secs(60) };
            let page =
                engine.scan(&table, Scan { ranges: left, budget, filter: None, lasts: false }).await.unwrap();
            assert!(page.entities.len() <= rows && !page.entities.is_empty());
            seen.extend(keys(&page));
            pages += 1;
            match page.next {
                Some(next) => from = Cut::before(next.partition.as_str(), next.row.as_str()),
                None => break,
            }
        }
        let row = |p: &'static str| (0..50).map(move |r| format!("{p}|r{r:02}"));
        assert_eq!(
            seen,
            row("p0").chain(row("p2")).collect::<Vec<_>>(),
            "pages of {rows} rows, {bytes} bytes"
        );
        if bytes == usize::MAX {
            assert_eq!(pages, 100_usize.div_ceil(rows), "exactly full pages end without a token");
        } else {
            assert!(pages > 10);
        }
    }
    let budget = Budget { rows: 1000, bytes: usize::MAX, time: Duration::ZERO };
    let hurried = Scan { ranges: vec![KeyRange::all()], budget, filter: None, lasts: false };
    let page = engine.scan(&table, hurried).await.unwrap();
    assert!(page.entities.len() < 200 && page.next.is_some(), "no time left: a short page and a token");
}

struct Even;

impl RowFilter for Even {
    fn keep(&self, candidate: Candidate<'_>) -> Result<bool, Fault> {
        let (partition, row_key) = candidate.keys()?;
        assert!(partition.starts_with('p') && row_key.starts_with('r'));
        let mut found = [None];
        candidate.row.find(&["N"], &mut found)?;
        Ok(matches!(found, [Some(ValueRef::Int32(n))] if n % 10 == 0))
    }
}

async fn a_filtered_scan_gives_what_its_filter_keeps(engine: Shared) {
    let table = filled(&engine).await;
    let page = engine
        .scan(&table, Scan { filter: Some(Arc::new(Even)), ..scan(vec![KeyRange::all()], 7) })
        .await
        .unwrap();
    assert_eq!(keys(&page), ["p0|r00", "p0|r10", "p0|r20", "p0|r30", "p0|r40", "p1|r00", "p1|r10"]);
    assert_eq!(page.next, Some(key("p1", "r11")));
    let budget = Budget { rows: 7, bytes: usize::MAX, time: Duration::ZERO };
    let ranges = vec![KeyRange { start: Cut::before("p0", "r41"), end: Cut::End }];
    let page = engine
        .scan(&table, Scan { ranges, budget, filter: Some(Arc::new(Nothing)), lasts: false })
        .await
        .unwrap();
    assert!(page.entities.is_empty() && page.next.is_some(), "an empty page with a token is legal");
}

struct Nothing;

impl RowFilter for Nothing {
    fn keep(&self, _: Candidate<'_>) -> Result<bool, Fault> {
        Ok(false)
    }
}

async fn a_dropped_table_leaves_nothing_behind(engine: Shared) {
    let table = filled(&engine).await;
    engine.set_table_metadata(&table, Bytes::from_static(b"policies")).await.unwrap();
    engine.drop_table(&table).await.unwrap();
    assert!(matches!(engine.get(&table, &key("p0", "r00")).await, Err(Error::TableNotFound)));
    assert!(matches!(engine.drop_table(&table).await, Err(Error::TableNotFound)));
    engine.create_table(&table).await.unwrap();
    let page = engine.scan(&table, scan(vec![KeyRange::all()], 10)).await.unwrap();
    assert!(page.entities.is_empty());
    assert_eq!(engine.table_metadata(&table).await.unwrap(), None);
    engine.apply(&table, insert("p0", "r00", 9)).await.unwrap();
    assert_eq!(value_of(&engine, &table, "p0", "r00").await, Some(9));
}

async fn metadata_lives_and_dies_with_its_owner(engine: Shared) {
    let table = created(&engine, "Books").await;
    let (mine, theirs) = (account("devstoreaccount1"), account("another"));
    assert_eq!(engine.table_metadata(&table).await.unwrap(), None);
    assert_eq!(engine.service_metadata(&mine, ServiceKind::Table).await.unwrap(), None);
    for text in [&b"one"[..], b"two", b""] {
        engine.set_table_metadata(&table, Bytes::copy_from_slice(text)).await.unwrap();
        assert_eq!(engine.table_metadata(&table).await.unwrap().as_deref(), Some(text));
        let before = engine.service_metadata(&mine, ServiceKind::Table).await.unwrap();
        let text_of_service = Bytes::copy_from_slice(text);
        assert!(
            engine
                .replace_service_metadata(&mine, ServiceKind::Table, before, text_of_service)
                .await
                .unwrap()
        );
        assert_eq!(engine.service_metadata(&mine, ServiceKind::Table).await.unwrap().as_deref(), Some(text));
    }
    assert_eq!(engine.service_metadata(&theirs, ServiceKind::Table).await.unwrap(), None);
}

async fn service_metadata_is_replaced_only_if_it_is_what_was_expected(engine: Shared) {
    let mine = account("devstoreaccount1");
    let document = |text: &'static str| Bytes::from_static(text.as_bytes());
    let replace = async |expected: Option<&'static str>, by| {
        let expected = expected.map(document);
        engine.replace_service_metadata(&mine, ServiceKind::Table, expected, document(by)).await.unwrap()
    };
    assert!(!replace(Some("one"), "two").await, "nothing is there");
    assert_eq!(engine.service_metadata(&mine, ServiceKind::Table).await.unwrap(), None);
    assert!(replace(None, "one").await);
    assert!(!replace(None, "two").await, "something is there");
    assert!(!replace(Some("other"), "two").await);
    assert_eq!(engine.service_metadata(&mine, ServiceKind::Table).await.unwrap(), Some(document("one")));
    assert!(replace(Some("one"), "two").await);
    // Of many who start from the same, one gets through.
    let attempts = (0..8).map(|n| {
        let (engine, mine) = (engine.clone(), mine.clone());
        let by = Bytes::from(format!("by {n}"));
        tokio::spawn(async move {
            let expected = Some(Bytes::from_static(b"two"));
            engine.replace_service_metadata(&mine, ServiceKind::Table, expected, by).await
        })
    });
    let mut replaced = 0;
    for attempt in attempts.collect::<Vec<_>>() {
        replaced += usize::from(attempt.await.unwrap().unwrap());
    }
    assert_eq!(replaced, 1);
}

async fn documents_of_two_services_do_not_disturb_each_other(engine: Shared) {
    let mine = account("devstoreaccount1");
    let document = |service: ServiceKind, version: u8| Bytes::from(format!("{service:?} {version}"));
    for service in ServiceKind::ALL {
        // What another service has stored is nothing that this one could expect.
        assert_eq!(engine.service_metadata(&mine, service).await.unwrap(), None);
        for other in ServiceKind::ALL {
            let by = Bytes::from_static(b"never");
            let replaced =
                engine.replace_service_metadata(&mine, service, Some(document(other, 1)), by).await;
            assert!(!replaced.unwrap());
        }
        assert!(engine.replace_service_metadata(&mine, service, None, document(service, 1)).await.unwrap());
    }
    for changed in ServiceKind::ALL {
        let (before, after) = (document(changed, 1), document(changed, 2));
        assert!(engine.replace_service_metadata(&mine, changed, Some(before), after).await.unwrap());
        for service in ServiceKind::ALL {
            let expected = document(service, if service <= changed { 2 } else { 1 });
            assert_eq!(engine.service_metadata(&mine, service).await.unwrap(), Some(expected));
        }
    }
    assert_eq!(engine.list_accounts().await.unwrap(), [mine], "an account is listed once");
}

async fn accounts_with_tables_or_metadata_are_listed(engine: Shared) {
    assert_eq!(engine.list_accounts().await.unwrap(), []);
    let of = |owner: &str, name| TableRef { account: account(owner), ..table(name) };
    for table in [of("zeta", "Books"), of("beta", "Books"), of("beta", "Authors")] {
        engine.create_table(&table).await.unwrap();
    }
    for (owner, service) in [("gamma", ServiceKind::Queue), ("beta", ServiceKind::Table)] {
        let cors = Bytes::from_static(b"cors");
        assert!(engine.replace_service_metadata(&account(owner), service, None, cors).await.unwrap());
    }
    assert_eq!(engine.list_accounts().await.unwrap(), ["beta", "gamma", "zeta"].map(account));
    engine.drop_table(&of("zeta", "Books")).await.unwrap();
    assert_eq!(engine.list_accounts().await.unwrap(), ["beta", "gamma"].map(account));
}

/// A row as some engine may have it, of that long ago or, below zero, that far in the future.
fn stored(properties: &[(&str, Value)], seconds_ago: i64) -> StoredRow {
    let ticks = DateTime::now().ticks() - seconds_ago * 10_000_000;
    StoredRow::new(draft(properties).stamp(DateTime::from_ticks(ticks).unwrap()).as_bytes().to_vec())
}

fn partition(text: &str) -> Key {
    Key::parse(text).unwrap()
}

/// All rows of the table.
async fn contents(engine: &Shared, table: &TableRef) -> Vec<(String, Vec<u8>)> {
    let page = engine.scan(table, scan(vec![KeyRange::all()], 1000)).await.unwrap();
    let rows = page.entities.iter().map(|entity| entity.row.bytes().to_vec());
    keys(&page).into_iter().zip(rows).collect()
}

async fn loaded_rows_come_back_byte_for_byte(engine: Shared) {
    let table = created(&engine, "Books").await;
    let shapes = [
        vec![],
        vec![("Z", Value::Int32(1)), ("A", Value::String("é𝄞".to_owned()))],
        vec![("B", Value::Binary(vec![7; 60_000])), ("C", Value::Binary(vec![8; 60_000]))],
    ];
    let mut expected = Vec::new();
    for owner in ["", "p", "é𝄞"] {
        let rows: Vec<(Key, StoredRow)> = (0..model::limits::BATCH_OPERATIONS_MAX)
            .map(|n| {
                (partition(&format!("r{n:03}")), stored(&shapes[n % if n < 9 { 3 } else { 2 }], n as i64))
            })
            .collect();
        expected.extend(
            rows.iter()
                .map(|(row, stored)| (format!("{owner}|{}", row.as_str()), stored.raw().bytes().to_vec())),
        );
        let rows = rows.into_iter().map(|(row, stored)| (row, Some(stored))).collect::<Vec<_>>();
        // Whoever got no answer asks again.
        engine.load(&table, &partition(owner), rows.clone()).await.unwrap();
        engine.load(&table, &partition(owner), rows).await.unwrap();
    }
    assert_eq!(contents(&engine, &table).await, expected);
    let got = engine.get(&table, &key("p", "r001")).await.unwrap().unwrap();
    assert_eq!(got.raw().bytes(), expected[101].1);
    let version = got.raw().timestamp().unwrap();
    let update = Transaction::of_one(key("p", "r001"), Condition::Version(version), Change::Merge(number(1)));
    assert!(engine.apply(&table, update).await.unwrap()[0] > version);
    let gone = TableRef { account: account("another"), ..table };
    let refused = engine.load(&gone, &partition("p"), vec![(partition("r"), Some(stored(&[], 0)))]).await;
    assert!(matches!(refused, Err(Error::TableNotFound)));
}

async fn loading_replaces_and_removes(engine: Shared) {
    let table = created(&engine, "Books").await;
    for row in ["a", "b", "c"] {
        engine.apply(&table, insert("p", row, 1)).await.unwrap();
    }
    // Older than what it takes the place of.
    let old = stored(&[("N", Value::Int32(7))], 1_000_000);
    let rows = vec![
        (partition("a"), Some(old.clone())),
        (partition("b"), None),
        (partition("d"), Some(old.clone())),
        (partition("missing"), None),
    ];
    engine.load(&table, &partition("p"), rows).await.unwrap();
    let found = contents(&engine, &table).await;
    let old = old.raw().bytes();
    assert_eq!((found[0].0.as_str(), &found[0].1[..]), ("p|a", old));
    assert_eq!((found[1].0.as_str(), found[1].1 == old), ("p|c", false));
    assert_eq!((found[2].0.as_str(), &found[2].1[..]), ("p|d", old));
    assert_eq!(found.len(), 3);
    let again = engine.apply(&table, insert("p", "b", 2)).await;
    assert!(again.is_ok(), "a removed row is no longer there for a condition: {again:?}");
    let rows = ["a", "b", "c", "d"].map(|row| (partition(row), None));
    engine.load(&table, &partition("p"), rows.to_vec()).await.unwrap();
    assert_eq!(contents(&engine, &table).await, []);
}

async fn later_timestamps_are_above_loaded_ones(engine: Shared) {
    let table = created(&engine, "Books").await;
    for (row, seconds_ago) in [("past", 1_000), ("now", 0), ("future", -100_000)] {
        let loaded = stored(&[("N", Value::Int32(1))], seconds_ago);
        let stamp = loaded.raw().timestamp().unwrap();
        engine.load(&table, &partition("p"), vec![(partition(row), Some(loaded))]).await.unwrap();
        for (change, number) in [(Change::Merge(number(2)), 2), (Change::Put(number(3)), 3)] {
            let write = Transaction::of_one(key("p", row), Condition::Anything, change);
            let later = engine.apply(&table, write).await.unwrap()[0];
            assert!(later > stamp, "{row}: {later} after {stamp}");
            assert_eq!(value_of(&engine, &table, "p", row).await, Some(number));
        }
    }
    let ahead = engine.get(&table, &key("p", "future")).await.unwrap().unwrap().raw().timestamp().unwrap();
    let delete = Transaction::of_one(key("p", "future"), Condition::Exists, Change::Delete);
    assert!(engine.apply(&table, delete).await.unwrap()[0] > ahead);
    assert!(engine.apply(&table, insert("p", "future", 4)).await.unwrap()[0] > ahead);
}

async fn a_damaged_row_is_not_loaded(engine: Shared) {
    let table = created(&engine, "Books").await;
    let whole = stored(&[("N", Value::Int32(1))], 0);
    let cut = StoredRow::new(whole.raw().bytes()[..12].to_vec());
    let rows = vec![(partition("a"), Some(whole)), (partition("b"), Some(cut))];
    let refused = engine.load(&table, &partition("p"), rows).await;
    assert!(matches!(refused, Err(Error::Fault(_))), "{refused:?}");
    assert_eq!(contents(&engine, &table).await, []);
}

async fn concurrent_counters_lose_no_step(engine: Shared) {
    let table = created(&engine, "Books").await;
    engine.apply(&table, insert("p", "count", 0)).await.unwrap();
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (engine, table) = (engine.clone(), table.clone());
            tokio::spawn(async move {
                for _ in 0..25 {
                    loop {
                        let row = engine.get(&table, &key("p", "count")).await.unwrap().unwrap();
                        let row = row.raw().open().unwrap();
                        let Some(ValueRef::Int32(n)) = row.property("N") else { panic!("no number") };
                        let step = Transaction::of_one(
                            key("p", "count"),
                            Condition::Version(row.timestamp()),
                            Change::Put(number(n + 1)),
                        );
                        match engine.apply(&table, step).await {
                            Ok(_) => break,
                            Err(Error::Rejected { reason: Reason::VersionDiffers, .. }) => {}
                            Err(other) => panic!("{other}"),
                        }
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(value_of(&engine, &table, "p", "count").await, Some(200));
}

async fn readers_never_see_half_a_transaction(engine: Shared) {
    let table = created(&engine, "Books").await;
    let rows: Vec<String> = (0..20).map(|row| format!("{row:02}")).collect();
    let round = |n: i32, rows: &[String]| {
        group("p", rows.iter().map(|row| write(row, Condition::Anything, Change::Put(number(n)))).collect())
    };
    engine.apply(&table, round(0, &rows)).await.unwrap();
    let writer = {
        let (engine, table, rows) = (engine.clone(), table.clone(), rows.clone());
        tokio::spawn(async move {
            for n in 1..150 {
                engine.apply(&table, round(n, &rows)).await.unwrap();
            }
        })
    };
    while !writer.is_finished() {
        let page = engine.scan(&table, scan(vec![KeyRange::partition("p")], 100)).await.unwrap();
        let mut values = BTreeMap::new();
        for entity in page.entities.iter() {
            *values.entry(format!("{:?}", entity.row.open().unwrap().property("N"))).or_insert(0) += 1;
        }
        assert_eq!(values.len(), 1, "one scan saw two states: {values:?}");
        tokio::task::yield_now().await;
    }
    writer.await.unwrap();
}

async fn concurrent_inserts_have_one_winner(engine: Shared) {
    let table = created(&engine, "Books").await;
    for row in 0..20 {
        let tasks: Vec<_> = (0..8)
            .map(|n| {
                let (engine, table) = (engine.clone(), table.clone());
                tokio::spawn(
                    async move { engine.apply(&table, insert("p", &row.to_string(), n)).await.is_ok() },
                )
            })
            .collect();
        let mut winners = 0;
        for task in tasks {
            winners += usize::from(task.await.unwrap());
        }
        assert_eq!(winners, 1);
    }
}

async fn a_closed_engine_refuses(engine: Shared) {
    let table = created(&engine, "Books").await;
    assert!(engine.check_health().is_ok());
    engine.close().await;
    assert!(engine.check_health().is_err());
    assert!(matches!(engine.apply(&table, insert("p", "r", 1)).await, Err(Error::Fault(_))));
    assert!(matches!(engine.get(&table, &key("p", "r")).await, Err(Error::Fault(_))));
    engine.close().await;
}
