//! Keys that followed one another.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use crate::{KeyEncryptionKey, KeyResolver};
use partita_client::Result;

/// The key that wraps from now on, and those that wrapped before.
///
/// To change keys, make a ring of the new key with the old ones beside it. Entities are rewrapped as they are written
/// again; an old key can go when none names it any more.
#[derive(Clone, Debug)]
pub struct KeyRing {
    current: Arc<dyn KeyEncryptionKey>,
    /// All, the current one included, by their ids.
    keys: BTreeMap<String, Arc<dyn KeyEncryptionKey>>,
}

impl KeyRing {
    /// Of the key that wraps.
    pub fn new(current: impl KeyEncryptionKey + 'static) -> Self {
        let current: Arc<dyn KeyEncryptionKey> = Arc::new(current);
        let keys = BTreeMap::from([(current.key_id().to_owned(), Arc::clone(&current))]);
        Self { current, keys }
    }

    /// With one more key, to read by. It does not replace the current one, even if they have the same id.
    #[must_use]
    pub fn with(mut self, older: impl KeyEncryptionKey + 'static) -> Self {
        if older.key_id() != self.current.key_id() {
            self.keys.insert(older.key_id().to_owned(), Arc::new(older));
        }
        self
    }

    /// The one that wraps.
    pub fn current(&self) -> &Arc<dyn KeyEncryptionKey> {
        &self.current
    }

    pub(crate) fn find(&self, key_id: &str) -> Option<&Arc<dyn KeyEncryptionKey>> {
        self.keys.get(key_id)
    }
}

impl<K: KeyEncryptionKey + 'static> From<K> for KeyRing {
    fn from(key: K) -> Self {
        Self::new(key)
    }
}

#[async_trait]
impl KeyResolver for KeyRing {
    async fn resolve(&self, key_id: &str) -> Result<Option<Arc<dyn KeyEncryptionKey>>> {
        Ok(self.find(key_id).cloned())
    }
}
