//! The name of a blob as a part of a key.
//!
//! Lists are in the order of names in UTF-8, keys in that of UTF-16; and no key has a character below the space. Both are
//! mended by letters in front of the few characters that need it:
//!
//! | character | as |
//! |---|---|
//! | below U+0020 | a space, and the character 32 places up |
//! | a space | a space and `@` |
//! | U+D7FF | itself and `0` |
//! | U+E000 to U+FFFF | U+D7FF, `1` and itself, so that it sorts below the surrogates of what is above U+FFFF |
//!
//! What stands for one character is never the start of what stands for another. So names with a prefix are the keys with the
//! prefix's key.

const BELOW: char = ' ';
const SPACE: char = '@';
const EDGE: char = '\u{d7ff}';
const EDGE_ITSELF: char = '0';
const EDGE_PRIVATE: char = '1';
/// How far a control character moves up.
const UP: u32 = 32;

/// The part of a key that stands for a name, or for the start of names.
pub fn encode(name: &str) -> String {
    let mut key = String::with_capacity(name.len() + 8);
    for c in name.chars() {
        match c {
            '\0'..='\u{1f}' => {
                key.push(BELOW);
                // Below 64, which is ASCII.
                key.extend(char::from_u32(u32::from(c) + UP));
            }
            ' ' => key.extend([BELOW, SPACE]),
            EDGE => key.extend([EDGE, EDGE_ITSELF]),
            '\u{e000}'..='\u{ffff}' => key.extend([EDGE, EDGE_PRIVATE, c]),
            _ => key.push(c),
        }
    }
    key
}

/// The name again; `None` if the key stands for none.
pub fn decode(key: &str) -> Option<String> {
    let mut name = String::with_capacity(key.len());
    let mut rest = key.chars();
    while let Some(c) = rest.next() {
        name.push(match c {
            BELOW => match rest.next()? {
                SPACE => ' ',
                up @ ' '..='?' => char::from_u32(u32::from(up) - UP)?,
                _ => return None,
            },
            EDGE => match rest.next()? {
                EDGE_ITSELF => EDGE,
                EDGE_PRIVATE => rest.next().filter(|c| ('\u{e000}'..='\u{ffff}').contains(c))?,
                _ => return None,
            },
            '\0'..='\u{1f}' | '\u{e000}'..='\u{ffff}' => return None,
            plain => plain,
        });
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn usual_names_are_keys_as_they_are() {
        let check = |name: &str, key: &str| {
            assert_eq!(encode(name), key);
            assert_eq!(decode(key).as_deref(), Some(name));
        };
        check("", "");
        check("logs/2026/11/17/a-b_c.json", "logs/2026/11/17/a-b_c.json");
        check("ä/日本/📦#?\\\u{7f}", "ä/日本/📦#?\\\u{7f}");
        check("a b", "a @b");
        check("\0\u{1f}", "  \u{20}?");
        check("\u{d7ff}\u{e000}\u{ffff}", "\u{d7ff}0\u{d7ff}1\u{e000}\u{d7ff}1\u{ffff}");
        for key in [" ", " A", "\u{d7ff}", "\u{d7ff}1", "\u{d7ff}2", "\u{d7ff}1a", "\u{e000}", "\n"] {
            assert_eq!(decode(key), None, "{key:?}");
        }
    }

    fn name() -> impl Strategy<Value = String> {
        let tricky = prop_oneof![
            Just('\0'),
            Just('\u{1f}'),
            Just(' '),
            Just('!'),
            Just('@'),
            Just('/'),
            Just('0'),
            Just('1'),
            Just('\u{d7fe}'),
            Just('\u{d7ff}'),
            Just('\u{e000}'),
            Just('\u{ffff}'),
            Just('\u{10000}'),
            Just('\u{10ffff}'),
            any::<char>(),
        ];
        prop::collection::vec(tricky, 0..5).prop_map(|chars| chars.into_iter().collect())
    }

    proptest! {
        #[test]
        fn keys_order_as_the_bytes_of_names_do(a in name(), b in name()) {
            let (key_a, key_b) = (encode(&a), encode(&b));
            prop_assert_eq!(model::ordinal_cmp(&key_a, &key_b), a.as_bytes().cmp(b.as_bytes()));
            prop_assert_eq!(key_a.starts_with(&key_b), a.starts_with(&b));
            prop_assert!(key_a.chars().all(|c| c >= ' '));
            prop_assert_eq!(decode(&key_a), Some(a));
        }

        #[test]
        fn a_key_stands_for_one_name_or_none(key in name()) {
            if let Some(name) = decode(&key) {
                prop_assert_eq!(encode(&name), key);
            }
        }
    }
}
