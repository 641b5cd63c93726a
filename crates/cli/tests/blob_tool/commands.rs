//! The commands as a person uses them.

use std::net::TcpListener;

use super::kit::{command, error, fail, get, json, put, run, succeed};
use crate::support::Partita;

#[test]
fn a_blob_goes_through_all_commands() {
    let server = Partita::in_memory();
    let address = server.blob_address();
    assert_eq!(succeed(address, &["list"]), "");
    assert_eq!(succeed(address, &["create-container", "photos", "--metadata", "a=1"]), "created photos\n");
    succeed(address, &["create-container", "pages"]);
    assert_eq!(succeed(address, &["list"]), "pages\nphotos\n");
    assert_eq!(succeed(address, &["list", "--prefix", "ph"]), "photos\n");

    let flags = ["--content-type", "text/plain", "--metadata", "by=ann", "--tag", "k=v"];
    put(address, "photos", "2026/cat ü", b"meow", &flags);
    put(address, "photos", "dog", b"woof!", &[]);
    assert_eq!(get(address, "photos", "2026/cat ü"), b"meow");
    assert_eq!(succeed(address, &["list", "photos"]), "              4 2026/cat ü\n              5 dog\n");
    assert_eq!(
        succeed(address, &["list", "photos", "--folders"]),
        "         folder 2026/\n              5 dog\n"
    );
    let shown = &json(&succeed(address, &["show", "photos", "2026/cat ü", "--format", "json"]))[0];
    assert_eq!((&shown["length"], &shown["type"]), (&4.into(), &"block".into()));
    assert_eq!((&shown["contentType"], &shown["tagCount"]), (&"text/plain".into(), &1.into()));
    assert_eq!(shown["metadata"]["by"], "ann");
    let text = succeed(address, &["show", "photos", "dog"]);
    assert!(text.contains("length             5\n"), "{text}");

    let refused = fail(address, &["put", "photos", "dog", "--if-absent"]);
    assert!(refused.contains("photos/dog: 409 BlobAlreadyExists"), "{refused}");
    assert_eq!(get(address, "photos", "dog"), b"woof!");
    assert_eq!(succeed(address, &["delete", "photos", "dog"]), "deleted photos/dog\n");
    for command in ["get", "show", "delete"] {
        let output = run(address, &[command, "photos", "dog"]);
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(3), &b""[..]), "{output:?}");
        assert!(error(&output).contains("there is no blob photos/dog"), "{output:?}");
    }
    assert_eq!(succeed(address, &["delete-container", "photos"]), "deleted photos\n");
    assert_eq!(succeed(address, &["list"]), "pages\n");
}

#[test]
fn a_blob_of_many_blocks_comes_back_in_a_file() {
    let server = Partita::in_memory();
    let (address, folder) = (server.blob_address(), tempfile::tempdir().unwrap());
    succeed(address, &["create-container", "box"]);
    let content: Vec<u8> = (0..20_000_000_u32).map(|n| (n / 251 + n) as u8).collect();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    std::fs::write(&from, &content).unwrap();
    succeed(address, &["put", "box", "big", "--file", from.to_str().unwrap()]);
    succeed(address, &["get", "box", "big", "--to", to.to_str().unwrap()]);
    assert!(std::fs::read(&to).unwrap() == content);
}

#[test]
fn errors_say_what_to_do() {
    let server = Partita::in_memory();
    let address = server.blob_address();
    let said = fail(address, &["list", "photos"]);
    assert!(said.contains("there is no container photos at http://"), "{said}");
    assert!(said.contains("`partita blob create-container photos` makes one"), "{said}");
    let said = fail(address, &["list", "No_name"]);
    assert!(said.contains("can't be the name of a container"), "{said}");
    // Nobody listens there.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let output = command(free, &["list"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(error(&output).contains("is the server running there?"), "{output:?}");
}
