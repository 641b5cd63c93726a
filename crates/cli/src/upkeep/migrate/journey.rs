//! A move under way: which snapshot the target holds, and the passes that bring it to a later one.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use migrate::{MigrationProgress, PassReport, Shared, VerifyReport};
use model::AccountName;

use super::error::{MigrateError, Result};
use super::source::Source;
use super::state::{Held, State};
use crate::upkeep::marks::{ARRIVING, Mark};
use crate::upkeep::progress::Progress;

/// A pass that changed no more is the last one before the end; what is left takes a moment.
const SMALL: u64 = 1000;
/// If passes do not get small, further ones won't.
const PASSES_MAX: u32 = 8;

pub struct Journey {
    pub source: Box<dyn Source>,
    target: Shared,
    state: State,
    /// Accounts asked for; none for all there are.
    asked: Vec<String>,
    replace: bool,
    /// Where and what to note before the target is changed.
    mark: Option<(PathBuf, Mark)>,
    /// What the target holds.
    held: Option<Snapshot>,
    passes: u32,
}

struct Snapshot {
    engine: Shared,
    number: u64,
    accounts: Vec<AccountName>,
    /// Rather than a look at what may change while it is looked at.
    is_kept: bool,
}

impl Journey {
    pub async fn new(
        source: Box<dyn Source>,
        target: Shared,
        state: State,
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
            // If it can't be read any more, the target is compared.
            match journey.source.reopen(&directory).await {
                Ok(engine) => {
                    let accounts = journey.accounts(&engine).await?;
                    journey.held = Some(Snapshot { engine, number, accounts, is_kept: true });
                }
                Err(error) => eprintln!("can't use the snapshot of the previous run: {error}"),
            }
        }
        Ok(journey)
    }

    /// Has this noted in the target's directory before anything there is changed.
    pub fn mark_target(&mut self, directory: PathBuf, mark: Mark) {
        self.mark = Some((directory, mark));
    }

    /// Passes until one is small, or no smaller than the one before.
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

    /// Brings the target to what the source holds now.
    pub async fn pass(&mut self) -> Result<PassReport> {
        self.passes += 1;
        let begun = Instant::now();
        let taken = self.take_snapshot().await?;
        self.claim(&taken.accounts).await?;
        if let Some((directory, mark)) = self.mark.take() {
            mark.write(&directory, ARRIVING)?;
        }
        // From here on the target is on its way from one snapshot to the other, and holds neither.
        self.state.hold(None)?;
        let known = self.held.as_ref().filter(|held| held.is_kept).map(|held| &held.engine);
        let progress = Mutex::new(Progress::new("copying"));
        let watch = |step: MigrationProgress<'_>| {
            let words = || format!("{}: {} entities, {} changed", step.table.name, step.seen, step.changed);
            show(&progress, words);
        };
        let passed = migrate::pass(&taken.engine, known, &self.target, &taken.accounts, &watch).await;
        drop(progress);
        let passed = passed?;
        if taken.is_kept {
            self.state.hold(Some(Held { snapshot: taken.number, accounts: self.asked.clone() }))?;
        }
        self.close().await;
        self.held = Some(taken);
        self.state.remove_snapshots()?;
        eprintln!(
            "pass {}: {} entities in {} tables, {} stored, {} removed, {} tables dropped, in {:.1} s",
            self.passes,
            passed.entities,
            passed.tables,
            passed.stored,
            passed.removed,
            passed.dropped_tables,
            begun.elapsed().as_secs_f64()
        );
        Ok(passed)
    }

    /// Whether the target holds what the last pass brought it.
    pub async fn verify(&mut self) -> Result<VerifyReport> {
        // A pass has been made before.
        let Some(held) = &self.held else { return Ok(VerifyReport::default()) };
        let progress = Mutex::new(Progress::new("comparing"));
        let watch = |step: MigrationProgress<'_>| {
            show(&progress, || format!("{}: {} entities", step.table.name, step.seen))
        };
        let verified = migrate::verify(&held.engine, &self.target, &held.accounts, &watch).await;
        drop(progress);
        if verified.is_err() {
            // Then it was changed by others, and the next run has to look at all of it.
            self.state.hold(None)?;
        }
        Ok(verified?)
    }

    /// Accounts of the source that were not asked for.
    pub async fn left_behind(&self) -> Result<Vec<String>> {
        let Some(held) = &self.held else { return Ok(Vec::new()) };
        let all = held.engine.list_accounts().await.map_err(MigrateError::Accounts)?;
        let left = all.iter().filter(|account| !held.accounts.contains(account));
        Ok(left.map(ToString::to_string).collect())
    }

    async fn take_snapshot(&mut self) -> Result<Snapshot> {
        let number = self.state.next_number();
        let directory = self.state.snapshot(number);
        let engine = self.source.snapshot(&directory).await?;
        let accounts = self.accounts(&engine).await?;
        let is_kept = fs::exists(&directory).unwrap_or(false);
        Ok(Snapshot { engine, number, accounts, is_kept })
    }

    /// Those asked for; or those that there are, and those that an earlier pass has found.
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

    /// Everything that the target has of these accounts will be replaced, so there must be nothing of others' in it.
    async fn claim(&mut self, accounts: &[AccountName]) -> Result<()> {
        for account in
            accounts.iter().filter(|account| !self.state.is_claimed(account.as_str())).collect::<Vec<_>>()
        {
            let is_free = self.replace || migrate::is_empty(&self.target, account).await?;
            if !is_free {
                return Err(MigrateError::Occupied { account: account.to_string() });
            }
            self.state.claim(account.as_str())?;
        }
        Ok(())
    }

    /// Until a later run goes on from here.
    pub async fn pause(mut self) {
        self.close().await;
        self.source.close().await;
        self.target.close().await;
    }

    /// Lets go of the snapshot, which may be read again.
    async fn close(&mut self) {
        if let Some(held) = self.held.take().filter(|held| held.is_kept) {
            held.engine.close().await;
        }
    }

    /// Ends it for good: source and target are let go of, and nothing is remembered.
    pub async fn end(mut self) -> Result<()> {
        self.close().await;
        self.source.close().await;
        self.target.close().await;
        self.state.forget()
    }
}

fn show(progress: &Mutex<Progress>, words: impl FnOnce() -> String) {
    // Held for the time it takes to write a line; a panic in it has said what there is to say.
    if let Ok(mut progress) = progress.lock() {
        progress.say(words);
    }
}
