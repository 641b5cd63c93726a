//! The patterns must survive the death of a process: stops them at every request, and kills them at random.
//!
//! `PARTITA_KILLS` sets how often each pattern is killed. `scripts/client` starts the service that this needs.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod child;
mod cut;
mod judge;
#[path = "../../../client/tests/support/mod.rs"]
mod support;
mod world;

use std::collections::BTreeMap;

use cut::{Cut, Last};
use world::{Op, Pattern, Services, State, Time, World};

fn op(row: &str, number: impl Into<Option<u32>>) -> Op {
    Op { row: row.to_owned(), number: number.into() }
}

/// A few changes that keep, change, share, remove and reuse values.
fn story(pattern: Pattern) -> Vec<Op> {
    match pattern {
        Pattern::Archive => {
            [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 0), ("a", 1)].map(|(r, n)| op(r, n)).to_vec()
        }
        Pattern::Queue => ["a", "b", "c"].map(|row| op(row, 1)).to_vec(),
        // Each stop takes the second for which a message is hidden.
        Pattern::Queued => vec![op("a", 1), op("a", 2), op("a", None)],
        _ => vec![op("a", 1), op("b", 3), op("a", 2), op("a", 5), op("b", None), op("a", None), op("a", 1)],
    }
}

fn after(ops: &[Op]) -> State {
    let mut state = BTreeMap::new();
    for Op { row, number } in ops {
        match number {
            Some(number) => state.insert(row.clone(), *number),
            None => state.remove(row),
        };
    }
    state
}

/// Stops a client before and after each of its requests, heals, and checks.
async fn stop_everywhere(pattern: Pattern) {
    let Some(connection_string) = support::connection_string(support::PARTITA) else { return };
    let services = Services::new(&connection_string, support::quick());
    let ops = story(pattern);
    let cut = Cut::new(&connection_string).await;
    let (mut stops, mut late) = (0, 0);
    for last in [Last::NotSent, Last::Unanswered] {
        for answered in 0.. {
            let base = support::unique("Stops");
            cut.after(answered, last);
            let short = World::new(&cut.services, &base, pattern, Time::Hasty);
            let healer = World::new(&services, &base, pattern, Time::Later);
            healer.create_tables().await;
            let mut done = 0;
            while done < ops.len() && short.act(&ops[done]).await.is_ok() {
                done += 1;
            }
            // A worker is stopped, too.
            let survived = done == ops.len() && short.heal_once().await.is_ok();
            let all = cut.was_enough();
            let left = healer.messages().await;
            healer.heal().await.unwrap();
            let state = healer.state().await;
            // Acknowledged changes are there; the last one is there wholly or not at all.
            let possible = [after(&ops[..done]), after(&ops[..(done + 1).min(ops.len())])];
            let place = format!("{pattern:?}, {last:?} after {answered} requests and {done} changes");
            assert!(possible.contains(&state), "{place}: {state:?}, not {possible:?}");
            if !left.is_empty() {
                // Another worker also had the message, was suspended, and continues later.
                for op in &ops[done..] {
                    healer.act(op).await.unwrap();
                }
                for (table, message) in left {
                    table.upsert_replace(&message).await.unwrap();
                    late += 1;
                }
                healer.heal().await.unwrap();
                assert_eq!(healer.state().await, after(&ops), "{place}: a late step");
            }
            world::drop_tables(&healer).await;
            stops += 1;
            if all {
                assert!(survived, "{pattern:?} failed by itself");
                break;
            }
        }
    }
    println!("{pattern:?}: stopped at {stops} places, {late} messages late");
}

#[tokio::test]
async fn indexes_elsewhere_survive_a_stop_at_any_request() {
    stop_everywhere(Pattern::Indexed).await;
}

#[tokio::test]
async fn indexes_in_a_partition_survive_a_stop_at_any_request() {
    stop_everywhere(Pattern::Intra).await;
}

#[tokio::test]
async fn lists_in_a_partition_survive_a_stop_at_any_request() {
    stop_everywhere(Pattern::Lists).await;
}

#[tokio::test]
async fn an_archive_survives_a_stop_at_any_request() {
    stop_everywhere(Pattern::Archive).await;
}

#[tokio::test]
async fn a_queue_survives_a_stop_at_any_request() {
    stop_everywhere(Pattern::Queue).await;
}

#[tokio::test]
async fn a_queued_outbox_survives_a_stop_at_any_request() {
    stop_everywhere(Pattern::Queued).await;
}

#[tokio::test]
async fn a_queued_outbox_survives_kills() {
    child::kill(Pattern::Queued).await;
}

#[tokio::test]
async fn indexes_elsewhere_survive_kills() {
    child::kill(Pattern::Indexed).await;
}

#[tokio::test]
async fn indexes_in_a_partition_survive_kills() {
    child::kill(Pattern::Intra).await;
}

#[tokio::test]
async fn lists_in_a_partition_survive_kills() {
    child::kill(Pattern::Lists).await;
}

#[tokio::test]
async fn an_archive_survives_kills() {
    child::kill(Pattern::Archive).await;
}

#[tokio::test]
async fn a_queue_survives_kills() {
    child::kill(Pattern::Queue).await;
}
