//! Queues through the operator's commands: backup and restore, check, salvage, and moves between stores. What a client knows
//! of them holds afterwards: metadata, policies, ids, receipts, dequeue counts, times.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::support::cluster::{new_store, nodes};
use crate::support::{Client, Partita, binary};
use tempfile::TempDir;

const POLICIES: &str = "<SignedIdentifiers><SignedIdentifier><Id>worker</Id><AccessPolicy><Expiry>2099-01-01</Expiry>\
    <Permission>rp</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
const PROPERTIES: &str = "<StorageServiceProperties><MinuteMetrics><Version>1.0</Version><Enabled>true</Enabled>\
    <IncludeAPIs>true</IncludeAPIs><RetentionPolicy><Enabled>true</Enabled><Days>3</Days></RetentionPolicy></MinuteMetrics>\
    </StorageServiceProperties>";

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// The output of both streams.
fn partita(arguments: &[&str], code: i32) -> String {
    let output = binary().args(arguments).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

/// All elements of this name in an answer.
fn all(text: &str, tag: &str) -> Vec<String> {
    let tag = format!("<{tag}>");
    text.split(&tag).skip(1).map(|rest| rest.split('<').next().unwrap_or_default().to_owned()).collect()
}

fn put(client: &mut Client, options: &str, text: &str) -> String {
    let body = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
    let answer = client.send("POST", &format!("/jobs/messages{options}"), &[], body.as_bytes());
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.text()
}

fn message(answer: &str, query: &str) -> String {
    let (id, receipt) = (all(answer, "MessageId").remove(0), all(answer, "PopReceipt").remove(0));
    let receipt = receipt.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    format!("/jobs/messages/{id}?popreceipt={receipt}{query}")
}

/// What clients have heard of a queue before it is moved.
struct Known {
    /// The answers to requests that only read.
    read: Vec<String>,
    /// Of messages that were put, got, and got and updated.
    receipts: [String; 3],
    stale: String,
}

/// What only reads, without the times of the answers.
fn read(client: &mut Client) -> Vec<String> {
    let mut found = Vec::new();
    for path in [
        "/?comp=list&include=metadata",
        "/jobs?comp=acl",
        "/jobs/messages?peekonly=true&numofmessages=32",
        "/?restype=service&comp=properties",
    ] {
        let answer = client.send("GET", path, &[], b"");
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        // The address of the server is in the list.
        found.push(
            answer.text().split_once("<Queues>").map_or_else(|| answer.text(), |(_, rest)| rest.to_owned()),
        );
    }
    let metadata = client.send("GET", "/jobs?comp=metadata", &[], b"");
    for header in ["x-ms-meta-a", "x-ms-approximate-messages-count"] {
        found.push(format!("{header}: {:?}", metadata.header(header)));
    }
    found
}

/// A queue with a message in every state.
fn fill(client: &mut Client) -> Known {
    assert_eq!(client.send("PUT", "/jobs", &[("x-ms-meta-a", "1")], b"").status, 201);
    assert_eq!(client.send("PUT", "/empty", &[], b"").status, 201);
    assert_eq!(client.send("PUT", "/jobs?comp=acl", &[], POLICIES.as_bytes()).status, 204);
    let properties = client.send("PUT", "/?restype=service&comp=properties", &[], PROPERTIES.as_bytes());
    assert_eq!(properties.status, 202, "{}", properties.text());
    put(client, "", "updated");
    let got = client.send("GET", "/jobs/messages?visibilitytimeout=600", &[], b"").text();
    let stale = message(&got, "");
    let update = b"<QueueMessage><MessageText>new text</MessageText></QueueMessage>";
    let updated = client.send("PUT", &message(&got, "&visibilitytimeout=700"), &[], update);
    assert_eq!(updated.status, 204);
    let receipt = updated.header("x-ms-popreceipt").unwrap().to_owned();
    let updated = format!("<MessageId>{}<PopReceipt>{receipt}<", all(&got, "MessageId")[0]);
    put(client, "", "got");
    let got = client.send("GET", "/jobs/messages?visibilitytimeout=600", &[], b"").text();
    let waiting = put(client, "?messagettl=-1", "put");
    put(client, "?visibilitytimeout=600&messagettl=3600", "delayed");
    for number in 0..3 {
        put(client, "?messagettl=7200", &format!("visible {number}"));
    }
    let receipts = [waiting, got, updated].map(|answer| message(&answer, "&visibilitytimeout=0"));
    Known { read: read(client), receipts, stale }
}

/// Everything that was known holds at another server.
fn check(client: &mut Client, known: &Known) {
    assert_eq!(read(client), known.read);
    assert_eq!(client.send("DELETE", &known.stale, &[], b"").status, 404, "a stale receipt stays so");
    for receipt in &known.receipts {
        let answer = client.send("PUT", receipt, &[], b"");
        assert_eq!(answer.status, 204, "{receipt}: {}", answer.text());
        assert_eq!(client.send("PUT", receipt, &[], b"").status, 404, "{receipt} is used");
    }
    let peeked = client.send("GET", "/jobs/messages?peekonly=true&numofmessages=32", &[], b"").text();
    let shown: Vec<_> = all(&peeked, "MessageText").into_iter().zip(all(&peeked, "DequeueCount")).collect();
    let shown: Vec<_> = shown.iter().map(|(text, count)| format!("{text} {count}")).collect();
    let expected = ["visible 0 0", "visible 1 0", "visible 2 0", "put 0", "got 1", "new text 1"];
    assert_eq!(shown, expected);
    let answer = put(client, "", "after");
    assert_eq!(client.send("DELETE", &message(&answer, ""), &[], b"").status, 204);
}

struct Places {
    _directory: TempDir,
    data: PathBuf,
    other: PathBuf,
    backups: PathBuf,
}

fn places() -> Places {
    let directory = TempDir::new().unwrap();
    let [data, other, backups] = ["data", "other", "backups"].map(|name| directory.path().join(name));
    Places { _directory: directory, data, other, backups }
}

#[test]
fn a_backup_of_a_running_server_has_its_queues() {
    let places = places();
    let server = Partita::in_directory(&places.data);
    let known = fill(&mut server.queue_client());
    partita(&["backup", &text(&places.backups), "--data", &text(&places.data)], 0);
    // What comes after the backup is not in it.
    assert_eq!(server.queue_client().send("DELETE", "/jobs/messages", &[], b"").status, 204);
    let backup = fs::read_dir(&places.backups).unwrap().next().unwrap().unwrap().path();
    let shown = partita(&["check", "--data", &text(&backup)], 0);
    assert!(shown.contains("devstoreaccount1/queue/jobs "), "{shown}");
    partita(&["restore", &text(&backup), "--data", &text(&places.other)], 0);
    let restored = Partita::in_directory(&places.other);
    check(&mut restored.queue_client(), &known);
}

#[test]
fn check_counts_messages_and_salvage_saves_them() {
    let places = places();
    let server = Partita::in_directory(&places.data);
    let known = fill(&mut server.queue_client());
    assert!(server.stop().success());
    let shown = partita(&["check", "--data", &text(&places.data), "--json"], 0);
    let json: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let tables = json["tables"].as_array().unwrap();
    let jobs = tables.iter().find(|table| table["table"] == "jobs").unwrap();
    assert_eq!((&jobs["service"], &jobs["account"]), (&"queue".into(), &"devstoreaccount1".into()));
    assert!(jobs["entities"].as_u64().unwrap() >= 7, "seven messages: {jobs}");
    let shown = partita(&["check", "--data", &text(&places.data), "--salvage", &text(&places.other)], 0);
    assert!(shown.contains("entities saved to"), "{shown}");
    let salvaged = Partita::in_directory(&places.other);
    check(&mut salvaged.queue_client(), &known);
}

#[test]
fn messages_beside_a_damaged_place_are_salvaged() {
    let places = places();
    let server = Partita::in_directory(&places.data);
    let mut client = server.queue_client();
    assert_eq!(client.send("PUT", "/jobs", &[("x-ms-meta-a", "1")], b"").status, 201);
    let mut ids = BTreeSet::new();
    for number in 0..600 {
        ids.insert(
            all(&put(&mut client, "", &format!("{number} {}", "text ".repeat(40))), "MessageId").remove(0),
        );
    }
    assert!(server.stop().success());
    let tables = fs::read_dir(places.data.join("db")).unwrap().map(|entry| entry.unwrap().path());
    let tables = tables.filter(|path| path.extension().is_some_and(|found| found == "sst"));
    let table = tables.max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    let mut bytes = fs::read(&table).unwrap();
    let middle = bytes.len() * 2 / 5;
    bytes[middle] ^= 1;
    fs::write(&table, bytes).unwrap();
    let shown = partita(&["check", "--data", &text(&places.data)], 1);
    assert!(shown.contains("devstoreaccount1/queue/jobs("), "{shown}");
    partita(&["check", "--data", &text(&places.data), "--salvage", &text(&places.other)], 1);
    let salvaged = Partita::in_directory(&places.other);
    let mut client = salvaged.queue_client();
    assert_eq!(client.send("GET", "/jobs?comp=metadata", &[], b"").header("x-ms-meta-a"), Some("1"));
    let mut found = BTreeSet::new();
    loop {
        let got =
            client.send("GET", "/jobs/messages?numofmessages=32&visibilitytimeout=600", &[], b"").text();
        let here = all(&got, "MessageId");
        if here.is_empty() {
            break;
        }
        found.extend(here);
    }
    assert!(found.is_subset(&ids));
    assert!(found.len() >= 500 && found.len() < 600, "{} of 600", found.len());
    let answer = put(&mut client, "", "after");
    assert_eq!(client.send("DELETE", &message(&answer, ""), &[], b"").status, 204);
    assert!(salvaged.stop().success());
    partita(&["check", "--data", &text(&places.other)], 0);
}

#[test]
fn queues_move_to_another_directory_while_they_are_in_use() {
    let places = places();
    let server = Partita::in_directory(&places.data);
    let mut client = server.queue_client();
    let mut doomed = server.queue_client();
    assert_eq!(doomed.send("PUT", "/doomed", &[], b"").status, 201);
    let arguments = ["migrate", "--data", &text(&places.data), "--to", &text(&places.other)];
    // Both what the first pass has copied and what comes after it.
    partita(&arguments, 0);
    assert_eq!(doomed.send("DELETE", "/doomed", &[], b"").status, 204);
    let known = fill(&mut client);
    let shown = partita(&[&arguments[..], &["--finish"]].concat(), 0);
    assert!(
        shown.contains("devstoreaccount1/queue/jobs: ") && shown.contains("are equal on both sides"),
        "{shown}"
    );
    let body = b"<QueueMessage><MessageText>late</MessageText></QueueMessage>";
    assert_eq!(
        client.send("POST", "/jobs/messages", &[], body).status,
        503,
        "the old server takes no writes"
    );
    assert_eq!(client.send("GET", "/jobs/messages", &[], b"").status, 503, "a Get writes");
    assert_eq!(read(&mut client), known.read, "and answers reads");
    let moved = Partita::in_directory(&places.other);
    check(&mut moved.queue_client(), &known);
}

#[test]
fn queues_move_to_a_cluster_and_back() {
    let Some(nodes) = nodes() else { return };
    let (places, store) = (places(), new_store(&nodes));
    let server = Partita::in_directory(&places.data);
    let known = fill(&mut server.queue_client());
    let shown = partita(&["migrate", "--data", &text(&places.data), "--to", &store, "--finish"], 0);
    assert!(shown.contains("are equal on both sides"), "{shown}");
    assert!(server.stop().success());
    let there = Partita::start(&["--store", &store]);
    assert_eq!(read(&mut there.queue_client()), known.read);
    assert!(there.stop().success());
    let shown = partita(&["migrate", "--from", &store, "--data", &text(&places.other), "--finish"], 0);
    assert!(shown.contains("are equal on both sides"), "{shown}");
    let back = Partita::in_directory(&places.other);
    check(&mut back.queue_client(), &known);
    let left = Partita::start(&["--store", &store]);
    assert_eq!(
        left.queue_client().send("DELETE", "/jobs/messages", &[], b"").status,
        503,
        "what was left takes no writes"
    );
}
