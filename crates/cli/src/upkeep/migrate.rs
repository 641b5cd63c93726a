//! `partita migrate`: moves accounts from one store to another while they are served. Only the last step refuses writes.
//!
//! The crate `migrate` copies and compares. This module has the order of the steps: passes over snapshots until little is
//! left, then the freeze, the last pass, the comparison, and a mark that the old directory must not be served any more.

mod error;
mod journey;
mod location;
mod source;
mod state;

use std::io::{IsTerminal as _, Write as _, stderr, stdin};
use std::path::{Path, PathBuf};

use crate::config;
use crate::stop_signal::stop_signal;
use clap::Args;
use migrate::VerifyReport;

pub use self::error::MigrateError;
use self::error::Result;
use self::journey::Journey;
use self::location::StoreLocation;
use self::source::{ClusterSource, DirectorySource, Source};
use self::state::MigrationState;
use super::marks::{self, ARRIVING, MOVED, Mark};
use super::progress::size;

#[derive(Args, Debug)]
pub struct MigrateFlags {
    /// The data directory: the source with --to, the target with --from
    #[arg(long, value_name = "DIRECTORY", env = "PARTITA_DATA", default_value = config::DATA)]
    data: PathBuf,
    /// The target: a cluster (cassandra://HOST/KEYSPACE, created by `partita store init`), or another data directory
    /// that no server uses
    #[arg(long, value_name = "STORE", conflicts_with = "from", required_unless_present = "from")]
    to: Option<String>,
    /// The source, moved into --data: a cluster, or another data directory
    #[arg(long, value_name = "STORE")]
    from: Option<String>,
    /// Move only this account; repeatable [default: all accounts that have tables or properties]
    #[arg(long = "account", value_name = "NAME")]
    accounts: Vec<String>,
    /// Finish: make the server refuse writes, copy the last changes, compare everything, mark the source as moved
    #[arg(long)]
    finish: bool,
    /// Make the target's tables of these accounts equal to the source's, and delete tables that the source lacks
    #[arg(long)]
    replace: bool,
    /// The running server's control socket, if it is not in its data directory
    #[arg(long, value_name = "SOCKET", env = "PARTITA_CONTROL")]
    control: Option<PathBuf>,
}

pub const HELP: &str = "\
Examples:
  partita migrate --data /var/lib/partita --to /srv/partita
  partita migrate --data /var/lib/partita --to /srv/partita --finish
  partita migrate --data /var/lib/partita --to cassandra://10.0.0.1,10.0.0.2/partita
  partita migrate --from cassandra://10.0.0.1/partita --data /var/lib/partita --finish

The first command copies while the server runs. You can repeat it; each run copies only what is new. The second does
the same, then makes the server refuse writes (503; reads continue), copies the last changes, compares every entity of
both stores, and marks the old directory so that nobody serves it by mistake. Then start a server on the new one.
ETags, timestamps, stored access policies and service properties stay the same. The data in the source does not change.
If anything fails, its server accepts writes again. See docs/moving.md.";

pub fn run(flags: &MigrateFlags) -> Result<String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|source| MigrateError::Threads { source })?.block_on(migrate(flags))
}

async fn migrate(flags: &MigrateFlags) -> Result<String> {
    let here = StoreLocation::Directory(flags.data.clone());
    let (from, to) = match (&flags.from, &flags.to) {
        (Some(from), _) => (StoreLocation::parse(from)?, here),
        (None, Some(to)) => (here, StoreLocation::parse(to)?),
        (None, None) => return Err(MigrateError::NoTarget),
    };
    if from.name() == to.name() {
        return Err(MigrateError::SamePlace { place: from.name() });
    }
    let finish = command(flags);
    let (source, state, target): (Box<dyn Source>, _, _) = match &from {
        StoreLocation::Directory(data) => {
            if let Some(moved) = confirmed_mark(data)? {
                return already_moved(data, &to, moved);
            }
            let source = DirectorySource::open(data, flags.control.as_deref()).await?;
            let state = MigrationState::open(data, &to.name())?;
            // Again, now that no other run is at work, which might have confirmed its mark meanwhile.
            if let Some(moved) = confirmed_mark(data)? {
                drop(state);
                return already_moved(data, &to, moved);
            }
            // A run that died before it confirmed its mark does not know whether the server was frozen to the end. The target
            // is not served either before this run has moved the rest: it is still marked.
            marks::remove(data, MOVED)?;
            (Box::new(source), state, to.open().await?)
        }
        StoreLocation::Cluster(options) => {
            let source = ClusterSource::new(location::open_cluster(options).await?, from.name());
            let target = to.open().await?;
            // The state of the move is in the target: the source has no directory.
            (Box::new(source), MigrationState::open(&flags.data, &from.name())?, target)
        }
    };
    let is_served = !source.stands_still();
    let mut journey = Journey::new(source, target, state, &flags.accounts, flags.replace).await?;
    if let Some(directory) = to.directory() {
        journey.mark_target(directory.to_owned(), Mark::new(&from.name(), &finish));
    }
    let passed = journey.approach().await?;
    let left =
        format!("{} had {} changes", if is_served { "the last pass" } else { "this pass" }, passed.changed());
    if !flags.finish && !confirm(&format!("{left}; finish now? Writes are refused meanwhile"))? {
        let compared = if is_served { None } else { Some(journey.verify().await?) };
        journey.pause().await;
        let compared = compared.map(|verified| format!("{}\n", table_lines(&verified))).unwrap_or_default();
        return Ok(format!(
            "{compared}{} holds {} entities in {} tables of {}; {left}. Finish with:\n  {finish}",
            to.name(),
            passed.entities,
            passed.tables,
            from.name()
        ));
    }
    let leaving = from.directory().map(|data| LeavingMark { data, to: &to, finish: &finish });
    let verified = finish_frozen(&mut journey, leaving).await?;
    let left = journey.left_behind().await?;
    journey.end().await?;
    unmark(&to)?;
    let mut text = format!("{}\n{} moved to {}.", table_lines(&verified), from.name(), to.name());
    if is_served {
        text.push_str(match from.directory() {
            Some(_) => " Its server refuses writes, and answers reads until you stop it.",
            None => " Its servers refuse writes, and answer reads until you stop them.",
        });
    }
    if !left.is_empty() {
        text.push_str(&format!(
            "\nNot moved, and now served from the source only with --accept-migration: {}.",
            left.join(", ")
        ));
    }
    text.push_str(&format!("\nServe it with:\n  {}", to.serve()));
    Ok(text)
}

/// The mark of a move that is complete.
fn confirmed_mark(data: &Path) -> Result<Option<Mark>> {
    Ok(marks::read(data, MOVED)?.filter(|mark| !mark.unconfirmed))
}

/// The last steps of a move that was interrupted after its mark was confirmed: everything was compared, and nothing was
/// written since.
fn already_moved(data: &Path, to: &StoreLocation, moved: Mark) -> Result<String> {
    if moved.place != to.name() {
        return Err(MigrateError::MovedElsewhere { data: data.to_owned(), moved });
    }
    let (shown, Mark { place, time, .. }) = (data.display(), moved);
    MigrationState::open(data, &place)?.forget()?;
    unmark(to)?;
    Ok(format!("{shown} was moved to {place} at {time}. Serve it with:\n  {}", to.serve()))
}

/// Allows serving the target, even if the data was there before and was moved away.
fn unmark(to: &StoreLocation) -> Result<()> {
    let Some(directory) = to.directory() else { return Ok(()) };
    marks::remove(directory, MOVED)?;
    Ok(marks::remove(directory, ARRIVING)?)
}

/// The mark of the directory that the data leaves.
#[derive(Clone, Copy)]
struct LeavingMark<'a> {
    data: &'a Path,
    to: &'a StoreLocation,
    /// The command that continues if this one dies.
    finish: &'a str,
}

impl LeavingMark<'_> {
    /// From now on no server starts on the directory.
    fn write_unconfirmed(self) -> Result<()> {
        Ok(Mark::new(&self.to.name(), self.finish).unconfirmed().write(self.data, MOVED)?)
    }

    fn confirm(self) -> Result<()> {
        Ok(Mark::new(&self.to.name(), &self.to.serve()).write(self.data, MOVED)?)
    }

    fn remove(self) -> Result<()> {
        Ok(marks::remove(self.data, MOVED)?)
    }
}

/// Refuses writes, and accepts them again if this fails. A cluster is not marked: its servers stay frozen.
async fn finish_frozen(journey: &mut Journey, mark: Option<LeavingMark<'_>>) -> Result<VerifyReport> {
    // Watched only while writes are refused: before that there is nothing to undo.
    let interrupted = stop_signal();
    journey.source.freeze().await?;
    let thawed_by = journey.source.thawed_by();
    eprintln!("writes are refused from now on; if this command dies, run `{thawed_by}` to accept them again");
    let finished = tokio::select! {
        finished = last_steps(journey, mark) => finished,
        _ = interrupted => Err(MigrateError::Interrupted),
    };
    if let Err(error) = finished {
        // The mark goes first: with it, a server would refuse to start and to accept writes.
        let unmarked = mark.map_or(Ok(()), LeavingMark::remove);
        let thaw = unmarked.and(journey.source.thaw().await).err().map(Box::new);
        return Err(MigrateError::Unfinished { source: Box::new(error), thaw, thawed_by });
    }
    finished
}

async fn last_steps(journey: &mut Journey, mark: Option<LeavingMark<'_>>) -> Result<VerifyReport> {
    if !journey.source.stands_still() {
        journey.pass().await?;
    }
    let verified = journey.verify().await?;
    // The mark comes first. A server that is restarted after it refuses to start; one that was restarted before it is no
    // longer frozen, which the next check finds. Servers of a cluster stay frozen, restarted or not.
    mark.map_or(Ok(()), LeavingMark::write_unconfirmed)?;
    if !journey.source.is_still_frozen().await? {
        return Err(MigrateError::Thawed);
    }
    // Only now, so that a run which finds this mark need not make the check, which it can't make any more.
    mark.map_or(Ok(()), LeavingMark::confirm)?;
    Ok(verified)
}

/// This command with --finish, without the password.
fn command(flags: &MigrateFlags) -> String {
    let named = |place: &String| match StoreLocation::parse(place) {
        Ok(StoreLocation::Cluster(options)) => options.to_string(),
        _ => place.clone(),
    };
    let mut words = vec![format!("partita migrate --data {}", flags.data.display())];
    words.extend(flags.to.iter().map(|to| format!("--to {}", named(to))));
    words.extend(flags.from.iter().map(|from| format!("--from {}", named(from))));
    words.extend(flags.control.iter().map(|socket| format!("--control {}", socket.display())));
    words.extend(flags.accounts.iter().map(|account| format!("--account {account}")));
    words.push("--finish".to_owned());
    words.join(" ")
}

fn table_lines(verified: &VerifyReport) -> String {
    let mut lines = Vec::new();
    for table in &verified.tables {
        let digest: String = table.digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        lines.push(format!(
            "{}: {} entities, {}, sha256 {digest}...",
            table.table.place(),
            table.entities,
            size(table.bytes)
        ));
    }
    let (tables, entities) = (verified.tables.len(), verified.entities());
    lines.push(format!("compared: {tables} tables with {entities} entities are equal on both sides"));
    if verified.objects > 0 {
        let bytes = size(verified.object_bytes);
        lines.push(format!(
            "compared: {} objects with {bytes} of blobs' content are equal too",
            verified.objects
        ));
    }
    lines.join("\n")
}

/// No terminal means no.
fn confirm(question: &str) -> Result<bool> {
    if !(stdin().is_terminal() && stderr().is_terminal()) {
        return Ok(false);
    }
    eprint!("{question} [y/N] ");
    let mut answer = String::new();
    stderr()
        .flush()
        .and_then(|()| stdin().read_line(&mut answer))
        .map_err(|source| MigrateError::NoAnswer { source })?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        flags: MigrateFlags,
    }

    #[test]
    fn the_suggested_command_is_this_one_with_finish() {
        for words in [
            "partita migrate --data /d --to /n",
            "partita migrate --data /d --from /n --control /run/c --account shop --account other",
        ] {
            let parsed = Command::try_parse_from(words.split(' ').skip(1)).ok().unwrap();
            assert_eq!(command(&parsed.flags), format!("{words} --finish"));
        }
        assert!(Command::try_parse_from(["migrate", "--data", "/d"]).is_err(), "to where?");
        assert!(Command::try_parse_from(["migrate", "--to", "/n", "--from", "/o"]).is_err());
    }
}
