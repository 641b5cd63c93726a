//! The TOML file that `--config` names.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::Switch;
use super::error::SettingsError;
use super::storage::StoreAddress;
use crate::logging::LogFormat;

/// The same names as the flags; each account is a table.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct File {
    pub listen: Option<String>,
    pub queue_listen: Option<String>,
    pub blob_listen: Option<String>,
    pub blob_public_access: Option<Switch>,
    pub tls_cert: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    pub dev_cert: Option<PathBuf>,
    pub tls_listen: Option<String>,
    pub queue_tls_listen: Option<String>,
    pub blob_tls_listen: Option<String>,
    pub no_http: bool,
    pub data: Option<PathBuf>,
    pub store: Option<StoreAddress>,
    pub store_wait_seconds: Option<u64>,
    pub control: Option<PathBuf>,
    pub in_memory: bool,
    pub admin: Option<String>,
    pub admin_token_file: Option<PathBuf>,
    pub admin_host: Vec<String>,
    pub account: Vec<FileAccount>,
    pub skip_clock_check: bool,
    pub development: bool,
    pub bearer_issuer: Option<String>,
    pub bearer_jwks: Option<PathBuf>,
    pub bearer_audience: Vec<String>,
    pub bearer_tenant: Option<String>,
    pub bearer_over_http: bool,
    pub throttle: Option<String>,
    pub extensions: Option<Switch>,
    pub max_examined: Option<u64>,
    pub cache_mib: Option<usize>,
    pub request_mib: Option<usize>,
    pub max_connections: Option<usize>,
    pub idle_seconds: Option<u64>,
    pub shutdown_seconds: Option<u64>,
    pub slow_query_ms: Option<u64>,
    pub scan_log_rows: Option<u64>,
    pub otlp_endpoint: Option<String>,
    pub otlp_sample: Option<f64>,
    pub accept_migration: bool,
    pub log_level: Option<String>,
    pub log_format: Option<LogFormat>,
    pub log_file: Option<PathBuf>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct FileAccount {
    pub name: String,
    pub key: Option<String>,
    /// A file that contains only the key.
    pub key_file: Option<PathBuf>,
    pub key2: Option<String>,
    pub key2_file: Option<PathBuf>,
}

pub(super) fn read_file(path: &Path) -> Result<File, SettingsError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| SettingsError::Unreadable { path: path.to_owned(), source })?;
    toml::from_str(&text).map_err(|error| {
        let at = error.span().map(|span| span.start);
        SettingsError::Invalid { path: path.to_owned(), at, message: error.message().to_owned() }
    })
}

/// A key from the settings file, or from its own file.
pub(super) fn secret(
    account: &str,
    setting: &'static str,
    text: Option<&str>,
    path: Option<&Path>,
) -> Result<Option<String>, SettingsError> {
    match (text, path) {
        (Some(_), Some(_)) => Err(SettingsError::KeyTwice { account: account.to_owned(), setting }),
        (Some(text), None) => Ok(Some(text.to_owned())),
        (None, Some(path)) => match std::fs::read_to_string(path) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(source) => Err(SettingsError::KeyFile {
                account: account.to_owned(),
                setting,
                path: path.to_owned(),
                source,
            }),
        },
        (None, None) => Ok(None),
    }
}
