//! Turns an answer or a failure into an HTTP response, with the headers that all responses have.

use std::borrow::Cow;

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_TYPE, ETAG, LOCATION, SERVER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use hyper::ext::ReasonPhrase;
use model::{DateTime, Refusal};
use wire::error_body::ErrorText;
use wire::{MetadataLevel, TableVersion, Version, names};

use crate::TableHttp;
use crate::answer::{TableAnswer, TableFailure};
use crate::table_request::TableRequest;
use front::bearer::Bearer;
use front::headers::X_MS_REQUEST_ID;
use front::response_headers::{HEADERS_USUAL, come_back_later, echo, put};
use front::{Body, RefusedRequest, Request};

pub fn answer(request: &Request<'_>, asked: &TableRequest, answer: TableAnswer) -> Response<Body> {
    let (body, content_type) = match answer.content {
        Some(content) => (Body::chunked(content.bytes), Some(content.content_type)),
        // An empty answer that is not "no content" is chunked too.
        None if answer.status == 202 => (Body::chunked(Bytes::new()), None),
        None => (Body::empty(), None),
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    // One allocation for all headers, because every answer passes here.
    headers.reserve(HEADERS_USUAL);
    let layout = match asked.is_service_document {
        true => HeaderLayout::ServiceDocument,
        false => HeaderLayout::Table { cache_control: true },
    };
    table_server_headers(headers, request, layout);
    match content_type {
        Some(Cow::Borrowed(content_type)) => {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        Some(Cow::Owned(content_type)) => put(headers, CONTENT_TYPE, &content_type),
        None => {}
    }
    if let Some(etag) = answer.etag.and_then(|etag| HeaderValue::try_from(etag).ok()) {
        headers.insert(ETAG, etag);
    }
    if let Some(location) = answer.location {
        put(headers, LOCATION, &location);
        if answer.names_location_twice {
            put(headers, HeaderName::from_static(names::DATA_SERVICE_ID), &location);
        }
    }
    if let Some(preference) = answer.preference_applied {
        put(headers, HeaderName::from_static(names::PREFERENCE_APPLIED), preference.as_str());
    }
    for (name, value) in answer.continuation {
        put(headers, HeaderName::from_static(name), &value);
    }
    response
}

/// The answer to a refused request. It shows details of the request only if the caller is authenticated.
pub fn failure(request: &Request<'_>, refused: &RefusedRequest<'_, TableHttp>) -> Response<Body> {
    let RefusedRequest { service_request: asked, failure, is_known, bearer } = *refused;
    let refusal = &failure.refusal;
    let is_service_document = is_known && asked.is_service_document;
    let mut response = if refusal.is_front_end() {
        front_end(request, asked, bearer, failure)
    } else if *refusal == common::Refusal::HeaderValueInvalid {
        let text = ErrorText::new(refusal, None, &request.id, DateTime::now());
        let mut response = Response::new(Body::sized(text.version_xml()));
        put(response.headers_mut(), CONTENT_TYPE, "application/xml");
        put(response.headers_mut(), SERVER, names::FRONT_END_SERVER);
        response
    } else if is_service_document {
        service_document(request, failure)
    } else {
        table_server(request, asked, failure, is_known)
    };
    *response.status_mut() =
        StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    put(response.headers_mut(), X_MS_REQUEST_ID.clone(), &request.id);
    // In answers in the front end's form, the status line has the message too.
    if (refusal.is_front_end() || is_service_document || *refusal == common::Refusal::HeaderValueInvalid)
        && let Ok(reason) = ReasonPhrase::try_from(refusal.to_string().into_bytes())
    {
        response.extensions_mut().insert(reason);
    }
    if *refusal == common::Refusal::Frozen {
        come_back_later(response.headers_mut());
    }
    response
}

fn table_server(
    request: &Request<'_>,
    asked: &TableRequest,
    failure: &TableFailure,
    is_known: bool,
) -> Response<Body> {
    let version = request.served_version();
    let (content_type, document) = error_document(failure, asked.error_level(), version, &request.id);
    let mut response = Response::new(Body::chunked(document.into()));
    let headers = response.headers_mut();
    table_server_headers(headers, request, HeaderLayout::Table { cache_control: failure.reached_the_store });
    let preference = asked.preference.filter(|_| is_known && failure.reached_the_store);
    if let Some(preference) = preference {
        put(headers, HeaderName::from_static(names::PREFERENCE_APPLIED), preference.as_str());
    }
    // The oldest versions send no content type with their XML.
    if asked.error_level().is_some() || !version.writes_old_xml() {
        put(headers, CONTENT_TYPE, content_type);
    }
    response
}

/// Refusals of the service's own documents look like the front end's, but come from the table server.
fn service_document(request: &Request<'_>, failure: &TableFailure) -> Response<Body> {
    let text = ErrorText::new(&failure.refusal, None, &request.id, DateTime::now());
    let mut response = Response::new(Body::sized(text.front_end_xml()));
    let headers = response.headers_mut();
    table_server_headers(headers, request, HeaderLayout::ServiceDocument);
    put(headers, CONTENT_TYPE, "application/xml");
    put(headers, HeaderName::from_static(names::X_MS_ERROR_CODE), failure.refusal.code());
    response
}

fn front_end(
    request: &Request<'_>,
    asked: &TableRequest,
    bearer: &Bearer,
    failure: &TableFailure,
) -> Response<Body> {
    let refusal = &failure.refusal;
    let text = ErrorText::new(refusal, None, &request.id, DateTime::now());
    let (content_type, document) = match asked.error_level() {
        Some(_) => ("application/json", text.json()),
        None => ("application/xml", text.front_end_xml()),
    };
    let mut response = Response::new(Body::sized(document));
    let headers = response.headers_mut();
    if *refusal == common::Refusal::NoAuthenticationInformation {
        // This answer comes from the table server, in the front end's form.
        put(headers, SERVER, names::SERVER);
        echo(headers, request);
    } else {
        put(headers, SERVER, names::FRONT_END_SERVER);
    }
    put(headers, CONTENT_TYPE, content_type);
    put(headers, HeaderName::from_static(names::X_MS_ERROR_CODE), refusal.code());
    if matches!(
        *refusal,
        Refusal::Shared(
            common::Refusal::NoAuthenticationInformation | common::Refusal::BearerTokenNotAccepted
        )
    ) {
        put(headers, WWW_AUTHENTICATE, &bearer.challenge());
    }
    response
}

/// An error in the table server's form; `level` is the JSON level of the request, if it asks for JSON.
pub fn error_document(
    failure: &TableFailure,
    level: Option<MetadataLevel>,
    version: Version,
    request_id: &str,
) -> (&'static str, Vec<u8>) {
    let text = ErrorText::new(&failure.refusal, failure.index, request_id, DateTime::now());
    match level {
        Some(level) => (level.content_type(), text.json()),
        None if version.writes_old_xml() => ("application/xml", text.old_xml()),
        None => ("application/xml;charset=utf-8", text.xml()),
    }
}

/// Which headers the table server adds.
#[derive(Clone, Copy)]
enum HeaderLayout {
    Table { cache_control: bool },
    ServiceDocument,
}

fn table_server_headers(headers: &mut HeaderMap, request: &Request<'_>, layout: HeaderLayout) {
    if let HeaderLayout::Table { cache_control } = layout {
        if cache_control {
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        }
        if request.served_version().has_json() {
            headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        }
    }
    headers.insert(SERVER, HeaderValue::from_static(names::SERVER));
    put(headers, X_MS_REQUEST_ID.clone(), &request.id);
    echo(headers, request);
}
