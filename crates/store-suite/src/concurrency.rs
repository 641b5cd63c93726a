//! Transactions and reads that run at the same time.

use std::collections::BTreeMap;

use model::{KeyRange, ValueRef};
use store::{Change, Condition, Error, Reason, Transaction};

use crate::Shared;
use crate::fixtures::{created, group, insert, key, number, scan, value_of, write};

pub async fn concurrent_counters_lose_no_step(engine: Shared) {
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

pub async fn readers_never_see_half_a_transaction(engine: Shared) {
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

pub async fn concurrent_inserts_have_one_winner(engine: Shared) {
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
