//! The service's own documents: properties, statistics and stored access policies. All of them are XML.

use std::time::SystemTime;

use front::ServiceKind;
use model::{Refusal, TableName};
use wire::access_policies;
use wire::service_properties::Update;
use wire::service_stats::ServiceStats;

use super::{Call, Context};
use crate::answer::{Answer, Content, Failure};

pub async fn get_properties(context: &Context<'_>) -> Result<Answer, Failure> {
    let properties = context.settings.get(&context.site.account, ServiceKind::Table).await;
    let properties = properties.map_err(service::Error::from)?;
    let all = context.version.has_all_properties();
    Ok(document(if all { properties.write() } else { properties.write_old() }))
}

/// What the body does not name stays as it is.
pub async fn set_properties(context: &Context<'_>, call: &Call<'_>) -> Result<Answer, Failure> {
    let update = context.read(|| Update::read(call.body)).await.map_err(Refusal::from)?;
    let changed = context.settings.change(&context.site.account, ServiceKind::Table, &update).await;
    changed.map_err(service::Error::from)?;
    Ok(Answer { status: 202, ..Answer::default() })
}

/// The secondary is the same data, so it lags behind by nothing.
pub fn get_statistics() -> Answer {
    let stats = ServiceStats { status: "live".to_owned(), last_sync: Some(SystemTime::now()) };
    document(stats.write())
}

pub async fn get_policies(context: &Context<'_>, table: TableName) -> Result<Answer, Failure> {
    let stored = context.service.get_policies(&context.table(table)).await?;
    Ok(document(stored.map_or_else(|| access_policies::write(&[]), Into::into)))
}

/// Replaces them all.
pub async fn set_policies(
    context: &Context<'_>,
    call: &Call<'_>,
    table: TableName,
) -> Result<Answer, Failure> {
    let table = context.table(table);
    // A missing table is told before a bad document.
    context.service.get_policies(&table).await?;
    let policies = context.read(|| access_policies::read(call.body)).await?;
    context.service.set_policies(&table, access_policies::write(&policies).into()).await?;
    Ok(Answer { status: 204, ..Answer::default() })
}

fn document(bytes: Vec<u8>) -> Answer {
    let content = Content { content_type: "application/xml".into(), bytes: bytes.into() };
    Answer { status: 200, content: Some(content), ..Answer::default() }
}
