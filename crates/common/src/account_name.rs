//! Names of storage accounts.

use std::fmt;
use std::sync::Arc;

use crate::limits;

/// A storage account's name: 3 to 24 lower-case letters and digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountName(Arc<str>);

impl AccountName {
    pub fn parse(text: &str) -> Option<Self> {
        let fits = (limits::ACCOUNT_NAME_MIN..=limits::ACCOUNT_NAME_MAX).contains(&text.len());
        let plain = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        (fits && plain).then(|| Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AccountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::AccountName;

    #[test]
    fn names_follow_the_rules() {
        for text in ["abc", "devstoreaccount1", "123456789012345678901234"] {
            assert_eq!(AccountName::parse(text).map(|name| name.to_string()).as_deref(), Some(text));
        }
        for text in ["", "ab", "1234567890123456789012345", "Shop", "my-shop", "shop ", "ééé"] {
            assert_eq!(AccountName::parse(text), None, "{text}");
        }
    }
}
