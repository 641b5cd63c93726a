//! Shared access signatures: what a token says, and the string it signs. Whether it grants anything is decided
//! elsewhere, by whoever knows the time, the caller's address and the stored policies.

mod account;
mod blob;
mod delegation;
mod queue;
mod table;

pub use account::AccountSas;
pub use blob::{BlobSas, BlobTarget, Overrides, SignedResource};
pub use delegation::UserDelegation;
pub use queue::QueueSas;
pub use table::TableSas;

use common::Version;

use crate::Query;
use crate::signing::AccountKey;

/// A token, read out of a query string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sas {
    Account(AccountSas),
    Table(TableSas),
    Queue(QueueSas),
    Blob(BlobSas),
}

/// The fields all kinds have. Each is as it was sent: what is signed is the text, not its meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// `sv`
    pub version: String,
    /// `sp`
    pub permissions: String,
    /// `st`
    pub start: String,
    /// `se`
    pub expiry: String,
    /// `sip`
    pub ip: String,
    /// `spr`
    pub protocol: String,
}

/// Why a query string that looks like a token is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("{0} is given more than once")]
    Repeated(&'static str),
    #[error("{0} is missing")]
    Missing(&'static str),
    #[error("sv is {0:?}, which is no version that has this kind of signature")]
    Version(String),
    #[error("sr is {0:?}, which is no kind of resource")]
    Resource(String),
    #[error("sr is {0:?}, which the address is not")]
    Level(&'static str),
    #[error("sdd is {0:?}, no depth of a directory")]
    Depth(String),
    #[error("{0} is not supported")]
    Unsupported(&'static str),
}

/// Fields of which one must not be given twice, because another reader might take the other one.
const FIELDS: [&str; 17] = [
    "sv", "sp", "st", "se", "sip", "spr", "tn", "si", "spk", "srk", "epk", "erk", "ss", "srt", "ses", "sig",
    "sr",
];

/// First versions of the layouts (spec: access-and-service 2.3, 2.7, queue-operations 7.3, blob-operations 8.3).
const SERVICE_SAS: &str = "2012-02-12";
const SERVICE_IN_RESOURCE: &str = "2015-02-21";
const ACCOUNT_SAS: &str = "2015-04-05";
const ENCRYPTION_SCOPE: &str = "2020-12-06";

/// Names and values, for a query string.
type Fields<'a> = Vec<(&'static str, &'a str)>;

impl Sas {
    /// The token of a request to tables and its signature; `None` if the query holds none.
    pub fn read(query: &Query) -> Result<Option<(Self, String)>, Malformed> {
        read(query, &[], |terms| TableSas::read(terms, query).map(Self::Table))
    }

    /// The same of a request to a queue or to what is in it; the queue's name is empty for the service itself.
    pub fn read_queue(query: &Query, queue: &str) -> Result<Option<(Self, String)>, Malformed> {
        read(query, &delegation::FIELDS, |terms| QueueSas::read(terms, query, queue).map(Self::Queue))
    }

    /// The same of a request to blobs.
    pub fn read_blob(query: &Query, target: BlobTarget<'_>) -> Result<Option<(Self, String)>, Malformed> {
        let also: Vec<&'static str> = [&blob::FIELDS[..], &delegation::FIELDS].concat();
        read(query, &also, |terms| BlobSas::read(terms, query, target).map(Self::Blob))
    }

    pub fn terms(&self) -> &Terms {
        match self {
            Self::Account(sas) => &sas.terms,
            Self::Table(sas) => &sas.terms,
            Self::Queue(sas) => &sas.terms,
            Self::Blob(sas) => &sas.terms,
        }
    }

    /// The stored access policy that holds what the token leaves out; empty if it names none.
    pub fn identifier(&self) -> &str {
        match self {
            Self::Account(_) => "",
            Self::Table(sas) => &sas.identifier,
            Self::Queue(sas) => &sas.identifier,
            Self::Blob(sas) => &sas.identifier,
        }
    }

    /// Whose key has signed it, if it is not the account's own.
    pub fn delegation(&self) -> Option<&UserDelegation> {
        match self {
            Self::Account(_) | Self::Table(_) => None,
            Self::Queue(sas) => sas.delegation.as_ref(),
            Self::Blob(sas) => sas.delegation.as_ref(),
        }
    }

    pub fn string_to_sign(&self, account: &str) -> String {
        match self {
            Self::Account(sas) => sas.string_to_sign(account),
            Self::Table(sas) => sas.string_to_sign(account),
            Self::Queue(sas) => sas.string_to_sign(account),
            Self::Blob(sas) => sas.string_to_sign(account),
        }
    }

    pub fn sign(&self, account: &str, key: &AccountKey) -> String {
        key.sign(&self.string_to_sign(account))
    }

    /// The query string that carries the token, in the order SDKs write it.
    pub fn to_query(&self, signature: &str) -> String {
        let terms = self.terms();
        let (before, after): (Fields<'_>, Fields<'_>) = match self {
            Self::Account(sas) => sas.fields(),
            Self::Table(sas) => sas.fields(),
            Self::Queue(sas) => sas.fields(),
            Self::Blob(sas) => sas.fields(),
        };
        let mut fields = vec![("sv", terms.version.as_str())];
        fields.extend(before);
        fields.extend([
            ("sp", terms.permissions.as_str()),
            ("st", &terms.start),
            ("se", &terms.expiry),
            ("sip", &terms.ip),
            ("spr", &terms.protocol),
        ]);
        fields.extend(after);
        fields.push(("sig", signature));
        let encode = |text: &str| {
            percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC)
                .to_string()
                .replace("%2D", "-")
                .replace("%2E", ".")
                .replace("%5F", "_")
                .replace("%7E", "~")
        };
        let pairs = fields.into_iter().filter(|(_, value)| !value.is_empty());
        pairs.map(|(name, value)| format!("{name}={}", encode(value))).collect::<Vec<_>>().join("&")
    }
}

/// A token and its signature; `None` if the query holds none. What is not for the account is for `service` to read.
fn read(
    query: &Query,
    also: &[&'static str],
    service: impl FnOnce(Terms) -> Result<Sas, Malformed>,
) -> Result<Option<(Sas, String)>, Malformed> {
    let Some(signature) = query.get("sig") else { return Ok(None) };
    for field in FIELDS.iter().chain(also) {
        if query.names().filter(|name| name == field).count() > 1 {
            return Err(Malformed::Repeated(field));
        }
    }
    let terms = Terms {
        version: text(query, "sv"),
        permissions: text(query, "sp"),
        start: text(query, "st"),
        expiry: text(query, "se"),
        ip: text(query, "sip"),
        protocol: text(query, "spr"),
    };
    if terms.version.is_empty() {
        return Err(Malformed::Missing("sv"));
    }
    let is_account = query.get("ss").is_some() && query.get("srt").is_some();
    let first = if is_account { ACCOUNT_SAS } else { SERVICE_SAS };
    if Version::parse(&terms.version).is_none() || terms.version.as_str() < first {
        return Err(Malformed::Version(terms.version));
    }
    let sas = if is_account { Sas::Account(AccountSas::read(terms, query)) } else { service(terms)? };
    // A `+` that was not encoded has become a space on its way here; Base64 has no spaces.
    Ok(Some((sas, signature.replace(' ', "+"))))
}

/// A field, empty if it is not there: what is signed can't tell the two apart.
fn text(query: &Query, name: &str) -> String {
    query.get(name).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
