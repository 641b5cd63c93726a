//! Stored rows: any bytes give a value or a fault, and all ways of reading them agree.
#![no_main]

use std::borrow::Cow;

use libfuzzer_sys::fuzz_target;
use model::{Entity, EntityKey, Properties, UnreadName as _, UnreadValue as _};
use store::{RawRow, RowDraft, StoredRow};

const WANTED: [&str; 3] = ["A", "B", "Missing"];

fuzz_target!(|bytes: &[u8]| {
    let raw = RawRow::new(bytes);
    let mut found = [None; WANTED.len()];
    let searched = raw.find(&WANTED, &mut found);
    let shown = StoredRow::new(bytes.to_vec()).show(|time, properties| {
        let read = properties.filter_map(|(name, value)| name.text().zip(value.value()));
        (time, fuzz::told(read))
    });
    let Ok(row) = raw.open() else {
        assert!(shown.is_err(), "a row that can't be opened was shown");
        return;
    };
    assert_eq!(raw.timestamp().expect("an opened row has a time"), row.timestamp());
    let told = fuzz::told(row.properties());
    assert_eq!(shown.expect("an opened row is shown"), (row.timestamp(), fuzz::told(row.properties())));
    searched.expect("an opened row is searched");
    for (name, value) in WANTED.iter().zip(found) {
        let first = told.iter().find(|(known, _)| known == name);
        let value = fuzz::told(value.map(|value| (*name, value)).into_iter()).pop();
        assert_eq!(first, value.as_ref());
    }
    let again = RowDraft::new(row.properties()).stamp(row.timestamp());
    assert_eq!((again.timestamp(), fuzz::told(again.view().properties())), (row.timestamp(), told));

    // A row that an entity could have is also shown and read by a client.
    let list = row.properties().map(|(name, value)| (Cow::Borrowed(name), model::ValueCow::Borrowed(value)));
    let key = EntityKey::parse("partition", "row").expect("a good key");
    if let Ok(properties) = Properties::new(list.collect())
        && let Ok(entity) = Entity::new(key, properties)
    {
        fuzz::check_entity(&entity, row.timestamp());
    }
});
