//! Clients and judge with the real server: undisturbed, killed, and behind a proxy that gives false answers.
//!
//! `PARTITA_SEED` repeats the choices of a run (not its timing), `PARTITA_ROUNDS` sets its rounds.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod liar;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use histories::judge::PLACES_MAX;
use histories::recorder::{
    self, BlobPlan, BlobSummary, Plan, QueuePlan, QueueSummary, RunPlan, Server, Summary, Target,
};
use liar::{Liar, Lie};

const OPERATIONS: usize = 40;
const CLIENTS: u32 = 6;

#[test]
fn the_answers_of_a_server_have_an_order() {
    let plan = plan(20);
    let (rounds, operations) =
        (plan.run.rounds, u64::from(CLIENTS) * OPERATIONS as u64 + plan.partitions as u64);
    let summary = run(Target::Binary { path: binary(), kills: false }, plan);
    assert_eq!((summary.totals.violations, summary.totals.undecided, summary.totals.strange), (0, 0, 0));
    assert_eq!((summary.totals.operations, summary.totals.unknown), (rounds * operations, 0));
}

#[test]
fn the_answers_of_a_killed_server_have_an_order() {
    let plan = plan(10);
    let rounds = plan.run.rounds;
    let summary = run(Target::Binary { path: binary(), kills: true }, plan);
    assert_eq!((summary.totals.violations, summary.totals.undecided, summary.totals.strange), (0, 0, 0));
    assert!(summary.totals.kills >= rounds, "{} kills", summary.totals.kills);
}

#[test]
fn a_server_that_lies_is_caught() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&binary(), directory.path()).unwrap();
    for lie in [Lie::OldAnswer, Lie::WriteNotDone, Lie::ConditionNotSent] {
        let liar = Liar::start(&server.connection_string, lie);
        let target =
            Target::Endpoints { connection_strings: vec![liar.connection_string.clone()], authority: None };
        let save = tempfile::tempdir().unwrap();
        let mut plan = plan(0);
        (plan.run.rounds, plan.run.save) = (3, save.path().to_owned());
        let summary = run(target, plan);
        assert_eq!(summary.totals.strange, 0, "{lie:?}");
        assert!(summary.totals.violations > 0, "{lie:?} was not caught");
        let saved = std::fs::read_dir(save.path()).unwrap().count() as u64;
        assert_eq!(saved, summary.totals.violations + summary.totals.undecided, "{lie:?}");
    }
}

#[test]
fn what_clients_of_queues_are_told_is_possible() {
    let summary = run_queues(Target::Binary { path: binary(), kills: false }, queue_plan(2));
    assert_eq!((summary.totals.violations, summary.totals.undecided, summary.totals.strange), (0, 0, 0));
    assert_eq!((summary.totals.unknown, summary.totals.turned_away), (0, 0));
    assert!(summary.redeliveries > 0 && summary.totals.refused > 0, "{summary:?}");
}

#[test]
fn what_clients_of_queues_are_told_by_a_killed_server_is_possible() {
    let plan = queue_plan(2);
    let rounds = plan.run.rounds;
    let summary = run_queues(Target::Binary { path: binary(), kills: true }, plan);
    assert_eq!((summary.totals.violations, summary.totals.undecided, summary.totals.strange), (0, 0, 0));
    assert!(summary.totals.kills >= rounds && summary.deliveries > 0, "{summary:?}");
}

#[test]
fn a_server_that_lies_about_messages_is_caught() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&binary(), directory.path()).unwrap();
    for lie in [Lie::OldMessages, Lie::DeleteNotDone] {
        let liar = Liar::start(&server.connection_string, lie);
        let target =
            Target::Endpoints { connection_strings: vec![liar.connection_string.clone()], authority: None };
        let save = tempfile::tempdir().unwrap();
        let mut plan = queue_plan(0);
        (plan.run.rounds, plan.run.save) = (1, save.path().to_owned());
        let summary = run_queues(target, plan);
        assert_eq!(summary.totals.strange, 0, "{lie:?}");
        assert!(summary.totals.violations > 0, "{lie:?} was not caught");
        let saved = std::fs::read_dir(save.path()).unwrap().count() as u64;
        assert_eq!(saved, summary.totals.violations + summary.totals.undecided, "{lie:?}");
    }
}

#[test]
fn what_clients_of_blobs_are_told_is_possible() {
    let summary = run_blobs(Target::Binary { path: binary(), kills: false }, blob_plan(4));
    assert_eq!((summary.totals.violations, summary.totals.undecided, summary.totals.strange), (0, 0, 0));
    assert_eq!(summary.totals.unknown, 0);
    assert!(summary.gets > 0 && summary.holds > 0 && summary.totals.refused > 0, "{summary:?}");
}

#[test]
fn what_clients_of_blobs_are_told_by_a_killed_server_is_possible() {
    let plan = blob_plan(3);
    let rounds = plan.run.rounds;
    let summary = run_blobs(Target::Binary { path: binary(), kills: true }, plan);
    assert_eq!((summary.totals.violations, summary.totals.undecided, summary.totals.strange), (0, 0, 0));
    assert!(summary.totals.kills >= rounds, "{summary:?}");
}

#[test]
fn a_server_that_lies_about_blobs_is_caught() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&binary(), directory.path()).unwrap();
    for lie in [Lie::OldBlob, Lie::BlobNotPut, Lie::MixedBlob, Lie::LeaseGiven] {
        let liar = Liar::start(&server.connection_string, lie);
        let target =
            Target::Endpoints { connection_strings: vec![liar.connection_string.clone()], authority: None };
        let save = tempfile::tempdir().unwrap();
        let mut plan = blob_plan(0);
        (plan.run.rounds, plan.run.save) = (2, save.path().to_owned());
        let summary = run_blobs(target, plan);
        let (violations, strange) = (summary.totals.violations, summary.totals.strange);
        // A mix can't be part of any history.
        let is_mix = matches!(lie, Lie::MixedBlob);
        assert!(if is_mix { strange > 0 } else { violations > 0 && strange == 0 }, "{lie:?}: {summary:?}");
    }
}

fn blob_plan(rounds: u64) -> BlobPlan {
    BlobPlan { run: RunPlan { operations: 25, ..plan(rounds).run }, containers: 2, blobs: 2 }
}

fn run_blobs(target: Target, plan: BlobPlan) -> BlobSummary {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(recorder::run_blobs(target, plan)).unwrap_or_else(|error| panic!("{error}"))
}

fn queue_plan(rounds: u64) -> QueuePlan {
    let run = RunPlan { operations: 60, ..plan(rounds).run };
    QueuePlan { run, queues: 3, patience: Duration::from_secs(5) }
}

fn run_queues(target: Target, plan: QueuePlan) -> QueueSummary {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(recorder::run_queues(target, plan)).unwrap_or_else(|error| panic!("{error}"))
}

fn plan(rounds: u64) -> Plan {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let setting = |name: &str, usual: u64| match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, not a number")),
        Err(_) => usual,
    };
    let (rounds, seed) = (setting("PARTITA_ROUNDS", rounds), setting("PARTITA_SEED", now.as_nanos() as u64));
    println!("PARTITA_SEED={seed} PARTITA_ROUNDS={rounds}");
    let run = RunPlan {
        rounds,
        seed,
        clients: CLIENTS,
        operations: OPERATIONS,
        places: PLACES_MAX,
        save: std::env::temp_dir(),
        watched: None,
    };
    Plan { run, partitions: 2, rows: 4 }
}

fn run(target: Target, plan: Plan) -> Summary {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(recorder::run(target, plan)).unwrap_or_else(|error| panic!("{error}"))
}

/// The server in the target directory of this test. It is built if it is missing.
fn binary() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().and_then(Path::parent).unwrap().join("partita");
    if !path.exists() {
        let built = Command::new(env!("CARGO")).args(["build", "--release", "-p", "partita-cli"]).status();
        assert!(built.unwrap().success() && path.exists(), "{} can't be built", path.display());
    }
    path
}
