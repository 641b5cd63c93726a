//! Get one entity, query many.

use model::{ETag, EntityKey, Refusal, TableName};
use service::EntityQuery;
use wire::entity_json::EntityView;
use wire::url::QueryString;
use wire::{Select, names, token};

use super::show::EntityFormat;
use super::{Call, Context, option, refuse_unknown_options};
use crate::answer::{Answer, Failure};
use crate::headers::X_PARTITA_EXAMINED;

pub async fn get(
    context: &Context<'_>,
    call: &Call<'_>,
    table: TableName,
    key: EntityKey,
) -> Result<Answer, Failure> {
    let table = context.table(table);
    let check = || {
        refuse_unknown_options(call.query)?;
        let select = select(context, call.query)?;
        // To a token with a range, what lies outside of it does not exist.
        if context.grant.covers(&key) { Ok(select) } else { Err(Refusal::ResourceNotFound.into()) }
    };
    let select = context.unless_missing(&table, check()).await?;
    let row = context.service.get_entity(&table, &key).await?;
    let format = EntityFormat {
        context,
        format: call.format,
        table: &table.name,
        select: select.as_ref(),
        offset_times: &[],
    };
    let stored = row.raw().bytes().len();
    let held = context.hold(stored + format.bytes_to_write(stored))?;
    // A damaged row shows itself only as it is written out.
    let shown = context.write(stored, || {
        row.show(|timestamp, properties| {
            let (partition, row) = (key.partition.as_str(), key.row.as_str());
            (timestamp, format.one(EntityView { partition, row, timestamp, properties }))
        })
    });
    let (timestamp, content) =
        shown.await.map_err(|fault| service::Error::Fault(fault.about(table.place_of(&key))))?;
    let content = content.holding(held);
    Ok(Answer {
        status: 200,
        etag: Some(ETag(timestamp).text()),
        content: Some(content),
        ..Answer::default()
    })
}

pub async fn query(context: &Context<'_>, call: &Call<'_>, table: TableName) -> Result<Answer, Failure> {
    let table = context.table(table);
    let check = || {
        refuse_unknown_options(call.query)?;
        let select = select(context, call.query)?;
        let query = EntityQuery {
            filter: option(call.query, names::FILTER),
            top: option(call.query, names::TOP).map(EntityQuery::top).transpose()?,
            within: Some(context.grant.range()),
            from: continuation(call.query)?,
        };
        Ok((select, query))
    };
    let (select, query) = context.unless_missing(&table, check()).await?;
    let mut held = context.hold(0)?;
    let page = context.service.query_entities(&table, query, &mut held).await?;
    let format = EntityFormat {
        context,
        format: call.format,
        table: &table.name,
        select: select.as_ref(),
        offset_times: &[],
    };
    let stored = page.entities.bytes();
    if page.entities.len() == 1 && !held.resize(stored + format.bytes_to_write(stored)) {
        return Err(Refusal::Busy.into());
    }
    // A damaged row shows itself only as it is written out.
    let shown = context.write(stored, || {
        page.entities.show(|entities| {
            let views = entities.map(|entity| EntityView {
                partition: entity.partition,
                row: entity.row_key,
                timestamp: entity.timestamp,
                properties: entity.properties,
            });
            format.set(views, stored, &mut held)
        })
    });
    let (content, shown) = shown.await.map_err(|fault| service::Error::Fault(fault.about(&table)))?;
    // The page goes on with the first entity that had no room in it.
    let next = match page.entities.get(shown) {
        Some(left) => Some(left.key().map_err(service::Error::Fault)?),
        None => page.next,
    };
    let next = next.as_ref().map(|next| {
        [
            (names::NEXT_PARTITION_KEY_HEADER, token::encode(next.partition.as_str())),
            (names::NEXT_ROW_KEY_HEADER, token::encode(next.row.as_str())),
        ]
    });
    drop(page.entities);
    let content = content.holding(held);
    // Azure has no such header, so it is there for those who ask only.
    let asked = call.headers.get(&X_PARTITA_EXAMINED).is_sent();
    let examined = asked.then(|| (names::X_PARTITA_EXAMINED, page.examined.to_string()));
    Ok(Answer {
        status: 200,
        continuation: next.into_iter().flatten().chain(examined).collect(),
        content: Some(content),
        ..Answer::default()
    })
}

fn select(context: &Context<'_>, query: &QueryString) -> Result<Option<Select>, Refusal> {
    query.get(names::SELECT).filter(|_| context.version.has_select()).map(Select::parse).transpose()
}

/// Where to go on from. A row key alone says nothing; an empty token was never given.
fn continuation(query: &QueryString) -> Result<Option<(String, Option<String>)>, Refusal> {
    let decoded = |name: &str| {
        query.get(name).map(|text| token::decode(text).ok_or(Refusal::InputNotValid)).transpose()
    };
    match (decoded(names::NEXT_PARTITION_KEY)?, decoded(names::NEXT_ROW_KEY)?) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(Refusal::InputNotValid),
        (Some(partition), row) => Ok(Some((partition, row))),
    }
}
