//! Text that JSON answers show as it is: ASCII without control characters, quotes and backslashes. The service escapes everything
//! else.

/// Blocks of this many bytes are checked at once; the compiler uses vector instructions.
const BLOCK: usize = 64;
const WORD: usize = size_of::<u64>();

/// Whether a byte is written as it is.
#[inline]
pub fn is_plain(byte: u8) -> bool {
    // One comparison for both bounds: as signed numbers, bytes beyond ASCII are negative.
    byte.cast_signed() >= b' '.cast_signed() && byte != b'"' && byte != b'\\'
}

fn is_plain_block(block: &[u8; BLOCK]) -> bool {
    let special = |byte: u8| {
        u8::from(byte.cast_signed() < b' '.cast_signed()) | u8::from(byte == b'"') | u8::from(byte == b'\\')
    };
    block.iter().fold(0, |found, byte| found | special(*byte)) == 0
}

/// The highest bit of the first of eight bytes that is not; zero if all are. Bits above it mean nothing.
#[inline]
fn special(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const HIGHS: u64 = ONES << 7;
    // A borrow can make a byte look special that is not, but only above a byte that is.
    let below = |word: u64, bound: u8| word.wrapping_sub(ONES * u64::from(bound)) & !word;
    let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (word | below(word, b' ') | is(b'"') | is(b'\\')) & HIGHS
}

/// Whether each of eight bytes is. Names and most values have at most sixteen.
#[inline]
fn is_plain_word(word: u64) -> bool {
    special(word) == 0
}

/// Whether all of it is written as it is. Then it is ASCII, and need not be checked for UTF-8.
#[inline]
pub fn is_plain_text(bytes: &[u8]) -> bool {
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

/// How many bytes at the start are written as they are. All of them are ASCII, so the cut is between characters.
pub fn plain_length(bytes: &[u8]) -> usize {
    let blocks = bytes.as_chunks::<BLOCK>().0.iter().take_while(|block| is_plain_block(block)).count();
    let mut length = blocks * BLOCK;
    while let Some(word) = bytes[length..].first_chunk() {
        let special = special(u64::from_le_bytes(*word));
        if special != 0 {
            return length + special.trailing_zeros() as usize / 8;
        }
        length += WORD;
    }
    let rest = &bytes[length..];
    length + rest.iter().position(|byte| !is_plain(*byte)).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        fn a_word_is_plain_if_each_of_its_bytes_is(bytes in prop::array::uniform8(prop_oneof![
            b' '..=0x7f_u8, Just(b'"'), Just(b'\\'), Just(0x1f), Just(b'!'), Just(b'#'), Just(b'['), any::<u8>(),
        ])) {
            let plain = bytes.iter().all(|byte| is_plain(*byte));
            prop_assert_eq!(is_plain_word(u64::from_le_bytes(bytes)), plain);
            prop_assert_eq!(is_plain_text(&bytes), plain);
        }
    }
}
