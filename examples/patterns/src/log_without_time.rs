//! Anti-pattern: a log whose keys do not contain the time, so that every line is examined to find the last day. The
//! solutions: a blob for each machine and day, a table for each day, and keys of inverted time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::TryStreamExt as _;
use partita_client::{
    BlobEntry, DateTime, DeleteSnapshots, Entity, StoredEntity, UploadOptions, partition_key, property,
    row_key,
};
use partita_client_patterns::daily::Daily;
use partita_client_patterns::keys;

use crate::cost::{Class, Cost};
use crate::stage::{Outcome, Stage, at_once, fill, read};

const DAYS: u32 = 10;
const LINES_PER_DAY: u32 = 100;
/// Lines that a machine appends to its log together.
const LINES_AT_ONCE: usize = 10;
const LOG_BYTES_MAX: usize = 1 << 20;

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

    let found = in_blobs(stage, last).await?;
    stage.same("the last day by its blobs", found, expected.clone())?;

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

/// An append blob for each machine and day. Returns the lines of this day.
async fn in_blobs(stage: &Stage, of: DateTime) -> Outcome<Vec<String>> {
    let logs = stage.container("logs").await?;
    let folder = |day: DateTime| format!("{}/", &day.to_fixed_string()[..10]);
    let mut logged: BTreeMap<String, String> = BTreeMap::new();
    for line in (0..DAYS).flat_map(lines) {
        let log = logged.entry(format!("{}{}.log", folder(line.time), line.machine)).or_default();
        log.push_str(&format!("{} {}\n", line.time.to_fixed_string(), line.id));
    }
    let write = async |(name, text): (&String, &String)| {
        let log = logs.blob(name)?;
        log.create_append(&UploadOptions::new()).await?;
        // A machine gathers some lines, and appends them together.
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for some in lines.chunks(LINES_AT_ONCE) {
            log.append(some.concat()).await?;
        }
        Ok(())
    };
    at_once(logged.iter().map(write)).await?;

    let start = Instant::now();
    let of_day: Vec<_> = logs.blobs().prefix(folder(of)).stream().try_collect().await?;
    let read = async |entry: &BlobEntry| logs.blob(&entry.name)?.read(LOG_BYTES_MAX).await;
    let texts = at_once(of_day.iter().map(read)).await?;
    let text: String = texts.iter().map(|text| String::from_utf8_lossy(text)).collect();
    let mut ids: Vec<String> =
        text.lines().filter_map(|line| line.split(' ').nth(1)).map(str::to_owned).collect();
    ids.sort();
    // The list, and each blob.
    let (requests, returned) = (u32::try_from(of_day.len()).unwrap_or(u32::MAX) + 1, ids.len() as u64);
    let cost = Cost { requests, returned, examined: Some(0), time: start.elapsed() };
    stage.tell(Class::Blob, "a blob for each machine and day: those of the last", cost);
    stage.same("blobs of a day", of_day.len(), 5)?;

    // What is too old goes with its blobs.
    for day_over in 0..DAYS - 1 {
        let old: Vec<_> = logs.blobs().prefix(folder(day(day_over))).stream().try_collect().await?;
        let delete = async |entry: &BlobEntry| logs.blob(&entry.name)?.delete(DeleteSnapshots::Include).await;
        at_once(old.iter().map(delete)).await?;
    }
    let left: Vec<BlobEntry> = logs.blobs().stream().try_collect().await?;
    stage.same("blobs after the old days are deleted", left.len(), 5)?;
    Ok(ids)
}
