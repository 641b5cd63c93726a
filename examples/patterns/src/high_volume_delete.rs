//! High-volume delete: entities that are deleted together are in their own table, so deleting them is one request.

use partita_client::{DateTime, Entity, Match};
use partita_client_patterns::bulk::Bulk;
use partita_client_patterns::daily::Daily;

use crate::stage::{Outcome, Stage, complete, fill};

/// In each of the tables.
const LOGINS: u32 = 500;
const USERS: u32 = 20;

fn logins() -> impl Iterator<Item = Entity> {
    (0..LOGINS).map(|number| Entity::new(format!("user{:02}", number % USERS), format!("{number:06}")))
}

pub async fn run(stage: &Stage) -> Outcome {
    stage.say(&format!("{LOGINS} login attempts of {USERS} users in each table, to be deleted"));
    let table = stage.table("OneByOne").await?;
    fill(&table, logins()).await?;
    let (_, slowly) = stage
        .timed(&format!("one by one: {LOGINS} requests"), async {
            for login in logins() {
                table.delete(&login.partition_key, &login.row_key, Match::Any).await?;
            }
            Ok::<_, partita_client::Error>(())
        })
        .await?;
    stage.same("left after one by one", table.query().count().await?, 0)?;

    let table = stage.table("ByBatch").await?;
    fill(&table, logins()).await?;
    let bulk = async { complete(Bulk::new(&table).delete(|all| all).await) };
    let (deleted, together) =
        stage.timed("found by a query and deleted by transactions of a partition", bulk).await?;
    stage.same("deleted by transactions", deleted, u64::from(LOGINS))?;
    stage.same("left after transactions", table.query().count().await?, 0)?;

    let daily = Daily::new(stage.service(), &stage.name("Day"))?;
    let start = DateTime::parse("2026-01-29").unwrap_or(DateTime::MIN);
    let day = |number: u64| start.plus(std::time::Duration::from_secs(86_400 * number));
    for number in 0..3 {
        let table = daily.table(day(number))?;
        table.create_if_missing().await?;
        fill(&table, logins()).await?;
    }
    let (dropped, at_once) =
        stage.timed("two tables of three dropped, by the age of their day", daily.retain(0, day(2))).await?;
    let expected = [daily.table(day(0))?, daily.table(day(1))?].map(|table| table.name().to_owned());
    stage.same("tables dropped", dropped, expected.to_vec())?;
    let left = daily.tables(start, day(9)).await?;
    stage.same(
        "tables left",
        left.iter().map(|table| table.name()).collect(),
        vec![daily.table(day(2))?.name()],
    )?;
    let stays = daily.table(day(2))?.query().count().await?;
    stage.same("the day that stays", stays, u64::from(LOGINS))?;

    // Twice as many rows were in the dropped tables.
    let per_row = |time: std::time::Duration, rows: u32| time.as_secs_f64() * 1e6 / f64::from(rows);
    stage.say(&format!(
        "a row took {:.0} us one by one, {:.0} us by transactions, {:.1} us with its table",
        per_row(slowly, LOGINS),
        per_row(together, LOGINS),
        per_row(at_once, 2 * LOGINS)
    ));
    Ok(())
}
