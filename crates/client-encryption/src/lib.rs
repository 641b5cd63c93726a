//! Encrypts String properties before they leave the program, in the format of the .NET, Java and Python table libraries
//! (`AES_CBC_256`, protocol 1.0). Each of them can read what the others wrote.
//!
//! Each entity has a random [`ContentKey`], which encrypts its properties. A [`KeyEncryptionKey`] encrypts (*wraps*) the
//! content key, which is then stored with the entity. The [`KeyEncryptionKey`] itself is never stored. An
//! [`EncryptionPolicy`] says which properties are encrypted, and by which key:
//!
//! ```
//! use partita_client::Entity;
//! use partita_client_encryption::{EncryptionPolicy, LocalKey};
//!
//! # #[tokio::main]
//! # async fn main() -> partita_client::Result<()> {
//! let key = LocalKey::new("local:2026", &[7; 32])?; // read yours from a secret store
//! let policy = EncryptionPolicy::new(key).encrypt_properties(["Card"]).require_encryption(true);
//!
//! let order = Entity::new("orders", "17").with("Item", "Tea").with("Card", "4000 1234 5678 9010");
//! let stored = policy.encrypt(order.clone()).await?;
//! assert_eq!(stored.text("Item"), Some("Tea"));
//! assert_eq!(stored.text("Card"), None); // Binary now
//! assert_eq!(policy.decrypt(stored).await?, order);
//! # Ok(())
//! # }
//! ```
//!
//! # What it protects, and what it does not
//!
//! Without the key, a reader of the table learns neither the values nor which Binary properties are encrypted. PartitionKey,
//! RowKey, property names and lengths are not hidden. The format has **no signature**: anybody who can write to the table
//! can put an older entity back, change a value so that it decrypts to other text, or store an unencrypted entity. Only
//! the last is always detected, with [`require_encryption`](EncryptionPolicy::require_encryption). The service can't filter
//! by encrypted properties, nor merge into them ([`check_merge`](EncryptionPolicy::check_merge)).
//!
//! # Changing keys
//!
//! An entity names the key that wraps its content key. A [`KeyRing`] wraps with its current key, and finds older keys by
//! their ids:
//!
//! ```
//! # use partita_client_encryption::{EncryptionPolicy, KeyRing, LocalKey};
//! # fn main() -> partita_client::Result<()> {
//! let ring = KeyRing::new(LocalKey::new("local:2027", &[8; 32])?).with(LocalKey::new("local:2026", &[7; 32])?);
//! let policy = EncryptionPolicy::new(ring).encrypt_properties(["Card"]);
//! # Ok(())
//! # }
//! ```
//!
//! # Keys in a vault, and RSA
//!
//! [`LocalKey`] is AES key wrap (`A128KW`, `A192KW`, `A256KW`). For any other kind, such as `RSA-OAEP` or a key in a vault,
//! implement [`KeyEncryptionKey`]:
//!
//! ```
//! use partita_client_encryption::{ContentKey, KeyEncryptionKey, async_trait};
//! use partita_client::{Error, Result};
//!
//! # #[derive(Debug)]
//! # struct VaultClient;
//! # impl VaultClient {
//! #     async fn wrap(&self, _: &str, _: &str, bytes: &[u8]) -> std::io::Result<Vec<u8>> { Ok(bytes.to_vec()) }
//! #     async fn unwrap(&self, _: &str, _: &str, bytes: &[u8]) -> std::io::Result<Vec<u8>> { Ok(bytes.to_vec()) }
//! # }
//! #[derive(Debug)]
//! struct VaultKey {
//!     id: String,
//!     vault: VaultClient, // yours
//! }
//!
//! #[async_trait]
//! impl KeyEncryptionKey for VaultKey {
//!     fn key_id(&self) -> &str {
//!         &self.id
//!     }
//!
//!     fn algorithm(&self) -> &str {
//!         "RSA-OAEP"
//!     }
//!
//!     async fn wrap(&self, content_key: &ContentKey) -> Result<Vec<u8>> {
//!         let wrapped = self.vault.wrap(&self.id, "RSA-OAEP", content_key.as_bytes()).await;
//!         wrapped.map_err(|why| Error::Encryption(format!("the vault did not wrap: {why}")))
//!     }
//!
//!     async fn unwrap_key(&self, wrapped: &[u8], algorithm: &str) -> Result<ContentKey> {
//!         let bytes = self.vault.unwrap(&self.id, algorithm, wrapped).await;
//!         bytes.map_err(|why| Error::Encryption(format!("the vault did not unwrap: {why}")))?.try_into()
//!     }
//! }
//! ```

mod cipher;
mod in_table;
mod key;
mod key_ring;
mod local_key;
mod metadata;
mod policy;
#[cfg(test)]
mod tests;

/// For implementations of [`KeyEncryptionKey`] and [`KeyResolver`].
pub use async_trait::async_trait;
pub use key::{ContentKey, KeyEncryptionKey, KeyResolver};
pub use key_ring::KeyRing;
pub use local_key::LocalKey;
/// Marks a field of a struct for encryption.
pub use partita_client::Encrypted;
pub use policy::EncryptionPolicy;
