//! What an import keeps of each record, and what it leaves alone.

use std::path::Path;

use serde_json::json;

use super::hostile::{change, change_blob};
use super::{copy, import, run, said, succeed};
use crate::support::Partita;

const QUEUES: &str = "__azurite_db_queue__.json";
const MESSAGES: &str = "$MESSAGES_COLLECTION$";

fn imported(folder: &Path) -> Partita {
    let server = Partita::in_memory();
    let output = import(&server, folder);
    assert!(output.status.success(), "{}", said(&output));
    server
}

/// A header of a blob.
fn header(server: &Partita, blob: &str, name: &str) -> Option<String> {
    let answer = server.blob_client().send("HEAD", blob, &[("x-ms-version", "2021-08-06")], b"");
    assert_eq!(answer.status, 200, "{blob}");
    answer.header(name).map(str::to_owned)
}

#[test]
fn the_sequence_number_of_pages_is_kept() {
    let folder = copy();
    change_blob(folder.path(), "disk", |blob| blob["properties"]["blobSequenceNumber"] = json!(7));
    let server = imported(folder.path());
    assert_eq!(header(&server, "/photos/disk", "x-ms-blob-sequence-number").as_deref(), Some("7"));
}

#[test]
fn a_sealed_blob_is_sealed_again() {
    let folder = copy();
    change_blob(folder.path(), "log", |blob| blob["properties"]["isSealed"] = json!(true));
    let server = imported(folder.path());
    assert_eq!(header(&server, "/photos/log", "x-ms-blob-sealed").as_deref(), Some("true"));
    assert_ne!(header(&server, "/photos/log2", "x-ms-blob-sealed").as_deref(), Some("true"));
}

#[test]
fn a_checksum_that_the_service_does_not_make_is_kept() {
    let folder = copy();
    change_blob(folder.path(), "log", |blob| {
        blob["properties"]["contentMD5"] = json!((0..16).collect::<Vec<u8>>());
    });
    let server = imported(folder.path());
    assert_eq!(header(&server, "/photos/log", "content-md5").as_deref(), Some("AAECAwQFBgcICQoLDA0ODw=="));
}

#[test]
fn a_tier_that_nobody_has_set_is_not_set() {
    let folder = copy();
    change_blob(folder.path(), "leased", |blob| {
        blob["properties"]["accessTier"] = json!("Hot");
        blob["properties"]["accessTierInferred"] = json!(true);
    });
    let server = imported(folder.path());
    assert_eq!(header(&server, "/photos/leased", "x-ms-access-tier-inferred").as_deref(), Some("true"));
}

#[test]
fn a_state_may_follow_a_snapshot_that_was_archived() {
    let folder = copy();
    change(folder.path(), "__azurite_db_blob__.json", "$BLOBS_COLLECTION$", |blob| {
        if blob["snapshot"] != "" && blob["properties"]["blobType"] == "BlockBlob" {
            blob["properties"]["accessTier"] = json!("Archive");
            blob["properties"]["accessTierInferred"] = json!(false);
        }
    });
    imported(folder.path());
}

#[test]
fn blocks_keep_their_ids() {
    let folder = copy();
    change_blob(folder.path(), "blocks", |blob| {
        for (at, block) in blob["committedBlocksInOrder"].as_array_mut().unwrap().iter_mut().enumerate() {
            block["name"] = json!(["YQ==", "Yg==", "Yw==", "ZA=="][at]);
        }
    });
    let server = imported(folder.path());
    let list = server.blob_client().send("GET", "/photos/blocks?comp=blocklist", &[], b"").text();
    let ids: Vec<&str> = list.split("<Name>").skip(1).map(|rest| &rest[..4]).collect();
    assert_eq!(ids, ["YQ==", "Yg==", "Yw==", "ZA=="], "{list}");
}

#[test]
fn containers_keep_their_public_access() {
    for access in ["blob", "container"] {
        let folder = copy();
        change(folder.path(), "__azurite_db_blob__.json", "$CONTAINERS_COLLECTION$", |container| {
            container["properties"]["publicAccess"] = json!(access);
        });
        let server = imported(folder.path());
        let found = header(&server, "/photos?restype=container", "x-ms-blob-public-access");
        assert_eq!(found.as_deref(), Some(access));
    }
}

#[test]
fn a_message_that_is_hidden_stays_hidden() {
    let folder = copy();
    change(folder.path(), QUEUES, MESSAGES, |message| {
        message["expirationTime"] = json!("9999-12-31T23:59:59.000Z");
        message["timeNextVisible"] = json!("2099-01-01T00:00:00.000Z");
    });
    let server = imported(folder.path());
    assert_ne!(succeed(&server, &["queue", "count", "jobs"]).trim(), "0");
    assert_eq!(run(&server, &["queue", "peek", "jobs"]).status.code(), Some(3), "none is visible");
}

#[test]
fn a_message_keeps_the_time_at_which_it_expires() {
    let folder = copy();
    change(folder.path(), QUEUES, MESSAGES, |message| {
        message["expirationTime"] = json!("2099-01-01T00:00:00.000Z");
    });
    let server = imported(folder.path());
    let peeked = server.queue_client().send("GET", "/jobs/messages?peekonly=true", &[], b"").text();
    assert!(peeked.contains("2098 23:59:") || peeked.contains("2099 00:00:0"), "{peeked}");
}

#[test]
fn other_accounts_are_left_alone() {
    let folder = copy();
    change(folder.path(), "__azurite_db_table__.json", "$TABLES_COLLECTION$", |table| {
        if table["table"] == "Empty" {
            table["account"] = json!("other");
        }
    });
    change(folder.path(), QUEUES, MESSAGES, |message| message["accountName"] = json!("other"));
    change_blob(folder.path(), "log", |blob| blob["accountName"] = json!("other"));
    let server = Partita::in_memory();
    let output = import(&server, folder.path());
    assert!(said(&output).contains("devstoreaccount1, other; --azurite-account"), "{}", said(&output));
    let path = folder.path().to_str().unwrap();
    succeed(&server, &["import", "--azurite", path, "--azurite-account", "devstoreaccount1"]);
    assert_eq!(succeed(&server, &["tables"]), "Books\n");
    assert_eq!(succeed(&server, &["queue", "count", "jobs"]).trim(), "0");
    let blobs = succeed(&server, &["blob", "list", "photos", "--format", "json"]);
    assert!(blobs.contains("\"log2\"") && !blobs.contains("\"log\""), "{blobs}");
}

#[test]
fn blocks_that_are_left_out_are_counted() {
    let folder = copy();
    let output = import(&Partita::in_memory(), folder.path());
    assert!(said(&output).contains("left out: 2 blocks that were never committed"), "{}", said(&output));
}
