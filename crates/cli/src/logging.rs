//! Sets up logging: level, format, output.

use std::io::IsTerminal as _;

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

#[derive(Debug, thiserror::Error)]
#[error("{level:?} is not a log level ({source}); use error, warn, info, debug or trace")]
pub struct LevelError {
    level: String,
    source: tracing_subscriber::filter::ParseError,
}

/// Logs go to standard error; standard output has only the banner.
pub fn start_logging(level: &str, format: LogFormat) -> Result<(), LevelError> {
    // The Cassandra driver logs every connection; the engine logs what matters.
    let directives =
        if level.contains([',', '=']) { level.to_owned() } else { format!("{level},scylla=error") };
    let filter: Targets =
        directives.parse().map_err(|source| LevelError { level: level.to_owned(), source })?;
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
