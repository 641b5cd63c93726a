//! Query, create and delete tables.

use model::{Refusal, TableName};
use service::{EntityQuery, TableQuery};
use wire::{names, read_table_name, token, url};

use super::context::{option, refuse_unknown_options};
use super::{Call, Context, show};
use crate::answer::{Preference, TableAnswer, TableFailure};

pub async fn query(context: &Context<'_>, call: &Call<'_>) -> Result<TableAnswer, TableFailure> {
    refuse_unknown_options(call.query)?;
    let top = option(call.query, names::TOP).map(EntityQuery::top).transpose()?;
    let from = call.query.get(names::NEXT_TABLE_NAME).map(|text| {
        token::decode(text).filter(|name| !name.is_empty()).ok_or(common::Refusal::InputNotValid)
    });
    let query = TableQuery { filter: option(call.query, names::FILTER), top, from: from.transpose()? };
    let page = context.service.query_tables(&context.site.account, query).await?;
    let continuation = page.next.map(|name| (names::NEXT_TABLE_NAME_HEADER, token::encode(&name)));
    let content = show::tables(context, call.format, &page.names);
    let held = context.hold(content.bytes.len())?;
    Ok(TableAnswer {
        status: 200,
        continuation: continuation.into_iter().collect(),
        content: Some(content.holding(held)),
        ..TableAnswer::default()
    })
}

pub async fn get(
    context: &Context<'_>,
    call: &Call<'_>,
    name: TableName,
) -> Result<TableAnswer, TableFailure> {
    refuse_unknown_options(call.query)?;
    let name = context.service.get_table(&context.table(name)).await?;
    Ok(TableAnswer {
        status: 200,
        content: Some(show::table(context, call.format, name.as_str())),
        ..TableAnswer::default()
    })
}

pub async fn create(context: &Context<'_>, call: &Call<'_>) -> Result<TableAnswer, TableFailure> {
    let body_format = call.body_format(context)?;
    let name = context.read(|| read_table_name(body_format, call.body)).await?;
    // The service checks a name in a body in the store, unlike a name in a URL.
    let judged = |refusal: Refusal| TableFailure { reached_the_store: true, ..refusal.into() };
    let name = TableName::parse(&name).map_err(judged)?;
    if name.is_metrics() {
        return Err(judged(common::Refusal::ResourceNameCharacters.into()));
    }
    let preference = call.preference(context);
    let table = context.table(name);
    context.service.create_table(&table).await?;
    let location = format!("{}{}", context.site.base, url::table_link(table.name.as_str()));
    Ok(if preference == Some(Preference::NoContent) {
        TableAnswer {
            status: 204,
            location: Some(location),
            names_location_twice: true,
            preference_applied: preference,
            ..TableAnswer::default()
        }
    } else {
        TableAnswer {
            status: 201,
            location: Some(location),
            preference_applied: preference,
            content: Some(show::table(context, call.format, table.name.as_str())),
            ..TableAnswer::default()
        }
    })
}

pub async fn delete(context: &Context<'_>, name: TableName) -> Result<TableAnswer, TableFailure> {
    context.service.delete_table(&context.table(name)).await?;
    Ok(TableAnswer { status: 204, ..TableAnswer::default() })
}
