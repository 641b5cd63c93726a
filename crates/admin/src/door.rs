//! The administration's listener: the checks of every request, in their order, and where it goes.

use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use common::hot_partitions::HotPartitions;
use console::Asset;
use front::metrics::MetricSource;
use front::{Arrival, Body, BodyFailure, Bounds, Handler, LocalServices, Memory, RequestBody};
use http::{Method, Response};
use tokio::sync::Semaphore;

use crate::assets;
use crate::attempts::Attempts;
use crate::cluster::ClusterSource;
use crate::command::{Command, Commands, MigrationCheck};
use crate::endpoint::ServiceEndpoint;
use crate::events;
use crate::forward::{self, ServiceCall};
use crate::host::{self, HostName};
use crate::inventory;
use crate::origin;
use crate::prometheus;
use crate::refusal::Refusal;
use crate::reply::{self, Reply};
use crate::sas_api;
use crate::secret::AdminToken;
use crate::session_api;
use crate::sessions::Sessions;
use crate::settings::{Setting, SettingsShown};
use crate::status::{Program, Start, StatusParts, StorePlace};
use crate::streams::Streams;
use crate::who::{AdminProof, Visitor};

const CONNECTIONS_MAX: usize = 64;
const IDLE_TIME_MAX: Duration = Duration::from_secs(60);
/// As at the services' ports: a request that is passed on has the same head.
const HEAD_BYTES_MAX: usize = 128 * 1024;
/// Of all requests together, for heads and for bodies that are not passed on.
const MEMORY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bodies that are not passed on.
const BODY_BYTES_MAX: usize = 64 * 1024;
const BODY_TIME_MAX: Duration = Duration::from_secs(10);

/// What the administration's clients may take: nothing of it is the services'.
pub fn bounds(shutdown: Duration) -> Bounds {
    Bounds {
        connections: CONNECTIONS_MAX,
        idle: IDLE_TIME_MAX,
        head_bytes: HEAD_BYTES_MAX,
        memory_bytes: MEMORY_BYTES_MAX,
        shutdown,
    }
}

/// What an `Admin` is made of.
#[derive(Debug)]
pub struct AdminParts {
    pub services: LocalServices,
    pub endpoints: Vec<ServiceEndpoint>,
    /// The listener's address if only this machine can reach it.
    pub loopback: Option<SocketAddr>,
    pub token: Option<AdminToken>,
    pub hosts: Vec<HostName>,
    pub assets: &'static [Asset],
    pub program: Program,
    pub store: StorePlace,
    pub commands: Arc<Commands>,
    pub cluster: Option<ClusterSource>,
    /// Whether the services answer what Azure does not have.
    pub extensions: bool,
    /// Which partitions are asked for most, if somebody counts them.
    pub hot: Option<Arc<HotPartitions>>,
    pub settings: Vec<Setting>,
    /// What counts for `/metrics` beside the front and the engine.
    pub metric_sources: Arc<[Arc<dyn MetricSource>]>,
}

/// The administration of a server.
pub struct Admin {
    pub(crate) services: LocalServices,
    pub(crate) endpoints: Vec<ServiceEndpoint>,
    pub(crate) proof: AdminProof,
    hosts: Vec<HostName>,
    assets: &'static [Asset],
    program: Program,
    store: StorePlace,
    commands: Arc<Commands>,
    cluster: Option<ClusterSource>,
    start: Start,
    pub(crate) extensions: bool,
    pub(crate) hot: Option<Arc<HotPartitions>>,
    settings: Vec<Setting>,
    metric_sources: Arc<[Arc<dyn MetricSource>]>,
    pub(crate) sessions: Arc<Sessions>,
    /// For work that reads much: one request at a time.
    pub(crate) counting: Semaphore,
    pub(crate) streams: Arc<Streams>,
    pub(crate) attempts: Attempts,
    memory: Arc<Memory>,
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Admin")
    }
}

impl Admin {
    pub fn new(parts: AdminParts) -> Self {
        let AdminParts { services, endpoints, loopback, token, hosts, .. } = parts;
        Self {
            services,
            endpoints,
            proof: AdminProof { token, loopback },
            hosts,
            assets: parts.assets,
            program: parts.program,
            store: parts.store,
            commands: parts.commands,
            cluster: parts.cluster,
            start: Start::now(),
            extensions: parts.extensions,
            hot: parts.hot,
            settings: parts.settings,
            metric_sources: parts.metric_sources,
            sessions: Arc::new(Sessions::new()),
            counting: Semaphore::new(1),
            streams: Arc::default(),
            attempts: Attempts::default(),
            memory: Memory::new(MEMORY_BYTES_MAX),
        }
    }

    async fn serve(&self, mut arrival: Arrival<'_>) -> Reply {
        let connection = arrival.connection;
        // What is left of a body that nobody read.
        let mut body = std::mem::replace(&mut arrival.body, RequestBody::none());
        let mut reply = match self.admit_and_perform(arrival, &mut body).await {
            Ok(reply) => reply,
            Err(refusal) => reply::refused(&refusal),
        };
        body.discard(connection);
        reply::guard(reply.headers_mut());
        reply
    }

    /// The checks of every request, then what it asks for.
    async fn admit_and_perform(
        &self,
        arrival: Arrival<'_>,
        body: &mut RequestBody,
    ) -> Result<Reply, Refusal> {
        let head = &arrival.head;
        if head.uri.authority().is_some() || !head.uri.path().starts_with('/') {
            return Err(Refusal::BadTarget);
        }
        let host = host::accepted(&head.headers, &self.hosts).ok_or(Refusal::WrongHost)?.to_owned();
        if origin::is_cross_site(head, arrival.scheme, &host) {
            return Err(Refusal::CrossSite);
        }
        let proved = (&*self.sessions, &self.attempts);
        let visitor = self.proof.visitor(head, arrival.peer.ip(), proved, Instant::now())?;
        let path = head.uri.path().to_owned();
        let is_sign_in = path == "/api/session" && head.method == Method::POST;
        if !is_sign_in {
            visitor.require_csrf(head, &self.sessions)?;
        }
        self.perform(&path, &host, &visitor, arrival, body).await
    }

    async fn perform(
        &self,
        path: &str,
        host: &str,
        visitor: &Visitor,
        arrival: Arrival<'_>,
        body: &mut RequestBody,
    ) -> Result<Reply, Refusal> {
        if let Some((service, rest)) = forward::target(path) {
            return self.forward(service, rest, visitor, arrival, body).await;
        }
        if let Some(name) = path.strip_prefix("/api/commands/") {
            visitor.require_operator(arrival.peer)?;
            return match arrival.head.method {
                Method::POST => self.command(name).await,
                _ => Ok(reply::not_allowed("POST")),
            };
        }
        let method = arrival.head.method.clone();
        let is_read = method == Method::GET || method == Method::HEAD;
        match path {
            "/api/session" => match method {
                Method::POST => session_api::sign_in(self, &arrival, host, visitor, body).await,
                Method::GET => Ok(session_api::current(self, arrival.scheme, host, visitor)),
                Method::DELETE => session_api::sign_out(self, visitor),
                _ => Ok(reply::not_allowed("GET, POST, DELETE")),
            },
            "/api/sas" => match method {
                Method::POST => sas_api::make(self, visitor.require_member()?, &arrival, host, body).await,
                _ => Ok(reply::not_allowed("POST")),
            },
            _ if !is_read => Ok(reply::not_allowed("GET, HEAD")),
            "/api/tables" => inventory::tables(self, visitor.require_member()?, &arrival).await,
            "/api/queues" => inventory::queues(self, visitor.require_member()?, &arrival).await,
            "/api/events" => events::open(self, visitor, arrival.peer),
            "/api/settings" => {
                visitor.require_admin()?;
                Ok(reply::ok(&SettingsShown { settings: &self.settings }))
            }
            "/" | "/console" => Ok(reply::redirect(assets::ROOT)),
            "/api/status" => {
                visitor.require_admin()?;
                let cluster = match &self.cluster {
                    Some(cluster) => Some(cluster.ask().await),
                    None => None,
                };
                // Short, but it reads files.
                Ok(tokio::task::block_in_place(|| reply::ok(&self.status_parts().status(cluster))))
            }
            "/metrics" => {
                visitor.require_admin()?;
                Ok(prometheus::answer(self.services.front(), &self.metric_sources, &self.program).await)
            }
            _ => {
                let file = path.strip_prefix(assets::ROOT).ok_or(Refusal::NotFound)?;
                assets::answer(self.assets, file, &arrival.head.headers)
            }
        }
    }

    async fn forward(
        &self,
        service: common::ServiceKind,
        path: &str,
        visitor: &Visitor,
        arrival: Arrival<'_>,
        body: &mut RequestBody,
    ) -> Result<Reply, Refusal> {
        let member = visitor.require_member()?;
        let query = arrival.head.uri.query().map(str::to_owned);
        let method = arrival.head.method.clone();
        let headers = forward::passed_headers(&arrival.head.headers, &method);
        let call = ServiceCall { service, method, path, query: query.as_deref(), headers };
        forward::call(&self.services, &self.endpoints, member, call, arrival, body).await
    }

    async fn command(&self, name: &str) -> Result<Reply, Refusal> {
        let command = Command::parse(name, MigrationCheck::Needed).ok_or(Refusal::NotFound)?;
        Ok(reply::ok(&self.commands.try_perform(command).await?))
    }

    fn status_parts(&self) -> StatusParts<'_> {
        StatusParts {
            program: &self.program,
            store: &self.store,
            commands: &self.commands,
            start: self.start,
            services: &self.services,
            sessions: self.sessions.count(),
        }
    }

    /// A body that is for the administration itself. Its sender may not have signed in yet, so slow ones make room for
    /// others.
    pub(crate) async fn read_body(
        &self,
        arrival: &Arrival<'_>,
        body: &mut RequestBody,
    ) -> Result<Bytes, Refusal> {
        let deadline = tokio::time::Instant::now() + BODY_TIME_MAX;
        let mut held = self.memory.nothing();
        let awaited = arrival.connection.await_stranger();
        let read = body.read_whole(&arrival.head.headers, BODY_BYTES_MAX, deadline, &mut held).await;
        drop(awaited);
        read.map_err(|failure| match failure {
            BodyFailure::Refused(common::Refusal::RequestBodyTooLarge) => Refusal::BodyTooLarge,
            BodyFailure::Refused(_) | BodyFailure::Broken => Refusal::BodyBroken,
        })
    }
}

impl Handler for Admin {
    fn answer<'a>(
        &'a self,
        arrival: Arrival<'a>,
    ) -> Pin<Box<dyn Future<Output = Response<Body>> + Send + 'a>> {
        Box::pin(self.serve(arrival))
    }
}
