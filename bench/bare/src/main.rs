//! A server that only answers. It shows what HTTP alone costs and, with `--log`, the least that a durable write costs.
//! It is set up like Partita's own listener, so the difference between the two is Partita's work.

mod answer;
mod blobs;
mod content;
mod log;

use std::convert::Infallible;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clap::Parser;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

use crate::answer::Body;
use crate::log::Log;

// As in Partita.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// What the log keeps of a write without a body.
static RECORD: [u8; 64] = [0; 64];
const IDLE_TIME_MAX: Duration = Duration::from_secs(120);

/// Answers every request with fixed bytes; measure it with `partita bench --trust-answers`
#[derive(Parser, Debug)]
#[command(name = "partita-bare")]
struct Flags {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:10009")]
    listen: String,
    /// Write the data of each write to this file, and sync it before the answer; the old content of the file is lost. A blob
    /// above 64 KiB gets a file of its own beside it
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Compute the MD5 of each blob above 64 KiB that is put whole, as the service's answer has it
    #[arg(long, requires = "log")]
    md5: bool,
}

fn main() -> ExitCode {
    match run(&Flags::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("partita-bare: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(flags: &Flags) -> Result<(), String> {
    let log = flags.log.as_deref().map(|path| Log::open(path, flags.md5)).transpose()?.map(Arc::new);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| format!("can't start its threads: {error}"))?.block_on(serve(&flags.listen, log))
}

async fn serve(address: &str, log: Option<Arc<Log>>) -> Result<(), String> {
    let bad = |error| format!("can't listen on {address:?}: {error}; --listen takes address:port");
    let listener = TcpListener::bind(address).await.map_err(bad)?;
    println!("listening on http://{address}/devstoreaccount1");
    loop {
        // Most likely there are no more file descriptors; the measurement can't continue.
        let (stream, _) = listener.accept().await.map_err(|error| format!("can't accept: {error}"))?;
        let _ = stream.set_nodelay(true);
        let log = log.clone();
        tokio::spawn(async move {
            let serve = service_fn(move |request| answer(request, log.clone()));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .half_close(true)
                .header_read_timeout(IDLE_TIME_MAX)
                .serve_connection(TokioIo::new(stream), serve);
            // A client that closes its connection is not an error.
            let _ = connection.await;
        });
    }
}

async fn answer(request: Request<Incoming>, log: Option<Arc<Log>>) -> Result<Response<Body>, Infallible> {
    if blobs::is_for_blobs(&request) {
        return Ok(blobs::answer(request, log.as_deref()).await);
    }
    let path = request.uri().path();
    let (is_batch, of_queues) = (path.ends_with("/$batch"), path.contains("/messages"));
    let method = request.method().clone();
    // A Get of messages hides them, which is a write.
    let is_read = method == Method::GET
        && (!of_queues || request.uri().query().is_some_and(|query| query.contains("peekonly=true")));
    if is_read {
        return Ok(if of_queues { answer::message() } else { answer::entity() });
    }
    let Ok(body) = request.into_body().collect().await else {
        return Ok(answer::refusal(StatusCode::BAD_REQUEST));
    };
    let mut body = body.to_bytes();
    if body.is_empty() {
        // A message is hidden or deleted by a request without a body, but not without a record.
        body = Bytes::from_static(&RECORD);
    }
    let answer = match method {
        Method::GET => answer::message(),
        Method::POST if of_queues => answer::message_put(),
        _ if of_queues => answer::message_changed(),
        _ if is_batch => answer::batch(&body),
        _ => answer::written(),
    };
    if let Some(log) = log
        && log.append(body).await.is_err()
    {
        return Ok(answer::refusal(StatusCode::INTERNAL_SERVER_ERROR));
    }
    Ok(answer)
}
