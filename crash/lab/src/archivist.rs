//! One client of a container of its own: it puts, commits, appends, writes pages, copies, takes snapshots, leases and deletes, one
//! after the other, so it always knows what its container must hold.
//!
//! What it does to a blob without an answer leaves that blob alone until somebody has looked. Others may read its blobs
//! meanwhile: they must see one of the versions that it has asked for.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::blob_client::BlobClient;
use crate::errand::{Filed, Filing, Kind, SHELVES, What, blob_name, kind};
use crate::journal::JournalWriter;
use crate::lab::WRITERS;
use crate::porter::PORTERS;
use crate::server::Server;
use crate::shelf::{PIECE_BYTES_MIN, SLOTS, Shelf};
use crate::totals::Totals;
use crate::writer::Load;

pub const ARCHIVISTS: usize = 2;
/// Unknown outcomes after which an archivist stops: each takes a blob out of use.
const UNKNOWN_MAX: usize = 4;
const SNAPSHOTS_MAX: usize = 3;
const BLOCKS_MAX: u8 = 6;
const APPENDS_MAX: usize = 40;
/// One request writes up to 4 MiB of pages.
const SLOTS_WRITTEN_MAX: u32 = 64;
/// Lengths in a row, in one chunk, in several chunks, and beyond the 4 MiB that go through the log; and how many of a hundred
/// are up to there.
const LENGTHS: [(u32, u32, u32); 5] = [
    (30, PIECE_BYTES_MIN, 4_000),
    (55, 4_000, 70_000),
    (85, 70_000, 1_100_000),
    (95, 1_100_000, 4_100_000),
    (100, 4_300_000, 6_500_000),
];
/// Between two requests of a run that is recorded: the journal has all that is written.
const RECORDED_PAUSE: Duration = Duration::from_millis(25);

type VersionName = (u32, Vec<(u32, u32)>);

/// The versions of each blob that its archivist has asked for, by container and shelf.
#[derive(Debug, Default)]
pub struct Asked(Mutex<HashMap<(usize, usize), HashSet<VersionName>>>);

impl Asked {
    fn note(&self, owner: usize, shelf: usize, after: &Shelf) {
        if let Some(version) = &after.blob {
            let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            asked.entry((owner, shelf)).or_default().insert(version.name());
        }
    }

    /// Also what was asked for before a restart.
    pub fn has(&self, owner: usize, shelf: usize, name: &VersionName) -> bool {
        let asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        asked.get(&(owner, shelf)).is_some_and(|versions| versions.contains(name))
    }
}

/// After a filing without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Doubt {
    /// Of the filing.
    number: usize,
    /// What is there if it was done.
    after: Shelf,
}

/// What became of a filing that was in doubt: the archivist, its number, and the answer that it should have got.
#[derive(Debug)]
pub struct Settled {
    pub writer: usize,
    pub number: usize,
    pub filed: Filed,
}

#[derive(Clone, Debug)]
pub struct Archivist {
    pub number: usize,
    shelves: Vec<Shelf>,
    doubts: Vec<Option<Doubt>>,
    is_created: bool,
    last: u32,
    filings: usize,
    pub done: u64,
    pub unknown: u64,
    asked: Arc<Asked>,
    pub violation: Option<String>,
    random: StdRng,
}

/// All archivists of a run.
pub fn archivists(seed: u64) -> Vec<Archivist> {
    let asked = Arc::new(Asked::default());
    (0..ARCHIVISTS).map(|number| Archivist::new(seed, number, asked.clone())).collect()
}

/// Running archivists. They stop with the writers of the same load.
pub struct ArchivistsWorking(Vec<JoinHandle<Archivist>>);

pub fn work(
    server: &Server,
    archivists: Vec<Archivist>,
    load: &Arc<Load>,
) -> Result<ArchivistsWorking, String> {
    let authority = server.blob_authority()?;
    let run = |archivist: Archivist| tokio::spawn(archivist.run(authority.clone(), load.clone()));
    Ok(ArchivistsWorking(archivists.into_iter().map(run).collect()))
}

impl ArchivistsWorking {
    pub async fn finish(self) -> Result<Vec<Archivist>, String> {
        let mut archivists = Vec::new();
        for task in self.0 {
            archivists.push(task.await.map_err(|error| format!("an archivist ended early: {error}"))?);
        }
        Ok(archivists)
    }
}

/// Reads every container back and judges it.
pub async fn judge_all(
    server: &Server,
    archivists: &mut [Archivist],
    totals: &mut Totals,
) -> Result<Vec<Settled>, String> {
    let authority = server.blob_authority()?;
    let mut settled = Vec::new();
    for archivist in archivists {
        let judged = archivist.judge(&authority, totals).await;
        settled.extend(judged.map_err(|what| format!("container {}: {what}", archivist.container()))?);
    }
    Ok(settled)
}

/// The first complaint of an archivist about an answer.
pub fn complaint(archivists: &[Archivist]) -> Option<String> {
    let of = |archivist: &Archivist| {
        let what = archivist.violation.as_ref()?;
        Some(format!("container {}: {what}", archivist.container()))
    };
    archivists.iter().find_map(of)
}

impl Archivist {
    fn new(seed: u64, number: usize, asked: Arc<Asked>) -> Self {
        Self {
            number,
            shelves: vec![Shelf::default(); SHELVES],
            doubts: vec![None; SHELVES],
            is_created: false,
            last: 0,
            filings: 0,
            done: 0,
            unknown: 0,
            asked,
            violation: None,
            random: StdRng::seed_from_u64(seed ^ (number as u64 + 991).wrapping_mul(0x9E37_79B9_7F4A_7C15)),
        }
    }

    /// Its number among the writers of a journal: after writers and porters.
    pub fn of_journal(number: usize) -> Option<usize> {
        number.checked_sub(WRITERS + PORTERS).filter(|number| *number < ARCHIVISTS)
    }

    pub fn container(&self) -> String {
        container(self.number)
    }

    pub fn asked(&self) -> Arc<Asked> {
        self.asked.clone()
    }

    async fn run(mut self, authority: String, load: Arc<Load>) -> Self {
        let mut client = BlobClient::new(&authority, &self.container());
        let mut unknown = 0;
        while self.violation.is_none() && unknown < UNKNOWN_MAX && !load.stop.load(Ordering::Relaxed) {
            if !self.is_created {
                match client.create().await {
                    Some(201 | 409) => self.is_created = true,
                    _ => unknown += 1,
                }
                continue;
            }
            let filing = self.next();
            let injected = load.rule.as_ref().map_or(0, |rule| rule.injected());
            let filed = self.send(&mut client, &filing, load.journal.as_ref()).await;
            if load.fault_is_final && injected > 0 && matches!(filed, Filed::Done | Filed::Taken(_)) {
                self.violation =
                    Some(format!("{filing:?} was sent after a failed sync and was acknowledged"));
            }
            load.filings.fetch_add(1, Ordering::Relaxed);
            unknown += usize::from(filed == Filed::Unknown);
            if filed == Filed::Unknown && !load.persist {
                break;
            }
            if load.journal.is_some() {
                sleep(RECORDED_PAUSE).await;
            }
        }
        self
    }

    fn number(&mut self) -> u32 {
        self.last += 1;
        self.last
    }

    fn length(&mut self) -> u32 {
        let roll = self.random.random_range(0..100);
        let lengths = LENGTHS.iter().find(|(up_to, ..)| roll < *up_to);
        lengths.map_or(PIECE_BYTES_MIN, |(_, from, to)| self.random.random_range(*from..*to))
    }

    /// Something that the service does, on a blob that is not in doubt.
    fn next(&mut self) -> Filing {
        loop {
            let shelf = self.random.random_range(0..SHELVES);
            if self.doubts[shelf].is_some() {
                // At most as many are in doubt as may be unknown, and there are more.
                continue;
            }
            if let Some(what) = self.choose(shelf) {
                return Filing { shelf, what };
            }
        }
    }

    fn choose(&mut self, at: usize) -> Option<What> {
        let shelf = self.shelves[at].clone();
        let roll = self.random.random_range(0..100);
        let is_there = shelf.blob.is_some();
        let time = shelf.snapshots.first().and_then(|snapshot| snapshot.time.clone());
        match roll {
            0..7 if is_there && shelf.snapshots.len() < SNAPSHOTS_MAX => return Some(What::Snapshot),
            7..12 => return time.map(|time| What::DeleteSnapshot { time }),
            12..17 if is_there || !shelf.blocks.is_empty() => return Some(What::Delete),
            17..21 if is_there && shelf.lease.is_none() => {
                return Some(What::Acquire { number: self.number() });
            }
            21..27 if shelf.lease.is_some() => return Some(What::Release),
            27..30 if shelf.lease.is_some() => return Some(What::Trespass { number: self.number() }),
            30..40 => {
                let from = self.random.random_range(0..SHELVES);
                let is_source = kind(from) == kind(at) && from != at && self.doubts[from].is_none();
                let version = self.shelves[from].blob.clone().filter(|_| is_source)?;
                return Some(What::Copy { from, version });
            }
            _ => {}
        }
        let (number, length) = (self.number(), self.length());
        Some(match kind(at) {
            Kind::Block if roll < 60 => What::Put { number, length },
            Kind::Block if roll < 84 => {
                What::PutBlock { block: self.random.random_range(0..BLOCKS_MAX), number, length }
            }
            Kind::Block => {
                let ids = shelf.block_ids();
                let some = self.random.random_range(1..=usize::from(BLOCKS_MAX));
                let mut pick = || ids.get(self.random.random_range(0..ids.len().max(1))).copied();
                let blocks: Option<Vec<u8>> = (0..some).map(|_| pick()).collect();
                What::Commit { number, blocks: blocks? }
            }
            Kind::Append => match &shelf.blob {
                Some(blob) if blob.pieces.len() < APPENDS_MAX && roll < 95 => {
                    What::Append { number, length: length.min(4_000_000) }
                }
                _ => What::CreateAppend { number },
            },
            Kind::Page if !is_there || roll > 97 => What::CreatePages { number },
            Kind::Page => {
                let count =
                    1 + self.random.random_range(0..SLOTS_WRITTEN_MAX) / self.random.random_range(1..12);
                let first = self.random.random_range(0..=SLOTS - count);
                let number = if roll > 90 { 0 } else { number };
                What::WritePages { number, first, count }
            }
        })
    }

    async fn send(
        &mut self,
        client: &mut BlobClient,
        filing: &Filing,
        journal: Option<&JournalWriter>,
    ) -> Filed {
        let (writer, number) = (WRITERS + PORTERS + self.number, self.filings);
        if let Some(journal) = journal {
            journal.sent(writer, number, filing);
        }
        let before = self.shelves[filing.shelf].clone();
        self.begin(filing);
        let answer = filing.send(client, self.number, &before).await;
        let filed = filing.understand(answer.as_ref()).unwrap_or_else(|what| {
            self.violation.get_or_insert(what);
            Filed::Unknown
        });
        // What becomes of a filing without an answer is recorded when somebody has looked.
        if let Some(journal) = journal.filter(|_| filed != Filed::Unknown) {
            journal.answered(writer, number, &filed);
        }
        self.hear(filing, &filed);
        filed
    }

    /// A filing was sent.
    pub fn begin(&mut self, filing: &Filing) {
        // A journal begins after the container is there.
        self.is_created = true;
        if let What::Put { number, .. }
        | What::PutBlock { number, .. }
        | What::Commit { number, .. }
        | What::CreateAppend { number }
        | What::Append { number, .. }
        | What::CreatePages { number }
        | What::WritePages { number, .. }
        | What::Acquire { number }
        | What::Trespass { number } = filing.what
        {
            self.last = self.last.max(number);
        }
        let after = filing.apply(&self.shelves[filing.shelf]);
        if filing.changes_content() {
            self.asked.note(self.number, filing.shelf, &after);
        }
        self.doubts[filing.shelf] = Some(Doubt { number: self.filings, after });
        self.filings += 1;
    }

    /// A filing was answered, or never will be.
    pub fn hear(&mut self, filing: &Filing, filed: &Filed) {
        let doubt = &mut self.doubts[filing.shelf];
        match filed {
            Filed::Unknown => self.unknown += 1,
            Filed::Refused(_) => *doubt = None,
            Filed::Done | Filed::Taken(_) => {
                self.done += 1;
                if let Some(Doubt { mut after, .. }) = doubt.take() {
                    if let (Filed::Taken(time), Some(last)) = (filed, after.snapshots.last_mut()) {
                        last.time = Some(time.clone());
                    }
                    self.shelves[filing.shelf] = after;
                }
            }
        }
    }

    /// Uploads to which nothing was added for a week are gone.
    pub fn forget_uploads(&mut self) {
        let doubts = self.doubts.iter_mut().flatten().map(|doubt| &mut doubt.after);
        self.shelves.iter_mut().chain(doubts).for_each(|shelf| shelf.blocks.clear());
    }

    /// Looks at everything that is in the container. What was in doubt is known afterwards.
    async fn judge(&mut self, authority: &str, totals: &mut Totals) -> Result<Vec<Settled>, String> {
        let mut settled = Vec::new();
        if !self.is_created {
            return Ok(settled);
        }
        let writer = WRITERS + PORTERS + self.number;
        let mut client = BlobClient::new(authority, &self.container());
        let mut listed = client.list().await?;
        for at in 0..SHELVES {
            let name = blob_name(at);
            let listed = listed.remove(&name).unwrap_or_default();
            let about = |what: String| format!("blob {name}: {what}");
            let seen = client.observe(&name, &listed, kind(at) == Kind::Block).await.map_err(about)?;
            totals.blobs += seen.snapshots.len() as u64 + 1;
            let doubt = self.doubts[at].take();
            let Err(what) = self.shelves[at].compare(self.number, &seen) else {
                settled.extend(doubt.map(|doubt| Settled {
                    writer,
                    number: doubt.number,
                    filed: Filed::Refused(0),
                }));
                continue;
            };
            let Some(Doubt { number, mut after }) = doubt else { return Err(about(what)) };
            if let Err(neither) = after.compare(self.number, &seen) {
                return Err(about(format!(
                    "{what}; or, if the last request without an answer was done: {neither}"
                )));
            }
            let is_told = after.snapshots.iter().all(|snapshot| snapshot.time.is_some());
            after.learn(&seen);
            let time = after.snapshots.last().and_then(|snapshot| snapshot.time.clone());
            let filed = time.filter(|_| !is_told).map_or(Filed::Done, Filed::Taken);
            settled.push(Settled { writer, number, filed });
            self.shelves[at] = after;
            totals.unknown_done += 1;
        }
        match listed.keys().next() {
            None => Ok(settled),
            Some(name) => Err(format!("blob {name} was never put")),
        }
    }
}

pub fn container(number: usize) -> String {
    format!("archive-{number}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shelf::Observed;

    fn archivist() -> Archivist {
        Archivist::new(1, 0, Arc::default())
    }

    #[test]
    fn a_filing_without_an_answer_is_done_or_not() {
        let mut archivist = archivist();
        let put = |number| Filing { shelf: 0, what: What::Put { number, length: 100 } };
        archivist.begin(&put(1));
        archivist.hear(&put(1), &Filed::Done);
        assert_eq!(archivist.doubts[0], None);
        let stored = archivist.shelves[0].blob.clone();
        archivist.begin(&put(2));
        archivist.hear(&put(2), &Filed::Unknown);
        assert_eq!(archivist.shelves[0].blob, stored);
        let doubt = archivist.doubts[0].clone().and_then(|doubt| doubt.after.blob);
        assert_eq!(doubt.map(|version| version.number), Some(2));
        assert!(archivist.asked.has(0, 0, &(2, vec![(2, 100)])));
        assert!(!archivist.asked.has(0, 0, &(2, vec![(1, 100)])), "a mix of two versions");
    }

    #[test]
    fn a_commit_takes_the_latest_block_and_drops_the_others() {
        let mut archivist = archivist();
        let mut file = |what| {
            let filing = Filing { shelf: 0, what };
            archivist.begin(&filing);
            archivist.hear(&filing, &Filed::Done);
        };
        file(What::PutBlock { block: 1, number: 1, length: 50 });
        file(What::Commit { number: 2, blocks: vec![1] });
        file(What::PutBlock { block: 2, number: 3, length: 60 });
        file(What::PutBlock { block: 3, number: 4, length: 70 });
        file(What::Commit { number: 5, blocks: vec![2, 1, 2] });
        let shelf = &archivist.shelves[0];
        let name = shelf.blob.as_ref().map(crate::shelf::Version::name);
        assert_eq!(name, Some((5, vec![(3, 60), (1, 50), (3, 60)])));
        assert_eq!(shelf.blocks.len(), 0);
        assert!(shelf.compare(0, &Observed::default()).is_err());
    }

    #[test]
    fn every_choice_can_be_made() {
        let mut archivist = archivist();
        let mut kinds = HashSet::new();
        for _ in 0..5000 {
            let filing = archivist.next();
            kinds.insert(std::mem::discriminant(&filing.what));
            archivist.begin(&filing);
            let time = archivist.filings.to_string();
            let filed = match filing.what {
                What::Snapshot => Filed::Taken(time),
                What::Trespass { .. } => Filed::Refused(412),
                _ => Filed::Done,
            };
            archivist.hear(&filing, &filed);
        }
        assert_eq!(kinds.len(), 14);
    }
}
