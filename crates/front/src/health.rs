//! `/health/live`: the process answers. `/health/ready`: the store can be read and written.

use std::sync::atomic::{AtomicBool, Ordering};

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use store::{Engine, Gate};

use crate::response_body::Body;

/// Whether the log has said already that the store can't be used.
static UNREADY: AtomicBool = AtomicBool::new(false);

/// The answer, if this is a question about health.
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
        // Only the kind, and the rest for the log alone: anyone may ask, and a fault names files.
        let text = format!("the store can't be used now ({kind}); the server's log says why\n");
        return (StatusCode::SERVICE_UNAVAILABLE, text);
    }
    UNREADY.store(false, Ordering::Relaxed);
    let text = match gate.closed_since() {
        None => "ok\n".to_owned(),
        // Ready for reads, and no other server on this store could be more.
        Some(since) => {
            format!("ok; frozen since {}, so that writes are refused\n", since.to_seconds_string())
        }
    };
    (StatusCode::OK, text)
}
