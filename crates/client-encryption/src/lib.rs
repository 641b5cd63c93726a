//! Encryption of String properties before they leave the program, in the format of the .NET, Java and Python table
//! libraries (`AES_CBC_256`, protocol 1.0): what they wrote is read here, and the other way round.
//!
//! Each entity has a random [`ContentKey`] that encrypts its properties. That key is *wrapped*, that is encrypted
//! itself, by a [`KeyEncryptionKey`] that never leaves its owner, and stored with the entity. An [`EncryptionPolicy`]
//! says what is encrypted and by which key:
//!
//! ```
//! use partita_client::Entity;
//! use partita_client_encryption::{EncryptionPolicy, LocalKey};
//!
//! # #[tokio::main]
//! # async fn main() -> partita_client::Result<()> {
//! let key = LocalKey::new("local:2026", &[7; 32])?; // read yours from where secrets are kept
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
//! # What it protects, and what not
//!
//! Whoever reads the table without the key learns neither the values nor which Binary properties are encrypted ones.
//! Keys, names of properties and lengths are not hidden. The format has **no signature**: whoever may write to the table
//! can put an older entity back, change a value so that it reads as other text, or store a plain one; the last alone
//! is always noticed, with [`require_encryption`](EncryptionPolicy::require_encryption). Nor can a service filter by
//! what it can't read, or merge into encrypted properties ([`check_merge`](EncryptionPolicy::check_merge)).
//!
//! # Change of keys
//!
//! An entity names the key it was wrapped by. A [`KeyRing`] wraps by its current key and finds older ones by name:
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
//! # Keys elsewhere, and RSA
//!
//! [`LocalKey`] is AES key wrap (`A128KW`, `A192KW`, `A256KW`). Any other kind, such as `RSA-OAEP` or a key in a vault,
//! is an implementation of [`KeyEncryptionKey`]:
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
/// Marks a field of a struct to be encrypted.
pub use partita_client::Encrypted;
pub use policy::EncryptionPolicy;
