//! The `partita` binary: reads settings, opens the store, serves until told to stop.

mod cluster;
mod upkeep;

use std::future::Future;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use engine_embedded::{EmbeddedEngine, OpenError};
use model::DateTime;
use server::account::SharedAccounts;
use server::analytics::Analytics;
use server::bearer::SharedBearer;
use server::config::{self, CertificateSource, Config, Flags, Storage, Tls};
use server::control::{self, Control};
use server::sas_command::{self, SasCommand};
use server::tls::{self, Certificate, CertificateFiles};
use server::{Listener, Server, account, telemetry};
use service::{Gate, Service};
use store::{Engine, MemoryEngine, private_directory};
use tokio_rustls::TlsAcceptor;
use upkeep::backup::{self, BackupFlags};
use upkeep::check::{self, CheckFlags};
use upkeep::health::{self, HealthFlags};
use upkeep::manual::{self, CompletionsFlags, ManualFlags};
use upkeep::marks;
use upkeep::migrate::{self, MigrateFlags};
use upkeep::restore::{self, RestoreFlags};
use upkeep::store::StoreCommand;

// Far less fragmentation than the system's allocator under months of mixed sizes; RocksDB uses it too.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// A table store that speaks the Azure Table REST API
#[derive(Parser, Debug)]
#[command(name = "partita", version = version(), arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Serve the Table service
    #[command(after_help = SERVE_HELP)]
    Serve(Box<Flags>),
    /// Reload accounts and keys in a running server
    Reload(ReloadFlags),
    /// Check that a store on the disk is sound; save what can be read of one that is not
    #[command(after_help = check::HELP)]
    Check(CheckFlags),
    /// Back up a store, also while a server runs on it
    #[command(after_help = backup::HELP)]
    Backup(BackupFlags),
    /// Make a data directory of a backup
    Restore(RestoreFlags),
    /// Move accounts from a data directory to another store, or back, while they are served
    #[command(after_help = migrate::HELP)]
    Migrate(Box<MigrateFlags>),
    /// Have a running server refuse writes, and go on with reads
    Freeze(ReloadFlags),
    /// Have a frozen server take writes again
    Thaw(ThawFlags),
    /// Make a cluster ready for servers that share it, or check one
    #[command(subcommand, after_help = upkeep::store::HELP)]
    Store(StoreCommand),
    /// Measure a Table endpoint under load: this one, Azurite or Azure
    Bench(Box<bench::BenchCommand>),
    /// Write a table, or all tables of an account, to files: from any Table endpoint
    Export(Box<transfer::ExportCommand>),
    /// Store files of entities in a table, or in several: of any Table endpoint
    Import(Box<transfer::ImportCommand>),
    /// Make and explain shared access signatures
    #[command(subcommand)]
    Sas(Box<SasCommand>),
    /// Ask a running server whether it can be used; fails if not
    Health(HealthFlags),
    /// Print a script that completes this program's commands and flags in a shell
    Completions(CompletionsFlags),
    /// Write this program's manual pages
    Manual(ManualFlags),
}

/// The release, what it was built from, and what it reads and writes on a disk.
fn version() -> String {
    // scripts/environment knows the commit; another build may not.
    let commit = option_env!("PARTITA_COMMIT").filter(|commit| !commit.is_empty()).unwrap_or("unknown");
    format!(
        "{} (commit {commit}, RocksDB {}, store format {})",
        env!("CARGO_PKG_VERSION"),
        engine_embedded::ROCKSDB_VERSION,
        engine_embedded::FORMAT_VERSION
    )
}

#[derive(Args, Debug)]
struct ReloadFlags {
    /// The running server's data directory
    #[arg(long, value_name = "DIRECTORY", env = "PARTITA_DATA", default_value = config::DATA)]
    data: PathBuf,
    /// The running server's control socket, if it is not in its data directory
    #[arg(long, value_name = "SOCKET", env = "PARTITA_CONTROL")]
    control: Option<PathBuf>,
}

#[derive(Args, Debug)]
struct ThawFlags {
    #[command(flatten)]
    server: ReloadFlags,
    /// Though the data was moved elsewhere, where writes may have been made since
    #[arg(long)]
    accept_migration: bool,
}

impl ReloadFlags {
    fn ask(&self, command: control::Command) -> Result<(), String> {
        let socket = self.control.clone().unwrap_or_else(|| self.data.join(control::SOCKET));
        control::ask(&socket, command).map(|text| println!("{text}"))
    }
}

const CERTIFICATE_CHECK_INTERVAL: Duration = Duration::from_secs(60);

const EXAMPLES: &str = "\
Examples:
  partita serve                          the development account on 127.0.0.1:10002, data in ./partita-data
  partita serve --in-memory              the same, keeping nothing after exit
  partita serve --dev-cert               the same, and HTTPS on 127.0.0.1:10003
  partita serve --data /var/lib/partita --account 'shop:BASE64KEY1:BASE64KEY2'
  partita serve --store cassandra://10.0.0.1,10.0.0.2,10.0.0.3/partita      on a cluster that servers share
  partita reload                         keys and accounts were changed in the file that --config named
  partita export --all --to backup       every table of the account that AZURE_STORAGE_CONNECTION_STRING names
  partita import --all --from backup     the same tables into another
  partita backup /backups --keep 7       of ./partita-data, while its server goes on
  partita migrate --to /srv/partita      ./partita-data to another store, while its server goes on
  partita sas table --table Books --permissions r --expires 8h
  partita sas explain 'http://127.0.0.1:10002/devstoreaccount1/Books?sv=...'

Connect any Azure SDK with the connection string that the start banner prints.";

const SERVE_HELP: &str = "\
Every flag can also be a variable (PARTITA_LISTEN, PARTITA_DATA, PARTITA_ACCOUNTS, ...) or, with --config,
a key of a TOML file:

  listen = \"0.0.0.0:10002\"
  data = \"/var/lib/partita\"
  [[account]]
  name = \"shop\"
  key = \"BASE64KEY1\"
  key2 = \"BASE64KEY2\"

GET /health/live and /health/ready tell whether the server runs and whether its store can be used.
SIGTERM or Ctrl-C finishes the requests under way and closes the store. SIGHUP or `partita reload` reads accounts
and keys anew, those of bearer tokens too.";

fn main() -> ExitCode {
    let matches = Cli::command().get_matches();
    let command = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()).command;
    let outcome = match command {
        Command::Serve(mut flags) => {
            flags.let_flags_win(matches.subcommand().map(|(_, matches)| matches));
            serve(*flags)
        }
        Command::Reload(flags) => flags.ask(control::Command::Reload),
        Command::Freeze(flags) => flags.ask(control::Command::Freeze),
        Command::Thaw(ThawFlags { server, accept_migration }) => {
            let unmoved = marks::check(&server.data, accept_migration);
            unmoved.and_then(|()| server.ask(control::Command::Thaw))
        }
        Command::Check(flags) => return check::run(&flags),
        Command::Backup(flags) => backup::run(&flags).map(|text| println!("{text}")),
        Command::Restore(flags) => restore::run(&flags).map(|text| println!("{text}")),
        Command::Migrate(flags) => migrate::run(&flags).map(|text| println!("{text}")),
        Command::Store(command) => return upkeep::store::run(&command),
        Command::Bench(command) => bench::run(&command),
        Command::Export(command) => transfer::export(&command),
        Command::Import(command) => transfer::import(&command),
        Command::Health(flags) => health::run(&flags).map(|text| println!("{text}")),
        Command::Completions(flags) => manual::completions(&flags, Cli::command()),
        Command::Manual(flags) => manual::manual(&flags, Cli::command()).map(|text| println!("{text}")),
        Command::Sas(command) => sas_command::run(&command, DateTime::now()).map(|text| println!("{text}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("partita: {message}");
            ExitCode::FAILURE
        }
    }
}

fn serve(flags: Flags) -> Result<(), String> {
    let config = Config::from_flags(flags.clone())?;
    telemetry::start_logging(&config.log_level, config.log_format)?;
    raise_file_limit(config.bounds.connections);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| format!("can't start its threads: {error}"))?.block_on(run(config, flags))
}

/// Each connection is a file to the system, and many systems allow a process a thousand unless it asks for more.
fn raise_file_limit(connections: usize) {
    const FILES_OF_THE_STORE: u64 = 1024;
    let wanted = connections as u64 + FILES_OF_THE_STORE;
    match rlimit::increase_nofile_limit(wanted) {
        Ok(allowed) if allowed < wanted => tracing::warn!(
            allowed,
            wanted,
            "fewer files may be open than --max-connections needs; raise the system's limit (ulimit -n, LimitNOFILE)"
        ),
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "the limit of open files stays as it is"),
    }
}

/// The only place that names engines.
async fn run(config: Config, flags: Flags) -> Result<(), String> {
    let accounts = SharedAccounts::new(config.accounts());
    let bearer = SharedBearer::new(config.bearer.clone());
    let development = AtomicBool::new(config.development);
    let reload = Arc::new(Reload { flags, accounts, bearer, development });
    tokio::spawn(reload_on_hangup(reload.clone()));
    let gate = Arc::new(Gate::default());
    // The ports before the store: a second server on the same port should not touch the data at all.
    let mut listeners = Vec::new();
    if let Some(address) = &config.listen {
        listeners.push(bind(address, "--listen", None).await?);
    }
    if let Some(tls) = &config.tls {
        let certificate = Certificate::load(certificate_files(&tls.source)?)?;
        listeners.push(bind(&tls.listen, "--tls-listen", Some(certificate.acceptor()?)).await?);
        tokio::spawn(refresh(certificate));
    }
    match &config.storage {
        Storage::Memory => {
            let _commands = listen_for_commands(&config, reload.clone(), gate.clone(), None)?;
            let failed = std::future::pending();
            serve_with(
                &config,
                &reload,
                gate,
                listeners,
                Arc::new(MemoryEngine::new()),
                failed,
                "in memory; nothing is kept",
            )
            .await
        }
        Storage::Directory { path, cache_bytes, accept_loss, accept_migration } => {
            marks::check(path, *accept_migration)?;
            warn_if_open_to_others(path);
            let mut options = engine_embedded::Options::new(path);
            options.block_cache_bytes = *cache_bytes;
            options.write_buffer_bytes = cache_bytes / 2;
            options.accept_loss = *accept_loss;
            let engine = tokio::task::spawn_blocking(|| EmbeddedEngine::open(options)).await;
            let engine = engine.map_err(|error| error.to_string())?.map_err(|error| open_error(&error))?;
            let engine = Arc::new(engine);
            let failed = engine.on_failure();
            // Only now is it known that no other server has this directory.
            let _commands = listen_for_commands(&config, reload.clone(), gate.clone(), Some(engine.clone()))?;
            let place = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            serve_with(&config, &reload, gate, listeners, engine, failed, &place.display().to_string()).await
        }
        Storage::Cluster { address, wait } => {
            let options = engine_cassandra::Options::from_address(address.as_str());
            let options = options.map_err(|error| format!("--store: {error}"))?;
            let place = options.to_string();
            let engine = Arc::new(cluster::connect(options, *wait).await?);
            let _commands = listen_for_commands(&config, reload.clone(), gate.clone(), None)?;
            // A cluster that fails comes back by itself; nothing that was answered is in doubt meanwhile.
            let failed = std::future::pending();
            serve_with(&config, &reload, gate, listeners, engine, failed, &place).await
        }
    }
}

async fn serve_with(
    config: &Config,
    reload: &Reload,
    gate: Arc<Gate>,
    listeners: Vec<Listener>,
    engine: Arc<dyn Engine>,
    failed: impl Future<Output = store::Fault>,
    place: &str,
) -> Result<(), String> {
    let mut service = Service::new(engine.clone()).gated(gate);
    if let Some(targets) = config.throttle {
        service = service.throttled(targets);
    }
    let server = Server {
        service,
        accounts: reload.accounts.clone(),
        bearer: reload.bearer.clone(),
        check_clock: config.check_clock,
        bounds: config.bounds,
        analytics: Analytics::new(config.request_logs.clone())?,
    };
    // Before the banner: whoever has read that may already say stop.
    let stop_signal = stop_signal();
    // Nobody has to listen: `partita serve | head -1` is no reason to end.
    let _ = writeln!(std::io::stdout(), "{}", banner(config, &listeners, place));
    tracing::info!(?listeners, data = place, "ready");

    let mut outcome = Ok(());
    let stop = async {
        tokio::select! {
            signal = stop_signal => tracing::info!(signal, "stopping: finishing requests under way"),
            fault = failed => {
                // What the disk holds is unknown: acknowledging anything more would be a lie.
                tracing::error!(%fault, "the store failed; stopping");
                outcome = Err(format!("the store failed: {fault}"));
            }
        }
    };
    server.run(listeners, stop).await;
    engine.close().await;
    tracing::info!("stopped");
    outcome
}

/// Accounts and keys, those of bearer tokens too, so that keys can be rotated while requests go on.
struct Reload {
    flags: Flags,
    accounts: SharedAccounts,
    bearer: SharedBearer,
    /// Whether the development account is the one that is served.
    development: AtomicBool,
}

impl Reload {
    fn run(&self) -> Result<String, String> {
        match Config::from_flags(self.flags.clone()) {
            // Keys that were lost from a file must not become the one that everybody knows.
            Ok(config) if config.development && !self.development.load(Ordering::Relaxed) => {
                let error =
                    "there is no account any more, and the development account does not take their place";
                tracing::error!(error, "accounts and keys stay as they were");
                Err(format!("accounts and keys stay as they were: {error}"))
            }
            Ok(config) => {
                self.development.store(config.development, Ordering::Relaxed);
                let names: Vec<&str> = config.accounts.iter().map(|account| account.name.as_str()).collect();
                let done = format!("accounts and keys were read anew: {}", names.join(", "));
                self.accounts.replace(config.accounts());
                self.bearer.replace(config.bearer);
                tracing::info!("{done}");
                Ok(done)
            }
            Err(error) => {
                tracing::error!(error, "accounts and keys stay as they were");
                Err(format!("accounts and keys stay as they were: {error}"))
            }
        }
    }
}

async fn reload_on_hangup(reload: Arc<Reload>) {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut hangup) = signal(SignalKind::hangup()) else { return };
    while hangup.recv().await.is_some() {
        // Said in the log.
        let _ = reload.run();
    }
}

/// Whoever may read the files needs no key.
fn warn_if_open_to_others(data: &Path) {
    if let Ok(true) = private_directory::is_open_to_others(data) {
        tracing::warn!(data = %data.display(), "other users of this machine may read the data; chmod 700 keeps them out");
    }
}

/// A socket that was asked for must be there; one that merely would be nice may be missing.
fn listen_for_commands(
    config: &Config,
    reload: Arc<Reload>,
    gate: Arc<Gate>,
    engine: Option<Arc<EmbeddedEngine>>,
) -> Result<Option<AbortOnDrop>, String> {
    let Some((path, asked_for)) = &config.control else { return Ok(None) };
    let control = match Control::bind(path) {
        Ok(control) => control,
        Err(error) if *asked_for => return Err(error),
        Err(error) => {
            tracing::warn!(
                error,
                "`partita reload`, `backup` and `migrate` can't reach this server; SIGHUP reloads too"
            );
            return Ok(None);
        }
    };
    let run = move |command| match command {
        control::Command::Reload => reload.run(),
        control::Command::Checkpoint => checkpoint(engine.as_deref()),
        control::Command::Freeze => Ok(freeze(&gate)),
        control::Command::Thaw => Ok(thaw(&gate)),
    };
    Ok(Some(AbortOnDrop(tokio::spawn(control.serve(Arc::new(run))))))
}

fn checkpoint(engine: Option<&EmbeddedEngine>) -> Result<String, String> {
    let engine = engine.ok_or("this server has no data directory; there is nothing here to back up")?;
    let taken = engine.checkpoint().map_err(|fault| {
        tracing::error!(%fault, "no checkpoint for a backup");
        fault.to_string()
    })?;
    tracing::info!(commits = taken.commits, "checkpoint for a backup made");
    let directory = std::path::absolute(&taken.directory).map_err(|error| error.to_string())?;
    Ok(format!("{} {}", taken.commits, directory.display()))
}

/// Commands run on threads that may wait.
fn freeze(gate: &Gate) -> String {
    let since = tokio::runtime::Handle::current().block_on(gate.close()).to_fixed_string();
    tracing::warn!(%since, "frozen: writes are refused until `partita thaw`, reads go on");
    format!("frozen since {since}")
}

fn thaw(gate: &Gate) -> String {
    match tokio::runtime::Handle::current().block_on(gate.open()) {
        Some(since) => {
            tracing::warn!(since = %since.to_fixed_string(), "thawed: writes are taken again");
            format!("thawed; it was frozen since {}", since.to_fixed_string())
        }
        None => "was not frozen".to_owned(),
    }
}

/// Ends the task, and with it what the task holds.
struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The engine says what is wrong and what could be done; which flag does it is known here.
fn open_error(error: &OpenError) -> String {
    match error {
        OpenError::Damaged { missing: Some(_), .. } => {
            format!(
                "{error} (--accept-loss); `partita check` says what is damaged, and --salvage saves the rest"
            )
        }
        OpenError::Damaged { .. } => {
            format!("{error}; `partita check` says what is damaged, and --salvage saves the rest")
        }
        _ => error.to_string(),
    }
}

async fn bind(address: &str, flag: &str, tls: Option<TlsAcceptor>) -> Result<Listener, String> {
    Listener::bind(address, tls).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            format!("{address} is taken by another program; stop it, or choose another port with {flag}")
        }
        std::io::ErrorKind::PermissionDenied => {
            format!("not allowed to listen on {address}; ports below 1024 need privileges, choose another with {flag}")
        }
        _ => format!("can't listen on {address:?}: {error}; {flag} takes address:port, such as 127.0.0.1:10002"),
    })
}

fn certificate_files(source: &CertificateSource) -> Result<CertificateFiles, String> {
    match source {
        CertificateSource::Files(files) => Ok(files.clone()),
        CertificateSource::Development(directory) => Ok(tls::development_certificate(directory)?.0),
    }
}

/// Renewed certificates are taken up within a minute.
async fn refresh(certificate: Arc<Certificate>) {
    loop {
        tokio::time::sleep(CERTIFICATE_CHECK_INTERVAL).await;
        match certificate.refresh() {
            Ok(true) => tracing::info!("the certificate was read anew"),
            Ok(false) => {}
            Err(error) => tracing::error!(error, "the certificate stays as it was"),
        }
    }
}

/// What a person needs to connect, with the key only where it is no secret.
fn banner(config: &Config, listeners: &[Listener], place: &str) -> String {
    let mut lines = vec![format!("Partita {} is ready.", env!("CARGO_PKG_VERSION"))];
    let endpoints = || {
        let each = |listener| config.accounts.iter().map(move |account| (listener, &account.name));
        listeners.iter().flat_map(each).map(|(listener, name): (&Listener, _)| {
            let (scheme, address) = (listener.scheme(), listener.address());
            (scheme, name, format!("{scheme}://{address}/{name}"))
        })
    };
    for (_, _, endpoint) in endpoints() {
        lines.push(format!("  Table endpoint     {endpoint}"));
    }
    lines.push(format!("  Data               {place}"));
    if let Some(Tls { source: CertificateSource::Development(directory), .. }) = &config.tls {
        let authority = directory.join("authority.pem");
        let authority = std::path::absolute(&authority).unwrap_or(authority);
        lines.push(format!("  Authority          {} (let HTTPS clients trust it)", authority.display()));
    }
    let key = if config.development { account::DEVELOPMENT_KEY } else { "<key>" };
    for (scheme, name, endpoint) in endpoints() {
        lines.push(format!(
            "  Connection string  DefaultEndpointsProtocol={scheme};AccountName={name};AccountKey={key};TableEndpoint={endpoint};"
        ));
    }
    lines.join("\n")
}

/// Watches for signals from the call on, not from the first poll.
fn stop_signal() -> impl Future<Output = &'static str> {
    use tokio::signal::unix::{Signal, SignalKind, signal};
    async fn received(signal: std::io::Result<Signal>) {
        match signal {
            Ok(mut signal) => drop(signal.recv().await),
            // What can't be watched for ends the process as it does by default.
            Err(_) => std::future::pending().await,
        }
    }
    let (terminate, interrupt) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    async {
        tokio::select! {
            () = received(terminate) => "SIGTERM",
            () = received(interrupt) => "SIGINT",
        }
    }
}
