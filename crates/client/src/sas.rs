//! Shared access signatures and the policies they can name.

use model::DateTime;
use wire::access_policies;
use wire::connection_string::{Credential, Endpoint};
use wire::signing::sas;

use crate::error::{Error, Result};

/// The newest version that all services support.
const VERSION: &str = "2019-02-02";

/// The operations on entities that a token allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TablePermissions {
    pub read: bool,
    pub add: bool,
    pub update: bool,
    pub delete: bool,
}

impl TablePermissions {
    /// To get and query.
    pub const READ: Self = Self { read: true, add: false, update: false, delete: false };
    pub const ALL: Self = Self { read: true, add: true, update: true, delete: true };

    fn letters(self) -> String {
        let letters = [(self.read, 'r'), (self.add, 'a'), (self.update, 'u'), (self.delete, 'd')];
        letters.into_iter().filter_map(|(granted, letter)| granted.then_some(letter)).collect()
    }

    fn of(letters: &str) -> Self {
        let has = |letter| letters.contains(letter);
        Self { read: has('r'), add: has('a'), update: has('u'), delete: has('d') }
    }
}

/// A stored access policy of a table: the terms of the tokens that name it. If it is removed, they grant nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessPolicy {
    pub id: String,
    pub start: Option<DateTime>,
    pub expiry: Option<DateTime>,
    pub permissions: Option<TablePermissions>,
}

impl AccessPolicy {
    pub(crate) fn from_wire(policy: access_policies::AccessPolicy) -> Self {
        let permissions = policy.permissions.as_deref().map(TablePermissions::of);
        Self { id: policy.id, start: policy.start, expiry: policy.expiry, permissions }
    }

    pub(crate) fn to_wire(&self) -> access_policies::AccessPolicy {
        access_policies::AccessPolicy {
            id: self.id.clone(),
            start: self.start,
            expiry: self.expiry,
            permissions: self.permissions.map(TablePermissions::letters),
        }
    }
}

/// The terms of a token for one table: permissions, time, and a range of keys. Signed by [`Table::sign`](crate::Table::sign).
///
/// ```
/// use std::time::Duration;
/// use partita_client::{DateTime, TablePermissions, TableSas};
///
/// let hour = DateTime::now().plus(Duration::from_secs(3600));
/// let sas = TableSas::new(TablePermissions::READ, hour).partitions("a", "m").https_only();
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct TableSas {
    permissions: Option<TablePermissions>,
    start: Option<DateTime>,
    expiry: Option<DateTime>,
    policy: String,
    ip: String,
    https_only: bool,
    from: (String, String),
    to: (String, String),
}

impl TableSas {
    /// Valid until `expiry`.
    pub fn new(permissions: TablePermissions, expiry: DateTime) -> Self {
        Self { permissions: Some(permissions), expiry: Some(expiry), ..Self::default() }
    }

    /// Grants what the table's stored access policy of this name grants, as long as the policy exists.
    pub fn of_policy(id: impl Into<String>) -> Self {
        Self { policy: id.into(), ..Self::default() }
    }

    /// Valid from `start` on.
    pub fn start(self, start: DateTime) -> Self {
        Self { start: Some(start), ..self }
    }

    /// Only from this IP address, or from a range of them: `10.0.0.1-10.0.0.9`.
    pub fn ip(self, ip: impl Into<String>) -> Self {
        Self { ip: ip.into(), ..self }
    }

    pub fn https_only(self) -> Self {
        Self { https_only: true, ..self }
    }

    /// Only partitions from the first to the last, both included.
    pub fn partitions(self, first: impl Into<String>, last: impl Into<String>) -> Self {
        Self { from: (first.into(), String::new()), to: (last.into(), String::new()), ..self }
    }

    /// Only entities from the first to the last, as (PartitionKey, RowKey), both included.
    pub fn entities(self, first: (&str, &str), last: (&str, &str)) -> Self {
        let own = |key: (&str, &str)| (key.0.to_owned(), key.1.to_owned());
        Self { from: own(first), to: own(last), ..self }
    }

    fn terms(&self) -> sas::Terms {
        sas::Terms {
            version: VERSION.to_owned(),
            permissions: self.permissions.map(TablePermissions::letters).unwrap_or_default(),
            start: time(self.start),
            expiry: time(self.expiry),
            ip: self.ip.clone(),
            protocol: protocol(self.https_only),
        }
    }
}

/// The terms of a token for an account. Signed by [`TableService::sign`](crate::TableService::sign).
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct AccountSas {
    permissions: String,
    resources: String,
    start: Option<DateTime>,
    expiry: Option<DateTime>,
    ip: String,
    https_only: bool,
}

impl AccountSas {
    /// Everything that the account key allows on tables.
    pub fn all(expiry: DateTime) -> Self {
        Self::new("rwdlau", "sco", expiry)
    }

    /// All reads.
    pub fn read_only(expiry: DateTime) -> Self {
        Self::new("rl", "sco", expiry)
    }

    /// Letters as Azure documents them: permissions of `rwdlacup`, resource types of `s` (service), `c` (tables) and `o`
    /// (entities).
    pub fn new(permissions: impl Into<String>, resources: impl Into<String>, expiry: DateTime) -> Self {
        Self {
            permissions: permissions.into(),
            resources: resources.into(),
            expiry: Some(expiry),
            ..Self::default()
        }
    }

    /// Valid from `start` on.
    pub fn start(self, start: DateTime) -> Self {
        Self { start: Some(start), ..self }
    }

    /// Only from this IP address, or from a range of them: `10.0.0.1-10.0.0.9`.
    pub fn ip(self, ip: impl Into<String>) -> Self {
        Self { ip: ip.into(), ..self }
    }

    pub fn https_only(self) -> Self {
        Self { https_only: true, ..self }
    }
}

pub(crate) fn sign_table(endpoint: &Endpoint, table: &str, of: &TableSas) -> Result<String> {
    let sas = sas::TableSas {
        terms: of.terms(),
        table: table.to_owned(),
        identifier: of.policy.clone(),
        start_partition: of.from.0.clone(),
        start_row: of.from.1.clone(),
        end_partition: of.to.0.clone(),
        end_row: of.to.1.clone(),
    };
    sign(endpoint, sas::Sas::Table(sas))
}

pub(crate) fn sign_account(endpoint: &Endpoint, of: &AccountSas) -> Result<String> {
    let terms = sas::Terms {
        version: VERSION.to_owned(),
        permissions: of.permissions.clone(),
        start: time(of.start),
        expiry: time(of.expiry),
        ip: of.ip.clone(),
        protocol: protocol(of.https_only),
    };
    let (services, resource_types) = ("t".to_owned(), of.resources.clone());
    sign(
        endpoint,
        sas::Sas::Account(sas::AccountSas {
            terms,
            services,
            resource_types,
            encryption_scope: String::new(),
        }),
    )
}

fn sign(endpoint: &Endpoint, sas: sas::Sas) -> Result<String> {
    let Credential::Key(key) = &endpoint.credential else {
        return Err(Error::invalid(
            "only an account's key can sign a token, and this service was given a token itself",
        ));
    };
    Ok(sas.to_query(&sas.sign(&endpoint.account, key)))
}

fn time(time: Option<DateTime>) -> String {
    time.map(DateTime::to_seconds_string).unwrap_or_default()
}

fn protocol(https_only: bool) -> String {
    if https_only { "https".to_owned() } else { String::new() }
}
