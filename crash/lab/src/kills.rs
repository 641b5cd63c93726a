//! `kill -9` at random and at chosen moments, round after round on the same store.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rand::Rng as _;
use rand::rngs::StdRng;
use tokio::time::sleep;

use crate::lab::{self, Lab};
use crate::server::{Launch, Server};
use crate::totals::Totals;
use crate::writer::{Load, Writer};

/// If the moment does not come within this time, the server is killed all the same.
const MOMENT_WAIT_MAX: Duration = Duration::from_millis(1500);
const POLL: Duration = Duration::from_micros(300);

#[derive(Clone, Copy, Debug)]
enum Moment {
    Any,
    /// While a table is being dropped, or its space reclaimed.
    Drop,
    /// A flush or a compaction has begun to write a file.
    TableFile,
    /// A new log has been begun.
    Log,
    /// The server has been told to stop, and flushes.
    Close,
}

const MOMENTS: [Moment; 6] =
    [Moment::Any, Moment::Any, Moment::Drop, Moment::TableFile, Moment::Log, Moment::Close];

pub async fn run(lab: &Lab, rounds: u64) -> Result<Totals, String> {
    let mut totals = Totals::new("kills", lab.seed);
    let began = Instant::now();
    let launch = lab.launch(&lab.directory("data")?);
    let (mut random, mut writers) = (lab.random(), lab.writers());
    for round in 1..=rounds {
        if lab.is_over() {
            break;
        }
        totals.rounds += 1;
        match one_round(&launch, writers, &mut random, &mut totals, round).await? {
            Ok(next) => writers = next,
            Err(what) => {
                totals.violations.push(lab.violation(round, what));
                totals.seconds = began.elapsed().as_secs();
                return Ok(totals);
            }
        }
    }
    // With a clean stop in between, so that the state after a close is judged as well.
    for _ in 0..2 {
        if let Err(what) = close(&launch, &mut writers, &mut random, &mut totals).await {
            totals.violations.push(lab.violation(totals.rounds, what));
            break;
        }
    }
    totals.answered(&writers);
    totals.seconds = began.elapsed().as_secs();
    Ok(totals)
}

/// The outer error is a failure of the lab, the inner one a violation.
async fn one_round(
    launch: &Launch,
    mut writers: Vec<Writer>,
    random: &mut StdRng,
    totals: &mut Totals,
    round: u64,
) -> Result<Result<Vec<Writer>, String>, String> {
    if round > 1 && random.random_bool(0.5) {
        kill_while_starting(launch, random, totals)?;
    }
    let mut server = match lab::start(launch, totals) {
        Ok(server) => server,
        Err(what) => return Ok(Err(what)),
    };
    let settled = match lab::judge_all(&server, &mut writers, random, totals).await {
        Ok(settled) => settled,
        Err(what) => return Ok(Err(what)),
    };
    let moment = MOMENTS[random.random_range(0..MOMENTS.len())];
    let working = lab::work(&server, writers, Load::default()).await?;
    wait_for(moment, &server, &working.load, &launch.data, random).await?;
    server.kill();
    totals.kills += 1;
    let writers = working.finish().await?;
    let operations: usize = writers.iter().map(|writer| writer.entries.len()).sum();
    println!(
        "kills: round {round}: {moment:?}; {operations} operations so far, {} of {} unknown ones had been done",
        settled.taken, settled.unknown
    );
    Ok(lab::complaint(&writers).map_or(Ok(writers), Err))
}

/// Kills the server one to three times, during recovery or just after it.
fn kill_while_starting(launch: &Launch, random: &mut StdRng, totals: &mut Totals) -> Result<(), String> {
    for _ in 0..random.random_range(1..4) {
        let mut server = launch.spawn()?;
        std::thread::sleep(Duration::from_micros(random.random_range(0..120_000)));
        server.kill();
        totals.kills += 1;
    }
    Ok(())
}

async fn wait_for(
    moment: Moment,
    server: &Server,
    load: &Load,
    data: &Path,
    random: &mut StdRng,
) -> Result<(), String> {
    sleep(Duration::from_millis(random.random_range(30..400))).await;
    let deadline = Instant::now() + MOMENT_WAIT_MAX;
    let wait = |begun: &dyn Fn() -> bool| !begun() && Instant::now() < deadline;
    match moment {
        Moment::Any => {}
        Moment::Drop => {
            let before = load.drops.load(Ordering::Relaxed);
            while wait(&|| load.drops.load(Ordering::Relaxed) > before) {
                sleep(POLL).await;
            }
            sleep(Duration::from_micros(random.random_range(0..8_000))).await;
        }
        Moment::TableFile | Moment::Log => {
            let kind = if matches!(moment, Moment::Log) { "log" } else { "sst" };
            let before = files(data, kind);
            while wait(&|| !files(data, kind).is_subset(&before)) {
                sleep(POLL).await;
            }
            sleep(Duration::from_micros(random.random_range(0..4_000))).await;
        }
        Moment::Close => {
            server.terminate()?;
            sleep(Duration::from_micros(random.random_range(0..150_000))).await;
        }
    }
    Ok(())
}

fn files(data: &Path, extension: &str) -> BTreeSet<std::ffi::OsString> {
    let Ok(entries) = std::fs::read_dir(data.join("db")) else { return BTreeSet::new() };
    let names = entries.flatten().map(|entry| entry.file_name());
    names.filter(|name| Path::new(name).extension().is_some_and(|found| found == extension)).collect()
}

async fn close(
    launch: &Launch,
    writers: &mut [Writer],
    random: &mut StdRng,
    totals: &mut Totals,
) -> Result<(), String> {
    let server = lab::start(launch, totals)?;
    lab::judge_all(&server, writers, random, totals).await?;
    server.stop()
}
