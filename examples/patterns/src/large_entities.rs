//! Large entities: a value of any length in a blob beside the table, or in chunks, which readers see only when it is complete.

use std::time::Instant;

use futures_util::TryStreamExt as _;
use partita_client::{BlobEntry, DeleteSnapshots, Entity, Error, Match, Table, partition_key, row_key};
use partita_client_patterns::large::Large;

use crate::cost::{Class, Cost};
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

    in_a_blob(stage, &table).await?;
    in_chunks(stage, &table).await
}

/// The photo is a blob with a name of its own, and the entity has this name. The blob is written before the entity and deleted
/// after it, so that an entity never names a blob that is not there.
async fn in_a_blob(stage: &Stage, table: &Table) -> Outcome {
    let photos = stage.container("photos").await?;
    let store = async |seed: usize| -> Outcome<String> {
        let name = format!("000223/{:032x}", rand::random::<u128>());
        photos.blob(&name)?.if_absent().upload(photo(seed)).await?;
        let before = table.find::<Entity>("employees", "000223").await?;
        let employee = Entity::new("employees", "000223").with("Name", "Jones").with("Photo", name.as_str());
        match &before {
            None => table.insert(&employee).await?,
            Some(before) => table.replace(&employee, &before.etag).await?,
        };
        if let Some(old) = before.as_ref().and_then(|before| before.text("Photo")) {
            photos.blob(old)?.delete(DeleteSnapshots::Include).await?;
        }
        Ok(name)
    };
    stage.timed("a blob, and then the entity that names it", store(1)).await?;
    let found =
        stage.get::<Entity>("the entity, without a byte of the photo", table, "employees", "000223").await?;
    let name = found.entities[0].text("Photo").unwrap_or_default().to_owned();
    let start = Instant::now();
    let whole = photos.blob(&name)?.read(2 * BYTES).await?;
    let cost = Cost { requests: 1, returned: 1, examined: Some(0), time: start.elapsed() };
    stage.tell(Class::Blob, "its photo, whole", cost);
    stage.holds("the photo from its blob", whole == photo(1))?;
    let part = photos.blob(&name)?.download_range(100_000..100_010).await?.collect(BYTES).await?;
    stage.same("a part of the photo", &part[..], &photo(1)[100_000..100_010])?;

    // A writer that dies after the upload leaves a blob that no entity names.
    photos.blob("000223/left-behind")?.upload(photo(3)).await?;
    let (name, _) = stage.timed("another photo in its place", store(2)).await?;
    let read = photos.blob(&name)?.read(2 * BYTES).await?;
    stage.holds("the new photo from its blob", read == photo(2))?;
    let blobs: Vec<BlobEntry> = photos.blobs().stream().try_collect().await?;
    stage.same("blobs: the photo, and what was left behind", blobs.len(), 2)?;
    // A program that does this now and then leaves young blobs alone: their writer may still be at work.
    for entry in &blobs {
        let employee = entry.name.split('/').next().unwrap_or_default();
        let owner = table.find::<Entity>("employees", employee).await?;
        if owner.as_ref().and_then(|owner| owner.text("Photo")) != Some(entry.name.as_str()) {
            photos.blob(&entry.name)?.delete(DeleteSnapshots::Include).await?;
        }
    }
    let left: Vec<BlobEntry> = photos.blobs().stream().try_collect().await?;
    stage.same("what is left after the sweep", left.len(), 1)?;
    stage.same("it is the photo", left[0].name.as_str(), name.as_str())?;
    // The entity first.
    table.delete("employees", "000223", Match::Any).await?;
    Ok(photos.blob(&name)?.delete(DeleteSnapshots::Include).await?)
}

/// The same within the table, for an endpoint that has no blobs, or to be encrypted and copied with the table.
async fn in_chunks(stage: &Stage, table: &Table) -> Outcome {
    let photos = Large::new(table);
    let employee = Entity::new("employees", "000223").with("Name", "Jones");
    stage.timed("chunks, and then the entity that shows them", photos.put(&employee, &photo(1))).await?;
    let chunks = || table.query().filter(partition_key().starts_with("employees!000223!"));
    stage.same("chunks", chunks().count().await?, 2)?;
    stage
        .get::<Entity>("the entity alone, without a byte of the photo", table, "employees", "000223")
        .await?;
    let keys: Vec<_> = chunks()
        .all::<Entity>()
        .await?
        .into_iter()
        .map(|chunk| (chunk.partition_key.clone(), chunk.row_key.clone()))
        .collect();
    stage.get_each::<Entity>("the chunks", table, &keys).await?;
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
