//! A batch of Delete Blob or Set Blob Tier: each part is a request of its own, with its own credentials (spec: blob-operations
//! 4.4).

use std::collections::HashSet;

use blob_model::{BlobName, ContainerName, Refusal, limits};
use blob_service::{BlobRef, ContainerRef};
use blob_wire::Writer;
use blob_wire::batch::{self, BatchFault, BatchPart, PartAnswer};
use common::Refusal as Shared;
use front::{Request, RequestBody, ServiceKind, Site};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;
use http::header::HOST;
use http::{HeaderName, HeaderValue, Method, StatusCode, Uri};
use protocol::{QueryString, names};

use super::{Context, blob};
use crate::answer::{Answer, AnswerBody, Failure};
use crate::asked::Asked;
use crate::blob_request::BlobRequest;
use crate::perform::authorize;
use crate::respond;
use crate::route::{Operation, Resource};

/// Without the part that the operating system of the service adds.
const SERVER: &str = "Windows-Azure-Blob/1.0";
/// Parts wait for the disk most of the time, and those that wait together share a sync.
const PARTS_AT_A_TIME: usize = 16;
/// Where the ids of the parts begin to differ from that of the batch.
const ID_START: usize = 24;

/// `within`: every blob must be in this container.
pub async fn run(
    context: &Context<'_>,
    within: Option<&ContainerRef>,
    body: &mut RequestBody,
) -> Result<Answer, Failure> {
    let kind = context.asked.required("Content-Type")?;
    let body = context.document(body, limits::BATCH_BYTES_MAX).await?;
    let answers = match batch::read(kind, &body) {
        Ok(parts) => {
            check_kinds(&parts)?;
            let at_a_time = if are_of_different_blobs(context.site, &parts) { PARTS_AT_A_TIME } else { 1 };
            let (mut answers, mut running) = (Vec::with_capacity(parts.len()), FuturesOrdered::new());
            for part in &parts {
                if running.len() == at_a_time {
                    answers.extend(running.next().await);
                }
                running.push_back(answer(context, within, part));
            }
            while let Some(answer) = running.next().await {
                answers.push(answer);
            }
            answers
        }
        // The batch itself succeeds, and its only part says why nothing was done.
        Err(BatchFault::TooManyParts) => {
            vec![refusal(context, None, &Refusal::TooManyBatchParts.into(), &context.request.id)]
        }
        Err(fault) => return Err(Refusal::from(fault).into()),
    };
    let id = front::request_id::new_guid();
    let document = batch::write(&id, &answers);
    let body = AnswerBody::Other(batch::content_type(&id), document.into());
    Ok(Answer { body, ..Answer::empty(202) })
}

/// All parts delete, or all set tiers.
fn check_kinds(parts: &[BatchPart<'_>]) -> Result<(), Refusal> {
    let is_tier = |part: &BatchPart<'_>| {
        let query = part.target.split_once('?').map_or("", |(_, query)| query);
        query.split('&').any(|option| option.eq_ignore_ascii_case("comp=tier"))
    };
    let deletes = |part: &BatchPart<'_>| part.method == "DELETE";
    let tiers = |part: &BatchPart<'_>| part.method == "PUT" && is_tier(part);
    match parts.iter().all(deletes) || parts.iter().all(tiers) {
        true => Ok(()),
        false => Err(Shared::InputNotValid.into()),
    }
}

/// Parts of one blob are done in their order, however each of them spells its address.
fn are_of_different_blobs(site: &Site, parts: &[BatchPart<'_>]) -> bool {
    let resource = |target: &str| {
        let path = site.inner_path(target.split_once('?').map_or(target, |(path, _)| path));
        Resource::parse(path, &QueryString::default())
    };
    let mut seen = HashSet::new();
    parts.iter().all(|part| seen.insert(resource(part.target)))
}

async fn answer(context: &Context<'_>, within: Option<&ContainerRef>, part: &BatchPart<'_>) -> PartAnswer {
    let own = front::request_id::new_guid();
    let id = [&context.request.id[..ID_START], &own[ID_START..]].concat();
    match perform(context, within, part).await {
        Ok(answer) => success(context, part, answer, &id),
        Err(failure) => refusal(context, Some(part), &failure, &id),
    }
}

/// The same checks as for a request that comes alone.
async fn perform(
    context: &Context<'_>,
    within: Option<&ContainerRef>,
    part: &BatchPart<'_>,
) -> Result<Answer, Failure> {
    let head = head(context, part).ok_or(Shared::InputNotValid)?;
    let accounts = context.front.accounts.current();
    let outer = context.request;
    let services = (ServiceKind::Blob, &[ServiceKind::Blob][..]);
    let mut request = Request::read(&head, (outer.peer, outer.scheme), &accounts, services, outer.arrived);
    // A part does not say its version.
    request.version = outer.version;
    let service_request = BlobRequest::read(&request);
    let bearer = context.front.bearer.current();
    let (proof, address) =
        front::admit(context.http, context.front, &bearer, &request, &service_request).await?;
    let asked = Asked::of(&request);
    let (admitted, operation) =
        authorize(context.front, &request, &address.site, &service_request, proof, &asked)?;
    let Resource::Blob { container, name } = &service_request.resource else {
        return Err(Shared::InputNotValid.into());
    };
    let container = ContainerRef::new(&address.site.account, &ContainerName::parse(container)?);
    let is_outside =
        address.site.account != *context.account() || within.is_some_and(|within| *within != container);
    if is_outside {
        return Err(Shared::InputNotValid.into());
    }
    let blob = BlobRef::new(container, BlobName::parse(name)?);
    let context = Context { request: &request, site: &address.site, asked, admitted: &admitted, ..*context };
    match operation {
        Operation::DeleteBlob => blob::delete(&context, &blob).await,
        Operation::SetBlobTier => blob::set_tier(&context, &blob).await,
        _ => Err(Shared::InputNotValid.into()),
    }
}

/// A part as the head of a request to the same host.
fn head(context: &Context<'_>, part: &BatchPart<'_>) -> Option<http::request::Parts> {
    let mut request = http::Request::new(());
    *request.method_mut() = Method::from_bytes(part.method.as_bytes()).ok()?;
    let target: Uri = part.target.parse().ok()?;
    *request.uri_mut() = target.path_and_query()?.as_str().parse().ok()?;
    for (name, value) in &part.headers {
        let name = HeaderName::try_from(*name).ok()?;
        request.headers_mut().append(name, HeaderValue::from_bytes(value.as_bytes()).ok()?);
    }
    let host = context.request.host.as_ref().ok()?;
    request.headers_mut().insert(HOST, HeaderValue::from_str(host).ok()?);
    Some(request.into_parts().0)
}

fn success(context: &Context<'_>, part: &BatchPart<'_>, answer: Answer, id: &str) -> PartAnswer {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    // The names of these operations' headers are known.
    let own = answer.headers.into_iter().filter_map(|(name, value)| match name {
        std::borrow::Cow::Borrowed(name) => Some((name, value)),
        std::borrow::Cow::Owned(_) => None,
    });
    let mut headers: Vec<(&'static str, String)> = own.collect();
    headers.extend(usual(context, Some(part), id));
    PartAnswer {
        content_id: part.content_id.map(str::to_owned),
        status: status.as_u16(),
        reason: status.canonical_reason().unwrap_or_default().to_owned(),
        headers,
        body: Vec::new(),
    }
}

/// `part`: none if the batch is refused as a whole.
fn refusal(context: &Context<'_>, part: Option<&BatchPart<'_>>, failure: &Failure, id: &str) -> PartAnswer {
    let refusal = &failure.refusal;
    let (status, code) = refusal.answer();
    let mut details = refusal.details();
    if let Some(detail) = &failure.authentication_detail {
        details.push(("AuthenticationErrorDetail", detail.into()));
    }
    let body = respond::error_document(Writer::New, refusal, &details, id);
    let mut headers = vec![("x-ms-error-code", code.to_owned())];
    let mut usual = usual(context, part, id);
    // Between the version and the server.
    let server = usual.pop();
    headers.extend(usual);
    headers.push(("Content-Length", body.len().to_string()));
    headers.push(("Content-Type", "application/xml".to_owned()));
    headers.extend(server);
    PartAnswer {
        content_id: part.and_then(|part| part.content_id).map(str::to_owned),
        status,
        reason: refusal.to_string(),
        headers,
        body,
    }
}

/// What every answer has, the server last.
fn usual(context: &Context<'_>, part: Option<&BatchPart<'_>>, id: &str) -> Vec<(&'static str, String)> {
    let mut headers =
        vec![("x-ms-request-id", id.to_owned()), ("x-ms-version", context.version().to_string())];
    // A part has an id of its own; only a batch that is refused as a whole is told its own.
    let client_id = match part {
        Some(part) => part.header(names::X_MS_CLIENT_REQUEST_ID),
        None => context.request.client_request_id().and_then(|id| id.to_str().ok()),
    };
    let fits = |id: &&str| id.is_ascii() && id.len() <= common::limits::CLIENT_REQUEST_ID_BYTES_MAX;
    if let Some(id) = client_id.filter(fits) {
        headers.push((names::X_MS_CLIENT_REQUEST_ID, id.to_owned()));
    }
    headers.push(("Server", SERVER.to_owned()));
    headers
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]
mod tests {
    use super::*;
    use front::Address;
    use front::account::{Account, Accounts};

    #[test]
    fn one_blob_is_found_again_in_every_spelling() {
        let accounts = Accounts::new([Account::development()]);
        let services = (ServiceKind::Blob, &[ServiceKind::Blob][..]);
        let address = Address::find("http", "127.0.0.1", "/devstoreaccount1/", &accounts, services).unwrap();
        let differ = |first: &str, second: &str| {
            let part = |target| BatchPart { content_id: None, method: "DELETE", target, headers: Vec::new() };
            are_of_different_blobs(&address.site, &[part(first), part(second)])
        };
        let blob = "/devstoreaccount1/box/a/b";
        for same in [
            blob,
            "/devstoreaccount1/box/a/b?sig=x",
            "/devstoreaccount1/box/%61%2Fb",
            "/devstoreaccount1/box/a\\b",
            "/devstoreaccount1/box/a%5Cb",
            "http://127.0.0.1/devstoreaccount1/box/a/b",
        ] {
            assert!(!differ(blob, same), "{same}");
        }
        assert!(!differ("/devstoreaccount1/a", "/devstoreaccount1/$root/a"));
        for other in ["/devstoreaccount1/box/a/B", "/devstoreaccount1/box/b/a", "/devstoreaccount1/xbox/a/b"]
        {
            assert!(differ(blob, other), "{other}");
        }
    }
}
