//! Called as `azurite`, the program takes Azurite's flags and variables, so that scripts and containers that start Azurite
//! need no change. They become flags of `partita serve`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::{CommandFactory as _, FromArgMatches as _, Parser};
use front::ServiceKind;
use thiserror::Error;

/// Where the data is, in the folder that --location names. Azurite's own files beside it are left alone.
const DATA: &str = "partita-data";
/// Accounts with their keys: `name:key[:key];name:key`.
pub const ACCOUNTS: &str = "AZURITE_ACCOUNTS";
/// A database for Azurite's blob metadata.
const DATABASE: &str = "AZURITE_DB";

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

/// Partita in place of Azurite: the same flags, ports and start-up lines
#[derive(Parser, Debug)]
#[command(name = "azurite", version, rename_all = "camelCase", after_help = HELP)]
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
    #[arg(short, long, value_name = "FOLDER", conflicts_with = "in_memory_persistence")]
    location: Option<PathBuf>,
    /// Keep the data in memory only; it is gone after exit
    #[arg(long)]
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
    #[arg(long, value_name = "FILE", requires = "cert")]
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
    let matches = AzuriteFlags::command().get_matches_from(arguments);
    let flags = AzuriteFlags::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    translate(service, flags, variable)
}

fn translate(
    alone: Option<ServiceKind>,
    flags: AzuriteFlags,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<InPlaceOfAzurite, AzuriteError> {
    if flags.pwd.is_some() {
        return Err(AzuriteError::Pfx);
    }
    if flags.cert.is_some() && flags.key.is_none() {
        return Err(AzuriteError::NoKey);
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
    if flags.in_memory_persistence {
        arguments.push("--in-memory".into());
    } else {
        let data = flags.location.unwrap_or_default().join(DATA);
        arguments.extend(["--data".into(), data.into_os_string()]);
    }
    let oauth = "--oauth has no effect: Azurite accepts tokens that nobody has signed. `partita serve --bearer-issuer TEXT \
                 --bearer-jwks FILE` accepts signed ones";
    Ok(InPlaceOfAzurite { arguments, remarks: flags.oauth.is_some().then_some(oauth).into_iter().collect() })
}

/// An IPv6 address gets brackets before a port.
fn bracketed(host: &str) -> String {
    match host.contains(':') && !host.starts_with('[') {
        true => format!("[{host}]"),
        false => host.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(program: &str, arguments: &str, accounts: Option<&str>) -> Result<String, AzuriteError> {
        let service = service_of(OsStr::new(program)).expect("one of Azurite's names");
        let words = std::iter::once("azurite").chain(arguments.split_whitespace());
        let flags = AzuriteFlags::try_parse_from(words).expect("Azurite's flags");
        let variable = |name: &str| accounts.filter(|_| name == ACCOUNTS).map(str::to_owned);
        let arguments = translate(service, flags, variable)?.arguments;
        let words: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
        Ok(words.join(" "))
    }

    #[test]
    fn only_azurites_names_are_azurite() {
        for (name, is_azurite) in [
            ("azurite", true),
            ("/usr/bin/azurite", true),
            ("./azurite-blob", true),
            ("azurite.exe", true),
            ("partita", false),
            ("azurite-file", false),
            ("", false),
        ] {
            assert_eq!(service_of(OsStr::new(name)).is_some(), is_azurite, "{name}");
        }
    }

    #[test]
    fn flags_of_azurite_become_flags_of_serve() {
        let all = "--listen 127.0.0.1:10002 --queue-listen 127.0.0.1:10001 --blob-listen 127.0.0.1:10000";
        let open = "--listen 0.0.0.0:10002 --queue-listen 0.0.0.0:10001 --blob-listen 0.0.0.0:10000";
        let cases = [
            ("azurite", "", None, format!("{all} --development --data partita-data")),
            (
                "azurite",
                "-l /data --blobHost 0.0.0.0 --queueHost 0.0.0.0 --tableHost 0.0.0.0",
                None,
                format!("{open} --development --data /data/partita-data"),
            ),
            ("azurite", "--inMemoryPersistence --loose", None, format!("{all} --development --in-memory")),
            (
                "azurite",
                "--silent --skipApiVersionCheck --disableProductStyleUrl --disableTelemetry",
                None,
                format!("{all} --log-level warn --development --data partita-data"),
            ),
            (
                "azurite",
                "-s -d debug.log --blobKeepAliveTimeout 7 --tableKeepAliveTimeout 9",
                Some("shop:a2V5;other:a2V5"),
                format!(
                    "{all} --log-file debug.log --log-level debug --idle-seconds 9 --account shop:a2V5;other:a2V5 \
                     --data partita-data"
                ),
            ),
            (
                "azurite",
                "--cert c.pem --key k.pem --tableHost ::1",
                None,
                "--tls-listen [::1]:10002 --queue-tls-listen 127.0.0.1:10001 --blob-tls-listen 127.0.0.1:10000 \
                 --tls-cert c.pem --tls-key k.pem --development --no-http --data partita-data"
                    .to_owned(),
            ),
            (
                "azurite-blob",
                "--blobHost 0.0.0.0 --blobPort 0",
                None,
                "--listen 127.0.0.1:0 --queue-listen off --blob-listen 0.0.0.0:0 --development --data partita-data"
                    .to_owned(),
            ),
            (
                "azurite-queue",
                "",
                None,
                "--listen 127.0.0.1:0 --queue-listen 127.0.0.1:10001 --blob-listen off --development \
                 --data partita-data"
                    .to_owned(),
            ),
            (
                "azurite-table",
                "",
                None,
                "--listen 127.0.0.1:10002 --queue-listen off --blob-listen off --development --data partita-data"
                    .to_owned(),
            ),
        ];
        for (program, arguments, accounts, expected) in cases {
            let expected = format!("partita serve --azurite-lines {expected}");
            assert_eq!(asked(program, arguments, accounts), Ok(expected), "{program} {arguments}");
        }
    }

    #[test]
    fn what_can_not_be_kept_is_refused() {
        assert_eq!(asked("azurite", "--cert c.pfx --pwd x", None), Err(AzuriteError::Pfx));
        assert_eq!(asked("azurite", "--cert c.pem", None), Err(AzuriteError::NoKey));
        for empty in ["", " ; "] {
            assert_eq!(asked("azurite", "", Some(empty)), Err(AzuriteError::NoAccounts));
        }
        let flags = AzuriteFlags::try_parse_from(["azurite"]).expect("no flags");
        let database = |name: &str| (name == DATABASE).then(|| "mysql://host".to_owned());
        assert_eq!(translate(None, flags, database), Err(AzuriteError::Database));
        assert!(AzuriteFlags::try_parse_from(["azurite", "--inMemoryPersistence", "-l", "x"]).is_err());
        assert!(AzuriteFlags::try_parse_from(["azurite", "--key", "x"]).is_err());
    }

    #[test]
    fn unsigned_tokens_are_not_accepted_silently() {
        let flags = AzuriteFlags::try_parse_from(["azurite", "--oauth", "basic"]).expect("Azurite's flags");
        let translated = translate(None, flags, |_| None).expect("translated");
        assert_eq!(translated.remarks.len(), 1);
    }
}
