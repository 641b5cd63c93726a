//! Runs the commands, writes and reads files of entities.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Map, Value};

use crate::support::{ACCOUNT, KEY, Partita, binary};

pub type Entity = Map<String, Value>;

pub fn connection(address: SocketAddr) -> String {
    format!("AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint=http://{address}/{ACCOUNT}")
}

/// `partita VERB` with its endpoint. Arguments are separated by spaces, and `{}` is the path.
pub fn command(verb: &str, address: SocketAddr, arguments: &str, path: &Path) -> Command {
    let mut command = binary();
    command.env("AZURE_STORAGE_CONNECTION_STRING", connection(address)).arg(verb);
    command.args(arguments.split(' ').map(|word| word.replace("{}", &path.display().to_string())));
    command
}

pub fn run(verb: &str, address: SocketAddr, arguments: &str, path: &Path) -> Output {
    command(verb, address, arguments, path).output().unwrap()
}

/// Standard error of a command that must succeed.
pub fn succeed(verb: &str, address: SocketAddr, arguments: &str, path: &Path) -> String {
    let output = run(verb, address, arguments, path);
    assert!(output.status.success(), "{verb} {arguments}: {}", error(&output));
    error(&output)
}

/// Standard error of a command that must fail.
pub fn fail(verb: &str, address: SocketAddr, arguments: &str, path: &Path) -> String {
    let output = run(verb, address, arguments, path);
    assert!(!output.status.success(), "{verb} {arguments}: {}", error(&output));
    error(&output)
}

pub fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub fn write(path: &Path, entities: &[Entity]) {
    let lines: Vec<_> = entities.iter().map(|entity| serde_json::to_string(entity).unwrap() + "\n").collect();
    std::fs::write(path, lines.concat()).unwrap();
}

/// The entities of a file of JSON lines, in the order of their keys, without their timestamps.
pub fn read(path: &Path) -> Vec<Entity> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut entities: Vec<Entity> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for entity in &mut entities {
        assert!(entity.remove("Timestamp").is_some_and(|time| time.is_string()), "{entity:?}");
    }
    sort(&mut entities);
    entities
}

pub fn sort(entities: &mut [Entity]) {
    let key = |entity: &Entity| [entity["PartitionKey"].to_string(), entity["RowKey"].to_string()];
    entities.sort_by_key(key);
}

/// The entities of a table, read by an export.
pub fn held(address: SocketAddr, table: &str) -> Vec<Entity> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("held.jsonl");
    succeed("export", address, &format!("--table {table} --to {{}}"), &path);
    read(&path)
}

/// `count` entities in partitions of `a_partition` each, in the order of their keys.
pub fn numbered(count: usize, a_partition: usize) -> Vec<Entity> {
    let entity = |number: usize| {
        let Value::Object(entity) = serde_json::json!({
            "PartitionKey": format!("p{:05}", number / a_partition),
            "RowKey": format!("r{number:08}"),
            "Number": number,
            "Text": format!("the text of entity {number}"),
        }) else {
            unreachable!("it is written as an object")
        };
        entity
    };
    (0..count).map(entity).collect()
}

/// Imports these entities into the server's table `Books`.
pub fn loaded(server: Partita, entities: &[Entity]) -> Partita {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("books.jsonl");
    write(&path, entities);
    succeed("import", server.address, "--table Books --from {}", &path);
    server
}
