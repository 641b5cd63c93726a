//! Continuation tokens: any text can be carried in one, and any token is read or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::token::{decode, encode};

fuzz_target!(|text: &str| {
    if let Some(carried) = decode(text) {
        assert_eq!(decode(&encode(&carried)), Some(carried));
    }
    assert_eq!(decode(&encode(text)).as_deref(), Some(text));
});
