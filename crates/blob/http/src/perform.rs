//! The checks of a request to the Blob service whose sender is known, in the service's order: read from top to bottom.

use blob_model::{Refusal, limits};
use common::{Refusal as Shared, Version};
use front::access::Proof;
use front::{Admission, Body, Front, Request, RequestBody, Site};
use http::Response;
use tokio::time::Instant;

use crate::BlobHttp;
use crate::access::{self, Admitted};
use crate::answer::{Answer, Failure};
use crate::asked::Asked;
use crate::blob_request::BlobRequest;
use crate::copy_source;
use crate::grant::{Access, Need};
use crate::operation::{self, Context};
use crate::respond;
use crate::route::{Operation, Resource};
use crate::upload::time_for;

pub async fn perform(
    http: &BlobHttp,
    admission: Admission<'_, BlobRequest>,
    body: &mut RequestBody,
) -> Result<Response<Body>, Failure> {
    let request = admission.request;
    let answer = answer(http, admission, body).await?;
    Ok(respond::answer(request, answer).await)
}

/// Also of a part of a batch.
pub async fn answer(
    http: &BlobHttp,
    admission: Admission<'_, BlobRequest>,
    body: &mut RequestBody,
) -> Result<Answer, Failure> {
    let Admission { front, request, address, service_request, proof } = admission;
    let site = &address.site;
    let asked = Asked::of(request);
    let (admitted, operation) = authorize(front, request, site, service_request, proof, &asked)?;

    let announced = RequestBody::announced(&request.head.headers);
    let most = time_for(bytes_moved(operation, announced, request.served_version()));
    let deadline = Instant::now() + asked.time_allowed(most)?;
    let context = Context { http, front, request, site, asked, admitted: &admitted, deadline };
    let run = operation::run(&context, operation, &service_request.resource, body);
    let answer = tokio::time::timeout_at(deadline, run).await;
    answer.unwrap_or_else(|_| Err(Shared::TimedOut.into()))
}

/// How many bytes a request moves at most, by which its time is counted.
fn bytes_moved(operation: Operation, announced: Option<u64>, version: Version) -> u64 {
    match operation {
        // A body in chunks does not say how long it is.
        Operation::PutBlob | Operation::PutBlock => {
            announced.unwrap_or_else(|| limits::put_blob_bytes_max(version))
        }
        // What comes from a URL is no body of the request.
        Operation::PutBlobFromUrl => limits::put_blob_bytes_max(version),
        Operation::PutBlockFromUrl => limits::block_bytes_max(version),
        Operation::AppendBlockFromUrl => limits::append_bytes_max(version),
        Operation::PutPageFromUrl => limits::PAGE_WRITE_BYTES_MAX,
        Operation::CopyBlobFromUrl => limits::SYNC_COPY_BYTES_MAX,
        _ => announced.unwrap_or_default(),
    }
}

/// Who may ask for what: the checks before anything of the request is done. Also of a part of a batch.
pub fn authorize(
    front: &Front,
    request: &Request<'_>,
    site: &Site,
    service_request: &BlobRequest,
    proof: Proof,
    asked: &Asked<'_>,
) -> Result<(Admitted, Operation), Failure> {
    let name = Some(service_request.info.name);
    let of_snapshot = ["snapshot", "versionid"].iter().any(|option| asked.option(option).is_some());
    let admitted =
        access::admitted(proof, of_snapshot).map_err(|denial| front.deny(request, denial, name))?;
    if !request.query_is_readable {
        return Err(Shared::QueryParameterValueInvalid.into());
    }
    let operation = *service_request.operation.as_ref().map_err(Clone::clone)?;
    if site.secondary && service_request.info.writes {
        return Err(Shared::WritesNotAllowed.into());
    }
    for need in needs(operation, service_request, asked) {
        admitted.grant.permits(need).map_err(|refusal| {
            let why = format!("{} does not permit {need}", admitted.grant);
            front.log_denied(request, name, refusal.code(), &why);
            refused(refusal, need)
        })?;
    }
    check_system(operation, &service_request.resource)?;
    asked.check_supported(service_request.info.writes && stores(operation))?;
    Ok((admitted, operation))
}

/// All that the caller must be permitted: what the operation does, and what some of its headers and options add to it.
fn needs(
    operation: Operation,
    service_request: &BlobRequest,
    asked: &Asked<'_>,
) -> impl Iterator<Item = Need> {
    let at_container = matches!(service_request.resource, Resource::Container(_));
    let first = match operation {
        Operation::DeleteBlob if is_permanent(asked) => Need::Blob(Access::DeletePermanently),
        Operation::DeleteBlob if asked.option("versionid").is_some() => Need::Blob(Access::DeleteVersion),
        _ => access::need(operation, at_container),
    };
    let is_of_blob = matches!(service_request.resource, Resource::Blob { .. });
    let has_tags = asked.headers.contains_key("x-ms-tags") || copy_source::copies_tags(asked);
    let sets_tags = is_of_blob && service_request.info.writes && has_tags;
    [Some(first), sets_tags.then_some(Need::Blob(Access::Tags))].into_iter().flatten()
}

/// Whether what the caller sends is kept: of all writes but those that only remove, lease or move.
fn stores(operation: Operation) -> bool {
    !matches!(
        operation,
        Operation::DeleteBlob
            | Operation::DeleteContainer
            | Operation::UndeleteBlob
            | Operation::LeaseBlob(_)
            | Operation::LeaseContainer(_)
            | Operation::AbortCopy
            | Operation::SetBlobTier
            | Operation::Batch
    )
}

fn is_permanent(asked: &Asked<'_>) -> bool {
    asked.option("deletetype").is_some_and(|kind| kind.eq_ignore_ascii_case("permanent"))
}

/// What is told to those who ask for a delegation key with a key.
pub const BEARER_ONLY: &str = "Only authentication scheme Bearer is supported";

fn refused(refusal: Refusal, need: Need) -> Failure {
    let failure = Failure::from(refusal);
    match need {
        Need::DelegationKey if failure.refusal == Shared::AuthenticationFailed.into() => {
            Failure { authentication_detail: Some(BEARER_ONLY.to_owned()), ..failure }
        }
        _ => failure,
    }
}

/// What the service itself writes can be read and deleted, but not written.
fn check_system(operation: Operation, resource: &Resource) -> Result<(), Failure> {
    let is_system = matches!(resource.container(), "$logs" | "$blobchangefeed");
    let is_allowed = matches!(
        operation,
        Operation::GetAccountInformation
            | Operation::FindBlobs
            | Operation::Batch
            | Operation::GetContainerProperties
            | Operation::GetContainerMetadata
            | Operation::GetContainerPolicies
            | Operation::ListBlobs
            | Operation::GetBlob
            | Operation::GetBlobProperties
            | Operation::GetBlobMetadata
            | Operation::GetBlobTags
            | Operation::GetBlockList
            | Operation::GetPageRanges
            | Operation::DeleteBlob
    );
    if is_system && !is_allowed { Err(Shared::WritesNotAllowed.into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_from_a_url_has_the_time_of_a_body() {
        let version = Version::parse("2021-08-06").unwrap();
        let mib = |operation, announced| bytes_moved(operation, announced, version) >> 20;
        assert_eq!(mib(Operation::PutBlobFromUrl, Some(0)), 5000);
        assert_eq!(mib(Operation::PutBlockFromUrl, Some(0)), 4000);
        assert_eq!(mib(Operation::CopyBlobFromUrl, Some(0)), 256);
        assert_eq!(mib(Operation::AppendBlockFromUrl, Some(0)), 4);
        assert_eq!(mib(Operation::PutPageFromUrl, Some(0)), 4);
        assert_eq!(mib(Operation::PutBlob, None), 5000);
        assert_eq!(mib(Operation::PutBlob, Some(3 << 20)), 3);
        assert_eq!(mib(Operation::CopyBlob, Some(0)), 0);
        assert_eq!(mib(Operation::GetBlob, None), 0);
    }
}
