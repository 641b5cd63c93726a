//! AES-256-CBC for the values of one entity, each with its own initialization vector. Knows names and texts, not entities.

use aes::Aes256;
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockDecryptMut, BlockEncryptMut, KeyIvInit};
use sha2::{Digest, Sha256};

use crate::ContentKey;

pub(crate) const IV_BYTES: usize = 16;
pub(crate) type Iv = [u8; IV_BYTES];

/// The order in which the entity's keys go into the initialization vector.
///
/// The format says partition key first. The first .NET library put the row key first by mistake, and all others except
/// Java's copied that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyOrder {
    RowKeyFirst,
    PartitionKeyFirst,
}

/// Encrypts and decrypts the values of one entity.
pub(crate) struct EntityCipher<'a> {
    pub content_key: &'a ContentKey,
    pub entity_iv: &'a Iv,
    pub partition_key: &'a str,
    pub row_key: &'a str,
    pub order: KeyOrder,
}

impl EntityCipher<'_> {
    pub fn encrypt(&self, property: &str, value: &str) -> Vec<u8> {
        cbc::Encryptor::<Aes256>::new(self.content_key.as_bytes().into(), &self.property_iv(property).into())
            .encrypt_padded_vec_mut::<Pkcs7>(value.as_bytes())
    }

    /// `None` for a wrong length, a wrong padding, or bytes that are not text. The reason must not be visible.
    pub fn decrypt(&self, property: &str, bytes: &[u8]) -> Option<String> {
        let plain = cbc::Decryptor::<Aes256>::new(
            self.content_key.as_bytes().into(),
            &self.property_iv(property).into(),
        )
        .decrypt_padded_vec_mut::<Pkcs7>(bytes);
        String::from_utf8(plain.ok()?).ok()
    }

    pub fn property_iv(&self, property: &str) -> Iv {
        let (first, second) = match self.order {
            KeyOrder::RowKeyFirst => (self.row_key, self.partition_key),
            KeyOrder::PartitionKeyFirst => (self.partition_key, self.row_key),
        };
        let hash = Sha256::new_with_prefix(self.entity_iv)
            .chain_update(first)
            .chain_update(second)
            .chain_update(property)
            .finalize();
        let mut iv = [0; IV_BYTES];
        iv.copy_from_slice(&hash[..IV_BYTES]);
        iv
    }
}
