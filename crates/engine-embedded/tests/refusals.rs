//! A directory that must not be opened is refused in a sentence that names it and the way out.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::fs;

use crate::support::{open, refusal};
use engine_embedded::OpenError;
use store::Engine;
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
    let error = refusal(directory.path());
    assert!(matches!(error, OpenError::InUse { .. }));
    check(&error, directory.path(), "is in use by another process; stop that process");
    engine.close().await;
    open(directory.path());
}

#[tokio::test]
async fn a_newer_format() {
    let directory = TempDir::new().unwrap();
    open(directory.path()).close().await;
    assert_eq!(fs::read_to_string(directory.path().join("FORMAT")).unwrap(), "partita-store 1\n");
    fs::write(directory.path().join("FORMAT"), "partita-store 2\n").unwrap();
    let error = refusal(directory.path());
    assert!(matches!(error, OpenError::NewerFormat { found: 2, supported: 1, .. }));
    check(&error, directory.path(), "is in store format 2, but this version reads only format 1");
}

#[test]
fn a_foreign_directory_is_left_alone() {
    for (name, content) in [("notes.txt", "dear diary"), ("FORMAT", "another-store 1\n"), ("db", "")] {
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
    // Not by permissions, which do not bind the root user of a container.
    let beneath = file.join("data");
    let error = refusal(&beneath);
    assert!(matches!(error, OpenError::Unwritable { .. }));
    check(&error, &beneath, "check its path, owner, permissions and free space");
}

#[tokio::test]
async fn a_first_start_cut_short_can_be_repeated() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("LOCK"), "").unwrap();
    fs::write(directory.path().join("FORMAT.new"), "part").unwrap();
    open(directory.path()).close().await;
    open(directory.path()).close().await;
}

#[tokio::test]
async fn a_new_directory_is_its_owners_alone_and_one_that_is_there_stays_as_it_is() {
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
