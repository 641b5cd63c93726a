//! Every entity can be encrypted and decrypted, and no damaged input causes a panic.

use proptest::prelude::*;
use testing::{Reading, bytes_near, check_near, text_near};

use super::*;

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => any::<String>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<Vec<u8>>().prop_map(Value::from),
    ]
}

fn entity() -> impl Strategy<Value = Entity> {
    (
        any::<String>(),
        any::<String>(),
        prop::collection::btree_map("[a-zA-Z_\u{e9}][a-z0-9]{0,9}", value(), 0..8),
    )
        .prop_map(|(partition_key, row_key, properties)| Entity {
            properties,
            ..Entity::new(partition_key, row_key)
        })
}

/// Encrypts every property that can be encrypted.
fn greedy(entity: &Entity) -> EncryptionPolicy {
    let strings = entity.properties.iter().filter(|(_, value)| matches!(value, Value::String(_)));
    EncryptionPolicy::new(local_key(KEY)).encrypt_properties(strings.map(|(name, _)| name.clone()))
}

proptest! {
    #[test]
    fn an_encrypted_entity_is_decrypted(entity in entity()) {
        let policy = greedy(&entity);
        let stored = now(policy.encrypt(entity.clone())).unwrap();
        for (name, value) in &entity.properties {
            if let Value::String(_) = value {
                prop_assert!(matches!(stored.get(name), Some(Value::Binary(_))));
            } else {
                prop_assert_eq!(stored.get(name), Some(value));
            }
        }
        prop_assert_eq!(now(policy.decrypt(stored)).unwrap(), entity);
    }

    #[test]
    fn a_flipped_bit_in_the_metadata_is_an_error_or_makes_no_difference(
        entity in entity(), in_list: bool, at: prop::sample::Index, bit in 0..8u32,
    ) {
        let entity = entity.with("secret", "some text");
        let mut stored = now(greedy(&entity).encrypt(entity.clone())).unwrap();
        match in_list {
            true => {
                let Some(Value::Binary(bytes)) = stored.properties.get_mut(PROPERTY_DETAILS) else { panic!() };
                let at = at.index(bytes.len());
                bytes[at] ^= 1u8 << bit;
            }
            false => {
                let mut bytes = stored.text(KEY_DETAILS).unwrap().as_bytes().to_vec();
                let at = at.index(bytes.len());
                bytes[at] ^= 1u8 << (bit % 7);
                stored.set(KEY_DETAILS, String::from_utf8(bytes).unwrap());
            }
        }
        match now(greedy(&entity).decrypt(stored)) {
            Ok(read) => prop_assert!(!in_list && read == entity),
            Err(Error::Encryption(_)) => {}
            Err(other) => prop_assert!(false, "{:?}", other),
        }
    }

    // CBC does not detect every change: the value may decrypt to another text.
    #[test]
    fn a_flipped_bit_in_a_value_changes_only_that_value(
        entity in entity(), text: String, at: prop::sample::Index, bit in 0..8u32,
    ) {
        let entity = entity.with("secret", text);
        let mut stored = now(greedy(&entity).encrypt(entity.clone())).unwrap();
        let Some(Value::Binary(bytes)) = stored.properties.get_mut("secret") else { panic!() };
        let at = at.index(bytes.len());
        bytes[at] ^= 1u8 << bit;
        match now(greedy(&entity).decrypt(stored)) {
            Ok(read) => {
                prop_assert_ne!(read.text("secret"), entity.text("secret"));
                let rest = |entity: &Entity| entity.clone().with("secret", "");
                prop_assert_eq!(rest(&read), rest(&entity));
            }
            Err(error) => prop_assert!(error.to_string().contains(r#"property "secret" can't be decrypted"#)),
        }
    }
}

#[test]
fn changed_metadata_is_an_error_or_makes_no_difference() {
    let stored = (entity(), prop::sample::select(vec![true, false])).prop_map(|(entity, in_list)| {
        let entity = entity.with("secret", "some text");
        let stored = now(greedy(&entity).encrypt(entity.clone())).unwrap();
        (entity, stored, in_list)
    });
    let stored = stored.prop_flat_map(|(entity, stored, in_list)| {
        let Some(Value::Binary(list)) = stored.get(PROPERTY_DETAILS).cloned() else { panic!("no list") };
        let key = stored.text(KEY_DETAILS).unwrap().to_owned();
        let pieces = &["\"", ":", ",", "{", "}", "null", "1.0", "\"Protocol\":\"1.0\",", " ", "AES_CBC_256"];
        let near = (bytes_near(Just(list.clone())), text_near(Just(key.clone()), pieces));
        near.prop_map(move |(near_list, near_key)| {
            let (list, key) = if in_list { (near_list, key.clone()) } else { (list.clone(), near_key) };
            (entity.clone(), stored.clone().with(PROPERTY_DETAILS, list).with(KEY_DETAILS, key))
        })
    });
    // Nearly every change is detected, so this counts how many are still JSON.
    check_near(stored, 30..=95, |(entity, stored)| {
        let is_json = serde_json::from_str::<serde_json::Value>(stored.text(KEY_DETAILS).unwrap()).is_ok();
        let read = now(greedy(&entity).decrypt(stored));
        match &read {
            Ok(read) => prop_assert_eq!(read, &entity),
            Err(Error::Encryption(_)) => {}
            Err(other) => prop_assert!(false, "{:?}", other),
        }
        Ok(if is_json { Reading::Accepted } else { Reading::Refused })
    });
}
