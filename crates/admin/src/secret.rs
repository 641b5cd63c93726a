//! Secrets: compared in constant time, never shown.

use std::fmt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use thiserror::Error;

/// A shorter token could be guessed.
const TOKEN_BYTES_MIN: usize = 16;
/// A file that is larger is not a token.
const TOKEN_BYTES_MAX: usize = 4096;

/// The administration's token: who sends it may do everything here.
#[derive(Clone)]
pub struct AdminToken(Secret);

/// Why there is no token. It is not shown.
#[derive(Debug, Error)]
pub enum TokenError {
    #[error("can't read admin-token-file {}: {source}; check its path and its permissions", .path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error(
        "the administration's token has {0} bytes; it takes {TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX} without spaces"
    )]
    Length(usize),
    #[error(
        "the administration's token has spaces or characters that are not ASCII; it takes letters and digits"
    )]
    Characters,
}

impl AdminToken {
    pub fn new(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        if !(TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&text.len()) {
            return Err(TokenError::Length(text.len()));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::Characters);
        }
        Ok(Self(Secret::new(text)))
    }

    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| TokenError::Unreadable { path: path.to_owned(), source })?;
        Self::new(&text)
    }

    pub(crate) fn is(&self, text: &str) -> bool {
        self.0.is(text)
    }
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdminToken(hidden)")
    }
}

/// Kept as a code that only tells whether another text is the same.
#[derive(Clone)]
struct Secret {
    key: hmac::Key,
    code: Vec<u8>,
}

impl Secret {
    fn new(text: &str) -> Self {
        let key = random_key();
        let code = hmac::sign(&key, text.as_bytes()).as_ref().to_vec();
        Self { key, code }
    }

    fn is(&self, text: &str) -> bool {
        hmac::verify(&self.key, text.as_bytes(), &self.code).is_ok()
    }
}

pub(crate) fn random_key() -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, &rand::random::<[u8; 32]>())
}

/// 32 random bytes in letters that need no quotes anywhere.
pub(crate) fn random_text() -> String {
    text_of(&rand::random::<[u8; 32]>())
}

pub(crate) fn text_of(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn bytes_of(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_itself_only_and_is_not_shown() {
        let token = AdminToken::new(" 0123456789abcdef\n").unwrap();
        assert!(token.is("0123456789abcdef"));
        for other in ["", "0123456789abcdeF", "0123456789abcdef ", "0123456789abcde"] {
            assert!(!token.is(other), "{other:?}");
        }
        assert_eq!(format!("{token:?}"), "AdminToken(hidden)");
    }

    #[test]
    fn tokens_that_can_be_guessed_or_not_be_sent_are_refused() {
        for (text, expected) in [
            ("", "has 0 bytes"),
            ("0123456789abcde", "has 15 bytes"),
            ("0123456789 abcdef", "spaces"),
            ("0123456789abcdeé", "not ASCII"),
        ] {
            let error = AdminToken::new(text).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains("0123456789"), "{error}");
        }
    }
}
