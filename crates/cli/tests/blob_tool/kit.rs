//! Runs `partita blob`, and reads what it prints.

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::{ACCOUNT, KEY, binary};

/// `partita blob` with its endpoint.
pub fn command(address: SocketAddr, arguments: &[&str]) -> Command {
    let endpoint = format!("AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint=http://{address}/{ACCOUNT}");
    let mut command = binary();
    command.env("AZURE_STORAGE_CONNECTION_STRING", endpoint).arg("blob").args(arguments).stdin(Stdio::null());
    command
}

pub fn run(address: SocketAddr, arguments: &[&str]) -> Output {
    command(address, arguments).output().unwrap()
}

/// Standard output of a command that must succeed.
pub fn succeed(address: SocketAddr, arguments: &[&str]) -> String {
    let output = run(address, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", error(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Standard error of a command that must fail.
pub fn fail(address: SocketAddr, arguments: &[&str]) -> String {
    let output = run(address, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
    error(&output)
}

pub fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Puts a blob from standard input, with further flags.
pub fn put(address: SocketAddr, container: &str, name: &str, content: &[u8], flags: &[&str]) {
    let arguments: Vec<&str> = ["put", container, name].into_iter().chain(flags.iter().copied()).collect();
    let mut command = command(address, &arguments);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(content).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{name}: {}", error(&output));
}

pub fn get(address: SocketAddr, container: &str, name: &str) -> Vec<u8> {
    let output = run(address, &["get", container, name]);
    assert!(output.status.success(), "{name}: {}", error(&output));
    output.stdout
}

/// Lines of JSON.
pub fn json(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// All that a list tells, without what differs between two writes of the same.
pub fn described(address: SocketAddr, container: &str) -> Vec<Value> {
    let mut listed = json(&succeed(address, &["list", container, "--format", "json"]));
    for blob in &mut listed {
        let blob = blob.as_object_mut().unwrap();
        blob.remove("etag");
        blob.remove("lastModified");
    }
    listed
}

pub fn names(address: SocketAddr, container: &str) -> Vec<String> {
    let listed = described(address, container);
    listed.iter().map(|blob| blob["name"].as_str().unwrap().to_owned()).collect()
}
