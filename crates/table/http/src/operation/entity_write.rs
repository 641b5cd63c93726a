//! Insert, update, merge, upsert and delete an entity, alone or as part of a group.

use model::{DateTime, ETag, Entity, EntityKey, IfMatch, TableName};
use service::Write;
use store::{RowDraft, StoredName, TableRef};
use wire::entity_json::EntityView;
use wire::{EntityBody, Format, format, url};

use super::show::EntityFormat;
use super::{Call, Context, table};
use crate::answer::{Answer, Failure, Preference};
use crate::route::Operation;
use front::Held;

/// A write that was read and found valid, and how to answer once it is done.
pub struct Prepared {
    pub table: TableRef,
    pub write: Write,
    pub reply: Reply,
}

pub enum Reply {
    Inserted {
        table: StoredName,
        location: String,
        preference: Option<Preference>,
        /// What to show, unless the client wants nothing shown.
        shown: Option<Shown>,
    },
    Written {
        preference: Option<Preference>,
    },
    Deleted,
}

/// What was inserted, and how to show it.
pub struct Shown {
    key: EntityKey,
    draft: RowDraft,
    format: Format,
    /// The names of times that were sent with an offset: the answer shows them so.
    offset_times: Vec<String>,
    /// For writing it: a write that is done has to be answered.
    held: Held,
}

pub async fn run(context: &Context<'_>, call: &Call<'_>, operation: Operation) -> Result<Answer, Failure> {
    let Prepared { table, write, reply } = prepare(context, call, operation).await?;
    let timestamp = context.service.write_entity(&table, write).await?;
    Ok(reply.answer(context, timestamp).await)
}

/// Reads a write: conditions, then body. Anything but a write of an entity is not allowed here. A table that is missing
/// is found when the write is made, or before something else is refused.
pub async fn prepare(
    context: &Context<'_>,
    call: &Call<'_>,
    operation: Operation,
) -> Result<Prepared, Failure> {
    if let Operation::PutEntity(_, key) | Operation::MergeEntity(_, key) | Operation::DeleteEntity(_, key) =
        &operation
    {
        reaches(context, key)?;
    }
    read(context, call, operation).await
}

/// A token's range is judged before the table is looked for, as soon as the keys are known.
fn reaches(context: &Context<'_>, key: &EntityKey) -> Result<(), Failure> {
    context.reaches(key).map_err(|refusal| Failure { reached_the_store: true, ..refusal.into() })
}

async fn read(context: &Context<'_>, call: &Call<'_>, operation: Operation) -> Result<Prepared, Failure> {
    match operation {
        Operation::InsertEntity(name) => insert(context, call, name).await,
        Operation::PutEntity(name, key) => {
            let table = context.table(name);
            let (condition, entity) = change(context, call, &table, key).await?;
            let write = match condition {
                Some(version) => Write::update(entity, version),
                None => Write::insert_or_replace(entity),
            };
            Ok(Prepared { table, write, reply: written(context, call) })
        }
        Operation::MergeEntity(name, key) => {
            let table = context.table(name);
            let (condition, entity) = change(context, call, &table, key).await?;
            let write = match condition {
                Some(version) => Write::merge(entity, version),
                None => Write::insert_or_merge(entity),
            };
            Ok(Prepared { table, write, reply: written(context, call) })
        }
        Operation::DeleteEntity(name, key) => {
            let table = context.table(name);
            let condition = call.condition.required().map_err(Failure::from);
            let write = Write::delete(key, context.unless_missing(&table, condition).await?);
            Ok(Prepared { table, write, reply: Reply::Deleted })
        }
        Operation::RefuseIn(name, refusal) => {
            context.service.require_table(&context.table(name)).await?;
            Err(refusal.into())
        }
        Operation::QueryTables
        | Operation::GetTable(_)
        | Operation::CreateTable
        | Operation::DeleteTable(_)
        | Operation::QueryEntities(_)
        | Operation::GetEntity(..)
        | Operation::GetProperties
        | Operation::SetProperties
        | Operation::GetStatistics
        | Operation::GetPolicies(_)
        | Operation::SetPolicies(_)
        | Operation::Batch => Err(model::Refusal::MethodNotAllowed.into()),
    }
}

async fn insert(context: &Context<'_>, call: &Call<'_>, name: TableName) -> Result<Prepared, Failure> {
    let table = context.table(name);
    let read = entity(context, call).await;
    let (entity, offset_times) = context.unless_missing(&table, read).await?;
    reaches(context, &entity.key)?;
    let preference = table::preference(context, call);
    let (partition, row) = (entity.key.partition.as_str(), entity.key.row.as_str());
    let location = url::entity_address(&context.site.base, table.name.as_str(), partition, row);
    let write = Write::insert(entity);
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
        Ok::<_, Failure>(Shown {
            key,
            draft: draft.clone(),
            format: call.format,
            offset_times: offset_times.clone(),
            held,
        })
    });
    let shown = shown.transpose()?;
    let reply = Reply::Inserted { table: table.name.clone(), location, preference, shown };
    Ok(Prepared { table, write, reply })
}

/// The condition of an update, and its entity.
async fn change<'a>(
    context: &Context<'_>,
    call: &Call<'a>,
    table: &TableRef,
    key: EntityKey,
) -> Result<(Option<&'a IfMatch>, Entity<'a>), Failure> {
    let read = match call.condition.if_any() {
        Ok(condition) => entity_at(context, call, key).await.map(|entity| (condition, entity)),
        Err(refusal) => Err(refusal.into()),
    };
    context.unless_missing(table, read).await
}

/// The entity in a body, and the names of its times that were written with an offset.
async fn entity<'a>(context: &Context<'_>, call: &Call<'a>) -> Result<(Entity<'a>, Vec<String>), Failure> {
    let format = format::of_body(call.content_type()?, context.version)?;
    let read = || {
        let body = EntityBody::read(format, call.body)?;
        let offset_times = body.offset_times.iter().map(|name| name.to_string()).collect();
        Ok((body.into_entity()?, offset_times))
    };
    context.read(read).await
}

/// The entity in a body whose keys count for nothing.
async fn entity_at<'a>(
    context: &Context<'_>,
    call: &Call<'a>,
    key: EntityKey,
) -> Result<Entity<'a>, Failure> {
    let format = format::of_body(call.content_type()?, context.version)?;
    let read = || EntityBody::read_without_keys(format, call.body)?.into_entity_at(key);
    Ok(context.read(read).await?)
}

fn written(context: &Context<'_>, call: &Call<'_>) -> Reply {
    Reply::Written { preference: table::preference(context, call).filter(|p| *p == Preference::NoContent) }
}

impl Reply {
    pub async fn answer(self, context: &Context<'_>, timestamp: DateTime) -> Answer {
        let etag = Some(ETag(timestamp).text());
        match self {
            Self::Written { preference } => {
                Answer { status: 204, etag, preference_applied: preference, ..Answer::default() }
            }
            Self::Deleted => Answer { status: 204, ..Answer::default() },
            Self::Inserted { location, preference, shown: None, .. } => Answer {
                status: 204,
                etag,
                location: Some(location),
                names_location_twice: true,
                preference_applied: preference,
                ..Answer::default()
            },
            Self::Inserted { table, location, preference, shown: Some(shown) } => {
                let Shown { key, draft, format, offset_times, held } = shown;
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
                Answer {
                    status: 201,
                    etag,
                    location: Some(location),
                    preference_applied: preference,
                    content: Some(content),
                    ..Answer::default()
                }
            }
        }
    }
}
