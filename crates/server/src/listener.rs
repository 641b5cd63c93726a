//! Sockets: binding, accepting within bounds, and stopping without cutting anyone off.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use service::Service;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::account::SharedAccounts;
use crate::analytics::{Analytics, Keeper};
use crate::bearer::SharedBearer;
use crate::pipeline::{self, Pipeline};
use crate::settings::Settings;

/// Bounds on what strangers may hold of this process.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Connections served at once; further ones wait in the kernel's queue.
    pub connections: usize,
    /// How long a connection may take to send a request's head, or stand idle between requests.
    pub idle: Duration,
    /// Request line and headers together.
    pub head_bytes: usize,
    /// How long requests under way may take to finish once the server is told to stop.
    pub shutdown: Duration,
}

/// How long a client may take to agree on keys.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);

pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
}

impl Listener {
    /// Plain HTTP without an acceptor, HTTPS with one.
    pub async fn bind(address: &str, tls: Option<TlsAcceptor>) -> std::io::Result<Self> {
        let socket = TcpListener::bind(address).await?;
        let address = socket.local_addr()?;
        Ok(Self { socket, address, tls })
    }

    /// With the real port, if port 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}", self.scheme(), self.address)
    }
}

#[derive(Debug)]
pub struct Server {
    pub service: Service,
    pub accounts: SharedAccounts,
    pub bearer: SharedBearer,
    pub check_clock: bool,
    pub bounds: Bounds,
    pub analytics: Arc<Analytics>,
}

impl Server {
    /// Serves until `stop` resolves and everything under way has been answered.
    pub async fn run(self, listeners: Vec<Listener>, stop: impl Future<Output = ()>) {
        let permits = Arc::new(Semaphore::new(self.bounds.connections));
        let settings = Arc::new(Settings::default());
        let (stopping, stopped) = watch::channel(());
        let mut loops = JoinSet::new();
        for listener in listeners {
            let pipeline = Arc::new(Pipeline {
                service: self.service.clone(),
                accounts: self.accounts.clone(),
                bearer: self.bearer.clone(),
                scheme: listener.scheme(),
                check_clock: self.check_clock,
                settings: settings.clone(),
                analytics: self.analytics.clone(),
            });
            loops.spawn(serve(listener, pipeline, self.bounds, permits.clone(), stopped.clone()));
        }
        drop(stopped);
        let keeper =
            Keeper { analytics: self.analytics, service: self.service, settings, accounts: self.accounts };
        let (last_answer, answered) = watch::channel(());
        let keeper = tokio::spawn(keeper.run(answered));
        stop.await;
        drop(stopping);
        while loops.join_next().await.is_some() {}
        // After the last request was counted.
        drop(last_answer);
        let _ = keeper.await;
    }
}

/// Accepts connections until told to stop, then waits for those under way.
async fn serve(
    listener: Listener,
    pipeline: Arc<Pipeline>,
    bounds: Bounds,
    permits: Arc<Semaphore>,
    mut stopped: watch::Receiver<()>,
) {
    let connections = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            // Only ever an error: the sender is gone.
            _ = stopped.changed() => break,
            accepted = accept(&listener.socket, &permits) => accepted,
        };
        let (stream, peer, permit) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of file descriptors, most likely: existing connections must close first.
                tracing::warn!(%error, "can't accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        // Answers are written whole; waiting to fill a packet would only delay them.
        let _ = stream.set_nodelay(true);
        let (pipeline, tls, watcher) = (pipeline.clone(), listener.tls.clone(), connections.watcher());
        tokio::spawn(async move {
            let ended = match tls {
                None => serve_connection(stream, peer, pipeline, bounds, watcher).await,
                Some(tls) => match tokio::time::timeout(HANDSHAKE_TIME_MAX, tls.accept(stream)).await {
                    Ok(Ok(stream)) => serve_connection(stream, peer, pipeline, bounds, watcher).await,
                    Ok(Err(error)) => Err(error.to_string()),
                    Err(_) => Err("the TLS handshake took too long".to_owned()),
                },
            };
            if let Err(error) = ended {
                tracing::debug!(error, %peer, "connection ended");
            }
            drop(permit);
        });
    }
    drop(listener);
    if tokio::time::timeout(bounds.shutdown, connections.shutdown()).await.is_err() {
        tracing::warn!("some requests did not finish in time; closing their connections");
    }
}

async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: SocketAddr,
    pipeline: Arc<Pipeline>,
    bounds: Bounds,
    watcher: Watcher,
) -> Result<(), String> {
    let serve = service_fn(move |request| {
        let pipeline = pipeline.clone();
        async move { Ok::<_, std::convert::Infallible>(pipeline::handle(pipeline, peer, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // A client that has said all it had to say still waits for its answer.
        .half_close(true)
        .header_read_timeout(bounds.idle)
        .max_buf_size(bounds.head_bytes)
        .serve_connection(TokioIo::new(stream), serve);
    watcher.watch(connection).await.map_err(|error| error.to_string())
}

async fn accept(
    socket: &TcpListener,
    permits: &Arc<Semaphore>,
) -> std::io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    // The semaphore is never closed.
    let permit = permits.clone().acquire_owned().await.map_err(std::io::Error::other)?;
    let (stream, peer) = socket.accept().await?;
    Ok((stream, peer, permit))
}
