//! A table's own token.

use super::{ACCOUNT_SAS, Fields, Malformed, SERVICE_IN_RESOURCE, Terms, text};
use crate::Query;

/// Grants access to entities of one table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableSas {
    pub terms: Terms,
    /// `tn`
    pub table: String,
    /// `si`: a stored access policy that holds what the token leaves out.
    pub identifier: String,
    /// `spk`, `srk`, `epk`, `erk`. An empty bound is no bound, as the signed text can't tell them apart.
    pub start_partition: String,
    pub start_row: String,
    pub end_partition: String,
    pub end_row: String,
}

impl TableSas {
    pub(super) fn read(terms: Terms, query: &Query) -> Result<Self, Malformed> {
        let table = text(query, "tn");
        if table.is_empty() {
            return Err(Malformed::Missing("tn"));
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
