//! Names of tables.

use std::fmt;
use std::sync::Arc;

use crate::{Refusal, limits};

/// The prefix of the service's own tables.
const METRICS: &str = "$Metrics";

/// A table name. It keeps its case, but is compared without it.
#[derive(Clone, Debug)]
pub struct TableName {
    written: Arc<str>,
    folded: Arc<str>,
}

impl TableName {
    /// A wrong character is reported before a wrong length: that is the service's answer to a name of one dash.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let starts_well = text.starts_with(|c: char| c.is_ascii_alphabetic());
        let plain = starts_well && text.chars().all(|c| c.is_ascii_alphanumeric());
        if !plain && !is_metrics(text) && !text.is_empty() {
            return Err(common::Refusal::ResourceNameCharacters.into());
        }
        // Only ASCII is left, so bytes are characters.
        if !(limits::TABLE_NAME_MIN..=limits::TABLE_NAME_MAX).contains(&text.len()) {
            return Err(common::Refusal::ResourceNameLength.into());
        }
        let written: Arc<str> = text.into();
        let is_folded = !text.bytes().any(|byte| byte.is_ascii_uppercase());
        let folded = if is_folded { written.clone() } else { text.to_ascii_lowercase().into() };
        Ok(Self { written, folded })
    }

    /// In the case it was written in.
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// In lower case, for comparing and ordering.
    pub fn folded(&self) -> &str {
        &self.folded
    }

    /// As it was written, and in lower case.
    pub fn into_parts(self) -> (Arc<str>, Arc<str>) {
        (self.written, self.folded)
    }

    /// One of the tables that the service itself writes. Clients can read it, but not create or list it.
    pub fn is_metrics(&self) -> bool {
        self.written.starts_with('$')
    }
}

fn is_metrics(text: &str) -> bool {
    let kind = text.get(..METRICS.len()).filter(|start| start.eq_ignore_ascii_case(METRICS));
    kind.is_some() && text[METRICS.len()..].bytes().all(|b| b.is_ascii_alphabetic())
}

impl PartialEq for TableName {
    fn eq(&self, other: &Self) -> bool {
        self.folded == other.folded
    }
}

impl Eq for TableName {}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<common::Refusal>) {
        assert_eq!(TableName::parse(text).err(), expected.map(Refusal::from), "{text}");
    }

    #[test]
    fn names_follow_the_rules() {
        check("abc", None);
        check("A1234567890123456789012345678901234567890123456789012345678901z", None);
        check("ab", Some(common::Refusal::ResourceNameLength));
        check("", Some(common::Refusal::ResourceNameLength));
        check(&"a".repeat(64), Some(common::Refusal::ResourceNameLength));
        check("1abc", Some(common::Refusal::ResourceNameCharacters));
        check("my-table", Some(common::Refusal::ResourceNameCharacters));
        check("-", Some(common::Refusal::ResourceNameCharacters));
        check(&"-".repeat(64), Some(common::Refusal::ResourceNameCharacters));
        check("ééé", Some(common::Refusal::ResourceNameCharacters));
        check("$MetricsTransactionsTable", None);
        check("$metricshourprimarytransactionstable", None);
        check("$Metrics1", Some(common::Refusal::ResourceNameCharacters));
        check("$Metré", Some(common::Refusal::ResourceNameCharacters));
        check("$logs", Some(common::Refusal::ResourceNameCharacters));
    }

    #[test]
    fn the_services_own_tables_are_told_apart() {
        assert!(TableName::parse("$MetricsTransactionsTable").unwrap().is_metrics());
        assert!(!TableName::parse("MetricsTransactionsTable").unwrap().is_metrics());
    }

    #[test]
    fn case_does_not_tell_tables_apart() {
        assert_eq!(TableName::parse("Books"), TableName::parse("bOOKS"));
    }
}
