//! The Python library with the same format reads what we encrypt, and the other way round.
//!
//! The library is not installed everywhere, so this runs only if `PARTITA_TEST_PYTHON` names a Python that has it:
//!
//!     python3 -m venv target/python
//!     target/python/bin/pip install --no-deps --requirement crates/client-encryption/tests/python/requirements.txt
//!     PARTITA_TEST_PYTHON=$PWD/target/python/bin/python cargo test -p partita-client-encryption python::

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::io::Write;
use std::process::{Command, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use partita_client::{Entity, Value};
use partita_client_encryption::{EncryptionPolicy, LocalKey};
use serde_json::{Map, json};

/// Encrypts or decrypts entities with the library; `None` if it is not installed.
fn library(work: &str, entities: &[Entity]) -> Option<Vec<Entity>> {
    let python = testing::needed(
        "PARTITA_TEST_PYTHON",
        "scripts/client installs a Python with the library and sets it",
    )?;
    let script = testing::package_directory().join("tests/python/library.py");
    let mut command = Command::new(python);
    command.arg(script).arg(work).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.env("PYTHONDONTWRITEBYTECODE", "1").spawn().unwrap();
    let lines: String = entities.iter().map(|entity| format!("{}\n", to_json(entity))).collect();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    Some(String::from_utf8(output.stdout).unwrap().lines().map(from_json).collect())
}

fn to_json(entity: &Entity) -> serde_json::Value {
    let mut object = Map::new();
    object.insert("PartitionKey".into(), json!(entity.partition_key));
    object.insert("RowKey".into(), json!(entity.row_key));
    for (name, value) in &entity.properties {
        let value = match value {
            Value::String(text) => json!(text),
            Value::Boolean(truth) => json!(truth),
            Value::Binary(bytes) => {
                object.insert(format!("{name}@odata.type"), json!("Edm.Binary"));
                json!(BASE64.encode(bytes))
            }
            other => panic!("no {other:?} here"),
        };
        object.insert(name.clone(), value);
    }
    object.into()
}

fn from_json(line: &str) -> Entity {
    let object: Map<String, serde_json::Value> = serde_json::from_str(line).unwrap();
    let text = |name: &str| object[name].as_str().unwrap();
    let mut entity = Entity::new(text("PartitionKey"), text("RowKey"));
    for (name, value) in &object {
        if name.contains('@') || name == "PartitionKey" || name == "RowKey" {
            continue;
        }
        let kind = object.get(&format!("{name}@odata.type")).and_then(|kind| kind.as_str());
        match (kind, value.as_bool()) {
            (Some("Edm.Binary"), _) => entity.set(name, BASE64.decode(text(name)).unwrap()),
            (_, Some(truth)) => entity.set(name, truth),
            (_, None) => entity.set(name, text(name)),
        }
    }
    entity
}

fn policy() -> EncryptionPolicy {
    let key: Vec<u8> = (0x80..0xA0).collect();
    EncryptionPolicy::new(LocalKey::new("local:kek1", &key).unwrap())
        .encrypt_if(|_, _, name| name.starts_with("secret"))
        .require_encryption(true)
}

fn entities() -> Vec<Entity> {
    let secrets = ["", "x", "h\u{e9}llo", "sixteen bytes...", "\u{1F600}\0\n\"", &"long ".repeat(3000)];
    let one = |(index, secret): (usize, &&str)| {
        Entity::new("Coho", index.to_string())
            .with("secret", *secret)
            .with("secret2", "two")
            .with("Active", true)
    };
    let mut entities: Vec<Entity> = secrets.iter().enumerate().map(one).collect();
    entities.push(
        Entity::new("\u{434}\u{430} '\"", "\u{1F511} key")
            .with("secret", "by odd keys")
            .with("Plain", vec![1, 2]),
    );
    entities
}

#[tokio::test]
async fn python_reads_what_we_encrypt() {
    let mut stored = Vec::new();
    for entity in entities() {
        stored.push(policy().encrypt(entity).await.unwrap());
    }
    if let Some(read) = library("decrypt", &stored) {
        assert_eq!(read, entities());
    }
}

#[tokio::test]
async fn we_read_what_python_encrypts() {
    let Some(stored) = library("encrypt", &entities()) else { return };
    assert_eq!(stored.len(), entities().len());
    for (stored, entity) in stored.into_iter().zip(entities()) {
        assert!(matches!(stored.get("secret"), Some(Value::Binary(_))));
        assert_eq!(policy().decrypt(stored).await.unwrap(), entity);
    }
}
