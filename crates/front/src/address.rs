//! The account and the service that a request is addressed to, and the base of the links in its answer.

use common::{AccountName, Refusal};
use protocol::names::SECONDARY_SUFFIX;

use crate::account::{Account, Accounts};
use common::ServiceKind;

/// The address of an account at one service, as the request names it.
#[derive(Clone, Debug)]
pub struct Site {
    pub account: AccountName,
    pub service: ServiceKind,
    /// The address of the read-only secondary.
    pub secondary: bool,
    /// Scheme, host and, in path style, the account as the request has it; ends with a slash.
    pub base: String,
    /// The first path segment in path style. Addresses inside a batch begin with it too.
    segment: Option<String>,
}

/// A site, its account, and the rest of the path.
#[derive(Debug)]
pub struct Address<'a> {
    pub site: Site,
    pub account: &'a Account,
    pub path: &'a str,
}

impl<'a> Address<'a> {
    /// `account.table.anything`, and `account.anything` of a known account, are host style; all else is path style.
    /// `services`: the service of the port, and all services of this server. A host that names none of them means the
    /// service of the port.
    pub fn find(
        scheme: &str,
        host: &str,
        path: &'a str,
        accounts: &'a Accounts,
        services: (ServiceKind, &[ServiceKind]),
    ) -> Result<Self, Refusal> {
        let (of_port, served) = services;
        if host.is_empty() {
            return Err(Refusal::HostMissing);
        }
        let host = without_default_port(scheme, host);
        if let Some((name, named)) = host_account(host, accounts, served) {
            let (account, secondary) = find(name, accounts)?;
            let base = [scheme, "://", host, "/"].concat();
            let service = named.unwrap_or(of_port);
            let site = Site { account: account.name.clone(), service, secondary, base, segment: None };
            return Ok(Self { site, account, path });
        }
        let rest = path.strip_prefix('/').unwrap_or(path);
        let (segment, behind) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        if segment.is_empty() {
            return Err(Refusal::UriInvalid);
        }
        let (account, secondary) = find(segment, accounts)?;
        let base = [scheme, "://", host, "/", segment, "/"].concat();
        let segment = Some(segment.to_owned());
        let site = Site { account: account.name.clone(), service: of_port, secondary, base, segment };
        Ok(Self { site, account, path: behind })
    }
}

impl Site {
    /// The path after the account, of an address inside a batch: a URL, an absolute path or a relative path.
    pub fn inner_path<'p>(&self, target: &'p str) -> &'p str {
        let path = match target.split_once("://") {
            Some((scheme, rest)) if is_scheme(scheme) => rest.find('/').map_or("", |slash| &rest[slash..]),
            // It is in a key or in the query.
            _ => target,
        };
        let behind = self.segment.as_deref().and_then(|segment| {
            let rest = path.strip_prefix('/')?.strip_prefix(segment)?;
            (rest.is_empty() || rest.starts_with('/')).then_some(rest)
        });
        behind.unwrap_or(path)
    }
}

fn is_scheme(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.bytes().all(is_part)
}

fn find<'a>(name: &str, accounts: &'a Accounts) -> Result<(&'a Account, bool), Refusal> {
    if let Some(account) = accounts.get(name) {
        return Ok((account, false));
    }
    let primary = name.strip_suffix(SECONDARY_SUFFIX).and_then(|name| accounts.get(name));
    primary.map(|account| (account, true)).ok_or(Refusal::AccountNotFound)
}

/// In host style: the label that names the account, and the service that the next label names.
fn host_account<'h>(
    host: &'h str,
    accounts: &Accounts,
    served: &[ServiceKind],
) -> Option<(&'h str, Option<ServiceKind>)> {
    let name = host.split(':').next().unwrap_or_default();
    let is_address = host.starts_with('[') || name.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if is_address {
        return None;
    }
    let (label, rest) = name.split_once('.')?;
    let second = rest.split('.').next().unwrap_or_default();
    let service = served.iter().copied().find(|service| service.name() == second);
    (service.is_some() || find(label, accounts).is_ok()).then_some((label, service))
}

pub fn without_default_port<'h>(scheme: &str, host: &'h str) -> &'h str {
    let port = if scheme == "https" { ":443" } else { ":80" };
    host.strip_suffix(port).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(host: &str, path: &str, expected: &str) {
        let accounts = Accounts::new([
            Account::development(),
            Account::parse("acct1:AAAAAAAAAAAAAAAAAAAAAA==").unwrap(),
        ]);
        let shown =
            match Address::find("http", host, path, &accounts, (ServiceKind::Table, &ServiceKind::ALL)) {
                Ok(Address { site, path: rest, .. }) => {
                    let secondary = if site.secondary { " secondary" } else { "" };
                    let service = match site.service {
                        ServiceKind::Table => String::new(),
                        other => format!(" {}", other.name()),
                    };
                    format!("{}{service}{secondary} {} {rest}", site.account, site.base)
                }
                Err(refusal) => refusal.code(ServiceKind::Table).to_owned(),
            };
        assert_eq!(shown, expected, "{host} {path}");
    }

    #[test]
    fn both_styles_and_the_secondary_are_found() {
        check(
            "127.0.0.1:10002",
            "/devstoreaccount1/Tables",
            "devstoreaccount1 http://127.0.0.1:10002/devstoreaccount1/ /Tables",
        );
        check(
            "localhost:10002",
            "/devstoreaccount1",
            "devstoreaccount1 http://localhost:10002/devstoreaccount1/ ",
        );
        check("[::1]:10002", "/acct1/t", "acct1 http://[::1]:10002/acct1/ /t");
        check(
            "127.0.0.1",
            "/devstoreaccount1-secondary/Tables",
            "devstoreaccount1 secondary http://127.0.0.1/devstoreaccount1-secondary/ /Tables",
        );
        check("acct1.table.local:80", "/Tables", "acct1 http://acct1.table.local/ /Tables");
        check(
            "acct1.table.core.windows.net",
            "/devstoreaccount1",
            "acct1 http://acct1.table.core.windows.net/ /devstoreaccount1",
        );
        check(
            "acct1-secondary.table.local",
            "/Tables",
            "acct1 secondary http://acct1-secondary.table.local/ /Tables",
        );
        check("acct1.localhost:10002", "/t", "acct1 http://acct1.localhost:10002/ /t");
        check("acct1.queue.local", "/q", "acct1 queue http://acct1.queue.local/ /q");
        check(
            "acct1-secondary.blob.core.windows.net",
            "/c",
            "acct1 blob secondary http://acct1-secondary.blob.core.windows.net/ /c",
        );
        check("db.example.com", "/acct1/t", "acct1 http://db.example.com/acct1/ /t");
        check("host.docker.internal:10002", "/acct1/t", "acct1 http://host.docker.internal:10002/acct1/ /t");
    }

    #[test]
    fn unknown_accounts_are_refused() {
        check("127.0.0.1", "/nobody/Tables", "ResourceNotFound");
        check("nobody.table.local", "/Tables", "ResourceNotFound");
        check("127.0.0.1", "/", "InvalidUri");
        check("", "/acct1", "HostInformationNotPresent");
    }

    #[test]
    fn inner_addresses_lose_their_account() {
        let accounts = Accounts::new([
            Account::development(),
            Account::parse("acct1:AAAAAAAAAAAAAAAAAAAAAA==").unwrap(),
        ]);
        let find = |host, path| {
            Address::find("http", host, path, &accounts, (ServiceKind::Table, &ServiceKind::ALL))
                .unwrap()
                .site
        };
        let path_style = find("127.0.0.1:1", "/devstoreaccount1/$batch");
        let host_style = find("acct1.table.x", "/$batch");
        for (site, target, expected) in [
            (&path_style, "http://127.0.0.1:1/devstoreaccount1/t(1)", "/t(1)"),
            (&path_style, "/devstoreaccount1/t", "/t"),
            (&path_style, "/t", "/t"),
            (&path_style, "t", "t"),
            (&path_style, "/devstoreaccount11", "/devstoreaccount11"),
            (&host_style, "HTTPS://ACCT1.table.x/t", "/t"),
            (&host_style, "/acct1/t", "/acct1/t"),
            (&host_style, "http://x", ""),
            (
                &path_style,
                "/devstoreaccount1/t()?$filter=U eq 'http://a/b'",
                "/t()?$filter=U eq 'http://a/b'",
            ),
            (&path_style, "t(PartitionKey='a://b',RowKey='c')", "t(PartitionKey='a://b',RowKey='c')"),
            (&host_style, "1x://x/t", "1x://x/t"),
            (&host_style, "://x/t", "://x/t"),
        ] {
            assert_eq!(site.inner_path(target), expected, "{target}");
        }
    }
}
