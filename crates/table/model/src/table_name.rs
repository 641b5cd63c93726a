//! Names of tables.

use std::fmt;
use std::sync::Arc;

use crate::{Refusal, limits};

/// What the names of the service's own tables begin with.
const METRICS: &str = "$Metrics";

/// A table name: the case it was written in, compared without it.
#[derive(Clone, Debug)]
pub struct TableName {
    written: Arc<str>,
    folded: Arc<str>,
}

impl TableName {
    /// A wrong character counts before a wrong length, as the service has it for a name of one dash.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let starts_well = text.starts_with(|c: char| c.is_ascii_alphabetic());
        let plain = starts_well && text.chars().all(|c| c.is_ascii_alphanumeric());
        if !plain && !is_metrics(text) && !text.is_empty() {
            return Err(Refusal::ResourceNameCharacters);
        }
        // A character is a unit in all that is left.
        if !(limits::TABLE_NAME_MIN..=limits::TABLE_NAME_MAX).contains(&text.len()) {
            return Err(Refusal::ResourceNameLength);
        }
        let written: Arc<str> = text.into();
        let is_folded = !text.bytes().any(|byte| byte.is_ascii_uppercase());
        let folded = if is_folded { written.clone() } else { text.to_ascii_lowercase().into() };
        Ok(Self { written, folded })
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// Lower case: what names are compared and ordered by.
    pub fn folded(&self) -> &str {
        &self.folded
    }

    /// As it was written, and in lower case.
    pub fn into_parts(self) -> (Arc<str>, Arc<str>) {
        (self.written, self.folded)
    }

    /// One of the tables that the service itself keeps: to be read, never made or listed.
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

    fn check(text: &str, expected: Option<Refusal>) {
        assert_eq!(TableName::parse(text).err(), expected, "{text}");
    }

    #[test]
    fn names_follow_the_rules() {
        check("abc", None);
        check("A1234567890123456789012345678901234567890123456789012345678901z", None);
        check("ab", Some(Refusal::ResourceNameLength));
        check("", Some(Refusal::ResourceNameLength));
        check(&"a".repeat(64), Some(Refusal::ResourceNameLength));
        check("1abc", Some(Refusal::ResourceNameCharacters));
        check("my-table", Some(Refusal::ResourceNameCharacters));
        check("-", Some(Refusal::ResourceNameCharacters));
        check(&"-".repeat(64), Some(Refusal::ResourceNameCharacters));
        check("ééé", Some(Refusal::ResourceNameCharacters));
        check("$MetricsTransactionsTable", None);
        check("$metricshourprimarytransactionstable", None);
        check("$Metrics1", Some(Refusal::ResourceNameCharacters));
        check("$Metré", Some(Refusal::ResourceNameCharacters));
        check("$logs", Some(Refusal::ResourceNameCharacters));
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
