//! Paths and query strings, and that the link to an entity leads to it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::{Key, TableName};
use wire::url::{QueryString, Resource, entity_link, table_link};

fuzz_target!(|text: &str| {
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    if let Some(query) = QueryString::parse(query) {
        for name in query.names() {
            assert!(query.get(name).is_some());
        }
    }
    match Resource::parse(path) {
        Ok(Resource::Entity { table, partition, row }) => {
            // Links are made for stored entities, whose names and keys are valid.
            let good = TableName::parse(&table).is_ok()
                && Key::parse(partition.as_str()).is_ok()
                && Key::parse(row.as_str()).is_ok();
            if good {
                let link = entity_link(&table, &partition, &row);
                assert_eq!(Resource::parse(&link), Ok(Resource::Entity { table, partition, row }), "{link}");
            }
        }
        Ok(Resource::Table(table)) if TableName::parse(&table).is_ok() => {
            assert_eq!(Resource::parse(&table_link(&table)), Ok(Resource::Table(table)));
        }
        Ok(_) => {}
        Err(refusal) => fuzz::check_refusal(&refusal),
    }
    let [partition, row] = fuzz::lines(text);
    if Key::parse(partition).is_ok() && Key::parse(row).is_ok() {
        let (partition, row) = (partition.to_owned(), row.to_owned());
        let link = entity_link("Books", &partition, &row);
        let there = Resource::Entity { table: "Books".to_owned(), partition, row };
        assert_eq!(Resource::parse(&link), Ok(there), "{link}");
    }
});
