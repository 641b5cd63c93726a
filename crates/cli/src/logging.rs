//! Sets up logging: level, format, output.

use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

/// Why there can be no log.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    #[error("{level:?} is not a log level ({source}); use error, warn, info, debug or trace")]
    Level { level: String, source: tracing_subscriber::filter::ParseError },
    #[error("can't write the log to {}: {source}; --log-file takes a file in a directory that exists", .path.display())]
    File { path: PathBuf, source: io::Error },
}

/// Logs go to the file, or to standard error; standard output has only the banner.
pub fn start_logging(level: &str, format: LogFormat, file: Option<&Path>) -> Result<(), LoggingError> {
    // The Cassandra driver logs every connection; the engine logs what matters.
    let directives =
        if level.contains([',', '=']) { level.to_owned() } else { format!("{level},scylla=error") };
    let filter: Targets =
        directives.parse().map_err(|source| LoggingError::Level { level: level.to_owned(), source })?;
    let (writer, is_terminal) = match file {
        Some(path) => {
            let unwritable = |source| LoggingError::File { path: path.to_owned(), source };
            let file = File::options().append(true).create(true).open(path).map_err(unwritable)?;
            (BoxMakeWriter::new(Arc::new(file)), false)
        }
        None => (BoxMakeWriter::new(io::stderr), io::stderr().is_terminal()),
    };
    let lines =
        tracing_subscriber::fmt::layer().with_writer(writer).with_target(false).with_ansi(is_terminal);
    let registry = tracing_subscriber::registry().with(filter);
    match format {
        LogFormat::Text => registry.with(lines).init(),
        LogFormat::Json => registry.with(lines.json().flatten_event(true)).init(),
    }
    Ok(())
}
