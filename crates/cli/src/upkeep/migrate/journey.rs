//! A move in progress: the snapshot that the target holds, and the passes that bring the target to a later one.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use blob_service::content::ContentNaming;
use migrate::DifferenceKind::OtherContent;
use migrate::{ContentCopy, Difference, MigrationProgress, PassReport, Shared, VerifyReport};
use model::AccountName;

use super::error::{MigrateError, Result};
use super::location::OpenStore;
use super::source::Source;
use super::state::{MigrationState, TargetSnapshot};
use crate::upkeep::marks::{ARRIVING, Mark};
use crate::upkeep::progress::{ProgressLine, size};

/// After a pass with at most this many changes, the rest takes only a moment.
const SMALL: u64 = 1000;
/// If no pass was small by then, no later one will be.
const PASSES_MAX: u32 = 8;

pub struct Journey {
    pub source: Box<dyn Source>,
    target: OpenStore,
    state: MigrationState,
    /// The accounts that the command names; empty for all.
    asked: Vec<String>,
    replace: bool,
    /// The mark to write before the target is changed, and its directory.
    mark: Option<(PathBuf, Mark)>,
    /// The snapshot that the target holds.
    held: Option<Snapshot>,
    passes: u32,
}

struct Snapshot {
    store: OpenStore,
    number: u64,
    accounts: Vec<AccountName>,
    /// On disk. A cluster has no snapshots: its data may change while it is read.
    is_kept: bool,
}

impl Journey {
    pub async fn new(
        source: Box<dyn Source>,
        target: OpenStore,
        state: MigrationState,
        accounts: &[String],
        replace: bool,
    ) -> Result<Self> {
        let mut asked = accounts.to_vec();
        asked.sort();
        asked.dedup();
        if let Some(name) = asked.iter().find(|name| AccountName::parse(name).is_none()) {
            return Err(MigrateError::AccountName { name: name.clone() });
        }
        let mut journey = Self { source, target, state, asked, replace, mark: None, held: None, passes: 0 };
        if let Some(number) = journey.state.held(&journey.asked) {
            let directory = journey.state.snapshot(number);
            // If the snapshot can't be read any more, the next pass compares with the target.
            match journey.source.reopen(&directory).await {
                Ok(store) => {
                    let accounts = journey.accounts(&store.engine).await?;
                    journey.held = Some(Snapshot { store, number, accounts, is_kept: true });
                }
                Err(error) => eprintln!("can't use the snapshot of the previous run: {error}"),
            }
        }
        Ok(journey)
    }

    /// Sets the mark to write before the target is changed.
    pub fn mark_target(&mut self, directory: PathBuf, mark: Mark) {
        self.mark = Some((directory, mark));
    }

    /// Makes passes until one is small, or not smaller than the previous one.
    pub async fn approach(&mut self) -> Result<PassReport> {
        let mut last = self.pass().await?;
        while last.changed() > SMALL && self.passes < PASSES_MAX && !self.source.stands_still() {
            let before = last.changed();
            last = self.pass().await?;
            if last.changed() >= before {
                break;
            }
        }
        Ok(last)
    }

    /// Makes the target equal to the source as it is now.
    pub async fn pass(&mut self) -> Result<PassReport> {
        self.passes += 1;
        let begun = Instant::now();
        let taken = self.take_snapshot().await?;
        self.claim(&taken.accounts).await?;
        if let Some((directory, mark)) = self.mark.take() {
            mark.write(&directory, ARRIVING)?;
        }
        // During the pass the target holds neither the old snapshot nor the new one.
        self.state.hold(None)?;
        let known = self.held.as_ref().filter(|held| held.is_kept).map(|held| &held.store.engine);
        let progress = Mutex::new(ProgressLine::new("copying"));
        let watch = |step: MigrationProgress<'_>| {
            let words = || format!("{}: {} entities, {} changed", step.table.name, step.seen, step.changed);
            show(&progress, words);
        };
        let (source, target) = (&taken.store.engine, &self.target.engine);
        let content = self.content(&taken);
        let passed = migrate::pass(source, known, target, &taken.accounts, &watch, &content).await;
        drop(progress);
        let passed = passed?;
        if taken.is_kept {
            self.state.hold(Some(TargetSnapshot { snapshot: taken.number, accounts: self.asked.clone() }))?;
        }
        self.state.doubt(false)?;
        self.close().await;
        self.held = Some(taken);
        self.state.remove_snapshots()?;
        eprintln!(
            "pass {}: {} entities in {} tables, {} stored, {} removed, {} tables dropped, {} of blobs' content, in {:.1} s",
            self.passes,
            passed.entities,
            passed.tables,
            passed.stored,
            passed.removed,
            passed.dropped_tables,
            size(passed.object_bytes),
            begun.elapsed().as_secs_f64()
        );
        Ok(passed)
    }

    /// Compares the target with the snapshot of the last pass.
    pub async fn verify(&mut self) -> Result<VerifyReport> {
        // Always set: a pass comes before.
        let Some(held) = &self.held else { return Ok(VerifyReport::default()) };
        let progress = Mutex::new(ProgressLine::new("comparing"));
        let watch = |step: MigrationProgress<'_>| {
            show(&progress, || format!("{}: {} entities", step.table.name, step.seen));
        };
        let (source, target) = (&held.store.engine, &self.target.engine);
        let content = self.content(held);
        let verified = migrate::verify(source, target, &held.accounts, &watch, &content).await;
        drop(progress);
        if let Err(error) = &verified {
            // Somebody else has changed the target, so the next run must compare all of it.
            self.state.hold(None)?;
            if matches!(error, migrate::Error::Differs(Difference { found: OtherContent, .. })) {
                self.state.doubt(true)?;
            }
        }
        Ok(verified?)
    }

    /// Accounts of the source that the command did not name.
    pub async fn left_behind(&self) -> Result<Vec<String>> {
        let Some(held) = &self.held else { return Ok(Vec::new()) };
        let all = held.store.engine.list_accounts().await.map_err(MigrateError::Accounts)?;
        let left = all.iter().filter(|account| !held.accounts.contains(account));
        Ok(left.map(ToString::to_string).collect())
    }

    /// The content of a snapshot and of the target.
    fn content(&self, of: &Snapshot) -> ContentCopy {
        ContentCopy {
            source: of.store.objects.clone(),
            target: self.target.objects.clone(),
            naming: Arc::new(ContentNaming),
            is_doubted: self.state.is_doubted(),
        }
    }

    async fn take_snapshot(&mut self) -> Result<Snapshot> {
        let number = self.state.next_number();
        let directory = self.state.snapshot(number);
        let store = self.source.snapshot(&directory).await?;
        let accounts = self.accounts(&store.engine).await?;
        let is_kept = fs::exists(&directory).unwrap_or(false);
        Ok(Snapshot { store, number, accounts, is_kept })
    }

    /// The accounts that the command names; else all of the source, and those that an earlier pass found.
    async fn accounts(&self, engine: &Shared) -> Result<Vec<AccountName>> {
        let mut accounts: Vec<AccountName> = if self.asked.is_empty() {
            let found = engine.list_accounts().await.map_err(MigrateError::Accounts)?;
            found.into_iter().chain(self.state.claimed().filter_map(AccountName::parse)).collect()
        } else {
            self.asked.iter().filter_map(|name| AccountName::parse(name)).collect()
        };
        accounts.sort();
        accounts.dedup();
        Ok(accounts)
    }

    /// Refuses accounts that have data in the target already: the move would replace it.
    async fn claim(&mut self, accounts: &[AccountName]) -> Result<()> {
        for account in
            accounts.iter().filter(|account| !self.state.is_claimed(account.as_str())).collect::<Vec<_>>()
        {
            let is_free = self.replace || migrate::is_empty(&self.target.engine, account).await?;
            if !is_free {
                return Err(MigrateError::Occupied { account: account.to_string() });
            }
            self.state.claim(account.as_str())?;
        }
        Ok(())
    }

    /// Closes both stores; a later run continues.
    pub async fn pause(mut self) {
        self.close().await;
        self.source.close().await;
        self.target.engine.close().await;
    }

    /// Closes the snapshot; it can be opened again.
    async fn close(&mut self) {
        if let Some(held) = self.held.take().filter(|held| held.is_kept) {
            held.store.engine.close().await;
        }
    }

    /// Closes both stores and removes the state of the move.
    pub async fn end(mut self) -> Result<()> {
        self.close().await;
        self.source.close().await;
        self.target.engine.close().await;
        self.state.forget()
    }
}

fn show(progress: &Mutex<ProgressLine>, words: impl FnOnce() -> String) {
    // Poisoned only if writing a line panicked, which harms nothing here.
    if let Ok(mut progress) = progress.lock() {
        progress.say(words);
    }
}
