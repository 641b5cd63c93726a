//! From an answer or a failure to an HTTP response, with the headers every one carries (spec: blob-operations 2.1, 2.3).

use std::borrow::Cow;

use blob_model::Refusal;
use blob_wire::{Writer, error_body};
use bytes::Bytes;
use common::{DateTime, Refusal as Shared, Version};
use front::authenticate::WRONG_LEVEL;
use front::headers::{X_MS_REQUEST_ID, X_MS_VERSION};
use front::response_headers::{HEADERS_USUAL, come_back_later, echo, put};
use front::{Body, RefusedRequest, Request, ServiceKind, header_case};
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, SERVER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use hyper::ext::ReasonPhrase;
use protocol::names;

use crate::BlobHttp;
use crate::answer::{Answer, AnswerBody, Failure};
use crate::perform::BEARER_ONLY;
use crate::route::Operation;

const XML: HeaderValue = HeaderValue::from_static("application/xml");

pub async fn answer(request: &Request<'_>, answer: Answer) -> Response<Body> {
    let Answer { status, headers: own, body } = answer;
    let is_head = request.head.method == Method::HEAD;
    let (body, content_type) = match body {
        AnswerBody::None => (Body::empty(), None),
        AnswerBody::Document(document) => (Body::chunked(document), Some(XML)),
        AnswerBody::SizedDocument(document) => (Body::sized(document), Some(XML)),
        AnswerBody::Other(kind, bytes) => (Body::chunked(bytes), HeaderValue::try_from(kind).ok()),
        AnswerBody::Content { length, content } => (Body::stream(length, content), None),
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    *response.extensions_mut() =
        header_case::for_response(own.iter().map(|(name, _)| &**name).filter(is_metadata)).await;
    let headers = response.headers_mut();
    // Room for all of them at once: every answer passes here.
    headers.reserve(HEADERS_USUAL + own.len());
    if let Some(content_type) = content_type {
        headers.insert(CONTENT_TYPE, content_type);
    }
    for (name, value) in own {
        // The length of a body is its own. Only a HEAD tells that of a body which is not sent.
        let Ok(name) = HeaderName::try_from(&*name) else { continue };
        if name == CONTENT_LENGTH && !is_head {
            continue;
        }
        if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
            headers.append(name, value);
        }
    }
    blob_server_headers(headers, request);
    response
}

fn is_metadata(name: &&str) -> bool {
    name.starts_with(blob_wire::names::META_PREFIX)
}

/// The answer that says no.
pub fn failure(request: &Request<'_>, refused: &RefusedRequest<'_, BlobHttp>) -> Response<Body> {
    let refusal = &refused.failure.refusal;
    let (status, code) = refusal.answer();
    let message = refusal.to_string();
    let bad_version = *refusal == Shared::HeaderValueInvalid.into() && request.version.is_err();
    // Neither of these has a body.
    let has_document = request.head.method != Method::HEAD && status != StatusCode::NOT_MODIFIED.as_u16();
    let body = match has_document {
        true => Body::sized(document(request, refused, bad_version)),
        false if request.head.method == Method::HEAD => Body::chunked(Bytes::new()),
        false => Body::empty(),
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    // The words stand in the status line too.
    if let Ok(reason) = ReasonPhrase::try_from(message.into_bytes()) {
        response.extensions_mut().insert(reason);
    }
    let headers = response.headers_mut();
    if has_document {
        headers.insert(CONTENT_TYPE, XML);
    }
    if is_front_end(refused.failure) {
        headers.insert(SERVER, HeaderValue::from_static(names::FRONT_END_SERVER));
        put(headers, X_MS_REQUEST_ID.clone(), &request.id);
    } else {
        blob_server_headers(headers, request);
    }
    if is_bare(refusal) {
        headers.remove(&X_MS_VERSION);
    } else if !bad_version {
        headers.insert(names::X_MS_ERROR_CODE, HeaderValue::from_static(code));
    }
    let asks_to_sign_in = [Shared::NoAuthenticationInformation, Shared::BearerTokenNotAccepted];
    if asks_to_sign_in.iter().any(|shared| *refusal == (*shared).into()) {
        put(headers, WWW_AUTHENTICATE, &refused.bearer.challenge());
    }
    if *refusal == Shared::TimedOut.into() {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if *refusal == Shared::Frozen.into() {
        come_back_later(headers);
    }
    // Page ranges refuse the same, and do not tell the length.
    if let Refusal::RangeInvalid { length } = refusal
        && refused.service_request.operation == Ok(Operation::GetBlob)
    {
        put(headers, CONTENT_RANGE, &format!("bytes */{length}"));
    }
    response
}

fn document(request: &Request<'_>, refused: &RefusedRequest<'_, BlobHttp>, bad_version: bool) -> Vec<u8> {
    let failure = refused.failure;
    let mut details = failure.refusal.details();
    if bad_version {
        let sent = request.head.headers.get(&X_MS_VERSION).map(HeaderValue::as_bytes).unwrap_or_default();
        details.push(("HeaderName", names::X_MS_VERSION.into()));
        details.push(("HeaderValue", String::from_utf8_lossy(sent)));
    }
    let writer = match &refused.service_request.operation {
        // Told by the newer front end.
        _ if is_bare(&failure.refusal) => Writer::New,
        Err(Refusal::HierarchyNotEnabled) if !is_front_end(failure) => Writer::New,
        Ok(operation) if !is_front_end(failure) => writer(*operation, request.served_version()),
        _ => Writer::Old,
    };
    match &failure.authentication_detail {
        // The newer writer has no slip in it.
        Some(detail) if detail == WRONG_LEVEL && writer == Writer::New => {
            details.push(("AuthenticationErrorDetail", detail.replace("the this", "this").into()));
        }
        Some(detail) => details.push(("AuthenticationErrorDetail", Cow::Borrowed(detail))),
        None => {}
    }
    error_document(writer, &failure.refusal, &details, &request.id)
}

pub fn error_document(
    writer: Writer,
    refusal: &Refusal,
    details: &[(&'static str, Cow<'_, str>)],
    id: &str,
) -> Vec<u8> {
    error_body::write(writer, refusal.code(), &refusal.to_string(), details, id, DateTime::now())
}

/// The writer of an operation's errors (spec: blob-operations 2.2).
fn writer(operation: Operation, version: Version) -> Writer {
    match operation {
        Operation::GetBlobTags
        | Operation::SetBlobTags
        | Operation::FindBlobs
        | Operation::SealBlob
        | Operation::AppendBlockFromUrl
        | Operation::PutPageFromUrl
        | Operation::RestoreContainer
        | Operation::Batch => Writer::New,
        Operation::GetPageRanges => blob_wire::page_list::writer(version),
        _ => Writer::Old,
    }
}

/// Answered before the blob server sees the request, and so without its headers.
fn is_front_end(failure: &Failure) -> bool {
    // These two are told by the blob server.
    if matches!(failure.authentication_detail.as_deref(), Some(WRONG_LEVEL | BEARER_ONLY)) {
        return false;
    }
    matches!(
        failure.refusal,
        Refusal::Shared(
            Shared::HeaderValueInvalid
                | Shared::HostMissing
                | Shared::BearerTokenNotAccepted
                | Shared::AuthenticationInfoMalformed
                | Shared::AuthenticationFailed
                | Shared::AuthorizationServiceMismatch
                | Shared::AuthorizationSourceIpMismatch { .. }
                | Shared::AccountNotFound
        )
    )
}

/// Without code and version in its headers: a snapshot or a version that is no time.
fn is_bare(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::ParameterInvalid { name: "snapshot" | "versionid", reason: None, .. })
}

fn blob_server_headers(headers: &mut HeaderMap, request: &Request<'_>) {
    headers.insert(SERVER, HeaderValue::from_static(ServiceKind::Blob.server()));
    put(headers, X_MS_REQUEST_ID.clone(), &request.id);
    echo(headers, request);
}
