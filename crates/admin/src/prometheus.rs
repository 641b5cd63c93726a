//! `GET /metrics`: everything that the server counts, in Prometheus' text format.

use std::sync::Arc;

use front::metrics::{Build, Exposition, MetricSource, TextWriter};
use front::{Body, Front};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};

use crate::reply::{self, Reply};
use crate::status::Program;

/// The engine asks the disk, and the system is asked for the numbers of this process, so this is done on a thread that may
/// wait.
pub(crate) async fn answer(
    front: &Front,
    sources: &Arc<[Arc<dyn MetricSource>]>,
    program: &Program,
) -> Reply {
    let build = Build { version: program.version, commit: program.commit };
    let (metrics, engine, gate) = (front.metrics.clone(), front.engine.clone(), front.gate.clone());
    let sources = sources.clone();
    let write = move || {
        Exposition { metrics: &metrics, engine: &*engine, gate: &gate, sources: &sources, build }.text()
    };
    // A panic was reported where it happened; a task is cancelled only when the server ends.
    let Ok(text) = tokio::task::spawn_blocking(write).await else {
        return reply::empty(StatusCode::INTERNAL_SERVER_ERROR);
    };
    let mut reply = Response::new(Body::sized(text));
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(TextWriter::CONTENT_TYPE));
    reply
}
