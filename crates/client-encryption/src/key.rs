//! The key of an entity's values, the keys that wrap it, and where those are found. Knows nothing of entities.

use std::fmt::{self, Debug};
use std::sync::Arc;

use async_trait::async_trait;
use rand::TryRngCore;
use rand::rngs::OsRng;
use zeroize::Zeroizing;

use partita_client::{Error, Result};

const CONTENT_KEY_BYTES: usize = 32;

/// What one entity's values are encrypted with: 32 bytes of AES-256. Wiped from memory when it is dropped, and never
/// shown by `Debug`.
pub struct ContentKey(Zeroizing<[u8; CONTENT_KEY_BYTES]>);

impl ContentKey {
    pub(crate) fn random() -> Result<Self> {
        let mut bytes = Zeroizing::new([0; CONTENT_KEY_BYTES]);
        fill_random(&mut *bytes)?;
        Ok(Self(bytes))
    }

    /// The secret itself: to wrap it, and for nothing else.
    pub fn as_bytes(&self) -> &[u8; CONTENT_KEY_BYTES] {
        &self.0
    }
}

/// A copy; wiping the bytes it was made of is their owner's business.
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

/// Wipes the bytes it was made of.
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

/// From the system itself: such a key is all that stands between an entity and its reader.
pub(crate) fn fill_random(bytes: &mut [u8]) -> Result<()> {
    OsRng
        .try_fill_bytes(bytes)
        .map_err(|why| Error::Encryption(format!("the system gave no random bytes for a key: {why}")))
}

/// A key that encrypts content keys. It may be far away: behind a vault, in a hardware module.
///
/// See [the crate](crate) for an implementation.
#[async_trait]
pub trait KeyEncryptionKey: Debug + Send + Sync {
    /// Stored with every entity, readable by all, so that the key is found again.
    fn key_id(&self) -> &str;

    /// What [`wrap`](Self::wrap) does, such as `A256KW` or `RSA-OAEP`; stored with every entity too.
    fn algorithm(&self) -> &str;

    /// The content key encrypted.
    async fn wrap(&self, content_key: &ContentKey) -> Result<Vec<u8>>;

    /// The content key again. `algorithm` is what the entity says, whoever wrote it: another than this key's own has to
    /// be refused, or done.
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

/// Finds the key an entity names. A closure `Fn(&str) -> Option<Arc<dyn KeyEncryptionKey>>` is one.
#[async_trait]
pub trait KeyResolver: Send + Sync {
    /// `None` if there is no such key, an error if that can't be found out.
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
