//! JSON strings as the service writes them: everything beyond ASCII as lower-case `\u` escapes.

use std::io::Write as _;

use model::{is_plain, is_plain_text, plain_length};

/// How far to look ahead. The text after an escaped character is searched again, so without a bound a text of such
/// characters would take quadratic time.
const AHEAD: usize = 256;

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

    proptest! {
        #[test]
        fn long_strings_read_back(text in "[ -~]{0,100}(.|[ -~]{0,40}){0,8}") {
            let mut out = Vec::new();
            write_string(&mut out, &text);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
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
