//! Data series: the values of a day in one entity, instead of one entity for each value.

use std::time::Duration;

use partita_client::{DateTime, Entity, Value, partition_key, row_key};
use partita_client_patterns::keys;
use partita_client_patterns::series::Series;

use crate::cost::Class;
use crate::stage::{Outcome, Stage, fill};

const DAYS: u32 = 30;
const HOURS: u32 = DAYS * 24;

fn time(hour: u32) -> DateTime {
    let start = DateTime::parse("2026-01-01").unwrap_or(DateTime::MIN);
    start.plus(Duration::from_secs(3600) * hour)
}

/// The number of messages in this hour.
fn messages(hour: u32) -> i32 {
    i32::try_from(hour * 37 % 101).unwrap_or(0)
}

pub async fn run(stage: &Stage) -> Outcome {
    stage.say(&format!("messages of each hour of {DAYS} days, {HOURS} values"));
    let (hours, days) = (stage.table("Hours").await?, stage.table("Days").await?);
    fill(
        &hours,
        (0..HOURS).map(|hour| Entity::new("inbox", keys::hour(time(hour))).with("Messages", messages(hour))),
    )
    .await?;
    let series = Series::hourly(&days);
    series.put_all("inbox", (0..HOURS).map(|hour| (time(hour), messages(hour)))).await?;

    let inbox = || partition_key().eq("inbox");
    let each = hours.query().filter(inbox().and(row_key().starts_with("202601")));
    let each = stage.look::<Entity>(Class::Range, "the month, an entity for each hour", &each).await?;
    stage.same("hours of the month", each.cost.returned, u64::from(HOURS))?;
    stage.scanned("an entity each", each.cost, HOURS.into())?;
    let together = days.query().filter(inbox().and(row_key().starts_with("202601")));
    let together = stage.look::<Entity>(Class::Range, "the month, an entity for each day", &together).await?;
    stage.same("days of the month", together.cost.returned, u64::from(DAYS))?;
    stage.scanned("a day each", together.cost, DAYS.into())?;
    let values: Vec<_> = series.between("inbox", time(0), time(HOURS)).await?;
    let expected: Vec<_> = (0..HOURS).map(|hour| (time(hour), Value::Int32(messages(hour)))).collect();
    stage.same("the values, in order", values, expected)?;

    let day = stage.get::<Entity>("one day", &days, "inbox", &keys::day(time(100))).await?;
    stage.same("values of a day", day.entities.iter().map(|day| day.properties.len()).sum(), 24)?;

    // A merge adds a value without reading the others.
    let next = time(HOURS);
    stage.timed("one more value", series.put("inbox", next, 7)).await?;
    let grown = series.day("inbox", next).await?;
    stage.same("a day that has just begun", grown.iter().flatten().collect(), vec![&Value::Int32(7)])?;
    stage.same("the others stay as they were", series.day("inbox", time(100)).await?.len(), 24)
}
