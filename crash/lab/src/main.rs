//! The crash lab: puts the real server under load, takes away its process, its disk or its power, and judges what is
//! left. It knows the server's protocol, its files and its system calls, and uses none of its code.

mod archivist;
mod blob_client;
mod blobs;
mod cases;
mod clerk;
mod disk;
mod endpoints;
mod errand;
mod faults;
mod full_disk;
mod gaps;
mod inject;
mod journal;
mod judge;
mod kills;
mod lab;
mod ledger;
mod operation;
mod porter;
mod power;
mod queue_client;
mod queues;
mod record;
mod request;
mod server;
mod shelf;
mod totals;
mod upgrade;
mod wire;
mod world;
mod writer;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, Parser, Subcommand};

use crate::endpoints::EndpointsCommand;
use crate::lab::Lab;
use crate::totals::Totals;
use crate::upgrade::{Cuts, Fixture};

/// Takes a Partita server's process, disk or power away, and judges what is left
#[derive(Parser, Debug)]
#[command(name = "partita-lab", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    common: Common,
}

#[derive(Args, Debug)]
struct Common {
    /// Repeats the choices of a run, though not its timing [default: another one each time]
    #[arg(long, global = true)]
    seed: Option<u64>,
    /// Begin no new round after this time
    #[arg(long, global = true, default_value_t = 600)]
    seconds: u64,
    /// The server to drive [default: partita beside this program]
    #[arg(long, global = true, value_name = "FILE", env = "PARTITA_BINARY")]
    binary: Option<PathBuf>,
    /// Where to work; memory is faster [default: /dev/shm if there is one, else a temporary directory]
    #[arg(long, global = true, value_name = "DIRECTORY")]
    work: Option<PathBuf>,
    /// Write the figures to a file as well
    #[arg(long, global = true, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Subcommand, Debug)]
enum Command {
    #[command(flatten)]
    OwnServer(Task),
    /// Put load on the front ends of a store for --seconds, while others start and stop its parts; then judge
    /// everything
    Endpoints(EndpointsCommand),
}

/// Tasks with a server that the lab starts itself.
#[derive(Subcommand, Debug)]
enum Task {
    /// Kill the process at random and at chosen moments
    Kills {
        #[arg(long, default_value_t = 100)]
        rounds: u64,
    },
    /// Kill the process while queues are in use
    Queues {
        #[arg(long, default_value_t = 100)]
        rounds: u64,
    },
    /// Kill the process while blobs are in use, and sweep what is left behind
    Blobs {
        #[arg(long, default_value_t = 100)]
        rounds: u64,
    },
    /// Make system calls fail: no space, I/O errors, short writes, failed syncs
    Faults {
        /// Only this many cases, chosen by the seed [default: every combination]
        #[arg(long)]
        rounds: Option<usize>,
        /// Only cases whose name contains this
        #[arg(long, default_value = "")]
        only: String,
    },
    /// Record one run, then cut the power at many points of it
    Power {
        #[arg(long, default_value_t = 500)]
        cuts: usize,
        /// Seconds of load to record
        #[arg(long, default_value_t = 6)]
        record: u64,
        /// Record runs in which a sync fails, and cut those
        #[arg(long, conflicts_with = "journal")]
        failed_syncs: bool,
        /// Cut a recorded run again instead
        #[arg(long, value_name = "FILE")]
        journal: Option<PathBuf>,
        /// Only this cut: its number as it was reported
        #[arg(long, requires = "journal")]
        only: Option<usize>,
    },
    /// Record the start of the server on a store of format 1, which upgrades it, then cut the power at every point of
    /// it
    Upgrade {
        /// How often the power is cut at each point, each time with other losses
        #[arg(long, default_value_t = 3)]
        times: usize,
        /// Only this many points, chosen by the seed [default: all]
        #[arg(long)]
        points: Option<usize>,
        /// The fixture to upgrade: a store, with the recorded answers beside it
        #[arg(long, value_name = "DIRECTORY", default_value = upgrade::FIXTURE)]
        store: PathBuf,
        /// Cut a recorded upgrade again instead
        #[arg(long, value_name = "FILE")]
        journal: Option<PathBuf>,
        /// Only this cut: its number as it was reported
        #[arg(long, requires = "journal")]
        only: Option<usize>,
    },
    /// A little of everything, in less than a minute
    Smoke,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(run(&cli)),
        Err(error) => Err(format!("can't start its threads: {error}")),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("partita-lab: {message}");
            ExitCode::from(2)
        }
    }
}

/// Whether nothing was violated.
async fn run(cli: &Cli) -> Result<bool, String> {
    let common = &cli.common;
    let seed = common.seed.unwrap_or_else(rand::random);
    match &cli.command {
        Command::OwnServer(task) => in_the_lab(task, common, seed).await,
        Command::Endpoints(command) => {
            println!("partita-lab: --seed {seed}");
            let report = endpoints::run(command, common.seconds, seed).await?;
            report.print();
            common.json.as_deref().map_or(Ok(()), |path| report.write_json(path))?;
            Ok(report.is_good())
        }
    }
}

async fn in_the_lab(task: &Task, common: &Common, seed: u64) -> Result<bool, String> {
    let shared_memory = Path::new("/dev/shm");
    let default = if shared_memory.is_dir() { shared_memory.to_owned() } else { std::env::temp_dir() };
    let work = common.work.clone().unwrap_or(default);
    let lab = Lab::new(binary(common)?, &work, seed, Duration::from_secs(common.seconds))?;
    println!("partita-lab: --seed {seed}, {}", lab.binary.display());
    let totals = match carry_out(task, &lab).await {
        Ok(totals) => totals,
        // What stopped the lab may be what it is looking for.
        Err(message) => return Err(format!("{message}\nkept in {}; --seed {seed}", lab.keep().display())),
    };
    totals.print();
    if let Some(path) = &common.json {
        totals.write_json(path)?;
    }
    if !totals.violations.is_empty() {
        println!("\nkept in {}; --seed {seed}", lab.keep().display());
    }
    Ok(totals.violations.is_empty())
}

async fn carry_out(task: &Task, lab: &Lab) -> Result<Totals, String> {
    match task {
        Task::Kills { rounds } => kills::run(lab, *rounds).await,
        Task::Queues { rounds } => queues::run(lab, *rounds).await,
        Task::Blobs { rounds } => blobs::run(lab, *rounds).await,
        Task::Faults { rounds, only } => inject::run(lab, *rounds, only).await,
        Task::Power { cuts, failed_syncs: true, .. } => power::run_failed_syncs(lab, *cuts).await,
        Task::Power { cuts, journal: Some(journal), only, .. } => {
            power::run(lab, journal, *cuts, *only).await
        }
        Task::Power { cuts, record, .. } => {
            let journal = record::run(lab, Duration::from_secs(*record)).await?;
            power::run(lab, &journal, *cuts, None).await
        }
        Task::Upgrade { times, points, store, journal, only } => {
            let fixture = Fixture::read(store)?;
            let journal = match journal {
                Some(journal) => journal.clone(),
                None => upgrade::record(lab, &fixture).await?,
            };
            upgrade::run(lab, &fixture, &journal, Cuts { times: *times, points: *points, only: *only }).await
        }
        Task::Smoke => smoke(lab).await,
    }
}

fn binary(common: &Common) -> Result<PathBuf, String> {
    let beside = || std::env::current_exe().ok()?.parent().map(|folder| folder.join("partita"));
    let path = common.binary.clone().or_else(beside).unwrap_or_default();
    let found = std::path::absolute(&path).ok().filter(|path| path.is_file());
    found.ok_or_else(|| {
        format!(
            "{} is not a server; build it (cargo build --release -p partita-cli) or name it with --binary",
            path.display()
        )
    })
}

/// The points of an upgrade at which a smoke test cuts the power.
const UPGRADE_POINTS: usize = 24;

async fn smoke(lab: &Lab) -> Result<Totals, String> {
    let began = Instant::now();
    let mut totals = Totals::new("smoke", lab.seed);
    totals.add(kills::run(lab, 6).await?);
    totals.add(queues::run(lab, 4).await?);
    totals.add(blobs::run(lab, 5).await?);
    for (rounds, only) in [(2, "Load: Sync of log"), (3, "Load: Write of log"), (2, "Start: Sync of")] {
        totals.add(inject::run(lab, Some(rounds), only).await?);
    }
    let journal = record::run(lab, Duration::from_secs(2)).await?;
    totals.add(power::run(lab, &journal, 24, None).await?);
    let fixture = Fixture::read(Path::new(upgrade::FIXTURE))?;
    let journal = upgrade::record(lab, &fixture).await?;
    let cuts = Cuts { times: 1, points: Some(UPGRADE_POINTS), only: None };
    totals.add(upgrade::run(lab, &fixture, &journal, cuts).await?);
    totals.seconds = began.elapsed().as_secs();
    Ok(totals)
}
