//! JSON strings as the service writes them: everything beyond ASCII as lower-case `\u` escapes.

use std::io::Write as _;

/// Blocks of this many bytes are checked at once; the compiler uses vector instructions.
const BLOCK: usize = 64;
const WORD: usize = size_of::<u64>();

/// Whether a byte is written as it is.
fn is_plain(byte: u8) -> bool {
    // One comparison for both bounds: as signed numbers, bytes beyond ASCII are negative.
    byte.cast_signed() >= b' '.cast_signed() && byte != b'"' && byte != b'\\'
}

fn is_plain_block(block: &[u8; BLOCK]) -> bool {
    let special = |byte: u8| {
        u8::from(byte.cast_signed() < b' '.cast_signed()) | u8::from(byte == b'"') | u8::from(byte == b'\\')
    };
    block.iter().fold(0, |found, byte| found | special(*byte)) == 0
}

/// Whether each of eight bytes is. Names and most values have at most sixteen.
fn is_plain_word(word: u64) -> bool {
    const ONES: u64 = u64::MAX / 255;
    const HIGHS: u64 = ONES << 7;
    // A borrow can make a byte look special that is not, but only next to a byte that is.
    let below = |word: u64, bound: u8| word.wrapping_sub(ONES * u64::from(bound)) & !word;
    let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (word | below(word, b' ') | is(b'"') | is(b'\\')) & HIGHS == 0
}

/// Whether all of it is written as it is. Then it is ASCII, and need not be checked for UTF-8.
#[inline]
pub(super) fn is_plain_text(bytes: &[u8]) -> bool {
    let (blocks, short) = bytes.as_chunks::<BLOCK>();
    if !blocks.iter().all(is_plain_block) {
        return false;
    }
    let (words, few) = short.as_chunks::<WORD>();
    if !words.iter().all(|word| is_plain_word(u64::from_le_bytes(*word))) {
        return false;
    }
    // The last word overlaps the one before it, so that few bytes need not be checked one by one.
    match bytes.last_chunk::<WORD>() {
        Some(last) => few.is_empty() || is_plain_word(u64::from_le_bytes(*last)),
        None => few.iter().all(|byte| is_plain(*byte)),
    }
}

/// How far to look ahead. The text after an escaped character is searched again, so without a bound a text of such
/// characters would take quadratic time.
const AHEAD: usize = 256;

/// How many bytes at the start are written as they are. All of them are ASCII, so the cut is between characters.
fn plain_length(bytes: &[u8]) -> usize {
    let blocks = bytes.as_chunks::<BLOCK>().0.iter().take_while(|block| is_plain_block(block)).count();
    let rest = &bytes[blocks * BLOCK..];
    blocks * BLOCK + rest.iter().position(|byte| !is_plain(*byte)).unwrap_or(rest.len())
}

pub fn write_string(out: &mut Vec<u8>, text: &str) {
    if is_plain_text(text.as_bytes()) {
        write_plain_string(out, text.as_bytes());
    } else {
        out.push(b'"');
        write_escaped(out, text);
        out.push(b'"');
    }
}

/// For text without characters that need escaping.
#[inline]
pub(super) fn write_plain_string(out: &mut Vec<u8>, text: &[u8]) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    out.extend_from_slice(text);
    out.push(b'"');
}

pub(super) fn write_escaped(out: &mut Vec<u8>, text: &str) {
    let mut rest = text;
    while !rest.is_empty() {
        let ahead = &rest.as_bytes()[..rest.len().min(AHEAD)];
        // Such characters seldom come alone. If the next one needs escaping too, no search is needed.
        let plain = if is_plain(ahead[0]) { plain_length(ahead) } else { 0 };
        let (plain, special) = rest.split_at(plain);
        out.extend_from_slice(plain.as_bytes());
        if plain.len() == ahead.len() {
            rest = special;
            continue;
        }
        let mut chars = special.chars();
        match chars.next() {
            None => break,
            Some('"') => out.extend_from_slice(b"\\\""),
            Some('\\') => out.extend_from_slice(b"\\\\"),
            Some('\n') => out.extend_from_slice(b"\\n"),
            Some('\r') => out.extend_from_slice(b"\\r"),
            Some('\t') => out.extend_from_slice(b"\\t"),
            Some(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a Vec can't fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
        rest = chars.as_str();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn strings_are_escaped_as_recorded() {
        let mut out = Vec::new();
        write_string(&mut out, "a\"\\/\n\u{1}é𝄞'<>&\u{7f}");
        assert_eq!(
            out,
            br#""a\"\\/\n\u0001\u00e9\ud834\udd1e'<>&"#.iter().chain(b"\x7f\"").copied().collect::<Vec<_>>()
        );
    }

    #[test]
    fn what_must_be_escaped_is_found_wherever_looking_ahead_ends() {
        for length in AHEAD - 3..AHEAD + 3 {
            for special in ["é", "𝄞", "\"", "\n", ""] {
                let text = format!("{}{special}{}{special}", "a".repeat(length), "b".repeat(AHEAD));
                let mut out = Vec::new();
                write_string(&mut out, &text);
                assert!(out.is_ascii());
                assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
            }
        }
    }

    #[test]
    fn a_byte_that_is_not_plain_is_found_at_every_place() {
        for length in 0..3 * BLOCK {
            let text = vec![b'a'; length];
            assert!(is_plain_text(&text));
            for at in 0..length {
                for special in [0, 0x1f, b'"', b'\\', 0x80, 0xff] {
                    let mut text = text.clone();
                    text[at] = special;
                    assert!(!is_plain_text(&text), "{special} at {at} of {length}");
                    assert_eq!(plain_length(&text), at, "{special} of {length}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn long_strings_read_back(text in "[ -~]{0,100}(.|[ -~]{0,40}){0,8}") {
            let mut out = Vec::new();
            write_string(&mut out, &text);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }

        #[test]
        fn a_word_is_plain_if_each_of_its_bytes_is(bytes in prop::array::uniform8(prop_oneof![
            b' '..=0x7f_u8, Just(b'"'), Just(b'\\'), Just(0x1f), Just(b'!'), Just(b'#'), Just(b'['), any::<u8>(),
        ])) {
            let plain = bytes.iter().all(|byte| is_plain(*byte));
            prop_assert_eq!(is_plain_word(u64::from_le_bytes(bytes)), plain);
            prop_assert_eq!(is_plain_text(&bytes), plain);
        }

        #[test]
        fn strings_read_back(text in any::<String>()) {
            let mut out = Vec::new();
            write_string(&mut out, &text);
            prop_assert!(out.is_ascii());
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }
    }
}
