//! Passes make stores equal, and verification finds every difference.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

mod support;

use std::sync::Arc;

use bytes::Bytes;
use migrate::{
    ContentCopy, Difference, DifferenceKind, Error, MigrationProgress, PassReport, ProgressWatch,
    ServiceTable, Shared, Side, is_empty, pass, verify,
};
use model::{AccountName, EntityKey, ServiceKind};
use proptest::prelude::*;
use store::{Change, Condition, MemoryEngine, MemoryObjects, NoObjects, TableRef, Transaction};
use store_suite::{account, insert, key, number, of_service, table};
use support::{Counter, Unreliable};

const UNSEEN: ProgressWatch<'_> = &|_: MigrationProgress<'_>| {};

fn memory() -> Shared {
    Arc::new(MemoryEngine::new())
}

/// For stores without content.
fn content() -> ContentCopy {
    let none = || Arc::new(MemoryObjects::new());
    ContentCopy { source: none(), target: none(), naming: Arc::new(NoObjects), is_doubted: false }
}

fn accounts() -> Vec<AccountName> {
    vec![account("devstoreaccount1")]
}

async fn put(engine: &Shared, table: &TableRef, partition: &str, row: &str, value: i32) {
    let put = Transaction::of_one(key(partition, row), Condition::Anything, Change::Put(number(value)));
    engine.apply(table, put).await.unwrap();
}

async fn delete(engine: &Shared, table: &TableRef, partition: &str, row: &str) {
    let delete = Transaction::of_one(key(partition, row), Condition::Exists, Change::Delete);
    engine.apply(table, delete).await.unwrap();
}

/// A store with one table of so many partitions of so many rows.
async fn filled(partitions: usize, rows: usize) -> (Shared, TableRef) {
    let (engine, table) = (memory(), table("Books"));
    engine.create_table(&table, None).await.unwrap();
    for partition in 0..partitions {
        for row in 0..rows {
            engine
                .apply(&table, insert(&format!("p{partition:03}"), &format!("r{row:03}"), 1))
                .await
                .unwrap();
        }
    }
    (engine, table)
}

/// A copy in another store that is never changed again, as a snapshot.
async fn snapshot_of(engine: &Shared) -> Shared {
    let snapshot = memory();
    pass(engine, None, &snapshot, &engine.list_accounts().await.unwrap(), UNSEEN, &content()).await.unwrap();
    snapshot
}

async fn moved(source: &Shared, target: &Shared) -> PassReport {
    let passed = pass(source, None, target, &accounts(), UNSEEN, &content()).await.unwrap();
    verify(source, target, &accounts(), UNSEEN, &content()).await.unwrap();
    passed
}

#[tokio::test]
async fn all_that_an_account_has_arrives() {
    let (source, books) = filled(7, 130).await;
    assert!(source.replace_table_metadata(&books, None, Bytes::from_static(b"policies")).await.unwrap());
    let document = |service: ServiceKind| Bytes::from(format!("properties of {service:?}"));
    for service in ServiceKind::ALL {
        let set = source.replace_service_metadata(&books.account, service, None, document(service));
        assert!(set.await.unwrap());
    }
    source.create_table(&table("EMPTY"), None).await.unwrap();
    let target = memory();
    let passed = moved(&source, &target).await;
    assert_eq!(
        passed,
        PassReport {
            tables: 2,
            entities: 910,
            stored: 910,
            removed: 0,
            dropped_tables: 0,
            ..PassReport::default()
        }
    );
    assert_eq!(target.find_table(&table("empty")).await.unwrap().as_str(), "EMPTY");
    for service in ServiceKind::ALL {
        let arrived = target.service_metadata(&books.account, service).await.unwrap();
        assert_eq!(arrived, Some(document(service)));
    }
    let row =
        |engine: Shared| async move { engine.get(&table("Books"), &key("p003", "r077")).await.unwrap() };
    let (there, here) = (row(target.clone()).await.unwrap(), row(source.clone()).await.unwrap());
    assert_eq!(there.raw().bytes(), here.raw().bytes(), "with its timestamp, and so its ETag");
    let again = pass(&source, None, &target, &accounts(), UNSEEN, &content()).await.unwrap();
    assert_eq!(again.changed(), 0, "what is there is not written again");
}

#[tokio::test]
async fn queues_are_moved_with_the_tables() {
    let (source, _) = filled(1, 3).await;
    let (queue, gone) = (of_service(ServiceKind::Queue, "books"), of_service(ServiceKind::Queue, "gone"));
    let document = Bytes::from_static(b"metadata of a queue");
    source.create_table(&queue, Some(document.clone())).await.unwrap();
    put(&source, &queue, "messages", "1", 7).await;
    let target = memory();
    assert!(is_empty(&target, &queue.account).await.unwrap());
    target.create_table(&gone, None).await.unwrap();
    assert!(!is_empty(&target, &queue.account).await.unwrap(), "a queue alone is something");
    let passed = moved(&source, &target).await;
    assert_eq!(
        passed,
        PassReport {
            tables: 2,
            entities: 4,
            stored: 4,
            removed: 0,
            dropped_tables: 1,
            ..PassReport::default()
        }
    );
    assert_eq!(target.table_metadata(&queue).await.unwrap(), Some(document));
    assert!(target.get(&queue, &key("messages", "1")).await.unwrap().is_some());

    put(&target, &queue, "messages", "2", 7).await;
    let Err(Error::Differs(difference)) = verify(&source, &target, &accounts(), UNSEEN, &content()).await
    else {
        panic!("the queue has a message more");
    };
    assert_eq!(
        difference.table,
        Some(ServiceTable { service: ServiceKind::Queue, name: "books".to_owned() })
    );
    assert!(difference.to_string().contains(", queue books, "), "{difference}");
}

#[tokio::test]
async fn other_accounts_of_the_target_are_left_alone() {
    let (source, books) = filled(1, 3).await;
    let target = memory();
    let theirs = TableRef { account: account("another"), ..books };
    target.create_table(&theirs, None).await.unwrap();
    put(&target, &theirs, "p", "r", 1).await;
    moved(&source, &target).await;
    assert!(target.get(&theirs, &key("p", "r")).await.unwrap().is_some());
}

#[tokio::test]
async fn a_later_pass_brings_only_what_has_changed() {
    let (source, books) = filled(5, 100).await;
    let target = memory();
    moved(&source, &target).await;
    let known = snapshot_of(&source).await;
    put(&source, &books, "p001", "r001", 2).await;
    put(&source, &books, "p009", "r001", 2).await;
    delete(&source, &books, "p004", "r099").await;
    let counted = Arc::new(Counter::in_front_of(target.clone()));
    let counting: Shared = counted.clone();
    let passed = pass(&source, Some(&known), &counting, &accounts(), UNSEEN, &content()).await.unwrap();
    assert_eq!(
        passed,
        PassReport {
            tables: 1,
            entities: 500,
            stored: 2,
            removed: 1,
            dropped_tables: 0,
            ..PassReport::default()
        }
    );
    assert_eq!((counted.scans(), counted.loaded_rows()), (0, 3), "the target is not read");
    verify(&source, &target, &accounts(), UNSEEN, &content()).await.unwrap();
}

#[tokio::test]
async fn tables_dropped_and_made_anew_between_passes_are_as_they_are_now() {
    let (source, books) = filled(2, 50).await;
    let (gone, renamed, plain) = (table("Gone"), table("Renamed"), table("Plain"));
    for table in [&gone, &renamed, &plain] {
        source.create_table(table, None).await.unwrap();
        put(&source, table, "p", "r", 1).await;
        assert!(source.replace_table_metadata(table, None, Bytes::from_static(b"policies")).await.unwrap());
    }
    let target = memory();
    moved(&source, &target).await;
    let known = snapshot_of(&source).await;
    for table in [&books, &gone, &renamed, &plain] {
        source.drop_table(table).await.unwrap();
    }
    let shouted = table("RENAMED");
    for table in [&books, &shouted, &plain] {
        source.create_table(table, None).await.unwrap();
        put(&source, table, "p001", "r001", 7).await;
    }
    let passed = pass(&source, Some(&known), &target, &accounts(), UNSEEN, &content()).await.unwrap();
    verify(&source, &target, &accounts(), UNSEEN, &content()).await.unwrap();
    assert_eq!((passed.tables, passed.dropped_tables), (3, 1));
    assert_eq!(target.find_table(&renamed).await.unwrap().as_str(), "RENAMED");
    assert_eq!(target.table_metadata(&plain).await.unwrap(), None);
}

#[tokio::test]
async fn a_table_that_the_known_snapshot_lacks_is_compared_with_the_target() {
    let (source, books) = filled(1, 10).await;
    let target = memory();
    let known = snapshot_of(&memory()).await;
    target.create_table(&books, None).await.unwrap();
    put(&target, &books, "p000", "stray", 1).await;
    let passed = pass(&source, Some(&known), &target, &accounts(), UNSEEN, &content()).await.unwrap();
    assert_eq!((passed.stored, passed.removed), (10, 1));
    verify(&source, &target, &accounts(), UNSEEN, &content()).await.unwrap();
}

#[tokio::test]
async fn every_planted_difference_is_found_and_named() {
    let entity = |partition: &str, row: &str| EntityKey::parse(partition, row).ok();
    let differs = |table: Option<&str>, key, found| Difference {
        account: account("devstoreaccount1"),
        table: table.map(|name| ServiceTable { service: ServiceKind::Table, name: name.to_owned() }),
        key,
        found,
    };
    // One function for each case. It changes a target that is equal to its source.
    for case in 0..8 {
        let (source, books) = filled(3, 100).await;
        let target = memory();
        moved(&source, &target).await;
        let expected = match case {
            0 => {
                put(&target, &books, "p001", "r050", 1).await;
                differs(Some("Books"), entity("p001", "r050"), DifferenceKind::Other)
            }
            1 => {
                delete(&target, &books, "p002", "r099").await;
                differs(Some("Books"), entity("p002", "r099"), DifferenceKind::OnlyIn(Side::Source))
            }
            2 => {
                put(&target, &books, "p000", "", 1).await;
                differs(Some("Books"), entity("p000", ""), DifferenceKind::OnlyIn(Side::Target))
            }
            3 => {
                target.drop_table(&books).await.unwrap();
                differs(Some("Books"), None, DifferenceKind::OnlyIn(Side::Source))
            }
            4 => {
                target.create_table(&table("More"), None).await.unwrap();
                differs(Some("More"), None, DifferenceKind::OnlyIn(Side::Target))
            }
            5 => {
                let before = target.table_metadata(&books).await.unwrap();
                assert!(
                    target
                        .replace_table_metadata(&books, before, Bytes::from_static(b"other"))
                        .await
                        .unwrap()
                );
                differs(Some("Books"), None, DifferenceKind::OtherMetadata)
            }
            6 => {
                let before = target.service_metadata(&books.account, ServiceKind::Table).await.unwrap();
                assert!(
                    target
                        .replace_service_metadata(&books.account, ServiceKind::Table, before, Bytes::new())
                        .await
                        .unwrap()
                );
                differs(None, None, DifferenceKind::OtherMetadata)
            }
            _ => {
                target.drop_table(&books).await.unwrap();
                target.create_table(&table("BOOKS"), None).await.unwrap();
                differs(Some("Books"), None, DifferenceKind::Other)
            }
        };
        match verify(&source, &target, &accounts(), UNSEEN, &content()).await {
            Err(Error::Differs(found)) => assert_eq!(found, expected),
            other => panic!("{expected}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn the_same_entities_have_the_same_digest_and_others_another() {
    let (source, books) = filled(2, 10).await;
    let target = memory();
    moved(&source, &target).await;
    let digest =
        async |of: &Shared| verify(of, of, &accounts(), UNSEEN, &content()).await.unwrap().tables[0].digest;
    assert_eq!(digest(&source).await, digest(&target).await);
    put(&target, &books, "p000", "r000", 1).await;
    assert_ne!(digest(&source).await, digest(&target).await);
}

#[tokio::test]
async fn service_properties_that_can_not_be_taken_back_are_said() {
    let (source, books) = filled(1, 1).await;
    for service in ServiceKind::ALL {
        let target = memory();
        let cors = Bytes::from_static(b"cors");
        target.replace_service_metadata(&books.account, service, None, cors).await.unwrap();
        assert!(!is_empty(&target, &books.account).await.unwrap());
        let refused = pass(&source, None, &target, &accounts(), UNSEEN, &content()).await;
        assert!(matches!(refused, Err(Error::PropertiesStay { .. })), "{refused:?}");
    }
}

#[tokio::test]
async fn a_target_that_is_busy_or_unsure_is_asked_again() {
    let (source, _) = filled(20, 7).await;
    let target = memory();
    let unreliable: Shared = Arc::new(Unreliable::in_front_of(target.clone()));
    let passed = pass(&source, None, &unreliable, &accounts(), UNSEEN, &content()).await.unwrap();
    assert_eq!(passed.stored, 140);
    verify(&source, &target, &accounts(), UNSEEN, &content()).await.unwrap();
}

#[tokio::test]
async fn a_pass_cut_short_anywhere_is_made_good_by_the_next() {
    let (source, books) = filled(30, 5).await;
    let target = memory();
    let mut cuts = 0;
    for stop_after in 0.. {
        put(&source, &books, "p001", &format!("new{stop_after}"), 1).await;
        delete(&source, &books, "p001", &format!("new{stop_after}")).await;
        put(&source, &books, "p002", "r000", stop_after).await;
        let counted = Arc::new(Counter::stopping(target.clone(), stop_after.unsigned_abs() as usize));
        let counting: Shared = counted.clone();
        match pass(&source, None, &counting, &accounts(), UNSEEN, &content()).await {
            Ok(_) => break,
            Err(_) => cuts += 1,
        }
    }
    assert!(cuts > 3, "{cuts}");
    verify(&source, &target, &accounts(), UNSEEN, &content()).await.unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_the_two_hold_they_hold_the_same_after_a_pass(
        ours in proptest::collection::btree_map(("[a𝄞]{0,2}", "[a\u{ffff}]{0,2}"), 0..3, 0..40),
        theirs in proptest::collection::btree_map(("[a𝄞]{0,2}", "[a\u{ffff}]{0,2}"), 0..3, 0..40),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (source, target, books) = (memory(), memory(), table("Books"));
            for (engine, rows) in [(&source, &ours), (&target, &theirs)] {
                engine.create_table(&books, None).await.unwrap();
                for ((partition, row), value) in rows {
                    put(engine, &books, partition, row, *value).await;
                }
            }
            let passed = moved(&source, &target).await;
            let strays = theirs.keys().filter(|key| !ours.contains_key(*key)).count();
            assert_eq!((passed.entities, passed.removed), (ours.len() as u64, strays as u64));
        });
    }
}
