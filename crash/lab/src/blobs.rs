//! `kill -9` while blobs are in use, round after round on the same store; and sweeps of what no blob needs.
//!
//! Archivists write, and readers read the same blobs meanwhile. What must be true: a commit that was acknowledged is there whole,
//! one without an answer is there whole or not at all; a reader sees one version that somebody asked for, never a mix; and what
//! kills have left behind is found and removed by a sweep, and nothing else is.
//!
//! A sweep removes only what is older than a day, so the lab moves the server's clocks.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::archivist::{self, Archivist, Asked};
use crate::blob_client::BlobClient;
use crate::errand::{SHELVES, blob_name};
use crate::faults::Clock;
use crate::lab::{self, Lab};
use crate::server::{Launch, Server};
use crate::shelf::{self, ObservedVersion, Piece, Version};
use crate::totals::Totals;
use crate::writer::Load;

const READERS: usize = 2;
/// Every so many rounds there is a sweep, under load.
const SWEEP_EVERY: u64 = 4;
/// A round ends at a random moment after up to so many filings, or after this time.
const FILINGS_MAX: u64 = 120;
const LOAD_TIME_MAX: Duration = Duration::from_secs(5);
const SWEEP_WAIT_MAX: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(5);
/// Longer than content is left alone, and longer than an upload is.
const DAY: Duration = Duration::from_secs(25 * 3600);
const WEEK: Duration = Duration::from_secs(9 * 24 * 3600);
const SWEPT: &str = "what no blob needs is removed";
const NOT_SWEPT: &str = "could not look for what no blob needs";

/// The store and the clients of all rounds.
struct Archive<'a> {
    lab: &'a Lab,
    launch: Launch,
    clock: Clock,
    archivists: Vec<Archivist>,
    random: StdRng,
    totals: Totals,
}

pub async fn run(lab: &Lab, rounds: u64) -> Result<Totals, String> {
    let began = Instant::now();
    let clock = Clock::create(lab.path("clock"))?;
    let mut launch = lab.launch(&lab.directory("data")?);
    launch.variables = vec![("LD_PRELOAD", lab.library()?), ("PARTITA_FAULTS_CLOCK", clock.path.clone())];
    let mut archive = Archive {
        lab,
        launch,
        clock,
        archivists: archivist::archivists(lab.seed),
        random: lab.random(),
        totals: Totals::new("blobs", lab.seed),
    };
    for round in 1..=rounds {
        if lab.is_over() {
            break;
        }
        archive.totals.rounds += 1;
        if let Err(what) = archive.round(round).await? {
            archive.totals.violations.push(lab.violation(round, what));
            break;
        }
    }
    if archive.totals.violations.is_empty()
        && let Err(what) = archive.clear_up().await?
    {
        archive.totals.violations.push(lab.violation(archive.totals.rounds, what));
    }
    archive.totals.acknowledged = archive.archivists.iter().map(|archivist| archivist.done).sum();
    archive.totals.unknown = archive.archivists.iter().map(|archivist| archivist.unknown).sum();
    archive.totals.seconds = began.elapsed().as_secs();
    Ok(archive.totals)
}

impl Archive<'_> {
    /// The outer error is a failure of the lab, the inner one a violation.
    async fn round(&mut self, round: u64) -> Result<Result<(), String>, String> {
        let mut server = match lab::start(&self.launch, &mut self.totals) {
            Ok(server) => server,
            Err(what) => return Ok(Err(what)),
        };
        if let Err(what) = archivist::judge_all(&server, &mut self.archivists, &mut self.totals).await {
            return Ok(Err(what));
        }
        let load = Arc::new(Load::default());
        let asked = self.archivists.first().map(Archivist::asked);
        let working = archivist::work(&server, std::mem::take(&mut self.archivists), &load)?;
        let reading = self.read(&server, asked)?;
        let (filings, deadline) = (self.random.random_range(1..FILINGS_MAX), Instant::now() + LOAD_TIME_MAX);
        while load.filings.load(Ordering::Relaxed) < filings && Instant::now() < deadline {
            sleep(POLL).await;
        }
        sleep(Duration::from_micros(self.random.random_range(0..20_000))).await;
        let is_swept = round.is_multiple_of(SWEEP_EVERY);
        let swept = if is_swept { self.sweep(&server, DAY).await } else { Ok(()) };
        reading.is_ending.store(true, Ordering::Relaxed);
        server.kill();
        self.totals.kills += 1;
        load.stop.store(true, Ordering::Relaxed);
        self.archivists = working.finish().await?;
        let read = reading.finish().await?.map(|read| self.totals.blobs_read += read);
        let garbage = match self.check() {
            Ok(garbage) => garbage,
            Err(what) => return Ok(Err(what)),
        };
        println!(
            "blobs: round {round}: {} filings acknowledged so far, {} blobs read meanwhile, {garbage} objects left behind{}",
            self.archivists.iter().map(|archivist| archivist.done).sum::<u64>(),
            self.totals.blobs_read,
            if is_swept { " after a sweep" } else { "" }
        );
        let complaint = archivist::complaint(&self.archivists).map_or(Ok(()), Err);
        Ok(swept.and(read).and(complaint))
    }

    fn read(&mut self, server: &Server, asked: Option<Arc<Asked>>) -> Result<Reading, String> {
        let authority = server.blob_authority()?;
        let is_ending = Arc::new(AtomicBool::new(false));
        let readers = (0..READERS).filter_map(|_| {
            let random = StdRng::seed_from_u64(self.random.random());
            let reader = Reader { asked: asked.clone()?, random, is_ending: is_ending.clone(), read: 0 };
            Some(tokio::spawn(reader.run(authority.clone())))
        });
        Ok(Reading { readers: readers.collect(), is_ending })
    }

    /// Moves the clocks, and waits for the sweep that is due then.
    async fn sweep(&mut self, server: &Server, ahead: Duration) -> Result<(), String> {
        let deadline = Instant::now() + SWEEP_WAIT_MAX;
        self.clock.advance(ahead)?;
        while server.has_said(SWEPT) == 0 {
            if server.has_said(NOT_SWEPT) > 0 {
                return Err(format!("a sweep failed: {}", server.said()));
            }
            if Instant::now() >= deadline {
                return Err(format!("no sweep within {SWEEP_WAIT_MAX:?} after its time has come"));
            }
            sleep(POLL).await;
        }
        self.totals.sweeps += 1;
        Ok(())
    }

    /// How many objects no blob needs, in a store that is not open and must be sound.
    fn check(&mut self) -> Result<u64, String> {
        let mut command = Command::new(&self.lab.binary);
        command.args(["check", "--json", "--data"]).arg(&self.launch.data);
        let output = command.stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("partita check can't be started: {error}"))?;
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        match (report["sound"].as_bool(), report["objects"]["unnamed"].as_u64()) {
            (Some(true), Some(unnamed)) => {
                self.totals.garbage_max = self.totals.garbage_max.max(unnamed);
                Ok(unnamed)
            }
            _ => Err(format!("partita check ended with {}: {report}", output.status)),
        }
    }

    /// After the last round: a week later nothing is left of uploads that nobody has finished, and no garbage at all.
    async fn clear_up(&mut self) -> Result<Result<(), String>, String> {
        let server = match lab::start(&self.launch, &mut self.totals) {
            Ok(server) => server,
            Err(what) => return Ok(Err(what)),
        };
        let mut judged =
            archivist::judge_all(&server, &mut self.archivists, &mut self.totals).await.map(drop);
        if judged.is_ok() {
            judged = self.sweep(&server, WEEK).await;
        }
        self.archivists.iter_mut().for_each(Archivist::forget_uploads);
        if judged.is_ok() {
            judged = archivist::judge_all(&server, &mut self.archivists, &mut self.totals).await.map(drop);
        }
        let judged = judged.and(server.stop());
        Ok(judged.and_then(|()| match self.check()? {
            0 => Ok(()),
            garbage => Err(format!("{garbage} objects that no blob needs are there after a sweep")),
        }))
    }
}

/// Readers of all blobs, while archivists write them.
struct Reading {
    readers: Vec<JoinHandle<Result<u64, String>>>,
    is_ending: Arc<AtomicBool>,
}

struct Reader {
    asked: Arc<Asked>,
    random: StdRng,
    is_ending: Arc<AtomicBool>,
    read: u64,
}

impl Reading {
    /// The outer error is a failure of the lab, the inner one a violation.
    async fn finish(self) -> Result<Result<u64, String>, String> {
        let mut read = 0;
        for reader in self.readers {
            match reader.await.map_err(|error| format!("a reader ended early: {error}"))? {
                Ok(count) => read += count,
                Err(what) => return Ok(Err(what)),
            }
        }
        Ok(Ok(read))
    }
}

impl Reader {
    async fn run(mut self, authority: String) -> Result<u64, String> {
        let mut clients: Vec<BlobClient> = (0..archivist::ARCHIVISTS)
            .map(|number| BlobClient::new(&authority, &archivist::container(number)))
            .collect();
        while !self.is_ending.load(Ordering::Relaxed) {
            let (owner, at) =
                (self.random.random_range(0..clients.len()), self.random.random_range(0..SHELVES));
            let Some(got) = clients[owner].try_get(&blob_name(at), None).await else {
                // The server is gone, or its clocks were moved; then the next request is answered.
                sleep(POLL).await;
                continue;
            };
            let about = |what: String| {
                format!("a reader of {}/{}: {what}", archivist::container(owner), blob_name(at))
            };
            if let Some(found) = got.map_err(about)? {
                self.judge(owner, at, &found).map_err(about)?;
                self.read += 1;
            }
        }
        Ok(self.read)
    }

    /// It is one version that was asked for, byte for byte.
    fn judge(&self, owner: usize, at: usize, found: &ObservedVersion) -> Result<(), String> {
        let (number, pieces) = found.name()?;
        let name = (number, pieces);
        if !self.asked.has(owner, at, &name) {
            return Err(format!("nobody asked for the version {name:?}"));
        }
        let (number, pieces) = name;
        let piece = |(number, length)| Piece { number, length, block: None };
        let version = Version { number, pieces: pieces.into_iter().map(piece).collect() };
        shelf::compare(owner, &version, found)
    }
}
