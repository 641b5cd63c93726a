//! Anti-pattern: a log whose keys do not contain the time, so that every line is examined to find the last day. The
//! solutions: a table for each day, and keys of inverted time.

use std::time::Duration;

use partita_client::{DateTime, Entity, StoredEntity, partition_key, property, row_key};
use partita_client_patterns::daily::Daily;
use partita_client_patterns::keys;

use crate::cost::{Class, Cost};
use crate::stage::{Outcome, Stage, fill, read};

const DAYS: u32 = 10;
const LINES_PER_DAY: u32 = 100;

/// The beginning of a day.
fn day(number: u32) -> DateTime {
    let start = DateTime::parse("2026-01-20").unwrap_or(DateTime::MIN);
    start.plus(Duration::from_secs(86_400) * number)
}

struct Line {
    time: DateTime,
    machine: String,
    id: String,
}

impl Line {
    fn entity(&self, partition: &str, row: String) -> Entity {
        Entity::new(partition, row).with("Time", self.time).with("Line", self.id.as_str())
    }
}

fn lines(of: u32) -> impl Iterator<Item = Line> {
    (0..LINES_PER_DAY).map(move |number| Line {
        time: day(of).plus(Duration::from_secs(840) * number),
        machine: format!("web{}", number % 5),
        id: format!("{of:02}-{number:04}"),
    })
}

pub async fn run(stage: &Stage) -> Outcome {
    stage.say(&format!("{LINES_PER_DAY} lines a day for {DAYS} days; which are of the last day?"));
    let timeless = stage.table("Timeless").await?;
    let tail = stage.table("Tail").await?;
    let daily = Daily::new(stage.service(), &stage.name("Log"))?;
    fill(
        &timeless,
        // An id without meaning, like a Guid.
        (0..DAYS)
            .flat_map(lines)
            .map(|line| line.entity(&line.machine, format!("{:032x}", rand::random::<u128>()))),
    )
    .await?;
    fill(&tail, (0..DAYS).flat_map(lines).map(|line| line.entity(&line.machine, keys::log_tail(line.time))))
        .await?;
    for of in 0..DAYS {
        let table = daily.table(day(of))?;
        table.create_if_missing().await?;
        fill(&table, lines(of).map(|line| line.entity(&line.machine, keys::log_tail(line.time)))).await?;
    }
    let (last, per_machine) = (day(DAYS - 1), u64::from(LINES_PER_DAY / 5));
    let all = u64::from(DAYS * LINES_PER_DAY);
    let mut expected: Vec<String> = lines(DAYS - 1).map(|line| line.id).collect();
    expected.sort();
    let ids = |entities: &[StoredEntity<Entity>]| {
        let mut ids: Vec<String> =
            entities.iter().filter_map(|line| line.text("Line").map(str::to_owned)).collect();
        ids.sort();
        ids
    };

    let scan = timeless.query().filter(property("Time").ge(last));
    let scan = stage.look::<Entity>(Class::TableScan, "keys without time: by a property", &scan).await?;
    stage.same("the last day by a scan", ids(&scan.entities), expected.clone())?;
    stage.scanned("keys without time", scan.cost, all)?;

    let table = daily.table(last)?;
    let of_day = stage
        .look::<Entity>(Class::TableScan, "a table for each day: all of the last", &table.query())
        .await?;
    stage.same("the last day by its table", ids(&of_day.entities), expected.clone())?;
    stage.scanned("a table for each day", of_day.cost, LINES_PER_DAY.into())?;

    let mut found = Vec::new();
    let mut cost = Cost::sum([]);
    for machine in 0..5 {
        let lines =
            partition_key().eq(format!("web{machine}")).and(keys::log_between(row_key(), last, day(DAYS)));
        let range = read::<Entity>(&tail.query().filter(lines)).await?;
        stage.scanned("one machine's last day", range.cost, per_machine)?;
        cost = cost.and(range.cost);
        found.extend(range.entities);
    }
    stage.tell(Class::Range, "inverted time: a range of each machine", cost);
    stage.scanned("inverted time", cost, LINES_PER_DAY.into())?;
    stage.same("the last day by ranges", ids(&found), expected)?;
    let newest = tail.query().filter(partition_key().eq("web0")).take(5);
    let newest = stage
        .look_first::<Entity>(Class::Range, "inverted time: one machine's last five lines", &newest)
        .await?;
    stage.same("the last five lines", newest.cost.returned, 5)?;
    stage.scanned("the last five lines", newest.cost, 5)
}
