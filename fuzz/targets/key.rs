//! Stored keys: any bytes are read or refused, and bytes sort as keys do. Four lines are two keys and two cuts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::{Cut, EntityKey, ordinal_cmp};
use store::encoding::key;

fuzz_target!(|data: &[u8]| {
    if let Ok(read) = key::decode_key(data) {
        assert_eq!(key::decode_key(&key::encode(&read)).expect("an encoded key reads back"), read);
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    let [a, b, c, d] = fuzz::lines(text);
    for (one, other) in [(a, b), (a, c), (b, d)] {
        let units = one.encode_utf16().cmp(other.encode_utf16());
        assert_eq!(ordinal_cmp(one, other), units, "{one:?} {other:?}");
    }
    let Ok(first) = EntityKey::parse(a, b) else { return };
    let bytes = key::encode(&first);
    assert_eq!(key::decode_key(&bytes).expect("an encoded key reads back"), first);
    let place = Cut::before(a, b);
    let cuts =
        [Cut::before(c, d), Cut::after(c, d), Cut::before_partition(c), Cut::after_partition(c), Cut::End];
    for cut in cuts {
        let below = key::encode_cut(&cut).is_none_or(|cut| bytes < cut);
        assert_eq!(below, place < cut, "{first:?} {cut:?}");
    }
    let Ok(second) = EntityKey::parse(c, d) else { return };
    assert_eq!(bytes.cmp(&key::encode(&second)), first.cmp(&second), "{first:?} {second:?}");
});
