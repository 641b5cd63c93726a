//! Commands for packages and health checks: `partita health`, `--version`, `completions` and `manual`; and the errors of
//! all commands.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::net::TcpListener;
use std::process::Output;

use crate::support::{Partita, binary};

fn partita(arguments: &[&str]) -> Output {
    binary().args(arguments).env_remove("PARTITA_LISTEN").output().unwrap()
}

#[test]
fn health_succeeds_while_the_server_is_ready() {
    let server = Partita::in_memory();
    let address = server.address.to_string();
    let healthy = partita(&["health", "--listen", &address]);
    assert_eq!(
        (healthy.status.code(), healthy.stdout.as_slice()),
        (Some(0), b"ok\n".as_slice()),
        "{healthy:?}"
    );

    // As in a container, which knows only the address that its server listens on.
    let port = server.address.port();
    let inside = binary().arg("health").env("PARTITA_LISTEN", format!("0.0.0.0:{port}")).output().unwrap();
    assert!(inside.status.success(), "{inside:?}");
}

#[test]
fn health_fails_if_no_server_answers() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let refused = partita(&["health", "--listen", &free]);
    assert!(!refused.status.success());
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(text.contains(&free) && text.contains("is a server running there?"), "{text}");

    // A listener that never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let waited =
        partita(&["health", "--timeout", "1", "--listen", &silent.local_addr().unwrap().to_string()]);
    assert!(!waited.status.success(), "{waited:?}");
}

#[test]
fn the_version_names_commit_rocksdb_and_format() {
    let output = partita(&["--version"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with(concat!("partita ", env!("CARGO_PKG_VERSION"), " (commit ")), "{text}");
    assert!(text.contains("RocksDB 11.") && text.contains("store format "), "{text}");
}

/// The names in the list of `partita help`.
fn commands() -> Vec<String> {
    let help = String::from_utf8(partita(&["help"]).stdout).unwrap();
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let lines = list.lines().take_while(|line| !line.is_empty());
    // A long explanation continues far to the right.
    let names = lines.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn completions_and_manual_know_every_command() {
    let directory = tempfile::tempdir().unwrap();
    let pages = directory.path().join("man");
    assert!(partita(&["manual", pages.to_str().unwrap()]).status.success());
    let commands = commands();
    assert!(commands.len() > 20 && commands.contains(&"doctor".to_owned()), "{commands:?}");
    let scripts = ["bash", "zsh", "fish", "elvish", "powershell"].map(|shell| {
        let output = partita(&["completions", shell]);
        assert!(output.status.success(), "{shell}");
        (shell, String::from_utf8(output.stdout).unwrap())
    });
    for command in commands.iter().filter(|command| *command != "help") {
        for (shell, script) in &scripts {
            // As a word of its own; each shell has other signs around it.
            let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
            assert!(
                script.split(|letter| !is_part(letter)).any(|word| word == command),
                "{shell}: {command}"
            );
        }
        assert!(pages.join(format!("partita-{command}.1")).is_file(), "{command}");
    }
    assert_eq!(partita(&["completions", "tcsh"]).status.code(), Some(2));
}

#[test]
fn the_error_of_a_command_is_one_line_with_its_input_and_a_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (file, missing, backups, new) = (path("file"), path("missing"), path("backups"), path("new"));
    std::fs::write(&file, "not a directory").unwrap();
    let below = path("file/below");
    let foreign = path("foreign");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(path("foreign/letter"), "dear").unwrap();
    let newer = path("newer");
    std::fs::create_dir(&newer).unwrap();
    std::fs::write(path("newer/FORMAT"), "partita-store 99\n").unwrap();
    for (arguments, code, words) in [
        (&["serve", "--config", &missing][..], 1, &[&*missing, "settings file", "check its path"][..]),
        (&["serve", "--config", &foreign], 1, &[&*foreign, "settings file", "permissions"]),
        (&["check", "--data", &missing], 2, &[&*missing, "check its path"]),
        (&["check", "--data", &foreign], 2, &[&*foreign, "not a Partita store", "choose"]),
        (&["check", "--data", &newer], 2, &[&*newer, "format 99", "or a newer one"]),
        (&["backup", &backups, "--data", &missing], 1, &[&*missing, "no store", "--data"]),
        (&["backup", &below, "--data", &missing], 1, &[&*below, "check its path"]),
        (&["restore", &missing, "--data", &new], 1, &[&*missing, "complete backup", "partita backup"]),
        (&["reload", "--data", &missing], 1, &[&*missing, "no server listens", "--data", "--control"]),
        (&["freeze", "--control", &missing], 1, &[&*missing, "no server listens", "--control"]),
        (&["migrate", "--data", &missing, "--to", &new], 1, &[&*missing, "no store", "--data"]),
        (&["migrate", "--data", &new, "--to", "redis://h"], 1, &["redis://", "cassandra://HOST"]),
        (&["migrate", "--data", &new, "--to", &new], 1, &[&*new, "both"]),
        (&["store", "check", "nonsense"], 1, &["begins with cassandra://"]),
        (&["store", "init", "cassandra://h/k", "--replication-factor", "0"], 1, &["replication-factor", "1"]),
        (&["store", "check", "cassandra://127.0.0.1:1/k"], 1, &["no node", "tried 127.0.0.1:1"]),
        (
            &["store", "check", "cassandra://h/k?user=u&password-file=/nowhere"],
            1,
            &["/nowhere", "check its path"],
        ),
        (&["store", "check", "cassandra://h/k?tls=true&ca=/nowhere"], 1, &["ca /nowhere", "PEM"]),
        (&["health", "--listen", "nonsense"], 1, &["--listen nonsense", "HOST:PORT"]),
        (&["manual", &below], 1, &[&*below, "check its path"]),
        (&["sas", "table", "--table", "T"], 1, &["--permissions", "--policy"]),
    ] {
        let output = partita(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        let line = said.strip_prefix("partita: ").and_then(|rest| rest.strip_suffix('\n'));
        let line = line.unwrap_or_else(|| panic!("{arguments:?}: {said}"));
        assert!(!line.contains('\n'), "{arguments:?}: {said}");
        for word in words {
            assert!(line.contains(word), "{arguments:?}: {word:?} is not in {line:?}");
        }
    }
    let unchecked = partita(&["check", "--json", "--data", &missing]);
    let said: serde_json::Value = serde_json::from_slice(&unchecked.stdout).unwrap();
    assert!(said["error"].as_str().unwrap().contains(&missing), "{said}");
    assert_eq!(unchecked.status.code(), Some(2));
}
