//! Starts this program as one that works until it is killed, and kills it.

use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use crate::stage::{Failure, Outcome, Stage};

/// Starts a hidden task of this program and kills it after some moves, at any moment of the next. Returns the moves that it
/// has printed.
pub async fn until_killed(stage: &Stage, task: &str, first: usize, moves: usize) -> Outcome<Vec<usize>> {
    let mut child = Command::new(std::env::current_exe()?)
        .args([task, "--tables", stage.prefix(), "--first", &first.to_string()])
        .env("PARTITA_CONNECTION_STRING", stage.connection_string())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    // It is piped above, and taken once.
    let output = child.stdout.take().ok_or_else(|| Failure::Unexpected("no output to read".to_owned()))?;
    let mut lines = BufReader::new(output).lines();
    let mut told = Vec::new();
    let mut pace = Duration::ZERO;
    while told.len() < moves {
        let start = Instant::now();
        let Some(line) = lines.next_line().await? else { break };
        // Only the last one counts: the first includes the start of the program.
        pace = start.elapsed();
        told.extend(line.parse::<usize>().ok());
    }
    // The runtime's timers are as coarse as a move is long. They would fire when the next line arrives, which is between two
    // moves.
    let wait = pace.mul_f64(rand::random());
    let waited = tokio::task::spawn_blocking(move || std::thread::sleep(wait)).await;
    waited.map_err(|error| Failure::Unexpected(error.to_string()))?;
    child.kill().await?;
    // Everything that it printed before it was killed counts.
    while let Some(line) = lines.next_line().await? {
        told.extend(line.parse::<usize>().ok());
    }
    if told.len() < moves {
        return Err(Failure::Unexpected(format!("the {task} stopped by itself")));
    }
    Ok(told)
}
