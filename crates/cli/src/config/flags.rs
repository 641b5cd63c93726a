//! The flags and variables of `partita serve`, before defaults and checks.

use std::path::PathBuf;

use clap::{ArgMatches, Args};

use super::shown::GivenSettings;
use super::storage::StoreAddress;
use super::{DEV_CERT, Switch};
use crate::logging::LogFormat;

/// Each flag also has a variable, `PARTITA_` and its name, and a key of its name in the file.
#[derive(Args, Clone, Debug, Default)]
pub struct Flags {
    /// Read settings from a TOML file; flags and variables override it
    #[arg(long, value_name = "FILE", env = "PARTITA_CONFIG")]
    pub(super) config: Option<PathBuf>,
    /// Address and port to listen on; with port 0 the server picks a free port and prints it [default: 127.0.0.1:10002]
    #[arg(long, value_name = "ADDRESS", env = "PARTITA_LISTEN")]
    pub(super) listen: Option<String>,
    /// Address and port of queues, or off; with port 0 the server picks a free port and prints it
    /// [default: 127.0.0.1:10001, or a free port if --listen has port 0]
    #[arg(long, value_name = "ADDRESS", env = "PARTITA_QUEUE_LISTEN")]
    pub(super) queue_listen: Option<String>,
    /// Address and port of blobs, or off; with port 0 the server picks a free port and prints it
    /// [default: 127.0.0.1:10000, or a free port if --listen has port 0]
    #[arg(long, value_name = "ADDRESS", env = "PARTITA_BLOB_LISTEN")]
    pub(super) blob_listen: Option<String>,
    /// Whether containers that are set to public access can be read without credentials [default: off]
    #[arg(long, value_name = "on|off", env = "PARTITA_BLOB_PUBLIC_ACCESS")]
    pub(super) blob_public_access: Option<Switch>,
    /// Certificate chain for HTTPS at --tls-listen, in PEM
    #[arg(long, value_name = "FILE", env = "PARTITA_TLS_CERT", requires = "tls_key")]
    pub(super) tls_cert: Option<PathBuf>,
    /// The certificate's private key, in PEM
    #[arg(long, value_name = "FILE", env = "PARTITA_TLS_KEY", requires = "tls_cert")]
    pub(super) tls_key: Option<PathBuf>,
    /// Serve HTTPS with a development certificate, created in this directory at first use
    #[arg(long, value_name = "DIRECTORY", env = "PARTITA_DEV_CERT", num_args = 0..=1, default_missing_value = DEV_CERT, conflicts_with = "tls_cert")]
    pub(super) dev_cert: Option<PathBuf>,
    /// Address and port to serve HTTPS on [default: 127.0.0.1:10003]
    #[arg(long, value_name = "ADDRESS", env = "PARTITA_TLS_LISTEN")]
    pub(super) tls_listen: Option<String>,
    /// Address and port to serve queues with HTTPS on, or off
    /// [default: 127.0.0.1:10005, or a free port if --tls-listen has port 0; off with --queue-listen off]
    #[arg(long, value_name = "ADDRESS", env = "PARTITA_QUEUE_TLS_LISTEN")]
    pub(super) queue_tls_listen: Option<String>,
    /// Address and port to serve blobs with HTTPS on, or off
    /// [default: 127.0.0.1:10006, or a free port if --tls-listen has port 0; off with --blob-listen off]
    #[arg(long, value_name = "ADDRESS", env = "PARTITA_BLOB_TLS_LISTEN")]
    pub(super) blob_tls_listen: Option<String>,
    /// Serve HTTPS only
    #[arg(long, env = "PARTITA_NO_HTTP")]
    pub(super) no_http: bool,
    /// Data directory; created if missing [default: ./partita-data]
    #[arg(long, value_name = "DIRECTORY", env = "PARTITA_DATA")]
    pub(super) data: Option<PathBuf>,
    /// Keep data in a Cassandra cluster that any number of servers share:
    /// cassandra://[USER:PASSWORD@]HOST[:PORT][,HOST…]/KEYSPACE[?NAME=VALUE&…]; `partita store init` creates the keyspace
    #[arg(long, value_name = "ADDRESS", env = "PARTITA_STORE", hide_env_values = true)]
    pub(super) store: Option<StoreAddress>,
    /// How long to wait at start for a cluster that does not answer [default: 60]
    #[arg(long, value_name = "SECONDS", env = "PARTITA_STORE_WAIT_SECONDS")]
    pub(super) store_wait_seconds: Option<u64>,
    /// Socket for commands to the running server, such as `partita reload`
    /// [default: control in the data directory; none with --in-memory or --store]
    #[arg(long, value_name = "SOCKET", env = "PARTITA_CONTROL")]
    pub(super) control: Option<PathBuf>,
    /// Keep the data in memory only; it is gone after exit
    #[arg(long, env = "PARTITA_IN_MEMORY")]
    pub(super) in_memory: bool,
    /// Address and port of the console, the metrics and the administration, or off. An address that other machines can
    /// reach needs HTTPS (--tls-cert or --dev-cert) and --admin-token-file
    /// [default: 127.0.0.1:10004, or a free port if --listen has port 0]
    #[arg(long, value_name = "ADDRESS", env = "PARTITA_ADMIN")]
    pub(super) admin: Option<String>,
    /// A file with the administration's token; who sends it may see and do everything there. Without it, everyone on this
    /// machine may
    #[arg(long, value_name = "FILE", env = "PARTITA_ADMIN_TOKEN_FILE")]
    pub(super) admin_token_file: Option<PathBuf>,
    /// The token itself, for containers that get secrets as variables
    #[arg(
        long,
        value_name = "TOKEN",
        env = "PARTITA_ADMIN_TOKEN",
        hide = true,
        hide_env_values = true,
        conflicts_with = "admin_token_file"
    )]
    pub(super) admin_token: Option<String>,
    /// A name under which browsers reach --admin, beside addresses and localhost; repeat the flag or separate names with `;`
    #[arg(long, value_name = "NAME", env = "PARTITA_ADMIN_HOST", value_delimiter = ';')]
    pub(super) admin_host: Vec<String>,
    /// An account and its one or two keys, in Base64; repeat the flag or separate accounts with `;`
    /// [default: devstoreaccount1 with its well-known key]
    #[arg(
        long = "account",
        value_name = "NAME:KEY[:KEY2]",
        env = "PARTITA_ACCOUNTS",
        value_delimiter = ';',
        hide_env_values = true
    )]
    pub(super) accounts: Vec<String>,
    /// Accept signed requests with any date; otherwise they may be 15 minutes off
    #[arg(long, env = "PARTITA_SKIP_CLOCK_CHECK")]
    pub(super) skip_clock_check: bool,
    /// Serve the development account, whose key is public, also on addresses that other machines can reach. On loopback
    /// addresses it is served by default if no account is configured
    #[arg(long, env = "PARTITA_DEVELOPMENT")]
    pub(super) development: bool,
    /// Accept bearer tokens (JWTs) with this issuer (`iss`); needs --bearer-jwks
    #[arg(long, value_name = "TEXT", env = "PARTITA_BEARER_ISSUER")]
    pub(super) bearer_issuer: Option<String>,
    /// The issuer's public keys, a JWKS for RS256 or ES256; SIGHUP reloads it
    #[arg(long, value_name = "FILE", env = "PARTITA_BEARER_JWKS")]
    pub(super) bearer_jwks: Option<PathBuf>,
    /// Accepted audience (`aud`) of bearer tokens; repeat the flag or separate audiences with `;`
    /// [default: Azure Storage's, and the account's address in the cloud]
    #[arg(long, value_name = "TEXT", env = "PARTITA_BEARER_AUDIENCE", value_delimiter = ';')]
    pub(super) bearer_audience: Vec<String>,
    /// The tenant named in the challenge to clients without a token [default: common]
    #[arg(long, value_name = "ID", env = "PARTITA_BEARER_TENANT")]
    pub(super) bearer_tenant: Option<String>,
    /// Accept bearer tokens over plain HTTP, where others can steal them; for tests
    #[arg(long, env = "PARTITA_BEARER_OVER_HTTP")]
    pub(super) bearer_over_http: bool,
    /// Limit callers to azure (20000 entities a second for an account, 2000 for a partition), or to your own
    /// ACCOUNT/PARTITION; off means no limit [default: off]
    #[arg(long, value_name = "TARGETS", env = "PARTITA_THROTTLE")]
    pub(super) throttle: Option<String>,
    /// Answer requests below /ACCOUNT/$partita and headers x-partita-…: on, or off for Azure's answers to them [default: on]
    #[arg(long, value_name = "ON|OFF", env = "PARTITA_EXTENSIONS")]
    pub(super) extensions: Option<Switch>,
    /// Refuse a query that looks at more entities than this for one page (400 ScanTooLarge), to find scans in tests
    #[arg(long, value_name = "COUNT", env = "PARTITA_MAX_EXAMINED")]
    pub(super) max_examined: Option<u64>,
    /// Memory for caches and for data not yet flushed, in MiB [default: a quarter of the memory, 64 to 4096]
    #[arg(long, value_name = "MIB", env = "PARTITA_CACHE_MIB")]
    pub(super) cache_mib: Option<usize>,
    /// Memory for requests and answers in flight, in MiB; above it, requests get 503 [default: 256]
    #[arg(long, value_name = "MIB", env = "PARTITA_REQUEST_MIB")]
    pub(super) request_mib: Option<usize>,
    /// Maximum number of connections; a further one replaces an idle one, or waits [default: 10000]
    #[arg(long, value_name = "COUNT", env = "PARTITA_MAX_CONNECTIONS")]
    pub(super) max_connections: Option<usize>,
    /// Timeout for idle connections and for slow request heads [default: 120]
    #[arg(long, value_name = "SECONDS", env = "PARTITA_IDLE_SECONDS")]
    pub(super) idle_seconds: Option<u64>,
    /// How long shutdown waits for requests in flight [default: 30]
    #[arg(long, value_name = "SECONDS", env = "PARTITA_SHUTDOWN_SECONDS")]
    pub(super) shutdown_seconds: Option<u64>,
    /// Log queries that take longer than this, with the shape of their filter but no values [default: none]
    #[arg(long, value_name = "MS", env = "PARTITA_SLOW_QUERY_MS")]
    pub(super) slow_query_ms: Option<u64>,
    /// Log queries that read more rows than this to answer one page [default: none]
    #[arg(long, value_name = "COUNT", env = "PARTITA_SCAN_LOG_ROWS")]
    pub(super) scan_log_rows: Option<u64>,
    /// Send a trace span of each request to this OpenTelemetry collector, with OTLP over HTTP: http://127.0.0.1:4318
    #[arg(long, value_name = "URL", env = "PARTITA_OTLP_ENDPOINT")]
    pub(super) otlp_endpoint: Option<String>,
    /// The part of requests that begin a trace, from 0 to 1, if their client has not begun one [default: 1]
    #[arg(long, value_name = "PART", env = "PARTITA_OTLP_SAMPLE")]
    pub(super) otlp_sample: Option<f64>,
    /// Open a store whose log is damaged, without the commits that are lost
    #[arg(long, env = "PARTITA_ACCEPT_LOSS")]
    pub(super) accept_loss: bool,
    /// Serve a data directory that `partita migrate` has moved away, or has not completed yet
    #[arg(long, env = "PARTITA_ACCEPT_MIGRATION")]
    pub(super) accept_migration: bool,
    /// error, warn, info, debug or trace [default: info]
    #[arg(long, value_name = "LEVEL", env = "PARTITA_LOG_LEVEL")]
    pub(super) log_level: Option<String>,
    /// Write the log to the end of this file instead of standard error
    #[arg(long, value_name = "FILE", env = "PARTITA_LOG_FILE")]
    pub(super) log_file: Option<PathBuf>,
    /// text or json [default: text]
    #[arg(long, value_name = "FORMAT", env = "PARTITA_LOG_FORMAT")]
    pub(super) log_format: Option<LogFormat>,
    /// Print what Azurite prints when it starts and stops, because others wait for it
    #[arg(long, hide = true)]
    pub(super) azurite_lines: bool,
    /// Which of these were given, and how.
    #[arg(skip)]
    pub(super) given: GivenSettings,
}

impl Flags {
    /// Remembers where each value comes from. If a flag says where to keep data, it wins over variables that name another place: a container image may have set
    /// one.
    pub fn let_flags_win(&mut self, matches: Option<&ArgMatches>) {
        use clap::parser::ValueSource;
        let Some(matches) = matches else { return };
        self.given = GivenSettings::of(matches);
        let is_from = |name: &str, source| matches.value_source(name) == Some(source);
        let places = ["store", "data", "in_memory"];
        if !places.iter().any(|name| is_from(name, ValueSource::CommandLine)) {
            return;
        }
        if is_from("store", ValueSource::EnvVariable) {
            self.store = None;
        }
        if is_from("data", ValueSource::EnvVariable) {
            self.data = None;
        }
        if is_from("in_memory", ValueSource::EnvVariable) {
            self.in_memory = false;
        }
    }
}
