//! `partita sas`: creates shared access signatures, and explains them.

mod explain;

use std::time::Duration;

use clap::{Args, Subcommand};
use model::{AccountName, DateTime};
use queue_model::QueueName;
use thiserror::Error;
use wire::signing::sas::{AccountSas, QueueSas, Sas, SasFormatError, TableSas, Terms};

use front::ServiceKind;
use front::account::{Account, AccountError};

/// The version tokens are made in: understood by every server and SDK in use.
const VERSION: &str = "2019-02-02";

#[derive(Subcommand, Debug)]
pub enum SasCommand {
    /// Create a token for the entities of one table
    Table(TableFlags),
    /// Create a token for the messages of one queue
    Queue(QueueFlags),
    /// Create a token for the tables or queues of an account
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
pub struct QueueFlags {
    /// The queue. Its token does not name it: append the token to the queue's URL
    #[arg(long)]
    queue: String,
    /// Letters of raup: read (peek, count), add (put), update, process (get, delete)
    #[arg(long, default_value = "")]
    permissions: String,
    /// A stored access policy that provides the terms which the token does not have
    #[arg(long, value_name = "ID", default_value = "")]
    policy: String,
    #[command(flatten)]
    common: Common,
}

#[derive(Args, Debug)]
pub struct AccountFlags {
    /// Letters of rwdlacup: read, write, delete, list, add, create, update, process
    #[arg(long)]
    permissions: String,
    /// Letters of the services: t (tables), q (queues), b (blobs), f (files)
    #[arg(long, value_name = "LETTERS", default_value = "t")]
    services: String,
    /// Letters of sco: service, tables or queues, entities or messages
    #[arg(long, default_value = "sco")]
    resource_types: String,
    #[command(flatten)]
    common: Common,
}

#[derive(Args, Debug)]
pub struct ExplainFlags {
    /// A URL with a token; for tables and accounts, the token alone is enough
    url: String,
    /// The account that should have signed it, with its key or keys [default: the development account]
    #[arg(long, value_name = "NAME:KEY[:KEY2]", env = "PARTITA_SAS_ACCOUNT", hide_env_values = true)]
    account: Option<String>,
}

/// Why a token can't be created or explained.
#[derive(Debug, Error)]
pub enum SasError {
    #[error(transparent)]
    Account(#[from] AccountError),
    #[error("the account has no key; write NAME:KEY")]
    NoKey,
    #[error("permissions are {given:?}; use letters of {}, in that order", .service.permissions())]
    Permissions { service: ServiceKind, given: String },
    #[error("--services is {0:?}; use letters of bqtf, such as qt for queues and tables")]
    Services(String),
    #[error(
        "--queue is {name:?}, which can't be the name of a queue ({code}); it takes 3 to 63 letters a to z, digits and \
         single dashes"
    )]
    QueueName { name: String, code: &'static str },
    #[error("a token grants nothing without --permissions or a --policy")]
    GrantsNothing,
    #[error("--starts is {0:?}; use a time such as 2030-01-01T00:00:00Z")]
    Starts(String),
    #[error("--expires is {0:?}; use a time such as 2030-01-01T00:00:00Z, or 90m, 8h, 7d")]
    Expires(String),
    #[error("the token is not UTF-8 once decoded; copy it again, whole")]
    NotText,
    #[error("this is not a valid token: {0}")]
    Malformed(#[from] SasFormatError),
    #[error("there is no token here: a token has a sig")]
    NoToken,
    #[error("a token for a queue or for blobs does not name them; give the whole URL")]
    NoUrl,
    #[error("the URL is not one of account {account}; name its account with --account")]
    OtherAccount { account: AccountName },
}

pub fn run(command: &SasCommand, now: DateTime) -> Result<String, SasError> {
    match command {
        SasCommand::Table(flags) => {
            let sas = Sas::Table(TableSas {
                terms: granting(ServiceKind::Table, &flags.common, &flags.permissions, &flags.policy, now)?,
                table: flags.table.clone(),
                identifier: flags.policy.clone(),
                start_partition: flags.from.clone(),
                start_row: flags.from_row.clone(),
                end_partition: flags.to.clone(),
                end_row: flags.to_row.clone(),
            });
            signed(&sas, flags.common.account.as_deref())
        }
        SasCommand::Queue(flags) => {
            let name = QueueName::parse(&flags.queue);
            name.map_err(|refusal| SasError::QueueName { name: flags.queue.clone(), code: refusal.code() })?;
            let sas = Sas::Queue(QueueSas {
                terms: granting(ServiceKind::Queue, &flags.common, &flags.permissions, &flags.policy, now)?,
                queue: flags.queue.clone(),
                identifier: flags.policy.clone(),
                delegation: None,
            });
            signed(&sas, flags.common.account.as_deref())
        }
        SasCommand::Account(flags) => {
            if flags.services.is_empty() || !flags.services.chars().all(|letter| "bqtf".contains(letter)) {
                return Err(SasError::Services(flags.services.clone()));
            }
            let sas = Sas::Account(AccountSas {
                terms: terms(&flags.common, &flags.permissions, now)?,
                services: flags.services.clone(),
                resource_types: flags.resource_types.clone(),
                encryption_scope: String::new(),
            });
            signed(&sas, flags.common.account.as_deref())
        }
        SasCommand::Explain(flags) => explain::explain(&flags.url, &account(flags.account.as_deref())?, now),
    }
}

fn account(text: Option<&str>) -> Result<Account, SasError> {
    Ok(text.map_or_else(|| Ok(Account::development()), Account::parse)?)
}

fn signed(sas: &Sas, account_text: Option<&str>) -> Result<String, SasError> {
    let account = account(account_text)?;
    // An `Account` has at least one key.
    let key = account.keys.first().ok_or(SasError::NoKey)?;
    Ok(sas.to_query(&sas.sign(account.name.as_str(), key)))
}

/// The terms of a token for one table or queue.
fn granting(
    service: ServiceKind,
    common: &Common,
    permissions: &str,
    policy: &str,
    now: DateTime,
) -> Result<Terms, SasError> {
    if !protocol::access_policies::in_order(service, permissions) {
        return Err(SasError::Permissions { service, given: permissions.to_owned() });
    }
    if permissions.is_empty() && policy.is_empty() {
        return Err(SasError::GrantsNothing);
    }
    let mut terms = terms(common, permissions, now)?;
    if !policy.is_empty() && common.expires == "1h" {
        // Most policies have an expiry, and only one of token and policy may.
        terms.expiry = String::new();
    }
    Ok(terms)
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
        // Signed by another program; the specification (queue-operations 7.3) has the same token in another version.
        let queue = "--expires 2099-01-01T00:00:00Z --queue myqueue";
        assert_eq!(
            run_with(&format!("queue {queue} --permissions raup")).unwrap(),
            "sv=2019-02-02&sp=raup&se=2099-01-01T00%3A00%3A00Z&sig=hRtBpnylCpHq8AqvuFlfpLvfkQvXRhzO2W805Kw5uq0%3D"
        );
        assert!(run_with("account --permissions r --services qt").unwrap().contains("&ss=qt&"));
        assert!(
            run_with("table --table T --permissions r --expires 90m")
                .unwrap()
                .contains("se=2025-01-01T13%3A30%3A00Z")
        );
    }

    #[test]
    fn mistakes_are_named() {
        assert!(run_with("table --table T --permissions dr").unwrap_err().contains("raud, in that order"));
        assert!(run_with("queue --queue jobs --permissions rd").unwrap_err().contains("raup, in that order"));
        assert!(run_with("queue --queue jobs").unwrap_err().contains("--permissions or a --policy"));
        let name = run_with("queue --queue My_Jobs --permissions r").unwrap_err();
        assert!(name.contains("\"My_Jobs\"") && name.contains("single dashes"), "{name}");
        for services in ["x", "tables"] {
            let wrong = run_with(&format!("account --permissions r --services {services}")).unwrap_err();
            assert!(wrong.contains(services) && wrong.contains("letters of bqtf"), "{wrong}");
        }
        assert!(run_with("table --table T").unwrap_err().contains("--permissions or a --policy"));
        assert!(
            run_with("table --table T --permissions r --expires soon").unwrap_err().contains("90m, 8h, 7d")
        );
    }

    #[test]
    fn a_token_that_was_created_is_explained() {
        let check = |create: &str, address: &str, expected: &str| {
            let token = run_with(create).unwrap();
            let told = run_with(&format!("explain {address}{token}")).unwrap();
            assert!(told.contains("right, by key 1 of account devstoreaccount1"), "{told}");
            assert!(told.contains(expected), "{told}");
        };
        check("table --table Books --permissions r", "", "accepted now");
        let jobs = "http://127.0.0.1:10001/devstoreaccount1/jobs?";
        check("queue --queue jobs --permissions ap", jobs, "add, process on messages of queue jobs");
        check("queue --queue jobs --permissions ap", jobs, "accepted now");
        check("queue --queue jobs --policy worker", jobs, "it knows the terms of policy \"worker\"");
        check("account --permissions r --services q", jobs, "read on the queue service, queues, messages");
        check("account --permissions r --services q", jobs, "accepted now");
        check("account --permissions r", jobs, "AuthorizationServiceMismatch");
        check("account --permissions r --protocol https", "https://h/?", "accepted now");
        check("account --permissions r --protocol https", "http://h/?", "AuthorizationProtocolMismatch");
        check("table --table Books --permissions r --expires 2024-12-31T23:59:59Z", "", "the token expired");
    }
}
