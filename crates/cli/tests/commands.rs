//! Commands that packages and health checks use: `partita health`, `--version`, `completions` and `manual`.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::net::TcpListener;
use std::process::Output;

use crate::support::{Partita, binary};

fn partita(arguments: &[&str]) -> Output {
    binary().args(arguments).env_remove("PARTITA_LISTEN").output().unwrap()
}

#[test]
fn health_succeeds_while_the_server_can_be_used() {
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
fn health_fails_where_no_server_answers() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let refused = partita(&["health", "--listen", &free]);
    assert!(!refused.status.success());
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(text.contains(&free) && text.contains("is a server running there?"), "{text}");

    // Somebody accepts and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let waited =
        partita(&["health", "--timeout", "1", "--listen", &silent.local_addr().unwrap().to_string()]);
    assert!(!waited.status.success(), "{waited:?}");
}

#[test]
fn the_version_names_what_the_program_was_made_of() {
    let output = partita(&["--version"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with(concat!("partita ", env!("CARGO_PKG_VERSION"), " (commit ")), "{text}");
    assert!(text.contains("RocksDB 11.") && text.contains("store format "), "{text}");
}

#[test]
fn completions_and_manual_know_every_command() {
    let bash = String::from_utf8(partita(&["completions", "bash"]).stdout).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let pages = directory.path().join("man");
    assert!(partita(&["manual", pages.to_str().unwrap()]).status.success());
    for command in ["serve", "backup", "health"] {
        assert!(
            bash.contains(&format!("partita__{command}"))
                || bash.contains(&format!("partita__subcmd__{command}")),
            "{command}"
        );
        assert!(pages.join(format!("partita-{command}.1")).is_file(), "{command}");
    }
}
