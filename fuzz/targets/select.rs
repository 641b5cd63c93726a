//! `$select` lists: each name comes out once and sorted, and the sorted list means the same.
#![no_main]

use std::cmp::Ordering;

use libfuzzer_sys::fuzz_target;
use model::{is_property_name, limits, ordinal_cmp};
use wire::Select;

fuzz_target!(|text: &str| {
    let select = match Select::parse(text) {
        Ok(select) => select,
        Err(refusal) => return fuzz::check_refusal(&refusal),
    };
    assert!(select.metadata_suffix().starts_with("&$select="));
    let Some(names) = select.names() else { return };
    assert!(!names.is_empty() && names.len() <= limits::SELECT_NAMES_MAX);
    assert!(names.iter().all(|name| is_property_name(name)));
    assert!(names.windows(2).all(|pair| ordinal_cmp(&pair[0], &pair[1]) == Ordering::Less));
    let again = Select::parse(&names.join(",")).expect("good names are a good list");
    assert_eq!(again.names(), Some(names));
});
