//! Atom bodies: what becomes an entity is stored, shown and read back as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::DateTime;
use wire::EntityBody;
use wire::format::BodyFormat;

fuzz_target!(|body: &[u8]| {
    let _ = wire::read_table_name(BodyFormat::Atom, body);
    let Ok(read) = EntityBody::read(BodyFormat::Atom, body) else { return };
    match read.into_entity() {
        Ok(entity) => fuzz::check_entity(&entity, DateTime::MIN_STORED),
        Err(refusal) => fuzz::check_refusal(&refusal),
    }
});
