//! A run with the recording library, which writes the journal for the power cuts.
//!
//! A recording must be complete. This is checked: replayed to its end, it must give exactly the files that are on the
//! disk.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rand::rngs::StdRng;
use tokio::time::sleep;

use crate::archivist::{self, Archivist};
use crate::disk::Disk;
use crate::faults::{Call, Fault, Rule};
use crate::journal::{self, JournalWriter};
use crate::lab::{self, Lab};
use crate::porter;
use crate::server::{Launch, Server};
use crate::totals::Totals;
use crate::writer::{Load, Writer};

/// The stops in a recorded run, so that recovery and closing are recorded as well.
const STOPS: u32 = 4;
/// The time of load before a sync fails, and after it.
const FAULTY_LOAD: Duration = Duration::from_millis(500);
const DYING_TIME_MAX: Duration = Duration::from_secs(10);

/// A server whose changes to the disk are all recorded.
#[derive(Debug)]
pub struct Recording {
    pub journal: PathBuf,
    launch: Launch,
    rule: Rule,
}

impl Recording {
    /// Records the changes of a data directory in an empty journal.
    pub fn new(lab: &Lab, data: &Path, journal: &str, fault: &Fault) -> Result<Self, String> {
        let (journal, rule) = (lab.path(journal), Rule::create(lab.path("rule"), fault)?);
        std::fs::write(&journal, b"")
            .map_err(|error| format!("can't write {}: {error}", journal.display()))?;
        let mut launch = lab.launch(data);
        launch.variables = vec![
            ("LD_PRELOAD", lab.library()?),
            ("PARTITA_FAULTS_ROOT", data.to_owned()),
            ("PARTITA_FAULTS_RULE", rule.path.clone()),
            ("PARTITA_FAULTS_JOURNAL", journal.clone()),
        ];
        Ok(Self { journal, launch, rule })
    }

    /// With more arguments of `partita serve`.
    pub fn with_arguments(mut self, arguments: &[String]) -> Self {
        self.launch.arguments = arguments.to_vec();
        self
    }

    pub fn spawn(&self) -> Result<Server, String> {
        self.rule.arm(false)?;
        self.launch.spawn()
    }

    pub fn start(&self) -> Result<Server, String> {
        self.rule.arm(false)?;
        lab::start(&self.launch, &mut Totals::default())
    }

    /// Kills it between two records.
    pub fn kill(&self, server: &mut Server) -> Result<(), String> {
        self.rule.die()?;
        // A server that makes no calls is idle, and may be killed at any time.
        if server.wait(DYING_TIME_MAX).is_none() {
            server.kill();
        }
        Ok(())
    }
}

/// Runs the load with several kills and stops. Returns the journal.
pub async fn run(lab: &Lab, time: Duration) -> Result<PathBuf, String> {
    let data = lab.directory("recorded")?;
    let recording = Recording::new(lab, &data, "journal", &Fault::NONE)?;
    let (mut random, mut writers, mut porters) = (lab.random(), lab.writers(), porter::porters(lab.seed));
    let mut archivists = archivist::archivists(lab.seed);
    for stop in 0..=STOPS {
        let mut server = recording.start()?;
        settle(&server, &mut writers, &recording.journal, &mut random).await?;
        porter::judge_all(&server, &mut porters, &mut Totals::default()).await?;
        settle_blobs(&server, &mut archivists, &recording.journal).await?;
        let load = Load { journal: Some(JournalWriter::open(&recording.journal)?), ..Load::default() };
        let working = lab::work(&server, writers, load).await?;
        let carrying = porter::work(&server, porters, &working.load)?;
        let filing = archivist::work(&server, archivists, &working.load)?;
        sleep(time / (STOPS + 1)).await;
        if stop < STOPS && stop % 2 == 0 {
            recording.kill(&mut server)?;
            writers = working.finish().await?;
            porters = carrying.finish().await?;
            archivists = filing.finish().await?;
        } else {
            writers = working.finish().await?;
            porters = carrying.finish().await?;
            archivists = filing.finish().await?;
            server.stop()?;
        }
        let complaint = lab::complaint(&writers).or_else(|| porter::complaint(&porters));
        if let Some(complaint) = complaint.or_else(|| archivist::complaint(&archivists)) {
            return Err(complaint);
        }
    }
    compare(&recording.journal, Disk::new(), &data)?;
    // Whoever looks at a queue after a cut must see what was hidden last.
    sleep(porter::HIDDEN).await;
    Ok(recording.journal)
}

/// Runs the load while one sync of a file fails, restarts the server and continues. Returns the journal. What the
/// failed sync should have written may be lost although every later sync succeeds, as on Linux.
pub async fn failed_sync(lab: &Lab, pattern: &'static str, skip: u64) -> Result<PathBuf, String> {
    let fault = Fault { calls: vec![Call::Sync], pattern, skip, times: 1, ..Fault::NONE };
    let recording = Recording::new(lab, &lab.directory("recorded")?, "journal", &fault)?;
    let (mut random, mut writers, mut porters) = (lab.random(), lab.writers(), porter::porters(lab.seed));
    let mut archivists = archivist::archivists(lab.seed);
    for armed in [true, false] {
        let mut server = recording.start()?;
        settle(&server, &mut writers, &recording.journal, &mut random).await?;
        porter::judge_all(&server, &mut porters, &mut Totals::default()).await?;
        settle_blobs(&server, &mut archivists, &recording.journal).await?;
        let journal = Some(JournalWriter::open(&recording.journal)?);
        let load = Load { journal, persist: true, ..Load::default() };
        let working = lab::work(&server, writers, load).await?;
        let carrying = porter::work(&server, porters, &working.load)?;
        let filing = archivist::work(&server, archivists, &working.load)?;
        sleep(FAULTY_LOAD).await;
        recording.rule.arm(armed)?;
        sleep(FAULTY_LOAD).await;
        recording.kill(&mut server)?;
        writers = working.finish().await?;
        porters = carrying.finish().await?;
        archivists = filing.finish().await?;
        let complaint = lab::complaint(&writers).or_else(|| porter::complaint(&porters));
        if let Some(complaint) = complaint.or_else(|| archivist::complaint(&archivists)) {
            return Err(complaint);
        }
    }
    println!(
        "power: recorded a run in which {} of the syncs of {pattern:?} failed",
        recording.rule.injected()
    );
    sleep(porter::HIDDEN).await;
    Ok(recording.journal)
}

/// Judges a server that was just started, and records the outcomes of the operations that were unknown.
async fn settle(
    server: &Server,
    writers: &mut [Writer],
    journal: &Path,
    random: &mut StdRng,
) -> Result<(), String> {
    let unsettled: Vec<usize> = writers.iter().map(|writer| writer.settled).collect();
    lab::judge_all(server, writers, random, &mut Totals::default()).await?;
    let journal = JournalWriter::open(journal)?;
    for (writer, from) in writers.iter().zip(unsettled) {
        for number in from..writer.entries.len() {
            journal.answered(writer.number, number, &writer.entries[number].outcome);
        }
    }
    Ok(())
}

/// The same for blobs.
async fn settle_blobs(server: &Server, archivists: &mut [Archivist], journal: &Path) -> Result<(), String> {
    let settled = archivist::judge_all(server, archivists, &mut Totals::default()).await?;
    let journal = JournalWriter::open(journal)?;
    for archivist::Settled { writer, number, filed } in settled {
        journal.answered(writer, number, &filed);
    }
    Ok(())
}

/// Checks that the journal, replayed on the disk from before, gives exactly the files that are there. Otherwise the
/// library has missed something, and no cut could be trusted.
pub fn compare(journal: &Path, before: Disk<'_>, data: &Path) -> Result<(), String> {
    let bytes =
        std::fs::read(journal).map_err(|error| format!("can't read {}: {error}", journal.display()))?;
    let mut disk = before;
    for record in journal::read(&bytes)? {
        disk.apply(&record)?;
    }
    let (expected, found) = (disk.files(), Disk::at_rest(data)?.files());
    for path in expected.keys().chain(found.keys()) {
        if expected.get(path) != found.get(path) {
            return Err(format!(
                "the journal is not complete for {path}: {:?} bytes by the journal, {:?} on the disk",
                expected.get(path).map(Vec::len),
                found.get(path).map(Vec::len)
            ));
        }
    }
    println!("power: recorded {} bytes; {} files, all as in the journal", bytes.len(), found.len());
    Ok(())
}
