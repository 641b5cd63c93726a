//! An export has each message once, and leaves each in the queue or in the file, wherever it is killed.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::kit::{self, command, count, drained, fail, filled, json, members, numbers, read, run, succeed};
use crate::support::Partita;
use crate::transfer::gate::{Gate, Harm};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The messages in a file, and that no other line is in it.
fn messages(path: &Path) -> Vec<Value> {
    let lines = read(path);
    assert!(lines[0].get("queue").is_some(), "{:?}", lines[0]);
    lines[1..].to_vec()
}

#[test]
fn a_queue_is_copied_and_stays_as_it_was() {
    let server = Partita::in_memory();
    let address = filled(&server, "jobs", 100);
    let before = json(&succeed(address, &["peek", "jobs", "--format", "json"]));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.jsonl");
    let output = run(address, &["export", "--queue", "jobs", "--to", text(&path)]);
    assert!(output.status.success(), "{output:?}");
    assert!(kit::error(&output).contains("jobs: 100 messages, "), "{output:?}");
    let lines = read(&path);
    assert_eq!(lines[0].to_string(), r#"{"metadata":{"kind":"test"},"queue":"jobs"}"#);
    assert_eq!(members(&lines, "text"), numbers(100));
    assert_eq!(lines[1..33], before[..], "each line is what a peek shows");
    let left: Vec<_> =
        std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["jobs.jsonl"]);

    // The same messages are visible, in the same order, and were delivered once before.
    let after = drained(address, "jobs");
    for name in ["id", "text", "inserted", "expires"] {
        assert_eq!(members(&after, name), members(&lines, name));
    }
    assert!(after.iter().all(|message| message["dequeueCount"] == 2), "{after:?}");
}

#[test]
fn what_a_worker_has_stays_and_is_told() {
    let server = Partita::in_memory();
    let address = filled(&server, "jobs", 40);
    succeed(address, &["get", "jobs", "--count", "3", "--visibility", "1h"]);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.jsonl");
    for more in [&[][..], &["--overwrite", "--delete"]] {
        let arguments = ["export", "--queue", "jobs", "--to", text(&path)];
        let output = run(address, &[&arguments[..], more].concat());
        assert!(output.status.success(), "{output:?}");
        let told = "37 messages, ";
        let left = "; about 3 more are hidden, or were put since, and are not in the file";
        assert!(kit::error(&output).contains(told) && kit::error(&output).contains(left), "{output:?}");
        assert_eq!(members(&messages(&path), "text"), numbers(40)[3..]);
    }
    assert_eq!(count(address, "jobs"), 3, "the others were deleted");
    assert_eq!(run(address, &["get", "jobs"]).status.code(), Some(3));
}

#[test]
fn an_empty_queue_is_a_file_of_one_line() {
    let server = Partita::in_memory();
    let address = filled(&server, "jobs", 0);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.jsonl");
    succeed(address, &["export", "--queue", "jobs", "--to", text(&path)]);
    assert_eq!(messages(&path), Vec::<Value>::new());
}

/// More than one Get returns, so that a kill can come between two of them.
const MESSAGES: usize = 33;

/// Kills an export at this request, continues it, and checks what is left.
fn killed_at(address: SocketAddr, queue: &str, request: usize, harm: Harm, delete: bool) {
    let gate = Gate::before(address);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.jsonl");
    let mut arguments =
        vec!["export", "--queue", queue, "--to", text(&path), "--visibility", "1s", "--quiet"];
    arguments.extend(delete.then_some("--delete"));
    gate.harm(&[(request, harm), (request + 1, Harm::Stall)]);
    let mut child = command(gate.address, &arguments).stderr(Stdio::piped()).spawn().unwrap();
    gate.wait_until_stalled();
    child.kill().unwrap();
    child.wait().unwrap();
    let place = format!("{queue}: {harm:?} of request {request}, then {:?}", gate.requests().last());
    let in_file = if path.exists() { members(&whole_lines(&path), "id").len() } else { 0 };
    assert!(count(address, queue) + in_file >= MESSAGES, "{place}: a message is nowhere");
    gate.harm(&[]);
    // Messages that were got without an answer are visible again.
    thread::sleep(Duration::from_millis(1100));
    arguments.push("--resume");
    succeed(gate.address, &arguments);
    let mut texts = members(&messages(&path), "text");
    texts.sort_by_key(|text| text.parse::<usize>().unwrap());
    assert_eq!(texts, numbers(MESSAGES), "{place}: each message is in the file once");
    let left: Vec<_> =
        std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["jobs.jsonl"], "{place}");
    if delete {
        assert_eq!(count(address, queue), 0, "{place}");
        return;
    }
    assert_eq!(count(address, queue), MESSAGES, "{place}");
    let mut visible = drained(address, queue);
    if visible.len() < MESSAGES {
        // An answer that was lost may leave one hidden until its second is over.
        thread::sleep(Duration::from_millis(1100));
        visible.extend(drained(address, queue));
    }
    assert_eq!(visible.len(), MESSAGES, "{place}");
}

/// The lines of a file, without one that was cut short.
fn whole_lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.split_inclusive('\n').filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[test]
fn nothing_is_lost_wherever_an_export_is_killed() {
    let server = Partita::in_memory();
    // Properties, three Gets, and then a request for each message, and properties again.
    let requests: Vec<usize> = (0..7).chain([20, 33, 36, 37]).collect();
    let cases: Vec<_> = [false, true]
        .into_iter()
        .flat_map(|delete| [Harm::Break, Harm::Swallow].map(|harm| (delete, harm)))
        .flat_map(|(delete, harm)| requests.iter().map(move |request| (delete, harm, *request)))
        .collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                while let Some((delete, harm, request)) =
                    cases.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    let name = format!("jobs-{delete}-{harm:?}-{request}").to_lowercase();
                    let address = filled(&server, &name, MESSAGES);
                    killed_at(address, &name, *request, *harm, *delete);
                }
            });
        }
    });
}

#[test]
fn an_interrupted_export_says_when_its_messages_are_visible_again() {
    let server = Partita::in_memory();
    let address = filled(&server, "jobs", MESSAGES);
    let gate = Gate::before(address);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.jsonl");
    gate.harm(&[(2, Harm::Stall)]);
    let arguments = ["export", "--queue", "jobs", "--to", text(&path)];
    let child = command(gate.address, &arguments).stderr(Stdio::piped()).spawn().unwrap();
    gate.wait_until_stalled();
    testing::signal(child.id(), "INT");
    let output = child.wait_with_output().unwrap();
    let said = kit::error(&output);
    assert!(
        !output.status.success() && said.contains("interrupted; run the same command with --resume"),
        "{said}"
    );
    assert!(said.contains("visible again by 20"), "{said}");
    gate.harm(&[]);
    assert!(fail(address, &arguments).contains("is an interrupted export; --resume continues it"));
    assert!(
        fail(address, &["import", "--queue", "jobs", "--from", text(&path)])
            .contains("is an interrupted export")
    );
    let other = ["export", "--queue", "other", "--to", text(&path), "--resume"];
    assert!(fail(gate.address, &other).contains("whose queue was jobs, not other"));
    let side = std::fs::read_to_string(directory.path().join("jobs.jsonl.progress")).unwrap();
    assert!(!side.contains("Key="), "no secrets: {side}");
    succeed(gate.address, &[&arguments[..], &["--resume"]].concat());
    assert_eq!(members(&messages(&path), "text"), numbers(MESSAGES));
    // Also those of the first run are visible, without waiting for their half hour.
    assert_eq!(drained(address, "jobs").len(), MESSAGES);
    assert!(
        fail(gate.address, &[&arguments[..], &["--resume"]].concat()).contains("there is nothing to resume")
    );
}

/// Interrupts an export at this request. Its messages stay hidden for half an hour.
fn interrupted_at(address: SocketAddr, request: usize, arguments: &[&str]) -> Gate {
    let gate = Gate::before(address);
    gate.harm(&[(request, Harm::Stall)]);
    let mut child = command(gate.address, arguments).stderr(Stdio::piped()).spawn().unwrap();
    gate.wait_until_stalled();
    child.kill().unwrap();
    child.wait().unwrap();
    gate.harm(&[]);
    gate
}

#[test]
fn what_a_killed_export_has_hidden_and_not_written_is_read_by_the_next() {
    let server = Partita::in_memory();
    let address = filled(&server, "jobs", MESSAGES);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.jsonl");
    let arguments = ["export", "--queue", "jobs", "--to", text(&path)];
    let gate = interrupted_at(address, 2, &arguments);
    // As if it had been killed between the two files: the receipt of the last message is written, the message is not.
    let taken = &json(&succeed(address, &["get", "jobs", "--visibility", "1h", "--format", "json"]))[0];
    let receipt = format!("\n{} {}", taken["id"].as_str().unwrap(), taken["receipt"].as_str().unwrap());
    let receipts = directory.path().join("jobs.jsonl.receipts");
    let known = std::fs::read_to_string(&receipts).unwrap();
    std::fs::write(&receipts, known + &receipt).unwrap();
    succeed(gate.address, &[&arguments[..], &["--resume"]].concat());
    assert_eq!(members(&messages(&path), "text"), numbers(MESSAGES));
    assert_eq!(drained(address, "jobs").len(), MESSAGES, "all of them are visible");
}

#[test]
fn what_a_killed_export_has_written_and_not_deleted_is_deleted_by_the_next() {
    let server = Partita::in_memory();
    let address = filled(&server, "jobs", MESSAGES);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.jsonl");
    let arguments = ["export", "--queue", "jobs", "--to", text(&path), "--delete"];
    // Properties, a Get, and then the deletions.
    let gate = interrupted_at(address, 2, &arguments);
    assert!(count(address, "jobs") > 1, "some are not deleted");
    succeed(gate.address, &[&arguments[..], &["--resume"]].concat());
    assert_eq!(members(&messages(&path), "text"), numbers(MESSAGES));
    assert_eq!(count(address, "jobs"), 0, "though the first ones are hidden");
}

#[test]
fn what_is_put_meanwhile_does_not_keep_an_export_from_ending() {
    let server = Partita::in_memory();
    let address = filled(&server, "jobs", 200);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.jsonl");
    let stop = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = server.queue_client();
                let body = b"<QueueMessage><MessageText>new</MessageText></QueueMessage>";
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    assert_eq!(client.send("POST", "/jobs/messages", &[], body).status, 201);
                }
            });
        }
        // One after the beginning of the export, in the seconds that times have.
        thread::sleep(Duration::from_millis(10));
        succeed(address, &["export", "--queue", "jobs", "--to", text(&path), "--delete"]);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let old: BTreeSet<String> =
        members(&messages(&path), "text").into_iter().filter(|text| text != "new").collect();
    assert_eq!(old, numbers(200).into_iter().collect());
}

#[test]
fn an_account_goes_to_another_server() {
    let (here, there) = (Partita::in_memory(), Partita::in_memory());
    let address = filled(&here, "first", 5);
    filled(&here, "second", 40);
    filled(&here, "empty", 0);
    let directory = tempfile::tempdir().unwrap();
    let backup = directory.path().join("backup");
    succeed(address, &["export", "--all", "--to", text(&backup)]);
    let exists = fail(address, &["export", "--all", "--to", text(&backup)]);
    assert!(exists.contains("empty.jsonl already exists"), "{exists}");
    succeed(there.queue_address(), &["import", "--all", "--from", text(&backup)]);
    let list = |address| succeed(address, &["list", "--format", "json", "--counts"]);
    assert_eq!(list(there.queue_address()), list(address), "names, metadata and counts");
    for (queue, messages) in [("first", 5), ("second", 40)] {
        assert_eq!(members(&drained(there.queue_address(), queue), "text"), numbers(messages));
    }
    assert_eq!(std::fs::read_dir(&backup).unwrap().count(), 3, "no side file is left");
}

#[test]
fn mistakes_are_named_before_a_message_is_touched() {
    let server = Partita::in_memory();
    let address = filled(&server, "jobs", 3);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.jsonl");
    std::fs::write(&path, "precious").unwrap();
    let to = text(&path);
    for (arguments, words) in [
        (&["export", "--queue", "jobs", "--to", to][..], "already exists; --overwrite replaces it"),
        (&["export", "--queue", "jobs", "--to", "-"], "`partita queue get --format json` prints messages"),
        (&["export", "--queue", "jobs", "--to", "x", "--visibility", "8d"], "1s to 7d"),
        (&["export", "--queue", "jobs", "--to", "x", "--visibility", "0"], "1s to 7d"),
        (&["export", "--queue", "nobody", "--to", to, "--overwrite"], "no queue nobody"),
        (&["export", "--queue", "No_Name", "--to", to, "--overwrite"], "\"No_Name\""),
    ] {
        let said = fail(address, arguments);
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    let peeked = json(&succeed(address, &["peek", "jobs", "--format", "json"]));
    assert_eq!(members(&peeked, "dequeueCount"), ["0", "0", "0"]);
}
