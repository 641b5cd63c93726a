//! `/health/live`: the process answers. `/health/ready`: the store can be read and written.

use std::sync::atomic::{AtomicBool, Ordering};

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use store::{Engine, Gate};

use crate::response_body::Body;

/// Whether "not ready" has been logged since the store was last ready.
static UNREADY: AtomicBool = AtomicBool::new(false);

/// The answer, if this is the path of a health check.
pub fn answer(path: &str, engine: &dyn Engine, gate: &Gate) -> Option<Response<Body>> {
    let (status, text) = match path {
        "/health/live" => (StatusCode::OK, "ok\n".to_owned()),
        "/health/ready" => ready(engine, gate),
        _ => return None,
    };
    let mut response = Response::new(Body::sized(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Some(response)
}

fn ready(engine: &dyn Engine, gate: &Gate) -> (StatusCode, String) {
    if let Err(fault) = engine.check_health() {
        let kind = fault.kind();
        if !UNREADY.swap(true, Ordering::Relaxed) {
            tracing::error!(%kind, %fault, "not ready");
        }
        // Only the kind: anyone may ask, and a fault names files. The log has the rest.
        let text = format!("the store can't be used now ({kind}); the server's log says why\n");
        return (StatusCode::SERVICE_UNAVAILABLE, text);
    }
    UNREADY.store(false, Ordering::Relaxed);
    let text = match gate.closed_since() {
        None => "ok\n".to_owned(),
        // Ready for reads. Writes are frozen in every server on this store, so a balancer gains nothing elsewhere.
        Some(since) => {
            format!("ok; frozen since {}, so that writes are refused\n", since.to_seconds_string())
        }
    };
    (StatusCode::OK, text)
}
