//! What all commands need: the binary, a work directory, a seed, a deadline, and the steps of one round.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tempfile::TempDir;

use crate::faults;
use crate::judge::{self, Settled};
use crate::server::{Launch, Server, Start};
use crate::totals::{Totals, Violation};
use crate::writer::{Load, Writer};

pub const WRITERS: usize = 6;
/// Small, so that flushes, compactions and new logs happen every second.
pub const CACHE_MIB: u32 = 1;

#[derive(Debug)]
pub struct Lab {
    pub binary: PathBuf,
    pub seed: u64,
    pub deadline: Instant,
    work: TempDir,
    library: OnceLock<PathBuf>,
}

impl Lab {
    pub fn new(binary: PathBuf, work: &Path, seed: u64, time: Duration) -> Result<Self, String> {
        let directory = tempfile::Builder::new().prefix("partita-lab-").tempdir_in(work);
        let work =
            directory.map_err(|error| format!("can't make a directory in {}: {error}", work.display()))?;
        Ok(Self { binary, seed, deadline: Instant::now() + time, work, library: OnceLock::new() })
    }

    pub fn is_over(&self) -> bool {
        Instant::now() >= self.deadline
    }

    pub fn random(&self) -> StdRng {
        StdRng::seed_from_u64(self.seed)
    }

    pub fn writers(&self) -> Vec<Writer> {
        (0..WRITERS).map(|number| Writer::new(self.seed, number)).collect()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    /// A new and empty directory.
    pub fn directory(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.path(name);
        let removed = fs::remove_dir_all(&path);
        let made = match removed {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => fs::create_dir(&path),
        };
        made.map(|()| path.clone()).map_err(|error| format!("can't make {}: {error}", path.display()))
    }

    /// The library to preload, compiled once.
    pub fn library(&self) -> Result<PathBuf, String> {
        if let Some(library) = self.library.get() {
            return Ok(library.clone());
        }
        let library = faults::compile(self.work.path())?;
        Ok(self.library.get_or_init(|| library).clone())
    }

    pub fn launch(&self, data: &Path) -> Launch {
        Launch {
            binary: self.binary.clone(),
            data: data.to_owned(),
            log: self.path("server.log"),
            cache_mib: CACHE_MIB,
            arguments: Vec::new(),
            variables: Vec::new(),
        }
    }

    /// Keeps the work directory, so that a violation can be examined.
    pub fn keep(self) -> PathBuf {
        self.work.keep()
    }

    pub fn violation(&self, round: u64, what: String) -> Violation {
        Violation { round, what, kept: self.work.path().display().to_string() }
    }
}

/// Starts a server that must start.
pub fn start(launch: &Launch, totals: &mut Totals) -> Result<Server, String> {
    let since = Instant::now();
    match launch.start()? {
        Start::Ready(server) => {
            totals.started(since);
            Ok(server)
        }
        Start::Ended { status, said } => Err(format!("did not start: {status}: {said}")),
    }
}

/// Reads everything back and judges it.
pub async fn judge_all(
    server: &Server,
    writers: &mut [Writer],
    random: &mut StdRng,
    totals: &mut Totals,
) -> Result<Settled, String> {
    let mut client = server.client()?;
    let found = judge::read_back(&mut client, writers, random).await?;
    let settled = judge::judge(writers, &found)?;
    totals.judged(&found, settled);
    Ok(settled)
}

/// Running writers. The first has created the shared table before the others begin.
pub struct Working {
    tasks: Vec<tokio::task::JoinHandle<Writer>>,
    pub load: Arc<Load>,
}

pub async fn work(server: &Server, mut writers: Vec<Writer>, load: Load) -> Result<Working, String> {
    let load = Arc::new(load);
    if let Some(first) = writers.first_mut()
        && !first.world.has_shared_table()
        && first.unknown() == 0
    {
        let table = crate::operation::SHARED.to_owned();
        first.take(&mut server.client()?, &load, crate::operation::Operation::Create { table }).await;
    }
    let mut tasks = Vec::new();
    for writer in writers {
        tasks.push(tokio::spawn(writer.run(server.client()?, load.clone())));
    }
    Ok(Working { tasks, load })
}

impl Working {
    /// Tells them to stop, and waits until they have.
    pub async fn finish(self) -> Result<Vec<Writer>, String> {
        self.load.stop.store(true, Ordering::Relaxed);
        let mut writers = Vec::new();
        for task in self.tasks {
            writers.push(task.await.map_err(|error| format!("a writer ended early: {error}"))?);
        }
        Ok(writers)
    }
}

/// The first complaint of a writer about an answer.
pub fn complaint(writers: &[Writer]) -> Option<String> {
    writers
        .iter()
        .find_map(|writer| writer.violation.as_ref().map(|what| format!("writer {}: {what}", writer.number)))
}
