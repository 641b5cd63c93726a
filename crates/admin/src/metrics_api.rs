//! `GET /metrics`: everything that is counted, in the text format of Prometheus.

use front::Body;
use front::metrics::{Build, Exposition, TextWriter};
use http::Response;
use http::header::{CONTENT_TYPE, HeaderValue};

use crate::door::Admin;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::status::Program;

pub(crate) async fn answer(admin: &Admin) -> Result<Reply, Refusal> {
    let Program { version, commit, .. } = admin.program;
    let services = admin.services.clone();
    // Reads the engine's state and files of the system.
    let text = tokio::task::spawn_blocking(move || {
        let front = services.front();
        let build = Build { version, commit };
        Exposition { metrics: &front.metrics, engine: &*front.engine, gate: &front.gate, build }.text()
    });
    let text = text.await.map_err(|_| Refusal::ServiceBroken)?;
    let mut reply = Response::new(Body::sized(text));
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(TextWriter::CONTENT_TYPE));
    Ok(reply)
}
