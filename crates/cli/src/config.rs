//! The settings of a server. Flags win over `PARTITA_…` variables, these over the TOML file, and that over defaults.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use common::throttle::Targets;
use serde::Deserialize;

use crate::control;
use crate::logging::LogFormat;
use front::Bounds;
use front::account::{Account, Accounts};
use front::bearer::{Bearer, BearerSettings};
use front::tls::CertificateFiles;

mod admin;
mod error;
mod file;
mod flags;
mod memory;
mod shown;
mod storage;
mod watching;

pub use self::admin::AdminConfig;
pub use error::SettingsError;
pub use flags::Flags;
pub use shown::settings;
pub use storage::{Storage, StoreAddress};
pub use watching::Watching;

pub const LISTEN: &str = "127.0.0.1:10002";
const TLS_LISTEN: &str = "127.0.0.1:10003";
pub const QUEUE_LISTEN: &str = "127.0.0.1:10001";
const QUEUE_TLS_LISTEN: &str = "127.0.0.1:10005";
pub const BLOB_LISTEN: &str = "127.0.0.1:10000";
const BLOB_TLS_LISTEN: &str = "127.0.0.1:10006";
/// In place of an address: the service is not served.
pub const OFF: &str = "off";
const DEV_CERT: &str = "./partita-dev-cert";
pub const DATA: &str = "./partita-data";
const LOG_LEVEL: &str = "info";
const MAX_CONNECTIONS: usize = 10_000;
const IDLE_SECONDS: u64 = 120;
const SHUTDOWN_SECONDS: u64 = 30;
const STORE_WAIT_SECONDS: u64 = 60;
/// Request line and headers: room for a URL of 64 KiB.
const HEAD_KIB: usize = 128;
const REQUEST_MIB: usize = 256;
/// Enough for the largest body and its answer.
const REQUEST_MIB_MIN: usize = 16;

/// The settings after flags, variables, file and defaults are combined.
#[derive(Debug)]
pub struct Config {
    /// The address for plain HTTP; `None` with --no-http.
    pub listen: Option<String>,
    /// Where to serve queues over plain HTTP, if at all.
    pub queue_listen: Option<String>,
    /// Where to serve blobs over plain HTTP, if at all.
    pub blob_listen: Option<String>,
    /// Whether public containers can be read without credentials.
    pub blob_public_access: bool,
    pub tls: Option<Tls>,
    pub storage: Storage,
    /// The control socket, if there is one, and whether a setting names it.
    pub control: Option<(PathBuf, bool)>,
    /// The console, metrics and administration, unless they are off.
    pub admin: Option<AdminConfig>,
    pub accounts: Vec<Account>,
    /// No account is configured, so the server serves the development account.
    pub development: bool,
    pub check_clock: bool,
    pub bearer: Arc<Bearer>,
    pub throttle: Option<Targets>,
    /// Whether requests and headers beyond Azure's are answered.
    pub extensions: bool,
    /// The most entities that a page may examine.
    pub max_examined: Option<u64>,
    pub bounds: Bounds,
    pub watching: Watching,
    pub log_level: String,
    pub log_format: LogFormat,
    /// Standard error otherwise.
    pub log_file: Option<PathBuf>,
    /// Whether to print what Azurite prints.
    pub azurite_lines: bool,
}

/// `on` or `off`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Switch {
    #[default]
    On,
    Off,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Tls {
    pub listen: String,
    /// Where to serve queues, if at all.
    pub queue_listen: Option<String>,
    /// Where to serve blobs, if at all.
    pub blob_listen: Option<String>,
    pub source: CertificateSource,
}

#[derive(Debug, PartialEq, Eq)]
pub enum CertificateSource {
    Files(CertificateFiles),
    /// Created in this directory.
    Development(PathBuf),
}

impl Config {
    pub fn from_flags(flags: Flags) -> Result<Self, SettingsError> {
        let file = flags.config.as_deref().map(file::read_file).transpose()?.unwrap_or_default();
        let mut accounts = Vec::new();
        // Most likely a variable that should contain accounts. The server must not serve the development account instead.
        if !flags.accounts.is_empty() && flags.accounts.iter().all(|text| text.trim().is_empty()) {
            return Err(SettingsError::AccountsEmpty);
        }
        for text in flags.accounts.iter().filter(|text| !text.trim().is_empty()) {
            accounts.push(Account::parse(text)?);
        }
        if accounts.is_empty() {
            for file::FileAccount { name, key, key_file, key2, key2_file } in &file.account {
                let first = file::secret(name, "key", key.as_deref(), key_file.as_deref())?;
                let second = file::secret(name, "key2", key2.as_deref(), key2_file.as_deref())?;
                let keys: Vec<&str> = first.as_deref().into_iter().chain(second.as_deref()).collect();
                accounts.push(Account::new(name, &keys)?);
            }
        }
        let asked_for_development = flags.development || file.development;
        let development = accounts.is_empty();
        if development {
            accounts.push(Account::development());
        } else if asked_for_development {
            return Err(SettingsError::DevelopmentBesideAccounts);
        }
        let storage = Storage::choose(&flags, &file)?;
        let watching = Watching::choose(&flags, &file)?;
        let beside_data = |name: &str| match &storage {
            Storage::Memory | Storage::Cluster { .. } => None,
            Storage::Directory { path, .. } => Some(path.join(name)),
        };
        let control = flags.control.or(file.control).map(|path| (path, true));
        let control = control.or_else(|| beside_data(control::SOCKET).map(|path| (path, false)));
        let tls_listen = flags.tls_listen.or(file.tls_listen).unwrap_or_else(|| TLS_LISTEN.to_owned());
        let named_by_flags = flags.tls_cert.is_some() || flags.dev_cert.is_some();
        let (cert, key, dev_cert) = if named_by_flags {
            (flags.tls_cert, flags.tls_key, flags.dev_cert)
        } else {
            (file.tls_cert, file.tls_key, file.dev_cert)
        };
        let source = match (cert, key, dev_cert) {
            (None, None, None) => None,
            (Some(certificate), Some(key), None) => {
                Some(CertificateSource::Files(CertificateFiles { certificate, key }))
            }
            (None, None, Some(directory)) => Some(CertificateSource::Development(directory)),
            _ => return Err(SettingsError::CertificateIncomplete),
        };
        let queue_setting = flags.queue_listen.or(file.queue_listen);
        let queue_tls_setting = unless_off(&queue_setting, flags.queue_tls_listen.or(file.queue_tls_listen));
        let queue_tls_listen = beside(&tls_listen, queue_tls_setting, QUEUE_TLS_LISTEN);
        let blob_setting = flags.blob_listen.or(file.blob_listen);
        let blob_tls_setting = unless_off(&blob_setting, flags.blob_tls_listen.or(file.blob_tls_listen));
        let blob_tls_listen = beside(&tls_listen, blob_tls_setting, BLOB_TLS_LISTEN);
        let tls = source.map(|source| Tls {
            listen: tls_listen,
            queue_listen: queue_tls_listen,
            blob_listen: blob_tls_listen,
            source,
        });
        let no_http = flags.no_http || file.no_http;
        if no_http && tls.is_none() {
            return Err(SettingsError::NothingToServe);
        }
        let listen = (!no_http).then(|| flags.listen.or(file.listen).unwrap_or_else(|| LISTEN.to_owned()));
        let queue_listen = listen.as_ref().and_then(|listen| beside(listen, queue_setting, QUEUE_LISTEN));
        let blob_listen = listen.as_ref().and_then(|listen| beside(listen, blob_setting, BLOB_LISTEN));
        let admin_settings = admin::AdminSettings {
            address: flags.admin.or(file.admin),
            token_file: flags
                .admin_token_file
                .or(file.admin_token_file.filter(|_| flags.admin_token.is_none())),
            token: flags.admin_token,
            hosts: if flags.admin_host.is_empty() { file.admin_host } else { flags.admin_host },
        };
        let of_tables = listen.as_deref().or(tls.as_ref().map(|tls| tls.listen.as_str())).unwrap_or(LISTEN);
        let admin = admin_settings.choose(of_tables, tls.is_some(), no_http)?;
        let of_admin = admin.as_ref().map(|admin| &admin.listen);
        let of_tls = || {
            tls.iter()
                .flat_map(|tls| [Some(&tls.listen), tls.queue_listen.as_ref(), tls.blob_listen.as_ref()])
        };
        let addresses = || {
            [&listen, &queue_listen, &blob_listen]
                .map(Option::as_ref)
                .into_iter()
                .chain(of_tls())
                .chain([of_admin])
                .flatten()
        };
        if development
            && !asked_for_development
            && let Some(address) = addresses().find(|address| !is_loopback(address))
        {
            return Err(SettingsError::DevelopmentForOthers { address: address.clone() });
        }
        let bearer = Bearer::load(BearerSettings {
            issuer: flags.bearer_issuer.or(file.bearer_issuer),
            audiences: if flags.bearer_audience.is_empty() {
                file.bearer_audience
            } else {
                flags.bearer_audience
            },
            jwks: flags.bearer_jwks.or(file.bearer_jwks),
            tenant: flags.bearer_tenant.or(file.bearer_tenant),
            over_http: flags.bearer_over_http || file.bearer_over_http,
        })?;
        let connections = flags.max_connections.or(file.max_connections).unwrap_or(MAX_CONNECTIONS);
        let request_mib = flags.request_mib.or(file.request_mib).unwrap_or(REQUEST_MIB);
        if request_mib < REQUEST_MIB_MIN {
            return Err(SettingsError::RequestMemory(request_mib));
        }
        let extensions = flags.extensions.or(file.extensions).unwrap_or_default() == Switch::On;
        let max_examined = flags.max_examined.or(file.max_examined);
        if max_examined.is_some() && !extensions {
            return Err(SettingsError::ExaminedWithoutExtensions);
        }
        let idle = flags.idle_seconds.or(file.idle_seconds).unwrap_or(IDLE_SECONDS);
        let shutdown = flags.shutdown_seconds.or(file.shutdown_seconds).unwrap_or(SHUTDOWN_SECONDS);
        Ok(Self {
            listen,
            queue_listen,
            blob_listen,
            blob_public_access: flags.blob_public_access.or(file.blob_public_access) == Some(Switch::On),
            tls,
            storage,
            control,
            admin,
            accounts,
            development,
            bearer: Arc::new(bearer),
            throttle: throttle(flags.throttle.or(file.throttle).as_deref())?,
            extensions,
            max_examined,
            check_clock: !(flags.skip_clock_check || file.skip_clock_check),
            bounds: Bounds {
                connections: positive("max-connections", connections)?
                    .min(tokio::sync::Semaphore::MAX_PERMITS),
                idle: Duration::from_secs(positive("idle-seconds", idle as usize)? as u64),
                head_bytes: HEAD_KIB * 1024,
                memory_bytes: request_mib.saturating_mul(1024 * 1024),
                shutdown: Duration::from_secs(shutdown),
            },
            watching,
            log_level: flags.log_level.or(file.log_level).unwrap_or_else(|| LOG_LEVEL.to_owned()),
            log_format: flags.log_format.or(file.log_format).unwrap_or_default(),
            log_file: flags.log_file.or(file.log_file),
            azurite_lines: flags.azurite_lines,
        })
    }

    pub fn accounts(&self) -> Accounts {
        Accounts::new(self.accounts.iter().cloned())
    }
}

/// A service that is off over HTTP is off over HTTPS too, unless that is set.
fn unless_off(plain: &Option<String>, setting: Option<String>) -> Option<String> {
    setting.or_else(|| plain.clone().filter(|plain| plain == OFF))
}

/// Where to serve queues or blobs beside tables: where the operator says, or at the usual port. A server of tables that takes any
/// free port takes one for each of them too, so that several of them can run on one machine.
fn beside(listen: &str, setting: Option<String>, usual: &str) -> Option<String> {
    match setting {
        Some(setting) if setting == OFF => None,
        Some(address) => Some(address),
        None if listen.ends_with(":0") => Some(listen.to_owned()),
        None => Some(usual.to_owned()),
    }
}

/// Whether only this machine can reach an address to listen on. Of names, only `localhost` counts: others may resolve to
/// any address.
fn is_loopback(address: &str) -> bool {
    if let Ok(address) = address.parse::<SocketAddr>() {
        return address.ip().to_canonical().is_loopback();
    }
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.eq_ignore_ascii_case("localhost")
}

fn throttle(text: Option<&str>) -> Result<Option<Targets>, SettingsError> {
    let own = |text: &str| {
        let (account, partition) = text.split_once('/')?;
        let rate = |text: &str| text.trim().parse().ok().filter(|rate: &u32| *rate > 0);
        Some(Targets { account: rate(account)?, resource: rate(partition)? })
    };
    match text {
        None | Some("off") => Ok(None),
        Some("azure") => Ok(Some(Targets::AZURE)),
        Some(text) => own(text).map(Some).ok_or_else(|| SettingsError::Throttle(text.to_owned())),
    }
}

fn positive(setting: &'static str, value: usize) -> Result<usize, SettingsError> {
    if value == 0 { Err(SettingsError::Zero { setting }) } else { Ok(value) }
}

#[cfg(test)]
mod tests;
