//! Blobs through a backup and its restore, and through a kill: every byte and ETag is as before.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::support::{Client, Partita, binary};
use tempfile::TempDir;

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// The output of both streams.
fn partita(arguments: &[&str], code: i32) -> String {
    let output = binary().args(arguments).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

fn serve(data: &Path) -> (Partita, Client) {
    let server = Partita::start(&["--data", &text(data), "--blob-listen", "127.0.0.1:0"]);
    let client = server.blob_client();
    (server, client)
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

fn fill(client: &mut Client) {
    assert_eq!(client.send("PUT", "/pictures?restype=container", &[], b"").status, 201);
    for (name, bytes) in BLOBS {
        let headers = [("x-ms-blob-type", "BlockBlob"), ("x-ms-meta-name", "kept")];
        let put = client.send("PUT", &format!("/pictures/{name}"), &headers, &content(name, bytes));
        assert_eq!(put.status, 201, "{name}: {}", put.text());
    }
}

/// The ETags of all blobs, each of which has its content.
fn assert_whole(client: &mut Client) -> Vec<String> {
    let read = |(name, bytes): (&str, usize)| {
        let got = client.send("GET", &format!("/pictures/{name}"), &[], b"");
        assert_eq!(got.status, 200, "{name}: {}", got.text());
        assert!(got.body == content(name, bytes), "the content of {name}");
        assert_eq!(got.header("x-ms-meta-name"), Some("kept"));
        got.header("etag").unwrap().to_owned()
    };
    BLOBS.map(read).into()
}

#[test]
fn a_backup_of_a_served_store_has_every_blob() {
    let place = TempDir::new().unwrap();
    let (data, backups) = (place.path().join("data"), place.path().join("backups"));
    let (server, mut client) = serve(&data);
    fill(&mut client);
    let etags = assert_whole(&mut client);
    for how in [&[][..], &["--copy"]] {
        let shown = partita(&[&["backup", &text(&backups), "--data", &text(&data)], how].concat(), 0);
        assert!(shown.contains("checked, "), "{shown}");
    }
    assert!(server.stop().success());
    for (number, backup) in fs::read_dir(&backups).unwrap().enumerate() {
        let (backup, restored) = (backup.unwrap().path(), place.path().join(format!("restored{number}")));
        partita(&["restore", &text(&backup), "--data", &text(&restored)], 0);
        let (server, mut client) = serve(&restored);
        assert_eq!(assert_whole(&mut client), etags);
        assert!(server.stop().success());
    }
}

#[test]
fn what_was_answered_survives_a_kill() {
    let place = TempDir::new().unwrap();
    let data = place.path().join("data");
    let (server, mut client) = serve(&data);
    fill(&mut client);
    let etags = assert_whole(&mut client);
    server.kill();
    assert!(partita(&["check", "--data", &text(&data)], 0).contains("Sound."));
    let (server, mut client) = serve(&data);
    assert_eq!(assert_whole(&mut client), etags);
    assert!(server.stop().success());
}
