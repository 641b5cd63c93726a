use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use partita_client::{Entity, Error, Match, Table, partition_key, property};
use partita_client_encryption::{EncryptionPolicy, LocalKey};
use partita_client_patterns::bulk::{Bulk, BulkProgress, BulkWrite, FailedRow, Report, get_many};

use crate::place::{Place, with_place, with_table};
use crate::proxy::{Lost, Proxy};
use crate::support::quick;

fn row(number: u32) -> Entity {
    Entity::new(format!("p{}", number % 3), format!("{number:05}")).with("Number", number as i32)
}

async fn count(table: &Table) -> u64 {
    table.query().count().await.unwrap()
}

/// Done, skipped, refused and unknown.
fn counts(report: &Report) -> (u64, u64, usize, usize) {
    (report.done, report.skipped, report.refused.len(), report.unknown.len())
}

fn places(rows: &[FailedRow]) -> BTreeSet<u64> {
    rows.iter().map(|row| row.at).collect()
}

#[tokio::test]
async fn rows_of_many_partitions_are_written_and_deleted() {
    with_table(|table| async move {
        let told: Arc<Mutex<Vec<BulkProgress>>> = Arc::default();
        let listener = told.clone();
        let bulk = Bulk::new(&table).progress(move |so_far| listener.lock().unwrap().push(so_far));
        let report = bulk.write(BulkWrite::Insert, (0..1000).map(row)).await;
        assert!(report.is_complete(), "{report:?}");
        assert_eq!(counts(&report), (1000, 0, 0, 0));
        assert_eq!(count(&table).await, 1000);
        let told = told.lock().unwrap().clone();
        assert!(told.windows(2).all(|pair| pair[0].done < pair[1].done), "{told:?}");
        assert_eq!(told.last().unwrap().done, 1000);

        let report =
            Bulk::new(&table).concurrency(1).delete(|all| all.filter(partition_key().eq("p1"))).await;
        assert_eq!(counts(&report), (333, 0, 0, 0));
        let report = Bulk::new(&table).delete(|all| all.filter(property("Number").lt(30))).await;
        assert_eq!(counts(&report), (20, 0, 0, 0));
        let report = Bulk::new(&table).delete(|all| all).await;
        assert_eq!(counts(&report), (647, 0, 0, 0));
        let report = Bulk::new(&table).delete(|all| all).await;
        assert_eq!(counts(&report), (0, 0, 0, 0));
    })
    .await;
}

#[tokio::test]
async fn a_refused_row_does_not_affect_others() {
    with_table(|table| async move {
        table.insert(&row(12)).await.unwrap();
        table.insert(&row(150)).await.unwrap();
        let rows = (0..300).map(|number| match number {
            77 => Entity::new("p2", "a/b"),
            78 => row(78).with("Long", "x".repeat(70_000)),
            number => row(number),
        });
        let report = Bulk::new(&table).write(BulkWrite::Insert, rows).await;
        assert_eq!(counts(&report), (296, 0, 4, 0));
        assert_eq!(places(&report.refused), BTreeSet::from([12, 77, 78, 150]));
        for failed in &report.refused {
            let expected = if [77, 78].contains(&failed.at) { 400 } else { 409 };
            assert_eq!(failed.error.status(), Some(expected), "{failed:?}");
        }
        let slash = report.refused.iter().find(|row| row.at == 77).unwrap();
        assert_eq!((slash.partition_key.as_str(), slash.row_key.as_str()), ("p2", "a/b"));
        assert_eq!(count(&table).await, 298);
    })
    .await;
}

#[tokio::test]
async fn insert_missing_skips_rows_that_exist() {
    with_table(|table| async move {
        for number in (0..300).filter(|number| number % 4 == 0) {
            table.insert(&row(number).with("Mine", true)).await.unwrap();
        }
        let report = Bulk::new(&table).write(BulkWrite::InsertMissing, (0..300).map(row)).await;
        assert!(report.is_complete(), "{report:?}");
        assert_eq!(counts(&report), (225, 75, 0, 0));
        assert_eq!(table.query().filter(property("Mine").eq(true)).count().await.unwrap(), 75);
        let report = Bulk::new(&table).write(BulkWrite::InsertMissing, (0..300).map(row)).await;
        assert_eq!(counts(&report), (0, 300, 0, 0));
        let report = Bulk::new(&table).write(BulkWrite::Insert, (0..6).map(row)).await;
        assert_eq!(counts(&report), (0, 0, 6, 0));
    })
    .await;
}

#[tokio::test]
async fn of_two_rows_with_the_same_keys_the_later_wins() {
    with_table(|table| async move {
        let rows = (0..500).map(|number| Entity::new("p", (number % 50).to_string()).with("Number", number));
        let report = Bulk::new(&table).write(BulkWrite::UpsertReplace, rows).await;
        assert_eq!(counts(&report), (500, 0, 0, 0));
        assert_eq!(table.query().filter(property("Number").ge(450)).count().await.unwrap(), 50);

        let report =
            Bulk::new(&table).write(BulkWrite::UpsertMerge, [Entity::new("p", "7").with("More", 1)]).await;
        assert_eq!(counts(&report), (1, 0, 0, 0));
        let merged = table.get::<Entity>("p", "7").await.unwrap();
        assert_eq!((merged.get("Number"), merged.get("More")), (Some(&457.into()), Some(&1.into())));
    })
    .await;
}

#[tokio::test]
async fn a_value_that_is_not_an_entity_is_refused_with_its_position() {
    with_table(|table| async move {
        let rows = [vec![("PartitionKey", "p"), ("RowKey", "r")], vec![("PartitionKey", "p")]];
        let rows = rows.map(|row| row.into_iter().collect::<std::collections::BTreeMap<_, _>>());
        let report = Bulk::new(&table).write(BulkWrite::Insert, rows).await;
        assert_eq!(counts(&report), (1, 0, 1, 0));
        assert_eq!(places(&report.refused), BTreeSet::from([1]));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_changes_after_it_was_found_is_not_deleted() {
    with_table(|table| async move {
        for (partition, row) in (0..100).map(|row| ("a", row)).chain([("b", 1), ("b", 2), ("b", 3)]) {
            table.insert(&Entity::new(partition, row.to_string())).await.unwrap();
        }
        // The first hundred are deleted while the others, which are found already, wait.
        let (other, runtime) = (table.clone(), tokio::runtime::Handle::current());
        let change = move |so_far: BulkProgress| {
            if so_far.done == 100 {
                let changed = Entity::new("b", "2").with("Changed", true);
                tokio::task::block_in_place(|| {
                    runtime.block_on(other.replace(&changed, Match::Any)).unwrap();
                    runtime.block_on(other.delete("b", "3", Match::Any)).unwrap();
                });
            }
        };
        let report = Bulk::new(&table).concurrency(1).progress(change).delete(|all| all).await;
        assert_eq!(counts(&report), (101, 1, 1, 0));
        assert_eq!(report.refused[0].row_key, "2");
        assert!(report.refused[0].error.is_changed(), "{report:?}");
        assert_eq!(count(&table).await, 1);
    })
    .await;
}

#[tokio::test]
async fn a_missing_table_stops_the_call_at_once() {
    with_place(|place| async move {
        let report =
            Bulk::new(&place.table()).concurrency(1).write(BulkWrite::Insert, (0..1000).map(row)).await;
        let stop = report.stopped.unwrap();
        assert_eq!(stop.error.code(), Some("TableNotFound"));
        assert!((100..=400).contains(&stop.untried), "{}", stop.untried);
        assert_eq!(report.done, 0);
    })
    .await;
}

fn through(proxy: &Proxy, place: &Place, attempts: u32) -> Table {
    let service = place.service_at(&proxy.connection_string, quick().attempts(attempts));
    service.table(&place.name).unwrap()
}

#[tokio::test]
async fn lost_requests_and_answers_are_settled_by_reading() {
    with_place(|place| async move {
        place.table().create().await.unwrap();
        let proxy = Proxy::start(&place.connection_string).await;
        for attempts in [1, 3] {
            let table = through(&proxy, &place, attempts);
            for lost in [Lost::Request, Lost::Answer] {
                for write in [
                    BulkWrite::Insert,
                    BulkWrite::InsertMissing,
                    BulkWrite::UpsertReplace,
                    BulkWrite::UpsertMerge,
                ] {
                    proxy.lose(lost, "/$batch");
                    let report = Bulk::new(&table).write(write, (0..250).map(row)).await;
                    assert_eq!(counts(&report), (250, 0, 0, 0), "{lost:?} {write:?} {attempts}");
                    assert!(proxy.is_done());
                    proxy.lose(lost, "/$batch");
                    let report = Bulk::new(&table).delete(|all| all).await;
                    assert!(report.is_complete(), "{report:?}");
                    assert_eq!(report.done + report.skipped, 250, "{lost:?} {attempts}");
                    assert!(proxy.is_done());
                    assert_eq!(count(&table).await, 0);
                }
            }
        }
    })
    .await;
}

#[tokio::test]
async fn encrypted_rows_are_settled_too_and_deleted_without_their_key() {
    with_place(|place| async move {
        place.table().create().await.unwrap();
        let proxy = Proxy::start(&place.connection_string).await;
        let encrypted = |byte| {
            let key = LocalKey::new(format!("local:{byte}"), &[byte; 32]).unwrap();
            through(&proxy, &place, 1)
                .with_encryption(EncryptionPolicy::new(key).encrypt_properties(["Secret"]))
        };
        let (table, other) = (encrypted(1), encrypted(2));
        let secret = |number| row(number).with("Secret", "treasure");
        proxy.lose(Lost::Answer, "/$batch");
        let report = Bulk::new(&table).write(BulkWrite::Insert, (0..20).map(secret)).await;
        assert_eq!(counts(&report), (20, 0, 0, 0), "{report:?}");
        let read = other.get::<Entity>("p0", "00000").await;
        assert!(matches!(read, Err(Error::Encryption(_))), "{read:?}");

        let report = Bulk::new(&other).write(BulkWrite::InsertMissing, (0..30).map(secret)).await;
        assert_eq!(counts(&report), (10, 20, 0, 0), "{report:?}");
        proxy.lose(Lost::Answer, "/$batch");
        let report = Bulk::new(&other).delete(|all| all).await;
        assert_eq!(counts(&report), (30, 0, 0, 0), "{report:?}");
    })
    .await;
}

#[tokio::test]
async fn rows_that_cannot_be_read_have_an_unknown_outcome() {
    with_place(|place| async move {
        place.table().create().await.unwrap();
        let proxy = Proxy::start(&place.connection_string).await;
        let table = through(&proxy, &place, 1);
        proxy.lose(Lost::Answer, "/$batch");
        proxy.lose(Lost::Request, "GET ");
        let report = Bulk::new(&table).write(BulkWrite::Insert, (0..9).step_by(3).map(row)).await;
        assert_eq!(counts(&report), (0, 0, 0, 3));
        assert!(report.unknown.iter().all(|row| row.error.is_outcome_unknown()), "{report:?}");
        assert!(!report.is_complete() && report.stopped.is_some());
        assert_eq!(count(&place.table()).await, 3);
    })
    .await;
}

#[tokio::test]
async fn get_many_returns_the_order_of_the_keys() {
    with_table(|table| async move {
        // On another thread: the futures are `Send`.
        let bulk = Bulk::new(&table);
        let report = tokio::spawn(async move { bulk.write(BulkWrite::Insert, (0..60).map(row)).await });
        assert!(report.await.unwrap().is_complete());
        let keys: Vec<Entity> = (0..120).rev().map(row).collect();
        let keys = keys.into_iter().map(|entity| (entity.partition_key, entity.row_key));
        let found = tokio::spawn(async move { get_many::<Entity>(&table, keys, 7).await });
        let found = found.await.unwrap().unwrap();
        let expected = (0..120).rev().map(|number| (number < 60).then(|| row(number)));
        assert!(found.into_iter().map(|found| found.map(|found| found.entity)).eq(expected));
    })
    .await;
}
