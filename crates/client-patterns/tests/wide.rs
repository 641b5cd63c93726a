use partita_client::{Entity, Error, Match, StoredEntity, Table};
use partita_client_patterns::wide;

use crate::place::with_table;

/// All properties have the same value, so that a mixture of two writes is detected.
fn wide(properties: usize, value: i32) -> Entity {
    let mut entity = Entity::new("p", "r").with("Total", properties as i32);
    for n in 0..properties {
        entity.set(format!("P{n}"), value);
    }
    entity
}

async fn count(table: &Table) -> u64 {
    table.query().count().await.unwrap()
}

#[tokio::test]
async fn a_wide_entity_is_one_entity() {
    with_table(|table| async move {
        table.insert(&Entity::new("p", "r~x")).await.unwrap();
        let etag = wide::insert(&table, &wide(1000, 1)).await.unwrap();
        assert_eq!(count(&table).await, 1 + 5);
        let found: StoredEntity<Entity> = wide::get(&table, "p", "r").await.unwrap();
        assert_eq!((&found.entity, &found.etag), (&wide(1000, 1), &etag));
        assert!(wide::insert(&table, &wide(3, 2)).await.unwrap_err().is_conflict());

        // A narrower one leaves nothing behind.
        let newer = wide::replace(&table, &wide(300, 2), &etag).await.unwrap();
        assert_eq!(count(&table).await, 1 + 2);
        assert!(wide::replace(&table, &wide(300, 3), &etag).await.unwrap_err().is_changed());
        let found: StoredEntity<Entity> = wide::get(&table, "p", "r").await.unwrap();
        assert_eq!((found.entity, found.etag), (wide(300, 2), newer));
        wide::replace(&table, &wide(700, 4), Match::Any).await.unwrap();
        wide::put(&table, &wide(1, 5)).await.unwrap();
        assert_eq!(wide::get::<Entity>(&table, "p", "r").await.unwrap().entity, wide(1, 5));
        assert_eq!(count(&table).await, 1 + 1);
        wide::put(&table, &wide(600, 6)).await.unwrap();

        assert!(wide::delete(&table, "p", "r").await.unwrap());
        assert!(!wide::delete(&table, "p", "r").await.unwrap());
        assert_eq!(wide::find::<Entity>(&table, "p", "r").await.unwrap(), None);
        assert!(wide::get::<Entity>(&table, "p", "r").await.unwrap_err().is_not_found());
        assert!(wide::replace(&table, &wide(1, 1), Match::Any).await.unwrap_err().is_not_found());
        assert_eq!(count(&table).await, 1);
    })
    .await;
}

#[tokio::test]
async fn an_entity_of_three_mebibytes_is_stored() {
    with_table(|table| async move {
        let mut entity = Entity::new("p", "r");
        for n in 0..45 {
            entity.set(format!("B{n}"), vec![n as u8; 64 * 1024]);
        }
        wide::put(&table, &entity).await.unwrap();
        assert!(wide::get::<Entity>(&table, "p", "r").await.unwrap().entity == entity);
        for more in ["C1", "C2", "C3"] {
            entity.set(more, vec![0; 64 * 1024]);
        }
        let fault = wide::put(&table, &entity).await;
        assert!(matches!(fault, Err(Error::Invalid(_))), "{fault:?}");
    })
    .await;
}

#[tokio::test]
async fn rows_of_different_writes_are_refused() {
    with_table(|table| async move {
        let refused = async || {
            let found = wide::get::<Entity>(&table, "p", "r").await;
            assert!(matches!(found, Err(Error::Unreadable(_))), "{found:?}");
        };
        wide::put(&table, &wide(600, 1)).await.unwrap();
        table.delete("p", "r~2", Match::Any).await.unwrap();
        refused().await;

        // A row of an earlier write.
        wide::put(&table, &wide(600, 1)).await.unwrap();
        let old: StoredEntity<Entity> = table.get("p", "r~1").await.unwrap();
        wide::put(&table, &wide(600, 2)).await.unwrap();
        table.replace(&old.entity, Match::Any).await.unwrap();
        refused().await;

        // The first row written without the others.
        wide::put(&table, &wide(600, 3)).await.unwrap();
        table.upsert_replace(&Entity::new("p", "r")).await.unwrap();
        refused().await;

        // Writing the entity again repairs it.
        wide::put(&table, &wide(250, 4)).await.unwrap();
        assert_eq!(wide::get::<Entity>(&table, "p", "r").await.unwrap().entity, wide(250, 4));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_never_see_a_mixture_of_two_writes() {
    with_table(|table| async move {
        wide::put(&table, &wide(600, 0)).await.unwrap();
        let writers: Vec<_> = (1..=3)
            .map(|writer| {
                let table = table.clone();
                tokio::spawn(async move {
                    let mut written = 0;
                    for round in 0..15 {
                        let properties = [200, 600, 900][(round + writer as usize) % 3];
                        match wide::put(&table, &wide(properties, writer * 100 + round as i32)).await {
                            Ok(_) => written += 1,
                            Err(error) => assert!(error.is_changed(), "{error}"),
                        }
                    }
                    written
                })
            })
            .collect();
        let (mut seen, mut torn) = (0, 0);
        while !writers.iter().all(tokio::task::JoinHandle::is_finished) {
            match wide::get::<Entity>(&table, "p", "r").await {
                Ok(found) => {
                    let Some(&partita_client::Value::Int32(total)) = found.get("Total") else {
                        panic!("{found:?}")
                    };
                    assert_eq!(found.entity, wide(total as usize, value(&found)));
                    seen += 1;
                }
                Err(Error::Unreadable(_)) => torn += 1,
                Err(error) => panic!("{error}"),
            }
        }
        let mut written = 0;
        for writer in writers {
            written += writer.await.unwrap();
        }
        eprintln!("{written} writes, {seen} reads, {torn} given up");
        assert!(written > 0);
        let last: StoredEntity<Entity> = wide::get(&table, "p", "r").await.unwrap();
        assert_eq!(count(&table).await as usize, last.properties.len().div_ceil(248));
    })
    .await;
}

fn value(entity: &Entity) -> i32 {
    match entity.get("P0") {
        Some(partita_client::Value::Int32(value)) => *value,
        other => panic!("{other:?}"),
    }
}
