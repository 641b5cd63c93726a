//! Sockets: binding, accepting within bounds, and stopping without cutting anyone off.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use store::{Engine, Gate};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::account::SharedAccounts;
use crate::analytics::{Analytics, Keeper, MetricsTables};
use crate::bearer::SharedBearer;
use crate::connections::{Connections, Entry};
use crate::guarded_stream::GuardedStream;
use crate::memory::Memory;
use crate::pipeline::{self, Arrival, Front, Services};
use crate::refusal_log::RefusalLog;
use crate::settings::Settings;
use common::ServiceKind;

/// Bounds on what strangers may hold of this process.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Connections served at once; further ones wait in the kernel's queue.
    pub connections: usize,
    /// How long a connection may take to send a request's head, or stand idle between requests.
    pub idle: Duration,
    /// Request line and headers together.
    pub head_bytes: usize,
    /// What requests may hold together: unfinished heads, bodies, and answers not taken yet.
    pub memory_bytes: usize,
    /// How long requests under way may take to finish once the server is told to stop.
    pub shutdown: Duration,
}

/// How long a client may take to agree on keys.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// How often a connection without a place looks for one that could be spared.
const MAKE_ROOM_INTERVAL: Duration = Duration::from_millis(100);

/// A port, and the service that requests to it are for unless their host names another.
pub struct Listener {
    service: ServiceKind,
    socket: TcpListener,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
}

impl Listener {
    /// Plain HTTP without an acceptor, HTTPS with one.
    pub async fn bind(
        service: ServiceKind,
        address: &str,
        tls: Option<TlsAcceptor>,
    ) -> std::io::Result<Self> {
        let socket = TcpListener::bind(address).await?;
        let address = socket.local_addr()?;
        Ok(Self { service, socket, address, tls })
    }

    pub fn service(&self) -> ServiceKind {
        self.service
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
        write!(f, "{} {}://{}", self.service.name(), self.scheme(), self.address)
    }
}

pub struct Server {
    pub services: Services,
    /// What all services keep their data in, and whether it may be written to.
    pub engine: Arc<dyn Engine>,
    pub gate: Arc<Gate>,
    pub accounts: SharedAccounts,
    pub bearer: SharedBearer,
    pub check_clock: bool,
    pub bounds: Bounds,
    pub analytics: Arc<Analytics>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Server({:?})", self.services.kinds())
    }
}

/// Awaited by the thread that made it.
pub type BoxedFuture<'s> = Pin<Box<dyn Future<Output = ()> + 's>>;

impl Server {
    /// Serves until `stop` resolves and everything under way has been answered. Every listener is of a service that
    /// this server has.
    ///
    /// Boxed: futures are compiled where they are awaited, and all that serves requests belongs here.
    pub fn run<'s>(self, listeners: Vec<Listener>, stop: BoxedFuture<'s>) -> BoxedFuture<'s> {
        Box::pin(self.run_until(listeners, stop))
    }

    async fn run_until(self, listeners: Vec<Listener>, stop: BoxedFuture<'_>) {
        let memory = Memory::new(self.bounds.memory_bytes);
        let places = Places {
            permits: Arc::new(Semaphore::new(self.bounds.connections)),
            connections: Connections::new(memory.clone()),
        };
        let settings = Arc::new(Settings::new(self.engine.clone(), self.gate.clone()));
        let front = Arc::new(Front {
            engine: self.engine.clone(),
            gate: self.gate.clone(),
            accounts: self.accounts.clone(),
            bearer: self.bearer,
            check_clock: self.check_clock,
            settings: settings.clone(),
            analytics: self.analytics.clone(),
            memory,
            refusal_log: RefusalLog::default(),
        });
        let services = Arc::new(self.services);
        let (stopping, stopped) = watch::channel(());
        let mut loops = JoinSet::new();
        for listener in listeners {
            assert!(services.kinds().contains(&listener.service), "{listener:?} has no service");
            let door = Arc::new(Door {
                front: front.clone(),
                services: services.clone(),
                of_port: listener.service,
                scheme: listener.scheme(),
            });
            loops.spawn(serve(listener, door, self.bounds, places.clone(), stopped.clone()));
        }
        drop(stopped);
        let keeper = Keeper {
            analytics: self.analytics,
            tables: MetricsTables { engine: self.engine, gate: self.gate },
            services: services.kinds().to_vec(),
            settings,
            accounts: self.accounts,
        };
        let (last_answer, answered) = watch::channel(());
        let keeper = tokio::spawn(keeper.run(answered));
        stop.await;
        drop(stopping);
        while loops.join_next().await.is_some() {}
        // After the last request was counted.
        drop(last_answer);
        // On a full disk they could wait for ever.
        if tokio::time::timeout(self.bounds.shutdown, keeper).await.is_err() {
            tracing::warn!("the last metrics could not be kept in time");
        }
    }
}

/// Where a connection's requests go in.
struct Door {
    front: Arc<Front>,
    services: Arc<Services>,
    of_port: ServiceKind,
    scheme: &'static str,
}

/// Accepts connections until told to stop, then waits for those under way.
async fn serve(
    listener: Listener,
    door: Arc<Door>,
    bounds: Bounds,
    places: Places,
    mut stopped: watch::Receiver<()>,
) {
    let connections = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            // Only ever an error: the sender is gone.
            _ = stopped.changed() => break,
            accepted = places.accept(&listener.socket) => accepted,
        };
        let (stream, peer, place) = match accepted {
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
        let (door, tls, watcher) = (door.clone(), listener.tls.clone(), connections.watcher());
        tokio::spawn(async move {
            let served = match tls {
                None => serve_connection(stream, peer, door, bounds, watcher, &place).await,
                Some(tls) => match handshake(tls, stream, &place).await {
                    Ok(stream) => serve_connection(stream, peer, door, bounds, watcher, &place).await,
                    Err(error) => Err(error),
                },
            };
            if let Err(error) = served {
                tracing::debug!(%error, %peer, "connection ended");
            }
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(bounds.shutdown, connections.shutdown()).await.is_err() {
        tracing::warn!("some requests did not finish in time; closing their connections");
    }
}

/// Why a connection ended before its client closed it.
#[derive(Debug, Error)]
enum ConnectionError {
    #[error("the TLS handshake failed: {0}")]
    Handshake(#[source] std::io::Error),
    #[error("the TLS handshake took longer than {HANDSHAKE_TIME_MAX:?}")]
    HandshakeTime,
    #[error("closed during its TLS handshake to make room for another connection")]
    SparedInHandshake,
    #[error(transparent)]
    Http(#[from] hyper::Error),
    #[error("closed while idle to make room for another connection")]
    SparedIdle,
}

/// Until its TLS handshake is complete, a connection counts as idle and may be closed to make room.
async fn handshake(
    tls: TlsAcceptor,
    stream: TcpStream,
    place: &Place,
) -> Result<tokio_rustls::server::TlsStream<TcpStream>, ConnectionError> {
    tokio::select! {
        accepted = tokio::time::timeout(HANDSHAKE_TIME_MAX, tls.accept(stream)) => match accepted {
            Ok(accepted) => accepted.map_err(ConnectionError::Handshake),
            Err(_) => Err(ConnectionError::HandshakeTime),
        },
        () = place.entry.connection.spared() => Err(ConnectionError::SparedInHandshake),
    }
}

async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: SocketAddr,
    door: Arc<Door>,
    bounds: Bounds,
    watcher: Watcher,
    place: &Place,
) -> Result<(), ConnectionError> {
    let connection = place.entry.connection.clone();
    let serve = service_fn(move |request| {
        let (door, under_way) = (door.clone(), connection.begin());
        async move {
            let Door { front, services, of_port, scheme } = &*door;
            let connection = under_way.connection();
            let (of_port, scheme) = (*of_port, *scheme);
            let arrival = Arrival { at: Instant::now(), peer, scheme, of_port, connection, request };
            let mut response = pipeline::answer(front, services, arrival).await;
            response.body_mut().belong_to(under_way);
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    let stream = GuardedStream::new(stream, place.entry.connection.clone(), bounds.idle);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // A client that has said all it had to say still waits for its answer.
        .half_close(true)
        .header_read_timeout(bounds.idle)
        .max_buf_size(bounds.head_bytes)
        .serve_connection(TokioIo::new(stream), serve);
    tokio::select! {
        served = watcher.watch(connection) => served.map_err(ConnectionError::Http),
        () = place.entry.connection.spared() => Err(ConnectionError::SparedIdle),
    }
}

/// Room for connections.
#[derive(Clone)]
struct Places {
    permits: Arc<Semaphore>,
    connections: Arc<Connections>,
}

struct Place {
    _permit: OwnedSemaphorePermit,
    entry: Entry,
}

impl Places {
    /// A new connection, with a place made for it if all are taken and one of them is idle.
    async fn accept(&self, socket: &TcpListener) -> std::io::Result<(TcpStream, SocketAddr, Place)> {
        let (stream, peer) = socket.accept().await?;
        let permit = loop {
            let asked = self.permits.clone().acquire_owned();
            if self.permits.available_permits() == 0 {
                self.connections.make_room();
            }
            // Later there may be an idle one, if there is none now.
            match tokio::time::timeout(MAKE_ROOM_INTERVAL, asked).await {
                // The semaphore is never closed.
                Ok(permit) => break permit.map_err(std::io::Error::other)?,
                Err(_) => continue,
            }
        };
        Ok((stream, peer, Place { _permit: permit, entry: self.connections.enter() }))
    }
}
