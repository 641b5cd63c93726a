//! The name of an engine's table. The service that the table belongs to has its own rules for names; here is what all
//! engines rely on.

use std::fmt;
use std::sync::Arc;

use model::{ServiceKind, TableName};

/// Names of queues and containers have at most so many characters, like those of tables.
const NAME_MAX: usize = 63;

/// A name in the case it was written in. Names compare without case; those of other services than Table have none.
#[derive(Clone, Debug)]
pub struct StoredName {
    written: Arc<str>,
    folded: Arc<str>,
}

impl StoredName {
    /// `None` if no table of this service can have the name.
    pub fn parse(service: ServiceKind, text: &str) -> Option<Self> {
        if service == ServiceKind::Table {
            return TableName::parse(text).ok().map(Self::from);
        }
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-$".contains(&byte);
        if text.is_empty() || text.len() > NAME_MAX || !text.bytes().all(is_plain) {
            return None;
        }
        let written: Arc<str> = text.into();
        Some(Self { folded: written.clone(), written })
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// Lower case: what names are compared and ordered by.
    pub fn folded(&self) -> &str {
        &self.folded
    }
}

/// A table of a service within its account, for people: `Books`, or `queue/orders`.
pub fn place_of(service: ServiceKind, name: &str) -> String {
    match service {
        ServiceKind::Table => name.to_owned(),
        other => format!("{other}/{name}"),
    }
}

impl From<TableName> for StoredName {
    fn from(name: TableName) -> Self {
        let (written, folded) = name.into_parts();
        Self { written, folded }
    }
}

impl PartialEq for StoredName {
    fn eq(&self, other: &Self) -> bool {
        self.folded == other.folded
    }
}

impl Eq for StoredName {}

impl fmt::Display for StoredName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_has_its_own_rules_for_names() {
        let check = |service, text: &str, expected: bool| {
            assert_eq!(StoredName::parse(service, text).is_some(), expected, "{service} {text}");
        };
        check(ServiceKind::Table, "Books", true);
        check(ServiceKind::Table, "my-queue", false);
        check(ServiceKind::Queue, "my-queue", true);
        check(ServiceKind::Queue, "1", true);
        check(ServiceKind::Queue, &"q".repeat(63), true);
        check(ServiceKind::Queue, &"q".repeat(64), false);
        check(ServiceKind::Queue, "", false);
        check(ServiceKind::Queue, "Books", false);
        check(ServiceKind::Queue, "a/b", false);
        check(ServiceKind::Queue, "é", false);
        check(ServiceKind::Blob, "$root", true);
    }
}
