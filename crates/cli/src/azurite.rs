//! Called as `azurite`, the program takes Azurite's flags and variables, so that scripts and containers that start Azurite
//! need no change. They become flags of `partita serve`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::{ArgAction, CommandFactory as _, FromArgMatches as _, Parser};
use front::ServiceKind;
use thiserror::Error;

/// Where the data is, in the folder that --location names. Azurite's own files beside it are left alone.
const DATA: &str = "partita-data";
/// Accounts with their keys: `name:key[:key];name:key`.
pub const ACCOUNTS: &str = "AZURITE_ACCOUNTS";
/// A database for Azurite's blob metadata.
const DATABASE: &str = "AZURITE_DB";
/// Whether containers can be public; without it they can, as those of Azurite.
const PUBLIC_ACCESS: &str = "PARTITA_BLOB_PUBLIC_ACCESS";

/// The names under which the program is Azurite, and the service that it serves alone.
const NAMES: [(&str, Option<ServiceKind>); 4] = [
    ("azurite", None),
    ("azurite-blob", Some(ServiceKind::Blob)),
    ("azurite-queue", Some(ServiceKind::Queue)),
    ("azurite-table", Some(ServiceKind::Table)),
];

const HELP: &str = "\
Flags without effect here: --loose, --skipApiVersionCheck, --disableProductStyleUrl, --disableTelemetry and
--extentMemoryLimit. Every variable of `partita serve` (PARTITA_...) works here, too. To take over the data of Azurite:
partita import --azurite FOLDER";

const OAUTH_REMARK: &str = "--oauth has no effect: Azurite accepts tokens that nobody has signed. \
     `partita serve --bearer-issuer TEXT --bearer-jwks FILE` accepts signed ones";

/// Partita in place of Azurite: the same flags, ports and start-up lines
#[derive(Parser, Debug)]
#[command(name = "azurite", version, disable_version_flag = true, rename_all = "camelCase", after_help = HELP)]
struct AzuriteFlags {
    /// Address of blobs
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    blob_host: String,
    /// Port of blobs
    #[arg(long, value_name = "PORT", default_value_t = 10000)]
    blob_port: u16,
    /// Seconds after which an idle connection is closed; the longest of the three counts
    #[arg(long, value_name = "SECONDS")]
    blob_keep_alive_timeout: Option<u64>,
    /// Address of queues
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    queue_host: String,
    /// Port of queues
    #[arg(long, value_name = "PORT", default_value_t = 10001)]
    queue_port: u16,
    #[arg(long, value_name = "SECONDS", hide = true)]
    queue_keep_alive_timeout: Option<u64>,
    /// Address of tables
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    table_host: String,
    /// Port of tables
    #[arg(long, value_name = "PORT", default_value_t = 10002)]
    table_port: u16,
    #[arg(long, value_name = "SECONDS", hide = true)]
    table_keep_alive_timeout: Option<u64>,
    /// The folder in which the data is kept, in partita-data [default: the current one]
    #[arg(short, long, value_name = "FOLDER")]
    location: Option<PathBuf>,
    /// Keep the data in memory only; it is gone after exit
    #[arg(long, conflicts_with = "location")]
    in_memory_persistence: bool,
    /// Log only warnings and errors
    #[arg(short, long)]
    silent: bool,
    /// Log everything, to this file
    #[arg(short, long, value_name = "FILE")]
    debug: Option<PathBuf>,
    /// Serve HTTPS instead of HTTP, with this certificate chain in PEM
    #[arg(long, value_name = "FILE")]
    cert: Option<PathBuf>,
    /// The certificate's private key in PEM
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    #[arg(long, value_name = "PASSWORD", hide = true)]
    pwd: Option<String>,
    /// Azurite's `basic` accepts tokens that nobody has signed; here bearer tokens stay off
    #[arg(long, value_name = "LEVEL")]
    oauth: Option<String>,
    #[arg(short = 'L', long, hide = true)]
    loose: bool,
    #[arg(long, hide = true)]
    skip_api_version_check: bool,
    #[arg(long, hide = true)]
    disable_product_style_url: bool,
    #[arg(long, hide = true)]
    disable_telemetry: bool,
    #[arg(long, value_name = "MIB", hide = true)]
    extent_memory_limit: Option<f64>,
    /// Print the version
    #[arg(short, short_alias = 'V', long, action = ArgAction::Version)]
    version: Option<bool>,
    /// `help` and `version` are commands of Azurite; it ignores all other words.
    #[arg(hide = true)]
    words: Vec<String>,
}

/// Reads a flag as Azurite does: one may be given more than once, and the first counts; a switch may have a value.
fn as_azurite_reads(argument: clap::Arg) -> clap::Arg {
    match argument.get_action() {
        ArgAction::Set => argument.action(ArgAction::Append),
        ArgAction::SetTrue => argument
            .action(ArgAction::Append)
            .num_args(0..=1)
            .require_equals(true)
            .value_parser(clap::value_parser!(bool))
            .value_name("true|false")
            .hide_possible_values(true)
            .hide_default_value(true)
            .default_value("false")
            .default_missing_value("true"),
        _ => argument,
    }
}

impl AzuriteFlags {
    fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut command = Self::command().mut_args(as_azurite_reads);
        let flags = Self::from_arg_matches(&command.try_get_matches_from_mut(arguments)?)?;
        match flags.words.first().map(String::as_str) {
            Some("help") => Err(clap::Error::raw(clap::error::ErrorKind::DisplayHelp, command.render_help())),
            Some("version") => {
                Err(clap::Error::raw(clap::error::ErrorKind::DisplayVersion, command.render_version()))
            }
            _ => Ok(flags),
        }
    }
}

/// Why the program can't be this Azurite.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum AzuriteError {
    #[error(
        "--pwd is for a .pfx file, which is not read here; convert it with `openssl pkcs12 -in FILE.pfx -nodes -out cert.pem` \
         and name the result with --cert and --key"
    )]
    Pfx,
    #[error("--cert needs --key, the certificate's private key in PEM")]
    NoKey,
    #[error(
        "{DATABASE} names a database for Azurite; unset it, or use `partita serve --store` for a cluster"
    )]
    Database,
    #[error("{ACCOUNTS} is set but names no account; it takes NAME:KEY[:KEY2], separated by `;`")]
    NoAccounts,
}

/// What `partita` is called with, in Azurite's place, and what is to be said before it starts.
#[derive(Debug, PartialEq, Eq)]
pub struct InPlaceOfAzurite {
    pub arguments: Vec<OsString>,
    pub remarks: Vec<&'static str>,
}

/// `None` if the program was not called as Azurite.
pub fn service_of(program: &OsStr) -> Option<Option<ServiceKind>> {
    let name = Path::new(program).file_stem()?;
    NAMES.iter().find(|(known, _)| name == *known).map(|(_, service)| *service)
}

/// Reads Azurite's flags, the first of which is the program's name. Exits with help or an error, as `partita` does.
pub fn in_place_of_azurite(
    service: Option<ServiceKind>,
    arguments: impl IntoIterator<Item = OsString>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<InPlaceOfAzurite, AzuriteError> {
    translate(service, AzuriteFlags::read(arguments).unwrap_or_else(|error| error.exit()), variable)
}

fn translate(
    alone: Option<ServiceKind>,
    flags: AzuriteFlags,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<InPlaceOfAzurite, AzuriteError> {
    // Azurite reads a certificate with a key as PEM, even beside a password.
    match (&flags.cert, &flags.key, &flags.pwd) {
        (Some(_), None, Some(_)) => return Err(AzuriteError::Pfx),
        (Some(_), None, None) => return Err(AzuriteError::NoKey),
        _ => {}
    }
    if variable(DATABASE).is_some_and(|text| !text.is_empty()) {
        return Err(AzuriteError::Database);
    }
    let mut arguments: Vec<OsString> = vec!["partita".into(), "serve".into(), "--azurite-lines".into()];
    let mut add = |flag: &str, value: &OsStr| {
        arguments.push(flag.into());
        arguments.push(value.into());
    };
    let is_served = |service| alone.is_none_or(|alone| alone == service);
    let is_secure = flags.cert.is_some();
    let services = [
        (ServiceKind::Table, "--listen", "--tls-listen", &flags.table_host, flags.table_port),
        (ServiceKind::Queue, "--queue-listen", "--queue-tls-listen", &flags.queue_host, flags.queue_port),
        (ServiceKind::Blob, "--blob-listen", "--blob-tls-listen", &flags.blob_host, flags.blob_port),
    ];
    for (service, plain, secure, host, port) in services {
        let address = match (is_served(service), service) {
            (true, _) => format!("{}:{port}", bracketed(host)),
            // Tables are always served: here where nobody else looks.
            (false, ServiceKind::Table) => "127.0.0.1:0".to_owned(),
            (false, _) => "off".to_owned(),
        };
        add(if is_secure { secure } else { plain }, address.as_ref());
    }
    if let Some((cert, key)) = flags.cert.as_ref().zip(flags.key.as_ref()) {
        add("--tls-cert", cert.as_os_str());
        add("--tls-key", key.as_os_str());
    }
    if let Some(file) = &flags.debug {
        // Azurite creates the folder of its log. If that fails, the log says why.
        let _ = file.parent().map(std::fs::create_dir_all);
        add("--log-file", file.as_os_str());
        add("--log-level", OsStr::new("debug"));
    } else if flags.silent {
        add("--log-level", OsStr::new("warn"));
    }
    let timeouts =
        [flags.blob_keep_alive_timeout, flags.queue_keep_alive_timeout, flags.table_keep_alive_timeout];
    if let Some(seconds) = timeouts.into_iter().flatten().max() {
        add("--idle-seconds", seconds.to_string().as_ref());
    }
    match variable(ACCOUNTS) {
        Some(accounts) if accounts.split(';').all(|account| account.trim().is_empty()) => {
            return Err(AzuriteError::NoAccounts);
        }
        Some(accounts) => add("--account", accounts.as_ref()),
        // In a container Azurite listens on all addresses, with the development account.
        None => arguments.push("--development".into()),
    }
    if is_secure {
        arguments.push("--no-http".into());
    }
    if variable(PUBLIC_ACCESS).is_none() {
        arguments.extend(["--blob-public-access".into(), "on".into()]);
    }
    if flags.in_memory_persistence {
        arguments.push("--in-memory".into());
    } else {
        let data = flags.location.unwrap_or_default().join(DATA);
        arguments.extend(["--data".into(), data.into_os_string()]);
    }
    let remarks = [
        (flags.oauth.is_some(), OAUTH_REMARK),
        (
            flags.key.is_some() && !is_secure,
            "--key has no effect without --cert; this is HTTP, as with Azurite",
        ),
        (!flags.words.is_empty(), "words that belong to no flag have no effect, as with Azurite"),
    ];
    let remarks = remarks.into_iter().filter_map(|(applies, remark)| applies.then_some(remark)).collect();
    Ok(InPlaceOfAzurite { arguments, remarks })
}

/// An IPv6 address gets brackets before a port.
fn bracketed(host: &str) -> String {
    match host.contains(':') && !host.starts_with('[') {
        true => format!("[{host}]"),
        false => host.to_owned(),
    }
}

#[cfg(test)]
mod tests;
