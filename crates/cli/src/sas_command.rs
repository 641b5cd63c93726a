//! `partita sas`: creates shared access signatures, and explains them.

use admin::sas::{self, EXPIRES, KeyRangeText, Resource, SasError, TokenRequest};
use clap::{Args, Subcommand};
use front::account::Account;
use model::DateTime;

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
    #[arg(long, value_name = "TIME", default_value = EXPIRES)]
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

pub fn run(command: &SasCommand, now: DateTime) -> Result<String, SasError> {
    let (request, common) = match command {
        SasCommand::Table(flags) => {
            let range = KeyRangeText {
                from: flags.from.clone(),
                from_row: flags.from_row.clone(),
                to: flags.to.clone(),
                to_row: flags.to_row.clone(),
            };
            let resource = Resource::Table { table: flags.table.clone(), range };
            (flags.common.request(resource, &flags.permissions, &flags.policy), &flags.common)
        }
        SasCommand::Queue(flags) => {
            let resource = Resource::Queue { queue: flags.queue.clone() };
            (flags.common.request(resource, &flags.permissions, &flags.policy), &flags.common)
        }
        SasCommand::Account(flags) => {
            let (services, resource_types) = (flags.services.clone(), flags.resource_types.clone());
            let resource = Resource::Account { services, resource_types };
            (flags.common.request(resource, &flags.permissions, ""), &flags.common)
        }
        SasCommand::Explain(flags) => {
            return sas::explain(&flags.url, &account(flags.account.as_deref())?, now);
        }
    };
    sas::sign(&request.token(now)?, &account(common.account.as_deref())?)
}

fn account(text: Option<&str>) -> Result<Account, SasError> {
    Ok(text.map_or_else(|| Ok(Account::development()), Account::parse)?)
}

impl Common {
    fn request(&self, resource: Resource, permissions: &str, policy: &str) -> TokenRequest {
        // The default. Most policies have an expiry, and only one of token and policy may.
        let expires = if self.expires == EXPIRES { "" } else { &self.expires };
        TokenRequest {
            resource,
            permissions: permissions.to_owned(),
            starts: self.starts.clone(),
            expires: expires.to_owned(),
            ip: self.ip.clone(),
            protocol: self.protocol.clone(),
            policy: policy.to_owned(),
        }
    }
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
        assert!(run_with("queue --queue jobs").unwrap_err().contains("permissions or a policy"));
        let name = run_with("queue --queue My_Jobs --permissions r").unwrap_err();
        assert!(name.contains("\"My_Jobs\"") && name.contains("single dashes"), "{name}");
        for services in ["x", "tables"] {
            let wrong = run_with(&format!("account --permissions r --services {services}")).unwrap_err();
            assert!(wrong.contains(services) && wrong.contains("letters of bqtf"), "{wrong}");
        }
        assert!(run_with("table --table T").unwrap_err().contains("permissions or a policy"));
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
