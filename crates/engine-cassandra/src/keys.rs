//! Keys as the cluster's columns hold them.
//!
//! Each is the store's own order-preserving encoding behind a byte 01: a PartitionKey or RowKey may be empty, and
//! not every server takes an empty column as part of a key.

use store::encoding::key;

const LEAD: u8 = 0x01;

/// A partition key or row key as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyBytes(Vec<u8>);

impl KeyBytes {
    pub fn of(text: &str) -> Self {
        let mut bytes = vec![LEAD];
        key::append_part(&mut bytes, text);
        Self(bytes)
    }

    /// As a column gave it.
    pub fn stored(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The smallest key above this one.
    pub fn successor(&self) -> Self {
        let mut bytes = self.0.clone();
        bytes.push(0);
        Self(bytes)
    }

    /// At or below every key.
    pub fn lowest() -> Self {
        Self(vec![LEAD])
    }

    /// Above every key.
    pub fn above_all() -> Self {
        Self(vec![LEAD + 1])
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The store's encoding, without the byte in front.
    pub fn encoded(&self) -> &[u8] {
        self.0.get(1..).unwrap_or_default()
    }
}

/// An entity's place as `store::PageBuilder` wants it.
pub fn place(partition: &KeyBytes, row: &KeyBytes) -> Vec<u8> {
    key::join(partition.encoded(), row.encoded())
}

/// A place above every row of a partition and not above any of another; `None` if no key is long enough to be
/// that place. After a partition of entities it is a key that an entity can have, because clients send it back.
pub fn place_after(partition: &KeyBytes) -> Option<Vec<u8>> {
    let is_entity = |place: &[u8]| key::decode_key(place).map(|key| key.is_entity_key()).ok();
    let before = is_entity(&key::join(partition.encoded(), &[]))?;
    // The lowest character that a key can hold.
    let place = key::join(&[partition.encoded(), b" "].concat(), &[]);
    (is_entity(&place)? >= before).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_longest_key_has_no_place_after_it() {
        assert!(place_after(&KeyBytes::of(&"a".repeat(511))).is_some());
        assert!(place_after(&KeyBytes::of(&"a".repeat(512))).is_none());
        // Of another service.
        assert!(place_after(&KeyBytes::of(&"/".repeat(4095))).is_some());
        assert!(place_after(&KeyBytes::of(&"/".repeat(4096))).is_none());
    }

    proptest! {
        #[test]
        fn a_place_is_the_entitys_key(p in "[ab/𝄞\u{ffff}]{0,4}", r in "[ab/𝄞\u{ffff}]{0,4}") {
            let entity = model::EntityKey::parse_stored(&p, &r).unwrap();
            prop_assert_eq!(place(&KeyBytes::of(&p), &KeyBytes::of(&r)), key::encode(&entity));
        }

        #[test]
        fn nothing_lies_between_a_partition_and_the_place_after_it(p in "[ a/𝄞]{0,3}", q in "[ a/𝄞]{0,3}", r in "[ a\u{ffff}]{0,3}") {
            let after = place_after(&KeyBytes::of(&p)).unwrap();
            let entity = place(&KeyBytes::of(&q), &KeyBytes::of(&r));
            let above = KeyBytes::of(&q) > KeyBytes::of(&p);
            prop_assert_eq!(entity >= after, above, "{:?} {:?}", p, q);
        }

        #[test]
        fn nothing_lies_between_a_key_and_its_successor(a in "[ab]{0,3}", b in "[ab]{0,3}") {
            let (a, b) = (KeyBytes::of(&a), KeyBytes::of(&b));
            prop_assert!(a < a.successor());
            prop_assert_eq!(b > a, b >= a.successor());
            prop_assert!(KeyBytes::lowest() <= b && b < KeyBytes::above_all());
        }
    }
}
