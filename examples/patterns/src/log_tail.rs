//! Log tail: row keys of inverted time, so that the newest entities are first, and a query finds the last ten at once.

use std::time::Duration;

use partita_client::{DateTime, partition_key, row_key};
use partita_client_patterns::keys;
use serde::{Deserialize, Serialize};

use crate::cost::Class;
use crate::stage::{Outcome, Stage, fill};

const CLAIMS: u32 = 1200;

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Claim {
    #[serde(rename = "PartitionKey")]
    employee: String,
    #[serde(rename = "RowKey")]
    key: String,
    number: u32,
}

fn time(number: u32) -> DateTime {
    let start = DateTime::parse("2026-01-01").unwrap_or(DateTime::MIN);
    start.plus(Duration::from_secs(3600) * number)
}

pub async fn run(stage: &Stage) -> Outcome {
    let newest_first = stage.table("NewestFirst").await?;
    let oldest_first = stage.table("OldestFirst").await?;
    let claim = |number, key| Claim { employee: "000223".to_owned(), key, number };
    fill(&newest_first, (0..CLAIMS).map(|number| claim(number, keys::log_tail(time(number))))).await?;
    fill(&oldest_first, (0..CLAIMS).map(|number| claim(number, keys::oldest_first(time(number))))).await?;
    stage.say(&format!("{CLAIMS} expense claims of one employee, one an hour"));

    let of_employee = || partition_key().eq("000223");
    let last = newest_first.query().filter(of_employee()).take(10);
    let tail = stage.look_first::<Claim>(Class::Range, "the last ten, newest first", &last).await?;
    let numbers: Vec<u32> = tail.entities.iter().map(|claim| claim.number).collect();
    let expected: Vec<u32> = (CLAIMS - 10..CLAIMS).rev().collect();
    stage.same("the last ten claims", numbers, expected.clone())?;
    stage.scanned("the last ten", tail.cost, 10)?;

    let all = oldest_first.query().filter(of_employee());
    let all =
        stage.look::<Claim>(Class::PartitionScan, "the last ten, oldest first: all of it", &all).await?;
    let numbers: Vec<u32> = all.entities.iter().rev().take(10).map(|claim| claim.number).collect();
    stage.same("the last ten claims, found the long way", numbers, expected)?;
    stage.scanned("the last ten, the long way", all.cost, CLAIMS.into())?;

    let (from, until) = (time(CLAIMS - 48), time(CLAIMS - 24));
    let day = newest_first.query().filter(of_employee().and(keys::log_between(row_key(), from, until)));
    let day = stage.look::<Claim>(Class::Range, "the day before the last", &day).await?;
    stage.same("claims of a day", day.cost.returned, 24)?;
    stage.scanned("a day", day.cost, 24)?;
    let first = day.entities.first().map(|claim| keys::log_time(&claim.key)).transpose()?;
    stage.same("the time is read back from the key", first, Some(time(CLAIMS - 25)))
}
