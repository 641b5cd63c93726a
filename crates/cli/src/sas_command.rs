//! `partita sas`: makes shared access signatures, and says of one what it grants and why it would be refused.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use clap::{Args, Subcommand};
use model::DateTime;
use thiserror::Error;
use wire::access_policies;
use wire::signing::sas::{AccountSas, Malformed, Sas, TableSas, Terms};
use wire::url::Query;

use front::ServiceKind;
use front::account::{Account, AccountError};
use front::sas::{self, Caller};
use table_http::access;

/// The version tokens are made in: understood by every server and SDK in use.
const VERSION: &str = "2019-02-02";

#[derive(Subcommand, Debug)]
pub enum SasCommand {
    /// Create a token for the entities of one table
    Table(TableFlags),
    /// Create a token for the tables of an account
    Account(AccountFlags),
    /// Print what a token grants, and why it would be refused
    Explain(ExplainFlags),
}

#[derive(Args, Debug)]
pub struct Common {
    /// The account and the key to sign with [default: the development account]
    #[arg(long, value_name = "NAME:KEY", env = "PARTITA_SAS_ACCOUNT", hide_env_values = true)]
    account: Option<String>,
    /// When the token becomes valid, such as 2030-01-01T00:00:00Z
    #[arg(long, value_name = "TIME", default_value = "")]
    starts: String,
    /// When the token expires: a time, or a duration from now such as 90m, 8h, 7d
    #[arg(long, value_name = "TIME", default_value = "1h")]
    expires: String,
    /// IPv4 address, or range FIRST-LAST, that may use the token
    #[arg(long, value_name = "ADDRESS", default_value = "")]
    ip: String,
    /// https, or https,http
    #[arg(long, value_name = "PROTOCOL", default_value = "")]
    protocol: String,
}

#[derive(Args, Debug)]
pub struct TableFlags {
    /// The table
    #[arg(long)]
    table: String,
    /// Letters of raud: read, add, update, delete
    #[arg(long, default_value = "")]
    permissions: String,
    /// A stored access policy that provides the terms which the token does not have
    #[arg(long, value_name = "ID", default_value = "")]
    policy: String,
    /// First partition key of the range; with --from-row, also the first row key
    #[arg(long, value_name = "KEY", default_value = "")]
    from: String,
    #[arg(long, value_name = "KEY", default_value = "", requires = "from")]
    from_row: String,
    /// Last partition key of the range; with --to-row, also the last row key
    #[arg(long, value_name = "KEY", default_value = "")]
    to: String,
    #[arg(long, value_name = "KEY", default_value = "", requires = "to")]
    to_row: String,
    #[command(flatten)]
    common: Common,
}

#[derive(Args, Debug)]
pub struct AccountFlags {
    /// Letters of rwdlacu: read, write, delete, list, add, create, update
    #[arg(long)]
    permissions: String,
    /// Letters of sco: service, tables, entities
    #[arg(long, default_value = "sco")]
    resource_types: String,
    #[command(flatten)]
    common: Common,
}

#[derive(Args, Debug)]
pub struct ExplainFlags {
    /// A URL with a token, or the token alone
    url: String,
    /// The account that should have signed it, with its key or keys [default: the development account]
    #[arg(long, value_name = "NAME:KEY[:KEY2]", env = "PARTITA_SAS_ACCOUNT", hide_env_values = true)]
    account: Option<String>,
}

/// Why there is no token, or nothing to say of one.
#[derive(Debug, Error)]
pub enum SasError {
    #[error(transparent)]
    Account(#[from] AccountError),
    #[error("the account has no key; write NAME:KEY")]
    NoKey,
    #[error("permissions are {0:?}; use letters of raud, in that order")]
    Permissions(String),
    #[error("a token grants nothing without --permissions or a --policy")]
    GrantsNothing,
    #[error("--starts is {0:?}; use a time such as 2030-01-01T00:00:00Z")]
    Starts(String),
    #[error("--expires is {0:?}; use a time such as 2030-01-01T00:00:00Z, or 90m, 8h, 7d")]
    Expires(String),
    #[error("the token is not UTF-8 once decoded; copy it again, whole")]
    NotText,
    #[error("this is not a valid token: {0}")]
    Malformed(#[from] Malformed),
    #[error("there is no token here: a token has a sig")]
    NoToken,
    #[error("this is a token for a queue or for blobs; only those for tables and accounts are explained")]
    OtherService,
}

pub fn run(command: &SasCommand, now: DateTime) -> Result<String, SasError> {
    match command {
        SasCommand::Table(flags) => {
            if !access_policies::in_order(&flags.permissions) {
                return Err(SasError::Permissions(flags.permissions.clone()));
            }
            if flags.permissions.is_empty() && flags.policy.is_empty() {
                return Err(SasError::GrantsNothing);
            }
            let mut terms = terms(&flags.common, &flags.permissions, now)?;
            if !flags.policy.is_empty() && flags.common.expires == "1h" {
                // Most policies say when; both may not.
                terms.expiry = String::new();
            }
            let sas = Sas::Table(TableSas {
                terms,
                table: flags.table.clone(),
                identifier: flags.policy.clone(),
                start_partition: flags.from.clone(),
                start_row: flags.from_row.clone(),
                end_partition: flags.to.clone(),
                end_row: flags.to_row.clone(),
            });
            signed(&sas, flags.common.account.as_deref())
        }
        SasCommand::Account(flags) => {
            let sas = Sas::Account(AccountSas {
                terms: terms(&flags.common, &flags.permissions, now)?,
                services: "t".to_owned(),
                resource_types: flags.resource_types.clone(),
                encryption_scope: String::new(),
            });
            signed(&sas, flags.common.account.as_deref())
        }
        SasCommand::Explain(flags) => explain(flags, now),
    }
}

fn account(text: Option<&str>) -> Result<Account, SasError> {
    Ok(text.map_or_else(|| Ok(Account::development()), Account::parse)?)
}

fn signed(sas: &Sas, account_text: Option<&str>) -> Result<String, SasError> {
    let account = account(account_text)?;
    // `Account` has one key at least.
    let key = account.keys.first().ok_or(SasError::NoKey)?;
    Ok(sas.to_query(&sas.sign(account.name.as_str(), key)))
}

fn terms(common: &Common, permissions: &str, now: DateTime) -> Result<Terms, SasError> {
    if !common.starts.is_empty() && DateTime::parse(&common.starts).is_none() {
        return Err(SasError::Starts(common.starts.clone()));
    }
    Ok(Terms {
        version: VERSION.to_owned(),
        permissions: permissions.to_owned(),
        start: common.starts.clone(),
        expiry: expiry(&common.expires, now)?,
        ip: common.ip.clone(),
        protocol: common.protocol.clone(),
    })
}

fn expiry(text: &str, now: DateTime) -> Result<String, SasError> {
    if DateTime::parse(text).is_some() {
        return Ok(text.to_owned());
    }
    let bad = || SasError::Expires(text.to_owned());
    let unit = text.chars().last().ok_or_else(bad)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return Err(bad()),
    };
    let count: u32 = text[..text.len() - 1].parse().map_err(|_| bad())?;
    Ok(now.plus(Duration::from_secs(u64::from(count) * seconds)).to_seconds_string())
}

fn explain(flags: &ExplainFlags, now: DateTime) -> Result<String, SasError> {
    let account = account(flags.account.as_deref())?;
    let text = flags.url.split_once('?').map_or(flags.url.as_str(), |(_, query)| query);
    let query = Query::parse(text).ok_or(SasError::NotText)?;
    let (sas, signature) = Sas::read(&query)?.ok_or(SasError::NoToken)?;
    let mut out = String::new();
    let mut line = |name: &str, value: &str| {
        // Writing to a String can't fail.
        let _ = writeln!(out, "{name:<12} {value}");
    };
    let terms = sas.terms();
    match &sas {
        Sas::Table(table) => {
            line(
                "grants",
                &format!("{} on entities of table {}", words(&terms.permissions, TABLE_WORDS), table.table),
            );
            let bound = |partition: &str, row: &str| match (partition, row) {
                ("", _) => "any".to_owned(),
                (partition, "") => format!("partition {partition:?}"),
                (partition, row) => format!("partition {partition:?}, row {row:?}"),
            };
            let from = bound(&table.start_partition, &table.start_row);
            line("keys", &format!("from {from} to {}", bound(&table.end_partition, &table.end_row)));
            if !table.identifier.is_empty() {
                line(
                    "policy",
                    &format!(
                        "{:?} of the table provides the terms that the token does not have",
                        table.identifier
                    ),
                );
            }
        }
        Sas::Account(grant) => {
            let on = words(&grant.resource_types, RESOURCE_WORDS);
            line(
                "grants",
                &format!("{} on {on} of account {}", words(&terms.permissions, ACCOUNT_WORDS), account.name),
            );
        }
        Sas::Queue(_) | Sas::Blob(_) => return Err(SasError::OtherService),
    }
    let or = |text: &str, other: &str| if text.is_empty() { other.to_owned() } else { text.to_owned() };
    line(
        "valid",
        &format!("from {} until {}", or(&terms.start, "ever"), or(&terms.expiry, "its policy says")),
    );
    line(
        "callers",
        &format!("from {} by {}", or(&terms.ip, "any address"), or(&terms.protocol, "https,http")),
    );
    let string = sas.string_to_sign(account.name.as_str());
    match account.keys.iter().position(|key| key.verifies(&string, &signature)) {
        Some(index) => line("signature", &format!("right, by key {} of account {}", index + 1, account.name)),
        None => line("signature", &format!("WRONG for account {}; it should sign {string:?}", account.name)),
    }
    // A policy is the server's to know; without it only the rest can be judged.
    let named = matches!(&sas, Sas::Table(table) if !table.identifier.is_empty());
    if !named {
        let caller = Caller { ip: IpAddr::V4(Ipv4Addr::LOCALHOST), https: flags.url.starts_with("https://") };
        match sas::admit(sas, None, now, caller, ServiceKind::Table).and_then(access::grant) {
            Ok(_) => line("from here", "it would be accepted now"),
            Err(denied) => {
                line(
                    "from here",
                    &format!("REFUSED with {}: {}", denied.refusal.code(ServiceKind::Table), denied.why),
                );
            }
        }
    }
    Ok(out.trim_end().to_owned())
}

type Words = &'static [(char, &'static str)];

const TABLE_WORDS: Words = &[('r', "read"), ('a', "add"), ('u', "update"), ('d', "delete")];
const ACCOUNT_WORDS: Words = &[
    ('r', "read"),
    ('w', "write"),
    ('d', "delete"),
    ('l', "list"),
    ('a', "add"),
    ('c', "create"),
    ('u', "update"),
];
const RESOURCE_WORDS: Words = &[('s', "the service"), ('c', "tables"), ('o', "entities")];

fn words(letters: &str, words: Words) -> String {
    let known = |letter| words.iter().find(|(known, _)| *known == letter).map(|(_, word)| *word);
    let list: Vec<&str> = letters.chars().filter_map(known).collect();
    if list.is_empty() { "no permissions of its own".to_owned() } else { list.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser, Debug)]
    struct Cli {
        #[command(subcommand)]
        command: SasCommand,
    }

    fn run_with(arguments: &str) -> Result<String, String> {
        let cli = Cli::try_parse_from(std::iter::once("sas").chain(arguments.split(' ')))
            .map_err(|e| e.to_string())?;
        run(&cli.command, DateTime::parse("2025-01-01T12:00:00Z").unwrap()).map_err(|e| e.to_string())
    }

    #[test]
    fn tokens_are_the_specifications() {
        assert_eq!(
            run_with("table --table MyTable --permissions raud --expires 2030-01-01T00:00:00Z").unwrap(),
            "sv=2019-02-02&tn=MyTable&sp=raud&se=2030-01-01T00%3A00%3A00Z&sig=VH1kJ2dMcGJPJnFMefVZ3HMd1fedSci%2F031kWIgJz0w%3D"
        );
        assert_eq!(
            run_with("account --permissions rwdlacu --expires 2030-01-01T00:00:00Z").unwrap(),
            "sv=2019-02-02&ss=t&srt=sco&sp=rwdlacu&se=2030-01-01T00%3A00%3A00Z&sig=Sf6ztOvy1ckXMaWcI5xoOPCUz6txhdW%2BqY5V7MM9DMY%3D"
        );
        assert!(
            run_with("table --table T --permissions r --expires 90m")
                .unwrap()
                .contains("se=2025-01-01T13%3A30%3A00Z")
        );
    }

    #[test]
    fn mistakes_are_named() {
        assert!(run_with("table --table T --permissions dr").unwrap_err().contains("raud, in that order"));
        assert!(run_with("table --table T").unwrap_err().contains("--permissions or a --policy"));
        assert!(
            run_with("table --table T --permissions r --expires soon").unwrap_err().contains("90m, 8h, 7d")
        );
        assert!(run_with("explain https://h/t?$top=5").unwrap_err().contains("no token here"));
        assert!(run_with("explain sv=2019-02-02&sig=x").unwrap_err().contains("tn is missing"));
    }

    #[test]
    fn explanations_say_what_and_why() {
        let token =
            run_with("table --table Books --permissions ra --expires 1h --from A --to B --to-row 7").unwrap();
        let told =
            run_with(&format!("explain http://127.0.0.1:10002/devstoreaccount1/Books?{token}")).unwrap();
        for part in [
            "read, add on entities of table Books",
            "from partition \"A\" to partition \"B\", row \"7\"",
            "right, by key 1 of account devstoreaccount1",
            "it would be accepted now",
        ] {
            assert!(told.contains(part), "{part}:\n{told}");
        }
        let told = run_with(&format!("explain {}", token.replace("sp=ra", "sp=raud"))).unwrap();
        assert!(told.contains("WRONG for account devstoreaccount1; it should sign \"raud\\n"), "{told}");
        let expired = run_with("table --table Books --permissions r --expires 2024-12-31T23:59:59Z").unwrap();
        let told = run_with(&format!("explain {expired}")).unwrap();
        assert!(told.contains("REFUSED with AuthenticationFailed: the token expired"), "{told}");
        let https = run_with("account --permissions r --protocol https").unwrap();
        assert!(run_with(&format!("explain https://h/?{https}")).unwrap().contains("accepted now"));
        assert!(
            run_with(&format!("explain http://h/?{https}"))
                .unwrap()
                .contains("AuthorizationProtocolMismatch")
        );
    }
}
