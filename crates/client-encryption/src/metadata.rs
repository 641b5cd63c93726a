//! The two properties that encryption adds to an entity: its wrapped key, and the names of the encrypted properties.
//!
//! Only parses and formats; encrypts nothing.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::cipher::{IV_BYTES, Iv, KeyOrder};

/// String: [`Metadata`] as JSON.
pub(crate) const KEY_DETAILS: &str = "_ClientEncryptionMetadata1";
/// Binary: the names of the encrypted properties, encrypted.
pub(crate) const PROPERTY_DETAILS: &str = "_ClientEncryptionMetadata2";

const PROTOCOL: &str = "1.0";
const ALGORITHM: &str = "AES_CBC_256";
/// Must not contain the word Java: by that word every library recognizes Java's format.
const LIBRARY: &str = concat!("Partita ", env!("CARGO_PKG_VERSION"));

/// What [`KEY_DETAILS`] says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Metadata {
    pub key_id: String,
    pub wrap_algorithm: String,
    pub wrapped_key: Vec<u8>,
    pub entity_iv: Iv,
    pub dialect: Dialect,
}

/// Which libraries wrote an entity, as far as they differ in the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Common,
    /// Every version of Java's library. Recognized by its name, or by no name: the first versions wrote none.
    Java,
}

impl Dialect {
    pub fn key_order(self) -> KeyOrder {
        match self {
            Self::Common => KeyOrder::RowKeyFirst,
            Self::Java => KeyOrder::PartitionKeyFirst,
        }
    }

    /// The names in [`PROPERTY_DETAILS`], or `None` if the text is not a list of names.
    pub fn parse_names(self, text: &str) -> Option<BTreeSet<String>> {
        match self {
            Self::Common => serde_json::from_str(text).ok(),
            Self::Java => {
                let names = text.strip_prefix('[')?.strip_suffix(']')?;
                Some(names.split(", ").filter(|name| !name.is_empty()).map(str::to_owned).collect())
            }
        }
    }
}

/// For [`PROPERTY_DETAILS`], in the common dialect.
pub(crate) fn format_names(names: &BTreeSet<String>) -> String {
    serde_json::Value::from_iter(names.iter().map(String::as_str)).to_string()
}

/// Why [`KEY_DETAILS`] can't be used. The message continues a sentence that begins with the property's name.
#[derive(Debug, Error)]
pub(crate) enum MetadataError {
    #[error("can't be read: {0}")]
    Json(#[from] serde_json::Error),
    #[error("names protocol {protocol:?}; only {PROTOCOL} is supported")]
    Protocol { protocol: String },
    #[error("names algorithm {algorithm:?}; only {ALGORITHM} is supported")]
    Algorithm { algorithm: String },
    #[error("contains a key that is not Base64: {0}")]
    Key(#[from] base64::DecodeError),
    #[error("has no ContentEncryptionIV of {IV_BYTES} bytes")]
    Iv,
}

impl Metadata {
    pub fn parse(text: &str) -> Result<Self, MetadataError> {
        let document: Document = serde_json::from_str(text)?;
        let EncryptionAgent { protocol, encryption_algorithm: algorithm } = document.encryption_agent;
        if protocol != PROTOCOL {
            return Err(MetadataError::Protocol { protocol });
        }
        if algorithm != ALGORITHM {
            return Err(MetadataError::Algorithm { algorithm });
        }
        let key = document.wrapped_content_key;
        let wrapped_key = BASE64.decode(key.encrypted_key)?;
        let entity_iv =
            BASE64.decode(document.content_encryption_iv).ok().and_then(|iv| Iv::try_from(iv).ok());
        Ok(Self {
            key_id: key.key_id,
            wrap_algorithm: key.algorithm,
            wrapped_key,
            entity_iv: entity_iv.ok_or(MetadataError::Iv)?,
            dialect: match document.key_wrapping_metadata {
                None => Dialect::Java,
                Some(KeyWrappingMetadata { encryption_library: Some(name) }) if name.contains("Java") => {
                    Dialect::Java
                }
                Some(_) => Dialect::Common,
            },
        })
    }

    /// Always names this library, in the common dialect.
    pub fn format(&self) -> String {
        let document = Document {
            wrapped_content_key: WrappedContentKey {
                key_id: self.key_id.clone(),
                encrypted_key: BASE64.encode(&self.wrapped_key),
                algorithm: self.wrap_algorithm.clone(),
            },
            encryption_agent: EncryptionAgent {
                protocol: PROTOCOL.into(),
                encryption_algorithm: ALGORITHM.into(),
            },
            content_encryption_iv: BASE64.encode(self.entity_iv),
            key_wrapping_metadata: Some(KeyWrappingMetadata { encryption_library: Some(LIBRARY.into()) }),
        };
        serde_json::to_string(&document).expect("structs of strings, which always serialize")
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Document {
    wrapped_content_key: WrappedContentKey,
    encryption_agent: EncryptionAgent,
    #[serde(rename = "ContentEncryptionIV")]
    content_encryption_iv: String,
    key_wrapping_metadata: Option<KeyWrappingMetadata>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct WrappedContentKey {
    key_id: String,
    encrypted_key: String,
    algorithm: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct EncryptionAgent {
    protocol: String,
    encryption_algorithm: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct KeyWrappingMetadata {
    encryption_library: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A document with these in it.
    fn document(protocol: &str, algorithm: &str, iv: &str, wrapping: &str) -> String {
        format!(
            r#"{{"WrappedContentKey":{{"KeyId":"k","EncryptedKey":"AAEC","Algorithm":"A256KW"}},
                "EncryptionAgent":{{"Protocol":"{protocol}","EncryptionAlgorithm":"{algorithm}"}},
                "ContentEncryptionIV":"{iv}"{wrapping}}}"#
        )
    }

    const IV: &str = "QEFCQ0RFRkdISUpLTE1OTw==";

    #[test]
    fn the_dialect_follows_from_the_name_of_the_library() {
        let check = |wrapping: &str, dialect| {
            let text = document("1.0", "AES_CBC_256", IV, wrapping);
            assert_eq!(Metadata::parse(&text).unwrap().dialect, dialect, "{wrapping}");
        };
        check("", Dialect::Java);
        check(r#","KeyWrappingMetadata":null"#, Dialect::Java);
        check(r#","KeyWrappingMetadata":{"EncryptionLibrary":"Java 8.6.6"}"#, Dialect::Java);
        check(r#","KeyWrappingMetadata":{}"#, Dialect::Common);
        check(r#","KeyWrappingMetadata":{"EncryptionLibrary":".NET 9.3.3"}"#, Dialect::Common);
        check(
            r#","KeyWrappingMetadata":{"EncryptionLibrary":"Python 1.4.2","Other":"1"},"More":{}"#,
            Dialect::Common,
        );
    }

    #[test]
    fn an_error_names_what_is_not_supported() {
        let check = |text: &str, word: &str| {
            let why = Metadata::parse(text).unwrap_err().to_string();
            assert!(why.contains(word), "{why}");
        };
        check(&document("2.0", "AES_CBC_256", IV, ""), r#""2.0""#);
        check(&document("1.0", "AES_GCM_256", IV, ""), r#""AES_GCM_256""#);
        check(&document("1.0", "AES_CBC_256", "QEFC", ""), "ContentEncryptionIV");
        check(&document("1.0", "AES_CBC_256", "?", ""), "ContentEncryptionIV");
        check("{}", "WrappedContentKey");
        check("", "EOF");
    }

    #[test]
    fn names_are_read_in_both_dialects() {
        let check = |dialect: Dialect, text: &str, names: Option<&[&str]>| {
            let names = names.map(|names| names.iter().map(ToString::to_string).collect());
            assert_eq!(dialect.parse_names(text), names, "{text}");
        };
        check(Dialect::Common, r#"["a", "b"]"#, Some(&["a", "b"]));
        check(Dialect::Common, r#"["a","b"]"#, Some(&["a", "b"]));
        check(Dialect::Common, "[]", Some(&[]));
        check(Dialect::Common, "[a, b]", None);
        check(Dialect::Common, r#"{"a":1}"#, None);
        check(Dialect::Java, "[a, b]", Some(&["a", "b"]));
        check(Dialect::Java, "[a]", Some(&["a"]));
        check(Dialect::Java, "[]", Some(&[]));
        check(Dialect::Java, "a, b]", None);
        check(Dialect::Java, "[", None);
    }

    #[test]
    fn formatted_metadata_is_parsed_back() {
        let metadata = Metadata {
            key_id: "https://vault/keys/\"k\"/1".into(),
            wrap_algorithm: "RSA-OAEP".into(),
            wrapped_key: vec![1, 2, 3],
            entity_iv: [9; IV_BYTES],
            dialect: Dialect::Common,
        };
        assert_eq!(Metadata::parse(&metadata.format()).unwrap(), metadata);
    }
}
