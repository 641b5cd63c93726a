//! The current key and its predecessors.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use crate::{KeyEncryptionKey, KeyResolver};
use partita_client::Result;

/// The current key, which wraps, and older keys, which only unwrap.
///
/// To change keys, create a ring of the new key, and add the old ones. An entity gets the new key when it is written
/// again. Remove an old key when no entity names it any more.
#[derive(Clone, Debug)]
pub struct KeyRing {
    current: Arc<dyn KeyEncryptionKey>,
    /// All keys by their ids, including the current one.
    keys: BTreeMap<String, Arc<dyn KeyEncryptionKey>>,
}

impl KeyRing {
    /// With the current key.
    pub fn new(current: impl KeyEncryptionKey + 'static) -> Self {
        let current: Arc<dyn KeyEncryptionKey> = Arc::new(current);
        let keys = BTreeMap::from([(current.key_id().to_owned(), Arc::clone(&current))]);
        Self { current, keys }
    }

    /// Adds an older key, for reading. It does not replace the current one, even if they have the same id.
    #[must_use]
    pub fn with(mut self, older: impl KeyEncryptionKey + 'static) -> Self {
        if older.key_id() != self.current.key_id() {
            self.keys.insert(older.key_id().to_owned(), Arc::new(older));
        }
        self
    }

    /// The key that wraps.
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
