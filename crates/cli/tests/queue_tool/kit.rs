//! Runs `partita queue`, and reads what it prints and writes.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::{ACCOUNT, KEY, Partita, binary};

/// `partita queue` with its endpoint.
pub fn command(address: SocketAddr, arguments: &[&str]) -> Command {
    let endpoint = format!("AccountName={ACCOUNT};AccountKey={KEY};QueueEndpoint=http://{address}/{ACCOUNT}");
    let mut command = binary();
    command
        .env("AZURE_STORAGE_CONNECTION_STRING", endpoint)
        .arg("queue")
        .args(arguments)
        .stdin(Stdio::null());
    command
}

pub fn run(address: SocketAddr, arguments: &[&str]) -> Output {
    command(address, arguments).output().unwrap()
}

pub fn run_with_input(address: SocketAddr, arguments: &[&str], input: &[u8]) -> Output {
    let mut command = command(address, arguments);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A command that refuses its input may close it.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// Standard output of a command that must succeed.
pub fn succeed(address: SocketAddr, arguments: &[&str]) -> String {
    done(run(address, arguments))
}

pub fn done(output: Output) -> String {
    assert!(output.status.success(), "{}", error(&output));
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

/// Lines of JSON.
pub fn json(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub fn read(path: &Path) -> Vec<Value> {
    json(&std::fs::read_to_string(path).unwrap())
}

/// One member of each message.
pub fn members(lines: &[Value], name: &str) -> Vec<String> {
    let texts = lines.iter().filter_map(|line| line.get(name));
    texts.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).collect()
}

pub fn count(address: SocketAddr, queue: &str) -> usize {
    succeed(address, &["count", queue]).trim().parse().unwrap()
}

/// A new queue with messages `0`, `1`, and so on.
pub fn filled(server: &Partita, queue: &str, messages: usize) -> SocketAddr {
    let address = server.queue_address();
    succeed(address, &["create", queue, "--metadata", "kind=test"]);
    let lines: String = (0..messages).map(|number| format!("{number}\n")).collect();
    let ids = done(run_with_input(address, &["put", queue, "--lines"], lines.as_bytes()));
    assert_eq!(ids.lines().count(), messages);
    address
}

/// Takes all visible messages, in order.
pub fn drained(address: SocketAddr, queue: &str) -> Vec<Value> {
    let mut all = Vec::new();
    loop {
        let arguments = ["get", queue, "--count", "32", "--delete", "--format", "json"];
        let output = run(address, &arguments);
        if output.status.code() == Some(3) {
            return all;
        }
        all.extend(json(&done(output)));
    }
}

pub fn numbers(count: usize) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}
