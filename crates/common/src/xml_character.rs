//! The characters that XML can't carry: controls other than tab and line ends, and two that are no characters.

/// Whether XML forbids this character, both as it is and as a reference.
pub fn is_forbidden(c: char) -> bool {
    matches!(c, '\0'..' ' | '\u{fffe}' | '\u{ffff}') && !matches!(c, '\t' | '\n' | '\r')
}

/// Bytes that are looked at together.
const BLOCK: usize = 64;
/// The first byte of U+FFFE and U+FFFF, and of others; in UTF-8 it is never anything but a first byte.
const LEAD: u8 = 0xef;

/// Where the first forbidden character is. Long texts without any cost little: whole blocks are passed over at once.
pub fn find_forbidden(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    for (block, place) in bytes.chunks(BLOCK).zip((0..).step_by(BLOCK)) {
        // Without a way out, so that it is compiled to vector instructions.
        let is_suspicious = block.iter().fold(false, |found, byte| found | (*byte < b' ') | (*byte == LEAD));
        if is_suspicious {
            let within = place..place + block.len();
            if let Some(found) = within.into_iter().find(|at| is_forbidden_at(bytes, *at)) {
                return Some(found);
            }
        }
    }
    None
}

fn is_forbidden_at(bytes: &[u8], at: usize) -> bool {
    match bytes[at] {
        b'\t' | b'\n' | b'\r' => false,
        LEAD => matches!(bytes.get(at + 1..at + 3), Some([0xbf, 0xbe | 0xbf])),
        byte => byte < b' ',
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_forbidden_character_is_found_wherever_it_is() {
        for forbidden in ['\0', '\u{1f}', '\u{b}', '\u{fffe}', '\u{ffff}'] {
            for before in 0..3 * BLOCK {
                for filler in ["x", "é", "\u{fffd}", "\t", "😀", "\u{efff}"] {
                    let start = filler.repeat(before);
                    assert_eq!(find_forbidden(&format!("{start}{forbidden}{start}")), Some(start.len()));
                    assert_eq!(find_forbidden(&start), None);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn it_is_the_first_that_is_forbidden(
            text in prop::collection::vec(
                prop_oneof![any::<char>(), Just('a'), Just('\n'), Just('\u{fffe}'), Just('\u{1}'), Just('\u{fffc}')],
                0..200,
            ),
        ) {
            let text: String = text.into_iter().collect();
            prop_assert_eq!(find_forbidden(&text), text.find(is_forbidden));
        }
    }
}
