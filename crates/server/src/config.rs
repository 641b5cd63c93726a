//! What the operator chose: flags, over `PARTITA_…` variables, over a TOML file, over defaults.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;

use service::Targets;

use crate::account::{Account, Accounts};
use crate::bearer::{self, Bearer};
use crate::control;
use crate::listener::Bounds;
use crate::telemetry::LogFormat;
use crate::tls::CertificateFiles;

const LISTEN: &str = "127.0.0.1:10002";
const TLS_LISTEN: &str = "127.0.0.1:10003";
const DEV_CERT: &str = "./partita-dev-cert";
pub const DATA: &str = "./partita-data";
const REQUEST_LOGS: &str = "request-logs";
const LOG_LEVEL: &str = "info";
const MAX_CONNECTIONS: usize = 10_000;
const IDLE_SECONDS: u64 = 120;
const SHUTDOWN_SECONDS: u64 = 30;
const CACHE_MIB: usize = 256;
/// Request line and headers: room for a URL of 64 KiB.
const HEAD_KIB: usize = 128;
const REQUEST_MIB: usize = 256;
/// A body of the largest size, and its answer.
const REQUEST_MIB_MIN: usize = 16;

/// As they were said. Each also has a variable, `PARTITA_` and its name, and a key of its name in the file.
#[derive(Args, Clone, Debug, Default)]
pub struct Flags {
    /// Read settings from a TOML file; flags and variables win over it
    #[arg(long, value_name = "FILE", env = "PARTITA_CONFIG")]
    config: Option<PathBuf>,
    /// Address and port to listen on; port 0 takes a free one and prints it [default: 127.0.0.1:10002]
    #[arg(long, value_name = "ADDRESS", env = "PARTITA_LISTEN")]
    listen: Option<String>,
    /// Certificate chain for HTTPS, in PEM; with it, HTTPS is served at --tls-listen
    #[arg(long, value_name = "FILE", env = "PARTITA_TLS_CERT", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key, in PEM
    #[arg(long, value_name = "FILE", env = "PARTITA_TLS_KEY", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Serve HTTPS with a certificate of this machine's own, made in this directory at first use
    #[arg(long, value_name = "DIRECTORY", env = "PARTITA_DEV_CERT", num_args = 0..=1, default_missing_value = DEV_CERT, conflicts_with = "tls_cert")]
    dev_cert: Option<PathBuf>,
    /// Address and port to serve HTTPS on [default: 127.0.0.1:10003]
    #[arg(long, value_name = "ADDRESS", env = "PARTITA_TLS_LISTEN")]
    tls_listen: Option<String>,
    /// Serve HTTPS only
    #[arg(long, env = "PARTITA_NO_HTTP")]
    no_http: bool,
    /// Directory to keep data in; made if it is missing [default: ./partita-data]
    #[arg(long, value_name = "DIRECTORY", env = "PARTITA_DATA")]
    data: Option<PathBuf>,
    /// Directory for the request logs that accounts turn on in their service properties
    /// [default: request-logs in the data directory; none with --in-memory]
    #[arg(long, value_name = "DIRECTORY", env = "PARTITA_REQUEST_LOGS")]
    request_logs: Option<PathBuf>,
    /// Socket that `partita reload` speaks to
    /// [default: control in the data directory; none with --in-memory]
    #[arg(long, value_name = "SOCKET", env = "PARTITA_CONTROL")]
    control: Option<PathBuf>,
    /// Keep everything in memory and nothing after exit
    #[arg(long, env = "PARTITA_IN_MEMORY")]
    in_memory: bool,
    /// An account and its one or two keys, in Base64; may be given several times, or with `;` between
    /// [default: devstoreaccount1 with its well-known key]
    #[arg(
        long = "account",
        value_name = "NAME:KEY[:KEY2]",
        env = "PARTITA_ACCOUNTS",
        value_delimiter = ';',
        hide_env_values = true
    )]
    accounts: Vec<String>,
    /// Serve requests whatever their date; without it a signed request may be 15 minutes off
    #[arg(long, env = "PARTITA_SKIP_CLOCK_CHECK")]
    skip_clock_check: bool,
    /// Accept bearer tokens (JWTs) of this issuer, the `iss` that they carry; takes --bearer-jwks too
    #[arg(long, value_name = "TEXT", env = "PARTITA_BEARER_ISSUER")]
    bearer_issuer: Option<String>,
    /// The issuer's public keys, a JWKS for RS256 or ES256; SIGHUP reads it anew
    #[arg(long, value_name = "FILE", env = "PARTITA_BEARER_JWKS")]
    bearer_jwks: Option<PathBuf>,
    /// The `aud` that bearer tokens must carry; may be given several times, or with `;` between
    /// [default: Azure Storage's, and the account's address in the cloud]
    #[arg(long, value_name = "TEXT", env = "PARTITA_BEARER_AUDIENCE", value_delimiter = ';')]
    bearer_audience: Vec<String>,
    /// The tenant that clients without a token are sent to [default: common]
    #[arg(long, value_name = "ID", env = "PARTITA_BEARER_TENANT")]
    bearer_tenant: Option<String>,
    /// Accept bearer tokens over plain HTTP, where others can read and use them; for tests
    #[arg(long, env = "PARTITA_BEARER_OVER_HTTP")]
    bearer_over_http: bool,
    /// Hold callers to targets: azure (20000 entities a second an account, 2000 a partition), or ACCOUNT/PARTITION
    /// of your own; off serves all there is [default: off]
    #[arg(long, value_name = "TARGETS", env = "PARTITA_THROTTLE")]
    throttle: Option<String>,
    /// Memory for cached data and unwritten data, in MiB [default: 256]
    #[arg(long, value_name = "MIB", env = "PARTITA_CACHE_MIB")]
    cache_mib: Option<usize>,
    /// Memory for requests and answers under way, in MiB; beyond it callers are told to come back [default: 256]
    #[arg(long, value_name = "MIB", env = "PARTITA_REQUEST_MIB")]
    request_mib: Option<usize>,
    /// Connections served at once; a further one takes the place of an idle one, or waits [default: 10000]
    #[arg(long, value_name = "COUNT", env = "PARTITA_MAX_CONNECTIONS")]
    max_connections: Option<usize>,
    /// Close a connection that stands idle, or takes as long to send a request's headers [default: 120]
    #[arg(long, value_name = "SECONDS", env = "PARTITA_IDLE_SECONDS")]
    idle_seconds: Option<u64>,
    /// On shutdown, how long requests under way may take to finish [default: 30]
    #[arg(long, value_name = "SECONDS", env = "PARTITA_SHUTDOWN_SECONDS")]
    shutdown_seconds: Option<u64>,
    /// Open a store whose log was damaged, giving up the writes that it lost
    #[arg(long, env = "PARTITA_ACCEPT_LOSS")]
    accept_loss: bool,
    /// error, warn, info, debug or trace [default: info]
    #[arg(long, value_name = "LEVEL", env = "PARTITA_LOG_LEVEL")]
    log_level: Option<String>,
    /// text or json [default: text]
    #[arg(long, value_name = "FORMAT", env = "PARTITA_LOG_FORMAT")]
    log_format: Option<LogFormat>,
}

/// The TOML file: the same names, and accounts as tables of their own.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct File {
    listen: Option<String>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    dev_cert: Option<PathBuf>,
    tls_listen: Option<String>,
    no_http: bool,
    data: Option<PathBuf>,
    request_logs: Option<PathBuf>,
    control: Option<PathBuf>,
    in_memory: bool,
    account: Vec<FileAccount>,
    skip_clock_check: bool,
    bearer_issuer: Option<String>,
    bearer_jwks: Option<PathBuf>,
    bearer_audience: Vec<String>,
    bearer_tenant: Option<String>,
    bearer_over_http: bool,
    throttle: Option<String>,
    cache_mib: Option<usize>,
    request_mib: Option<usize>,
    max_connections: Option<usize>,
    idle_seconds: Option<u64>,
    shutdown_seconds: Option<u64>,
    accept_loss: bool,
    log_level: Option<String>,
    log_format: Option<LogFormat>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct FileAccount {
    name: String,
    key: Option<String>,
    /// A file that holds the key and nothing else.
    key_file: Option<PathBuf>,
    key2: Option<String>,
    key2_file: Option<PathBuf>,
}

/// What it comes to.
#[derive(Debug)]
pub struct Config {
    /// Where to serve plain HTTP, if at all.
    pub listen: Option<String>,
    pub tls: Option<Tls>,
    pub storage: Storage,
    /// Where request logs go, if anywhere.
    pub request_logs: Option<PathBuf>,
    /// The control socket, if there is one, and whether it was asked for.
    pub control: Option<(PathBuf, bool)>,
    pub accounts: Vec<Account>,
    /// No account was configured, so the published development account stands in.
    pub development: bool,
    pub check_clock: bool,
    pub bearer: Arc<Bearer>,
    pub throttle: Option<Targets>,
    pub bounds: Bounds,
    pub log_level: String,
    pub log_format: LogFormat,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Tls {
    pub listen: String,
    pub source: CertificateSource,
}

#[derive(Debug, PartialEq, Eq)]
pub enum CertificateSource {
    Files(CertificateFiles),
    /// Made here, in this directory.
    Development(PathBuf),
}

#[derive(Debug, PartialEq, Eq)]
pub enum Storage {
    Memory,
    Directory { path: PathBuf, cache_bytes: usize, accept_loss: bool },
}

impl Config {
    /// Errors are one sentence that names the setting.
    pub fn from_flags(flags: Flags) -> Result<Self, String> {
        let file = flags.config.as_deref().map(read_file).transpose()?.unwrap_or_default();
        let mut accounts = Vec::new();
        for text in flags.accounts.iter().filter(|text| !text.trim().is_empty()) {
            accounts.push(Account::parse(text)?);
        }
        if accounts.is_empty() {
            for FileAccount { name, key, key_file, key2, key2_file } in &file.account {
                let first = secret(name, "key", key.as_deref(), key_file.as_deref())?;
                let second = secret(name, "key2", key2.as_deref(), key2_file.as_deref())?;
                let keys: Vec<&str> = first.as_deref().into_iter().chain(second.as_deref()).collect();
                accounts.push(Account::new(name, &keys)?);
            }
        }
        let development = accounts.is_empty();
        if development {
            accounts.push(Account::development());
        }
        let cache_mib = positive("cache-mib", flags.cache_mib.or(file.cache_mib).unwrap_or(CACHE_MIB))?;
        let storage = if flags.in_memory || (file.in_memory && flags.data.is_none()) {
            Storage::Memory
        } else {
            Storage::Directory {
                path: flags.data.or(file.data).unwrap_or_else(|| DATA.into()),
                cache_bytes: cache_mib.saturating_mul(1024 * 1024),
                accept_loss: flags.accept_loss || file.accept_loss,
            }
        };
        let beside_data = |name: &str| match &storage {
            Storage::Memory => None,
            Storage::Directory { path, .. } => Some(path.join(name)),
        };
        let request_logs = flags.request_logs.or(file.request_logs).or_else(|| beside_data(REQUEST_LOGS));
        let control = flags.control.or(file.control).map(|path| (path, true));
        let control = control.or_else(|| beside_data(control::SOCKET).map(|path| (path, false)));
        let tls_listen = flags.tls_listen.or(file.tls_listen).unwrap_or_else(|| TLS_LISTEN.to_owned());
        let said_by_flags = flags.tls_cert.is_some() || flags.dev_cert.is_some();
        let (cert, key, dev_cert) = if said_by_flags {
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
            _ => return Err("HTTPS takes tls-cert and tls-key together, or dev-cert alone".to_owned()),
        };
        let tls = source.map(|source| Tls { listen: tls_listen, source });
        let no_http = flags.no_http || file.no_http;
        if no_http && tls.is_none() {
            return Err(
                "no-http leaves nothing to serve without tls-cert and tls-key, or dev-cert".to_owned()
            );
        }
        let bearer = Bearer::load(bearer::Settings {
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
            return Err(format!("request-mib is {request_mib}; the largest request takes {REQUEST_MIB_MIN}"));
        }
        let idle = flags.idle_seconds.or(file.idle_seconds).unwrap_or(IDLE_SECONDS);
        let shutdown = flags.shutdown_seconds.or(file.shutdown_seconds).unwrap_or(SHUTDOWN_SECONDS);
        Ok(Self {
            listen: (!no_http).then(|| flags.listen.or(file.listen).unwrap_or_else(|| LISTEN.to_owned())),
            tls,
            storage,
            request_logs,
            control,
            accounts,
            development,
            bearer: Arc::new(bearer),
            throttle: throttle(flags.throttle.or(file.throttle).as_deref())?,
            check_clock: !(flags.skip_clock_check || file.skip_clock_check),
            bounds: Bounds {
                connections: positive("max-connections", connections)?
                    .min(tokio::sync::Semaphore::MAX_PERMITS),
                idle: Duration::from_secs(positive("idle-seconds", idle as usize)? as u64),
                head_bytes: HEAD_KIB * 1024,
                memory_bytes: request_mib.saturating_mul(1024 * 1024),
                shutdown: Duration::from_secs(shutdown),
            },
            log_level: flags.log_level.or(file.log_level).unwrap_or_else(|| LOG_LEVEL.to_owned()),
            log_format: flags.log_format.or(file.log_format).unwrap_or_default(),
        })
    }

    pub fn accounts(&self) -> Accounts {
        Accounts::new(self.accounts.iter().cloned())
    }
}

/// A key that is written in the file, or in a file of its own.
fn secret(
    account: &str,
    name: &str,
    text: Option<&str>,
    path: Option<&Path>,
) -> Result<Option<String>, String> {
    match (text, path) {
        (Some(_), Some(_)) => {
            Err(format!("account {account} has both {name} and {name}-file; it takes one of them"))
        }
        (Some(text), None) => Ok(Some(text.to_owned())),
        (None, Some(path)) => match std::fs::read_to_string(path) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(error) => {
                Err(format!("can't read {name}-file {} of account {account}: {error}", path.display()))
            }
        },
        (None, None) => Ok(None),
    }
}

fn throttle(text: Option<&str>) -> Result<Option<Targets>, String> {
    let own = |text: &str| {
        let (account, partition) = text.split_once('/')?;
        let rate = |text: &str| text.trim().parse().ok().filter(|rate: &u32| *rate > 0);
        Some(Targets { account: rate(account)?, partition: rate(partition)? })
    };
    match text {
        None | Some("off") => Ok(None),
        Some("azure") => Ok(Some(Targets::AZURE)),
        Some(text) => own(text).map(Some).ok_or_else(|| {
            format!("throttle is {text:?}; it takes off, azure, or two rates such as 20000/2000")
        }),
    }
}

fn positive(name: &str, value: usize) -> Result<usize, String> {
    if value == 0 { Err(format!("{name} is 0; it takes 1 at least")) } else { Ok(value) }
}

fn read_file(path: &Path) -> Result<File, String> {
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("can't read {}: {error}", path.display()))?;
    toml::from_str(&text).map_err(|error| {
        // The message only: the parser would also quote the line, and lines hold keys.
        let at = error.span().map_or(String::new(), |span| format!(" at byte {}", span.start));
        format!("{} is not a valid configuration{at}: {}", path.display(), error.message())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(file: &str, flags: Flags) -> Result<Config, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("partita.toml");
        std::fs::write(&path, file).unwrap();
        Config::from_flags(Flags { config: Some(path), ..flags })
    }

    #[test]
    fn defaults_serve_the_development_account() {
        let config = Config::from_flags(Flags::default()).unwrap();
        assert!(config.development && config.check_clock);
        assert_eq!(config.listen.as_deref(), Some("127.0.0.1:10002"));
        assert_eq!(config.tls, None);
        assert_eq!(config.request_logs.as_deref(), Some(Path::new("./partita-data/request-logs")));
        assert_eq!(config.control, Some(("./partita-data/control".into(), false)));
        assert_eq!(config.accounts[0].name.as_str(), "devstoreaccount1");
        assert!(
            matches!(config.storage, Storage::Directory { path, .. } if path == Path::new("./partita-data"))
        );
    }

    #[test]
    fn every_key_of_the_file_is_read_and_flags_win() {
        let file = "listen = '0.0.0.0:1'\ndata = '/d'\nrequest-logs = '/l'\ncontrol = '/s'\nskip-clock-check = true\ncache-mib = 7\nmax-connections = 8\n\
                    idle-seconds = 9\nshutdown-seconds = 10\naccept-loss = true\nlog-level = 'debug'\nlog-format = 'json'\n\
                    [[account]]\nname = 'one'\nkey = 'AAAA'\nkey2 = 'BBBB'\n[[account]]\nname = 'two'\nkey = 'CCCC'\n";
        let from_file = config(file, Flags::default()).unwrap();
        assert_eq!(from_file.listen.as_deref(), Some("0.0.0.0:1"));
        let expected = Storage::Directory { path: "/d".into(), cache_bytes: 7 << 20, accept_loss: true };
        assert_eq!(from_file.storage, expected);
        assert_eq!(from_file.accounts.iter().map(|a| a.keys.len()).collect::<Vec<_>>(), [2, 1]);
        assert!(!from_file.check_clock);
        assert_eq!(from_file.request_logs.as_deref(), Some(Path::new("/l")));
        assert_eq!(from_file.control, Some(("/s".into(), true)));
        assert_eq!(
            (
                from_file.bounds.connections,
                from_file.bounds.idle.as_secs(),
                from_file.bounds.shutdown.as_secs()
            ),
            (8, 9, 10)
        );
        assert_eq!((from_file.log_level.as_str(), from_file.log_format), ("debug", LogFormat::Json));
        let flags = Flags {
            listen: Some("h:2".into()),
            accounts: vec!["abc:AAAA".into()],
            in_memory: true,
            ..Flags::default()
        };
        let from_flags = config(file, flags).unwrap();
        assert_eq!((from_flags.listen.as_deref(), from_flags.accounts.len()), (Some("h:2"), 1));
        assert_eq!(from_flags.storage, Storage::Memory);
    }

    #[test]
    fn bearer_tokens_take_an_issuer_and_its_keys() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let from = |file: String| config(&file, Flags::default()).map(|config| config.bearer);
        let half = "A".repeat(43);
        let key = format!(r#"{{"keys":[{{"kty":"EC","crv":"P-256","kid":"a","x":"{half}","y":"{half}"}}]}}"#);
        let (good, none) = (write("good", &key), write("none", r#"{"keys":[]}"#));
        let on = from(format!(
            "bearer-issuer = 'i'\nbearer-jwks = {good:?}\nbearer-audience = ['x', 'y']\nbearer-tenant = 't'\nbearer-over-http = true"
        ));
        let on = on.unwrap();
        assert!(on.trust.is_some());
        assert!(on.challenge().contains("login.microsoftonline.com/t/oauth2"));
        let off = Config::from_flags(Flags::default()).unwrap().bearer;
        assert!(off.trust.is_none());
        assert!(off.challenge().contains("login.microsoftonline.com/common/oauth2"));
        for (file, expected) in [
            ("bearer-issuer = 'i'".to_owned(), "bearer-issuer and bearer-jwks together"),
            (format!("bearer-jwks = {good:?}"), "bearer-issuer and bearer-jwks together"),
            (format!("bearer-issuer = 'i'\nbearer-jwks = {none:?}"), "holds no key"),
            ("bearer-issuer = 'i'\nbearer-jwks = '/nowhere'".to_owned(), "can't read bearer-jwks /nowhere"),
            ("bearer-tenant = 'a b'".to_owned(), "bearer-tenant is \"a b\""),
        ] {
            let error = from(file).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn targets_are_off_azures_or_ones_own() {
        let of = |text: &str| {
            config(&format!("throttle = '{text}'"), Flags::default()).map(|config| config.throttle)
        };
        assert_eq!(Config::from_flags(Flags::default()).unwrap().throttle, None);
        assert_eq!(of("off"), Ok(None));
        assert_eq!(of("azure"), Ok(Some(Targets { account: 20_000, partition: 2_000 })));
        assert_eq!(of("50/7"), Ok(Some(Targets { account: 50, partition: 7 })));
        for text in ["", "fast", "5", "0/1", "1/0", "-1/1", "1/2/3"] {
            assert!(of(text).unwrap_err().contains("20000/2000"), "{text}");
        }
    }

    #[test]
    fn https_comes_with_a_certificate() {
        let from = |file: &str| config(file, Flags::default());
        let files = CertificateSource::Files(CertificateFiles { certificate: "/c".into(), key: "/k".into() });
        let both = from("tls-cert = '/c'\ntls-key = '/k'\ntls-listen = 'h:1'").unwrap();
        assert_eq!(
            (both.listen.is_some(), both.tls),
            (true, Some(Tls { listen: "h:1".into(), source: files }))
        );
        let alone = from("dev-cert = '/d'\nno-http = true").unwrap();
        let source = CertificateSource::Development("/d".into());
        assert_eq!((alone.listen, alone.tls), (None, Some(Tls { listen: TLS_LISTEN.into(), source })));
        assert!(from("tls-cert = '/c'").unwrap_err().contains("tls-key"));
        assert!(from("no-http = true").unwrap_err().contains("nothing to serve"));
    }

    #[test]
    fn mistakes_are_named_without_showing_secrets() {
        let unknown = config("lisen = 'x'", Flags::default()).unwrap_err();
        assert!(unknown.contains("lisen") && unknown.contains("partita.toml"), "{unknown}");
        let both =
            config("[[account]]\nname = 'abc'\nkey = 'AAAA'\nkey-file = '/k'", Flags::default()).unwrap_err();
        assert_eq!(both, "account abc has both key and key-file; it takes one of them");
        let bad = config("[[account]]\nname = 'abc'\nkey = 'secret!'", Flags::default()).unwrap_err();
        assert_eq!(bad, "key 1 of account abc is not Base64");
        assert_eq!(
            config("cache-mib = 0", Flags::default()).unwrap_err(),
            "cache-mib is 0; it takes 1 at least"
        );
    }
}
