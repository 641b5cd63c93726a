//! One chunk as an entity, with its bytes in several properties.

use model::{Value, limits};

use partita_client::Entity;

const VALUE_BYTES_MAX: usize = limits::PROPERTY_VALUE_BYTES_MAX;
const VALUES_MAX: usize = 11;
/// Bytes of one chunk.
pub const BYTES_MAX: usize = VALUES_MAX * VALUE_BYTES_MAX;
/// Numbers of chunks have six digits.
pub const CHUNKS_MAX: u32 = 1_000_000;

// Azurite measures the entity in JSON, with Base64. The rest is for the keys.
const _: () = assert!(BYTES_MAX.div_ceil(3) * 4 + 32 * 1024 <= limits::ENTITY_BYTES_MAX);

pub fn write(partition: &str, number: u32, bytes: &[u8]) -> Entity {
    let mut entity = Entity::new(partition, row(number));
    for (n, value) in bytes.chunks(VALUE_BYTES_MAX).enumerate() {
        entity.set(property(n), value);
    }
    entity
}

/// The bytes, in one piece.
pub fn read(entity: &Entity) -> Vec<u8> {
    let values = (0..VALUES_MAX).map_while(|n| match entity.get(&property(n)) {
        Some(Value::Binary(value)) => Some(value.as_slice()),
        _ => None,
    });
    values.collect::<Vec<_>>().concat()
}

pub fn row(number: u32) -> String {
    format!("{number:06}")
}

fn property(n: usize) -> String {
    format!("D{n:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_whatever_their_number() {
        for length in [0, 1, VALUE_BYTES_MAX - 1, VALUE_BYTES_MAX, VALUE_BYTES_MAX + 1, BYTES_MAX] {
            let bytes: Vec<u8> = (0..length).map(|n| n as u8).collect();
            let entity = write("p", 7, &bytes);
            assert_eq!(entity.row_key, "000007");
            assert_eq!(entity.properties.len(), length.div_ceil(VALUE_BYTES_MAX));
            assert_eq!(read(&entity), bytes);
        }
    }
}
