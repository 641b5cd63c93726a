//! The properties of an entity that describe its large value.

use model::Value;

use partita_client::{Entity, Error, Result};

pub const GENERATION: &str = "LargeGeneration";
const BYTES: &str = "LargeBytes";
const CHUNKS: &str = "LargeChunks";
const SHA256: &str = "LargeSha256";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    pub generation: String,
    pub bytes: u64,
    pub chunks: u32,
    pub sha256: Vec<u8>,
}

/// Refuses an entity that has properties with these names.
pub fn check(entity: &Entity) -> Result<()> {
    match [GENERATION, BYTES, CHUNKS, SHA256].into_iter().find(|name| entity.get(name).is_some()) {
        None => Ok(()),
        Some(name) => Err(Error::Invalid(format!(
            "an entity with a large value can't have a property {name} of its own; leave it out or rename it"
        ))),
    }
}

pub fn generation(entity: &Entity) -> Option<String> {
    entity.text(GENERATION).map(str::to_owned)
}

impl Head {
    pub fn write(&self, mut entity: Entity) -> Entity {
        entity.set(GENERATION, self.generation.as_str());
        entity.set(BYTES, i64::try_from(self.bytes).unwrap_or(i64::MAX));
        entity.set(CHUNKS, i32::try_from(self.chunks).unwrap_or(i32::MAX));
        entity.set(SHA256, self.sha256.as_slice());
        entity
    }

    pub fn read(entity: &Entity) -> Result<Self> {
        let read = || {
            let (Some(Value::Int64(bytes)), Some(Value::Int32(chunks))) =
                (entity.get(BYTES), entity.get(CHUNKS))
            else {
                return None;
            };
            let Some(Value::Binary(sha256)) = entity.get(SHA256) else { return None };
            Some(Self {
                generation: generation(entity)?,
                bytes: u64::try_from(*bytes).ok()?,
                chunks: u32::try_from(*chunks).ok()?,
                sha256: sha256.clone(),
            })
        };
        read().ok_or_else(|| {
            Error::Unreadable(format!(
                "the entity with PartitionKey '{}' and RowKey '{}' has no large value; it was not written with one",
                entity.partition_key, entity.row_key
            ))
        })
    }

    /// Removes these properties from an entity.
    pub fn strip(entity: &mut Entity) {
        for name in [GENERATION, BYTES, CHUNKS, SHA256] {
            entity.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_properties_are_read_and_removed() {
        let head = Head { generation: "g".to_owned(), bytes: 5 << 40, chunks: 7, sha256: vec![1, 2] };
        let plain = Entity::new("p", "r").with("Type", "text");
        let mut entity = head.write(plain.clone());
        assert_eq!(Head::read(&entity).unwrap(), head);
        assert!(check(&entity).is_err() && check(&plain).is_ok());
        Head::strip(&mut entity);
        assert_eq!(entity, plain);
    }

    #[test]
    fn an_incomplete_description_is_refused() {
        let whole = Head { generation: "g".to_owned(), ..Head::default() }.write(Entity::new("p", "r"));
        for name in [GENERATION, BYTES, CHUNKS, SHA256] {
            let mut entity = whole.clone();
            entity.remove(name);
            assert!(Head::read(&entity).is_err(), "{name}");
            entity.set(name, true);
            assert!(Head::read(&entity).is_err(), "{name}");
        }
    }
}
