//! The accounts this server answers for, and their keys.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use common::AccountName;
use protocol::signing::AccountKey;

/// The account every emulator has, with its published key.
pub const DEVELOPMENT_ACCOUNT: &str = "devstoreaccount1";
pub const DEVELOPMENT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Shorter ones could be guessed.
const KEY_BYTES_MIN: usize = 16;

/// Taken by the health endpoints in path style.
const RESERVED: &str = "health";

#[derive(Clone, Debug)]
pub struct Account {
    pub name: AccountName,
    /// One or two; either signs.
    pub keys: Vec<AccountKey>,
}

impl Account {
    /// Says what is wrong in one sentence, without showing a key.
    pub fn new(name: &str, keys: &[&str]) -> Result<Self, String> {
        let parsed =
            AccountName::parse(name).filter(|parsed| parsed.as_str() != RESERVED).ok_or_else(|| {
                format!("{name:?} can't be an account's name; it takes 3 to 24 lower-case letters and digits")
            })?;
        let keys = keys.iter().enumerate().map(|(index, key)| {
            AccountKey::parse(key).ok_or_else(|| format!("key {} of account {name} is not Base64", index + 1))
        });
        let keys: Vec<_> = keys.collect::<Result<_, _>>()?;
        if let Some(index) = keys.iter().position(|key: &AccountKey| key.bytes() < KEY_BYTES_MIN) {
            return Err(format!(
                "key {} of account {name} has {} bytes; a key takes {KEY_BYTES_MIN} at least, Azure's have 64",
                index + 1,
                keys[index].bytes()
            ));
        }
        if keys.is_empty() || keys.len() > 2 {
            return Err(format!("account {name} has {} keys; it takes one or two", keys.len()));
        }
        Ok(Self { name: parsed, keys })
    }

    /// `name:key1[:key2]`, as flags and variables spell it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = text.trim().split(':');
        let name = pieces.next().unwrap_or_default();
        let keys: Vec<&str> = pieces.collect();
        if keys.is_empty() {
            return Err(format!("account {name:?} has no key; write name:key or name:key1:key2"));
        }
        Self::new(name, &keys)
    }

    pub fn development() -> Self {
        // Both constants are valid; `account::tests` holds them to it.
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

/// The accounts as of now. A request takes them once and keeps what it took; a rotation changes those to come.
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
        let shown =
            Account::parse(text).map_or_else(|error| error, |a| format!("{} {}", a.name, a.keys.len()));
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
        check("abc:secret!", "key 1 of account abc is not Base64");
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
            "\"health\" can't be an account's name; it takes 3 to 24 lower-case letters and digits",
        );
    }
}
