//! Logs and request ids.

use std::io::IsTerminal as _;

use model::Guid;
use rand::Rng as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

/// Logs go to standard error, so that standard output holds the banner alone.
pub fn start_logging(level: &str, format: LogFormat) -> Result<(), String> {
    // The cluster's driver tells of every connection it makes; what matters of it is said by the engine.
    let directives =
        if level.contains([',', '=']) { level.to_owned() } else { format!("{level},scylla=error") };
    let filter: Targets = directives.parse().map_err(|error| {
        format!("{level:?} is no log level ({error}); use error, warn, info, debug or trace")
    })?;
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_ansi(std::io::stderr().is_terminal());
    let registry = tracing_subscriber::registry().with(filter);
    match format {
        LogFormat::Text => registry.with(lines).init(),
        LogFormat::Json => registry.with(lines.json().flatten_event(true)).init(),
    }
    Ok(())
}

pub fn new_guid() -> String {
    Guid(rand::rng().random()).to_string()
}

/// In the shape of the service's own: `xxxxxxxx-x002-00xx-xxxx-xxxxxx000000`.
pub fn new_request_id() -> String {
    let mut bytes: [u8; 16] = rand::rng().random();
    (bytes[4], bytes[5], bytes[6]) = (bytes[4] & 0xf0, 0x02, 0);
    bytes[13..].fill(0);
    Guid(bytes).to_string()
}

#[cfg(test)]
mod tests {
    #[test]
    fn request_ids_have_the_services_shape() {
        let id = super::new_request_id();
        assert_eq!(id.len(), 36);
        assert_eq!((&id[10..16], &id[30..]), ("002-00", "000000"), "{id}");
        assert_ne!(id, super::new_request_id());
    }
}
