//! The SAS of a table.

use super::{ACCOUNT_SAS, Fields, SERVICE_IN_RESOURCE, SasFormatError, Terms, text};
use crate::QueryString;

/// Grants access to entities of one table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableSas {
    pub terms: Terms,
    /// `tn`
    pub table: String,
    /// `si`: the stored access policy that provides the terms which the token does not have.
    pub identifier: String,
    /// `spk`, `srk`, `epk`, `erk`. An empty bound is no bound: the signed string is the same for both.
    pub start_partition: String,
    pub start_row: String,
    pub end_partition: String,
    pub end_row: String,
}

impl TableSas {
    pub(super) fn read(terms: Terms, query: &QueryString) -> Result<Self, SasFormatError> {
        let table = text(query, "tn");
        if table.is_empty() {
            return Err(SasFormatError::Missing("tn"));
        }
        Ok(Self {
            terms,
            table,
            identifier: text(query, "si"),
            start_partition: text(query, "spk"),
            start_row: text(query, "srk"),
            end_partition: text(query, "epk"),
            end_row: text(query, "erk"),
        })
    }

    pub(super) fn string_to_sign(&self, account: &str) -> String {
        let version = self.terms.version.as_str();
        let service = if version >= SERVICE_IN_RESOURCE { "/table" } else { "" };
        let resource = format!("{service}/{account}/{}", self.table.to_lowercase());
        let mut fields = vec![
            self.terms.permissions.as_str(),
            &self.terms.start,
            &self.terms.expiry,
            &resource,
            &self.identifier,
        ];
        if version >= ACCOUNT_SAS {
            fields.extend([self.terms.ip.as_str(), &self.terms.protocol]);
        }
        fields.extend([version, &self.start_partition, &self.start_row, &self.end_partition, &self.end_row]);
        fields.join("\n")
    }

    pub(super) fn fields(&self) -> (Fields<'_>, Fields<'_>) {
        let after = vec![
            ("si", self.identifier.as_str()),
            ("spk", &self.start_partition),
            ("srk", &self.start_row),
            ("epk", &self.end_partition),
            ("erk", &self.end_row),
        ];
        (vec![("tn", &self.table)], after)
    }
}
