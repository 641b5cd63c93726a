//! Power cuts while a store of format 1 is upgraded.
//!
//! The server upgrades such a store when it starts. One start, and the stop after it, is recorded; then the power is
//! cut at every point of the recording. The next start must finish the upgrade: the store has format 2, and the
//! server gives the answers that were recorded when version 0.1.0 wrote the store. They have every entity with its
//! ETag, every table, every stored access policy and the service properties of both accounts.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use common::ServiceKind;
use connection::{Client, Endpoint, Target, UnsignedRequest};
use rand::seq::SliceRandom as _;
use serde::Deserialize;

use crate::disk::{Disk, Laws};
use crate::faults;
use crate::journal::{self, Kind, Record};
use crate::lab::{self, Lab};
use crate::power;
use crate::record::{self, Recording};
use crate::request::ANSWER_TIME_MAX;
use crate::server::{Launch, Server};
use crate::totals::Totals;

/// The store that `scripts/format-fixture` made with version 0.1.0, seen from the repository's root, where `crash/run` starts the
/// lab.
pub const FIXTURE: &str = "crates/engine-embedded/tests/fixtures/format-1";

const FORMAT_AFTER: &str = "partita-store 2\n";
/// What the data directory may have once the upgrade is finished and the server has stopped.
const ENTRIES_AFTER: [&str; 5] = ["FORMAT", "LOCK", "committed", "db", "content"];

/// A store of format 1, and the recorded answers of its server.
#[derive(Debug)]
pub struct Fixture {
    store: PathBuf,
    recorded: Recorded,
}

#[derive(Debug, Deserialize)]
struct Recorded {
    /// With their keys.
    accounts: BTreeMap<String, String>,
    answers: Vec<RecordedAnswer>,
}

#[derive(Debug, Deserialize)]
struct RecordedAnswer {
    account: String,
    /// With the query.
    path: String,
    accept: String,
    body: String,
}

/// Which cuts to make.
#[derive(Clone, Copy, Debug)]
pub struct Cuts {
    pub times: usize,
    pub points: Option<usize>,
    pub only: Option<usize>,
}

impl Fixture {
    pub fn read(store: &Path) -> Result<Self, String> {
        let path = store.with_extension("answers.json");
        let failed = |error: &dyn std::fmt::Display| format!("can't read {}: {error}", path.display());
        let text = std::fs::read_to_string(&path).map_err(|error| failed(&error))?;
        let recorded = serde_json::from_str(&text).map_err(|error| failed(&error))?;
        Ok(Self { store: store.to_owned(), recorded })
    }

    /// The arguments of a server that serves its accounts.
    fn arguments(&self) -> Vec<String> {
        let accounts = self.recorded.accounts.iter();
        accounts.flat_map(|(name, key)| ["--account".to_owned(), format!("{name}:{key}")]).collect()
    }

    fn launch(&self, lab: &Lab, data: &Path) -> Launch {
        Launch { arguments: self.arguments(), ..lab.launch(data) }
    }

    /// Asks a server for everything that was recorded.
    async fn compare(&self, server: &Server, totals: &mut Totals) -> Result<(), String> {
        let authority = server.authority()?;
        for expected in &self.recorded.answers {
            let RecordedAnswer { account, path, accept, body } = expected;
            let key = self.recorded.accounts.get(account);
            let key = key.ok_or_else(|| format!("the fixture has no key of account {account}"))?;
            let endpoint = Endpoint::parse(&format!(
                "AccountName={account};AccountKey={key};TableEndpoint=http://{authority}/{account}"
            ))
            .map_err(|error| error.to_string())?;
            let mut client =
                Client::new(Arc::new(Target { service: ServiceKind::Table, endpoint, tls: None }));
            let (path, query) = path.split_once('?').unwrap_or((path, ""));
            let headers = &format!("Accept: {accept}\r\n");
            let request = UnsignedRequest { method: "GET", path, query, headers, body: None };
            let sent = client.send(request, Instant::now());
            let answer = match tokio::time::timeout(ANSWER_TIME_MAX, sent).await {
                Err(_) => return Err(format!("no answer to {path} within {ANSWER_TIME_MAX:?}")),
                Ok(Err(error)) => return Err(error.to_string()),
                Ok(Ok(answer)) => answer,
            };
            let found = String::from_utf8_lossy(answer.body).replace(&authority, "HOST");
            if answer.status != 200 || found != *body {
                return Err(format!(
                    "{account} {path} {query} is answered with {} {}; version 0.1.0 gave {}",
                    answer.status,
                    shortened(&found),
                    shortened(body)
                ));
            }
            totals.rows_read += found.matches("\"odata.etag\"").count() as u64;
        }
        Ok(())
    }
}

/// Starts the server on a copy of the fixture and stops it again. Returns the journal.
pub async fn record(lab: &Lab, fixture: &Fixture) -> Result<PathBuf, String> {
    let data = lab.directory("recorded")?;
    let before = Disk::at_rest(&fixture.store)?;
    before.write(&data)?;
    let recording = Recording::new(lab, &data, "journal", &faults::Fault::NONE)?;
    let recording = recording.with_arguments(&fixture.arguments());
    let server = recording.start()?;
    fixture.compare(&server, &mut Totals::default()).await?;
    server.stop()?;
    record::compare(&recording.journal, before, &data)?;
    finished(lab, &data)?;
    Ok(recording.journal)
}

pub async fn run(lab: &Lab, fixture: &Fixture, journal: &Path, cuts: Cuts) -> Result<Totals, String> {
    let mut totals = Totals::new("power during an upgrade", lab.seed);
    let began = Instant::now();
    let bytes = std::fs::read(journal);
    let bytes = bytes.map_err(|error| format!("can't read {}: {error}", journal.display()))?;
    let records = journal::read(&bytes)?;
    let points = points(&records);
    let chosen = chosen(lab, points.len(), cuts.points);
    println!("upgrade: {} records, {} points, {} of them cut", records.len(), points.len(), chosen.len());
    for time in 0..cuts.times {
        let (mut disk, mut at) = (Disk::at_rest(&fixture.store)?, 0);
        for index in &chosen {
            let (number, point) = (time * points.len() + index, points[*index]);
            if cuts.only.is_some_and(|only| only != number) {
                continue;
            }
            if lab.is_over() {
                break;
            }
            for record in &records[at..point] {
                disk.apply(record)?;
            }
            at = point;
            let place = power::describe(&disk, &records, point);
            let (laws, seen) = one_cut(lab, fixture, &disk, number, &mut totals).await?;
            let which = format!("cut {number} after record {point} ({place}), {laws:?}");
            match seen {
                Ok(()) => println!("upgrade: {which}: as it must be"),
                Err(what) => {
                    println!("upgrade: {which}: VIOLATION: {what}");
                    totals.violations.push(lab.violation(number as u64, format!("{which}: {what}")));
                }
            }
        }
    }
    totals.seconds = began.elapsed().as_secs();
    Ok(totals)
}

/// The rules of the cut; the inner error says what is wrong after the next start.
async fn one_cut(
    lab: &Lab,
    fixture: &Fixture,
    disk: &Disk<'_>,
    number: usize,
    totals: &mut Totals,
) -> Result<(Laws, Result<(), String>), String> {
    totals.rounds += 1;
    totals.cuts += 1;
    let image = lab.directory("image")?;
    let (laws, mut random) = power::cut(disk, lab.seed, number, &image)?;
    let second = number.is_multiple_of(power::SECOND_CUT);
    if second {
        power::cut_recovery(lab, &image, &fixture.arguments(), &mut random)?;
        totals.cuts += 1;
    }
    let seen = look(lab, fixture, &image, totals).await;
    if seen.is_err() {
        let kept = lab.directory(&format!("cut-{number}"))?;
        if second {
            let renamed = std::fs::rename(lab.path("image-kept"), &kept);
            renamed.map_err(|error| format!("can't keep {}: {error}", kept.display()))?;
        } else {
            // The same image again, as it was before the server was started on it.
            power::cut(disk, lab.seed, number, &kept)?;
        }
    }
    Ok((laws, seen))
}

/// Starts the server on an image, asks it for everything, and stops it.
async fn look(lab: &Lab, fixture: &Fixture, image: &Path, totals: &mut Totals) -> Result<(), String> {
    let server = lab::start(&fixture.launch(lab, image), totals)?;
    fixture.compare(&server, totals).await?;
    server.stop()?;
    finished(lab, image)
}

/// Whether a store that is not open is a sound one of format 2, with nothing left of the upgrade.
fn finished(lab: &Lab, data: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("can't read {}: {error}", data.display());
    let format = std::fs::read_to_string(data.join("FORMAT")).map_err(failed)?;
    if format != FORMAT_AFTER {
        return Err(format!("FORMAT is {format:?} after the upgrade"));
    }
    for entry in std::fs::read_dir(data).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if !ENTRIES_AFTER.iter().any(|expected| name == *expected) {
            return Err(format!("{} is left after the upgrade", name.display()));
        }
    }
    let check = Command::new(&lab.binary).args(["check", "--data"]).arg(data).output();
    let check = check.map_err(|error| format!("can't run {}: {error}", lab.binary.display()))?;
    let said = String::from_utf8_lossy(&check.stdout);
    if check.status.success() && said.contains("Sound.") {
        return Ok(());
    }
    Err(format!("partita check: {}: {said}{}", check.status, String::from_utf8_lossy(&check.stderr)))
}

/// The numbers of the records to cut after: all except RocksDB's own messages, which are never read back.
fn points(records: &[Record<'_>]) -> Vec<usize> {
    let mut messages = HashSet::new();
    let mut points = vec![0];
    for (index, record) in records.iter().enumerate() {
        let handle = (record.process, record.handle);
        if record.kind == Kind::Open && record.path.starts_with("db/LOG") {
            messages.insert(handle);
        }
        if !(record.kind == Kind::Write && messages.contains(&handle)) {
            points.push(index + 1);
        }
    }
    points
}

/// The indexes of `count` points, in order.
fn chosen(lab: &Lab, points: usize, count: Option<usize>) -> Vec<usize> {
    let mut indexes: Vec<usize> = (0..points).collect();
    if let Some(count) = count {
        indexes.shuffle(&mut lab.random());
        indexes.truncate(count);
        indexes.sort_unstable();
    }
    indexes
}

fn shortened(text: &str) -> String {
    const CHARACTERS_MAX: usize = 300;
    text.chars().take(CHARACTERS_MAX).collect()
}
