//! Folders of Azurite that somebody else has made: nothing outside of them is read, and every refusal names its file.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{copy, import, said, succeed};
use crate::support::Partita;

const BLOBS: &str = "__azurite_db_blob__.json";

/// Changes the records of a collection.
pub fn change(folder: &Path, file: &str, collection: &str, change: impl Fn(&mut Value)) {
    let path = folder.join(file);
    let mut database: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let mut changed = 0;
    for of in database["collections"].as_array_mut().unwrap() {
        if of["name"] == collection {
            let records = of["data"].as_array_mut().unwrap();
            records.iter_mut().for_each(&change);
            changed += records.len();
        }
    }
    assert!(changed > 0, "{collection}");
    // A collection begins with its name.
    let collections = database["collections"].as_array().unwrap().iter();
    let collections: Vec<String> =
        collections.map(|of| format!(r#"{{"name":{},"data":{}}}"#, of["name"], of["data"])).collect();
    fs::write(path, format!(r#"{{"collections":[{}]}}"#, collections.join(","))).unwrap();
}

/// Changes one blob.
pub fn change_blob(folder: &Path, name: &str, change_it: impl Fn(&mut Value)) {
    change(folder, BLOBS, "$BLOBS_COLLECTION$", |blob| {
        if blob["name"] == name && blob["snapshot"] == "" {
            change_it(blob);
        }
    });
}

fn extent(folder: &Path) -> PathBuf {
    fs::read_dir(folder.join("__blobstorage__")).unwrap().next().unwrap().unwrap().path()
}

fn refused(folder: &Path, expected: &[&str]) {
    let server = Partita::in_memory();
    let output = import(&server, folder);
    assert_eq!(output.status.code(), Some(1), "{expected:?}: {}", said(&output));
    for part in expected {
        assert!(said(&output).contains(part), "{part}: {}", said(&output));
    }
}

#[test]
fn an_extent_that_is_a_link_is_refused() {
    let (folder, outside) = (copy(), tempfile::tempdir().unwrap());
    let extent = extent(folder.path());
    fs::rename(&extent, outside.path().join("secret")).unwrap();
    symlink(outside.path().join("secret"), &extent).unwrap();
    refused(folder.path(), &[extent.file_name().unwrap().to_str().unwrap(), "links are not followed"]);
}

#[test]
fn a_folder_of_extents_that_is_a_link_is_refused() {
    let (folder, outside) = (copy(), tempfile::tempdir().unwrap());
    let storage = folder.path().join("__blobstorage__");
    fs::rename(&storage, outside.path().join("elsewhere")).unwrap();
    symlink(outside.path().join("elsewhere"), &storage).unwrap();
    refused(folder.path(), &["__blobstorage__", "links are not followed"]);
}

#[test]
fn an_extent_that_is_a_pipe_is_refused_at_once() {
    let folder = copy();
    let extent = extent(folder.path());
    fs::remove_file(&extent).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&extent).status().unwrap().success());
    refused(folder.path(), &[extent.to_str().unwrap(), "not an ordinary file"]);
}

#[test]
fn a_missing_extent_is_named() {
    let folder = copy();
    let extent = extent(folder.path());
    fs::remove_file(&extent).unwrap();
    refused(folder.path(), &["can't read", extent.to_str().unwrap()]);
    let unknown = copy();
    change_blob(unknown.path(), "log", |blob| {
        blob["committedBlocksInOrder"][0]["persistency"]["id"] = json!("gone");
    });
    refused(unknown.path(), &["the extent \"gone\"", "does not have it"]);
}

#[test]
fn zeros_without_a_file_are_no_content_of_block_and_append_blobs() {
    for name in ["blocks", "log"] {
        let folder = copy();
        change_blob(folder.path(), name, |blob| {
            let endless = json!({ "id": "*ZERO*", "offset": 0, "count": 1_000_000_000_000_u64 });
            blob["committedBlocksInOrder"] = json!([{ "name": "YQ==", "size": 1, "persistency": endless }]);
            blob["properties"]["contentLength"] = json!(1_000_000_000_000_u64);
        });
        refused(folder.path(), &[BLOBS, &format!("photos/{name}"), "in no file"]);
    }
}

#[test]
fn content_beyond_all_numbers_is_refused() {
    let folder = copy();
    change_blob(folder.path(), "blocks", |blob| {
        for block in blob["committedBlocksInOrder"].as_array_mut().unwrap() {
            block["persistency"]["count"] = json!(u64::MAX);
        }
    });
    refused(folder.path(), &[BLOBS, "photos/blocks", "it should have 4000 bytes"]);
    let folder = copy();
    change_blob(folder.path(), "log", |blob| {
        blob["committedBlocksInOrder"][0]["persistency"]["offset"] = json!(u64::MAX);
    });
    refused(folder.path(), &["can't read", extent(folder.path()).to_str().unwrap()]);
}

#[test]
fn pages_that_are_zeros_without_a_file_are_not_written() {
    let folder = copy();
    change_blob(folder.path(), "disk", |blob| {
        blob["pageRangesInOrder"] = json!([{ "start": 0, "end": 8191, "persistency":
            { "id": "*ZERO*", "offset": 0, "count": 8192 } }]);
    });
    let server = Partita::in_memory();
    let output = import(&server, folder.path());
    assert!(output.status.success(), "{}", said(&output));
    let mut blobs = server.blob_client();
    let ranges = blobs.send("GET", "/photos/disk?comp=pagelist", &[("x-ms-version", "2021-08-06")], b"");
    assert_eq!((ranges.status, ranges.text().contains("<PageRange>")), (200, false), "{}", ranges.text());
}

#[test]
fn a_record_of_another_type_is_refused_before_anything_is_written() {
    for (name, value) in [
        ("accountName", json!(7)),
        ("name", json!(null)),
        ("metadata", json!(["x"])),
        ("properties", json!({ "blobType": {} })),
        ("committedBlocksInOrder", json!([{ "name": "YQ==", "persistency": { "id": "x", "offset": -1 } }])),
        ("pageRangesInOrder", json!("all")),
    ] {
        let (folder, server) = (copy(), Partita::in_memory());
        change_blob(folder.path(), "disk", |blob| blob[name] = value.clone());
        let output = import(&server, folder.path());
        assert_eq!(output.status.code(), Some(1), "{name}");
        let said = said(&output);
        assert!(said.contains(BLOBS) && said.contains("a record of $BLOBS_COLLECTION$"), "{name}: {said}");
        assert_eq!(succeed(&server, &["tables"]), "", "{name}");
    }
}

#[test]
fn an_entity_that_is_too_long_is_named() {
    let folder = copy();
    change(folder.path(), "__azurite_db_table__.json", "devstoreaccount1$Books", |entity| {
        entity["properties"]["S"] = json!("x".repeat(5 << 20));
    });
    refused(folder.path(), &["__azurite_db_table__.json", "the entity", "more than an entity can have"]);
}
