//! Query, create and delete tables.

use model::{Refusal, TableName};
use service::{EntityQuery, TableQuery};
use wire::{format, names, read_table_name, token, url};

use super::{Call, Context, option, refuse_unknown_options, show};
use crate::answer::{Answer, Failure, Preference};
use crate::headers::PREFER;

pub async fn query(context: &Context<'_>, call: &Call<'_>) -> Result<Answer, Failure> {
    refuse_unknown_options(call.query)?;
    let top = option(call.query, names::TOP).map(EntityQuery::top).transpose()?;
    let from = call
        .query
        .get(names::NEXT_TABLE_NAME)
        .map(|text| token::decode(text).filter(|name| !name.is_empty()).ok_or(Refusal::InputNotValid));
    let query = TableQuery { filter: option(call.query, names::FILTER), top, from: from.transpose()? };
    let page = context.service.query_tables(&context.site.account, query).await?;
    let continuation = page.next.map(|name| (names::NEXT_TABLE_NAME_HEADER, token::encode(&name)));
    let content = show::tables(context, call.format, &page.names);
    let held = context.hold(content.bytes.len())?;
    Ok(Answer {
        status: 200,
        continuation: continuation.into_iter().collect(),
        content: Some(content.holding(held)),
        ..Answer::default()
    })
}

pub async fn get(context: &Context<'_>, call: &Call<'_>, name: TableName) -> Result<Answer, Failure> {
    refuse_unknown_options(call.query)?;
    let name = context.service.get_table(&context.table(name)).await?;
    Ok(Answer {
        status: 200,
        content: Some(show::table(context, call.format, name.as_str())),
        ..Answer::default()
    })
}

pub async fn create(context: &Context<'_>, call: &Call<'_>) -> Result<Answer, Failure> {
    let body_format = format::of_body(call.content_type()?, context.version)?;
    let name = context.read(|| read_table_name(body_format, call.body)).await?;
    // A name in a body is the store's to judge, unlike one in a URL.
    let judged = |refusal: Refusal| Failure { reached_the_store: true, ..refusal.into() };
    let name = TableName::parse(&name).map_err(judged)?;
    if name.is_metrics() {
        return Err(judged(Refusal::ResourceNameCharacters));
    }
    let preference = preference(context, call);
    let table = context.table(name);
    context.service.create_table(&table).await?;
    let location = format!("{}{}", context.site.base, url::table_link(table.name.as_str()));
    Ok(if preference == Some(Preference::NoContent) {
        Answer {
            status: 204,
            location: Some(location),
            names_location_twice: true,
            preference_applied: preference,
            ..Answer::default()
        }
    } else {
        Answer {
            status: 201,
            location: Some(location),
            preference_applied: preference,
            content: Some(show::table(context, call.format, table.name.as_str())),
            ..Answer::default()
        }
    })
}

pub async fn delete(context: &Context<'_>, name: TableName) -> Result<Answer, Failure> {
    context.service.delete_table(&context.table(name)).await?;
    Ok(Answer { status: 204, ..Answer::default() })
}

/// `Prefer`, in the versions that have it.
pub fn preference(context: &Context<'_>, call: &Call<'_>) -> Option<Preference> {
    call.headers
        .get(&PREFER)
        .if_readable()
        .filter(|_| context.version.has_prefer())
        .and_then(Preference::parse)
}
