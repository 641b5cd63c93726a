//! From an answer or a failure to an HTTP response, with the headers every one carries (spec: queue-operations 2.2).

use std::borrow::Cow;

use common::{DateTime, Refusal as Shared};
use front::headers::{X_MS_REQUEST_ID, X_MS_VERSION};
use front::response_headers::{HEADERS_USUAL, come_back_later, echo, put};
use front::{Body, RefusedRequest, Request, ServiceKind};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, SERVER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use hyper::ext::ReasonPhrase;
use protocol::names;
use queue_model::Refusal;
use queue_wire::{QueueVersion as _, error_body};

use crate::QueueHttp;
use crate::answer::Answer;

pub fn answer(request: &Request<'_>, answer: Answer) -> Response<Body> {
    let has_document = answer.document.is_some();
    let mut response = Response::new(answer.document.map_or_else(Body::empty, Body::chunked));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    // Room for all of them at once: every answer passes here.
    headers.reserve(HEADERS_USUAL);
    if matches!(request.head.method, Method::GET | Method::HEAD) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    }
    if has_document {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    }
    queue_server_headers(headers, request);
    headers.extend(answer.headers);
    response
}

/// The answer that says no.
pub fn failure(request: &Request<'_>, refused: &RefusedRequest<'_, QueueHttp>) -> Response<Body> {
    let failure = refused.failure;
    let refusal = &failure.refusal;
    let (status, code) = refusal.answer();
    let message = refusal.to_string();
    let mut details = refusal.details();
    let bad_version = *refusal == Shared::HeaderValueInvalid.into() && request.version.is_err();
    if bad_version {
        let sent = request.head.headers.get(&X_MS_VERSION).map(HeaderValue::as_bytes).unwrap_or_default();
        details.push(("HeaderName", names::X_MS_VERSION.into()));
        details.push(("HeaderValue", String::from_utf8_lossy(sent)));
    }
    if let Some(detail) = &failure.authentication_detail {
        details.push(("AuthenticationErrorDetail", Cow::Borrowed(detail)));
    }
    let document = error_body::write(code, &message, &details, &request.id, DateTime::now());
    let mut response = Response::new(Body::sized(document));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    // The words stand in the status line too.
    if let Ok(reason) = ReasonPhrase::try_from(message.into_bytes()) {
        response.extensions_mut().insert(reason);
    }
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    if is_front_end(refusal) {
        headers.insert(SERVER, HeaderValue::from_static(names::FRONT_END_SERVER));
        put(headers, X_MS_REQUEST_ID.clone(), &request.id);
    } else {
        queue_server_headers(headers, request);
    }
    if request.served_version().has_error_code_header() && !bad_version {
        headers.insert(names::X_MS_ERROR_CODE, HeaderValue::from_static(code));
    }
    let asks_to_sign_in = [Shared::NoAuthenticationInformation, Shared::BearerTokenNotAccepted];
    if asks_to_sign_in.iter().any(|shared| *refusal == (*shared).into()) {
        put(headers, WWW_AUTHENTICATE, &refused.bearer.challenge());
    }
    if *refusal == Shared::Frozen.into() {
        come_back_later(headers);
    }
    response
}

/// Answered before the queue server sees the request, and so without its headers.
fn is_front_end(refusal: &Refusal) -> bool {
    matches!(
        refusal,
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

fn queue_server_headers(headers: &mut HeaderMap, request: &Request<'_>) {
    headers.insert(SERVER, HeaderValue::from_static(ServiceKind::Queue.server()));
    put(headers, X_MS_REQUEST_ID.clone(), &request.id);
    echo(headers, request);
}
