//! Account keys. They sign and verify, and are never shown.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

/// A signature has 32 bytes, and decoding takes some more.
const SIGNATURE_ROOM: usize = 48;

/// An account key, ready to sign with.
#[derive(Clone)]
pub struct AccountKey {
    key: hmac::Key,
    bytes: usize,
}

impl AccountKey {
    /// From the Base64 text Azure shows.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text.trim()).ok().filter(|bytes| !bytes.is_empty())?;
        Some(Self { key: hmac::Key::new(hmac::HMAC_SHA256, &bytes), bytes: bytes.len() })
    }

    /// How long the key is.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn sign(&self, string_to_sign: &str) -> String {
        STANDARD.encode(hmac::sign(&self.key, string_to_sign.as_bytes()))
    }

    /// Compares in constant time. A signature that is not Base64 is wrong.
    pub fn verifies(&self, string_to_sign: &str, signature: &str) -> bool {
        // A longer one does not fit, and is wrong.
        let mut decoded = [0; SIGNATURE_ROOM];
        let Ok(length) = STANDARD.decode_slice(signature, &mut decoded) else { return false };
        hmac::verify(&self.key, string_to_sign.as_bytes(), &decoded[..length]).is_ok()
    }
}

impl fmt::Debug for AccountKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccountKey(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use super::AccountKey;

    #[test]
    fn keys_never_show_themselves() {
        let key = AccountKey::parse("c2VjcmV0").unwrap();
        assert_eq!(format!("{key:?}"), "AccountKey(redacted)");
    }
}
