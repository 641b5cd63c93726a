//! Compares the layers of ARCHITECTURE.md with the dependencies that cargo reports.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

/// From the bottom up. A crate may depend only on crates of lower layers, except for its tests.
const LAYERS: [&[&str]; 10] = [
    &["common", "console", "driver", "forensics", "row-walk", "testing"],
    &["model", "protocol", "blob-model", "queue-model"],
    &["wire", "filter", "store", "blob-wire", "queue-wire"],
    &[
        "connection",
        "client",
        "engine-embedded",
        "engine-cassandra",
        "service",
        "blob-service",
        "queue-service",
        "migrate",
        "store-suite",
    ],
    &["client-encryption", "client-patterns", "front", "bench", "transfer"],
    &["table-http", "blob-http", "queue-http"],
    &["admin"],
    &["cli"],
    // Programs that test the others.
    &["histories", "lab", "bare", "patterns"],
    &["cluster-tests", "directory-model"],
];

/// The only programs that name engines.
const NAMES_ENGINES: [&str; 2] = ["cli", "cluster-tests"];

/// Every crate of the workspace with its dependencies, without dev-dependencies.
fn dependencies() -> BTreeMap<String, Vec<String>> {
    let asked = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .arg("--manifest-path")
        .arg(testing::package_directory().join("../../Cargo.toml"))
        .output()
        .unwrap();
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let metadata: Value = serde_json::from_slice(&asked.stdout).unwrap();
    let short = |name: &Value| name.as_str()?.strip_prefix("partita-").map(str::to_owned);
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .map(|package| {
            let needed = package["dependencies"].as_array().unwrap().iter();
            let needed = needed.filter(|needed| needed["kind"] != "dev").filter_map(|d| short(&d["name"]));
            (short(&package["name"]).unwrap(), needed.collect())
        })
        .collect()
}

fn layer(name: &str) -> usize {
    let found = LAYERS.iter().position(|layer| layer.contains(&name));
    found.unwrap_or_else(|| panic!("{name} has no layer; give it one here and in ARCHITECTURE.md"))
}

#[test]
fn crates_depend_only_on_lower_layers() {
    for (name, needed) in dependencies() {
        for needed in needed {
            assert!(layer(&needed) < layer(&name), "{name} depends on {needed}, which is not below it");
        }
    }
}

#[test]
fn engines_are_named_in_one_place() {
    for (name, needed) in dependencies() {
        let engines = needed.iter().any(|needed| needed.starts_with("engine-"));
        assert!(!engines || NAMES_ENGINES.contains(&name.as_str()), "{name} names an engine");
    }
}
