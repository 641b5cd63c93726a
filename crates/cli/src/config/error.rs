//! What can be wrong with settings. Each error names the setting and what it takes; none shows a key.

use std::io;
use std::path::PathBuf;

use front::account::AccountError;
use front::bearer::BearerError;
use front::traces::OtlpEndpointError;
use thiserror::Error;

use super::REQUEST_MIB_MIN;

#[derive(Debug, Error)]
pub enum SettingsError {
    #[error("can't read the settings file {}: {source}; check its path and its permissions", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// Without the parser's error as a source: it quotes the line, which may contain a key.
    #[error("{} is not a valid configuration{}: {message}", .path.display(), place_text(*.at))]
    Invalid { path: PathBuf, at: Option<usize>, message: String },
    #[error(
        "can't read {setting}-file {} of account {account}: {source}; check its path and its permissions",
        .path.display()
    )]
    KeyFile { account: String, setting: &'static str, path: PathBuf, source: io::Error },
    #[error("account {account} has both {setting} and {setting}-file; it takes one of them")]
    KeyTwice { account: String, setting: &'static str },
    #[error("account (PARTITA_ACCOUNTS) is empty; set it to name:key, or leave it out")]
    AccountsEmpty,
    #[error(transparent)]
    Account(#[from] AccountError),
    #[error(transparent)]
    Bearer(#[from] BearerError),
    #[error("development is for a server without accounts; leave out one of them")]
    DevelopmentBesideAccounts,
    #[error(
        "no account is configured, and other machines can reach {address}; configure accounts, or serve the \
         development account, whose key is public, with --development"
    )]
    DevelopmentForOthers { address: String },
    #[error(
        "other machines can reach admin {address}; it needs HTTPS (tls-cert and tls-key, or dev-cert) and \
         admin-token-file; or choose a loopback address such as 127.0.0.1:10004"
    )]
    AdminForOthers { address: String },
    #[error(transparent)]
    AdminToken(#[from] admin::TokenError),
    #[error(transparent)]
    AdminHost(#[from] admin::HostNameError),
    #[error("HTTPS needs tls-cert and tls-key together, or dev-cert alone")]
    CertificateIncomplete,
    #[error("with no-http there is nothing to serve without tls-cert and tls-key, or dev-cert")]
    NothingToServe,
    #[error("store says to keep data in a cluster and {other}; leave out one")]
    TwoStores { other: &'static str },
    #[error("request-mib is {0}; the largest request needs {REQUEST_MIB_MIN}")]
    RequestMemory(usize),
    #[error("throttle is {0:?}; it takes off, azure, or two rates such as 20000/2000")]
    Throttle(String),
    #[error("otlp-endpoint: {0}")]
    Collector(#[from] OtlpEndpointError),
    #[error("otlp-sample is {0}; it takes a part of all requests, from 0 to 1")]
    Sample(f64),
    #[error("max-examined is an extension; leave it out, or turn extensions on")]
    ExaminedWithoutExtensions,
    #[error("{setting} is 0; it must be at least 1")]
    Zero { setting: &'static str },
}

fn place_text(at: Option<usize>) -> String {
    at.map_or(String::new(), |at| format!(" at byte {at}"))
}
