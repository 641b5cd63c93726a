//! What the tests of several crates share.

mod mutation;
mod patience;

use std::path::PathBuf;
use std::process::Command;

pub use mutation::{Reading, bytes_near, check_near, text_near};
pub use patience::{Patience, wait_until};

/// If this is 1, a test that can't run here fails. `./test` sets it.
const REQUIRE_ALL: &str = "PARTITA_REQUIRE_ALL";

/// Prints that a test can't run, and why. The caller then returns, and the test passes, unless every test is required.
///
/// # Panics
/// If `PARTITA_REQUIRE_ALL` is 1.
pub fn not_run(why: &str) {
    let required = std::env::var_os(REQUIRE_ALL).is_some_and(|value| value == "1");
    assert!(!required, "could not run, and {REQUIRE_ALL}=1 asks for every test: {why}");
    eprintln!("not run: {why}");
}

/// A variable that names what a test needs, such as a server. If it is not set, the test can't run.
pub fn needed(variable: &str, way_out: &str) -> Option<String> {
    let value = std::env::var(variable).ok().filter(|value| !value.is_empty());
    if value.is_none() {
        not_run(&format!("{variable} is not set; {way_out}"));
    }
    value
}

/// The directory of the package under test. Asked when the test runs and not when it is compiled: clones share what is
/// compiled, and the clone that compiled a test may be gone.
///
/// # Panics
/// If the test was started neither by cargo nor by `scripts/rust-tests`.
pub fn package_directory() -> PathBuf {
    let directory = std::env::var_os("CARGO_MANIFEST_DIR");
    directory.expect("cargo and scripts/rust-tests set CARGO_MANIFEST_DIR for the tests they start").into()
}

/// Sends a signal, such as TERM, to a process. Uses the shell's `kill`, because not every system has the program.
///
/// # Panics
/// If there is no such process.
pub fn signal(process: u32, name: &str) {
    let sent =
        Command::new("sh").args(["-c", r#"kill "-$1" "$2""#, "sh", name, &process.to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "could not send {name} to process {process}");
}
