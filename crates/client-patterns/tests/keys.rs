use partita_client::{DateTime, Entity, Filter, Table, partition_key, row_key};
use partita_client_patterns::keys;

use crate::place::with_table;

async fn rows(table: &Table, filter: Filter) -> Vec<String> {
    let found = table.query().filter(filter).all::<Entity>().await.unwrap();
    found.into_iter().map(|found| found.into_inner().row_key).collect()
}

#[tokio::test]
async fn a_service_orders_composite_keys_by_their_parts() {
    with_table(|table| async move {
        let texts = [
            "", " ", "!", "#", "a", "a b", "a!", "a.", "a.b", "a.~", "a.\u{e9}", "a/", "a/b", "a0", "a~",
            "a\u{7f}",
        ];
        let mut pairs: Vec<[&str; 2]> =
            texts.iter().flat_map(|first| texts.map(|second| [*first, second])).collect();
        for pair in &pairs {
            table.insert(&Entity::new("p", keys::join(pair))).await.unwrap();
        }
        pairs.sort();
        let found: Vec<Vec<String>> =
            rows(&table, partition_key().eq("p")).await.iter().map(|key| keys::split(key).unwrap()).collect();
        assert_eq!(found, pairs);

        let found = rows(&table, keys::within(row_key(), ["a"])).await;
        assert_eq!(found.len(), texts.len());
        assert!(found.iter().all(|key| keys::split(key).unwrap()[0] == "a"), "{found:?}");

        let found = rows(&table, keys::next_part_starts_with(row_key(), [""], "a.")).await;
        let found: Vec<_> = found.iter().map(|key| keys::split(key).unwrap()[1].clone()).collect();
        assert_eq!(found, ["a.", "a.b", "a.~", "a.\u{e9}"]);
    })
    .await;
}

#[tokio::test]
async fn the_newest_rows_of_a_log_come_first() {
    with_table(|table| async move {
        let at = |tick: i64| DateTime::from_ticks(639_000_000_000_000_000 + tick).unwrap();
        for tick in [3, 1, 4, 1, 5] {
            table.insert(&Entity::new("log", keys::log_tail(at(tick)))).await.unwrap();
        }
        let times = |rows: Vec<String>| -> Vec<i64> {
            rows.iter().map(|key| keys::log_time(key).unwrap().ticks() % 1000).collect()
        };
        assert_eq!(times(rows(&table, partition_key().eq("log")).await), [5, 4, 3, 1, 1]);
        assert_eq!(times(rows(&table, keys::log_between(row_key(), at(1), at(4))).await), [3, 1, 1]);
        assert_eq!(times(rows(&table, keys::log_between(row_key(), at(2), at(6))).await), [5, 4, 3]);
    })
    .await;
}
