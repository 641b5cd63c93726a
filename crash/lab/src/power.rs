//! Power cuts: one run is recorded, and then the power is cut at many points of it.
//!
//! Each cut leaves one of the states that `disk` allows at that point. The real server is started on it and judged
//! against what was acknowledged before the cut.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use tokio::time::sleep;

use crate::archivist::{self, Archivist};
use crate::disk::{Disk, Laws};
use crate::errand::Filing;
use crate::faults::Fault;
use crate::journal::{self, Kind, Record};
use crate::lab::{self, Lab};
use crate::operation::{Operation, Outcome};
use crate::porter::{self, Errand, Porter, Reply};
use crate::record::{self, Recording};
use crate::server::{Launch, Server};
use crate::totals::Totals;
use crate::writer::{Load, Writer};

/// One of this many stores is written to, killed and judged a second time.
const SECOND_LOOK: usize = 5;
/// Cuts in one pass over the journal. Each pass covers the whole journal, so that a run that ends early has still
/// reached every part.
const PASS: usize = 100;
/// In one of this many cuts the power fails again while the server recovers.
pub const SECOND_CUT: usize = 4;
const RECOVERY_MICROS_MAX: u64 = 300_000;
const SECOND_LOAD: Duration = Duration::from_millis(80);
/// The files whose syncs fail, and how many syncs succeed before.
const FAILING: [&str; 5] = ["db/*.log", "db/*.sst", "db/MANIFEST-*", "db", "*"];
const SKIPS: [u64; 2] = [0, 9];

/// Cuts after a sync of each kind of file has failed.
pub async fn run_failed_syncs(lab: &Lab, cuts: usize) -> Result<Totals, String> {
    let mut totals = Totals::new("power after failed syncs", lab.seed);
    let (began, mut random) = (Instant::now(), lab.random());
    let runs = FAILING.len() * SKIPS.len();
    for (pattern, skip) in FAILING.iter().flat_map(|pattern| SKIPS.map(|skip| (*pattern, skip))) {
        if lab.is_over() {
            break;
        }
        let journal = record::failed_sync(lab, pattern, skip + random.random_range(0..4)).await?;
        let before = totals.violations.len();
        totals.injected_errors += 1;
        totals.add(run(lab, &journal, cuts.div_ceil(runs), None).await?);
        if totals.violations.len() > before {
            let kept = lab.path(&format!("journal-{}-{skip}", pattern.replace(['/', '*'], "-")));
            std::fs::copy(&journal, &kept)
                .map_err(|error| format!("can't keep {}: {error}", kept.display()))?;
        }
    }
    totals.seconds = began.elapsed().as_secs();
    Ok(totals)
}

/// Writers and disk as of one point of a journal.
struct Replay<'a> {
    disk: Disk<'a>,
    writers: Vec<Writer>,
    /// What each writer has sent without an answer.
    pending: Vec<Option<Operation>>,
    porters: Vec<Porter>,
    /// What each porter has sent without an answer; it counts as sent.
    errands: Vec<Option<Errand>>,
    archivists: Vec<Archivist>,
    /// What archivists have sent without an answer, by archivist and number; it counts as sent.
    filings: HashMap<(usize, usize), Filing>,
    /// Records applied.
    at: usize,
}

impl<'a> Replay<'a> {
    fn new(lab: &Lab) -> Self {
        let pending = vec![None; lab::WRITERS];
        let (porters, errands) = (porter::porters(lab.seed), vec![None; porter::PORTERS]);
        let (archivists, filings) = (archivist::archivists(lab.seed), HashMap::new());
        let (disk, writers) = (Disk::new(), lab.writers());
        Self { disk, writers, pending, porters, errands, archivists, filings, at: 0 }
    }

    /// Continues up to this record.
    fn advance(&mut self, records: &[Record<'a>], point: usize) -> Result<(), String> {
        for record in &records[self.at..point] {
            self.hear(record)?;
            self.disk.apply(record)?;
        }
        self.at = point;
        Ok(())
    }

    /// Takes note of what was sent and answered.
    fn hear(&mut self, record: &Record<'_>) -> Result<(), String> {
        let unreadable =
            |error: serde_json::Error| format!("an operation in the journal is unreadable: {error}");
        let (writer, number) = (record.process as usize, record.handle as usize);
        if let Some(archivist) = Archivist::of_journal(writer) {
            match record.kind {
                Kind::Sent => {
                    let filing: Filing = serde_json::from_slice(record.data).map_err(unreadable)?;
                    self.archivists[archivist].begin(&filing);
                    self.filings.insert((archivist, number), filing);
                }
                Kind::Answered => {
                    let filed = serde_json::from_slice(record.data).map_err(unreadable)?;
                    if let Some(filing) = self.filings.remove(&(archivist, number)) {
                        self.archivists[archivist].hear(&filing, &filed);
                    }
                }
                _ => {}
            }
            return Ok(());
        }
        if let Some(porter) = Porter::of_journal(writer) {
            match record.kind {
                Kind::Sent => {
                    let errand: Errand = serde_json::from_slice(record.data).map_err(unreadable)?;
                    self.porters[porter].begin(&errand);
                    self.errands[porter] = Some(errand);
                }
                Kind::Answered => {
                    let reply: Reply = serde_json::from_slice(record.data).map_err(unreadable)?;
                    if let Some(errand) = self.errands[porter].take() {
                        self.porters[porter].hear(&errand, &reply);
                    }
                }
                _ => {}
            }
            return Ok(());
        }
        match record.kind {
            Kind::Sent => {
                let pending =
                    self.pending.get_mut(writer).ok_or("the journal names more writers than there are")?;
                *pending = Some(serde_json::from_slice(record.data).map_err(unreadable)?);
            }
            Kind::Answered => {
                let outcome = serde_json::from_slice(record.data).map_err(unreadable)?;
                let one =
                    self.writers.get_mut(writer).ok_or("the journal names more writers than there are")?;
                if number < one.entries.len() {
                    one.settle(number, outcome);
                } else if let Some(operation) = self.pending[writer].take() {
                    one.remember(operation, outcome);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The writers' state if nothing more is ever answered.
    fn writers(&self) -> Vec<Writer> {
        let mut writers = self.writers.clone();
        for (writer, pending) in writers.iter_mut().zip(&self.pending) {
            if let Some(operation) = pending {
                writer.remember(operation.clone(), Outcome::Unknown("the power failed".to_owned()));
            }
        }
        writers
    }
}

pub async fn run(lab: &Lab, journal: &Path, cuts: usize, only: Option<usize>) -> Result<Totals, String> {
    let mut totals = Totals::new("power", lab.seed);
    let began = Instant::now();
    let bytes = std::fs::read(journal);
    let bytes = bytes.map_err(|error| format!("can't read {}: {error}", journal.display()))?;
    let records = journal::read(&bytes)?;
    let points = points(&records, cuts, &mut lab.random());
    for (pass, points) in points.chunks(PASS).enumerate() {
        let mut replay = Replay::new(lab);
        for (index, point) in points.iter().enumerate() {
            let number = pass * PASS + index;
            if only.is_some_and(|only| only != number) {
                continue;
            }
            if lab.is_over() {
                break;
            }
            replay.advance(&records, *point)?;
            let place = describe(&replay.disk, &records, *point);
            let (laws, seen) = one_cut(lab, &replay, number, &mut totals).await?;
            let which = format!("cut {number} after record {point} ({place}), {laws:?}");
            match seen {
                Ok(()) => println!("power: {which}: as it must be"),
                Err(what) => {
                    println!("power: {which}: VIOLATION: {what}");
                    totals.violations.push(lab.violation(number as u64, format!("{which}: {what}")));
                }
            }
        }
    }
    let mut told = Replay::new(lab);
    records.iter().try_for_each(|record| told.hear(record))?;
    totals.answered(&told.writers);
    totals.seconds = began.elapsed().as_secs();
    Ok(totals)
}

/// The rules of the cut; the inner error says what is wrong after it.
async fn one_cut(
    lab: &Lab,
    replay: &Replay<'_>,
    number: usize,
    totals: &mut Totals,
) -> Result<(Laws, Result<(), String>), String> {
    totals.rounds += 1;
    totals.cuts += 1;
    let image = lab.directory("image")?;
    let (laws, mut random) = cut(&replay.disk, lab.seed, number, &image)?;
    let second = number.is_multiple_of(SECOND_CUT);
    if second {
        cut_recovery(lab, &image, &[], &mut random)?;
        totals.cuts += 1;
    }
    let again = number.is_multiple_of(SECOND_LOOK);
    let mut clients = Clients {
        writers: replay.writers(),
        porters: replay.porters.clone(),
        archivists: replay.archivists.clone(),
    };
    let seen = look(&lab.launch(&image), &mut clients, again, &mut random, totals).await;
    if seen.is_err() {
        let kept = lab.directory(&format!("cut-{number}"))?;
        if second {
            let renamed = std::fs::rename(lab.path("image-kept"), &kept);
            renamed.map_err(|error| format!("can't keep {}: {error}", kept.display()))?;
        } else {
            // The same image again, as it was before the server was started on it.
            cut(&replay.disk, lab.seed, number, &kept)?;
        }
    }
    Ok((laws, seen))
}

/// Makes one cut. The same seed and number always make the same cut.
pub fn cut(disk: &Disk<'_>, seed: u64, number: usize, into: &Path) -> Result<(Laws, StdRng), String> {
    let mut random = StdRng::seed_from_u64(seed ^ (number as u64) << 20);
    let laws = Laws::choose(&mut random);
    disk.cut(laws, &mut random, into)?;
    Ok((laws, random))
}

/// Starts the server after a cut, and cuts the power again while it recovers or soon after.
pub fn cut_recovery(
    lab: &Lab,
    image: &Path,
    arguments: &[String],
    random: &mut StdRng,
) -> Result<(), String> {
    let mut disk = Disk::at_rest(image)?;
    let recording = Recording::new(lab, image, "recovery", &Fault::NONE)?.with_arguments(arguments);
    let mut server = recording.spawn()?;
    std::thread::sleep(Duration::from_micros(random.random_range(20_000..RECOVERY_MICROS_MAX)));
    recording.kill(&mut server)?;
    let bytes = std::fs::read(&recording.journal);
    let bytes = bytes.map_err(|error| format!("can't read {}: {error}", recording.journal.display()))?;
    let records = journal::read(&bytes)?;
    for record in &records[..random.random_range(0..=records.len())] {
        disk.apply(record)?;
    }
    let laws = Laws::choose(random);
    // Two equal images: one to start the server on, one to keep.
    disk.cut(laws, &mut random.clone(), &lab.directory("image-kept")?)?;
    disk.cut(laws, random, &lab.directory("image")?)
}

/// All whose data is judged after a cut.
struct Clients {
    writers: Vec<Writer>,
    porters: Vec<Porter>,
    archivists: Vec<Archivist>,
}

impl Clients {
    async fn judge(
        &mut self,
        server: &Server,
        random: &mut StdRng,
        totals: &mut Totals,
    ) -> Result<(), String> {
        lab::judge_all(server, &mut self.writers, random, totals).await?;
        porter::judge_all(server, &mut self.porters, totals).await?;
        archivist::judge_all(server, &mut self.archivists, totals).await.map(drop)
    }

    fn complaint(&self) -> Option<String> {
        let complaint = lab::complaint(&self.writers).or_else(|| porter::complaint(&self.porters));
        complaint.or_else(|| archivist::complaint(&self.archivists))
    }
}

/// Starts the server on an image and judges it; with `again`, a second time after some load and a kill.
async fn look(
    launch: &Launch,
    clients: &mut Clients,
    again: bool,
    random: &mut StdRng,
    totals: &mut Totals,
) -> Result<(), String> {
    let mut server = lab::start(launch, totals)?;
    clients.judge(&server, random, totals).await?;
    if !again {
        return Ok(());
    }
    let working = lab::work(&server, std::mem::take(&mut clients.writers), Load::default()).await?;
    let carrying = porter::work(&server, std::mem::take(&mut clients.porters), &working.load)?;
    let filing = archivist::work(&server, std::mem::take(&mut clients.archivists), &working.load)?;
    sleep(SECOND_LOAD).await;
    server.kill();
    totals.kills += 1;
    clients.writers = working.finish().await?;
    clients.porters = carrying.finish().await?;
    clients.archivists = filing.finish().await?;
    if let Some(complaint) = clients.complaint() {
        return Err(complaint);
    }
    let server = lab::start(launch, totals)?;
    clients.judge(&server, random, totals).await?;
    server.stop()
}

/// Where to cut, in order within each pass: some points are anywhere, most are close to a record of a critical kind.
fn points(records: &[Record<'_>], cuts: usize, random: &mut StdRng) -> Vec<usize> {
    let of = |wanted: &[Kind]| {
        let numbers = records.iter().enumerate().filter(|(_, record)| wanted.contains(&record.kind));
        numbers.map(|(number, _)| number).collect::<Vec<_>>()
    };
    let kinds = [
        of(&[Kind::SyncBegin, Kind::SyncEnd]),
        of(&[Kind::SyncFailed]),
        of(&[Kind::Answered]),
        of(&[Kind::Rename, Kind::Link, Kind::Mkdir]),
        of(&[Kind::Unlink]),
        of(&[Kind::Truncate, Kind::Allocate]),
        of(&[Kind::Open]),
    ];
    let mut points: Vec<usize> = (0..cuts)
        .map(|_| {
            let kind = &kinds[random.random_range(0..kinds.len())];
            if kind.is_empty() || random.random_bool(0.4) {
                return random.random_range(0..=records.len());
            }
            let near = kind[random.random_range(0..kind.len())];
            (near + random.random_range(0..6)).saturating_sub(2).min(records.len())
        })
        .collect();
    points.chunks_mut(PASS).for_each(<[usize]>::sort_unstable);
    points
}

/// The last change to the disk before this point.
pub fn describe(disk: &Disk<'_>, records: &[Record<'_>], point: usize) -> String {
    let changes = records[..point].iter().rev().take(200);
    let last = changes.into_iter().find(|record| !matches!(record.kind, Kind::Sent | Kind::Answered));
    last.map_or_else(String::new, |record| {
        let path = if record.path.is_empty() {
            disk.path_of(record.process, record.handle).unwrap_or_default()
        } else {
            record.path.to_owned()
        };
        format!("{:?} {path}", record.kind)
    })
}
