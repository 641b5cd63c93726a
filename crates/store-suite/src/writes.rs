//! Conditions, changes and timestamps of transactions.

use model::{DateTime, KeyRange, Value};
use store::encoding::row::borrowed;
use store::{Change, Condition, Error, Reason, RowDraft, Transaction};

use crate::Shared;
use crate::fixtures::{created, draft, group, insert, key, keys, number, scan, value_of, write};

pub async fn each_condition_does_what_its_name_says(engine: Shared) {
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
            // Only a put may succeed: a delete would spoil the later cases. Refusals are tried with all changes.
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

pub async fn a_merge_overlays_and_a_put_replaces(engine: Shared) {
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

pub async fn a_merge_stays_within_the_limits(engine: Shared) {
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

pub async fn a_failing_operation_is_named_and_nothing_is_changed(engine: Shared) {
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

pub async fn timestamps_only_grow(engine: Shared) {
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
