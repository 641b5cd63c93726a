//! Blobs through the operator's commands: backup and restore, check, salvage, and moves between stores; and through a kill.
//! What a client knows of them holds afterwards: every byte, ETags, metadata, snapshots, pages, leases, uncommitted blocks,
//! policies, and the logs that the service has written.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use engine_embedded::{EmbeddedEngine, EmbeddedObjects, Options};
use store::{ObjectId, Objects};

use crate::support::cluster::{new_store, nodes};
use crate::support::request_logs::log_blobs;
use crate::support::{Answer, Client, Partita, binary};
use tempfile::TempDir;

const LEASE: &str = "5c6a2a6e-9b1f-4c3e-8d55-0f5f3a2b1c0d";
const POLICIES: &str = "<SignedIdentifiers><SignedIdentifier><Id>reader</Id><AccessPolicy><Expiry>2099-01-01</Expiry>\
    <Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
const LOGGING: &str = "<StorageServiceProperties><Logging><Version>1.0</Version><Delete>false</Delete><Read>true</Read>\
    <Write>false</Write><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging></StorageServiceProperties>";

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// The output of both streams.
fn partita(arguments: &[&str], code: i32) -> String {
    let output = binary().args(arguments).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

/// Bytes that do not compress, and differ by name.
fn content(name: &str, bytes: usize) -> Vec<u8> {
    let mut state = name.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as u8
    };
    std::iter::repeat_with(next).take(bytes).collect()
}

/// In a row, in the log, and flushed.
const BLOBS: [(&str, usize); 4] =
    [("small", 100), ("folder/a%20b", 50_000), ("folder/large", 7 << 20), ("one", (1 << 20) + 1)];

fn send(client: &mut Client, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    let answer = client.send(method, path, headers, body);
    assert!(answer.status < 300, "{method} {path}: {} {}", answer.status, answer.text());
    answer
}

/// What clients have seen before something happens to the store.
#[derive(Debug, PartialEq, Eq)]
struct Known {
    /// Requests that only read, with what is answered to them: some headers, and a checksum of the body.
    read: Vec<(String, Vec<String>)>,
}

/// A snapshot's time is its name.
fn fill(client: &mut Client) -> Vec<String> {
    send(client, "PUT", "/pictures?restype=container", &[("x-ms-meta-album", "2026")], b"");
    send(client, "PUT", "/pictures?restype=container&comp=acl", &[], POLICIES.as_bytes());
    for (name, bytes) in BLOBS {
        let headers = [("x-ms-blob-type", "BlockBlob"), ("x-ms-meta-name", "kept")];
        send(client, "PUT", &format!("/pictures/{name}"), &headers, &content(name, bytes));
    }
    // An append blob, a page blob with holes, blocks that are committed and not, a lease, tags.
    send(client, "PUT", "/pictures/append", &[("x-ms-blob-type", "AppendBlob")], b"");
    for n in 0..5 {
        send(client, "PUT", "/pictures/append?comp=appendblock", &[], &content(&n.to_string(), 7000));
    }
    let page = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "10485760")];
    send(client, "PUT", "/pictures/pages", &page, b"");
    for at in [0, 4_193_792, 9_437_184] {
        let range = format!("bytes={at}-{}", at + 1023);
        let headers = [("x-ms-page-write", "update"), ("x-ms-range", range.as_str())];
        send(client, "PUT", "/pictures/pages?comp=page", &headers, &content(&range, 1024));
    }
    for id in ["YQ%3D%3D", "Yg%3D%3D", "Yw%3D%3D"] {
        send(client, "PUT", &format!("/pictures/blocks?comp=block&blockid={id}"), &[], &content(id, 30_000));
    }
    let list = b"<BlockList><Latest>YQ==</Latest><Latest>Yg==</Latest></BlockList>";
    send(client, "PUT", "/pictures/blocks?comp=blocklist", &[], list);
    send(client, "PUT", "/pictures/blocks?comp=block&blockid=ZA%3D%3D", &[], &content("later", 2_000_000));
    let snapshot = send(client, "PUT", "/pictures/blocks?comp=snapshot", &[("x-ms-meta-of", "blocks")], b"");
    let snapshot = snapshot.header("x-ms-snapshot").unwrap().to_owned();
    let list = b"<BlockList><Committed>Yg==</Committed></BlockList>";
    send(client, "PUT", "/pictures/blocks?comp=blocklist", &[], list);
    send(client, "PUT", "/pictures/blocks?comp=block&blockid=ZQ%3D%3D", &[], &content("last", 10));
    let pages = send(client, "PUT", "/pictures/pages?comp=snapshot", &[], b"");
    let pages = pages.header("x-ms-snapshot").unwrap().to_owned();
    let cleared = [("x-ms-page-write", "clear"), ("x-ms-range", "bytes=0-511")];
    send(client, "PUT", "/pictures/pages?comp=page", &cleared, b"");
    let lease =
        [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1"), ("x-ms-proposed-lease-id", LEASE)];
    send(client, "PUT", "/pictures/small?comp=lease", &lease, b"");
    let tags = b"<Tags><TagSet><Tag><Key>kind</Key><Value>cat</Value></Tag></TagSet></Tags>";
    send(client, "PUT", "/pictures/one?comp=tags", &[("x-ms-version", "2021-02-12")], tags);
    vec![format!("/pictures/blocks?snapshot={snapshot}"), format!("/pictures/pages?snapshot={pages}")]
}

/// All that can be read of what `fill` has made.
fn known(client: &mut Client, snapshots: &[String]) -> Known {
    let mut paths: Vec<String> = BLOBS.iter().map(|(name, _)| format!("/pictures/{name}")).collect();
    paths.extend(["/pictures/append", "/pictures/pages", "/pictures/blocks"].map(str::to_owned));
    paths.extend_from_slice(snapshots);
    paths.extend(
        [
            "/pictures?restype=container",
            "/pictures?restype=container&comp=acl",
            "/pictures?restype=container&comp=list&include=metadata,snapshots,uncommittedblobs,tags",
            "/pictures/blocks?comp=blocklist&blocklisttype=all",
            "/pictures/pages?comp=pagelist",
            "/pictures/one?comp=tags",
            "/?comp=blobs&where=%22kind%22%3D%27cat%27",
        ]
        .map(str::to_owned),
    );
    let mut read = Vec::new();
    for path in paths {
        let answer = send(client, "GET", &path, &[("x-ms-version", "2021-02-12")], b"");
        let mut shown: Vec<String> = ["etag", "last-modified", "x-ms-lease-state", "content-length"]
            .iter()
            .filter_map(|name| Some(format!("{name}: {}", answer.header(name)?)))
            .collect();
        let metadata = answer.headers.iter().filter(|(name, _)| name.starts_with("x-ms-meta-"));
        shown.extend(metadata.map(|(name, value)| format!("{name}: {value}")));
        // The address of the server is in lists.
        let text = answer.text();
        let body = match text.split_once("ServiceEndpoint=\"").and_then(|(_, rest)| rest.split_once('"')) {
            Some((_, rest)) => rest.as_bytes().to_vec(),
            None => answer.body.clone(),
        };
        shown.push(format!("{} bytes, {:016x}", body.len(), checksum(&body)));
        read.push((path, shown));
    }
    for (name, bytes) in BLOBS {
        let got = client.send("GET", &format!("/pictures/{name}"), &[], b"");
        assert!(got.body == content(name, bytes), "the content of {name}");
    }
    Known { read }
}

/// FNV-1a: only to tell bodies apart in a message.
fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// What was there is there, and can be used.
fn check(client: &mut Client, before: &Known, snapshots: &[String]) {
    assert_eq!(&known(client, snapshots), before);
    let denied = client.send("PUT", "/pictures/small", &[("x-ms-blob-type", "BlockBlob")], b"other");
    assert_eq!((denied.status, denied.code().as_str()), (412, "LeaseIdMissing"));
    let headers = [("x-ms-blob-type", "BlockBlob"), ("x-ms-lease-id", LEASE)];
    send(client, "PUT", "/pictures/small", &headers, b"other");
    assert_eq!(send(client, "GET", "/pictures/small", &[], b"").body, b"other");
    // The uncommitted block can be committed behind the committed one.
    let list = b"<BlockList><Committed>Yg==</Committed><Uncommitted>ZQ==</Uncommitted></BlockList>";
    send(client, "PUT", "/pictures/blocks?comp=blocklist", &[], list);
    let both = [content("Yg%3D%3D", 30_000), content("last", 10)].concat();
    assert!(send(client, "GET", "/pictures/blocks", &[], b"").body == both);
    send(client, "PUT", "/pictures/append?comp=appendblock", &[], b"more");
    assert!(send(client, "GET", "/pictures/append", &[], b"").body.ends_with(b"more"));
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
fn a_backup_of_a_served_store_has_every_blob() {
    let places = places();
    let server = Partita::in_directory(&places.data);
    let snapshots = fill(&mut server.blob_client());
    let before = known(&mut server.blob_client(), &snapshots);
    for how in [&[][..], &["--copy"]] {
        let backup = ["backup", &text(&places.backups), "--data", &text(&places.data)];
        let shown = partita(&[&backup, how].concat(), 0);
        assert!(shown.contains("checked, "), "{shown}");
    }
    // What comes after the backup is not in it.
    send(&mut server.blob_client(), "DELETE", "/pictures/one", &[], b"");
    assert!(server.stop().success());
    for (number, backup) in fs::read_dir(&places.backups).unwrap().enumerate() {
        let (backup, restored) =
            (backup.unwrap().path(), places.data.with_file_name(format!("restored{number}")));
        partita(&["restore", &text(&backup), "--data", &text(&restored)], 0);
        let server = Partita::in_directory(&restored);
        check(&mut server.blob_client(), &before, &snapshots);
        assert!(server.stop().success());
    }
}

#[test]
fn what_was_answered_survives_a_kill() {
    let places = places();
    let server = Partita::in_directory(&places.data);
    let snapshots = fill(&mut server.blob_client());
    let before = known(&mut server.blob_client(), &snapshots);
    server.kill();
    assert!(partita(&["check", "--data", &text(&places.data)], 0).contains("Sound."));
    let server = Partita::in_directory(&places.data);
    check(&mut server.blob_client(), &before, &snapshots);
    assert!(server.stop().success());
}

#[test]
fn check_counts_blobs_and_salvage_saves_them() {
    let places = places();
    let server = Partita::in_directory(&places.data);
    let snapshots = fill(&mut server.blob_client());
    let before = known(&mut server.blob_client(), &snapshots);
    assert!(server.stop().success());
    let shown = partita(&["check", "--data", &text(&places.data), "--json"], 0);
    let json: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let tables = json["tables"].as_array().unwrap();
    let pictures = tables.iter().find(|table| table["table"] == "pictures").unwrap();
    assert_eq!((&pictures["service"], &pictures["account"]), (&"blob".into(), &"devstoreaccount1".into()));
    let bytes: usize = BLOBS.iter().map(|(_, bytes)| bytes).sum();
    assert!(json["objects"]["bytes"].as_u64().unwrap() >= bytes as u64 - 100, "{}", json["objects"]);
    let shown = partita(&["check", "--data", &text(&places.data), "--salvage", &text(&places.other)], 0);
    assert!(shown.contains("entities saved to"), "{shown}");
    partita(&["check", "--data", &text(&places.other)], 0);
    let salvaged = Partita::in_directory(&places.other);
    check(&mut salvaged.blob_client(), &before, &snapshots);
}

#[test]
fn damaged_content_is_named_and_the_other_blobs_are_salvaged() {
    const COUNT: usize = 40;
    let places = places();
    let server = Partita::in_directory(&places.data);
    let mut client = server.blob_client();
    send(&mut client, "PUT", "/pictures?restype=container", &[], b"");
    // Beyond what goes through the log, so that they are in files of content.
    let name = |n: usize| format!("photo{n:02}");
    for n in 0..COUNT {
        let headers = [("x-ms-blob-type", "BlockBlob")];
        send(&mut client, "PUT", &format!("/pictures/{}", name(n)), &headers, &content(&name(n), 300_000));
    }
    send(
        &mut client,
        "PUT",
        "/pictures/large",
        &[("x-ms-blob-type", "BlockBlob")],
        &content("large", 9 << 20),
    );
    assert!(server.stop().success());
    let files = fs::read_dir(places.data.join("db")).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|found| found == "blob"));
    let file = files.max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, bytes).unwrap();
    let shown = partita(&["check", "--data", &text(&places.data)], 1);
    assert!(shown.contains("devstoreaccount1/blob/pictures("), "{shown}");
    partita(&["check", "--data", &text(&places.data), "--salvage", &text(&places.other)], 1);
    let salvaged = Partita::in_directory(&places.other);
    let mut client = salvaged.blob_client();
    let mut whole = 0;
    for (name, bytes) in (0..COUNT).map(|n| (name(n), 300_000)).chain([("large".to_owned(), 9 << 20)]) {
        // What is damaged is not there, or its answer breaks off.
        let Ok(got) = client.try_send("GET", &format!("/pictures/{name}"), &[], b"") else {
            client = salvaged.blob_client();
            continue;
        };
        match got.status {
            200 => assert!(got.body == content(&name, bytes), "the content of {name}"),
            404 => continue,
            other => panic!("{name}: {other} {}", got.text()),
        }
        whole += 1;
    }
    assert_eq!(whole, COUNT, "one blob had the damaged byte");
    send(&mut client, "PUT", "/pictures/after", &[("x-ms-blob-type", "BlockBlob")], b"after");
    assert!(salvaged.stop().success());
}

#[test]
fn blobs_move_to_another_directory_while_they_are_in_use() {
    let places = places();
    let server = Partita::in_directory(&places.data);
    let mut client = server.blob_client();
    send(&mut client, "PUT", "/doomed?restype=container", &[], b"");
    send(&mut client, "PUT", "/doomed/b", &[("x-ms-blob-type", "BlockBlob")], &content("b", 2_000_000));
    let arguments = ["migrate", "--data", &text(&places.data), "--to", &text(&places.other)];
    // Both what the first pass has copied and what comes after it.
    partita(&arguments, 0);
    send(&mut client, "DELETE", "/doomed?restype=container", &[], b"");
    let snapshots = fill(&mut client);
    let before = known(&mut client, &snapshots);
    let shown = partita(&[&arguments[..], &["--finish"]].concat(), 0);
    assert!(
        shown.contains("devstoreaccount1/blob/pictures: ")
            && shown.contains("of blobs' content are equal too"),
        "{shown}"
    );
    let late = client.send("PUT", "/pictures/late", &[("x-ms-blob-type", "BlockBlob")], b"late");
    assert_eq!(late.status, 503, "the old server takes no writes");
    assert_eq!(known(&mut client, &snapshots), before, "and answers reads");
    let moved = Partita::in_directory(&places.other);
    let mut client = moved.blob_client();
    check(&mut client, &before, &snapshots);
    assert_eq!(client.send("GET", "/doomed/b", &[], b"").status, 404);
    assert!(moved.stop().success());
    partita(&["check", "--data", &text(&places.other)], 0);
}

/// As after a sweep by servers of the target that came between a copy and its row.
#[test]
fn content_that_the_target_has_lost_is_copied_by_the_run_after_the_comparison() {
    let places = places();
    let server = Partita::in_directory(&places.data);
    let snapshots = fill(&mut server.blob_client());
    let before = known(&mut server.blob_client(), &snapshots);
    let arguments = ["migrate", "--data", &text(&places.data), "--to", &text(&places.other)];
    partita(&arguments, 0);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let engine = Arc::new(EmbeddedEngine::open(Options::new(&places.other)).unwrap());
        let objects = EmbeddedObjects::new(engine);
        let all = objects.list(ObjectId::FIRST, 1000).await.unwrap().objects;
        objects.remove(&all).await.unwrap();
        objects.close().await;
    });
    let finish = [&arguments[..], &["--finish"]].concat();
    // Another test that starts a program keeps, until that runs, a copy of every lock of this process.
    let shown = testing::wait_until("nobody has the store's lock", || {
        Some(partita(&finish, 1)).filter(|shown| !shown.contains("is in use"))
    });
    assert!(shown.contains("its content is not the same"), "{shown}");
    let shown = partita(&finish, 0);
    assert!(shown.contains("of blobs' content are equal too"), "{shown}");
    let moved = Partita::in_directory(&places.other);
    check(&mut moved.blob_client(), &before, &snapshots);
}

#[test]
fn blobs_move_to_a_cluster_and_back() {
    let Some(nodes) = nodes() else { return };
    let (places, store) = (places(), new_store(&nodes));
    let server = Partita::in_directory(&places.data);
    let snapshots = fill(&mut server.blob_client());
    let before = known(&mut server.blob_client(), &snapshots);
    let shown = partita(&["migrate", "--data", &text(&places.data), "--to", &store, "--finish"], 0);
    assert!(shown.contains("of blobs' content are equal too"), "{shown}");
    assert!(server.stop().success());
    let there = Partita::start(&["--store", &store]);
    assert_eq!(known(&mut there.blob_client(), &snapshots), before);
    assert!(there.stop().success());
    let shown = partita(&["migrate", "--from", &store, "--data", &text(&places.other), "--finish"], 0);
    assert!(shown.contains("of blobs' content are equal too"), "{shown}");
    let back = Partita::in_directory(&places.other);
    check(&mut back.blob_client(), &before, &snapshots);
}

/// Logs are blobs like others.
#[test]
fn request_logs_are_in_backups_and_move_with_their_account() {
    let places = places();
    let server = Partita::in_directory(&places.data);
    let mut tables = server.client();
    send(&mut tables, "PUT", "/?restype=service&comp=properties", &[], LOGGING.as_bytes());
    let asked = send(&mut tables, "GET", "/Tables", &[("Accept", "application/json;odata=nometadata")], b"");
    let id = asked.header("x-ms-request-id").unwrap();
    let logs = testing::wait_until("the log is there", || {
        log_blobs(&mut server.blob_client(), "table/")
            .filter(|logs| logs.iter().any(|(_, text)| text.contains(id)))
    });
    partita(&["backup", &text(&places.backups), "--data", &text(&places.data)], 0);
    partita(&["migrate", "--data", &text(&places.data), "--to", &text(&places.other), "--finish"], 0);
    assert!(server.stop().success());
    let backup = fs::read_dir(&places.backups).unwrap().next().unwrap().unwrap().path();
    let restored = places.data.with_file_name("restored");
    partita(&["restore", &text(&backup), "--data", &text(&restored)], 0);
    for data in [&places.other, &restored] {
        let server = Partita::in_directory(data);
        assert_eq!(log_blobs(&mut server.blob_client(), "table/").as_ref(), Some(&logs), "{data:?}");
        // A new server begins a new log.
        let mut tables = server.client();
        let asked =
            send(&mut tables, "GET", "/Tables", &[("Accept", "application/json;odata=nometadata")], b"");
        let id = asked.header("x-ms-request-id").unwrap();
        testing::wait_until("the next log is there", || {
            let logs = log_blobs(&mut server.blob_client(), "table/")?;
            logs.iter().any(|(_, text)| text.contains(id)).then_some(())
        });
    }
}
