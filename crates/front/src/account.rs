//! The accounts this server answers for, and their keys.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use common::AccountName;
use protocol::signing::AccountKey;
use thiserror::Error;

/// The account every emulator has, with its published key.
pub const DEVELOPMENT_ACCOUNT: &str = "devstoreaccount1";
pub const DEVELOPMENT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A shorter key could be guessed.
const KEY_BYTES_MIN: usize = 16;

/// In path style, the health checks have this path.
const RESERVED: &str = "health";

#[derive(Clone, Debug)]
pub struct Account {
    pub name: AccountName,
    /// One or two; either signs.
    pub keys: Vec<AccountKey>,
}

/// Why a name and its keys are not an account. No key is shown.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AccountError {
    #[error("{name:?} can't be an account's name; it takes 3 to 24 lower-case letters and digits")]
    Name { name: String },
    #[error("{name:?} can't be an account's name: /{name} is the path of the health checks; choose another")]
    NameReserved { name: String },
    #[error("account {account:?} has no key; write name:key or name:key1:key2")]
    NoKey { account: String },
    #[error("account {account} has {count} keys; it takes one or two")]
    KeyCount { account: AccountName, count: usize },
    /// Keys are counted from 1.
    #[error("key {number} of account {account} is not Base64; copy the whole of it")]
    KeyNotBase64 { account: AccountName, number: usize },
    #[error(
        "key {number} of account {account} has {bytes} bytes; a key takes {KEY_BYTES_MIN} at least, Azure's have 64"
    )]
    KeyShort { account: AccountName, number: usize, bytes: usize },
}

impl Account {
    pub fn new(name: &str, keys: &[&str]) -> Result<Self, AccountError> {
        let Some(account) = AccountName::parse(name) else {
            return Err(AccountError::Name { name: name.to_owned() });
        };
        if name == RESERVED {
            return Err(AccountError::NameReserved { name: name.to_owned() });
        }
        let mut parsed = Vec::new();
        for (number, key) in (1..).zip(keys) {
            let Some(key) = AccountKey::parse(key) else {
                return Err(AccountError::KeyNotBase64 { account, number });
            };
            parsed.push(key);
        }
        for (number, key) in (1..).zip(&parsed) {
            if key.bytes() < KEY_BYTES_MIN {
                return Err(AccountError::KeyShort { account, number, bytes: key.bytes() });
            }
        }
        if !(1..=2).contains(&parsed.len()) {
            return Err(AccountError::KeyCount { account, count: parsed.len() });
        }
        Ok(Self { name: account, keys: parsed })
    }

    /// `name:key1[:key2]`, as flags and variables spell it.
    pub fn parse(text: &str) -> Result<Self, AccountError> {
        let mut pieces = text.trim().split(':');
        let name = pieces.next().unwrap_or_default();
        let keys: Vec<&str> = pieces.collect();
        if keys.is_empty() {
            return Err(AccountError::NoKey { account: name.to_owned() });
        }
        Self::new(name, &keys)
    }

    pub fn development() -> Self {
        // Both constants are valid, as `account::tests` checks.
        Self::new(DEVELOPMENT_ACCOUNT, &[DEVELOPMENT_KEY]).unwrap_or_else(|error| unreachable!("{error}"))
    }
}

#[derive(Clone, Debug, Default)]
pub struct Accounts(HashMap<String, Account>);

impl Accounts {
    pub fn new(accounts: impl IntoIterator<Item = Account>) -> Self {
        Self(accounts.into_iter().map(|account| (account.name.as_str().to_owned(), account)).collect())
    }

    pub fn names(&self) -> impl Iterator<Item = &AccountName> {
        self.0.values().map(|account| &account.name)
    }

    pub fn get(&self, name: &str) -> Option<&Account> {
        self.0.get(name)
    }
}

/// The current accounts. A request reads them once and keeps what it read; a reload is for later requests.
#[derive(Clone, Debug, Default)]
pub struct SharedAccounts(Arc<RwLock<Arc<Accounts>>>);

impl SharedAccounts {
    pub fn new(accounts: Accounts) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(accounts))))
    }

    pub fn current(&self) -> Arc<Accounts> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn replace(&self, accounts: Accounts) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(accounts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_development_account_is_an_account() {
        assert_eq!(Account::development().name.as_str(), DEVELOPMENT_ACCOUNT);
    }

    fn check(text: &str, expected: &str) {
        let shown = match Account::parse(text) {
            Ok(account) => format!("{} {}", account.name, account.keys.len()),
            Err(error) => error.to_string(),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn accounts_are_read_and_refused_without_showing_keys() {
        check("abc:AAAAAAAAAAAAAAAAAAAAAA==", "abc 1");
        check("abc:AAAAAAAAAAAAAAAAAAAAAA==:BBBBBBBBBBBBBBBBBBBBBA==", "abc 2");
        check("abc", "account \"abc\" has no key; write name:key or name:key1:key2");
        check(
            "abc:AAAAAAAAAAAAAAAAAAAA",
            "key 1 of account abc has 15 bytes; a key takes 16 at least, Azure's have 64",
        );
        check("abc:secret!", "key 1 of account abc is not Base64; copy the whole of it");
        check(
            "abc:AAAAAAAAAAAAAAAAAAAAAA==:BBBBBBBBBBBBBBBBBBBBBA==:CCCCCCCCCCCCCCCCCCCCCA==",
            "account abc has 3 keys; it takes one or two",
        );
        check(
            "Abc:AAAAAAAAAAAAAAAAAAAAAA==",
            "\"Abc\" can't be an account's name; it takes 3 to 24 lower-case letters and digits",
        );
        check(
            "health:AAAAAAAAAAAAAAAAAAAAAA==",
            "\"health\" can't be an account's name: /health is the path of the health checks; choose another",
        );
    }
}
