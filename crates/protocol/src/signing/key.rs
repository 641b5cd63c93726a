//! Account keys. They sign and verify, and are never shown.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

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
        let Ok(signature) = STANDARD.decode(signature) else { return false };
        hmac::verify(&self.key, string_to_sign.as_bytes(), &signature).is_ok()
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
