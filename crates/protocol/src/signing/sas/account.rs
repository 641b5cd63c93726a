//! The account SAS: a token for any services of an account.

use super::{ENCRYPTION_SCOPE, Fields, Terms, text};
use crate::QueryString;

/// Grants access to services, containers (tables, queues) and objects (entities, messages, blobs).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountSas {
    pub terms: Terms,
    /// `ss`
    pub services: String,
    /// `srt`
    pub resource_types: String,
    /// `ses`: without effect on tables and queues, but signed.
    pub encryption_scope: String,
}

impl AccountSas {
    pub(super) fn read(terms: Terms, query: &QueryString) -> Self {
        Self {
            terms,
            services: text(query, "ss"),
            resource_types: text(query, "srt"),
            encryption_scope: text(query, "ses"),
        }
    }

    /// Every field is a line, with a line end after the last one too.
    pub(super) fn string_to_sign(&self, account: &str) -> String {
        let terms = &self.terms;
        let mut fields = vec![
            account,
            &terms.permissions,
            &self.services,
            &self.resource_types,
            &terms.start,
            &terms.expiry,
            &terms.ip,
            &terms.protocol,
            &terms.version,
        ];
        if terms.version.as_str() >= ENCRYPTION_SCOPE {
            fields.push(&self.encryption_scope);
        }
        fields.iter().flat_map(|field| [*field, "\n"]).collect()
    }

    pub(super) fn fields(&self) -> (Fields<'_>, Fields<'_>) {
        (vec![("ss", &self.services), ("srt", &self.resource_types)], vec![("ses", &self.encryption_scope)])
    }
}
