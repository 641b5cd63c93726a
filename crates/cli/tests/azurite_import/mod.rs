//! `partita import --azurite` with a folder that Azurite 3.37.0 has written: tables with all types, queues, and blobs of all
//! types with snapshots.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

mod hostile;
mod kept;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::support::{ACCOUNT, KEY, Partita, binary};

fn data() -> PathBuf {
    testing::package_directory().join("tests/azurite_import/data")
}

/// A copy that a test may damage.
fn copy() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for path in ["", "__blobstorage__", "__queuestorage__"] {
        fs::create_dir_all(folder.path().join(path)).unwrap();
        for entry in fs::read_dir(data().join(path)).unwrap() {
            let from = entry.unwrap().path();
            if from.is_file() {
                fs::copy(&from, folder.path().join(path).join(from.file_name().unwrap())).unwrap();
            }
        }
    }
    folder
}

fn run(server: &Partita, arguments: &[&str]) -> Output {
    let url = |address| format!("http://{address}/{ACCOUNT}");
    let endpoint = format!(
        "AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint={};QueueEndpoint={};BlobEndpoint={}",
        url(server.address),
        url(server.queue_address()),
        url(server.blob_address())
    );
    let mut command = binary();
    command.env("AZURE_STORAGE_CONNECTION_STRING", endpoint).args(arguments).stdin(Stdio::null());
    command.output().unwrap()
}

fn import(server: &Partita, folder: &Path) -> Output {
    run(server, &["import", "--azurite", folder.to_str().unwrap()])
}

fn succeed(server: &Partita, arguments: &[&str]) -> String {
    let output = run(server, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn imported() -> Partita {
    let server = Partita::in_memory();
    let output = import(&server, &data());
    assert!(output.status.success(), "{}", said(&output));
    server
}

#[test]
fn entities_keep_all_of_their_types() {
    let server = imported();
    assert_eq!(succeed(&server, &["tables"]), "Books\nEmpty\n");
    let entity = succeed(&server, &["get", "Books", "sf", "it's a ü", "--format", "json"]);
    let entity: Value = serde_json::from_str(entity.trim()).unwrap();
    for (name, expected) in [
        ("S", Value::from("text \"q\" \u{2028} <&>")),
        ("I", 7.into()),
        ("L", "1152921504606846976".into()),
        ("L@odata.type", "Edm.Int64".into()),
        ("D", 1.5.into()),
        ("Whole", 3.0.into()),
        ("NaN", "NaN".into()),
        ("NaN@odata.type", "Edm.Double".into()),
        ("Inf", "Infinity".into()),
        ("B", true.into()),
        ("T@odata.type", "Edm.DateTime".into()),
        ("G", "11111111-2222-3333-4444-555555555555".into()),
        ("G@odata.type", "Edm.Guid".into()),
        ("Y", "AAH/".into()),
        ("Y@odata.type", "Edm.Binary".into()),
        ("E", "".into()),
    ] {
        assert_eq!(entity[name], expected, "{name}");
    }
    assert!(entity["T"].as_str().unwrap().starts_with("2021-02-03T04:05:06.789"), "{entity}");
    assert_eq!(succeed(&server, &["count", "Books"]).trim(), "7");
    let changed = succeed(&server, &["get", "Books", "many", "001", "--format", "json"]);
    assert_eq!(serde_json::from_str::<Value>(changed.trim()).unwrap()["N"], 100);
}

#[test]
fn messages_come_in_their_order_without_those_that_expired() {
    let server = imported();
    let listed = succeed(&server, &["queue", "list", "--format", "json"]);
    let expected =
        "{\"metadata\":{},\"name\":\"empty-queue\"}\n{\"metadata\":{\"color\":\"blue\"},\"name\":\"jobs\"}\n";
    assert_eq!(listed, expected);
    let taken = succeed(&server, &["queue", "peek", "jobs", "--format", "json"]);
    let texts: Vec<String> = taken
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(texts, ["first".to_owned(), "second <&> ü".to_owned(), "x".repeat(2000)]);
}

#[test]
fn blobs_of_all_types_keep_what_belongs_to_them() {
    let server = imported();
    assert_eq!(succeed(&server, &["blob", "list"]), "$web\nempty-box\nphotos\n");
    let listed = succeed(&server, &["blob", "list", "photos", "--snapshots", "--format", "json"]);
    let blobs: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let shown: Vec<String> = blobs
        .iter()
        .map(|blob| {
            let snapshot = if blob["snapshot"].is_string() { " snapshot" } else { "" };
            format!(
                "{} {} {}{snapshot}",
                blob["name"].as_str().unwrap(),
                blob["type"].as_str().unwrap(),
                blob["length"]
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            "2026/cat ü.txt block 5 snapshot",
            "2026/cat ü.txt block 11 snapshot",
            "2026/cat ü.txt block 11",
            "blocks block 4000",
            "copy block 4000",
            "disk page 8192 snapshot",
            "disk page 8192",
            "empty block 0",
            "leased block 6",
            "log append 8",
            "log2 append 50",
        ]
    );
    let first = &blobs[0];
    assert_eq!((&first["contentType"], &first["contentLanguage"]), (&"text/plain".into(), &"de".into()));
    assert_eq!(
        (&first["cacheControl"], &first["contentDisposition"]),
        (&"no-cache".into(), &"inline".into())
    );
    assert_eq!(first["metadata"].to_string(), r#"{"a":"1","bc":"x y"}"#);
    assert_eq!((&first["tagCount"], &first["contentMD5"]), (&2.into(), &"XUFAKrxLKna5cZ2REBfFkg==".into()));
    assert_eq!(
        (blobs[1]["metadata"].to_string(), blobs[3]["tier"].as_str()),
        (r#"{"s":"own"}"#.to_owned(), Some("Cool"))
    );
    let get = |name: &str, snapshot: Option<&Value>| {
        let time = snapshot.map(|of| of["snapshot"].as_str().unwrap());
        let flags = time.map(|time| vec!["--snapshot", time]).unwrap_or_default();
        let arguments: Vec<&str> = ["blob", "get", "photos", name].into_iter().chain(flags).collect();
        let output = run(&server, &arguments);
        assert!(output.status.success(), "{}", said(&output));
        output.stdout
    };
    assert_eq!(get("2026/cat ü.txt", Some(&blobs[0])), b"hello");
    assert_eq!(get("2026/cat ü.txt", None), b"hello again");
    let blocks: Vec<u8> = "caba".bytes().flat_map(|letter| vec![letter; 1000]).collect();
    assert!(get("blocks", None) == blocks && get("copy", None) == blocks);
    assert_eq!(get("log", None), b"one\ntwo\n");
    let page = |letter: u8| vec![letter; 512];
    let disk = |first: u8| [page(first), page(b'a'), vec![0; 6656], page(b'b')].concat();
    assert!(get("disk", Some(&blobs[5])) == disk(0));
    assert!(get("disk", None) == disk(b'c'));
}

#[test]
fn a_second_import_replaces_blobs_and_never_doubles_messages() {
    let server = imported();
    let before = succeed(&server, &["blob", "list", "photos", "--snapshots"]).lines().count();
    let output = import(&server, &data());
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("`partita queue clear jobs`"), "{}", said(&output));
    succeed(&server, &["queue", "clear", "jobs"]);
    let output = import(&server, &data());
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(succeed(&server, &["blob", "list", "photos", "--snapshots"]).lines().count(), before);
    assert_eq!(succeed(&server, &["queue", "count", "jobs"]).trim(), "3");
}

#[test]
fn a_damaged_folder_is_refused_with_the_name_of_its_file() {
    let server = Partita::in_memory();
    let check = |folder: &Path, expected: &str| {
        let output = import(&server, folder);
        assert_eq!(output.status.code(), Some(1), "{expected}");
        assert!(said(&output).contains(expected), "{expected}: {}", said(&output));
    };
    let empty = tempfile::tempdir().unwrap();
    check(empty.path(), "has no data of Azurite");
    let cut = copy();
    let path = cut.path().join("__azurite_db_blob__.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    check(cut.path(), "__azurite_db_blob__.json is damaged");
    assert_eq!(succeed(&server, &["tables"]), "", "nothing was written");

    let short = copy();
    let extent = fs::read_dir(short.path().join("__blobstorage__")).unwrap().next().unwrap().unwrap().path();
    fs::File::options().write(true).open(&extent).unwrap().set_len(100).unwrap();
    check(short.path(), extent.file_name().unwrap().to_str().unwrap());

    let hostile = copy();
    let extents = hostile.path().join("__azurite_db_blob_extent__.json");
    let text = fs::read_to_string(&extents).unwrap();
    let name = extent.file_name().unwrap().to_str().unwrap();
    fs::write(&extents, text.replace(&format!("\"path\":\"{name}\""), "\"path\":\"../../etc/passwd\""))
        .unwrap();
    succeed(&server, &["queue", "clear", "jobs"]);
    check(hostile.path(), "is not the name of a file");
}
