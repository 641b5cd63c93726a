//! A store that version 0.1.0 wrote is served, checked, backed up, restored and salvaged by this version.
//!
//! The fixture has the answers of that version; this version must give the same bytes.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::support::{Client, Partita, binary, root};
use serde_json::Value;
use tempfile::TempDir;

fn fixtures() -> PathBuf {
    root().join("crates/engine-embedded/tests/fixtures")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// A copy of the store of format 1 in a new directory.
fn store_of_format_1() -> (TempDir, PathBuf) {
    let place = TempDir::new().unwrap();
    let data = place.path().join("data");
    copy(&fixtures().join("format-1"), &data);
    (place, data)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn run(arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = binary().args(arguments).output().unwrap();
    let shown = String::from_utf8([stdout, stderr].concat()).unwrap();
    assert!(status.success(), "{arguments:?}: {shown}");
    shown
}

fn format(data: &Path) -> String {
    fs::read_to_string(data.join("FORMAT")).unwrap()
}

/// Serves the store and repeats all requests that version 0.1.0 answered.
fn assert_answers_as_before(data: &Path) {
    let recorded = fs::read_to_string(fixtures().join("format-1.answers.json")).unwrap();
    let recorded: Value = serde_json::from_str(&recorded).unwrap();
    let accounts = recorded["accounts"].as_object().unwrap();
    let mut arguments = vec!["--data".to_owned(), text(data)];
    for (name, key) in accounts {
        arguments.extend(["--account".to_owned(), format!("{name}:{}", key.as_str().unwrap())]);
    }
    let server = Partita::start(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let answers = recorded["answers"].as_array().unwrap();
    assert_eq!(answers.len(), 14);
    for expected in answers {
        let part = |name: &str| expected[name].as_str().unwrap();
        let mut client =
            Client::new(server.address, part("account"), accounts[part("account")].as_str().unwrap());
        let answer = client.send("GET", part("path"), &[("Accept", part("accept"))], b"");
        assert_eq!(answer.status, 200, "{}", part("path"));
        let body = answer.text().replace(&server.address.to_string(), "HOST");
        assert_eq!(body, part("body"), "{} of {}", part("path"), part("account"));
    }
    assert!(server.stop().success());
    assert_eq!(format(data), "partita-store 2\n");
    assert!(run(&["check", "--data", &text(data)]).contains("Sound."));
}

#[test]
fn a_store_of_format_1_is_served_with_every_entity_etag_policy_and_property() {
    let (_place, data) = store_of_format_1();
    let shown = run(&["check", "--data", &text(&data)]);
    assert!(shown.contains("221 entities in 9 tables") && shown.contains("Sound."), "{shown}");
    assert_eq!(format(&data), "partita-store 1\n", "a check changes nothing");
    assert_answers_as_before(&data);
    // Again, now as a store of format 2.
    assert_answers_as_before(&data);
}

#[test]
fn a_backup_of_format_1_is_restored_and_upgraded_when_it_is_opened() {
    let (place, backup) = store_of_format_1();
    let restored = place.path().join("restored");
    run(&["restore", &text(&backup), "--data", &text(&restored)]);
    assert_eq!(
        (format(&backup), format(&restored)),
        ("partita-store 1\n".into(), "partita-store 1\n".into())
    );
    assert_answers_as_before(&restored);
}

#[test]
fn a_backup_of_a_store_of_format_1_is_complete() {
    let (place, data) = store_of_format_1();
    let backups = place.path().join("backups");
    let shown = run(&["backup", &text(&backups), "--data", &text(&data)]);
    assert!(shown.contains("checked, 221 entities"), "{shown}");
    let backup = fs::read_dir(&backups).unwrap().next().unwrap().unwrap().path();
    let restored = place.path().join("restored");
    run(&["restore", &text(&backup), "--data", &text(&restored)]);
    assert_answers_as_before(&restored);
}

#[test]
fn a_store_of_format_1_is_salvaged_completely() {
    let (place, data) = store_of_format_1();
    let saved = place.path().join("saved");
    run(&["check", "--data", &text(&data), "--salvage", &text(&saved)]);
    assert_eq!((format(&data), format(&saved)), ("partita-store 1\n".into(), "partita-store 2\n".into()));
    assert_answers_as_before(&saved);
}
