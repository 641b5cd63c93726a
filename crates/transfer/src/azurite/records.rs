//! The records of Azurite's databases, as far as an import needs them.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

pub const TABLES: &str = "$TABLES_COLLECTION$";
pub const QUEUES: &str = "$QUEUES_COLLECTION$";
pub const MESSAGES: &str = "$MESSAGES_COLLECTION$";
pub const CONTAINERS: &str = "$CONTAINERS_COLLECTION$";
pub const BLOBS: &str = "$BLOBS_COLLECTION$";
pub const BLOCKS: &str = "$BLOCKS_COLLECTION$";
pub const EXTENTS: &str = "$EXTENTS_COLLECTION$";

#[derive(Debug, Deserialize)]
pub struct TableRecord {
    pub account: String,
    pub table: String,
}

#[derive(Debug, Deserialize)]
pub struct EntityRecord {
    #[serde(rename = "PartitionKey")]
    pub partition_key: String,
    #[serde(rename = "RowKey")]
    pub row_key: String,
    pub properties: Box<RawValue>,
}

/// A record that belongs to an account.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OfAccount {
    pub account_name: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueRecord {
    pub account_name: String,
    pub name: String,
    #[serde(default)]
    pub metadata: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageRecord {
    pub account_name: String,
    pub queue_name: String,
    /// In milliseconds since 1970, or as text.
    pub time_next_visible: Value,
    pub expiration_time: Value,
    pub persistency: Place,
}

/// Where content is: a part of an extent.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Place {
    pub id: String,
    pub offset: u64,
    pub count: u64,
}

#[derive(Debug, Deserialize)]
pub struct ExtentRecord {
    pub id: String,
    pub path: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerRecord {
    pub account_name: String,
    pub name: String,
    #[serde(default)]
    pub metadata: Option<BTreeMap<String, String>>,
    #[serde(default)]
    pub properties: ContainerPropertiesRecord,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerPropertiesRecord {
    #[serde(default)]
    pub public_access: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlobRecord {
    pub account_name: String,
    pub container_name: String,
    pub name: String,
    /// Empty for the blob itself.
    #[serde(default)]
    pub snapshot: String,
    #[serde(default)]
    pub deleted: bool,
    #[serde(default = "yes")]
    pub is_committed: bool,
    pub properties: BlobPropertiesRecord,
    #[serde(default)]
    pub metadata: Option<BTreeMap<String, String>>,
    #[serde(default)]
    pub blob_tags: Option<TagsRecord>,
    /// Of a blob that was put as a whole.
    #[serde(default)]
    pub persistency: Option<Place>,
    #[serde(default)]
    pub committed_blocks_in_order: Option<Vec<BlockRecord>>,
    #[serde(default)]
    pub page_ranges_in_order: Option<Vec<PagesRecord>>,
}

fn yes() -> bool {
    true
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlobPropertiesRecord {
    pub blob_type: String,
    #[serde(default)]
    pub content_length: u64,
    #[serde(default)]
    pub content_type: Option<String>,
    #[serde(default)]
    pub content_encoding: Option<String>,
    #[serde(default)]
    pub content_language: Option<String>,
    #[serde(default)]
    pub content_disposition: Option<String>,
    #[serde(default)]
    pub cache_control: Option<String>,
    #[serde(default, rename = "contentMD5")]
    pub content_md5: Option<Value>,
    #[serde(default)]
    pub blob_sequence_number: Option<u64>,
    #[serde(default)]
    pub access_tier: Option<String>,
    #[serde(default)]
    pub access_tier_inferred: Option<bool>,
    #[serde(default)]
    pub is_sealed: Option<bool>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TagsRecord {
    #[serde(default)]
    pub blob_tag_set: Vec<TagRecord>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct TagRecord {
    pub key: String,
    pub value: String,
}

#[derive(Clone, Debug, Deserialize)]
pub struct BlockRecord {
    /// In Base64; empty in append blobs.
    #[serde(default)]
    pub name: String,
    pub persistency: Place,
}

#[derive(Clone, Debug, Deserialize)]
pub struct PagesRecord {
    pub start: u64,
    /// The last byte.
    pub end: u64,
    pub persistency: Place,
}

/// A checksum as JavaScript writes the bytes of a buffer: an object with numbers as names, or with a list of numbers.
pub fn md5(value: &Value) -> Option<String> {
    let byte = |value: &Value| value.as_u64().and_then(|byte| u8::try_from(byte).ok());
    let bytes: Vec<u8> = match value {
        Value::String(text) => return Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Object(map) => match map.get("data") {
            Some(Value::Array(list)) => list.iter().map(byte).collect::<Option<_>>()?,
            _ => (0..map.len()).map(|at| byte(map.get(&at.to_string())?)).collect::<Option<_>>()?,
        },
        Value::Array(list) => list.iter().map(byte).collect::<Option<_>>()?,
        _ => return None,
    };
    (bytes.len() == 16).then(|| BASE64_STANDARD.encode(bytes))
}

/// A time in milliseconds since 1970, or as text.
pub fn time(value: &Value) -> Option<model::DateTime> {
    match value {
        Value::String(text) => model::DateTime::parse(text),
        value => {
            let milliseconds = std::time::Duration::from_millis(value.as_u64()?);
            model::DateTime::from_system_time(std::time::SystemTime::UNIX_EPOCH + milliseconds)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_checksum_is_read_in_every_form_of_a_buffer() {
        let bytes: Vec<u8> = (0..16).collect();
        let expected = Some("AAECAwQFBgcICQoLDA0ODw==".to_owned());
        let object: serde_json::Map<_, _> =
            bytes.iter().map(|byte| (byte.to_string(), json!(byte))).collect();
        for value in [
            Value::Object(object),
            json!({ "type": "Buffer", "data": bytes }),
            json!(bytes),
            json!("AAECAwQFBgcICQoLDA0ODw=="),
        ] {
            assert_eq!(md5(&value), expected, "{value}");
        }
        for value in [json!(null), json!({}), json!({ "0": 1 }), json!([256]), json!(""), json!({ "0": "x" })]
        {
            assert_eq!(md5(&value), None, "{value}");
        }
    }

    #[test]
    fn a_time_is_a_number_or_text() {
        let expected = model::DateTime::parse("2026-11-17T21:01:48.412Z");
        for value in [json!(1_794_949_308_412_u64), json!("2026-11-17T21:01:48.412Z")] {
            assert_eq!(time(&value), expected, "{value}");
        }
        assert_eq!((time(&json!(null)), time(&json!("soon"))), (None, None));
    }
}
