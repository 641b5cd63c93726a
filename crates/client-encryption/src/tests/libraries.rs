//! Entities that other libraries have written, byte by byte.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::*;
use crate::cipher::{EntityCipher, KeyOrder};
use crate::metadata::Dialect;
use crate::policy::seal;

fn base64(text: &str) -> Value {
    Value::Binary(BASE64.decode(text).unwrap())
}

fn vector_metadata(content_key: &ContentKey) -> Metadata {
    Metadata {
        key_id: KEY.into(),
        wrap_algorithm: "A256KW".into(),
        wrapped_key: now(local_key(KEY).wrap(content_key)).unwrap(),
        entity_iv: bytes(0x40),
        dialect: Dialect::Common,
    }
}

#[test]
fn the_bytes_are_those_of_the_python_library() {
    let content_key = ContentKey::try_from(&bytes::<32>(0)[..]).unwrap();
    let metadata = vector_metadata(&content_key);
    let stored = seal(plain(), &names(&["secret"]), &content_key, &metadata).unwrap();
    assert_eq!(stored.get("secret"), Some(&base64("m723HS5BaiyVFlKzMMutmA==")));
    assert_eq!(stored.get(PROPERTY_DETAILS), Some(&base64("xWxkQjvHIdOLOMRwvsz4MQ==")));
    assert_eq!(stored.get("age"), Some(&7.into()));
    let details = concat!(
        r#"{"WrappedContentKey":{"KeyId":"local:kek1","#,
        r#""EncryptedKey":"iNDAtKXHFfQo8VRl7igNYXRsOw5HU4GpSaF19o02DY+r4ZENHDforg==","Algorithm":"A256KW"},"#,
        r#""EncryptionAgent":{"Protocol":"1.0","EncryptionAlgorithm":"AES_CBC_256"},"#,
        r#""ContentEncryptionIV":"QEFCQ0RFRkdISUpLTE1OTw==","#,
        r#""KeyWrappingMetadata":{"EncryptionLibrary":"Partita "#,
        env!("CARGO_PKG_VERSION"),
        r#""}}"#
    );
    assert_eq!(stored.text(KEY_DETAILS), Some(details));
    assert_eq!(stored.properties.len(), 4);
    assert_eq!(now(policy().decrypt(stored)).unwrap(), plain());
}

#[test]
fn the_order_of_the_keys_changes_the_vector() {
    let content_key = ContentKey::try_from(&bytes::<32>(0)[..]).unwrap();
    let check = |order, property: &str, iv: u128| {
        let (entity_iv, partition_key, row_key) = (&bytes(0x40), "Coho", "42");
        let cipher = EntityCipher { content_key: &content_key, entity_iv, partition_key, row_key, order };
        assert_eq!(cipher.property_iv(property), iv.to_be_bytes(), "{order:?} {property}");
    };
    check(KeyOrder::RowKeyFirst, "secret", 0xa94433b92d13c59fe275ab89beec73cc);
    check(KeyOrder::PartitionKeyFirst, "secret", 0xb597ed3c1546b6fe7eda6d96171a6cf3);
    check(KeyOrder::RowKeyFirst, PROPERTY_DETAILS, 0xae2a6d7a925e4d0e0e72626dd1f942ed);
}

/// As Java's library writes it.
fn java_entity(metadata1: impl Fn(&str) -> String) -> Entity {
    let content_key = ContentKey::try_from(&bytes::<32>(0)[..]).unwrap();
    let metadata = vector_metadata(&content_key);
    let (partition_key, row_key, order) = ("Coho", "42", KeyOrder::PartitionKeyFirst);
    let entity_iv = &metadata.entity_iv;
    let cipher = EntityCipher { content_key: &content_key, entity_iv, partition_key, row_key, order };
    Entity::new(partition_key, row_key)
        .with("secret", cipher.encrypt("secret", "h\u{e9}llo"))
        .with("other", cipher.encrypt("other", ""))
        .with("age", 7)
        .with(PROPERTY_DETAILS, cipher.encrypt(PROPERTY_DETAILS, "[other, secret]"))
        .with(KEY_DETAILS, metadata1(&metadata.format()))
}

#[test]
fn an_entity_in_the_dialect_of_java_is_read() {
    let library = format!(r#""Partita {}""#, env!("CARGO_PKG_VERSION"));
    let named = java_entity(|text| text.replace(&library, r#""Java 8.6.6""#));
    let nameless = java_entity(|text| text.replace(&format!(r#"{{"EncryptionLibrary":{library}}}"#), "null"));
    let expected = plain().with("other", "");
    assert_eq!(now(policy().decrypt(named)).unwrap(), expected);
    assert_eq!(now(policy().decrypt(nameless)).unwrap(), expected);
}

/// What the Java library (azure-storage 8.6.6) stored, with the same key.
#[test]
fn entities_that_java_wrote_are_read() {
    let check = |stored: Entity, secret: &str, secret2: &str| {
        let read = now(policy().decrypt(stored)).unwrap();
        let plain = Entity::new(read.partition_key.as_str(), read.row_key.as_str());
        assert_eq!(read, plain.with("secret", secret).with("secret2", secret2).with("Active", true));
    };
    check(
        Entity::new("Coho", "42")
            .with("Active", true)
            .with("secret", base64("tnv3b91wyUufD+FyscUZmA=="))
            .with("secret2", base64("jBk1zRnofQyZZQZXJS29mA=="))
            .with(PROPERTY_DETAILS, base64("EVa3rA+r3i8GksAK7DqSdX1CPCgWr0EEzAZyBVfMsLE="))
            .with(
                KEY_DETAILS,
                details(
                    "yMlWs7xNqhL3wHlO4pofR17FijE/RLTITD3g6h/GYP6gg3AVze+gag==",
                    "2/Dux4ETms7yo717fxLK8A==",
                    "Java 8.6.6",
                ),
            ),
        "h\u{e9}llo",
        "two",
    );
    check(
        Entity::new("\u{434}\u{430}", "k")
            .with("Active", true)
            .with("secret", base64("unTEXuxcZ2n7eFMkt7liGA=="))
            .with("secret2", base64("qVFathPJ3FfLXNsCgjfzGPZpQD1ZfTqChyZrwyupi4PociXL2MnvJRRPR9lzHFh0"))
            .with(PROPERTY_DETAILS, base64("J2nj5l87mhGijku2Q5fjZgXPCgZVu/AEgV/oczEJdAg="))
            .with(
                KEY_DETAILS,
                details(
                    "rH3xm+uDPF2Niuf6+a1R9sfFrjHYlX2FX1kb4JM4y69fKRM6+OrxyA==",
                    "Fjv/MIWCYEOPlyocgomb3Q==",
                    "Java 8.6.6",
                ),
            ),
        "",
        &"x".repeat(40),
    );
}

/// What the Python library (azure-cosmosdb-table 1.0.6) stored, with the same key.
#[test]
fn an_entity_that_python_wrote_is_read() {
    let stored = Entity::new("Coho", "2")
        .with("secret", base64("X1JWheVGWJwH5wrbLGtD4Q=="))
        .with("secret2", base64("y3qKhas8EzAo8/6CcCPEew=="))
        .with(PROPERTY_DETAILS, base64("g3wqllwf9KWAUcSoYS2zT3cPBnmeblI+VCDg/7Q9BCU="))
        .with(
            KEY_DETAILS,
            details(
                "oQNyRWGPjVDN6Bm87vhp8ZtzcebXrJ8k7WGBP8eXV5wF+KcU77Ygrg==",
                "aD/KMe6n9fTjE5Fk4aIaaw==",
                "Python 1.4.2",
            ),
        );
    let read = now(policy().decrypt(stored)).unwrap();
    assert_eq!(read, Entity::new("Coho", "2").with("secret", "h\u{e9}llo").with("secret2", "two"));
}

/// As all libraries write it, except for white space.
fn details(wrapped: &str, iv: &str, library: &str) -> String {
    format!(
        r#"{{"WrappedContentKey": {{"KeyId": "{KEY}", "EncryptedKey": "{wrapped}", "Algorithm": "A256KW"}},
            "EncryptionAgent": {{"Protocol": "1.0", "EncryptionAlgorithm": "AES_CBC_256"}},
            "ContentEncryptionIV": "{iv}", "KeyWrappingMetadata": {{"EncryptionLibrary": "{library}"}}}}"#
    )
}
