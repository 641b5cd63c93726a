//! `partita status`: what a running server says of itself, from its administration listener.

use std::time::Duration;

use clap::Args;
use serde_json::Value;
use thiserror::Error;

use super::health::{HealthError, ask_path, reachable, visible};

/// Where a server's administration listener is by default.
const ADMIN: &str = "127.0.0.1:10004";

#[derive(Args, Debug)]
pub struct StatusFlags {
    /// The address of the server's administration listener (serve --admin), which must be plain HTTP
    #[arg(long, value_name = "HOST:PORT", env = "PARTITA_ADMIN", default_value = ADMIN)]
    admin: String,
    /// A file with the token of the listener (serve --admin-token-file)
    #[arg(long, value_name = "FILE", env = "PARTITA_ADMIN_TOKEN_FILE")]
    token_file: Option<std::path::PathBuf>,
    /// Print the server's JSON
    #[arg(long)]
    json: bool,
    /// Seconds to wait for the answer
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=300))]
    timeout: u64,
}

#[derive(Debug, Error)]
pub enum StatusError {
    #[error(transparent)]
    Address(#[from] HealthError),
    #[error("can't read --token-file {}: {source}", .path.display())]
    Token { path: std::path::PathBuf, source: std::io::Error },
    #[error("{admin} does not answer: {source}; is a server with --admin running there?")]
    Silent { admin: String, source: std::io::Error },
    #[error("{admin} refused ({status}): {text}")]
    Refused { admin: String, status: u16, text: String },
    #[error("the answer of {admin} can't be read: {source}")]
    Answer { admin: String, source: serde_json::Error },
}

pub fn run(flags: &StatusFlags) -> Result<String, StatusError> {
    let address = reachable(&flags.admin)?;
    let token = match &flags.token_file {
        None => None,
        Some(path) => {
            let failed = |source| StatusError::Token { path: path.clone(), source };
            Some(std::fs::read_to_string(path).map_err(failed)?.trim().to_owned())
        }
    };
    let admin = flags.admin.clone();
    let timeout = Duration::from_secs(flags.timeout);
    let (status, text) = ask_path(address, "/api/status", token.as_deref(), timeout)
        .map_err(|source| StatusError::Silent { admin: admin.clone(), source })?;
    if status != 200 {
        let text = visible(&text.lines().next().unwrap_or_default().chars().take(200).collect::<String>());
        return Err(StatusError::Refused { admin, status, text });
    }
    let document: Value =
        serde_json::from_str(&text).map_err(|source| StatusError::Answer { admin, source })?;
    Ok(if flags.json { document.to_string() } else { for_people(&document) })
}

/// Every member in a line of its own; an object's members behind its name, and those of a list behind their number too.
fn for_people(document: &Value) -> String {
    let mut lines = Vec::new();
    write(&mut lines, "", document);
    let widest = lines.iter().map(|(name, _): &(String, String)| name.chars().count()).max().unwrap_or(0);
    let shown = lines.into_iter().map(|(name, value)| format!("{name:<widest$}  {value}"));
    shown.collect::<Vec<_>>().join("\n")
}

fn write(lines: &mut Vec<(String, String)>, name: &str, value: &Value) {
    match value {
        Value::Object(members) => {
            for (member, value) in members {
                let name = if name.is_empty() { member.clone() } else { format!("{name} {member}") };
                write(lines, &name, value);
            }
        }
        Value::Array(items) if items.is_empty() => {}
        Value::Array(items) if items.iter().all(Value::is_object) => {
            for (place, item) in items.iter().enumerate() {
                write(lines, &format!("{name} {}", place + 1), item);
            }
        }
        Value::Array(items) => {
            let shown: Vec<String> = items.iter().map(plain).collect();
            lines.push((spoken(name), shown.join(", ")));
        }
        Value::Null => {}
        other => lines.push((spoken(name), plain(other))),
    }
}

fn spoken(name: &str) -> String {
    visible(&name.replace('_', " "))
}

fn plain(value: &Value) -> String {
    visible(&value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_shown_line_by_line() {
        let document = serde_json::json!({
            "version": "0.1.0",
            "health": { "ready": true, "reasons": [] },
            "disk": { "free_bytes": 5 },
            "accounts": ["a", "b\u{1b}"],
            "cluster": { "nodes": [{ "up": true }, { "up": false }] },
            "jobs": null,
        });
        let shown = for_people(&document);
        let lines: Vec<&str> = shown.lines().collect();
        for line in [
            "disk free bytes     5",
            "health ready        true",
            "accounts            a, b?",
            "cluster nodes 1 up  true",
            "cluster nodes 2 up  false",
        ] {
            assert!(lines.contains(&line), "{line} is not in {shown}");
        }
        assert_eq!(lines.len(), 6, "{shown}");
    }
}
