//! Shared access signatures: the fields of a token, and the string it signs. Does not decide whether a token is valid:
//! that takes the time, the caller's address and the stored access policies.

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

use crate::QueryString;
use crate::signing::AccountKey;

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sas {
    Account(AccountSas),
    Table(TableSas),
    Queue(QueueSas),
    Blob(BlobSas),
}

/// The fields that all kinds of tokens have, each as sent: the text is signed, not its meaning.
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

/// Why a query string with a `sig` is not a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SasFormatError {
    #[error("{0} is given more than once")]
    Repeated(&'static str),
    #[error("{0} is missing")]
    Missing(&'static str),
    #[error("sv is {0:?}, not a version that has this kind of token")]
    Version(String),
    #[error("sr is {0:?}, not a kind of resource")]
    Resource(String),
    #[error("sr is {0:?}, but the address is not such a resource")]
    Level(&'static str),
    #[error("sdd is {0:?}, not the depth of a directory")]
    Depth(String),
    #[error("{0} is not supported")]
    Unsupported(&'static str),
}

/// Fields that must not be repeated: another reader might use the other value.
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
    /// The token of a request to tables, and its signature; `None` if the query has none.
    pub fn read(query: &QueryString) -> Result<Option<(Self, String)>, SasFormatError> {
        read(query, &[], |terms| TableSas::read(terms, query).map(Self::Table))
    }

    /// The token of a request to a queue or its messages. The queue's name is empty for the service itself.
    pub fn read_queue(query: &QueryString, queue: &str) -> Result<Option<(Self, String)>, SasFormatError> {
        read(query, &delegation::FIELDS, |terms| QueueSas::read(terms, query, queue).map(Self::Queue))
    }

    /// The token of a request to a container or a blob.
    pub fn read_blob(
        query: &QueryString,
        target: BlobTarget<'_>,
    ) -> Result<Option<(Self, String)>, SasFormatError> {
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

    /// The stored access policy that the token names; empty if it names none.
    pub fn identifier(&self) -> &str {
        match self {
            Self::Account(_) => "",
            Self::Table(sas) => &sas.identifier,
            Self::Queue(sas) => &sas.identifier,
            Self::Blob(sas) => &sas.identifier,
        }
    }

    /// The user delegation key that signed it, if it was not an account key.
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

    /// The token as a query string, in the order of the SDKs.
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

/// A token and its signature; `None` if the query has none. `service` reads a token that is not an account SAS.
fn read(
    query: &QueryString,
    also: &[&'static str],
    service: impl FnOnce(Terms) -> Result<Sas, SasFormatError>,
) -> Result<Option<(Sas, String)>, SasFormatError> {
    let Some(signature) = query.get("sig") else { return Ok(None) };
    for field in FIELDS.iter().chain(also) {
        // A service may find its options by their names in any case.
        if query.names().filter(|name| name.eq_ignore_ascii_case(field)).count() > 1 {
            return Err(SasFormatError::Repeated(field));
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
        return Err(SasFormatError::Missing("sv"));
    }
    let is_account = query.get("ss").is_some() && query.get("srt").is_some();
    let first = if is_account { ACCOUNT_SAS } else { SERVICE_SAS };
    if Version::parse(&terms.version).is_none() || terms.version.as_str() < first {
        return Err(SasFormatError::Version(terms.version));
    }
    let sas = if is_account { Sas::Account(AccountSas::read(terms, query)) } else { service(terms)? };
    // A `+` that the client did not encode was decoded to a space; Base64 has no spaces.
    Ok(Some((sas, signature.replace(' ', "+"))))
}

/// A field; empty if it is absent. The signed string is the same for both.
fn text(query: &QueryString, name: &str) -> String {
    query.get(name).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
