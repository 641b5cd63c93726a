//! Get one entity, query many.

use std::time::Instant;

use model::{ETag, EntityKey, Refusal, TableName};
use service::EntityQuery;
use wire::entity_json::EntityView;
use wire::url::QueryString;
use wire::{Select, TableVersion, names, token};

use super::context::{option, refuse_unknown_options};
use super::show::EntityFormat;
use super::slow_query::log_if_slow;
use super::{Call, Context};
use crate::answer::{TableAnswer, TableFailure};
use crate::extension::{self, Run};
use crate::headers::{X_PARTITA_EXAMINED, X_PARTITA_EXPLAIN, X_PARTITA_MAX_EXAMINED};

pub async fn get(
    context: &Context<'_>,
    call: &Call<'_>,
    table: TableName,
    key: &EntityKey,
) -> Result<TableAnswer, TableFailure> {
    let table = context.table(table);
    let check = || {
        refuse_unknown_options(call.query)?;
        let select = select(context, call.query)?;
        // For a token with a range, entities outside of it do not exist.
        if context.grant.covers(key) { Ok(select) } else { Err(common::Refusal::ResourceNotFound.into()) }
    };
    let select = context.unless_missing(&table, check()).await?;
    let row = context.service.get_entity(&table, key).await?;
    context.count_entities(1, 1);
    let format = EntityFormat {
        context,
        format: call.format,
        table: &table.name,
        select: select.as_ref(),
        offset_times: &[],
    };
    let stored = row.raw().bytes().len();
    let held = context.hold(stored + format.bytes_to_write(stored))?;
    // A damaged row is found only when it is written.
    let shown = context.write(stored, || {
        row.show(|timestamp, properties| {
            let (partition, row) = (key.partition.as_str(), key.row.as_str());
            (timestamp, format.one(EntityView { partition, row, timestamp, properties }))
        })
    });
    let (timestamp, content) =
        shown.await.map_err(|fault| service::Error::Fault(fault.about(table.place_of(key))))?;
    let content = content.holding(held);
    Ok(TableAnswer {
        status: 200,
        etag: Some(ETag(timestamp).text()),
        content: Some(content),
        ..TableAnswer::default()
    })
}

pub async fn query(
    context: &Context<'_>,
    call: &Call<'_>,
    table: TableName,
) -> Result<TableAnswer, TableFailure> {
    let (started, begun) = (Instant::now(), context.slow_queries.begin());
    let table = context.table(table);
    let check = || {
        refuse_unknown_options(call.query)?;
        let select = select(context, call.query)?;
        let query = EntityQuery {
            filter: option(call.query, names::FILTER),
            top: option(call.query, names::TOP).map(EntityQuery::top).transpose()?,
            within: Some(context.grant.range()),
            from: continuation(call.query)?,
            examined_max: examined_max(context, call)?,
            is_explained: call.extension_header(context, &X_PARTITA_EXPLAIN).if_readable().is_some_and(asks),
            shown: None,
            has_shape: begun.is_some(),
        };
        Ok((select, query))
    };
    let (select, query) = context.unless_missing(&table, check()).await?;
    let query = EntityQuery { shown: select.as_ref().and_then(Select::custom_names), ..query };
    let is_first = query.from.is_none();
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
        return Err(common::Refusal::Busy.into());
    }
    // A damaged row is found only when it is written.
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
    context.count_entities(page.examined, shown);
    log_if_slow(context, &table, (page.shape.as_ref(), !is_first), begun, (page.examined, shown));
    // The next page starts with the first entity that did not fit.
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
    let explained = page.explanation.and_then(|explanation| {
        let is_whole = is_first && next.is_none();
        let (examined, returned) = (page.examined, shown as u64);
        extension::header(&explanation, Run { examined, returned, is_whole, time: started.elapsed() })
    });
    let explained = explained.map(|text| (names::X_PARTITA_EXPLAIN, text));
    drop(page.entities);
    let content = content.holding(held);
    // Azure has no such headers, so they are sent only on request.
    let asked = call.extension_header(context, &X_PARTITA_EXAMINED).is_sent();
    let examined = asked.then(|| (names::X_PARTITA_EXAMINED, page.examined.to_string()));
    Ok(TableAnswer {
        status: 200,
        continuation: next.into_iter().flatten().chain(examined).chain(explained).collect(),
        content: Some(content),
        ..TableAnswer::default()
    })
}

fn select(context: &Context<'_>, query: &QueryString) -> Result<Option<Select>, Refusal> {
    query.get(names::SELECT).filter(|_| context.version.has_select()).map(Select::parse).transpose()
}

/// The most entities that a page may examine: the lower one of the caller's limit and the operator's.
pub fn examined_max(context: &Context<'_>, call: &Call<'_>) -> Result<Option<u64>, Refusal> {
    let sent = call.extension_header(context, &X_PARTITA_MAX_EXAMINED);
    let sent = sent.required_readable(common::Refusal::InputNotValid)?;
    let own = sent.map(|text| text.trim().parse().map_err(|_| common::Refusal::InputNotValid)).transpose()?;
    Ok(own.into_iter().chain(context.extensions.examined_max).min())
}

/// Whether a header with this value asks for what it names.
fn asks(value: &str) -> bool {
    !matches!(value.trim(), "" | "0" | "false")
}

/// The start of this page. A row key alone is refused, and so is an empty token.
pub fn continuation(query: &QueryString) -> Result<Option<(String, Option<String>)>, Refusal> {
    let decoded = |name: &str| {
        query.get(name).map(|text| token::decode(text).ok_or(common::Refusal::InputNotValid)).transpose()
    };
    match (decoded(names::NEXT_PARTITION_KEY)?, decoded(names::NEXT_ROW_KEY)?) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(common::Refusal::InputNotValid.into()),
        (Some(partition), row) => Ok(Some((partition, row))),
    }
}
