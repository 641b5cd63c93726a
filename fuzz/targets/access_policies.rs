//! Stored access policies: what is accepted is stored as its own answer, and reads back as the same policies.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::access_policies::{read, write};

fuzz_target!(|body: &[u8]| {
    let Ok(policies) = read(body) else { return };
    let stored = write(&policies);
    assert_eq!(read(&stored), Ok(policies), "{}", String::from_utf8_lossy(&stored));
});
