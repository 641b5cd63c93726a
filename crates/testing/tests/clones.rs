//! Clones share what is compiled (`scripts/sources`), so nothing that is compiled may hold the path of its clone.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::path::Path;

/// Split, so that this file does not have it.
const COMPILED_PATH: &str = concat!("env!(\"CARGO_", "MANIFEST_DIR\")");
/// Its build program names files that are compiled in, and cargo looks for these in the present clone.
const ALLOWED: &str = "console/build.rs";

fn check(directory: &Path, read: &mut usize) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") && !path.ends_with("node_modules") {
            check(&path, read);
        } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with(ALLOWED) {
            *read += 1;
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(!text.contains(COMPILED_PATH), "{} has the path of its clone", path.display());
        }
    }
}

#[test]
fn no_test_and_no_program_holds_the_path_of_the_clone_that_compiled_it() {
    let mut read = 0;
    for part in ["bench", "cassandra", "crash", "crates"] {
        check(&testing::package_directory().join("../..").join(part), &mut read);
    }
    assert!(read > 100, "only {read} files were read");
}
