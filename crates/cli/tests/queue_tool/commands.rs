//! The commands as a person uses them.

use std::net::TcpListener;
use std::process::Stdio;

use super::kit::{command, count, done, error, fail, json, members, run, run_with_input, succeed};
use crate::support::{Partita, binary};

#[test]
fn a_message_goes_through_all_commands() {
    let server = Partita::in_memory();
    let address = server.queue_address();
    assert_eq!(succeed(address, &["list"]), "");
    assert_eq!(
        succeed(address, &["create", "jobs", "--metadata", "a=1", "--metadata", "b=x=y"]),
        "created jobs\n"
    );
    succeed(address, &["create", "jokes"]);
    assert_eq!(succeed(address, &["list"]), "jobs\njokes\n");
    assert_eq!(succeed(address, &["list", "--prefix", "jok"]), "jokes\n");
    let id = succeed(address, &["put", "jobs", "ship ann 1"]).trim().to_owned();
    let listed = json(&succeed(address, &["list", "--format", "json", "--counts"]));
    assert_eq!(
        listed[0].to_string(),
        r#"{"approximateCount":1,"metadata":{"a":"1","b":"x=y"},"name":"jobs"}"#
    );
    assert_eq!(members(&listed, "approximateCount"), ["1", "0"]);
    assert_eq!(succeed(address, &["count", "jobs"]), "1\n");
    let counted = succeed(address, &["count", "jobs", "--format", "json"]);
    assert_eq!(counted, "{\"approximateCount\":1,\"queue\":\"jobs\"}\n");

    let shown = succeed(address, &["peek", "jobs"]);
    assert!(shown.starts_with(&format!("{id}  taken 0x, expires 20")), "{shown}");
    assert!(shown.ends_with("\n  ship ann 1\n"), "{shown}");
    let peeked = &json(&succeed(address, &["peek", "jobs", "--format", "json"]))[0];
    assert_eq!(
        (&peeked["id"], &peeked["dequeueCount"], &peeked["text"]),
        (&id.as_str().into(), &0.into(), &"ship ann 1".into())
    );
    assert!(peeked.get("receipt").is_none(), "a look gives no receipt: {peeked}");

    let taken = &json(&succeed(address, &["get", "jobs", "--visibility", "5m", "--format", "json"]))[0];
    assert_eq!((&taken["id"], &taken["dequeueCount"]), (&id.as_str().into(), &1.into()));
    for hidden in ["get", "peek"] {
        let output = run(address, &[hidden, "jobs"]);
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(3), &b""[..]), "{output:?}");
        assert!(error(&output).contains("no message of jobs is visible"), "{output:?}");
    }
    let receipt = taken["receipt"].as_str().unwrap();
    assert_eq!(succeed(address, &["delete-message", "jobs", &id, receipt]), format!("deleted {id}\n"));
    let said = fail(address, &["delete-message", "jobs", &id, receipt]);
    assert!(said.contains(&id) && said.contains("`partita queue get jobs` prints new receipts"), "{said}");

    succeed(address, &["put", "jobs", "more"]);
    assert_eq!(succeed(address, &["clear", "jobs"]), "cleared jobs\n");
    assert_eq!(count(address, "jobs"), 0);
    assert_eq!(succeed(address, &["delete", "jobs"]), "deleted jobs\n");
    assert_eq!(succeed(address, &["list"]), "jokes\n");
}

#[test]
fn a_message_is_an_argument_or_standard_input() {
    let server = Partita::in_memory();
    let address = server.queue_address();
    succeed(address, &["create", "jobs"]);
    let put = |arguments: &[&str], input: &[u8]| {
        done(run_with_input(address, &[&["put", "jobs"], arguments].concat(), input));
    };
    put(&["argument"], b"not read");
    put(&[], b"as it is\n");
    put(&[], b"");
    put(&["--lines"], "one\r\n\ntwo ü\nthree".as_bytes());
    put(&["--base64", "{\"id\":7}"], b"");
    put(&["--base64"], &[0xff, b'\n']);
    let texts = |more: &[&str]| {
        members(&json(&succeed(address, &[&["peek", "jobs", "--format", "json"], more].concat())), "text")
    };
    let plain = ["argument", "as it is\n", "", "one", "two ü", "three"];
    assert_eq!(texts(&[]), [&plain[..], &["eyJpZCI6N30=", "/wo="]].concat());
    // What is not Base64 is shown as it is, and the person is told.
    assert_eq!(texts(&["--base64"])[5..], ["three", "{\"id\":7}", "/wo="]);
    let output = run(address, &["peek", "jobs", "--base64"]);
    assert!(error(&output).contains("is not text in Base64; it is shown as it is"), "{output:?}");
}

#[test]
fn delay_and_life_are_the_services() {
    let server = Partita::in_memory();
    let address = server.queue_address();
    succeed(address, &["create", "jobs"]);
    let put = |arguments: &[&str]| {
        json(&succeed(address, &[&["put", "jobs", "a", "--format", "json"], arguments].concat())).remove(0)
    };
    let seconds = |put: &serde_json::Value, name: &str| {
        let time = |name: &str| model::DateTime::parse(put[name].as_str().unwrap()).unwrap().unix_seconds();
        time(name) - time("inserted")
    };
    let delayed = put(&["--delay", "2h"]);
    assert_eq!((seconds(&delayed, "nextVisible"), seconds(&delayed, "expires")), (7200, 7 * 86_400));
    assert_eq!(seconds(&put(&["--ttl", "90"]), "expires"), 90);
    assert_eq!(put(&["--ttl", "never"])["expires"], "9999-12-31T23:59:59Z");
    let shown = succeed(address, &["peek", "jobs"]);
    assert_eq!(shown.matches("expires never").count(), 1, "{shown}");
    assert_eq!(shown.matches("taken 0x").count(), 2, "the delayed one is hidden: {shown}");
}

/// A consumer that is gone gets nothing, so nothing may be deleted for it.
#[test]
fn a_message_that_could_not_be_printed_is_not_deleted() {
    let server = Partita::in_memory();
    let address = server.queue_address();
    succeed(address, &["create", "jobs"]);
    succeed(address, &["put", "jobs", "a"]);
    let mut child = command(address, &["get", "jobs", "--delete"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(error(&output).contains("can't write to standard output"), "{output:?}");
    assert_eq!(count(address, "jobs"), 1);
}

#[test]
fn errors_are_one_line_with_the_input_and_the_way_out() {
    let server = Partita::in_memory();
    let address = server.queue_address();
    succeed(address, &["create", "jobs"]);
    let check = |arguments: &[&str], input: &[u8], words: &[&str]| {
        let output = run_with_input(address, arguments, input);
        let said = error(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        let line = said.strip_prefix("partita: ").and_then(|rest| rest.strip_suffix('\n'));
        let line = line.unwrap_or_else(|| panic!("{arguments:?}: {said}"));
        assert!(!line.contains('\n'), "{arguments:?}: {said}");
        for word in words {
            assert!(line.contains(word), "{arguments:?}: {word:?} is not in {line:?}");
        }
    };
    let create = "`partita queue create nobody` makes one";
    for verb in [
        &["peek", "nobody"][..],
        &["get", "nobody"],
        &["count", "nobody"],
        &["clear", "nobody"],
        &["delete", "nobody"],
    ] {
        check(verb, b"", &["no queue nobody at http://127.0.0.1:", create]);
    }
    check(&["put", "nobody", "a"], b"", &["no queue nobody", create]);
    check(&["peek", "No_Name"], b"", &["\"No_Name\"", "3 to 63"]);
    check(&["create", "jobs", "--metadata", "a=1"], b"", &["queue jobs", "409 QueueAlreadyExists"]);
    check(&["create", "other", "--metadata", "1a=1"], b"", &["metadata", "no digit first"]);
    check(&["put", "jobs"], &[0xff], &["standard input is not UTF-8", "--base64"]);
    check(
        &["put", "jobs", "--lines"],
        b"good\n\xff\n",
        &["line 2 of standard input is not UTF-8", "--base64"],
    );
    check(&["put", "jobs"], &[b'a'; 65_537], &["longer than a message of 64 KiB", "--lines"]);
    check(
        &["put", "jobs", "--base64"],
        &[b'a'; 65_536],
        &["standard input can't be a message", "a third longer"],
    );
    check(&["put", "jobs", "\u{1}"], b"", &["the message can't be a message", "--base64"]);
    check(&["put", "jobs", "a", "--delay", "8d"], b"", &["queue jobs", "400"]);
    check(&["get", "jobs", "--visibility", "8d"], b"", &["queue jobs", "400"]);
    check(&["delete-message", "jobs", "x", "y"], b"", &["queue jobs"]);
    check(&["list", "--ca", "/nowhere"], b"", &["--ca /nowhere"]);
    let elsewhere = |text: &str| vec!["list".to_owned(), "--connection-string".to_owned(), text.to_owned()];
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let wrong_key = format!(
        "AccountName=devstoreaccount1;AccountKey=AAAA;QueueEndpoint=http://{address}/devstoreaccount1"
    );
    for (text, words) in [
        (
            format!("AccountName=a;AccountKey=AAAA;QueueEndpoint=http://{free}/a"),
            &["is the server running there?"][..],
        ),
        (wrong_key, &["can't list the queues", "403 AuthenticationFailed"]),
        ("AccountName=a".to_owned(), &["no AccountKey", "copy the whole of it"]),
    ] {
        let arguments = elsewhere(&text);
        check(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), b"", words);
    }
    for wrong in [&["peek", "jobs", "--count", "33"][..], &["get", "jobs", "--visibility", "soon"], &["put"]]
    {
        assert_eq!(run(address, wrong).status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn help_says_where_it_connects_and_what_the_exit_status_means() {
    let output = binary().args(["queue", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    for words in [
        "127.0.0.1:10001",
        "Exit status: 0 done, 1 failed, 2 wrong flags, 3 no message",
        "partita queue put jobs",
    ] {
        assert!(help.contains(words), "{words} is not in {help}");
    }
    let output = binary()
        .args(["queue", "peek", "--help"])
        .env_remove("AZURE_STORAGE_CONNECTION_STRING")
        .output()
        .unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("UseDevelopmentStorage=true"));
}
