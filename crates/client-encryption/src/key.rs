//! The content key of an entity, the keys that wrap it, and how these are found. Knows nothing of entities.

use std::fmt::{self, Debug};
use std::sync::Arc;

use async_trait::async_trait;
use rand::TryRngCore;
use rand::rngs::OsRng;
use zeroize::Zeroizing;

use partita_client::{Error, Result};

const CONTENT_KEY_BYTES: usize = 32;

/// The key that encrypts one entity's values: 32 bytes, for AES-256. Drop wipes it from memory, and `Debug` never shows
/// it.
pub struct ContentKey(Zeroizing<[u8; CONTENT_KEY_BYTES]>);

impl ContentKey {
    pub(crate) fn random() -> Result<Self> {
        let mut bytes = Zeroizing::new([0; CONTENT_KEY_BYTES]);
        fill_random(&mut *bytes)?;
        Ok(Self(bytes))
    }

    /// The secret itself. Use it only to wrap it.
    pub fn as_bytes(&self) -> &[u8; CONTENT_KEY_BYTES] {
        &self.0
    }
}

/// Copies the bytes; their owner must wipe them.
impl TryFrom<&[u8]> for ContentKey {
    type Error = Error;

    fn try_from(bytes: &[u8]) -> Result<Self> {
        if bytes.len() != CONTENT_KEY_BYTES {
            let why = format!("a content key has {CONTENT_KEY_BYTES} bytes, not {}", bytes.len());
            return Err(Error::Encryption(why));
        }
        let mut key = Zeroizing::new([0; CONTENT_KEY_BYTES]);
        key.copy_from_slice(bytes);
        Ok(Self(key))
    }
}

/// Wipes the given bytes.
impl TryFrom<Vec<u8>> for ContentKey {
    type Error = Error;

    fn try_from(bytes: Vec<u8>) -> Result<Self> {
        let bytes = Zeroizing::new(bytes);
        Self::try_from(bytes.as_slice())
    }
}

impl Debug for ContentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContentKey(..)")
    }
}

/// From the system's generator, because these bytes become keys.
pub(crate) fn fill_random(bytes: &mut [u8]) -> Result<()> {
    OsRng
        .try_fill_bytes(bytes)
        .map_err(|why| Error::Encryption(format!("the system gave no random bytes for a key: {why}")))
}

/// A key that encrypts (*wraps*) content keys. It may be remote: in a vault, or in a hardware module.
///
/// See [the crate](crate) for an implementation.
#[async_trait]
pub trait KeyEncryptionKey: Debug + Send + Sync {
    /// Stored with every entity, unencrypted, to find the key again.
    fn key_id(&self) -> &str;

    /// The algorithm of [`wrap`](Self::wrap), such as `A256KW` or `RSA-OAEP`; also stored with every entity.
    fn algorithm(&self) -> &str;

    /// Encrypts a content key.
    async fn wrap(&self, content_key: &ContentKey) -> Result<Vec<u8>>;

    /// Decrypts a content key. `algorithm` is the one that the entity names, which anybody may have written: refuse
    /// algorithms that this key does not support.
    async fn unwrap_key(&self, wrapped: &[u8], algorithm: &str) -> Result<ContentKey>;
}

#[async_trait]
impl<K: KeyEncryptionKey + ?Sized> KeyEncryptionKey for Arc<K> {
    fn key_id(&self) -> &str {
        (**self).key_id()
    }

    fn algorithm(&self) -> &str {
        (**self).algorithm()
    }

    async fn wrap(&self, content_key: &ContentKey) -> Result<Vec<u8>> {
        (**self).wrap(content_key).await
    }

    async fn unwrap_key(&self, wrapped: &[u8], algorithm: &str) -> Result<ContentKey> {
        (**self).unwrap_key(wrapped, algorithm).await
    }
}

/// Finds a key by the id that an entity names. A closure `Fn(&str) -> Option<Arc<dyn KeyEncryptionKey>>` is one.
#[async_trait]
pub trait KeyResolver: Send + Sync {
    /// `None` if there is no such key; an error if it is unknown whether there is one.
    async fn resolve(&self, key_id: &str) -> Result<Option<Arc<dyn KeyEncryptionKey>>>;
}

#[async_trait]
impl<F> KeyResolver for F
where
    F: Fn(&str) -> Option<Arc<dyn KeyEncryptionKey>> + Send + Sync,
{
    async fn resolve(&self, key_id: &str) -> Result<Option<Arc<dyn KeyEncryptionKey>>> {
        Ok(self(key_id))
    }
}
