//! A directory that must not be opened is refused with a message that names it and says what to do.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::fs;

use crate::support::{self, open, raw, refusal};
use engine_embedded::{EmbeddedEngine, OpenError, Options};
use store::{Engine, NoObjects};
use tempfile::TempDir;

fn check(error: &OpenError, directory: &std::path::Path, expected: &str) {
    let text = error.to_string();
    assert!(text.contains(&directory.display().to_string()), "{text}");
    assert!(text.contains(expected), "{text}");
}

#[tokio::test]
async fn a_directory_in_use() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    let error = EmbeddedEngine::open(Options::new(directory.path())).expect_err("must not open");
    assert!(matches!(error, OpenError::InUse { .. }));
    check(&error, directory.path(), "is in use by another process; stop that process");
    engine.close().await;
    open(directory.path());
}

#[tokio::test]
async fn a_newer_format() {
    let directory = TempDir::new().unwrap();
    open(directory.path()).close().await;
    assert_eq!(fs::read_to_string(directory.path().join("FORMAT")).unwrap(), "partita-store 2\n");
    fs::write(directory.path().join("FORMAT"), "partita-store 3\n").unwrap();
    let error = refusal(directory.path());
    assert!(matches!(error, OpenError::NewerFormat { found: 3, supported: 2, .. }));
    check(&error, directory.path(), "is in store format 3, but this version reads no format above 2");
}

/// A program that does not know such a field could damage the data.
#[tokio::test]
async fn a_record_that_only_a_newer_version_understands() {
    let books = &b"Tdevstoreaccount1\0books"[..];
    let of_books = [b"\x02\x01\x10sixteen bytes...\x02\x05Books", &b"\x81\x01!"[..]].concat();
    for (key, value, why) in [
        (&b"Xdesign of a table"[..], &b"\x02"[..], "it has the kind 'X'"),
        (b"S\x07devstoreaccount1", b"\x02\x01\x00", "it has the service 0x07"),
        (b"S\x01devstoreaccount1", b"\x02\x01\x00\x90\x00", "it has the field 0x90"),
        (books, &of_books, "it has the field 0x81"),
    ] {
        let directory = TempDir::new().unwrap();
        open(directory.path()).close().await;
        let rocks = raw(directory.path());
        rocks.put_cf(rocks.cf_handle("meta").unwrap(), key, value).unwrap();
        drop(rocks);
        let checked = support::check(directory.path(), &NoObjects).unwrap_err();
        for error in [refusal(directory.path()), checked] {
            assert!(matches!(error, OpenError::NewerRecord { .. }), "{error}");
            check(&error, directory.path(), why);
            check(&error, directory.path(), "use the version that wrote it, or a newer one");
        }
    }
}

#[test]
fn a_foreign_directory_is_left_alone() {
    for (name, content) in [
        ("notes.txt", "dear diary"),
        ("FORMAT", "another-store 1\n"),
        ("FORMAT", "partita-store 0\n"),
        ("db", ""),
    ] {
        let directory = TempDir::new().unwrap();
        fs::write(directory.path().join(name), content).unwrap();
        let error = refusal(directory.path());
        assert!(matches!(error, OpenError::NotPartita { .. }), "{name}");
        check(&error, directory.path(), "not a Partita store; choose an empty or a new directory");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "{name}: nothing may be added");
    }
}

#[test]
fn a_directory_that_cannot_be_written() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    // Permissions would not stop the root user of a container.
    let beneath = file.join("data");
    let error = refusal(&beneath);
    assert!(matches!(error, OpenError::Unwritable { .. }));
    check(&error, &beneath, "check its path, owner, permissions and free space");
}

#[tokio::test]
async fn an_interrupted_first_start_can_be_repeated() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("LOCK"), "").unwrap();
    fs::write(directory.path().join("FORMAT.new"), "part").unwrap();
    open(directory.path()).close().await;
    open(directory.path()).close().await;
}

#[tokio::test]
async fn only_the_owner_can_read_a_new_directory_and_an_existing_one_is_not_changed() {
    use std::os::unix::fs::PermissionsExt as _;
    let parent = TempDir::new().unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let new = parent.path().join("new");
    open(&new).close().await;
    assert_eq!(mode(&new), 0o700);
    fs::set_permissions(&new, fs::Permissions::from_mode(0o750)).unwrap();
    open(&new).close().await;
    assert_eq!(mode(&new), 0o750);
}
