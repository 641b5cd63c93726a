//! Account keys. They sign and verify, and never show themselves.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;

/// An account key, ready to sign with.
#[derive(Clone)]
pub struct AccountKey(Hmac<Sha256>);

impl AccountKey {
    /// From the Base64 text Azure shows.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text.trim()).ok().filter(|bytes| !bytes.is_empty())?;
        Hmac::new_from_slice(&bytes).ok().map(Self)
    }

    pub fn sign(&self, string_to_sign: &str) -> String {
        let mut mac = self.0.clone();
        mac.update(string_to_sign.as_bytes());
        STANDARD.encode(mac.finalize().into_bytes())
    }

    /// Compares in constant time; anything that is not the signature's Base64 is just wrong.
    pub fn verifies(&self, string_to_sign: &str, signature: &str) -> bool {
        let Ok(signature) = STANDARD.decode(signature) else { return false };
        let mut mac = self.0.clone();
        mac.update(string_to_sign.as_bytes());
        mac.verify_slice(&signature).is_ok()
    }
}

impl fmt::Debug for AccountKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccountKey(redacted)")
    }
}
