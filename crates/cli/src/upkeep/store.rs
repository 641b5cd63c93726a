//! `partita store`: prepares a cluster for servers, checks it, and freezes or thaws its servers.

use std::io;
use std::process::ExitCode;

use crate::config::StoreAddress;
use ::store::Engine as _;
use clap::{Args, Subcommand};
use engine_cassandra::{
    CassandraEngine, ConnectError, InitError, Options, OptionsError, Replication, ReplicationError, Trouble,
    Weight,
};
use thiserror::Error;

pub const HELP: &str = "\
Examples:
  partita store init cassandra://10.0.0.1,10.0.0.2,10.0.0.3/partita
  partita store init 'cassandra://10.0.0.1/partita?user=admin&password-file=/etc/partita/password' --datacenter east=3,west=2
  partita store check cassandra://10.0.0.1/partita
  partita serve --store cassandra://10.0.0.1,10.0.0.2,10.0.0.3/partita";

#[derive(Subcommand, Debug)]
pub enum StoreCommand {
    /// Create the keyspace and its tables; existing ones do not change
    Init(InitFlags),
    /// Check whether a server would start on this cluster, and print what should be changed
    Check(CheckFlags),
    /// Make all servers of this cluster refuse writes; reads continue
    Freeze(CheckFlags),
    /// Make all servers of this cluster accept writes again
    Thaw(CheckFlags),
}

#[derive(Args, Debug)]
pub struct InitFlags {
    #[command(flatten)]
    store: StoreFlags,
    /// Number of replicas in each datacenter of the cluster
    #[arg(long, value_name = "COUNT", default_value_t = 3, conflicts_with = "datacenter")]
    replication_factor: usize,
    /// Number of replicas in these datacenters only
    #[arg(long, value_name = "NAME=COUNT", value_delimiter = ',', value_parser = datacenter)]
    datacenter: Vec<(String, usize)>,
}

#[derive(Args, Debug)]
pub struct CheckFlags {
    #[command(flatten)]
    store: StoreFlags,
}

#[derive(Args, Debug)]
struct StoreFlags {
    /// cassandra://[USER:PASSWORD@]HOST[:PORT][,HOST…]/KEYSPACE[?NAME=VALUE&…]
    #[arg(value_name = "ADDRESS", env = "PARTITA_STORE", hide_env_values = true)]
    store: StoreAddress,
}

impl StoreFlags {
    /// Not parsed by clap, which prints a wrong value, and an address may contain a password.
    fn options(&self) -> Result<Options, OptionsError> {
        Options::from_address(self.store.as_str())
    }
}

/// Why a text of --datacenter is not a name and a number of replicas.
#[derive(Debug, Error)]
#[error("use NAME=COUNT, such as east=3")]
struct DatacenterError;

fn datacenter(text: &str) -> Result<(String, usize), DatacenterError> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let pair = pair.and_then(|(name, count)| Some((name.to_owned(), count.parse().ok()?)));
    pair.filter(|(_, count)| *count > 0).ok_or(DatacenterError)
}

/// Why nothing was done on a cluster.
#[derive(Debug, Error)]
pub enum StoreError {
    #[error("can't start its threads: {source}; raise the system's limit on threads")]
    Threads { source: io::Error },
    #[error(transparent)]
    Address(#[from] OptionsError),
    #[error("replication-factor is 0; it must be at least 1")]
    NoCopies,
    #[error("{0}; set the number with --replication-factor or --datacenter")]
    Replication(#[source] ReplicationError),
    #[error(transparent)]
    Init(InitError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("the cluster {options} was not told: {source}; run the command again")]
    Switch { options: Box<Options>, source: Trouble },
}

impl From<InitError> for StoreError {
    fn from(error: InitError) -> Self {
        match error {
            InitError::Replication(error) => Self::Replication(error),
            other => Self::Init(other),
        }
    }
}

pub fn run(command: &StoreCommand) -> Result<ExitCode, StoreError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|source| StoreError::Threads { source })?.block_on(async {
        match command {
            StoreCommand::Init(flags) => init(flags).await,
            StoreCommand::Check(flags) => check(&flags.store.options()?).await,
            StoreCommand::Freeze(flags) => switch(flags.store.options()?, true).await,
            StoreCommand::Thaw(flags) => switch(flags.store.options()?, false).await,
        }
    })
}

async fn init(flags: &InitFlags) -> Result<ExitCode, StoreError> {
    let options = &flags.store.options()?;
    let replication = match flags.replication_factor {
        0 => return Err(StoreError::NoCopies),
        _ if !flags.datacenter.is_empty() => Replication::In(flags.datacenter.clone()),
        count => Replication::Everywhere(count),
    };
    let made = engine_cassandra::init_store(options, &replication).await?;
    if made.keyspace {
        println!("created keyspace {} with {replication}", options.keyspace);
    }
    if let Some(before) = made.upgraded_from {
        println!("upgraded keyspace {} from schema {before}", options.keyspace);
    }
    match made.tables.as_slice() {
        [] if made.upgraded_from.is_some() => {}
        [] => println!("keyspace {} exists with all its tables; nothing was changed", options.keyspace),
        tables => println!("created tables {}", tables.join(", ")),
    }
    // The tables were created, so the command succeeds, even if the check finds faults in the cluster.
    check(options).await.map(|_| ExitCode::SUCCESS)
}

async fn check(options: &Options) -> Result<ExitCode, StoreError> {
    let findings = engine_cassandra::check_store(options).await?;
    for finding in findings.iter() {
        let weight = match finding.weight {
            Weight::Advice => "advice",
            Weight::Unsafe => "unsafe",
            Weight::Wrong => "wrong",
        };
        println!("{weight}: {}", finding.text);
    }
    if findings.is_refused() {
        println!(
            "servers refuse to start on {options} until this is changed; unsafe=true in the address accepts \
             the findings marked unsafe"
        );
        return Ok(ExitCode::FAILURE);
    }
    println!("servers can use it: partita serve --store {options}");
    Ok(ExitCode::SUCCESS)
}

async fn switch(options: Options, freeze: bool) -> Result<ExitCode, StoreError> {
    let engine = CassandraEngine::connect(options.clone()).await?;
    let outcome = if freeze {
        eprintln!(
            "waiting until no server has a write in flight: some seconds, or a minute and a half if a \
             server has died"
        );
        engine.freeze().await
    } else {
        engine.thaw().await
    };
    engine.close().await;
    outcome.map_err(|source| StoreError::Switch { options: Box::new(options.clone()), source })?;
    println!("{options}: writes are {}", if freeze { "refused by all servers" } else { "accepted again" });
    Ok(ExitCode::SUCCESS)
}
