use partita_client::{DateTime, Entity, Value};
use partita_client_patterns::series::Series;

use crate::place::with_table;

fn at(text: &str) -> DateTime {
    DateTime::parse(text).unwrap()
}

#[tokio::test]
async fn values_are_added_one_by_one_and_read_by_the_range() {
    with_table(|table| async move {
        let series = Series::hourly(&table);
        for (time, value) in [
            ("2026-01-30T23:59:00Z", 1),
            ("2026-01-31T00:00:00Z", 2),
            ("2026-01-31T10:30:00Z", 3),
            ("2026-01-31T10:45:00Z", 4),
            ("2026-02-02T05:00:00Z", 5),
        ] {
            series.put("meter", at(time), value).await.unwrap();
        }
        series.put("other", at("2026-01-31T10:00:00Z"), 99).await.unwrap();

        let values =
            series.between("meter", at("2026-01-30T23:00:00Z"), at("2026-02-02T05:00:00Z")).await.unwrap();
        let values: Vec<_> = values.into_iter().map(|(time, value)| (time.to_string(), value)).collect();
        assert_eq!(
            values,
            [
                ("2026-01-30T23:00:00Z".to_owned(), Value::Int32(1)),
                ("2026-01-31T00:00:00Z".to_owned(), Value::Int32(2)),
                ("2026-01-31T10:00:00Z".to_owned(), Value::Int32(4)),
            ]
        );
        let day = series.day("meter", at("2026-01-31T12:00:00Z")).await.unwrap();
        assert_eq!((day.len(), day.iter().flatten().count(), &day[10]), (24, 2, &Some(Value::Int32(4))));
        assert!(series.day("meter", at("2026-02-01")).await.unwrap().iter().all(Option::is_none));
    })
    .await;
}

#[tokio::test]
async fn a_year_of_quarters_is_a_row_for_each_day_and_other_properties_stay() {
    with_table(|table| async move {
        let series = Series::new(&table, "Q", 96).unwrap();
        table.insert(&Entity::new("meter", "20260101").with("Note", "first")).await.unwrap();
        table.insert(&Entity::new("meter", "2026total").with("Q00", 1.0)).await.unwrap();
        let start = at("2026-01-01");
        let quarter = |n: u64| start.plus(std::time::Duration::from_secs(900 * n));
        let values: Vec<_> = (0..365 * 96).map(|n| (quarter(n), n as f64)).collect();
        series.put_all("meter", values.clone()).await.unwrap();
        assert_eq!(table.query().count().await.unwrap(), 366);
        let read = series.between("meter", start, at("2027-01-01")).await.unwrap();
        let expected: Vec<_> = values.into_iter().map(|(time, value)| (time, Value::Double(value))).collect();
        assert!(read == expected);
        assert_eq!(table.get::<Entity>("meter", "20260101").await.unwrap().text("Note"), Some("first"));
    })
    .await;
}
