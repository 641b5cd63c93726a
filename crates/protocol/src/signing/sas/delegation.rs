//! What a token says that was signed with a user's delegation key instead of the account's.

use super::{Fields, text};
use crate::Query;

pub(super) const FIELDS: [&str; 11] =
    ["skoid", "sktid", "skt", "ske", "sks", "skv", "saoid", "suoid", "scid", "skdutid", "sduoid"];

/// The key and on whose behalf it is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserDelegation {
    /// `skoid`, `sktid`: who asked for the key.
    pub key_user: String,
    pub key_tenant: String,
    /// `skt`, `ske`: when it may be used.
    pub key_start: String,
    pub key_expiry: String,
    /// `sks`, `skv`: for what.
    pub key_service: String,
    pub key_version: String,
    /// `saoid`, `suoid`: for whom the holder acts, with or without a look at that user's rights.
    pub authorized_user: String,
    pub unauthorized_user: String,
    /// `scid`
    pub correlation: String,
    /// `skdutid`, `sduoid`: who alone may use the token.
    pub delegated_tenant: String,
    pub delegated_user: String,
}

impl UserDelegation {
    /// `None` if no key is named.
    pub(super) fn read(query: &Query) -> Option<Self> {
        query.get("skoid").filter(|user| !user.is_empty())?;
        Some(Self {
            key_user: text(query, "skoid"),
            key_tenant: text(query, "sktid"),
            key_start: text(query, "skt"),
            key_expiry: text(query, "ske"),
            key_service: text(query, "sks"),
            key_version: text(query, "skv"),
            authorized_user: text(query, "saoid"),
            unauthorized_user: text(query, "suoid"),
            correlation: text(query, "scid"),
            delegated_tenant: text(query, "skdutid"),
            delegated_user: text(query, "sduoid"),
        })
    }

    /// The key, as every string has it.
    pub(super) fn key(&self) -> [&str; 6] {
        [
            &self.key_user,
            &self.key_tenant,
            &self.key_start,
            &self.key_expiry,
            &self.key_service,
            &self.key_version,
        ]
    }

    pub(super) fn fields(&self) -> Fields<'_> {
        vec![
            ("skoid", &self.key_user),
            ("sktid", &self.key_tenant),
            ("skt", &self.key_start),
            ("ske", &self.key_expiry),
            ("sks", &self.key_service),
            ("skv", &self.key_version),
            ("saoid", &self.authorized_user),
            ("suoid", &self.unauthorized_user),
            ("scid", &self.correlation),
            ("skdutid", &self.delegated_tenant),
            ("sduoid", &self.delegated_user),
        ]
    }
}
