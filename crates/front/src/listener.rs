//! Sockets: binds, accepts connections within bounds, and stops without cutting off requests.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
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
use crate::body::RequestBody;
use crate::connections::{Connections, Registration};
use crate::cores::{Seat, Seats};
use crate::guarded_stream::GuardedStream;
use crate::head_timer::HeadTimer;
use crate::memory::Memory;
use crate::metrics::Metrics;
use crate::pipeline::{self, Arrival, Front, Services};
use crate::port::Port;
use crate::properties_store::PropertiesStore;
use crate::refusal_log::RefusalLog;
use crate::response_body::Body;
use crate::side_door::{Handler, LocalServices, SideDoor};
use crate::slow_queries::SlowQueries;
use crate::traces::Traces;
use common::ServiceKind;

/// Bounds on what clients may take of this process.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Connections served at once; further ones wait in the kernel.
    pub connections: usize,
    /// How long a connection may take to send a request's head, or be idle between requests.
    pub idle: Duration,
    /// Request line and headers together.
    pub head_bytes: usize,
    /// Memory of all requests together: unfinished heads, bodies, and unsent answers.
    pub memory_bytes: usize,
    /// How long active requests may take to finish after the server is told to stop.
    pub shutdown: Duration,
}

/// How long a TLS handshake may take.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// How often a waiting connection tries again to make room.
const MAKE_ROOM_INTERVAL: Duration = Duration::from_millis(100);

/// A port, and the service that its requests are for, unless their host names another.
pub struct Listener {
    service: ServiceKind,
    port: Port,
}

impl Listener {
    /// Plain HTTP without an acceptor, HTTPS with one.
    pub async fn bind(
        service: ServiceKind,
        address: &str,
        tls: Option<TlsAcceptor>,
    ) -> std::io::Result<Self> {
        Ok(Self { service, port: Port::bind(address, tls).await? })
    }

    pub fn service(&self) -> ServiceKind {
        self.service
    }

    /// With the actual port if port 0 was requested.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    pub fn scheme(&self) -> &'static str {
        self.port.scheme()
    }
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.service.name(), self.port)
    }
}

pub struct Server {
    pub services: Services,
    /// Where all services keep their data, and whether it may be written.
    pub engine: Arc<dyn Engine>,
    pub gate: Arc<Gate>,
    pub accounts: SharedAccounts,
    pub bearer: SharedBearer,
    pub check_clock: bool,
    pub bounds: Bounds,
    /// What all requests share, also in services that hold more than bodies and answers.
    pub memory: Arc<Memory>,
    pub analytics: Arc<Analytics>,
    pub metrics: Arc<Metrics>,
    /// Where the spans of requests go, if anywhere.
    pub traces: Option<Arc<Traces>>,
    pub slow_queries: SlowQueries,
    /// The threads that serve connections.
    pub seats: Seats,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Server({:?})", self.services.kinds())
    }
}

/// Not `Send`: it is awaited on the thread that made it.
pub type BoxedFuture<'s> = Pin<Box<dyn Future<Output = ()> + 's>>;

impl Server {
    /// Serves until `stop` resolves and the active requests are answered. Panics if a listener is for a service that this
    /// server does not have.
    ///
    /// Boxed: futures are compiled in the crate that awaits them, and this one should be compiled here.
    pub fn run<'s>(self, listeners: Vec<Listener>, stop: BoxedFuture<'s>) -> BoxedFuture<'s> {
        self.open().run(listeners, Vec::new(), stop)
    }

    /// Everything but the listeners.
    pub fn open(self) -> OpenServer {
        let memory = self.memory;
        let places = Places::new(self.bounds, memory.clone(), self.seats.clone());
        self.metrics.serve(places.connections.clone(), self.bounds.connections, memory.clone());
        let properties = Arc::new(PropertiesStore::new(self.engine.clone(), self.gate.clone()));
        let front = Arc::new(Front {
            engine: self.engine,
            gate: self.gate,
            accounts: self.accounts,
            bearer: self.bearer,
            check_clock: self.check_clock,
            properties,
            analytics: self.analytics,
            memory,
            metrics: self.metrics,
            traces: self.traces,
            slow_queries: self.slow_queries,
            refusal_log: RefusalLog::default(),
        });
        let (stopping, stopped) = watch::channel(());
        let local = LocalServices { front, services: Arc::new(self.services), stopped };
        OpenServer { local, stopping, bounds: self.bounds, places }
    }
}

/// A server before it listens.
#[derive(Debug)]
pub struct OpenServer {
    local: LocalServices,
    stopping: watch::Sender<()>,
    bounds: Bounds,
    places: Places,
}

impl OpenServer {
    /// The way to its services without a socket.
    pub fn local(&self) -> LocalServices {
        self.local.clone()
    }

    /// As `Server::run`, with side doors, whose connections are served by the runtime of the caller.
    pub fn run<'s>(
        self,
        listeners: Vec<Listener>,
        side_doors: Vec<SideDoor>,
        stop: BoxedFuture<'s>,
    ) -> BoxedFuture<'s> {
        Box::pin(self.run_until(listeners, side_doors, stop))
    }

    async fn run_until(self, listeners: Vec<Listener>, side_doors: Vec<SideDoor>, stop: BoxedFuture<'_>) {
        let Self { local: LocalServices { front, services, stopped }, .. } = self;
        let mut loops = JoinSet::new();
        for Listener { service, port } in listeners {
            assert!(services.kinds().contains(&service), "{port:?} is for {service}, which is not served");
            let door = Door {
                scheme: port.scheme(),
                way: Way::Service { front: front.clone(), services: services.clone(), of_port: service },
            };
            loops.spawn(serve(port, door.into(), self.bounds, self.places.clone(), stopped.clone()));
        }
        for SideDoor { port, handler, bounds } in side_doors {
            let places = Places::new(bounds, Memory::new(bounds.memory_bytes), Seats::here());
            let door = Door { scheme: port.scheme(), way: Way::Side(handler) };
            loops.spawn(serve(port, door.into(), bounds, places, stopped.clone()));
        }
        drop(stopped);
        let keeper = Keeper {
            analytics: front.analytics.clone(),
            tables: MetricsTables { engine: front.engine.clone(), gate: front.gate.clone() },
            services: services.kinds().to_vec(),
            properties: front.properties.clone(),
            accounts: front.accounts.clone(),
        };
        let (last_answer, answered) = watch::channel(());
        let keeper = tokio::spawn(keeper.run(answered));
        stop.await;
        drop(self.stopping);
        while loops.join_next().await.is_some() {}
        // The last request has been counted.
        drop(last_answer);
        // On a full disk the keeper could wait for ever.
        if tokio::time::timeout(self.bounds.shutdown, keeper).await.is_err() {
            tracing::warn!("could not store the last metrics in time");
        }
    }
}

/// What the requests of one listener need.
struct Door {
    scheme: &'static str,
    way: Way,
}

enum Way {
    Service { front: Arc<Front>, services: Arc<Services>, of_port: ServiceKind },
    Side(Arc<dyn Handler>),
}

impl Door {
    /// Where its bytes are counted. What goes through a side door is no service's.
    fn metrics(&self) -> Option<&Arc<Metrics>> {
        match &self.way {
            Way::Service { front, .. } => Some(&front.metrics),
            Way::Side(_) => None,
        }
    }

    /// Whether the spelling of headers is kept: names of metadata keep their case, and other services have none. It costs
    /// every request something. What comes through a side door may be passed on to the Blob service.
    fn keeps_header_case(&self) -> bool {
        matches!(self.way, Way::Service { of_port: ServiceKind::Blob, .. } | Way::Side(_))
    }

    async fn answer(&self, arrival: Arrival<'_>) -> http::Response<Body> {
        match &self.way {
            Way::Service { front, services, of_port } => {
                pipeline::answer(front, services, *of_port, arrival).await
            }
            Way::Side(handler) => handler.answer(arrival).await,
        }
    }
}

/// Accepts connections until told to stop, then waits for their active requests.
async fn serve(
    port: Port,
    door: Arc<Door>,
    bounds: Bounds,
    places: Places,
    mut stopped: watch::Receiver<()>,
) {
    let connections = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            // An error, as nothing is ever sent: the sender was dropped.
            _ = stopped.changed() => break,
            accepted = places.accept(&port.socket) => accepted,
        };
        // The stream leaves this thread's runtime for the one that serves it.
        let accepted = accepted.and_then(|(stream, peer, place)| Ok((stream.into_std()?, peer, place)));
        let (stream, peer, place) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Most likely out of file descriptors; some connections must close first.
                tracing::warn!(%error, "can't accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        // An answer is one write; waiting for a full packet would only delay it.
        let _ = stream.set_nodelay(true);
        let (door, tls, watcher) = (door.clone(), port.tls.clone(), connections.watcher());
        let core = place.seat.handle.clone();
        core.spawn(async move {
            if let Err(error) = serve_stream(stream, peer, door, bounds, tls, watcher, &place).await {
                tracing::debug!(%error, %peer, "connection ended");
            }
            drop(place);
        });
    }
    drop(port);
    if tokio::time::timeout(bounds.shutdown, connections.shutdown()).await.is_err() {
        tracing::warn!("some requests did not finish in time; closing their connections");
    }
}

async fn serve_stream(
    stream: std::net::TcpStream,
    peer: SocketAddr,
    door: Arc<Door>,
    bounds: Bounds,
    tls: Option<TlsAcceptor>,
    watcher: Watcher,
    place: &Place,
) -> Result<(), ConnectionError> {
    let stream = TcpStream::from_std(stream).map_err(ConnectionError::Socket)?;
    match tls {
        None => serve_connection(stream, peer, door, bounds, watcher, place).await,
        Some(tls) => {
            let stream = handshake(tls, stream, place).await?;
            serve_connection(stream, peer, door, bounds, watcher, place).await
        }
    }
}

/// Why a connection ended before its client closed it.
#[derive(Debug, Error)]
enum ConnectionError {
    #[error("the socket can't be watched: {0}")]
    Socket(#[source] std::io::Error),
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
        () = place.registration.connection.spared() => Err(ConnectionError::SparedInHandshake),
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
    let connection = place.registration.connection.clone();
    let (metrics, keeps_header_case) = (door.metrics().cloned(), door.keeps_header_case());
    let serve = service_fn(move |request: http::Request<Incoming>| {
        let (door, active_request) = (door.clone(), connection.begin());
        async move {
            let at = Instant::now();
            let (head, body) = request.into_parts();
            let body = RequestBody::new(&head.headers, body);
            let (scheme, connection) = (door.scheme, active_request.connection());
            let mut response = door.answer(Arrival { at, peer, scheme, connection, head, body }).await;
            response.body_mut().belong_to(active_request);
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    let stream = GuardedStream::new(stream, place.registration.connection.clone(), metrics, bounds.idle);
    let connection = http1::Builder::new()
        .timer(HeadTimer::default())
        // A client may close its sending side and still wait for the answer.
        .half_close(true)
        .header_read_timeout(bounds.idle)
        .max_buf_size(bounds.head_bytes)
        .preserve_header_case(keeps_header_case)
        .serve_connection(TokioIo::new(stream), serve);
    tokio::select! {
        biased;
        served = watcher.watch(connection) => served.map_err(ConnectionError::Http),
        () = place.registration.connection.spared() => Err(ConnectionError::SparedIdle),
    }
}

/// The places for connections.
#[derive(Clone, Debug)]
struct Places {
    permits: Arc<Semaphore>,
    connections: Arc<Connections>,
    seats: Seats,
}

struct Place {
    _permit: OwnedSemaphorePermit,
    registration: Registration,
    seat: Seat,
}

impl Places {
    /// `memory`: for the heads of requests.
    fn new(bounds: Bounds, memory: Arc<Memory>, seats: Seats) -> Self {
        let permits = Arc::new(Semaphore::new(bounds.connections));
        Self { permits, connections: Connections::new(memory), seats }
    }

    /// A new connection and its place. If all places are taken, an idle connection is closed to make room.
    async fn accept(&self, socket: &TcpListener) -> std::io::Result<(TcpStream, SocketAddr, Place)> {
        let (stream, peer) = socket.accept().await?;
        let permit = loop {
            let permit = self.permits.clone().acquire_owned();
            if self.permits.available_permits() == 0 {
                self.connections.make_room();
            }
            // If no connection is idle now, one may be later.
            match tokio::time::timeout(MAKE_ROOM_INTERVAL, permit).await {
                // The semaphore is never closed.
                Ok(permit) => break permit.map_err(std::io::Error::other)?,
                Err(_) => continue,
            }
        };
        let registration = self.connections.register();
        Ok((stream, peer, Place { _permit: permit, registration, seat: self.seats.take() }))
    }
}
