//! `partita-histories`: records the answers that concurrent clients get, and judges whether they are possible.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};

use histories::history;
use histories::judge::{self, Verdict};
use histories::recorder::{self, Plan, Summary, Target};
use histories::timeline;

#[derive(Parser, Debug)]
#[command(version, about = "Checks whether the answers that concurrent clients got are possible")]
struct Command {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand, Debug)]
enum Task {
    /// Run clients against a server and judge the answers they get
    Run(RunCommand),
    /// Judge a saved history
    Judge(JudgeCommand),
}

#[derive(Args, Debug)]
struct RunCommand {
    /// The server to start, on a temporary directory and a free port
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
    /// Partitions of each round; each gives one history
    #[arg(long, value_name = "NUMBER", default_value_t = 2)]
    partitions: usize,
    /// Rows of each partition
    #[arg(long, value_name = "NUMBER", default_value_t = 4)]
    rows: usize,
    /// Operations of each client in a round
    #[arg(long, value_name = "NUMBER", default_value_t = 50)]
    operations: usize,
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
    /// JSON lines, of any number of partitions
    file: PathBuf,
    /// States to visit in a history before it is called undecided
    #[arg(long, value_name = "NUMBER", default_value_t = judge::PLACES_MAX)]
    places: usize,
}

fn main() -> ExitCode {
    let result = match Command::parse().task {
        Task::Run(command) => run(command),
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
    if command.clients == 0 || command.partitions == 0 || command.rows == 0 {
        return Err("--clients, --partitions and --rows are at least 1".to_owned());
    }
    let seed = command.seed.unwrap_or_else(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
    });
    let target = match command.binary {
        Some(path) => Target::Binary { path, kills: command.kills },
        None => Target::Endpoints { connection_strings: command.connection_string, authority: command.ca },
    };
    let plan = Plan {
        rounds: command.rounds,
        seed,
        clients: command.clients,
        partitions: command.partitions,
        rows: command.rows,
        operations: command.operations,
        places: command.places,
        save: command.save,
        watched: command.r#while,
    };
    println!("--seed {seed}");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("can't start threads: {error}"))?;
    // Dropping the run also ends its server.
    let summary = runtime.block_on(async {
        tokio::select! {
            summary = recorder::run(target, plan) => summary,
            () = interrupted() => Err("interrupted".to_owned()),
        }
    })?;
    print_summary(&summary);
    if let Some(path) = &command.json {
        let cant = |error: &dyn std::fmt::Display| format!("can't write {}: {error}", path.display());
        let text = serde_json::to_string_pretty(&summary).map_err(|error| cant(&error))?;
        std::fs::write(path, text + "\n").map_err(|error| cant(&error))?;
    }
    Ok(summary.is_good())
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
    println!(
        "{} histories of {} operations ({} gets, {} queries, {} batches, {} refused), {} kills, {} turned away, {} unknown \
         outcomes: {} undecided, {} violations, {} strange answers; at most {} places; {:.1} s, {:.1} s of it judging",
        summary.histories,
        summary.operations,
        summary.gets,
        summary.queries,
        summary.batches,
        summary.refused,
        summary.kills,
        summary.turned_away,
        summary.unknown,
        summary.undecided,
        summary.violations,
        summary.strange,
        summary.places_most,
        summary.seconds,
        summary.judging_seconds
    );
}

fn judge_file(command: &JudgeCommand) -> Result<bool, String> {
    let name = command.file.display();
    let file = File::open(&command.file).map_err(|error| format!("can't read {name}: {error}"))?;
    let operations = history::load(BufReader::new(file)).map_err(|error| format!("{name}, {error}"))?;
    let mut good = true;
    for (partition, history) in history::by_partition(operations) {
        match judge::judge(&history, command.places) {
            Verdict::Linearizable { places } => {
                println!(
                    "partition {partition}: {} operations, linearizable, {places} places",
                    history.len()
                );
            }
            Verdict::Undecided => {
                println!(
                    "partition {partition}: undecided after {} places; --places allows more",
                    command.places
                );
            }
            Verdict::Violation(violation) => {
                good = false;
                print!("{}", timeline::render(&history, &violation));
            }
        }
    }
    Ok(good)
}
