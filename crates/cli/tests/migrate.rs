//! `partita migrate` as an operator uses it, under load.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::support::cluster::{new_store, nodes};
use crate::support::control::{answer_at, ask};
use crate::support::random::Random;
use crate::support::{Answer, Client, Partita, binary};
use tempfile::TempDir;

const JSON: [(&str, &str); 2] = [("Content-Type", "application/json"), ("Prefer", "return-no-content")];
const READ: [(&str, &str); 1] = [("Accept", "application/json;odata=nometadata")];
const POLICIES: &str = "<SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy>\
    <Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
const PROPERTIES: &str = "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>*</AllowedOrigins>\
    <AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>5</MaxAgeInSeconds><ExposedHeaders>*</ExposedHeaders>\
    <AllowedHeaders>*</AllowedHeaders></CorsRule></Cors></StorageServiceProperties>";

const NO_METRICS: &str = "<StorageServiceProperties><HourMetrics><Version>1.0</Version><Enabled>false</Enabled>\
    <RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></HourMetrics></StorageServiceProperties>";

/// Directories of one test.
struct Places {
    _directory: TempDir,
    old: PathBuf,
    new: PathBuf,
}

fn places() -> Places {
    let directory = TempDir::new().unwrap();
    let (old, new) = (directory.path().join("old"), directory.path().join("new"));
    Places { _directory: directory, old, new }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn partita(arguments: &[&str]) -> Output {
    binary().args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// The output of both streams.
fn succeed(arguments: &[&str]) -> String {
    let output = partita(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

fn fail(arguments: &[&str]) -> String {
    let output = partita(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

impl Places {
    fn migrate<'a>(&'a self, more: &[&'a str]) -> Vec<String> {
        let arguments = ["migrate", "--data", self.old.to_str().unwrap(), "--to", self.new.to_str().unwrap()];
        arguments.iter().chain(more).map(|word| (*word).to_owned()).collect()
    }

    fn succeed(&self, more: &[&str]) -> String {
        let words = self.migrate(more);
        succeed(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn fail(&self, more: &[&str]) -> String {
        let words = self.migrate(more);
        fail(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

fn create_table(client: &mut Client, name: &str) -> Answer {
    client.send("POST", "/Tables", &JSON, format!("{{\"TableName\":\"{name}\"}}").as_bytes())
}

fn drop_table(client: &mut Client, name: &str) -> Answer {
    client.send("DELETE", &format!("/Tables('{name}')"), &JSON, b"")
}

fn entity(table: &str, row: &str) -> String {
    format!("/{table}(PartitionKey='p{}',RowKey='{row}')", row.len() % 3)
}

fn put(client: &mut Client, table: &str, row: &str, value: u64) -> Answer {
    let body = format!("{{\"Value\":{value},\"Text\":\"{}\"}}", "text ".repeat(20));
    client.send("PUT", &entity(table, row), &JSON, body.as_bytes())
}

fn etag(client: &mut Client, table: &str, row: &str) -> Option<String> {
    let answer = client.send("GET", &entity(table, row), &READ, b"");
    assert!([200, 404].contains(&answer.status), "{}", answer.text());
    (answer.status == 200).then(|| answer.header("etag").unwrap().to_owned())
}

/// A server on the old directory, with a table of this many entities.
fn served(places: &Places, entities: usize) -> Partita {
    let server = Partita::in_directory(&places.old);
    let mut client = server.client();
    assert_eq!(create_table(&mut client, "Books").status, 204);
    for row in 0..entities {
        assert_eq!(put(&mut client, "Books", &format!("{row}"), 1).status, 204);
    }
    server
}

/// Writes to its own rows until it is refused or stopped. Knows each row's ETag, or that the row is deleted.
struct Writer {
    thread: JoinHandle<BTreeMap<String, Option<String>>>,
}

impl Writer {
    fn start(server: &Partita, seed: usize, done: &Arc<AtomicUsize>, stop: &Arc<AtomicBool>) -> Self {
        let (mut client, done, stop) = (server.client(), done.clone(), stop.clone());
        let thread = thread::spawn(move || {
            let (mut random, mut known) = (Random::numbered(7, seed), BTreeMap::new());
            while !stop.load(Ordering::SeqCst) {
                let row = format!("w{seed}-{}", random.below(400));
                let deletes = random.chance(20) && matches!(known.get(&row), Some(Some(_)));
                let answer = if deletes {
                    client.send("DELETE", &entity("Books", &row), &[("If-Match", "*")], b"")
                } else {
                    put(&mut client, "Books", &row, random.next() % 1000)
                };
                match answer.status {
                    204 => known.insert(row, answer.header("etag").map(str::to_owned).filter(|_| !deletes)),
                    503 => {
                        assert_eq!(answer.code(), "ServerBusy");
                        assert_eq!(answer.header("retry-after"), Some("5"));
                        return known;
                    }
                    _ => panic!("{row}: {} {}", answer.status, answer.text()),
                };
                done.fetch_add(1, Ordering::SeqCst);
            }
            known
        });
        Self { thread }
    }
}

fn wait_for(done: &AtomicUsize, more: usize) {
    let wanted = done.load(Ordering::SeqCst) + more;
    testing::wait_until("more is written", || (done.load(Ordering::SeqCst) >= wanted).then_some(()));
}

#[test]
fn nothing_acknowledged_is_missing_after_a_move_under_load() {
    let places = places();
    let server = served(&places, 50);
    let mut client = server.client();
    assert_eq!(create_table(&mut client, "Renewed").status, 204);
    assert_eq!(put(&mut client, "Renewed", "old", 1).status, 204);
    let (done, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let writers = [1, 2].map(|seed| Writer::start(&server, seed, &done, &stop));
    wait_for(&done, 100);
    let shown = places.succeed(&[]);
    assert!(shown.contains("pass 1") && shown.contains("--finish"), "{shown}");
    assert_eq!(drop_table(&mut client, "Renewed").status, 204);
    assert_eq!(create_table(&mut client, "RENEWED").status, 204);
    assert_eq!(put(&mut client, "RENEWED", "new", 1).status, 204);
    let headers = [("Content-Type", "application/xml")];
    assert_eq!(client.send("PUT", "/RENEWED?comp=acl", &headers, POLICIES.as_bytes()).status, 204);
    let service = "/?restype=service&comp=properties";
    assert_eq!(client.send("PUT", service, &headers, PROPERTIES.as_bytes()).status, 202);
    let refused = partita(&["serve", "--listen", "127.0.0.1:0", "--data", &text(&places.new)]);
    let refused = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.contains("is not complete yet") && refused.contains("--finish"), "{refused}");
    wait_for(&done, 100);
    let shown = places.succeed(&["--finish"]);
    assert!(shown.contains("are equal on both sides"), "{shown}");
    assert!(shown.contains(&format!("partita serve --data {}", text(&places.new))), "{shown}");
    let known: Vec<_> = writers.into_iter().map(|writer| writer.thread.join().unwrap()).collect();

    assert_eq!(put(&mut client, "Books", "0", 7).status, 503, "the old server takes no writes");
    assert!(etag(&mut client, "Books", "0").is_some(), "and answers reads");
    let new = Partita::in_directory(&places.new);
    let mut there = new.client();
    for (row, expected) in known.iter().flatten() {
        assert_eq!(etag(&mut there, "Books", row), *expected, "{row}");
    }
    for path in ["/RENEWED?comp=acl", service, "/Tables"] {
        let [a, b] = [&mut client, &mut there].map(|client| client.send("GET", path, &READ, b"").text());
        assert_eq!(a, b, "{path}");
    }
    assert_eq!(etag(&mut there, "renewed", "old"), None);
    let version = etag(&mut there, "renewed", "new").unwrap();
    let matching = [("Content-Type", "application/json"), ("If-Match", version.as_str())];
    assert_eq!(there.send("PUT", &entity("renewed", "new"), &matching, b"{}").status, 204);
    assert_eq!(there.send("PUT", &entity("renewed", "new"), &matching, b"{}").status, 412);

    let thaw = fail(&["thaw", "--data", &text(&places.old)]);
    assert!(thaw.contains("was moved to"), "{thaw}");
    assert!(server.stop().success());
    let refused = partita(&["serve", "--listen", "127.0.0.1:0", "--data", &text(&places.old)]);
    let refused = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.contains("was moved to") && refused.contains(&text(&places.new)), "{refused}");
    let old = Partita::start(&["--data", &text(&places.old), "--accept-migration"]);
    assert_eq!(put(&mut old.client(), "Books", "0", 8).status, 204);
}

#[test]
fn a_store_moves_to_a_cluster_and_back_under_load() {
    let Some(nodes) = nodes() else { return };
    let (places, store) = (places(), new_store(&nodes));
    let server = served(&places, 20);
    let (done, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let writer = Writer::start(&server, 1, &done, &stop);
    let there = ["migrate", "--data", &text(&places.old), "--to", &store];
    let shown = succeed(&there);
    assert!(shown.contains("pass 1") && shown.contains("--finish"), "{shown}");
    wait_for(&done, 50);
    let shown = succeed(&[&there[..], &["--finish"]].concat());
    assert!(shown.contains("are equal on both sides"), "{shown}");
    let known = writer.thread.join().unwrap();
    assert!(server.stop().success());

    let server = Partita::start(&["--store", &store]);
    let mut client = server.client();
    for (row, expected) in &known {
        assert_eq!(etag(&mut client, "Books", row), *expected, "{row}");
    }
    let version = etag(&mut client, "Books", "0").unwrap();
    let matching = [("Content-Type", "application/json"), ("If-Match", version.as_str())];
    for status in [204, 412] {
        assert_eq!(client.send("PUT", &entity("Books", "0"), &matching, b"{}").status, status);
    }
    let changed = etag(&mut client, "Books", "0");
    assert!(server.stop().success());

    let back = text(&places.new);
    let shown = succeed(&["migrate", "--from", &store, "--data", &back, "--finish"]);
    assert!(shown.contains("are equal on both sides"), "{shown}");
    let server = Partita::in_directory(&places.new);
    let mut client = server.client();
    assert_eq!(etag(&mut client, "Books", "0"), changed);
    for (row, expected) in &known {
        assert_eq!(etag(&mut client, "Books", row), *expected, "{row}");
    }
    let left = Partita::start(&["--store", &store]);
    assert_eq!(put(&mut left.client(), "Books", "0", 7).status, 503, "what was left takes no writes");
    assert_eq!(etag(&mut left.client(), "Books", "0"), changed);
}

#[test]
fn a_frozen_server_refuses_every_write_and_answers_every_read() {
    let places = places();
    let server = served(&places, 3);
    let mut client = server.client();
    let data = text(&places.old);
    let ready = |server: &Partita| {
        let answer =
            Client::new(server.address, "health", crate::support::KEY).send("GET", "/ready", &[], b"");
        (answer.status, answer.text())
    };
    assert_eq!(ready(&server), (200, "ok\n".to_owned()));
    let first = succeed(&["freeze", "--data", &data]);
    assert!(first.starts_with("frozen since 20"), "{first}");
    assert_eq!(succeed(&["freeze", "--data", &data]), first, "frozen is frozen");
    let (status, shown) = ready(&server);
    assert!(status == 200 && shown.starts_with("ok; frozen since"), "{shown}");
    const XML: [(&str, &str); 1] = [("Content-Type", "application/xml")];
    type Headers = &'static [(&'static str, &'static str)];
    let writes: [(&str, &str, Headers, &str); 9] = [
        ("POST", "/Tables", &JSON, "{\"TableName\":\"More\"}"),
        ("DELETE", "/Tables('Books')", &JSON, ""),
        ("POST", "/Books", &JSON, "{\"PartitionKey\":\"p\",\"RowKey\":\"new\"}"),
        ("PUT", "/Books(PartitionKey='p1',RowKey='0')", &JSON, "{}"),
        ("PATCH", "/Books(PartitionKey='p1',RowKey='0')", &JSON, "{}"),
        ("MERGE", "/Books(PartitionKey='p1',RowKey='0')", &JSON, "{}"),
        ("DELETE", "/Books(PartitionKey='p1',RowKey='0')", &[("If-Match", "*")], ""),
        ("PUT", "/Books?comp=acl", &XML, POLICIES),
        ("PUT", "/?restype=service&comp=properties", &XML, PROPERTIES),
    ];
    for (method, path, headers, body) in writes {
        let answer = client.send(method, path, headers, body.as_bytes());
        assert_eq!((answer.status, answer.header("retry-after")), (503, Some("5")), "{method} {path}");
        assert!(answer.text().contains("ServerBusy"), "{}", answer.text());
    }
    for path in ["/Tables", "/Books", "/Books(PartitionKey='p1',RowKey='0')", "/Books?comp=acl"] {
        assert_eq!(client.send("GET", path, &READ, b"").status, 200, "{path}");
    }
    assert!(succeed(&["thaw", "--data", &data]).starts_with("thawed"));
    assert!(succeed(&["thaw", "--data", &data]).starts_with("was not frozen"));
    assert_eq!(put(&mut client, "Books", "0", 9).status, 204);
    assert_eq!(ready(&server), (200, "ok\n".to_owned()));
}

#[test]
fn a_move_that_was_killed_at_any_moment_is_continued_by_the_next() {
    let places = places();
    let server = served(&places, 300);
    let mut client = server.client();
    let (mut random, mut killed) = (Random::new(crate::support::random::seed()), 0);
    for round in 0..12 {
        let arguments = places.migrate(if round % 3 == 2 { &["--finish"] } else { &[] });
        let mut command = binary();
        command.args(&arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        thread::sleep(Duration::from_millis(random.below(150) as u64));
        killed += usize::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        if places.old.join("MOVED").exists() {
            break;
        }
        // A kill leaves the server frozen; the command has printed what to do.
        succeed(&["thaw", "--data", &text(&places.old)]);
        for _ in 0..20 {
            let row = format!("{}", random.below(400));
            if random.chance(30) {
                let gone = client.send("DELETE", &entity("Books", &row), &[("If-Match", "*")], b"").status;
                assert!([204, 404].contains(&gone), "{gone}");
            } else {
                assert_eq!(put(&mut client, "Books", &row, round).status, 204);
            }
        }
    }
    assert!(killed > 0, "nothing was cut short");
    let shown = places.succeed(&["--finish"]);
    assert!(shown.contains("Serve it with"), "{shown}");
    let again = places.succeed(&["--finish"]);
    assert!(again.contains("was moved to"), "{again}");
    assert!(!places.old.join("moving").exists() && !places.new.join("ARRIVING").exists());
    let new = Partita::in_directory(&places.new);
    let mut there = new.client();
    for row in 0..400 {
        let row = format!("{row}");
        assert_eq!(etag(&mut there, "Books", &row), etag(&mut client, "Books", &row), "{row}");
    }
}

/// The server loses its freeze after the last snapshot, as a restart does it, and the command is killed before it asks.
#[test]
fn a_move_that_was_killed_before_the_freeze_was_checked_is_not_taken_for_complete() {
    let places = places();
    let server = served(&places, 20);
    let (control, between) = (places.old.join("control"), places.old.with_file_name("between"));
    let (asked, is_asked) = mpsc::channel();
    let (mut client, mut is_frozen) = (server.client(), false);
    answer_at(&between, move |command| match (command, is_frozen) {
        ("checkpoint", true) => {
            let answer = ask(&control, command);
            ask(&control, "thaw");
            assert_eq!(put(&mut client, "Books", "late", 1).status, 204);
            answer
        }
        ("freeze", true) => {
            asked.send(()).unwrap();
            loop {
                thread::park();
            }
        }
        _ => {
            is_frozen |= command == "freeze";
            ask(&control, command)
        }
    });
    let between = text(&between);
    let mut command = binary();
    command.args(places.migrate(&["--finish", "--control", &between])).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    testing::wait_until("the freeze is checked", || is_asked.try_recv().ok());
    child.kill().unwrap();
    child.wait().unwrap();
    let refused = partita(&["serve", "--listen", "127.0.0.1:0", "--data", &text(&places.old)]);
    let refused = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.contains("partita migrate --data") && refused.contains("--finish"), "{refused}");

    let shown = places.succeed(&["--finish"]);
    assert!(shown.contains("are equal on both sides"), "{shown}");
    let again = places.succeed(&["--finish"]);
    assert!(again.contains("was moved to"), "{again}");
    let new = Partita::in_directory(&places.new);
    assert!(etag(&mut new.client(), "Books", "late").is_some());
}

#[test]
fn a_checkpoint_that_another_has_replaced_is_not_moved() {
    let places = places();
    let server = served(&places, 20);
    places.succeed(&[]);
    let (data, between) = (places.old.clone(), places.old.with_file_name("between"));
    answer_at(&between, move |command| {
        let answer = ask(&data.join("control"), command);
        if command == "checkpoint" {
            // As the next one is when it begins.
            let staging = data.join("backup-staging");
            std::fs::remove_dir_all(&staging).unwrap();
            std::fs::create_dir(&staging).unwrap();
        }
        answer
    });
    let shown = places.fail(&["--finish", "--control", &text(&between)]);
    assert!(shown.contains("run the command again"), "{shown}");
    assert_eq!(put(&mut server.client(), "Books", "late", 1).status, 204);
    let shown = places.succeed(&["--finish"]);
    assert!(shown.contains("devstoreaccount1/Books: 21 entities"), "{shown}");
}

#[test]
fn a_difference_is_found_and_the_server_accepts_writes_again() {
    let places = places();
    let server = served(&places, 40);
    // Otherwise a server on the target would write its own metrics, which would be a difference, too.
    let headers = [("Content-Type", "application/xml")];
    let set = ("PUT", "/?restype=service&comp=properties");
    for mut client in [server.client(), server.blob_client()] {
        assert_eq!(client.send(set.0, set.1, &headers, NO_METRICS.as_bytes()).status, 202);
    }
    places.succeed(&[]);
    let new = Partita::start(&["--data", &text(&places.new), "--accept-migration"]);
    assert_eq!(put(&mut new.client(), "Books", "17", 2).status, 204);
    assert!(new.stop().success());
    let shown = places.fail(&["--finish"]);
    assert!(shown.contains("table Books, PartitionKey \"p2\", RowKey \"17\""), "{shown}");
    assert!(shown.contains("writes are accepted again"), "{shown}");
    assert_eq!(put(&mut server.client(), "Books", "18", 2).status, 204);
    assert!(!places.old.join("MOVED").exists());
    // The next run compares the whole target.
    let shown = places.succeed(&["--finish"]);
    assert!(shown.contains("2 stored"), "{shown}");
}

#[test]
fn without_a_server_one_pass_suffices() {
    let places = places();
    let server = served(&places, 30);
    assert!(server.stop().success());
    let shown = places.succeed(&[]);
    assert!(shown.contains("are equal on both sides") && shown.contains("--finish"), "{shown}");
    assert!(!places.old.join("MOVED").exists());
    let shown = succeed(&[
        "migrate",
        "--from",
        &text(&places.old),
        "--data",
        &text(&places.new),
        "--account",
        "devstoreaccount1",
        "--finish",
    ]);
    assert!(shown.contains("devstoreaccount1/Books: 30 entities"), "{shown}");
    let new = Partita::in_directory(&places.new);
    assert!(etag(&mut new.client(), "Books", "29").is_some());
    assert!(new.stop().success());
    // And back.
    let back = places.old.with_file_name("back");
    let arguments = ["migrate", "--data", &text(&places.new), "--to", &text(&back), "--finish"];
    assert!(succeed(&arguments).contains("30 entities"));
    succeed(&["check", "--data", &text(&back)]);
}

#[test]
fn data_in_the_target_is_not_replaced_without_the_flag() {
    let places = places();
    drop(served(&places, 5));
    let other = Partita::in_directory(&places.new);
    assert_eq!(create_table(&mut other.client(), "Precious").status, 204);
    let shown = places.fail(&["--finish"]);
    assert!(shown.contains("in use by another process"), "{shown}");
    assert!(other.stop().success());
    let shown = places.fail(&["--finish"]);
    assert!(
        shown.contains("already has tables or properties of account devstoreaccount1")
            && shown.contains("--replace"),
        "{shown}"
    );
    let new = Partita::in_directory(&places.new);
    assert_eq!(new.client().send("GET", "/Tables('Precious')", &READ, b"").status, 200);
    assert!(new.stop().success());
    places.succeed(&["--finish", "--replace"]);
    let new = Partita::in_directory(&places.new);
    assert_eq!(new.client().send("GET", "/Tables('Precious')", &READ, b"").status, 404);
}

#[test]
fn a_directory_without_a_store_is_refused() {
    let places = places();
    let shown = places.fail(&[]);
    assert!(shown.contains("there is no store in"), "{shown}");
    assert!(!places.old.exists() && !places.new.exists());
    let shown = fail(&["migrate", "--data", &text(&places.old), "--to", &text(&places.old)]);
    assert!(shown.contains("both the source and the target"), "{shown}");
}
