//! Lease Container and Lease Blob (spec: blob-operations 3.1).

use blob_model::{BreakPeriod, Etag, Guid, LeaseAction, LeaseDuration, LeaseId, LeaseOutcome, Refusal};
use blob_service::{BlobRef, ContainerRef};

use super::{Context, changed};
use crate::answer::{Answer, Failure};
use crate::route::LeaseVerb;

const ACTION: &str = "x-ms-lease-action";
const PROPOSED: &str = "x-ms-proposed-lease-id";
const ID: &str = "x-ms-lease-id";

pub async fn of_container(
    context: &Context<'_>,
    container: &ContainerRef,
    verb: LeaseVerb,
) -> Result<Answer, Failure> {
    let action = read(context, verb)?;
    let mut conditions = context.asked.conditions()?;
    (conditions.if_match, conditions.if_none_match, conditions.if_tags) = (None, None, None);
    let (outcome, etag) = context.service().lease_container(container, action, conditions).await?;
    Ok(answer(verb, &outcome, etag))
}

pub async fn of_blob(context: &Context<'_>, blob: &BlobRef, verb: LeaseVerb) -> Result<Answer, Failure> {
    context.asked.check_current()?;
    let action = read(context, verb)?;
    let conditions = context.asked.conditions()?;
    let (outcome, etag) = context.service().lease_blob(blob, action, conditions).await?;
    Ok(answer(verb, &outcome, etag))
}

fn read(context: &Context<'_>, verb: LeaseVerb) -> Result<LeaseAction, Refusal> {
    let asked = &context.asked;
    // Both are read for every action: one that is no id is refused whether or not the action needs it.
    let (id, proposed) = (asked.lease()?, asked.lease_id(PROPOSED)?);
    let id = || id.ok_or(Refusal::HeaderMissing { name: ID });
    Ok(match verb {
        LeaseVerb::Acquire => LeaseAction::Acquire {
            duration: LeaseDuration::of_header(asked.required("x-ms-lease-duration")?)?,
            proposed,
            fresh: fresh(),
        },
        LeaseVerb::Renew => LeaseAction::Renew { id: id()? },
        LeaseVerb::Change => LeaseAction::Change {
            id: id()?,
            proposed: proposed.ok_or(Refusal::HeaderMissing { name: PROPOSED })?,
        },
        LeaseVerb::Release => LeaseAction::Release { id: id()? },
        LeaseVerb::Break => LeaseAction::Break {
            period: asked.text("x-ms-lease-break-period")?.map(BreakPeriod::of_header).transpose()?,
        },
        LeaseVerb::Unknown => {
            let value = asked.required(ACTION)?.to_owned();
            return Err(Refusal::HeaderInvalid { name: ACTION, value });
        }
    })
}

/// The id of a lease for which the client proposes none.
fn fresh() -> LeaseId {
    // A GUID in the usual form.
    Guid::parse(&front::request_id::new_guid()).map_or_else(|| LeaseId(Guid([0; 16])), LeaseId)
}

fn answer(verb: LeaseVerb, outcome: &LeaseOutcome, etag: Etag) -> Answer {
    let status = match verb {
        LeaseVerb::Acquire => 201,
        LeaseVerb::Break => 202,
        LeaseVerb::Renew | LeaseVerb::Change | LeaseVerb::Release | LeaseVerb::Unknown => 200,
    };
    let mut answer = changed(status, etag);
    if let Some(id) = outcome.id {
        answer = answer.with(ID, id.to_string());
    }
    if let Some(seconds) = outcome.seconds_left {
        answer = answer.with("x-ms-lease-time", seconds.to_string());
    }
    answer
}
