//! Headers that answers of all services have.

use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::Request;
use crate::headers::{X_MS_CLIENT_REQUEST_ID, X_MS_VERSION};

/// Room for the headers of an answer, so that they take one allocation: every answer has about so many.
pub const HEADERS_USUAL: usize = 12;
/// Seconds to wait while writes are frozen. A migration may take longer; clients retry again.
const RETRY_AFTER_FROZEN: &str = "5";

/// Repeats the request's version and client request id.
pub fn echo(headers: &mut HeaderMap, request: &Request<'_>) {
    let version = request.served_version();
    let sent = request.sent_version.filter(|sent| **sent == *version.as_bytes());
    match sent {
        Some(sent) => drop(headers.insert(X_MS_VERSION.clone(), sent.clone())),
        None => put(headers, X_MS_VERSION.clone(), version.as_str()),
    }
    if let Some(id) = request.client_request_id() {
        headers.insert(X_MS_CLIENT_REQUEST_ID.clone(), id.clone());
    }
}

/// Tells a client that is refused because writes are frozen when to come back.
pub fn come_back_later(headers: &mut HeaderMap) {
    headers.insert(RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_FROZEN));
}

/// For values that are ASCII without control characters: GUIDs, dates, links, tokens and challenges are.
pub fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
