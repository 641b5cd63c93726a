//! `patterns`: each of the table design patterns as a program that shows its cost and checks its result.
//!
//! `docs/patterns.md` says when to use which.

use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, Subcommand, ValueEnum};

mod compound_key;
mod cost;
mod data_series;
mod denormalization;
mod eventual_transaction;
mod eventual_transaction_queue;
mod heterogeneous_types;
mod high_volume_delete;
mod hot_partition;
mod index_entities;
mod inter_partition_index;
mod intra_partition_index;
mod killed;
mod large_entities;
mod log_tail;
mod log_without_time;
mod one_to_many;
mod stage;
mod wide_entities;

use cost::Shown;
use stage::{Failure, Outcome, Stage};

#[derive(Parser, Debug)]
#[command(version, about = "Table design patterns, with what they cost")]
struct Command {
    #[command(subcommand)]
    task: Task,
    /// The service to use; what is created there is removed at the end
    #[arg(long, global = true, value_name = "TEXT", default_value = "UseDevelopmentStorage=true")]
    #[arg(env = "PARTITA_CONNECTION_STRING", hide_env_values = true)]
    connection_string: String,
}

#[derive(Subcommand, Debug)]
enum Task {
    /// All patterns
    All,
    #[command(flatten)]
    One(Pattern),
    /// The program that `eventual-transaction` starts and kills
    #[command(hide = true)]
    Archivist {
        #[arg(long)]
        tables: String,
        #[arg(long)]
        first: usize,
    },
    /// The program that `eventual-transaction-queue` starts and kills
    #[command(hide = true)]
    Clerk {
        #[arg(long)]
        tables: String,
        #[arg(long)]
        first: usize,
    },
}

#[derive(Clone, Copy, Debug, Subcommand, ValueEnum)]
enum Pattern {
    /// Lookups by another value, within a partition
    IntraPartitionIndex,
    /// Lookups by another value, across partitions
    InterPartitionIndex,
    /// A change across tables by a program that is killed in the middle
    EventualTransaction,
    /// The same with a queue of the Queue service
    EventualTransactionQueue,
    /// Lists of keys by another value, kept in three ways
    IndexEntities,
    /// Several values in one row key: ranges by the first of them
    CompoundKey,
    /// The newest first, by keys of inverted time
    LogTail,
    /// Copies where they are read, to save a second read
    Denormalization,
    /// Entities of several types in one partition
    HeterogeneousTypes,
    /// Departments and employees in three ways
    OneToMany,
    /// The values of a day in one entity
    DataSeries,
    /// More properties than an entity can have
    WideEntities,
    /// Values longer than an entity can hold: in a blob, and in chunks
    LargeEntities,
    /// Entities that are deleted together in their own table, which is dropped
    HighVolumeDelete,
    /// Anti-pattern: appending to one partition; with buckets as the solution
    HotPartition,
    /// Anti-pattern: a log without time in its keys; with three solutions
    LogWithoutTime,
}

impl Pattern {
    async fn run(self, stage: &Stage) -> Outcome {
        match self {
            Self::IntraPartitionIndex => intra_partition_index::run(stage).await,
            Self::InterPartitionIndex => inter_partition_index::run(stage).await,
            Self::EventualTransaction => eventual_transaction::run(stage).await,
            Self::EventualTransactionQueue => eventual_transaction_queue::run(stage).await,
            Self::IndexEntities => index_entities::run(stage).await,
            Self::CompoundKey => compound_key::run(stage).await,
            Self::LogTail => log_tail::run(stage).await,
            Self::Denormalization => denormalization::run(stage).await,
            Self::HeterogeneousTypes => heterogeneous_types::run(stage).await,
            Self::OneToMany => one_to_many::run(stage).await,
            Self::DataSeries => data_series::run(stage).await,
            Self::WideEntities => wide_entities::run(stage).await,
            Self::LargeEntities => large_entities::run(stage).await,
            Self::HighVolumeDelete => high_volume_delete::run(stage).await,
            Self::HotPartition => hot_partition::run(stage).await,
            Self::LogWithoutTime => log_without_time::run(stage).await,
        }
    }

    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let command = Command::parse();
    let connection_string = &command.connection_string;
    let patterns = match command.task {
        Task::All => Pattern::value_variants(),
        Task::One(pattern) => &[pattern],
        Task::Archivist { tables, first } => {
            return killable(connection_string, &tables, async |stage| {
                eventual_transaction::archivist(stage, first).await
            })
            .await;
        }
        Task::Clerk { tables, first } => {
            return killable(connection_string, &tables, async |stage| {
                eventual_transaction_queue::clerk(stage, first).await
            })
            .await;
        }
    };
    let mut failed = Vec::new();
    // One for all patterns, so that no signal is lost between two of them.
    let mut interrupted = Box::pin(tokio::signal::ctrl_c());
    for pattern in patterns {
        if let Err(failure) = show(*pattern, connection_string, &mut interrupted).await {
            eprintln!("{}: {failure}", pattern.name());
            failed.push(pattern.name());
            if failure.is_silence() {
                eprintln!("start a server, or name another with --connection-string");
                return ExitCode::FAILURE;
            }
            if matches!(failure, Failure::Interrupted) {
                return ExitCode::FAILURE;
            }
        }
    }
    if failed.is_empty() {
        println!("\nall patterns gave the expected results");
        return ExitCode::SUCCESS;
    }
    eprintln!("failed: {}", failed.join(", "));
    ExitCode::FAILURE
}

/// Runs one pattern and removes its tables, however it ends.
async fn show(
    pattern: Pattern,
    connection_string: &str,
    interrupted: impl Future<Output = std::io::Result<()>>,
) -> Outcome {
    let stage = Stage::new(connection_string)?;
    stage.title(&pattern.name());
    let start = Instant::now();
    let outcome = tokio::select! {
        outcome = pattern.run(&stage) => outcome,
        _ = interrupted => Err(Failure::Interrupted),
    };
    let time = start.elapsed();
    match outcome {
        Err(failure) if failure.is_silence() => return Err(failure),
        _ => outcome.and(stage.clear().await)?,
    }
    println!("  {} checks held; {} in all", stage.checks(), Shown(time).to_string().trim());
    Ok(())
}

/// A program that another pattern starts and kills.
async fn killable(
    connection_string: &str,
    tables: &str,
    task: impl AsyncFnOnce(&Stage) -> Outcome,
) -> ExitCode {
    let work = async { task(&Stage::with_prefix(connection_string, tables)?).await };
    match work.await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("the program to be killed: {failure}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_valid() {
        Command::command().debug_assert();
    }

    #[test]
    fn every_pattern_has_a_command_of_its_name() {
        for pattern in Pattern::value_variants() {
            let command = Command::try_parse_from(["patterns", &pattern.name()]).unwrap();
            let Task::One(found) = command.task else { panic!("{} is no pattern", pattern.name()) };
            assert_eq!(found.name(), pattern.name());
        }
    }

    #[test]
    fn every_pattern_is_in_the_documentation() {
        let documentation = include_str!("../../../docs/patterns.md");
        for pattern in Pattern::value_variants() {
            let link = format!("(#{}", pattern.name());
            assert!(documentation.contains(&link), "docs/patterns.md has no link to {}", pattern.name());
        }
    }
}
