//! Large entities: a value of any length in chunks, which readers see only when it is complete.

use futures_util::TryStreamExt as _;
use partita_client::{Entity, Error, Match, partition_key, row_key};
use partita_client_patterns::large::Large;

use crate::stage::{Outcome, Stage};

const BYTES: usize = 1_200_000;

fn photo(seed: usize) -> Vec<u8> {
    (0..BYTES).map(|at| (at.wrapping_mul(31).wrapping_add(seed) % 251) as u8).collect()
}

pub async fn run(stage: &Stage) -> Outcome {
    let table = stage.table("Photos").await?;
    stage.say(&format!("photos of {BYTES} bytes; an entity holds 1 MiB, a property 64 KiB"));
    let whole = Entity::new("employees", "000223").with("Photo", photo(0));
    let refused = table.insert(&whole).await.err();
    stage.holds(
        "the photo as a property is refused",
        refused.is_some_and(|error| error.refusal().is_some()),
    )?;

    let photos = Large::new(&table);
    let employee = Entity::new("employees", "000223").with("Name", "Jones");
    stage.timed("chunks, and then the entity that shows them", photos.put(&employee, &photo(1))).await?;
    let chunks = || table.query().filter(partition_key().starts_with("employees!000223!"));
    stage.same("chunks", chunks().count().await?, 2)?;
    stage
        .get::<Entity>("the entity alone, without a byte of the photo", &table, "employees", "000223")
        .await?;
    let keys: Vec<_> = chunks()
        .all::<Entity>()
        .await?
        .into_iter()
        .map(|chunk| (chunk.partition_key.clone(), chunk.row_key.clone()))
        .collect();
    stage.get_each::<Entity>("the chunks", &table, &keys).await?;
    let found = photos.find("employees", "000223").await?;
    let Some(found) = found else { return stage.holds("the entity is found", false) };
    stage.same("its other properties", &found.entity.entity, &employee)?;
    let pieces: Vec<Vec<u8>> = found.stream().try_collect().await?;
    stage.holds("the photo, piece by piece", pieces.concat() == photo(1))?;

    stage.timed("another photo in its place", photos.put(&employee, &photo(2))).await?;
    let read = photos.read("employees", "000223").await?;
    stage.holds("the new photo", read == Some(photo(2)))?;
    stage.same("chunks once the old are gone", chunks().count().await?, 2)?;

    // Other bytes in the middle are never taken for the photo.
    let middle = chunks().filter(row_key().eq("000001")).first::<Entity>().await?;
    let Some(middle) = middle else { return stage.holds("there is a second chunk", false) };
    let other = Entity::new(&middle.partition_key, &middle.row_key).with("D00", vec![0_u8; 65_536]);
    table.merge(&other, Match::Any).await?;
    let damaged = photos.read("employees", "000223").await;
    stage.holds("a damaged photo is refused", matches!(damaged, Err(Error::Unreadable(_))))?;
    stage.holds("deleted", photos.delete("employees", "000223").await?)?;
    stage.same("rows after it", table.query().count().await?, 0)
}
