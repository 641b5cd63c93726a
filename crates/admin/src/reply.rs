//! Answers of the administration, and the headers that all of them have.

use front::Body;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, LOCATION, REFERRER_POLICY,
    RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};

use crate::refusal::Refusal;

pub(crate) type Reply = Response<Body>;

/// For everything but the console's pages: were an answer shown as a page, it could do nothing.
const NOTHING_POLICY: HeaderValue =
    HeaderValue::from_static("default-src 'none'; sandbox; frame-ancestors 'none'; base-uri 'none'");

/// On every answer. One that has a policy of its own keeps it.
pub(crate) fn guard(headers: &mut HeaderMap) {
    let set = [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in set {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(NOTHING_POLICY);
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

pub(crate) fn json_text(status: StatusCode, text: String) -> Reply {
    let mut reply = Response::new(Body::sized(text));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}

pub(crate) fn ok(value: &impl Serialize) -> Reply {
    // Only maps whose keys are not text can't be written.
    let text = serde_json::to_string(value).unwrap_or_else(|error| unreachable!("{error}"));
    json_text(StatusCode::OK, text)
}

pub(crate) fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(Body::empty());
    *reply.status_mut() = status;
    reply
}

pub(crate) fn redirect(to: &'static str) -> Reply {
    let mut reply = empty(StatusCode::FOUND);
    reply.headers_mut().insert(LOCATION, HeaderValue::from_static(to));
    reply
}

pub(crate) fn refused(refusal: &Refusal) -> Reply {
    refused_with(refusal, json!({}))
}

/// With further members beside the error.
pub(crate) fn refused_with(refusal: &Refusal, mut members: Value) -> Reply {
    members["error"] = json!({ "code": refusal.code(), "message": refusal.message() });
    let mut reply = json_text(refusal.status(), members.to_string());
    if matches!(refusal, Refusal::TooManyFailures | Refusal::TooManyStreams) {
        reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    reply
}

pub(crate) fn not_allowed(methods: &'static str) -> Reply {
    let mut reply = refused(&Refusal::MethodNotAllowed);
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    reply
}
