//! An interrupted copy continues: nothing is lost, and nothing is copied twice.

use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::Value;

use super::gate::{Gate, Harm};
use super::kit::{self, command, fail, held, loaded, numbered, read, succeed, write};
use crate::support::Partita;

/// Pages of 1,000, so the request of this number finds two pages on the disk.
const THIRD_PAGE: usize = 2;

fn start(verb: &str, gate: &Gate, arguments: &str, path: &Path) -> Child {
    command(verb, gate.address, arguments, path).stderr(Stdio::piped()).spawn().unwrap()
}

fn signal(child: &Child, name: &str) {
    testing::signal(child.id(), name);
}

fn state(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn an_interrupted_and_resumed_export_equals_an_uninterrupted_one() {
    let server = loaded(Partita::in_memory(), &numbered(4_500, 900));
    let gate = Gate::before(server.address);
    let directory = tempfile::tempdir().unwrap();
    for (format, first_pass) in [("jsonl", 0), ("csv", 5)] {
        let whole = directory.path().join(format!("whole.{format}"));
        let path = directory.path().join(format!("resumed.{format}"));
        let side = directory.path().join(format!("resumed.{format}.progress"));
        succeed("export", server.address, "--table Books --to {}", &whole);
        for (kill, said) in
            [("KILL", ""), ("INT", "interrupted; run the same command with --resume to continue")]
        {
            gate.harm(&[(first_pass + THIRD_PAGE, Harm::Stall)]);
            let child = start("export", &gate, "--table Books --overwrite --to {}", &path);
            gate.wait_until_stalled();
            signal(&child, kill);
            let output = child.wait_with_output().unwrap();
            assert!(!output.status.success() && kit::error(&output).contains(said), "{output:?}");
            assert_eq!(state(&side)["entities"], 2000, "{}", state(&side));
            assert!(!std::fs::read_to_string(&side).unwrap().contains("Key="), "no secrets");
            // The page that was being written when the process died.
            let good = std::fs::read(&path).unwrap();
            std::fs::write(&path, [good.as_slice(), b"{\"PartitionKey\":\"half a li"].concat()).unwrap();
            gate.harm(&[]);
            assert!(
                fail("export", gate.address, "--table Books --to {}", &path).contains("--resume continues")
            );
            succeed("export", gate.address, "--table Books --resume --to {}", &path);
            assert_eq!(gate.requests().len(), 3, "only what was missing: {:?}", gate.requests());
            assert!(std::fs::read(&path).unwrap() == std::fs::read(&whole).unwrap(), "{format} {kill}");
            assert!(!side.exists());
        }
        let said = fail("export", server.address, "--table Books --resume --to {}", &path);
        assert!(said.contains("there is nothing to resume"), "{said}");
    }
}

#[test]
fn an_account_is_resumed_table_by_table() {
    let server = loaded(Partita::in_memory(), &numbered(2_500, 900));
    let gate = Gate::before(server.address);
    let directory = tempfile::tempdir().unwrap();
    let backup = directory.path().join("backup");
    write(&directory.path().join("a.jsonl"), &numbered(10, 5));
    succeed("import", server.address, "--table Atlas --from {}", &directory.path().join("a.jsonl"));
    // The list, Atlas, a page of Books, and no other.
    gate.harm(&[(3, Harm::Stall)]);
    let child = start("export", &gate, "--all --to {}", &backup);
    gate.wait_until_stalled();
    signal(&child, "TERM");
    assert!(!child.wait_with_output().unwrap().status.success());
    gate.harm(&[]);
    assert!(fail("export", gate.address, "--all --to {}", &backup).contains("Atlas.jsonl already exists"));
    assert!(
        fail("import", gate.address, "--all --from {}", &backup)
            .contains("is an interrupted export; finish it")
    );
    gate.harm(&[]);
    succeed("export", gate.address, "--all --resume --to {}", &backup);
    assert_eq!(gate.requests().len(), 3, "the list and two pages: {:?}", gate.requests());
    assert_eq!(read(&backup.join("Books.jsonl")), numbered(2_500, 900));
    assert_eq!(read(&backup.join("Atlas.jsonl")), numbered(10, 5));
}

#[test]
fn an_import_that_was_stopped_and_resumed_loses_nothing_and_doubles_nothing() {
    let entities = numbered(3_000, 250);
    for mode in ["replace", "insert"] {
        // With three connections, one of the first groups may be the last that is written, if its connection is slow. Then little
        // is recorded.
        for (kill, parallel) in [("KILL", 3), ("INT", 3), ("INT", 1)] {
            let server = Partita::in_memory();
            let gate = Gate::before(server.address);
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("books.jsonl");
            write(&path, &entities);
            let arguments = format!("--table Books --mode {mode} --parallel {parallel} --from {{}}");
            // A table and then groups of 100, 100, 50, 100, ...
            gate.harm(&[(24, Harm::Stall)]);
            let child = start("import", &gate, &arguments, &path);
            gate.wait_until_stalled();
            signal(&child, kill);
            let output = child.wait_with_output().unwrap();
            assert!(!output.status.success());
            let side = directory.path().join("books.jsonl.import-progress");
            let recorded = state(&side);
            gate.harm(&[]);
            succeed("import", gate.address, &format!("{arguments} --resume"), &path);
            if kill == "INT" {
                let said = kit::error(&output);
                assert!(said.contains("interrupted; --resume continues after the "), "{said}");
                let transactions = gate.requests().iter().filter(|line| line.contains("$batch")).count();
                if parallel == 1 {
                    // The stalled one is the 24th group.
                    assert_eq!((&recorded["written"], transactions), (&1_950.into(), 36 - 23), "{recorded}");
                } else {
                    assert!(transactions <= 36, "only what was missing: {transactions}");
                }
            }
            assert!(!side.exists());
            assert_eq!(held(server.address, "Books"), entities, "{mode} {kill}");
        }
    }
}

#[test]
fn a_copy_survives_a_restart_of_the_server() {
    let entities = numbered(4_000, 300);
    let (data, directory) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = directory.path().join("books.jsonl");
    write(&path, &entities);
    for (verb, arguments, request) in [
        ("import", "--table Books --mode insert --from {}", 14),
        ("export", "--table Books --overwrite --to {}", 2),
    ] {
        let server = Partita::in_directory(data.path());
        let gate = Gate::before(server.address);
        gate.harm(&[(request, Harm::Stall)]);
        let child = start(verb, &gate, arguments, &path);
        gate.wait_until_stalled();
        server.kill();
        let server = Partita::in_directory(data.path());
        gate.send_to(server.address);
        // The stalled connections break, and so do the first retries.
        gate.harm(&[(0, Harm::Break), (1, Harm::Break)]);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{verb}: {}", kit::error(&output));
        assert_eq!(held(server.address, "Books"), entities);
        assert_eq!(server.stop().code(), Some(0));
    }
    assert_eq!(read(&path), entities, "what was exported");
}

#[test]
fn a_busy_server_is_retried_after_its_retry_after() {
    const BUSY: Harm = Harm::Answer(
        "HTTP/1.1 503 Busy\r\nx-ms-error-code: ServerBusy\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n",
    );
    // A transaction whose refusal is inside of the answer.
    const BUSY_INSIDE: Harm = Harm::Answer(
        "HTTP/1.1 202 Accepted\r\nContent-Type: multipart/mixed; boundary=b\r\nContent-Length: 88\r\n\r\n\
         --b\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n\r\n--b--\r\n",
    );
    let server = Partita::in_memory();
    let gate = Gate::before(server.address);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("books.jsonl");
    let entities = numbered(1_500, 50);
    write(&path, &entities);
    gate.harm(&[(0, BUSY), (3, BUSY_INSIDE), (4, Harm::Break), (9, BUSY)]);
    let said = succeed("import", gate.address, "--table Books --from {}", &path);
    assert!(said.contains("503 ServerBusy; trying again in 1.0 s"), "{said}");
    gate.harm(&[(1, BUSY), (2, Harm::Break)]);
    succeed("export", gate.address, "--table Books --overwrite --to {}", &path);
    assert_eq!(gate.requests().len(), 4);
    assert_eq!(read(&path), entities);
}

#[test]
fn an_insert_without_an_answer_is_checked_by_a_read() {
    let server = Partita::in_memory();
    let gate = Gate::before(server.address);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("books.jsonl");
    let entities = numbered(201, 100);
    write(&path, &entities);
    // A transaction of 100, and one entity alone.
    let arguments = "--table Books --mode insert --parallel 1 --from {}";
    gate.harm(&[(1, Harm::Swallow), (204, Harm::Swallow)]);
    let said = succeed("import", gate.address, arguments, &path);
    assert!(said.contains("201 entities read, 201 written, 0 rejected"), "{said}");
    assert_eq!(held(server.address, "Books"), entities);
    // A different entity with the same keys is a failure.
    let mut other = entities;
    other[0].insert("Number".to_owned(), Value::from(-1));
    write(&path, &other);
    gate.harm(&[(1, Harm::Swallow)]);
    let said = fail("import", gate.address, arguments, &path);
    assert!(
        said.contains("line 1: PartitionKey \"p00000\", RowKey \"r00000000\": 409 EntityAlreadyExists"),
        "{said}"
    );
}
