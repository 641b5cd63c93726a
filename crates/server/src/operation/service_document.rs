//! The service's own documents: properties, statistics and stored access policies. All of them are XML.

use std::time::SystemTime;

use bytes::Bytes;
use model::TableName;
use store::Fault;
use wire::access_policies;
use wire::service_properties::{ServiceProperties, Update};

use super::{Call, Context};
use crate::answer::{Answer, Content, Failure};

pub async fn get_properties(context: &Context<'_>) -> Result<Answer, Failure> {
    let stored = context.service.get_properties(&context.site.account).await?;
    let properties = properties(stored.as_deref()).map_err(service::Error::Fault)?;
    let all = context.version.has_all_properties();
    Ok(document(if all { properties.write() } else { properties.write_old() }))
}

/// What the body does not name stays as it is.
pub async fn set_properties(context: &Context<'_>, call: &Call<'_>) -> Result<Answer, Failure> {
    let update = context.read(|| Update::read(call.body)).await?;
    let change = |stored: Option<Bytes>| {
        let mut properties = properties(stored.as_deref())?;
        properties.apply(update.clone());
        Ok(properties.write().into())
    };
    context.service.change_properties(&context.site.account, change).await?;
    Ok(Answer { status: 202, ..Answer::default() })
}

/// Those of a fresh account if none were ever set. What was set and can't be read is not shown as something else, nor
/// written over: it may be of a newer release.
fn properties(stored: Option<&[u8]>) -> Result<ServiceProperties, Fault> {
    let Some(stored) = stored else { return Ok(ServiceProperties::default()) };
    ServiceProperties::read(stored)
        .ok_or_else(|| Fault::new(format!("unreadable service properties of {} bytes", stored.len())))
}

/// The secondary is the same data, so it lags behind by nothing.
pub fn get_statistics() -> Answer {
    let now = httpdate::fmt_http_date(SystemTime::now());
    let text = format!(
        "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceStats><GeoReplication><Status>live</Status><LastSyncTime>{now}</LastSyncTime></GeoReplication></StorageServiceStats>"
    );
    document(text.into_bytes())
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
