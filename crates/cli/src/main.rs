//! The `partita` program: its commands and flags.

mod azurite;
mod banner;
mod certificate;
mod cluster;
mod commands;
mod config;
mod control;
mod failure;
mod logging;
mod sas_command;
mod serve;
mod stop_signal;
mod upkeep;

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgMatches, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use model::DateTime;

use config::Flags;
use control::AskError;
use failure::Failure;
use front::ServiceKind;
use sas_command::SasCommand;
use serve::serve;
use transfer::TableCommand;
use upkeep::backup::{self, BackupFlags};
use upkeep::check::{self, CheckFlags};
use upkeep::doctor::{self, DoctorFlags};
use upkeep::health::{self, HealthFlags};
use upkeep::manual::{self, CompletionsFlags, ManualFlags};
use upkeep::marks;
use upkeep::migrate::{self, MigrateFlags};
use upkeep::restore::{self, RestoreFlags};
use upkeep::status::{self, StatusFlags};
use upkeep::store::StoreCommand;

// Far less fragmentation than the system's allocator under months of mixed sizes; RocksDB uses it too.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// A storage server for tables, queues and blobs that speaks the Azure Table, Queue and Blob REST APIs
#[derive(Parser, Debug)]
#[command(name = "partita", version = version(), arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Serve with the flags, the ports and the start-up lines of Azurite; so does the program when it is called azurite
    #[command(disable_help_flag = true)]
    Azurite {
        #[arg(value_name = "FLAG", trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<OsString>,
    },
    /// Serve the Table, Queue and Blob services
    #[command(after_help = SERVE_HELP)]
    Serve(Box<Flags>),
    /// Reload accounts and keys in a running server
    Reload(ReloadFlags),
    /// Verify a store on disk; salvage a damaged one
    #[command(after_help = check::HELP)]
    Check(CheckFlags),
    /// Back up a store, even while a server runs on it
    #[command(after_help = backup::HELP)]
    Backup(BackupFlags),
    /// Restore a backup into a new data directory
    Restore(RestoreFlags),
    /// Move accounts from a data directory to another store, or back, while they are in use
    #[command(after_help = migrate::HELP)]
    Migrate(Box<MigrateFlags>),
    /// Make a running server refuse writes; reads continue
    Freeze(ReloadFlags),
    /// Make a frozen server accept writes again
    Thaw(ThawFlags),
    /// Prepare a cluster for servers, check it, freeze or thaw its servers
    #[command(subcommand, after_help = upkeep::store::HELP)]
    Store(StoreCommand),
    /// Measure a Table endpoint under load: Partita, Azurite or Azure
    Bench(Box<bench::BenchCommand>),
    /// Export a table, or all tables of an account, from any Table endpoint to files
    Export(Box<transfer::ExportCommand>),
    /// Import files of entities into one or more tables of any Table endpoint, or all data of Azurite
    Import(Box<transfer::ImportCommand>),
    /// Work with the queues of any Queue endpoint: list, put, peek, get, delete, export, import
    #[command(subcommand, after_help = transfer::QUEUE_HELP)]
    Queue(Box<transfer::QueueCommand>),
    /// Work with the containers of any Blob endpoint: list, put, get, show, delete, export, import
    #[command(subcommand, after_help = transfer::BLOB_HELP)]
    Blob(Box<transfer::BlobCommand>),
    /// List the tables of any Table endpoint
    Tables(transfer::TablesCommand),
    /// Query a table of any Table endpoint, in columns, JSON or CSV
    Query(Box<transfer::QueryCommand>),
    /// Print one entity
    Get(transfer::GetCommand),
    /// Write one entity
    Put(transfer::PutCommand),
    /// Delete one entity
    Delete(transfer::DeleteCommand),
    /// Count the entities of a table, or those that match a filter
    Count(transfer::CountCommand),
    /// Say what a query reads, why it is slow, and what it would take on Azure
    Explain(transfer::ExplainCommand),
    /// Show the partitions that are asked for most, live in the terminal
    Top(transfer::TopCommand),
    /// Create and explain shared access signatures
    #[command(subcommand)]
    Sas(Box<SasCommand>),
    /// Check whether a running server is ready; fails if it is not
    Health(HealthFlags),
    /// Print what a running server says of itself
    Status(StatusFlags),
    /// Look for what is wrong with this set-up: clock, disk, limits, permissions, ports, nodes
    #[command(after_help = doctor::HELP)]
    Doctor(DoctorFlags),
    /// Print a shell completion script for the commands and flags
    Completions(CompletionsFlags),
    /// Write the manual pages
    Manual(ManualFlags),
}

/// The exit status of `partita queue peek` and `get` if no message is visible.
const NO_MESSAGE: u8 = 3;
/// The exit status of `partita blob get`, `show` and `delete` if there is no such blob.
const NO_BLOB: u8 = 3;
/// The exit status of `partita get` and `delete` if there is no such entity.
const NO_ENTITY: u8 = 3;

/// The release, what it was built from, and what it reads and writes on a disk.
fn program() -> admin::Program {
    admin::Program {
        version: env!("CARGO_PKG_VERSION"),
        // scripts/environment knows the commit; another build may not.
        commit: option_env!("PARTITA_COMMIT").filter(|commit| !commit.is_empty()).unwrap_or("unknown"),
        rocksdb: engine_embedded::ROCKSDB_VERSION.to_string(),
        format: engine_embedded::FORMAT_VERSION.to_string(),
    }
}

fn version() -> String {
    let admin::Program { version, commit, rocksdb, format } = program();
    format!("{version} (commit {commit}, RocksDB {rocksdb}, store format {format})")
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
    /// Thaw even though this data was migrated and may be stale
    #[arg(long)]
    accept_migration: bool,
}

impl ReloadFlags {
    fn ask(&self, command: admin::Command) -> Result<String, AskError> {
        let socket = self.control.clone().unwrap_or_else(|| self.data.join(control::SOCKET));
        control::ask(&socket, command)
    }
}

const EXAMPLES: &str = "\
Examples:
  partita serve                          the development account on 127.0.0.1:10002, data in ./partita-data
  partita serve --in-memory              the same without files; the data is gone after exit
  partita serve --dev-cert               the same, and HTTPS on 127.0.0.1:10003
  partita serve --data /var/lib/partita --account 'shop:BASE64KEY1:BASE64KEY2'
  partita serve --store cassandra://10.0.0.1,10.0.0.2,10.0.0.3/partita      on a Cassandra cluster
  partita reload                         after a change of accounts or keys in the file of --config
  partita export --all --to backup       every table of the account that AZURE_STORAGE_CONNECTION_STRING names
  partita import --all --from backup     the same tables into another account
  partita query Books \"Year lt 1970\" --select Title --top 10
  partita explain Books \"Year lt 1970\"   what the query reads, and what it would take on Azure
  partita queue put jobs 'ship ann 1'    a message into the queue jobs of the development account
  partita backup /backups --keep 7       backs up ./partita-data while its server runs
  partita migrate --to /srv/partita      moves ./partita-data to another store while its server runs
  partita sas table --table Books --permissions r --expires 8h
  partita sas explain 'http://127.0.0.1:10002/devstoreaccount1/Books?sv=...'

Connect any Azure SDK with the connection string that the server prints at start.";

const SERVE_HELP: &str = "\
Every flag is also an environment variable (PARTITA_LISTEN, PARTITA_DATA, PARTITA_ACCOUNTS, ...) and, with --config,
a key of a TOML file:

  listen = \"0.0.0.0:10002\"
  data = \"/var/lib/partita\"
  [[account]]
  name = \"shop\"
  key = \"BASE64KEY1\"
  key2 = \"BASE64KEY2\"

http://127.0.0.1:10004/ is the console; /metrics there is for Prometheus (--admin).
GET /health/live says whether the server runs, GET /health/ready whether its store can be used.
On SIGTERM or Ctrl-C the server finishes the requests in flight and closes the store. SIGHUP or `partita reload`
reloads accounts and keys, including those of bearer tokens.";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().collect();
    let outcome = match arguments.first().and_then(|program| azurite::service_of(program)) {
        Some(service) => serve_as_azurite(service, arguments),
        None => run_with(arguments),
    };
    outcome.unwrap_or_else(|failure| failure.report())
}

fn run_with(arguments: Vec<OsString>) -> Result<ExitCode, Failure> {
    let matches = Cli::command().get_matches_from(arguments);
    let command = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()).command;
    run(command, &matches)
}

/// Serves as Azurite would with these flags, the first of which is the program's name.
fn serve_as_azurite(service: Option<ServiceKind>, flags: Vec<OsString>) -> Result<ExitCode, Failure> {
    let in_place = azurite::in_place_of_azurite(service, flags, |name| env::var(name).ok())?;
    for remark in in_place.remarks {
        eprintln!("{remark}");
    }
    run_with(in_place.arguments)
}

fn run(command: Command, matches: &ArgMatches) -> Result<ExitCode, Failure> {
    match command {
        Command::Serve(mut flags) => {
            flags.let_flags_win(matches.subcommand().map(|(_, matches)| matches));
            serve(*flags)?;
        }
        Command::Azurite { flags } => {
            return serve_as_azurite(None, [OsString::from("azurite")].into_iter().chain(flags).collect());
        }
        Command::Reload(flags) => println!("{}", flags.ask(admin::Command::Reload)?),
        Command::Freeze(flags) => println!("{}", flags.ask(admin::Command::Freeze)?),
        Command::Thaw(ThawFlags { server, accept_migration }) => {
            marks::check(&server.data, accept_migration)?;
            println!("{}", server.ask(admin::Command::Thaw(admin::MigrationCheck::Done))?);
        }
        Command::Check(flags) => {
            let as_json = flags.is_json();
            return check::run(&flags).map_err(|source| Failure::Check { source, as_json });
        }
        Command::Backup(flags) => println!("{}", backup::run(&flags)?),
        Command::Restore(flags) => println!("{}", restore::run(&flags)?),
        Command::Migrate(flags) => println!("{}", migrate::run(&flags)?),
        Command::Store(command) => return Ok(upkeep::store::run(&command)?),
        Command::Bench(command) => bench::run(&command)?,
        Command::Export(command) => transfer::export(&command)?,
        Command::Import(command) => transfer::import(&command)?,
        Command::Queue(command) => {
            return Ok(match transfer::queue(&command)? {
                transfer::QueueOutcome::Done => ExitCode::SUCCESS,
                transfer::QueueOutcome::NoMessage => NO_MESSAGE.into(),
            });
        }
        Command::Blob(command) => {
            return Ok(match transfer::blob(&command)? {
                transfer::BlobOutcome::Done => ExitCode::SUCCESS,
                transfer::BlobOutcome::NotFound => NO_BLOB.into(),
            });
        }
        Command::Tables(command) => return table(&TableCommand::Tables(command)),
        Command::Query(command) => return table(&TableCommand::Query(command)),
        Command::Get(command) => return table(&TableCommand::Get(command)),
        Command::Put(command) => return table(&TableCommand::Put(command)),
        Command::Delete(command) => return table(&TableCommand::Delete(command)),
        Command::Count(command) => return table(&TableCommand::Count(command)),
        Command::Explain(command) => return table(&TableCommand::Explain(command)),
        Command::Top(command) => return table(&TableCommand::Top(command)),
        Command::Status(flags) => println!("{}", status::run(&flags)?),
        Command::Doctor(flags) => return Ok(doctor::run(&flags)),
        Command::Health(flags) => println!("{}", health::run(&flags)?),
        Command::Completions(flags) => manual::completions(&flags, Cli::command()),
        Command::Manual(flags) => println!("{}", manual::manual(&flags, Cli::command())?),
        Command::Sas(command) => println!("{}", sas_command::run(&command, DateTime::now())?),
    }
    Ok(ExitCode::SUCCESS)
}

fn table(command: &TableCommand) -> Result<ExitCode, Failure> {
    Ok(match transfer::table(command)? {
        transfer::TableOutcome::Done => ExitCode::SUCCESS,
        transfer::TableOutcome::NotFound => NO_ENTITY.into(),
    })
}
