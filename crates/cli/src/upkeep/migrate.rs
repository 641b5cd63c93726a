//! `partita migrate`: accounts from one store to another while they are served, and the last of it with writes refused.
//!
//! What is copied and compared is `migrate`'s. Here is the order of steps: passes over snapshots until little is left,
//! then freeze, the last pass, proof, and a mark that the old directory is no longer the one to serve.

mod error;
mod journey;
mod place;
mod source;
mod state;

use std::future::Future;
use std::io::{IsTerminal as _, Write as _, stderr, stdin};
use std::path::{Path, PathBuf};

use crate::config;
use clap::Args;
use migrate::Verified;

pub use self::error::MigrateError;
use self::error::Result;
use self::journey::Journey;
use self::place::Place;
use self::source::{Cluster, Directory, Source};
use self::state::State;
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
    let here = Place::Directory(flags.data.clone());
    let (from, to) = match (&flags.from, &flags.to) {
        (Some(from), _) => (Place::parse(from)?, here),
        (None, Some(to)) => (here, Place::parse(to)?),
        (None, None) => return Err(MigrateError::NoTarget),
    };
    if from.name() == to.name() {
        return Err(MigrateError::SamePlace { place: from.name() });
    }
    let finish = command(flags);
    let (source, state, target): (Box<dyn Source>, _, _) = match &from {
        Place::Directory(data) => {
            if let Some(moved) = marks::read(data, MOVED)? {
                return already_moved(data, &to, moved);
            }
            let source = Directory::open(data, flags.control.as_deref()).await?;
            let state = State::open(data, &to.name())?;
            (Box::new(source), state, to.open().await?)
        }
        Place::Cluster(options) => {
            let source = Cluster::new(place::open_cluster(options).await?, from.name());
            let target = to.open().await?;
            // What the move remembers lies in the one directory there is.
            (Box::new(source), State::open(&flags.data, &from.name())?, target)
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
    let verified = finish_frozen(&mut journey, from.directory(), &to).await?;
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

/// The last steps of a move that was cut short after the mark was made, which says that all was compared.
fn already_moved(data: &Path, to: &Place, moved: Mark) -> Result<String> {
    if moved.place != to.name() {
        return Err(MigrateError::MovedElsewhere { data: data.to_owned(), moved });
    }
    let (shown, Mark { place, time, .. }) = (data.display(), moved);
    State::open(data, &place)?.forget()?;
    unmark(to)?;
    Ok(format!("{shown} was moved to {place} at {time}. Serve it with:\n  {}", to.serve()))
}

/// The target is the one to serve now, also if the data had been there before and was moved away.
fn unmark(to: &Place) -> Result<()> {
    let Some(directory) = to.directory() else { return Ok(()) };
    marks::remove(directory, MOVED)?;
    Ok(marks::remove(directory, ARRIVING)?)
}

/// With writes refused from here on; accepted again if this does not come to its end.
async fn finish_frozen(journey: &mut Journey, data: Option<&Path>, to: &Place) -> Result<Verified> {
    let interrupted = interrupted();
    journey.source.freeze().await?;
    let thawed_by = journey.source.thawed_by();
    eprintln!("writes are refused from now on; if this command dies, run `{thawed_by}` to accept them again");
    let finished = tokio::select! {
        finished = last_steps(journey, data, to) => finished,
        () = interrupted => Err(MigrateError::Interrupted),
    };
    if let Err(error) = finished {
        // Before the writes, or it would be refused to serve them.
        let unmarked = data.map_or(Ok(()), |data| marks::remove(data, MOVED)).map_err(MigrateError::from);
        let thaw = unmarked.and(journey.source.thaw().await).err().map(Box::new);
        return Err(MigrateError::Unfinished { source: Box::new(error), thaw, thawed_by });
    }
    finished
}

async fn last_steps(journey: &mut Journey, data: Option<&Path>, to: &Place) -> Result<Verified> {
    if !journey.source.stands_still() {
        journey.pass().await?;
    }
    let verified = journey.verify().await?;
    // First the mark: whoever restarts the server after it is told, and before it the server is asked. A cluster's
    // servers stay frozen, restarted or not.
    if let Some(data) = data {
        Mark::new(&to.name(), &to.serve()).write(data, MOVED)?;
    }
    if !journey.source.is_still_frozen().await? {
        return Err(MigrateError::Thawed);
    }
    Ok(verified)
}

/// The command that does the same and finishes. Without the password, which its reader knows.
fn command(flags: &MigrateFlags) -> String {
    let named = |place: &String| match Place::parse(place) {
        Ok(Place::Cluster(options)) => options.to_string(),
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

fn table_lines(verified: &Verified) -> String {
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
    lines.join("\n")
}

/// Nobody to ask is a no.
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

/// Watches for signals from the call on. Only while writes are refused: before, there is nothing to put back.
fn interrupted() -> impl Future<Output = ()> {
    use tokio::signal::unix::{Signal, SignalKind, signal};
    async fn received(signal: std::io::Result<Signal>) {
        match signal {
            Ok(mut signal) => drop(signal.recv().await),
            // What can't be watched for ends the process as it does by default.
            Err(_) => std::future::pending().await,
        }
    }
    let (terminate, interrupt) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    async {
        tokio::select! {
            () = received(terminate) => {}
            () = received(interrupt) => {}
        }
    }
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
    fn the_command_to_finish_with_is_this_one_and_finish() {
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
