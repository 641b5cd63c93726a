//! Shared access signatures: what is needed to make one, and what one says. For `partita sas` and for the console.

mod explain;
mod token_url;

use std::time::Duration;

use blob_model::{BlobName, ContainerName};
use common::{AccountName, DateTime, ServiceKind};
use front::account::{Account, AccountError};
use protocol::signing::sas::{
    AccountSas, BlobSas, Overrides, QueueSas, Sas, SasFormatError, SignedResource, TableSas, Terms,
};
use queue_model::QueueName;
use thiserror::Error;

pub use explain::explain;
pub(crate) use token_url::{TokenUrl, read};

/// The version tokens are made in: understood by every server and SDK in use.
const VERSION: &str = "2019-02-02";
/// That of tokens for blobs: the first one in which tags can be granted.
const BLOB_VERSION: &str = "2019-12-12";
/// When a token expires if nothing says so.
pub const EXPIRES: &str = "1h";

/// What a token should grant.
#[derive(Clone, Debug)]
pub struct TokenRequest {
    pub resource: Resource,
    pub permissions: String,
    /// A time, or empty.
    pub starts: String,
    /// A time, or a duration from now such as `90m`. Empty: the policy's expiry, or `EXPIRES` if there is no policy.
    pub expires: String,
    pub ip: String,
    pub protocol: String,
    /// The stored access policy that provides the terms which the token does not have, or empty.
    pub policy: String,
}

#[derive(Clone, Debug)]
pub enum Resource {
    Table { table: String, range: KeyRangeText },
    Queue { queue: String },
    Container { container: String },
    Blob { container: String, blob: String },
    Account { services: String, resource_types: String },
}

/// The first and the last keys; empty ones are not bounds.
#[derive(Clone, Debug, Default)]
pub struct KeyRangeText {
    pub from: String,
    pub from_row: String,
    pub to: String,
    pub to_row: String,
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
    #[error("services are {0:?}; use letters of bqtf, such as qt for queues and tables")]
    Services(String),
    #[error("resource types are {0:?}; use letters of sco")]
    ResourceTypes(String),
    #[error(
        "the queue is {name:?}, which can't be the name of a queue ({code}); it takes 3 to 63 letters a to z, digits \
         and single dashes"
    )]
    QueueName { name: String, code: &'static str },
    #[error(
        "the container is {name:?}, which can't be the name of a container ({code}); it takes 3 to 63 letters a to z, \
         digits and single dashes, or is $root, $web or $logs"
    )]
    ContainerName { name: String, code: &'static str },
    #[error("a blob's name takes 1 to 1,024 characters, in at most 254 parts between slashes")]
    BlobName,
    #[error("a token grants nothing without permissions or a policy (--permissions, --policy)")]
    GrantsNothing,
    #[error("the start is {0:?}; use a time such as 2030-01-01T00:00:00Z")]
    Starts(String),
    #[error("the expiry is {0:?}; use a time such as 2030-01-01T00:00:00Z, or 90m, 8h, 7d")]
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

impl TokenRequest {
    /// The token, not signed yet.
    pub fn token(&self, now: DateTime) -> Result<Sas, SasError> {
        Ok(match &self.resource {
            Resource::Table { table, range } => Sas::Table(TableSas {
                terms: self.granting(ServiceKind::Table, now)?,
                table: table.clone(),
                identifier: self.policy.clone(),
                start_partition: range.from.clone(),
                start_row: range.from_row.clone(),
                end_partition: range.to.clone(),
                end_row: range.to_row.clone(),
            }),
            Resource::Queue { queue } => {
                let name = QueueName::parse(queue);
                name.map_err(|refusal| SasError::QueueName { name: queue.clone(), code: refusal.code() })?;
                Sas::Queue(QueueSas {
                    terms: self.granting(ServiceKind::Queue, now)?,
                    queue: queue.clone(),
                    identifier: self.policy.clone(),
                    delegation: None,
                })
            }
            Resource::Container { container } => {
                self.blob_token(container, SignedResource::Container, now)?
            }
            Resource::Blob { container, blob } => {
                let name = BlobName::parse(blob).map_err(|_| SasError::BlobName)?;
                self.blob_token(container, SignedResource::Blob(name.as_str().to_owned()), now)?
            }
            Resource::Account { services, resource_types } => {
                if services.is_empty() || !services.chars().all(|letter| "bqtf".contains(letter)) {
                    return Err(SasError::Services(services.clone()));
                }
                if resource_types.is_empty() || !resource_types.chars().all(|letter| "sco".contains(letter)) {
                    return Err(SasError::ResourceTypes(resource_types.clone()));
                }
                if self.permissions.is_empty() {
                    return Err(SasError::GrantsNothing);
                }
                Sas::Account(AccountSas {
                    terms: self.terms(now)?,
                    services: services.clone(),
                    resource_types: resource_types.clone(),
                    encryption_scope: String::new(),
                })
            }
        })
    }

    /// For what is in a container.
    fn blob_token(&self, container: &str, resource: SignedResource, now: DateTime) -> Result<Sas, SasError> {
        ContainerName::parse(container).map_err(|refusal| SasError::ContainerName {
            name: container.to_owned(),
            code: refusal.code(),
        })?;
        let terms = Terms { version: BLOB_VERSION.to_owned(), ..self.granting(ServiceKind::Blob, now)? };
        Ok(Sas::Blob(BlobSas {
            terms,
            container: container.to_owned(),
            resource,
            identifier: self.policy.clone(),
            encryption_scope: String::new(),
            overrides: Overrides::default(),
            delegation: None,
        }))
    }

    /// The terms of a token for one table, queue, container or blob.
    fn granting(&self, service: ServiceKind, now: DateTime) -> Result<Terms, SasError> {
        if !protocol::access_policies::in_order(service, &self.permissions) {
            return Err(SasError::Permissions { service, given: self.permissions.clone() });
        }
        if self.permissions.is_empty() && self.policy.is_empty() {
            return Err(SasError::GrantsNothing);
        }
        self.terms(now)
    }

    fn terms(&self, now: DateTime) -> Result<Terms, SasError> {
        if !self.starts.is_empty() && DateTime::parse(&self.starts).is_none() {
            return Err(SasError::Starts(self.starts.clone()));
        }
        let expiry = match (self.expires.as_str(), self.policy.as_str()) {
            ("", "") => expiry(EXPIRES, now)?,
            // Most policies have an expiry, and only one of token and policy may.
            ("", _) => String::new(),
            (text, _) => expiry(text, now)?,
        };
        Ok(Terms {
            version: VERSION.to_owned(),
            permissions: self.permissions.clone(),
            start: self.starts.clone(),
            expiry,
            ip: self.ip.clone(),
            protocol: self.protocol.clone(),
        })
    }
}

/// The token as a query string, signed with the account's first key.
pub fn sign(sas: &Sas, account: &Account) -> Result<String, SasError> {
    // An `Account` has at least one key.
    let key = account.keys.first().ok_or(SasError::NoKey)?;
    Ok(sas.to_query(&sas.sign(account.name.as_str(), key)))
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
    // The unit is one byte.
    let count: u32 = text[..text.len() - 1].parse().map_err(|_| bad())?;
    Ok(now.plus(Duration::from_secs(u64::from(count) * seconds)).to_seconds_string())
}
