//! The service's own documents: properties, statistics and stored access policies. All of them are XML.

use std::time::SystemTime;

use front::ServiceKind;
use http::header::CONTENT_TYPE;
use model::{Refusal, TableName};
use wire::service_properties::Update;
use wire::service_stats::ServiceStats;
use wire::{access_policies, format};

use super::{Call, Context};
use crate::answer::{Content, TableAnswer, TableFailure};

pub async fn get_properties(context: &Context<'_>) -> Result<TableAnswer, TableFailure> {
    let properties = context.settings.get(&context.site.account, ServiceKind::Table).await;
    let properties = properties.map_err(service::Error::from)?;
    let all = context.version.has_all_properties();
    Ok(document(if all { properties.write() } else { properties.write_old() }))
}

/// Settings that the body does not name keep their values.
pub async fn set_properties(context: &Context<'_>, call: &Call<'_>) -> Result<TableAnswer, TableFailure> {
    let content_type = call.headers.get(&CONTENT_TYPE).required_readable(Refusal::MediaTypeNotSupported)?;
    if !content_type.is_none_or(format::may_be_xml) {
        return Err(Refusal::MediaTypeNotSupported.into());
    }
    let update = context.read(|| Update::read(call.body)).await.map_err(Refusal::from)?;
    let changed = context.settings.change(&context.site.account, ServiceKind::Table, &update).await;
    changed.map_err(service::Error::from)?;
    Ok(TableAnswer { status: 202, ..TableAnswer::default() })
}

/// The secondary reads the same data, so it has no lag.
pub fn get_statistics() -> TableAnswer {
    let stats = ServiceStats { status: "live".to_owned(), last_sync: Some(SystemTime::now()) };
    document(stats.write())
}

pub async fn get_policies(context: &Context<'_>, table: TableName) -> Result<TableAnswer, TableFailure> {
    let stored = context.service.get_policies(&context.table(table)).await?;
    Ok(document(stored.map_or_else(|| access_policies::write(&[]), Into::into)))
}

/// Replaces all policies of the table.
pub async fn set_policies(
    context: &Context<'_>,
    call: &Call<'_>,
    table: TableName,
) -> Result<TableAnswer, TableFailure> {
    let table = context.table(table);
    // A missing table is reported before a bad document.
    context.service.get_policies(&table).await?;
    let policies = context.read(|| access_policies::read(call.body)).await?;
    context.service.set_policies(&table, access_policies::write(&policies).into()).await?;
    Ok(TableAnswer { status: 204, ..TableAnswer::default() })
}

fn document(bytes: Vec<u8>) -> TableAnswer {
    let content = Content { content_type: "application/xml".into(), bytes: bytes.into() };
    TableAnswer { status: 200, content: Some(content), ..TableAnswer::default() }
}
