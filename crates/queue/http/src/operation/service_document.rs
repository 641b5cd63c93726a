//! The service's own documents: properties, statistics and stored access policies.

use std::time::SystemTime;

use common::Refusal as Shared;
use front::ServiceKind;
use protocol::access_policies;
use protocol::service_properties::Update;
use protocol::service_stats::ServiceStats;
use protocol::xml_fault::XmlFault;
use queue_model::Refusal;
use queue_service::QueueRef;

use super::Context;
use crate::answer::{Answer, Failure};

pub async fn get_properties(context: &Context<'_>) -> Result<Answer, Failure> {
    let properties = context.properties.get(&context.site.account, ServiceKind::Queue).await;
    let properties = properties.map_err(queue_service::Error::from)?;
    let all = context.version.has_all_properties();
    Ok(Answer::document(200, if all { properties.write() } else { properties.write_old() }))
}

/// What the body does not name stays as it is; a body that names nothing is refused.
pub async fn set_properties(context: &Context<'_>, body: &[u8]) -> Result<Answer, Failure> {
    let update = Update::read(body);
    let update = update.map_err(|refusal| explained(refusal, || XmlFault::of_properties(body)))?;
    if update == Update::default() {
        return Err(explained(Shared::XmlNotValid, || XmlFault::of_properties(body)).into());
    }
    let changed = context.properties.change(&context.site.account, ServiceKind::Queue, &update).await;
    changed.map_err(queue_service::Error::from)?;
    Ok(Answer::empty(202))
}

/// The secondary is the same data, so it lags behind by nothing.
pub fn get_statistics() -> Answer {
    let stats = ServiceStats { status: "live".to_owned(), last_sync: Some(SystemTime::now()) };
    Answer::document(200, stats.write())
}

pub async fn get_policies(context: &Context<'_>, queue: &QueueRef) -> Result<Answer, Failure> {
    let stored = context.service.policies(queue).await?;
    Ok(Answer::document(200, stored.unwrap_or_else(|| access_policies::write(&[]).into())))
}

/// Replaces them all. A bad document is told before a missing queue.
pub async fn set_policies(context: &Context<'_>, queue: &QueueRef, body: &[u8]) -> Result<Answer, Failure> {
    let policies = access_policies::read(ServiceKind::Queue, body)
        .map_err(|refusal| explained(refusal, || XmlFault::of_policies(body)))?;
    context.service.set_policies(queue, access_policies::write(&policies).into()).await?;
    Ok(Answer::empty(204))
}

/// A refusal of a document with the place and the reason.
fn explained(refusal: Shared, fault: impl FnOnce() -> XmlFault) -> Refusal {
    if refusal != Shared::XmlNotValid {
        return refusal.into();
    }
    let XmlFault { line, position, reason } = fault();
    Refusal::XmlNotValid { line, position, reason: reason.into() }
}
