//! Load through several front ends of one store, while nodes fail, and then the judgement.
//!
//! This starts and stops nothing; the caller does that meanwhile (`cassandra/rounds`). What was acknowledged through
//! any front end must be what every front end shows, during the load and after it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use common::ServiceKind;
use connection::{Client, Endpoint, Target};
use serde::Serialize;
use tokio::time::sleep;

use crate::clerk::{Clerk, Counts, Office};
use crate::gaps::{Service, Times};
use crate::ledger::Found;
use crate::operation::{Operation, Outcome};
use crate::request::{self, Failure, ReadFailure};

const POLL: Duration = Duration::from_millis(100);
/// Without failures, every read is answered within this time.
const PATIENCE: Duration = Duration::from_secs(90);
const READ_AGAIN: Duration = Duration::from_millis(500);
/// Front ends may show different outcomes of an operation in doubt while it is still in flight.
const COMPARISONS: usize = 4;
const COMPARE_AGAIN: Duration = Duration::from_secs(5);

#[derive(Args, Debug)]
pub struct EndpointsCommand {
    /// A front end; if given several times, every client uses all of them
    #[arg(
        long,
        value_name = "TEXT",
        required = true,
        env = "PARTITA_LAB_CONNECTION_STRING",
        hide_env_values = true
    )]
    connection_string: Vec<String>,
    /// End the load and judge once this file is gone [default: after --seconds]
    #[arg(long, value_name = "FILE")]
    r#while: Option<PathBuf>,
    #[arg(long, value_name = "NUMBER", default_value_t = 6)]
    clients: usize,
    /// A client closes its connection after this time without an answer [default: no answer for a minute is a
    /// violation]
    #[arg(long, value_name = "SECONDS")]
    give_up: Option<u64>,
    /// Half of all writes are to tables that are created, dropped and created again, instead of one in twenty
    #[arg(long)]
    tables: bool,
    /// Every front end must acknowledge a write in the last seconds of the load
    #[arg(long, value_name = "SECONDS")]
    served_at_end: Option<u64>,
}

/// What a run did and found.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    seed: u64,
    load_seconds: f64,
    judging_seconds: f64,
    #[serde(flatten)]
    counts: Counts,
    /// Of the unknown ones, those that were found done.
    unknown_done: usize,
    unknown_kinds: std::collections::BTreeMap<String, u64>,
    rows_judged: usize,
    services: Vec<Service>,
    violation: Option<String>,
}

pub async fn run(command: &EndpointsCommand, seconds: u64, seed: u64) -> Result<Report, String> {
    let target = |text: &String| {
        let endpoint = Endpoint::parse(text).map_err(|error| error.to_string())?;
        let connector = || connection::connector(None).map_err(|error| error.to_string());
        let tls = if endpoint.tls { Some(connector()?) } else { None };
        Ok(Arc::new(Target { service: ServiceKind::Table, endpoint, tls }))
    };
    let targets = command.connection_string.iter().map(target).collect::<Result<Vec<_>, String>>()?;
    let office = Arc::new(Office {
        targets,
        // The store may have tables of another run.
        prefix: format!("Lab{:08x}", (seed ^ rand::random::<u64>()) as u32),
        give_up: command.give_up.map(Duration::from_secs),
        brief_percent: if command.tables { 50 } else { 5 },
        stop: AtomicBool::new(false),
        times: Mutex::new(Times::start()),
    });
    create_shared(&office).await?;
    *times(&office) = Times::start();
    let clerks: Vec<_> = (0..command.clients)
        .map(|number| tokio::spawn(Clerk::new(office.clone(), seed, number).run()))
        .collect();
    let began = times(&office).began();
    let deadline = began + Duration::from_secs(seconds);
    while Instant::now() < deadline
        && command.r#while.as_ref().is_none_or(|file| file.exists())
        && !clerks.iter().all(tokio::task::JoinHandle::is_finished)
    {
        sleep(POLL).await;
    }
    let load_time = began.elapsed();
    office.stop.store(true, Ordering::Relaxed);
    let mut ended = Vec::new();
    for clerk in clerks {
        ended.push(clerk.await.map_err(|error| format!("a client ended early: {error}"))?);
    }
    let mut report = Report { seed, load_seconds: load_time.as_secs_f64(), ..Report::default() };
    report.services = times(&office).services(office.targets.len(), load_time);
    for clerk in &ended {
        report.add(clerk);
    }
    if let Some(seconds) = command.served_at_end {
        report.require_writes_at_end(seconds);
    }
    if report.violation.is_none() {
        let since = Instant::now();
        report.violation = judge(&office, &ended, &mut report).await.err();
        report.judging_seconds = since.elapsed().as_secs_f64();
    }
    if report.violation.is_none() {
        drop_tables(&office).await;
    }
    Ok(report)
}

fn times(office: &Office) -> std::sync::MutexGuard<'_, Times> {
    office.times.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn create_shared(office: &Office) -> Result<(), String> {
    let target = office.targets.first().ok_or("it takes at least one endpoint")?;
    let create = Operation::Create { table: office.shared_table() };
    let (mut client, deadline, mut unknown) = (Client::new(target.clone()), Instant::now() + PATIENCE, false);
    loop {
        let outcome = request::send(&mut client, 0, 0, &create).await;
        match outcome {
            Ok(Outcome::Done(_)) => return Ok(()),
            // Only this run uses the name, so the unanswered attempt has created the table.
            Ok(Outcome::Refused(409)) if unknown => return Ok(()),
            Ok(Outcome::Unknown(_)) if Instant::now() < deadline => unknown = true,
            Ok(Outcome::TurnedAway(_)) | Err(Failure::NotSent) if Instant::now() < deadline => {}
            other => return Err(format!("can't create the table {}: {other:?}", office.shared_table())),
        }
        sleep(READ_AGAIN).await;
    }
}

/// Reads everything through every front end. All must show the same, and it must be what was acknowledged.
async fn judge(office: &Office, clerks: &[Clerk], report: &mut Report) -> Result<(), String> {
    let mut clients: Vec<Client> = office.targets.iter().cloned().map(Client::new).collect();
    for (table, place) in clerks.iter().flat_map(|clerk| clerk.ledger.places_in_doubt()) {
        // A read of one row makes the store finish or discard an unfinished operation.
        look(&mut clients[0], async |client| request::get(client, table, &place).await).await?;
    }
    for comparison in 1..=COMPARISONS {
        let mut all: Vec<Found> = Vec::new();
        for client in &mut clients {
            let found = read_all(client, &office.prefix).await?;
            report.unknown_done = 0;
            for clerk in clerks {
                report.unknown_done += clerk.ledger.judge(&clerk.tables(), &office.shared_table(), &found)?;
            }
            all.push(found);
        }
        report.rows_judged = all.iter().flat_map(Found::values).map(Vec::len).sum();
        let Some(other) = all.iter().position(|found| *found != all[0]) else { return Ok(()) };
        if comparison == COMPARISONS {
            return Err(format!("endpoint {other} does not show the same as endpoint 0"));
        }
        sleep(COMPARE_AGAIN).await;
    }
    Ok(())
}

async fn read_all(client: &mut Client, prefix: &str) -> Result<Found, String> {
    let mut found = Found::new();
    let tables = look(client, async |client| request::table_names(client).await).await?;
    for table in tables.into_iter().filter(|table| table.starts_with(prefix)) {
        let rows = look(client, async |client| request::scan(client, &table).await).await?;
        found.insert(table, rows);
    }
    Ok(found)
}

/// Repeats a read until it is answered.
async fn look<T>(
    client: &mut Client,
    read: impl AsyncFn(&mut Client) -> Result<T, ReadFailure>,
) -> Result<T, String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match read(client).await {
            Ok(seen) => return Ok(seen),
            Err(ReadFailure::Unanswered(_)) if Instant::now() < deadline => sleep(READ_AGAIN).await,
            Err(failure) => return Err(failure.into()),
        }
    }
}

/// Drops the tables of this run, because the store may be used again. A table that stays does no harm.
async fn drop_tables(office: &Office) {
    let Some(target) = office.targets.first() else { return };
    let mut client = Client::new(target.clone());
    let Ok(tables) = request::table_names(&mut client).await else { return };
    for table in tables.into_iter().filter(|table| table.starts_with(&office.prefix)) {
        if let Err(failure) = request::send(&mut client, 0, 0, &Operation::Drop { table }).await {
            println!("endpoints: a table of this run could not be dropped: {failure:?}");
        }
    }
}

impl Report {
    pub fn is_good(&self) -> bool {
        self.violation.is_none()
    }

    fn add(&mut self, clerk: &Clerk) {
        let (all, of) = (&mut self.counts, &clerk.counts);
        all.acknowledged += of.acknowledged;
        all.refused += of.refused;
        all.turned_away += of.turned_away;
        all.unknown += of.unknown;
        all.not_sent += of.not_sent;
        all.reads += of.reads;
        all.reads_unanswered += of.reads_unanswered;
        all.rows_read += of.rows_read;
        for (kind, count) in &clerk.unknown {
            *self.unknown_kinds.entry(kind.clone()).or_default() += count;
        }
        if self.violation.is_none() {
            self.violation.clone_from(&clerk.violation);
        }
    }

    /// Does not replace an earlier violation.
    fn require_writes_at_end(&mut self, seconds: u64) {
        let since = self.load_seconds - seconds as f64;
        let silent =
            self.services.iter().filter(|service| service.last_write.is_none_or(|last| last < since));
        let silent: Vec<String> = silent.map(Service::name).collect();
        if !silent.is_empty() && self.violation.is_none() {
            self.violation =
                Some(format!("no write was acknowledged in the last {seconds} s at {}", silent.join(", ")));
        }
    }

    pub fn print(&self) {
        let counts = &self.counts;
        println!(
            "ledger: {:.0} s: {} writes acknowledged, {} refused, {} turned away, {} not sent, {} unknown of which {} \
             were done; {} reads of {} rows right, {} unanswered; {} rows judged in {:.1} s",
            self.load_seconds,
            counts.acknowledged,
            counts.refused,
            counts.turned_away,
            counts.not_sent,
            counts.unknown,
            self.unknown_done,
            counts.reads,
            counts.rows_read,
            counts.reads_unanswered,
            self.rows_judged,
            self.judging_seconds
        );
        for (kind, count) in &self.unknown_kinds {
            println!("  unknown {count} times: {kind}");
        }
        for service in &self.services {
            let (write, read) = (service.longest_without_write, service.longest_without_read);
            println!(
                "  {}: {} writes, longest gap {:.1} s at {:.1} s, {} s without; {} reads, longest gap {:.1} s at {:.1} s, \
                 {} s without",
                service.name(),
                service.writes,
                write.seconds,
                write.began,
                service.seconds_without_write,
                service.reads,
                read.seconds,
                read.began,
                service.seconds_without_read
            );
        }
        if let Some(violation) = &self.violation {
            println!("\nVIOLATION: {violation}");
        }
    }

    pub fn write_json(&self, path: &std::path::Path) -> Result<(), String> {
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        std::fs::write(path, text + "\n").map_err(|error| format!("can't write {}: {error}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gaps::Kind;

    #[test]
    fn an_endpoint_that_acknowledges_nothing_at_the_end_is_a_violation() {
        let mut times = Times::start();
        times.answered(0, Kind::Write);
        times.answered(1, Kind::Write);
        // Both are answered at the beginning of a load of 20 s.
        let services = times.services(2, Duration::from_secs(20));
        let report = || Report { load_seconds: 20.0, services: services.clone(), ..Report::default() };
        let (mut served, mut silent) = (report(), report());
        served.require_writes_at_end(20);
        assert_eq!(served.violation, None);
        silent.services[2].last_write = None;
        silent.require_writes_at_end(20);
        let violation = silent.violation.unwrap();
        assert!(violation.ends_with("at endpoint 1"), "{violation}");
        let mut late = report();
        late.require_writes_at_end(10);
        assert!(late.violation.is_some_and(|violation| violation.contains("endpoint 0, endpoint 1")));
    }
}
