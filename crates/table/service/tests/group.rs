//! Which writes one entity group transaction may combine.

use model::{IfMatch, Refusal, limits};
use service::{EntityWrite, WriteGroup};
use store::TableRef;

use crate::kit::{Ground, entity, key, number, refusal, refused, table};

fn upsert(partition: &str, row: &str) -> EntityWrite {
    EntityWrite::insert_or_replace(entity(partition, row, &[]))
}

#[test]
fn each_write_is_held_against_those_before_it() {
    let elsewhere = TableRef { account: model::AccountName::parse("other").unwrap(), ..table("Books") };
    for (table, partition, row, expected) in [
        (table("Books"), "p", "b", Ok(())),
        (table("BOOKS"), "p", "b", Ok(())),
        (table("Books"), "p", "A", Ok(())),
        (table("Books"), "p", "a", Err(Refusal::DuplicateRow)),
        (table("Books"), "P", "b", Err(Refusal::DifferentPartitions)),
        (table("Films"), "p", "b", Err(Refusal::DifferentPartitions)),
        (elsewhere, "p", "b", Err(Refusal::DifferentPartitions)),
        // Another partition is reported before a duplicate row.
        (table("Films"), "p", "a", Err(Refusal::DifferentPartitions)),
    ] {
        let mut group = WriteGroup::new();
        group.push(&crate::kit::table("Books"), upsert("p", "a")).unwrap();
        assert_eq!(group.push(&table, upsert(partition, row)), expected, "{table:?} {partition} {row}");
        assert_eq!(group.len(), 1 + usize::from(expected.is_ok()), "a refused write is not in the group");
    }
}

#[test]
fn a_row_deleted_and_inserted_again_is_still_one_row_twice() {
    let mut group = WriteGroup::new();
    group.push(&table("Books"), EntityWrite::delete(key("p", "a"), &IfMatch::Any)).unwrap();
    assert_eq!(group.push(&table("Books"), upsert("p", "a")), Err(Refusal::DuplicateRow));
}

#[test]
fn a_group_is_full_at_the_limit() {
    let mut group = WriteGroup::new();
    assert!(group.is_empty());
    for row in 0..limits::BATCH_OPERATIONS_MAX {
        assert!(!group.is_full(), "at {row}");
        group.push(&table("Books"), upsert("p", &row.to_string())).unwrap();
    }
    assert!(group.is_full());
}

#[tokio::test]
async fn an_empty_group_is_refused_and_the_engine_is_not_asked() {
    let ground = Ground::with("Books").await;
    assert_eq!(refused(ground.service.write_group(WriteGroup::new()).await), Refusal::BodyNotReadable);
    assert_eq!(ground.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn a_group_is_one_transaction_in_the_order_it_was_given() {
    let ground = Ground::with("Books").await;
    let mut group = WriteGroup::new();
    for row in ["c", "a", "b"] {
        group.push(&table("Books"), EntityWrite::insert(entity("p", row, &[]))).unwrap();
    }
    let stamps = ground.service.write_group(group).await.unwrap();
    assert_eq!(ground.asked(), ["apply p: put Absent c, put Absent a, put Absent b"]);
    for (row, stamp) in ["c", "a", "b"].into_iter().zip(stamps) {
        let stored = ground.service.get_entity(&table("Books"), &key("p", row)).await.unwrap();
        assert_eq!(stored.raw().timestamp().unwrap(), stamp, "{row}");
    }
}

#[tokio::test]
async fn a_refusal_names_the_write_and_nothing_is_changed() {
    let ground = Ground::with("Books").await;
    ground.insert("Books", "p", "b", &[("A", number(1))]).await;
    let mut group = WriteGroup::new();
    group.push(&table("Books"), upsert("p", "a")).unwrap();
    group.push(&table("Books"), EntityWrite::insert(entity("p", "b", &[]))).unwrap();
    group.push(&table("Books"), EntityWrite::delete(key("p", "none"), &IfMatch::Any)).unwrap();
    let outcome = ground.service.write_group(group).await;
    assert_eq!(refusal(outcome), (Refusal::EntityAlreadyExists, Some(1)), "the first that failed");
    let left = ground.service.get_entity(&table("Books"), &key("p", "a")).await;
    assert_eq!(refused(left.map(drop)), common::Refusal::ResourceNotFound);
}
