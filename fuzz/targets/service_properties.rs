//! Service properties: what is accepted is stored as its own answer, and that must mean the same when it is read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::ServiceKind;
use wire::service_properties::{ServiceProperties, Update};

fuzz_target!(|body: &[u8]| {
    let Ok(update) = Update::read(body) else { return };
    let mut properties = ServiceProperties::default();
    properties.apply(update);
    let stored = properties.write();
    let text = String::from_utf8_lossy(&stored);
    let read = ServiceProperties::read(ServiceKind::Table, &stored)
        .unwrap_or_else(|| panic!("can't be read again: {text}"));
    // Compared as text: metrics that are off do not show whether they would include APIs.
    assert_eq!(String::from_utf8_lossy(&read.write()), text);
    assert_eq!(read.cors, properties.cors, "{text}");
});
