//! Chooses the type of a field's property, with `#[serde(with = "…")]`, if the default is not the right one.
//!
//! | module | property | fields |
//! |---|---|---|
//! | [`int32`], [`int64`] | Int32, Int64 | whole numbers of any type |
//! | [`double`] | Double | numbers of any type |
//! | [`string`] | String | what can be shown and parsed: `Display` and `FromStr` |
//! | [`json`] | String | anything, as JSON |
//! | [`binary`] | Binary | `Vec<u8>`, `[u8; N]`, and other types of bytes |
//! | [`date_time`] | DateTime | [`SystemTime`](std::time::SystemTime) and times that it converts to and from |
//! | [`guid`] | Guid | `[u8; 16]`, and other types of sixteen bytes |
//!
//! All of them also take an `Option`. Such a field also needs `#[serde(default)]`: for a field with a module, serde
//! otherwise reports a missing property, and `None` has no property.
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::net::Ipv4Addr;
//! use std::time::{Duration, SystemTime};
//!
//! use partita_client::{Entity, Value, edm};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Debug, Deserialize, PartialEq, Serialize)]
//! #[serde(rename_all = "PascalCase")]
//! struct Visit {
//!     #[serde(rename = "PartitionKey")]
//!     page: String,
//!     #[serde(rename = "RowKey", with = "edm::string")]
//!     number: u64,
//!     #[serde(with = "edm::int64")]
//!     bytes: u16,
//!     #[serde(with = "edm::int32")]
//!     retries: usize,
//!     #[serde(with = "edm::double")]
//!     score: i32,
//!     #[serde(with = "edm::string")]
//!     from: Ipv4Addr,
//!     #[serde(with = "edm::json")]
//!     tags: BTreeMap<String, Vec<u8>>,
//!     #[serde(with = "edm::binary")]
//!     digest: [u8; 4],
//!     #[serde(with = "edm::date_time")]
//!     at: SystemTime,
//!     #[serde(with = "edm::guid")]
//!     session: [u8; 16],
//!     picture: edm::Binary,
//!     #[serde(default, with = "edm::date_time")]
//!     left: Option<SystemTime>,
//! }
//!
//! let visit = Visit {
//!     page: "start".into(),
//!     number: 7,
//!     bytes: 512,
//!     retries: 0,
//!     score: 5,
//!     from: Ipv4Addr::LOCALHOST,
//!     tags: BTreeMap::from([("a".to_owned(), vec![1, 2])]),
//!     digest: [0xde, 0xad, 0xbe, 0xef],
//!     at: SystemTime::UNIX_EPOCH + Duration::from_secs(1),
//!     session: *b"0123456789abcdef",
//!     picture: vec![0xff, 0xd8].into(),
//!     left: None,
//! };
//! let entity = Entity::from_typed(&visit)?;
//! assert_eq!(
//!     entity,
//!     Entity::new("start", "7")
//!         .with("Bytes", 512_i64)
//!         .with("Retries", 0)
//!         .with("Score", 5.0)
//!         .with("From", "127.0.0.1")
//!         .with("Tags", r#"{"a":[1,2]}"#)
//!         .with("Digest", vec![0xde, 0xad, 0xbe, 0xef])
//!         .with("At", Value::DateTime("1970-01-01T00:00:01Z".parse()?))
//!         .with("Session", Value::Guid("30313233-3435-3637-3839-616263646566".parse()?))
//!         .with("Picture", vec![0xff, 0xd8])
//! );
//! assert_eq!(entity.into_typed::<Visit>()?, visit);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Value;

/// The two functions that serde calls in a module.
macro_rules! with {
    ($way:ty) => {
        use serde::{Deserializer, Serializer};

        use crate::typed::field::Field;

        /// For `#[serde(serialize_with = "…")]`, or with the whole module.
        pub fn serialize<T, M, S>(value: &T, serializer: S) -> Result<S::Ok, S::Error>
        where
            T: Field<$way, M>,
            S: Serializer,
        {
            value.write(serializer)
        }

        /// For `#[serde(deserialize_with = "…")]`, or with the whole module.
        pub fn deserialize<'de, T, M, D>(deserializer: D) -> Result<T, D::Error>
        where
            T: Field<$way, M>,
            D: Deserializer<'de>,
        {
            T::read(deserializer)
        }
    };
}

/// Whole numbers as Int64: what converts to and from `i64`, as far as it fits. Also for an `Option`.
pub mod int64 {
    with!(crate::typed::ways::Int64);
}

/// Whole numbers as Int32: what converts to and from `i32`, as far as it fits. Also for an `Option`.
pub mod int32 {
    with!(crate::typed::ways::Int32);
}

/// Numbers as Double: those of Rust, as far as a Double holds them exactly. Also for an `Option`.
pub mod double {
    with!(crate::typed::ways::Double);
}

/// What can be shown and parsed, as String: `Display` and `FromStr`. Also for an `Option`.
///
/// Use it for numbers in keys; note that `10` comes before `9`.
pub mod string {
    with!(crate::typed::ways::Text);
}

/// Bytes as Binary: `Vec<u8>`, `[u8; N]` and any type with `AsRef<[u8]>` and `TryFrom<Vec<u8>>`, such as `Box<[u8]>`. Also
/// for an `Option`.
pub mod binary {
    with!(crate::typed::ways::Bytes);
}

/// Times as DateTime: [`SystemTime`](std::time::SystemTime), and what converts to and from it, such as the types of the
/// crates chrono, jiff and time. Also for an `Option`.
///
/// A DateTime has a resolution of 100 ns; times are rounded down.
pub mod date_time {
    with!(crate::typed::ways::Time);
}

/// Sixteen bytes as Guid, in the order of its text: `[u8; 16]` and any type with `AsRef<[u8]>` and `TryFrom<Vec<u8>>`, such
/// as `Uuid` of the crate uuid. Also for an `Option`.
pub mod guid {
    with!(crate::typed::ways::SixteenBytes);
}

/// Anything as JSON in a String.
///
/// A value that is `null` in JSON, such as `None`, is not written. A property holds up to 32,768 characters.
pub mod json {
    use serde::de::{DeserializeOwned, Error as _};
    use serde::ser::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// For `#[serde(serialize_with = "…")]`, or with the whole module.
    pub fn serialize<T: Serialize + ?Sized, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let text = serde_json::to_string(value).map_err(S::Error::custom)?;
        if text == "null" { serializer.serialize_none() } else { serializer.serialize_some(&text) }
    }

    /// For `#[serde(deserialize_with = "…")]`, or with the whole module.
    pub fn deserialize<'de, T: DeserializeOwned, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        let text = text.as_deref().unwrap_or("null");
        serde_json::from_str(text)
            .map_err(|error| D::Error::custom(format!("not the JSON expected: {error}")))
    }
}

/// Bytes that become a Binary property without `#[serde(with)]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Binary(pub Vec<u8>);

impl From<Vec<u8>> for Binary {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl From<Binary> for Vec<u8> {
    fn from(Binary(bytes): Binary) -> Self {
        bytes
    }
}

impl From<Binary> for Value {
    fn from(Binary(bytes): Binary) -> Self {
        Self::Binary(bytes)
    }
}

impl AsRef<[u8]> for Binary {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Serialize for Binary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Binary {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_byte_buf(BinaryVisitor)
    }
}

struct BinaryVisitor;

impl<'de> Visitor<'de> for BinaryVisitor {
    type Value = Binary;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Binary, E> {
        Ok(Binary(bytes.to_vec()))
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Binary, E> {
        Ok(Binary(bytes))
    }

    /// In JSON, bytes are a list of numbers.
    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Binary, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = sequence.next_element()? {
            bytes.push(byte);
        }
        Ok(Binary(bytes))
    }
}
