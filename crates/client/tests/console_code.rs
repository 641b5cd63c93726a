//! Code that the console copies as Rust, compiled and run as it is. crates/console/web/test/code.ts writes it.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::process::Command;

use partita_client::Entity;
use serde_json::Value;

use crate::support::{PARTITA, connection_string, service};

const TABLE: &str = "ConsoleCodeRust";

/// Runs a test of this file as a program of its own, because the code reads a variable of its environment.
fn run(test: &str) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("console_code::{test}"), "--ignored", "--nocapture"]);
    command.env("AZURE_STORAGE_CONNECTION_STRING", connection_string(PARTITA).unwrap());
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    said
}

#[tokio::test]
async fn the_copied_code_writes_every_type_as_it_is_and_finds_it() {
    let Some(service) = service() else { return };
    let cases: Value =
        serde_json::from_str(include_str!("../../../conformance/sdk/cases/console_code.json")).unwrap();
    let entity = Entity::from_json(cases["entity"].as_str().unwrap().as_bytes()).unwrap();
    let table = service.table(TABLE).unwrap();
    table.create_if_missing().await.unwrap();
    run("writes");
    let found = table.get::<Entity>(&entity.partition_key, &entity.row_key).await.unwrap();
    assert_eq!(found.entity.to_json(), entity.to_json());
    assert_eq!(run("reads").matches("row_key").count(), 1);
    table.drop().await.unwrap();
}

#[tokio::test]
#[ignore = "the other test runs it"]
async fn writes() {
    let done: Result<(), Box<dyn std::error::Error>> =
        async { include!("../../../conformance/sdk/cases/console_write.rs.in") }.await;
    done.unwrap();
}

#[tokio::test]
#[ignore = "the other test runs it"]
async fn reads() {
    let done: Result<(), Box<dyn std::error::Error>> =
        async { include!("../../../conformance/sdk/cases/console_read.rs.in") }.await;
    done.unwrap();
}
