//! Wide entities: more properties than an entity can have, in several rows that are written together.

use partita_client::{Entity, Error, Match, StoredEntity, partition_key, row_key};
use partita_client_patterns::wide;

use crate::cost::Class;
use crate::stage::{Outcome, Stage};

const ANSWERS: usize = 700;

fn survey(answers: usize) -> Entity {
    let mut survey = Entity::new("surveys", "2026");
    for number in 0..answers {
        survey.set(format!("Answer{number:03}"), number as i64);
    }
    survey
}

pub async fn run(stage: &Stage) -> Outcome {
    let table = stage.table("Surveys").await?;
    stage.say(&format!("a survey of {ANSWERS} answers; an entity has 252 properties at most"));
    match table.insert(&survey(ANSWERS)).await {
        Err(error) => stage.same("the survey as one entity", error.status(), Some(400))?,
        // Azurite accepts it.
        Ok(etag) => {
            stage.say("this service accepts it as one entity; do not rely on it");
            table.delete("surveys", "2026", etag).await?;
        }
    }

    stage.timed("the survey as a wide entity: one transaction", wide::put(&table, &survey(ANSWERS))).await?;
    let all = table.query().filter(partition_key().eq("surveys"));
    let rows: Vec<StoredEntity<Entity>> = all.clone().all().await?;
    let names: Vec<&str> = rows.iter().map(|row| row.row_key.as_str()).collect();
    stage.same("its rows", names, vec!["2026", "2026~1", "2026~2"])?;
    let first = stage
        .get::<Entity>("its first row, with the number of the others", &table, "surveys", "2026")
        .await?;
    let others = all.clone().filter(row_key().starts_with("2026~"));
    let others = stage.look::<Entity>(Class::Range, "its other rows", &others).await?;
    stage.scanned("a wide entity", first.cost.and(others.cost), 3)?;
    // `wide::get` does these two.
    let found: StoredEntity<Entity> = wide::get(&table, "surveys", "2026").await?;
    stage.same("the survey, joined", &found.entity, &survey(ANSWERS))?;

    let stale = found.etag.clone();
    wide::replace(&table, &survey(300), &stale).await?;
    let refused = wide::replace(&table, &survey(500), &stale).await.err();
    stage.same("a change of an old version", refused.and_then(|error| error.status()), Some(412))?;
    stage.same("rows of a shorter one", all.clone().count().await?, 2)?;
    let found: StoredEntity<Entity> = wide::get(&table, "surveys", "2026").await?;
    stage.same("the shorter one", &found.entity, &survey(300))?;

    // If only one row is written, the wide entity is unreadable, but never a mixture of two writes.
    table.merge(&Entity::new("surveys", "2026~1").with("WideGeneration", "another"), Match::Any).await?;
    let torn = wide::get::<Entity>(&table, "surveys", "2026").await;
    stage.holds("a torn one is refused", matches!(torn, Err(Error::Unreadable(_))))?;
    wide::put(&table, &survey(ANSWERS)).await?;
    let found: StoredEntity<Entity> = wide::get(&table, "surveys", "2026").await?;
    stage.same("written again", &found.entity, &survey(ANSWERS))?;
    stage.holds("deleted", wide::delete(&table, "surveys", "2026").await?)?;
    stage.same("rows after it", all.count().await?, 0)
}
