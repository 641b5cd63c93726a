//! `partita serve`: opens the store and serves until told to stop.

use std::future::Future;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use admin::{Admin, AdminParts, ClusterSource, Commands, Setting, StoreKind, StorePlace};
use blob_service::BlobService;
use common::throttle::Throttle;
use engine_cassandra::{CassandraObjects, OptionsError};
use engine_embedded::{EmbeddedEngine, EmbeddedObjects, OpenError};
use front::account::SharedAccounts;
use front::analytics::{Analytics, LogStore};
use front::bearer::SharedBearer;
use front::metrics::{MetricSource, Metrics};
use front::tls::{Certificate, CertificateFiles, TlsError};
use front::traces::Traces;
use front::{Cores, Listener, Memory, Port, Seats, Server, ServiceKind, Services, SideDoor};
use queue_service::QueueService;
use service::{Insight, Service};
use store::{Engine, Fault, Gate, MemoryEngine, MemoryObjects, Objects, private_directory};
use table_http::Extensions;
use thiserror::Error;
use tokio::task::JoinError;
use tokio_rustls::TlsAcceptor;

use crate::banner::{AzuriteLines, banner};
use crate::certificate::{self, CertificateError};
use crate::cluster::{self, ClusterError};
use crate::commands::{CommandParts, Reload, listen_for_commands, reload_on_hangup};
use crate::config::{self, AdminConfig, CertificateSource, Config, Flags, SettingsError, Storage};
use crate::control::BindError;
use crate::logging::{self, LoggingError};
use crate::program;
use crate::stop_signal::stop_signal;
use crate::upkeep::marks::{self, MarkError};

const CERTIFICATE_CHECK_INTERVAL: Duration = Duration::from_secs(60);
/// How long a stop waits for a collector to take the last traces.
const LAST_TRACES_TIME_MAX: Duration = Duration::from_secs(5);

/// Why the server did not start, or stopped before it was told to.
#[derive(Debug, Error)]
pub enum ServeError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Log(#[from] LoggingError),
    #[error("can't start its threads: {source}; raise the system's limit on threads")]
    Threads { source: io::Error },
    #[error("{address} is taken by another program; stop it, or choose another port with {flag}")]
    PortTaken { address: String, flag: &'static str, source: io::Error },
    #[error(
        "not allowed to listen on {address}; ports below 1024 need privileges, choose another with {flag}"
    )]
    PortForbidden { address: String, flag: &'static str, source: io::Error },
    #[error("can't listen on {address:?}: {source}; {flag} takes address:port, such as 127.0.0.1:10002")]
    NoPort { address: String, flag: &'static str, source: io::Error },
    #[error(transparent)]
    DevelopmentCertificate(#[from] CertificateError),
    #[error(transparent)]
    Certificate(#[from] TlsError),
    #[error(transparent)]
    Mark(#[from] MarkError),
    #[error(transparent)]
    Open(OpenError),
    /// The engine names the damage; only this program knows the flags and commands that help.
    #[error("{0}; `partita check` shows the damage, and with --salvage saves the rest")]
    Damaged(#[source] OpenError),
    #[error("{0} (--accept-loss); `partita check` shows the damage, and with --salvage saves the rest")]
    CommitsMissing(#[source] OpenError),
    #[error("opening the store was interrupted: {0}; start again")]
    CutShort(#[source] JoinError),
    #[error("--store: {0}")]
    Address(#[from] OptionsError),
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(transparent)]
    Control(#[from] BindError),
    #[error("the store failed ({}): {source}", .source.kind())]
    Store { source: Fault },
}

impl From<OpenError> for ServeError {
    fn from(error: OpenError) -> Self {
        match &error {
            OpenError::Damaged { missing: Some(_), .. } => Self::CommitsMissing(error),
            OpenError::Damaged { .. } => Self::Damaged(error),
            _ => Self::Open(error),
        }
    }
}

pub fn serve(flags: Flags) -> Result<(), ServeError> {
    let config = Config::from_flags(flags.clone())?;
    logging::start_logging(&config.log_level, config.log_format, config.log_file.as_deref())?;
    raise_file_limit(config.bounds.connections);
    // Connections are served by the cores; everything else by this runtime.
    let no_threads = |source| ServeError::Threads { source };
    let cores = Cores::start().map_err(no_threads)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(no_threads)?;
    runtime.block_on(run(config, flags, cores.seats()))
}

/// Each connection needs a file descriptor, and many systems allow a process only about a thousand by default.
fn raise_file_limit(connections: usize) {
    const FILES_OF_THE_STORE: u64 = 1024;
    let wanted = connections as u64 + FILES_OF_THE_STORE;
    match rlimit::increase_nofile_limit(wanted) {
        Ok(allowed) if allowed < wanted => tracing::warn!(
            allowed,
            wanted,
            "the limit of open files is too low for --max-connections; raise it (ulimit -n, LimitNOFILE)"
        ),
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "could not raise the limit of open files"),
    }
}

/// The only place that names engines.
async fn run(config: Config, flags: Flags, seats: Seats) -> Result<(), ServeError> {
    let settings = config::settings(&config, &flags);
    let accounts = SharedAccounts::new(config.accounts());
    let bearer = SharedBearer::new(config.bearer.clone());
    let development = AtomicBool::new(config.development);
    let reload = Arc::new(Reload { flags, accounts, bearer, development });
    tokio::spawn(reload_on_hangup(reload.clone()));
    let gate = Arc::new(Gate::default());
    // Binds the ports before it opens the store: a second server on the same port must not touch the data.
    let mut listeners = Vec::new();
    if let Some(address) = &config.listen {
        listeners.push(bind(ServiceKind::Table, address, "--listen", None).await?);
    }
    if let Some(address) = &config.queue_listen {
        listeners.push(bind(ServiceKind::Queue, address, "--queue-listen", None).await?);
    }
    if let Some(address) = &config.blob_listen {
        listeners.push(bind(ServiceKind::Blob, address, "--blob-listen", None).await?);
    }
    let mut acceptor_of_admin = None;
    if let Some(tls) = &config.tls {
        let certificate = Certificate::load(certificate_files(&tls.source)?)?;
        let acceptor = certificate.acceptor()?;
        listeners.push(bind(ServiceKind::Table, &tls.listen, "--tls-listen", Some(acceptor.clone())).await?);
        acceptor_of_admin = Some(acceptor.clone());
        if let Some(address) = &tls.queue_listen {
            let acceptor = Some(acceptor.clone());
            listeners.push(bind(ServiceKind::Queue, address, "--queue-tls-listen", acceptor).await?);
        }
        if let Some(address) = &tls.blob_listen {
            listeners.push(bind(ServiceKind::Blob, address, "--blob-tls-listen", Some(acceptor)).await?);
        }
        tokio::spawn(refresh(certificate));
    }
    let admin = match &config.admin {
        Some(admin) => bind_admin(admin, acceptor_of_admin).await?,
        None => None,
    };
    let sockets = Sockets { listeners, seats, admin: admin.map(|port| (port, settings)) };
    match &config.storage {
        Storage::Memory => {
            let commands =
                CommandParts { reload: reload.clone(), gate: gate.clone(), embedded: None }.commands();
            let _control = listen_for_commands(&config, commands.clone())?;
            let failed = std::future::pending();
            let place =
                StorePlace { kind: StoreKind::Memory, place: "in memory; it is gone after exit".to_owned() };
            let engine = Arc::new(MemoryEngine::new());
            let objects: Arc<dyn Objects> = Arc::new(MemoryObjects::new());
            let backing = Backing { engine, objects, place, commands, cluster: None };
            serve_with(&config, &reload, gate, sockets, backing, failed).await
        }
        Storage::Directory { path, cache_bytes, accept_loss, accept_migration } => {
            marks::check(path, *accept_migration)?;
            warn_if_open_to_others(path);
            tell_of_log_files(path);
            let mut options = engine_embedded::Options::new(path).with_cache(*cache_bytes);
            options.accept_loss = *accept_loss;
            let engine = tokio::task::spawn_blocking(|| EmbeddedEngine::open(options)).await;
            let engine = Arc::new(engine.map_err(ServeError::CutShort)??);
            let failed = engine.on_failure();
            // Only after the open is it certain that no other server has this directory.
            let embedded = Some((engine.clone(), path.clone()));
            let commands = CommandParts { reload: reload.clone(), gate: gate.clone(), embedded }.commands();
            let _control = listen_for_commands(&config, commands.clone())?;
            let place = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            let place = StorePlace { kind: StoreKind::Embedded, place: place.display().to_string() };
            let objects: Arc<dyn Objects> = Arc::new(EmbeddedObjects::new(engine.clone()));
            let backing = Backing { engine, objects, place, commands, cluster: None };
            serve_with(&config, &reload, gate, sockets, backing, failed).await
        }
        Storage::Cluster { address, wait } => {
            let options = engine_cassandra::Options::from_address(address.as_str())?;
            let place = StorePlace { kind: StoreKind::Cassandra, place: options.to_string() };
            let engine = Arc::new(cluster::connect(options, *wait).await?);
            let commands =
                CommandParts { reload: reload.clone(), gate: gate.clone(), embedded: None }.commands();
            let _control = listen_for_commands(&config, commands.clone())?;
            let view = cluster::source(engine.clone());
            // No reason to stop the server: a cluster recovers by itself, and acknowledged writes stay safe.
            let failed = std::future::pending();
            let objects: Arc<dyn Objects> = Arc::new(CassandraObjects::new(engine.clone()));
            let backing = Backing { engine, objects, place, commands, cluster: Some(view) };
            serve_with(&config, &reload, gate, sockets, backing, failed).await
        }
    }
}

/// Where the server listens, and which threads serve its connections.
struct Sockets {
    listeners: Vec<Listener>,
    seats: Seats,
    /// The administration's, and what it shows of the settings.
    admin: Option<(Port, Vec<Setting>)>,
}

/// The store, and the commands that the server takes.
struct Backing {
    engine: Arc<dyn Engine>,
    /// Content that is too large for rows.
    objects: Arc<dyn Objects>,
    place: StorePlace,
    commands: Arc<Commands>,
    cluster: Option<ClusterSource>,
}

async fn serve_with(
    config: &Config,
    reload: &Reload,
    gate: Arc<Gate>,
    sockets: Sockets,
    backing: Backing,
    failed: impl Future<Output = Fault>,
) -> Result<(), ServeError> {
    let (engine, objects) = (backing.engine.clone(), backing.objects.clone());
    let Sockets { listeners, seats, admin } = sockets;
    let is_shared = matches!(config.storage, Storage::Cluster { .. });
    let memory = Memory::new(config.bounds.memory_bytes);
    let mut service = Service::new(engine.clone()).gated(gate.clone());
    // The services of an account share its target.
    let throttle = config.throttle.map(|targets| Arc::new(Throttle::new(targets)));
    if let Some(throttle) = &throttle {
        service = service.throttled(throttle.clone());
    }
    let insight = config.extensions.then(Insight::default);
    if let Some(insight) = &insight {
        service = service.observed(insight.clone());
    }
    let extensions = Extensions {
        are_on: config.extensions,
        examined_max: config.max_examined,
        store: config.storage.kind(),
    };
    let mut services = Services::new().with(table_http::behind_front(service, extensions));
    let mut served_queues = None;
    if listeners.iter().any(|listener| listener.service() == ServiceKind::Queue) {
        let mut queues = QueueService::new(engine.clone()).gated(gate.clone()).shared(is_shared);
        if let Some(throttle) = throttle.clone() {
            queues = queues.throttled(throttle);
        }
        if let Some(insight) = &insight {
            queues = queues.observed(insight.hot.clone());
        }
        let kept = queues.clone();
        tokio::spawn(async move { kept.keep_up().await });
        served_queues = Some(queues.clone());
        services = services.with(queue_http::behind_front(queues));
    }
    // Also if no listener serves blobs: request logs are blobs.
    let mut blobs = BlobService::new(engine.clone(), objects.clone())
        .shared(is_shared)
        .charging(memory.clone())
        .gated(gate.clone())
        .retaining(blob_http::StoredRetention::new(engine.clone()));
    if let Some(throttle) = throttle {
        blobs = blobs.throttled(throttle);
    }
    if let Some(insight) = &insight {
        blobs = blobs.observed(insight.hot.clone());
    }
    let (kept, stopped) = (blobs.clone(), blobs.clone());
    tokio::spawn(async move { kept.keep_up().await });
    let counted: Arc<dyn MetricSource> = Arc::new(blob_http::ContentMetrics::new(blobs.clone()));
    let logs: Arc<dyn LogStore> = Arc::new(blob_http::RequestLogs::new(blobs.clone()));
    if listeners.iter().any(|listener| listener.service() == ServiceKind::Blob) {
        let settings = blob_http::Settings { public_access: config.blob_public_access };
        services = services.with(blob_http::behind_front(blobs, settings));
    }
    let metrics = Metrics::new(&services);
    let traces = config.watching.traces.clone().map(|settings| Traces::start(settings, metrics.clone()));
    let server = Server {
        services,
        engine: engine.clone(),
        gate,
        accounts: reload.accounts.clone(),
        bearer: reload.bearer.clone(),
        check_clock: config.check_clock,
        bounds: config.bounds,
        memory,
        analytics: Analytics::new(Some(logs)),
        metrics,
        traces: traces.clone(),
        slow_queries: config.watching.slow_queries(),
        seats,
    };
    // Before the banner: a program that has read the banner may already send the signal.
    let stop_signal = stop_signal();
    // A closed standard output is no error: `partita serve | head -1` must keep running.
    let azurite = config.azurite_lines.then(|| AzuriteLines::of(&listeners));
    if let Some(azurite) = &azurite {
        let _ = write!(io::stdout(), "{}", azurite.at_start());
    }
    let _ = writeln!(
        io::stdout(),
        "{}",
        banner(config, &listeners, admin.as_ref().map(|(port, _)| port), &backing.place.place)
    );
    let of_admin = admin.as_ref().map(|(port, _)| port);
    tracing::info!(?listeners, admin = ?of_admin, data = backing.place.place, "ready");
    let server = server.open();
    let endpoints = listeners.iter().map(Into::into).collect();
    let hot = insight.map(|insight| insight.hot);
    let side_doors = admin.map(|(port, settings)| {
        let parts = AdminParts {
            services: server.local(),
            endpoints,
            loopback: is_loopback(&port).then(|| port.address()),
            token: config.admin.as_ref().and_then(|admin| admin.token.clone()),
            hosts: config.admin.as_ref().map_or_else(Vec::new, |admin| admin.hosts.clone()),
            assets: console::ASSETS,
            program: program(),
            store: backing.place,
            commands: backing.commands,
            cluster: backing.cluster,
            extensions: config.extensions,
            hot,
            settings,
            metric_sources: Arc::new([counted]),
        };
        let bounds = admin::bounds(config.bounds.shutdown);
        SideDoor { port, handler: Arc::new(Admin::new(parts)), bounds }
    });

    let mut outcome = Ok(());
    let stop = async {
        tokio::select! {
            signal = stop_signal => tracing::info!(signal, "stopping: finishing requests in flight"),
            fault = failed => {
                // It is unknown what is on the disk, so no further write may be acknowledged.
                tracing::error!(kind = %fault.kind(), %fault, "the store failed; stopping");
                outcome = Err(ServeError::Store { source: fault });
            }
        }
    };
    server.run(listeners, side_doors.into_iter().collect(), Box::pin(stop)).await;
    if let Some(traces) = traces {
        traces.finish(LAST_TRACES_TIME_MAX).await;
    }
    if let Some(queues) = served_queues {
        queues.close().await;
    }
    stopped.finish_removals().await;
    objects.close().await;
    engine.close().await;
    if let Some(azurite) = &azurite {
        let _ = write!(io::stdout(), "{}", azurite.at_stop());
    }
    tracing::info!("stopped");
    outcome
}

/// The address that is bound, whatever name the setting gave it.
fn is_loopback(port: &Port) -> bool {
    port.address().ip().to_canonical().is_loopback()
}

/// Earlier versions wrote request logs into files there.
fn tell_of_log_files(data: &Path) {
    let old = data.join("request-logs");
    if old.is_dir() {
        tracing::info!(
            directory = %old.display(),
            "request logs are blobs in $logs now; the files of earlier versions are left as they are, and can be moved or deleted"
        );
    }
}

/// Users who can read the files can read the data without a key.
fn warn_if_open_to_others(data: &Path) {
    if let Ok(true) = private_directory::is_open_to_others(data) {
        tracing::warn!(data = %data.display(), "other users of this machine can read the data; chmod 700 prevents this");
    }
}

async fn bind(
    service: ServiceKind,
    address: &str,
    flag: &'static str,
    tls: Option<TlsAcceptor>,
) -> Result<Listener, ServeError> {
    Listener::bind(service, address, tls).await.map_err(|source| port_error(address, flag, source))
}

fn port_error(address: &str, flag: &'static str, source: io::Error) -> ServeError {
    let address = address.to_owned();
    match source.kind() {
        io::ErrorKind::AddrInUse => ServeError::PortTaken { address, flag, source },
        io::ErrorKind::PermissionDenied => ServeError::PortForbidden { address, flag, source },
        _ => ServeError::NoPort { address, flag, source },
    }
}

/// An address that a setting names must bind; the default one is best-effort.
async fn bind_admin(admin: &AdminConfig, tls: Option<TlsAcceptor>) -> Result<Option<Port>, ServeError> {
    let bound = Port::bind(&admin.listen, tls.filter(|_| admin.https)).await;
    let port = match bound.map_err(|source| port_error(&admin.listen, "--admin", source)) {
        Ok(port) => port,
        Err(error) if admin.asked_for => return Err(error),
        Err(error) => {
            tracing::warn!(%error, "no console, no metrics and no administration");
            return Ok(None);
        }
    };
    // `localhost` may have been pointed elsewhere.
    if !is_loopback(&port) && (!admin.https || admin.token.is_none()) {
        return Err(SettingsError::AdminForOthers { address: port.address().to_string() }.into());
    }
    Ok(Some(port))
}

fn certificate_files(source: &CertificateSource) -> Result<CertificateFiles, CertificateError> {
    match source {
        CertificateSource::Files(files) => Ok(files.clone()),
        CertificateSource::Development(directory) => Ok(certificate::development_certificate(directory)?.0),
    }
}

/// Reloads a renewed certificate within a minute.
async fn refresh(certificate: Arc<Certificate>) {
    loop {
        tokio::time::sleep(CERTIFICATE_CHECK_INTERVAL).await;
        match certificate.refresh() {
            Ok(true) => tracing::info!("reloaded the certificate"),
            Ok(false) => {}
            Err(error) => tracing::error!(%error, "could not reload the certificate; keeping the old one"),
        }
    }
}
