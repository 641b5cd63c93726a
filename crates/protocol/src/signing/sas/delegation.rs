//! The fields of a token that is signed with a user delegation key, not with an account key.

use super::{Fields, text};
use crate::QueryString;

pub(super) const FIELDS: [&str; 11] =
    ["skoid", "sktid", "skt", "ske", "sks", "skv", "saoid", "suoid", "scid", "skdutid", "sduoid"];

/// The key, and on whose behalf it is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserDelegation {
    /// `skoid`, `sktid`: the user that requested the key, and its tenant.
    pub key_user: String,
    pub key_tenant: String,
    /// `skt`, `ske`: when the key is valid.
    pub key_start: String,
    pub key_expiry: String,
    /// `sks`, `skv`: the service and the version of the key.
    pub key_service: String,
    pub key_version: String,
    /// `saoid`, `suoid`: the user for whom the holder acts; with the first, that user's own rights are checked.
    pub authorized_user: String,
    pub unauthorized_user: String,
    /// `scid`
    pub correlation: String,
    /// `skdutid`, `sduoid`: the only user that may use the token.
    pub delegated_tenant: String,
    pub delegated_user: String,
}

impl UserDelegation {
    /// `None` if the token names no key.
    pub(super) fn read(query: &QueryString) -> Option<Self> {
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

    /// The fields of the key, in the order of the signed string.
    pub fn key(&self) -> [&str; 6] {
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
