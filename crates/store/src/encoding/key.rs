//! Keys as bytes whose order is the service's order.
//!
//! `partition key ‖ 00 ‖ row key`, each in CESU-8: UTF-8, but characters above U+FFFF as two three-byte surrogates.
//! The byte order of CESU-8 is the order of UTF-16. No key has a character below U+0020. So 00 separates the two and
//! sorts below every byte of a key, and 01 after a partition key is above all its rows.

use std::borrow::Cow;

use model::{Cut, EntityKey, Key, KeyRange};

use crate::Fault;

const SEPARATOR: u8 = 0x00;
const ABOVE_PARTITION: u8 = 0x01;

pub fn encode(key: &EntityKey) -> Vec<u8> {
    let mut out = Vec::with_capacity(key.partition.as_str().len() + key.row.as_str().len() + 1);
    append(&mut out, key.partition.as_str(), key.row.as_str());
    out
}

pub fn append(out: &mut Vec<u8>, partition: &str, row: &str) {
    append_part(out, partition);
    out.push(SEPARATOR);
    append_part(out, row);
}

/// Joins the two parts of a key, for engines that store them separately.
pub fn join(partition: &[u8], row: &[u8]) -> Vec<u8> {
    [partition, &[SEPARATOR], row].concat()
}

/// The lowest bytes of the keys after the cut; `None` if there are none.
pub fn encode_cut(cut: &Cut) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    match cut {
        Cut::Before(partition, row) => append(&mut out, partition, row),
        Cut::After(partition, row) => {
            append(&mut out, partition, row);
            out.push(SEPARATOR);
        }
        Cut::AfterPartition(partition) => {
            append_part(&mut out, partition);
            out.push(ABOVE_PARTITION);
        }
        Cut::End => return None,
    }
    Some(out)
}

/// Lower bound, and upper bound if there is one.
pub fn encode_range(range: &KeyRange) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    Some((encode_cut(&range.start)?, encode_cut(&range.end)))
}

/// Reads the partition key and the row key from stored bytes.
pub fn decode(bytes: &[u8]) -> Result<(Cow<'_, str>, Cow<'_, str>), Fault> {
    // Nearly every key is UTF-8, and then it is checked only once.
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Some((partition, row)) = text.split_once(char::from(SEPARATOR))
    {
        return Ok((Cow::Borrowed(partition), Cow::Borrowed(row)));
    }
    let damaged = || Fault::damaged(format!("the stored key {bytes:02x?} can't be read"));
    let at = bytes.iter().position(|&b| b == SEPARATOR).ok_or_else(damaged)?;
    let partition = read_text(&bytes[..at]).ok_or_else(damaged)?;
    let row = read_text(&bytes[at + 1..]).ok_or_else(damaged)?;
    Ok((partition, row))
}

/// Reads a valid key of any service from stored bytes.
pub fn decode_key(bytes: &[u8]) -> Result<EntityKey, Fault> {
    let (partition, row) = decode(bytes)?;
    let key = |text: Cow<'_, str>| {
        Key::parse_stored(text.into_owned())
            .map_err(|_| Fault::damaged(format!("the stored key {bytes:02x?} is not a valid key")))
    };
    Ok(EntityKey { partition: key(partition)?, row: key(row)? })
}

/// A partition key or a row key alone.
pub fn append_part(out: &mut Vec<u8>, text: &str) {
    // F0 and above begin four-byte sequences. Only these differ between UTF-8 and CESU-8.
    if text.bytes().all(|b| b < 0xF0) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    for unit in text.encode_utf16() {
        match unit {
            0..0x80 => out.push(unit as u8),
            0x80..0x800 => out.extend([0xC0 | (unit >> 6) as u8, 0x80 | (unit & 0x3F) as u8]),
            _ => out.extend([
                0xE0 | (unit >> 12) as u8,
                0x80 | (unit >> 6 & 0x3F) as u8,
                0x80 | (unit & 0x3F) as u8,
            ]),
        }
    }
}

fn read_text(bytes: &[u8]) -> Option<Cow<'_, str>> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Some(Cow::Borrowed(text));
    }
    let mut units = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    let continuation = |byte: u8| (byte & 0xC0 == 0x80).then_some(u16::from(byte & 0x3F));
    while let [first, tail @ ..] = rest {
        let (unit, tail) = match (first, tail) {
            (0..0x80, _) => (u16::from(*first), tail),
            (0xC0..0xE0, [a, tail @ ..]) => (u16::from(first & 0x1F) << 6 | continuation(*a)?, tail),
            (0xE0..0xF0, [a, b, tail @ ..]) => {
                (u16::from(first & 0x0F) << 12 | continuation(*a)? << 6 | continuation(*b)?, tail)
            }
            _ => return None,
        };
        units.push(unit);
        rest = tail;
    }
    String::from_utf16(&units).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key_text() -> impl Strategy<Value = String> {
        let tricky = prop_oneof![
            Just(' '),
            Just('a'),
            Just('b'),
            Just('/'),
            Just('\u{7f}'),
            Just('é'),
            Just('\u{d7ff}'),
            Just('\u{e000}'),
            Just('\u{ffff}'),
            Just('𝄞'),
            Just('\u{10ffff}')
        ];
        let short = proptest::collection::vec(tricky, 0..5).prop_map(|chars| chars.into_iter().collect());
        // As long as a key may be, and one that only differs behind its middle.
        let long = prop_oneof![
            Just("/".repeat(4096)),
            Just("\u{ffff}".repeat(4096)),
            Just("𝄞".repeat(2048)),
            Just(format!("{}a", "𝄞".repeat(1024)))
        ];
        prop_oneof![8 => short, 1 => long]
    }

    fn entity_key() -> impl Strategy<Value = EntityKey> {
        (key_text(), key_text()).prop_map(|(p, r)| EntityKey::parse_stored(&p, &r).unwrap())
    }

    proptest! {
        #[test]
        fn bytes_order_as_keys_do(a in entity_key(), b in entity_key()) {
            prop_assert_eq!(encode(&a).cmp(&encode(&b)), a.cmp(&b));
        }

        #[test]
        fn bytes_read_back(key in entity_key()) {
            prop_assert_eq!(decode_key(&encode(&key)).unwrap(), key);
        }

        #[test]
        fn cuts_part_bytes_as_they_part_keys(key in entity_key(), p in "[ab\u{1}𝄞\u{ffff}]{0,4}", r in "[ab\u{1}𝄞\u{ffff}]{0,4}") {
            let place = Cut::before(key.partition.as_str(), key.row.as_str());
            for cut in [Cut::before(&p, &r), Cut::after(&p, &r), Cut::after_partition(&p), Cut::before_partition(&p), Cut::End] {
                let below = encode_cut(&cut).is_none_or(|bytes| encode(&key) < bytes);
                prop_assert_eq!(below, place < cut);
            }
        }
    }
}
