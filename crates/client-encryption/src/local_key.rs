//! A symmetric key in memory: AES key wrap (RFC 3394).

use std::fmt;

use aes_kw::{KekAes128, KekAes192, KekAes256};
use async_trait::async_trait;
use zeroize::Zeroizing;

use crate::{ContentKey, KeyEncryptionKey};
use partita_client::{Error, Result};

/// A key of 16, 24 or 32 bytes in memory: `A128KW`, `A192KW` or `A256KW`.
///
/// `Debug` shows only its id, and drop wipes its memory.
pub struct LocalKey {
    id: String,
    cipher: Cipher,
}

enum Cipher {
    Aes128(KekAes128),
    Aes192(KekAes192),
    Aes256(KekAes256),
}

impl LocalKey {
    /// The id is stored with every entity, unencrypted. The key should be random bytes, not a password.
    pub fn new(id: impl Into<String>, key: &[u8]) -> Result<Self> {
        let id = id.into();
        let cipher = match key.len() {
            16 => KekAes128::try_from(key).map(Cipher::Aes128),
            24 => KekAes192::try_from(key).map(Cipher::Aes192),
            32 => KekAes256::try_from(key).map(Cipher::Aes256),
            _ => Err(aes_kw::Error::InvalidKekSize { size: key.len() }),
        };
        match cipher {
            Ok(cipher) => Ok(Self { id, cipher }),
            Err(_) => {
                Err(Error::Encryption(format!("key {id:?} has {} bytes; 16, 24 or 32 make a key", key.len())))
            }
        }
    }

    fn wrap_bytes(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        let wrapped = match &self.cipher {
            Cipher::Aes128(key) => key.wrap_vec(bytes),
            Cipher::Aes192(key) => key.wrap_vec(bytes),
            Cipher::Aes256(key) => key.wrap_vec(bytes),
        };
        wrapped
            .map_err(|_| Error::Encryption(format!("key {:?} wraps whole blocks of 8 bytes only", self.id)))
    }

    fn unwrap_bytes(&self, wrapped: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        let bytes = match &self.cipher {
            Cipher::Aes128(key) => key.unwrap_vec(wrapped),
            Cipher::Aes192(key) => key.unwrap_vec(wrapped),
            Cipher::Aes256(key) => key.unwrap_vec(wrapped),
        };
        bytes.map(Zeroizing::new).map_err(|_| {
            let id = &self.id;
            Error::Encryption(format!(
                "key {id:?} is another one than the content key was wrapped by, or that was damaged"
            ))
        })
    }
}

#[async_trait]
impl KeyEncryptionKey for LocalKey {
    fn key_id(&self) -> &str {
        &self.id
    }

    fn algorithm(&self) -> &str {
        match self.cipher {
            Cipher::Aes128(_) => "A128KW",
            Cipher::Aes192(_) => "A192KW",
            Cipher::Aes256(_) => "A256KW",
        }
    }

    async fn wrap(&self, content_key: &ContentKey) -> Result<Vec<u8>> {
        self.wrap_bytes(content_key.as_bytes())
    }

    async fn unwrap_key(&self, wrapped: &[u8], algorithm: &str) -> Result<ContentKey> {
        if algorithm != self.algorithm() {
            let (id, own) = (&self.id, self.algorithm());
            return Err(Error::Encryption(format!("key {id:?} unwraps {own}, not {algorithm:?}")));
        }
        ContentKey::try_from(self.unwrap_bytes(wrapped)?.as_slice())
    }
}

impl fmt::Debug for LocalKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalKey").field("id", &self.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    fn check(key: &str, bytes: &str, wrapped: &str) {
        let key = LocalKey::new("rfc", &hex(key)).unwrap();
        assert_eq!(key.wrap_bytes(&hex(bytes)).unwrap(), hex(wrapped));
        assert_eq!(*key.unwrap_bytes(&hex(wrapped)).unwrap(), hex(bytes));
    }

    #[test]
    fn wraps_as_rfc_3394_says() {
        let (key128, key192, key256) = (
            "000102030405060708090A0B0C0D0E0F",
            "000102030405060708090A0B0C0D0E0F1011121314151617",
            "000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F",
        );
        let (data128, data192, data256) = (
            "00112233445566778899AABBCCDDEEFF",
            "00112233445566778899AABBCCDDEEFF0001020304050607",
            "00112233445566778899AABBCCDDEEFF000102030405060708090A0B0C0D0E0F",
        );
        check(key128, data128, "1FA68B0A8112B447 AEF34BD8FB5A7B82 9D3E862371D2CFE5");
        check(key192, data128, "96778B25AE6CA435 F92B5B97C050AED2 468AB8A17AD84E5D");
        check(key256, data128, "64E8C3F9CE0F5BA2 63E9777905818A2A 93C8191E7D6E8AE7");
        check(key192, data192, "031D33264E15D332 68F24EC260743EDC E1C6C7DDEE725A93 6BA814915C6762D2");
        check(key256, data192, "A8F9BC1612C68B3F F6E6F4FBE30E71E4 769C8B80A32CB895 8CD5D17D6B254DA1");
        check(
            key256,
            data256,
            "28C9F404C4B810F4 CBCCB35CFB87F826 3F5786E2D80ED326 CBC7F0E71A99F43B FB988B9B7A02DD21",
        );
    }

    #[test]
    fn the_length_of_a_key_selects_the_algorithm() {
        for (bytes, algorithm) in [(16, "A128KW"), (24, "A192KW"), (32, "A256KW")] {
            assert_eq!(LocalKey::new("k", &vec![1; bytes]).unwrap().algorithm(), algorithm);
        }
        for bytes in [0, 15, 31, 33, 64] {
            let error = LocalKey::new("k", &vec![1; bytes]).unwrap_err().to_string();
            assert!(error.contains(&format!("{bytes} bytes")), "{error}");
        }
    }

    #[test]
    fn debug_shows_no_key() {
        let key = LocalKey::new("k1", &[0xAB; 32]).unwrap();
        assert_eq!(format!("{key:?}"), r#"LocalKey { id: "k1", .. }"#);
    }
}
