use futures_util::TryStreamExt as _;
use partita_client::{DateTime, Entity, Filter, row_key};
use partita_client_patterns::daily::Daily;

use crate::place::with_place;

fn at(text: &str) -> DateTime {
    DateTime::parse(text).unwrap()
}

async fn names(daily: &Daily, from: &str, to: &str, filter: Option<Filter>) -> Vec<String> {
    let found: Vec<_> = daily.query::<Entity>(at(from), at(to), filter).try_collect().await.unwrap();
    found.into_iter().map(|found| found.into_inner().row_key).collect()
}

#[tokio::test]
async fn every_day_has_its_table_until_it_is_dropped() {
    with_place(|place| async move {
        let service = place.service();
        let logs = Daily::new(&service, &place.name).unwrap();
        for (time, row) in [
            ("2026-02-01T00:00:00Z", "d"),
            ("2026-01-30T12:00:00Z", "b"),
            ("2026-01-31T23:59:59Z", "c"),
            ("2026-01-30T13:00:00Z", "a"),
            ("2026-02-03T13:00:00Z", "e"),
        ] {
            logs.insert(at(time), &Entity::new("p", row)).await.unwrap();
        }
        // Other tables with the same prefix.
        for other in [format!("{}Old", place.name), format!("{}Old20200101", place.name)] {
            service.table(&other).unwrap().create().await.unwrap();
        }

        assert_eq!(names(&logs, "2026-01-01", "2026-12-31", None).await, ["a", "b", "c", "d", "e"]);
        assert_eq!(names(&logs, "2026-01-30T23:00Z", "2026-02-01T00:00Z", None).await, ["a", "b", "c", "d"]);
        assert_eq!(names(&logs, "2026-01-31", "2026-02-02", Some(row_key().ge("d"))).await, ["d"]);
        assert_eq!(names(&logs, "2027-01-01", "2027-12-31", None).await, [""; 0]);

        let dropped = logs.retain(3, at("2026-02-03T10:00:00Z")).await.unwrap();
        assert_eq!(dropped, [format!("{}20260130", place.name)]);
        assert_eq!(names(&logs, "2026-01-01", "2026-12-31", None).await, ["c", "d", "e"]);
        let dropped = logs.retain(0, at("2026-02-03T10:00:00Z")).await.unwrap();
        assert_eq!(dropped.len(), 2);
        assert_eq!(names(&logs, "2026-01-01", "2026-12-31", None).await, ["e"]);
        let left: Vec<String> = service.tables(None).try_collect().await.unwrap();
        assert_eq!(left.iter().filter(|name| name.starts_with(&place.name)).count(), 3);
    })
    .await;
}

#[tokio::test]
async fn the_rest_of_a_table_dropped_while_it_is_read_is_skipped() {
    with_place(|place| async move {
        let logs = Daily::new(&place.service(), &place.name).unwrap();
        for day in ["2026-01-30", "2026-01-31"] {
            for row in 0..3 {
                logs.insert(at(day), &Entity::new("p", format!("{day} {row}"))).await.unwrap();
            }
        }
        let mut entities = std::pin::pin!(logs.query::<Entity>(at("2026-01-01"), at("2026-12-31"), None));
        assert!(entities.try_next().await.unwrap().is_some());
        logs.table(at("2026-01-31")).unwrap().drop().await.unwrap();
        let rest: Vec<_> = entities.try_collect().await.unwrap();
        assert_eq!(rest.len(), 2);
    })
    .await;
}
