//! Sockets: binding, accepting within bounds, and stopping without cutting anyone off.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use service::Service;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::account::SharedAccounts;
use crate::cors::CorsRules;
use crate::pipeline::{self, Pipeline};

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

#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

impl Listener {
    pub async fn bind(address: &str) -> std::io::Result<Self> {
        let socket = TcpListener::bind(address).await?;
        let address = socket.local_addr()?;
        Ok(Self { socket, address })
    }

    /// With the real port, if port 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

#[derive(Debug)]
pub struct Server {
    pub service: Service,
    pub accounts: SharedAccounts,
    pub check_clock: bool,
    pub bounds: Bounds,
}

impl Server {
    /// Serves until `stop` resolves and everything under way has been answered.
    pub async fn run(self, listener: Listener, stop: impl Future<Output = ()>) {
        let bounds = self.bounds;
        let pipeline = Arc::new(Pipeline {
            service: self.service,
            accounts: self.accounts,
            scheme: "http",
            check_clock: self.check_clock,
            cors: CorsRules::default(),
        });
        let permits = Arc::new(Semaphore::new(bounds.connections));
        let connections = GracefulShutdown::new();
        let mut stop = std::pin::pin!(stop);
        loop {
            let accepted = tokio::select! {
                () = &mut stop => break,
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
            let pipeline = pipeline.clone();
            let serve = service_fn(move |request| {
                let pipeline = pipeline.clone();
                async move {
                    Ok::<_, std::convert::Infallible>(pipeline::handle(pipeline, peer.ip(), request).await)
                }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                // A client that has said all it had to say still waits for its answer.
                .half_close(true)
                .header_read_timeout(bounds.idle)
                .max_buf_size(bounds.head_bytes)
                .serve_connection(TokioIo::new(stream), serve);
            let connection = connections.watch(connection);
            tokio::spawn(async move {
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "connection ended");
                }
                drop(permit);
            });
        }
        drop(listener);
        if tokio::time::timeout(bounds.shutdown, connections.shutdown()).await.is_err() {
            tracing::warn!("some requests did not finish in time; closing their connections");
        }
    }
}

async fn accept(
    socket: &TcpListener,
    permits: &Arc<Semaphore>,
) -> std::io::Result<(tokio::net::TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
    // The semaphore is never closed.
    let permit = permits.clone().acquire_owned().await.map_err(std::io::Error::other)?;
    let (stream, peer) = socket.accept().await?;
    Ok((stream, peer, permit))
}
