//! Any entity comes back, and nothing that is read, however damaged, makes it panic.

use proptest::prelude::*;

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

/// Encrypts whatever can be.
fn greedy(entity: &Entity) -> EncryptionPolicy {
    let strings = entity.properties.iter().filter(|(_, value)| matches!(value, Value::String(_)));
    EncryptionPolicy::new(local_key(KEY)).encrypt_properties(strings.map(|(name, _)| name.clone()))
}

proptest! {
    #[test]
    fn what_is_encrypted_is_decrypted(entity in entity()) {
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
    fn a_flipped_bit_in_the_metadata_is_an_error_or_has_no_meaning(
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

    // CBC can't tell every change: another text may come out, but only of this property.
    #[test]
    fn a_flipped_bit_in_a_value_harms_that_value_alone(
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

    #[test]
    fn nothing_that_is_read_makes_it_panic(
        entity in entity(), metadata: String, list: Vec<u8>,
    ) {
        let read = now(policy().decrypt(entity.with(KEY_DETAILS, metadata).with(PROPERTY_DETAILS, list)));
        prop_assert!(matches!(read, Err(Error::Encryption(_))));
    }
}
