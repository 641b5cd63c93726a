//! An import puts every message of a file, also after a kill.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use super::kit::{
    self, command, count, done, drained, fail, json, members, numbers, run_with_input, succeed,
};
use crate::support::Partita;
use crate::transfer::gate::{Gate, Harm};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A file of messages `0`, `1`, and so on.
fn file(path: &Path, messages: usize) {
    let lines = (0..messages).map(|number| format!("{{\"text\":\"{number}\"}}\n"));
    std::fs::write(path, lines.collect::<String>()).unwrap();
}

#[test]
fn a_message_keeps_its_text_its_expiry_and_its_delay() {
    let server = Partita::in_memory();
    let address = server.queue_address();
    let lines = r#"{"queue":"elsewhere","metadata":{"a":"1"}}
{"id":"1","receipt":"x","inserted":"2020-01-01T00:00:00Z","expires":"2099-01-01T00:00:00Z","dequeueCount":4,"text":"kept"}

{"text":"expired","expires":"2020-01-01T00:00:00Z"}
{"text":"forever","expires":"9999-12-31T23:59:59Z"}
{"text":"by default"}
{"text":"once hidden","nextVisible":"2020-01-01T00:00:00Z"}
"#;
    let output = run_with_input(address, &["import", "--queue", "jobs", "--from", "-"], lines.as_bytes());
    assert!(kit::error(&output).contains("jobs: 4 messages put, 1 had expired"), "{output:?}");
    done(output);
    let peeked = json(&succeed(address, &["peek", "jobs", "--format", "json"]));
    assert_eq!(members(&peeked, "text"), ["kept", "forever", "by default", "once hidden"]);
    assert_eq!(members(&peeked, "dequeueCount"), ["0"; 4]);
    assert_eq!(peeked[1]["expires"], "9999-12-31T23:59:59Z");
    // The time to live is in whole seconds, rounded up.
    let expires = peeked[0]["expires"].as_str().unwrap();
    assert!(["2099-01-01T00:00:00Z", "2099-01-01T00:00:01Z"].contains(&expires), "{expires}");
    let listed = json(&succeed(address, &["list", "--format", "json"]));
    assert_eq!(listed[0].to_string(), r#"{"metadata":{"a":"1"},"name":"jobs"}"#);

    let soon = model::DateTime::now().plus(std::time::Duration::from_secs(3600)).to_seconds_string();
    let hidden = format!("{{\"text\":\"hidden\",\"nextVisible\":\"{soon}\"}}\n");
    done(run_with_input(address, &["import", "--queue", "later", "--from", "-"], hidden.as_bytes()));
    assert_eq!((count(address, "later"), drained(address, "later").len()), (1, 0));
}

/// The output of `get` is a file of messages.
#[test]
fn what_get_prints_can_be_imported() {
    let server = Partita::in_memory();
    let address = kit::filled(&server, "jobs", 3);
    let taken = succeed(address, &["get", "jobs", "-n", "32", "--visibility", "1s", "--format", "json"]);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    done(run_with_input(address, &["import", "--queue", "other", "--from", "-"], taken.as_bytes()));
    assert_eq!(members(&drained(address, "other"), "text"), numbers(3));
}

#[test]
fn a_killed_import_loses_nothing_and_an_interrupted_one_doubles_nothing() {
    let server = Partita::in_memory();
    let directory = tempfile::tempdir().unwrap();
    for (parallel, signal) in [("1", "KILL"), ("8", "KILL"), ("1", "INT"), ("8", "TERM")] {
        for request in [0, 1, 2, 11, 30] {
            let queue = format!("jobs-{parallel}-{signal}-{request}").to_lowercase();
            let gate = Gate::before(server.queue_address());
            let path = directory.path().join(format!("{queue}.jsonl"));
            file(&path, 30);
            gate.harm(&[(request, Harm::Stall)]);
            let arguments = ["import", "--queue", &queue, "--from", text(&path), "--parallel", parallel];
            let child = command(gate.address, &arguments).stderr(Stdio::piped()).spawn().unwrap();
            gate.wait_until_stalled();
            testing::signal(child.id(), signal);
            let output = child.wait_with_output().unwrap();
            assert!(!output.status.success(), "{output:?}");
            gate.harm(&[]);
            succeed(gate.address, &[&arguments[..], &["--resume", "--quiet"]].concat());
            let mut found = BTreeMap::new();
            for text in members(&drained(server.queue_address(), &queue), "text") {
                *found.entry(text).or_insert(0) += 1;
            }
            assert_eq!(found.len(), 30, "{queue}: {found:?}");
            // A kill repeats what was not recorded. So does a signal, for what was put behind a message that got no answer.
            let times_max = if signal == "KILL" || parallel == "8" { 2 } else { 1 };
            assert!(found.values().all(|times| *times <= times_max), "{queue}: {found:?}");
            assert!(!directory.path().join(format!("{queue}.jsonl.import-progress")).exists());
        }
    }
}

#[test]
fn a_lost_answer_puts_a_message_twice_rather_than_never() {
    let server = Partita::in_memory();
    let gate = Gate::before(server.queue_address());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.jsonl");
    file(&path, 5);
    gate.harm(&[(3, Harm::Swallow), (5, Harm::Break)]);
    succeed(gate.address, &["import", "--queue", "jobs", "--from", text(&path)]);
    assert_eq!(members(&drained(server.queue_address(), "jobs"), "text"), ["0", "1", "2", "2", "3", "4"]);
}

#[test]
fn a_line_that_is_no_message_stops_the_import_until_it_is_corrected() {
    let server = Partita::in_memory();
    let address = server.queue_address();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.jsonl");
    let long = format!("{{\"text\":\"{}\"}}", "a".repeat(65_537));
    for (number, (bad, words)) in [
        ("{\"PartitionKey\":\"a\"}", "line 3: it has no \"text\""),
        ("no JSON", "line 3: it is not a message in JSON"),
        ("{\"text\":\"a\",\"expires\":\"soon\"}", "line 3: its \"expires\" is \"soon\""),
        ("{\"text\":\"\\u0001\"}", "line 3: a message takes up to 64 KiB"),
        (&long, "line 3: a message takes up to 64 KiB"),
        (LATE, "line 3: 400 "),
    ]
    .into_iter()
    .enumerate()
    {
        let queue = format!("jobs-{number}");
        std::fs::write(&path, format!("{{\"text\":\"0\"}}\n{{\"text\":\"1\"}}\n{bad}\n{{\"text\":\"3\"}}\n"))
            .unwrap();
        let arguments = ["import", "--queue", &queue, "--from", text(&path)];
        let said = fail(address, &arguments);
        assert!(said.contains(words) && said.contains("--resume continues"), "{said}");
        std::fs::write(&path, "{\"text\":\"0\"}\n{\"text\":\"1\"}\n{\"text\":\"2\"}\n{\"text\":\"3\"}\n")
            .unwrap();
        succeed(address, &[&arguments[..], &["--resume"]].concat());
        assert_eq!(members(&drained(address, &queue), "text"), numbers(4), "{bad}");
    }
}

/// Hidden for longer than the service allows, which only its answer tells.
const LATE: &str =
    "{\"text\":\"a\",\"nextVisible\":\"2098-01-01T00:00:00Z\",\"expires\":\"2099-01-01T00:00:00Z\"}";

/// A file in which every third line can't be put, for several reasons, and those lines.
fn mixed(path: &Path) -> Vec<&'static str> {
    let bad = ["no JSON", LATE, "{\"PartitionKey\":\"a\"}", "{\"text\":\"\\u0001\"}"];
    let lines = bad.iter().enumerate().map(|(number, bad)| {
        format!("{{\"text\":\"{}\"}}\n{{\"text\":\"{}\"}}\n{bad}\n", 2 * number, 2 * number + 1)
    });
    std::fs::write(path, lines.collect::<String>()).unwrap();
    bad.to_vec()
}

#[test]
fn rejected_lines_are_set_aside_in_their_order() {
    let server = Partita::in_memory();
    let address = server.queue_address();
    let directory = tempfile::tempdir().unwrap();
    let (path, rejects) = (directory.path().join("jobs.jsonl"), directory.path().join("rejects.jsonl"));
    for parallel in ["1", "8"] {
        let bad = mixed(&path);
        let queue = format!("jobs-{parallel}");
        let arguments = ["import", "--queue", &queue, "--from", text(&path), "--rejects", text(&rejects)];
        let arguments = [&arguments[..], &["--parallel", parallel]].concat();
        let said = fail(address, &arguments);
        assert!(said.contains("line 3: it is not a message in JSON"), "{said}");
        assert!(said.contains("4 lines were rejected; they are in "), "{said}");
        assert_eq!(std::fs::read_to_string(&rejects).unwrap(), bad.join("\n") + "\n");
        let mut put = members(&drained(address, &queue), "text");
        put.sort();
        assert_eq!(put, numbers(8));
        assert!(!directory.path().join("jobs.jsonl.import-progress").exists(), "it is done");
        let said = fail(address, &arguments);
        assert!(said.contains("rejects.jsonl already exists"), "{said}");
        // Corrected, the rejected lines can be imported.
        std::fs::write(&rejects, "{\"text\":\"corrected\"}\n").unwrap();
        succeed(address, &["import", "--queue", &queue, "--from", text(&rejects)]);
        assert_eq!(members(&drained(address, &queue), "text"), ["corrected"]);
        std::fs::remove_file(&rejects).unwrap();
    }
}

#[test]
fn a_resumed_import_rejects_nothing_twice() {
    let server = Partita::in_memory();
    let directory = tempfile::tempdir().unwrap();
    let (path, rejects) = (directory.path().join("jobs.jsonl"), directory.path().join("rejects.jsonl"));
    // The first request creates the queue.
    for (number, signal) in [(1, "KILL"), (4, "KILL"), (8, "KILL"), (4, "INT"), (8, "TERM")] {
        let bad = mixed(&path);
        let queue = format!("jobs-{number}-{signal}").to_lowercase();
        let gate = Gate::before(server.queue_address());
        gate.harm(&[(number, Harm::Stall)]);
        let arguments = ["import", "--queue", &queue, "--from", text(&path), "--rejects", text(&rejects)];
        let child = command(gate.address, &arguments).stderr(Stdio::piped()).spawn().unwrap();
        gate.wait_until_stalled();
        testing::signal(child.id(), signal);
        assert!(!child.wait_with_output().unwrap().status.success());
        gate.harm(&[]);
        let said = fail(gate.address, &[&arguments[..], &["--resume"]].concat());
        assert!(said.contains("4 lines were rejected"), "{said}");
        assert_eq!(std::fs::read_to_string(&rejects).unwrap(), bad.join("\n") + "\n", "{queue}");
        std::fs::remove_file(&rejects).unwrap();
    }
}

#[test]
fn rejected_lines_of_a_directory_go_to_files_of_their_names() {
    let server = Partita::in_memory();
    let address = server.queue_address();
    let directory = tempfile::tempdir().unwrap();
    let (from, rejects) = (directory.path().join("from"), directory.path().join("rejects"));
    std::fs::create_dir(&from).unwrap();
    let bad = mixed(&from.join("mixed.jsonl"));
    file(&from.join("good.jsonl"), 3);
    let said = fail(address, &["import", "--all", "--from", text(&from), "--rejects", text(&rejects)]);
    assert!(said.contains("4 lines were rejected"), "{said}");
    assert_eq!(std::fs::read_to_string(rejects.join("mixed.jsonl")).unwrap(), bad.join("\n") + "\n");
    assert!(!rejects.join("good.jsonl").exists());
    assert_eq!((count(address, "mixed"), count(address, "good")), (8, 3));
    let left: Vec<_> = std::fs::read_dir(&from).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "no side file is left: {left:?}");
}

#[test]
fn mistakes_are_named() {
    let server = Partita::in_memory();
    let address = server.queue_address();
    let directory = tempfile::tempdir().unwrap();
    let (path, empty) = (directory.path().join("jobs.jsonl"), directory.path().join("empty"));
    std::fs::create_dir(&empty).unwrap();
    file(&path, 3);
    let from = text(&path);
    std::fs::write(
        directory.path().join("jobs.jsonl.import-progress"),
        "{\"endpoint\":\"http://h\",\"queue\":\"jobs\",\"bytes\":0,\"put\":0,\"expired\":0,\"complete\":false}",
    )
    .unwrap();
    for (arguments, words) in [
        (&["import", "--queue", "jobs", "--from", "/nowhere.jsonl"][..], "/nowhere.jsonl: can't read it"),
        (&["import", "--queue", "jobs", "--from", "-", "--resume"], "can't be resumed; import a file"),
        (&["import", "--queue", "No_Name", "--from", from], "\"No_Name\""),
        (&["import", "--queue", "jobs", "--from", from, "--resume"], "whose endpoint was http://h, not"),
        (&["import", "--all", "--from", text(&empty)], "contains no .jsonl file"),
    ] {
        let said = fail(address, arguments);
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}
