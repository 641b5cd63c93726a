//! Insert, update, merge, upsert and delete an entity, alone or as part of a batch.

use model::{DateTime, ETag, Entity, EntityKey, IfMatch, TableName};
use service::EntityWrite;
use store::{RowDraft, StoredName, TableRef};
use wire::entity_json::EntityView;
use wire::{EntityBody, Format, url};

use super::show::EntityFormat;
use super::{Call, Context, Operation};
use crate::answer::{Preference, TableAnswer, TableFailure};
use front::MemoryShare;

/// A valid write, and how to answer when it is done.
pub struct WriteRequest {
    pub table: TableRef,
    pub write: EntityWrite,
    pub reply: Reply,
}

pub enum Reply {
    Inserted {
        table: StoredName,
        location: String,
        preference: Option<Preference>,
        /// The entity to show, unless the client wants no content.
        shown: Option<InsertedEntity>,
    },
    Written {
        preference: Option<Preference>,
    },
    Deleted,
}

/// The inserted entity, and how to show it.
pub struct InsertedEntity {
    key: EntityKey,
    draft: RowDraft,
    format: Format,
    /// The names of times that the request has with an offset; the answer shows them in the same way.
    offset_times: Vec<String>,
    /// The memory for writing it, held in advance: after the write it must be answered.
    held: MemoryShare,
}

pub async fn run(
    context: &Context<'_>,
    call: &Call<'_>,
    operation: Operation,
) -> Result<TableAnswer, TableFailure> {
    let WriteRequest { table, write, reply } = prepare(context, call, operation).await?;
    let timestamp = context.service.write_entity(&table, write).await?;
    Ok(reply.answer(context, timestamp).await)
}

/// Reads a write: conditions, then body. Only writes of entities are allowed. A missing table is found by the write itself,
/// or before another refusal is reported.
pub async fn prepare(
    context: &Context<'_>,
    call: &Call<'_>,
    operation: Operation,
) -> Result<WriteRequest, TableFailure> {
    if let Operation::PutEntity(_, key) | Operation::MergeEntity(_, key) | Operation::DeleteEntity(_, key) =
        &operation
    {
        reaches(context, key)?;
    }
    read(context, call, operation).await
}

/// A token's range is checked as soon as the keys are known, before the table is looked up.
fn reaches(context: &Context<'_>, key: &EntityKey) -> Result<(), TableFailure> {
    context.reaches(key).map_err(|refusal| TableFailure { reached_the_store: true, ..refusal.into() })
}

async fn read(
    context: &Context<'_>,
    call: &Call<'_>,
    operation: Operation,
) -> Result<WriteRequest, TableFailure> {
    match operation {
        Operation::InsertEntity(name) => insert(context, call, name).await,
        Operation::PutEntity(name, key) => {
            let table = context.table(name);
            let (condition, entity) = change(context, call, &table, key).await?;
            let write = match condition {
                Some(version) => EntityWrite::update(entity, version),
                None => EntityWrite::insert_or_replace(entity),
            };
            Ok(WriteRequest { table, write, reply: written(context, call) })
        }
        Operation::MergeEntity(name, key) => {
            let table = context.table(name);
            let (condition, entity) = change(context, call, &table, key).await?;
            let write = match condition {
                Some(version) => EntityWrite::merge(entity, version),
                None => EntityWrite::insert_or_merge(entity),
            };
            Ok(WriteRequest { table, write, reply: written(context, call) })
        }
        Operation::DeleteEntity(name, key) => {
            let table = context.table(name);
            let condition = call.condition.required().map_err(TableFailure::from);
            let write = EntityWrite::delete(key, context.unless_missing(&table, condition).await?);
            Ok(WriteRequest { table, write, reply: Reply::Deleted })
        }
        Operation::RefuseIn(name, refusal) => {
            context.service.require_table(&context.table(name)).await?;
            Err(refusal.into())
        }
        _ => Err(model::Refusal::MethodNotAllowed.into()),
    }
}

async fn insert(
    context: &Context<'_>,
    call: &Call<'_>,
    name: TableName,
) -> Result<WriteRequest, TableFailure> {
    let table = context.table(name);
    let read = entity(context, call).await;
    let (entity, offset_times) = context.unless_missing(&table, read).await?;
    reaches(context, &entity.key)?;
    let preference = call.preference(context);
    let (partition, row) = (entity.key.partition.as_str(), entity.key.row.as_str());
    let location = url::entity_address(&context.site.base, table.name.as_str(), partition, row);
    let write = EntityWrite::insert(entity);
    let shows = preference != Some(Preference::NoContent);
    let shown = write.draft().filter(|_| shows).map(|draft| {
        let format = EntityFormat {
            context,
            format: call.format,
            table: &table.name,
            select: None,
            offset_times: &offset_times,
        };
        let held = context.hold(draft.len() + format.bytes_to_write(draft.len()))?;
        let key = write.key().clone();
        Ok::<_, TableFailure>(InsertedEntity {
            key,
            draft: draft.clone(),
            format: call.format,
            offset_times: offset_times.clone(),
            held,
        })
    });
    let shown = shown.transpose()?;
    let reply = Reply::Inserted { table: table.name.clone(), location, preference, shown };
    Ok(WriteRequest { table, write, reply })
}

/// The condition of an update, and its entity.
async fn change<'a>(
    context: &Context<'_>,
    call: &Call<'a>,
    table: &TableRef,
    key: EntityKey,
) -> Result<(Option<&'a IfMatch>, Entity<'a>), TableFailure> {
    let read = match call.condition.if_any() {
        Ok(condition) => entity_at(context, call, key).await.map(|entity| (condition, entity)),
        Err(refusal) => Err(refusal.into()),
    };
    context.unless_missing(table, read).await
}

/// The entity in a body, and the names of its times that have an offset.
async fn entity<'a>(
    context: &Context<'_>,
    call: &Call<'a>,
) -> Result<(Entity<'a>, Vec<String>), TableFailure> {
    let format = call.body_format(context)?;
    let read = || {
        let body = EntityBody::read(format, call.body)?;
        let offset_times = body.offset_times.iter().map(|name| name.to_string()).collect();
        Ok((body.into_entity()?, offset_times))
    };
    context.read(read).await
}

/// The entity in a body whose keys are ignored.
async fn entity_at<'a>(
    context: &Context<'_>,
    call: &Call<'a>,
    key: EntityKey,
) -> Result<Entity<'a>, TableFailure> {
    let format = call.body_format(context)?;
    let read = || EntityBody::read_without_keys(format, call.body)?.into_entity_at(key);
    Ok(context.read(read).await?)
}

fn written(context: &Context<'_>, call: &Call<'_>) -> Reply {
    Reply::Written { preference: call.preference(context).filter(|p| *p == Preference::NoContent) }
}

impl Reply {
    pub async fn answer(self, context: &Context<'_>, timestamp: DateTime) -> TableAnswer {
        let etag = Some(ETag(timestamp).text());
        match self {
            Self::Written { preference } => {
                TableAnswer { status: 204, etag, preference_applied: preference, ..TableAnswer::default() }
            }
            Self::Deleted => TableAnswer { status: 204, ..TableAnswer::default() },
            Self::Inserted { location, preference, shown: None, .. } => TableAnswer {
                status: 204,
                etag,
                location: Some(location),
                names_location_twice: true,
                preference_applied: preference,
                ..TableAnswer::default()
            },
            Self::Inserted { table, location, preference, shown: Some(shown) } => {
                let InsertedEntity { key, draft, format, offset_times, held } = shown;
                let view = EntityView {
                    partition: key.partition.as_str(),
                    row: key.row.as_str(),
                    timestamp,
                    properties: draft.view().properties(),
                };
                let format = EntityFormat {
                    context,
                    format,
                    table: &table,
                    select: None,
                    offset_times: &offset_times,
                };
                let content = context.write(draft.len(), || format.one(view)).await.holding(held);
                TableAnswer {
                    status: 201,
                    etag,
                    location: Some(location),
                    preference_applied: preference,
                    content: Some(content),
                    ..TableAnswer::default()
                }
            }
        }
    }
}
