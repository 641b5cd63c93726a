//! `partita-histories`: records the answers that concurrent clients get, and judges whether they are possible.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};

use histories::history::{self, Operation};
use histories::judge::{self, Verdict};
use histories::queues;
use histories::queues::history::{QueueOperation, by_queue};
use histories::recorder::{
    self, BlobPlan, BlobSummary, Plan, QueuePlan, QueueSummary, RunPlan, Summary, Target, Totals,
};
use histories::timeline;

/// How long a message may be late. Servers that share a store find one that came late, and lies below what they read, when
/// they look after their queues, once a minute.
const SHARED_PATIENCE: Duration = Duration::from_secs(180);
const ALONE_PATIENCE: Duration = Duration::from_secs(10);

#[derive(Parser, Debug)]
#[command(version, about = "Checks whether the answers that concurrent clients got are possible")]
struct Command {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand, Debug)]
enum Task {
    /// Run clients of tables against a server and judge the answers they get
    Run(RunCommand),
    /// Run clients of queues against a server and judge the answers they get
    Queues(QueuesCommand),
    /// Run clients of blobs against a server and judge the answers they get
    Blobs(BlobsCommand),
    /// Judge a saved history
    Judge(JudgeCommand),
}

#[derive(Args, Debug)]
struct RunCommand {
    #[command(flatten)]
    common: Common,
    /// Partitions of each round; each gives one history
    #[arg(long, value_name = "NUMBER", default_value_t = 2)]
    partitions: usize,
    /// Rows of each partition
    #[arg(long, value_name = "NUMBER", default_value_t = 4)]
    rows: usize,
    /// Operations of each client in a round
    #[arg(long, value_name = "NUMBER", default_value_t = 50)]
    operations: usize,
}

#[derive(Args, Debug)]
struct QueuesCommand {
    #[command(flatten)]
    common: Common,
    /// Queues of each round; each gives one history
    #[arg(long, value_name = "NUMBER", default_value_t = 3)]
    queues: usize,
    /// Operations of each client in a round; with their pauses, fifty take a second
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    operations: usize,
}

#[derive(Args, Debug)]
struct BlobsCommand {
    #[command(flatten)]
    common: Common,
    /// Containers of each round; each gives one history
    #[arg(long, value_name = "NUMBER", default_value_t = 2)]
    containers: usize,
    /// Blobs of each container
    #[arg(long, value_name = "NUMBER", default_value_t = 3)]
    blobs: usize,
    /// Operations of each client in a round
    #[arg(long, value_name = "NUMBER", default_value_t = 30)]
    operations: usize,
}

#[derive(Args, Debug)]
struct Common {
    /// The server to start, on a temporary directory and free ports
    #[arg(long, value_name = "FILE", required_unless_present = "connection_string")]
    binary: Option<PathBuf>,
    /// Kill the server at random while clients work
    #[arg(long, conflicts_with = "connection_string")]
    kills: bool,
    /// An endpoint to use instead; if given several times, clients are spread over the front ends of one store
    #[arg(long, value_name = "TEXT", env = "PARTITA_HISTORIES_CONNECTION_STRING", hide_env_values = true)]
    #[arg(conflicts_with = "binary")]
    connection_string: Vec<String>,
    /// A certificate authority to trust besides the system's, in PEM
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    rounds: u64,
    /// Begin no new round once this file is gone
    #[arg(long, value_name = "FILE")]
    r#while: Option<PathBuf>,
    /// Repeats the choices of another run, though not its timing
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    #[arg(long, value_name = "NUMBER", default_value_t = 6)]
    clients: u32,
    /// States to visit in a history before it is called undecided
    #[arg(long, value_name = "NUMBER", default_value_t = judge::PLACES_MAX)]
    places: usize,
    /// Where to save histories with a violation, and undecided ones
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    save: PathBuf,
    /// Write the summary to a file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Args, Debug)]
struct JudgeCommand {
    /// JSON lines, of any number of partitions or of queues
    file: PathBuf,
    /// States to visit in a history before it is called undecided
    #[arg(long, value_name = "NUMBER", default_value_t = judge::PLACES_MAX)]
    places: usize,
}

fn main() -> ExitCode {
    let result = match Command::parse().task {
        Task::Run(command) => run(command),
        Task::Queues(command) => run_queues(command),
        Task::Blobs(command) => run_blobs(command),
        Task::Judge(command) => judge_file(&command),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("partita-histories: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(command: RunCommand) -> Result<bool, String> {
    let RunCommand { common, partitions, rows, operations } = command;
    if common.clients == 0 || partitions == 0 || rows == 0 {
        return Err("--clients, --partitions and --rows are at least 1".to_owned());
    }
    let plan = Plan { run: common.plan(operations), partitions, rows };
    let summary = common.carry_out(plan.run.seed, recorder::run(common.target(), plan))?;
    print_summary(&summary);
    common.write_json(&summary)?;
    Ok(summary.totals.is_good())
}

fn run_queues(command: QueuesCommand) -> Result<bool, String> {
    let QueuesCommand { common, queues, operations } = command;
    if common.clients == 0 || queues == 0 {
        return Err("--clients and --queues are at least 1".to_owned());
    }
    let patience = if common.binary.is_some() { ALONE_PATIENCE } else { SHARED_PATIENCE };
    let plan = QueuePlan { run: common.plan(operations), queues, patience };
    let summary = common.carry_out(plan.run.seed, recorder::run_queues(common.target(), plan))?;
    print_queue_summary(&summary);
    common.write_json(&summary)?;
    Ok(summary.totals.is_good())
}

fn run_blobs(command: BlobsCommand) -> Result<bool, String> {
    let BlobsCommand { common, containers, blobs, operations } = command;
    if common.clients == 0 || containers == 0 || blobs == 0 {
        return Err("--clients, --containers and --blobs are at least 1".to_owned());
    }
    let plan = BlobPlan { run: common.plan(operations), containers, blobs };
    let summary = common.carry_out(plan.run.seed, recorder::run_blobs(common.target(), plan))?;
    let BlobSummary { totals, gets, holds } = &summary;
    println!(
        "{} histories of blobs, {} operations ({gets} gets, {} refused), {holds} times a lease was held, {}",
        totals.histories,
        totals.operations,
        totals.refused,
        shown(totals)
    );
    common.write_json(&summary)?;
    Ok(summary.totals.is_good())
}

impl Common {
    fn plan(&self, operations: usize) -> RunPlan {
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        RunPlan {
            rounds: self.rounds,
            seed: self.seed.unwrap_or_else(now),
            clients: self.clients,
            operations,
            places: self.places,
            save: self.save.clone(),
            watched: self.r#while.clone(),
        }
    }

    fn target(&self) -> Target {
        match &self.binary {
            Some(path) => Target::Binary { path: path.clone(), kills: self.kills },
            None => Target::Endpoints {
                connection_strings: self.connection_string.clone(),
                authority: self.ca.clone(),
            },
        }
    }

    /// Dropping the run also ends its server.
    fn carry_out<S>(&self, seed: u64, run: impl Future<Output = Result<S, String>>) -> Result<S, String> {
        println!("--seed {seed}");
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("can't start threads: {error}"))?;
        runtime.block_on(async {
            tokio::select! {
                summary = run => summary,
                () = interrupted() => Err("interrupted".to_owned()),
            }
        })
    }

    fn write_json(&self, summary: &impl serde::Serialize) -> Result<(), String> {
        let Some(path) = &self.json else { return Ok(()) };
        let cant = |error: &dyn std::fmt::Display| format!("can't write {}: {error}", path.display());
        let text = serde_json::to_string_pretty(summary).map_err(|error| cant(&error))?;
        std::fs::write(path, text + "\n").map_err(|error| cant(&error))
    }
}

/// Waits for SIGINT or SIGTERM. If signals can't be handled, they just end the process.
async fn interrupted() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

fn print_summary(summary: &Summary) {
    let Summary { totals, gets, queries, batches } = summary;
    println!(
        "{} histories of {} operations ({gets} gets, {queries} queries, {batches} batches, {} refused), {}",
        totals.histories,
        totals.operations,
        totals.refused,
        shown(totals)
    );
}

fn print_queue_summary(summary: &QueueSummary) {
    let QueueSummary { totals, messages, deliveries, redeliveries } = summary;
    println!(
        "{} queues, {} operations, {messages} messages, {deliveries} deliveries ({redeliveries} of them again), {} receipts \
         refused, {}",
        totals.histories,
        totals.operations,
        totals.refused,
        shown(totals)
    );
}

/// What the lines of both have at their end.
fn shown(totals: &Totals) -> String {
    format!(
        "{} kills, {} turned away, {} unknown outcomes: {} undecided, {} violations, {} strange answers; at most {} places; \
         {:.1} s, {:.1} s of it judging",
        totals.kills,
        totals.turned_away,
        totals.unknown,
        totals.undecided,
        totals.violations,
        totals.strange,
        totals.places_most,
        totals.seconds,
        totals.judging_seconds
    )
}

fn judge_file(command: &JudgeCommand) -> Result<bool, String> {
    let name = command.file.display();
    let cant = |error: &dyn std::fmt::Display| format!("can't read {name}: {error}");
    let text = std::fs::read_to_string(&command.file).map_err(|error| cant(&error))?;
    let within = |error: String| format!("{name}, {error}");
    // Each operation names its partition or its queue.
    match history::load::<Operation>(text.as_bytes()) {
        Ok(operations) => Ok(judge_partitions(operations, command.places)),
        Err(error) => match history::load::<QueueOperation>(text.as_bytes()) {
            Ok(operations) => Ok(judge_queues(operations, command.places)),
            Err(_) if text.contains("\"partition\"") => Err(within(error)),
            Err(error) => Err(within(error)),
        },
    }
}

fn judge_queues(operations: Vec<QueueOperation>, places: usize) -> bool {
    let mut good = true;
    for (queue, history) in by_queue(operations) {
        match queues::judge::judge(&history, places) {
            queues::judge::Verdict::Possible { messages, places } => {
                println!(
                    "queue {queue}: {} operations, {messages} messages, possible, {places} places",
                    history.len()
                );
            }
            queues::judge::Verdict::Undecided(message) => {
                println!(
                    "queue {queue}: message #{message} is undecided after {places} places; --places allows more"
                );
            }
            queues::judge::Verdict::Violation(violation) => {
                good = false;
                print!("{}", queues::timeline::render(&history, &violation));
            }
        }
    }
    good
}

fn judge_partitions(operations: Vec<Operation>, places: usize) -> bool {
    let mut good = true;
    for (partition, history) in history::by_partition(operations) {
        match judge::judge(&history, places) {
            Verdict::Linearizable { places } => {
                println!(
                    "partition {partition}: {} operations, linearizable, {places} places",
                    history.len()
                );
            }
            Verdict::Undecided => {
                println!("partition {partition}: undecided after {places} places; --places allows more");
            }
            Verdict::Violation(violation) => {
                good = false;
                print!("{}", timeline::render(&history, &violation));
            }
        }
    }
    good
}
