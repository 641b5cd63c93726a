//! A file of tests that no program names is never compiled, and nobody notices.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

use std::fs;

use crate::support::root;

#[test]
fn every_file_of_tests_belongs_to_a_program() {
    let mut checked = 0;
    for package in fs::read_dir(root().join("crates")).unwrap() {
        let package = package.unwrap().path();
        let Ok(program) = fs::read_to_string(package.join("tests/all.rs")) else { continue };
        let manifest = fs::read_to_string(package.join("Cargo.toml")).unwrap();
        for entry in fs::read_dir(package.join("tests")).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let is_source =
                path.extension().is_some_and(|ending| ending == "rs") || path.join("mod.rs").exists();
            let is_named =
                program.contains(&format!("mod {name};")) || manifest.contains(&format!("name = \"{name}\""));
            assert!(!is_source || name == "all" || is_named, "{} is in no program", path.display());
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked}");
}
