//! Keys of several parts, in the order of the parts.
//!
//! Parts are parted by the least character a readable key can hold, and characters up to it, and those that no key can
//! hold, are written by two or three others that sort where they would have. So any texts can be parts, and keys are in
//! order as lists of texts are: first by the first part, then by the second.

use partita_client::{Error, Filter, Operand, Result, after_prefix};

/// What stands between parts.
pub const SEPARATOR: char = '!';
/// Just above the separator: what follows all keys that go on with a separator.
const AFTER_SEPARATOR: char = '"';
/// Followed by a digit of base 36: a character up to `#`, of which there are 36.
const LOW: char = '"';
const LOW_MAX: char = '#';
/// After the character below a forbidden one: not that one but the forbidden one.
const FORBIDDEN: char = '~';
/// After the same: that one itself, where what comes next would be taken for either of these two marks.
const ITSELF: char = '}';

/// The legal character just below a forbidden one, or below the controls from U+007F to U+009F.
fn is_below_forbidden(character: char) -> bool {
    matches!(character, '.' | '>' | '[' | '~')
}

/// One key of these parts.
///
/// Letters, digits, `_`, `-`, `.`, `:` and most other characters stay as they are. A part may hold what no key can.
///
/// ```
/// use partita_client_patterns::keys::join;
///
/// assert_eq!(join(["sales", "2026-01-31", "ann@example.org"]), "sales!2026-01-31!ann@example.org");
/// assert_ne!(join(["a!b", "c"]), join(["a", "b!c"]));
/// // A space and a slash.
/// assert_eq!(join(["Ann Smith", "a/b"]), "Ann\"wSmith!a.~b");
/// // In order as the lists are, though ' ' < '!' < 'b'.
/// assert!(join(["a", "z"]) < join(["a b"]) && join(["a b"]) < join(["ab", ""]));
/// ```
///
/// No part at all gives the same key as one empty part.
pub fn join<S: AsRef<str>>(parts: impl IntoIterator<Item = S>) -> String {
    let mut key = String::new();
    for (n, part) in parts.into_iter().enumerate() {
        if n > 0 {
            key.push(SEPARATOR);
        }
        escape(part.as_ref(), &mut key);
    }
    key
}

/// The parts of a key that [`join`] made.
///
/// ```
/// use partita_client_patterns::keys::split;
///
/// assert_eq!(split("Ann\"wSmith!")?, ["Ann Smith", ""]);
/// assert!(split("Ann Smith").is_err());
/// # Ok::<(), partita_client::Error>(())
/// ```
pub fn split(key: &str) -> Result<Vec<String>> {
    let parts: Option<Vec<_>> = key.split(SEPARATOR).map(unescape).collect();
    parts.ok_or_else(|| Error::Invalid(format!("{key:?} is not a key that `keys::join` makes of parts")))
}

/// Keys that begin with these parts and have more: a range, and so as cheap as one.
///
/// ```
/// use partita_client_patterns::keys::within;
/// use partita_client::row_key;
///
/// let filter = within(row_key(), ["2026", "01"]);
/// assert_eq!(filter.to_string(), "(RowKey ge '2026!01!') and (RowKey lt '2026!01\"')");
/// ```
pub fn within<S: AsRef<str>>(key: Operand, parts: impl IntoIterator<Item = S>) -> Filter {
    let parts = join(parts);
    key.between(format!("{parts}{SEPARATOR}"), format!("{parts}{AFTER_SEPARATOR}"))
}

/// Keys that begin with these parts (of which there may be none) and whose next part starts with this text.
///
/// ```
/// use partita_client_patterns::keys::next_part_starts_with;
/// use partita_client::row_key;
///
/// let filter = next_part_starts_with(row_key(), ["2026", "01"], "ab");
/// assert_eq!(filter.to_string(), "(RowKey ge '2026!01!ab') and (RowKey lt '2026!01!ac')");
/// ```
pub fn next_part_starts_with<S: AsRef<str>>(
    key: Operand,
    parts: impl IntoIterator<Item = S>,
    prefix: &str,
) -> Filter {
    let parts: Vec<S> = parts.into_iter().collect();
    match next_part_range(&parts, prefix) {
        (from, Some(end)) => key.between(from, end),
        (from, None) => key.ge(from),
    }
}

/// Its first key, and the end if it has one.
fn next_part_range<S: AsRef<str>>(parts: &[S], prefix: &str) -> (String, Option<String>) {
    let with = |last: &str| join(parts.iter().map(AsRef::as_ref).chain([last]));
    // The end is that of the texts, written as a key: written texts may begin alike where the texts do not.
    let end = match after_prefix(prefix) {
        Some(end) => Some(with(&end)),
        None if parts.is_empty() => None,
        None => Some(format!("{}{AFTER_SEPARATOR}", join(parts))),
    };
    (with(prefix), end)
}

fn escape(part: &str, key: &mut String) {
    let mut characters = part.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            ..=LOW_MAX => {
                key.push(LOW);
                key.push(digit(character as u32));
            }
            '/' => key.extend(['.', FORBIDDEN]),
            '?' => key.extend(['>', FORBIDDEN]),
            '\\' => key.extend(['[', FORBIDDEN]),
            '\u{7f}'..='\u{9f}' => key.extend(['~', FORBIDDEN, digit(character as u32 - 0x7f)]),
            _ => {
                key.push(character);
                if is_below_forbidden(character) && characters.peek().is_some_and(|next| *next >= ITSELF) {
                    key.push(ITSELF);
                }
            }
        }
    }
}

fn unescape(part: &str) -> Option<String> {
    let mut text = String::new();
    let mut characters = part.chars().peekable();
    while let Some(character) = characters.next() {
        let character = match character {
            LOW => char::from_u32(characters.next()?.to_digit(36)?)?,
            ..=LOW_MAX => return None,
            _ if is_below_forbidden(character) => {
                let mark = characters.next_if(|next| matches!(*next, FORBIDDEN | ITSELF));
                match (character, mark) {
                    ('.', Some(FORBIDDEN)) => '/',
                    ('>', Some(FORBIDDEN)) => '?',
                    ('[', Some(FORBIDDEN)) => '\\',
                    (_, Some(FORBIDDEN)) => char::from_u32(0x7f + characters.next()?.to_digit(36)?)?,
                    _ => character,
                }
            }
            other => other,
        };
        text.push(character);
    }
    // Also what could be read but is never written, such as `"W`, would make two keys of the same parts.
    let mut written = String::new();
    escape(&text, &mut written);
    (written == part).then_some(text)
}

/// Of base 36; there is one for every number given here, the greatest of which is 35.
fn digit(number: u32) -> char {
    char::from_digit(number, 36).unwrap_or('z')
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use proptest::prelude::*;
    use testing::{Reading, check_near, text_near};

    use super::*;
    use partita_client::row_key;

    fn check(parts: &[&str], expected: &str) {
        assert_eq!(join(parts), expected);
        assert_eq!(split(expected).unwrap(), parts);
    }

    #[test]
    fn ordinary_parts_stay_as_they_are() {
        check(&["a", "b"], "a!b");
        check(&["a_b", "c"], "a_b!c");
        check(&["a", "b_c"], "a!b_c");
        check(&["", "", "x"], "!!x");
        check(&["[1.5] ü > {é}".replace(' ', "").as_str()], "[1.5]ü>{é}");
    }

    #[test]
    fn what_keys_cannot_hold_and_what_parts_them_is_escaped() {
        check(&["a!b", "c"], "a\"xb!c");
        check(&["a", "b!c"], "a!b\"xc");
        check(&["/?#\\"], ".~>~\"z[~");
        check(&["\0\t\u{7f}\u{9f}"], "\"0\"9~~0~~w");
        check(&[".~", ".}", ".é", "~~", "~", "."], ".}~!.}}!.}é!~}~!~!.");
    }

    #[test]
    fn what_was_not_joined_is_not_split() {
        for key in
            ["a b", "a\"", "a\"W", "a\"-", "a#", "a.}b", "~~", "~~x", "~~z", "a/b", "a?", "a\\", "\u{80}"]
        {
            assert!(split(key).is_err(), "{key:?}");
        }
    }

    #[test]
    fn the_range_of_the_last_possible_text_ends_with_its_parents() {
        let check = |parts: &[&str], prefix, expected: &str| {
            assert_eq!(next_part_starts_with(row_key(), parts, prefix).to_string(), expected);
        };
        check(&["p"], "", "(RowKey ge 'p!') and (RowKey lt 'p\"')");
        check(&["p"], "\u{ffff}", "(RowKey ge 'p!\u{ffff}') and (RowKey lt 'p\"')");
        check(&[], "", "RowKey ge ''");
        // Not 'a./…': what begins with "a." ends before "a/".
        check(&[], "a.", "(RowKey ge 'a.') and (RowKey lt 'a.~')");
    }

    /// Texts of the characters on which escaping, or the two orders of text, could go wrong.
    fn tricky() -> impl Strategy<Value = String> {
        let characters =
            "\0\u{1f} !\"#$-./0>?[\\]a}~\u{7f}\u{80}\u{9f}\u{a0}\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{10ffff}";
        let characters: Vec<char> = characters.chars().collect();
        proptest::collection::vec(proptest::sample::select(characters), 0..6)
            .prop_map(|all| all.into_iter().collect())
    }

    fn parts() -> impl Strategy<Value = Vec<String>> {
        proptest::collection::vec(tricky(), 1..4)
    }

    fn by_parts(a: &[String], b: &[String]) -> Ordering {
        let units = |parts: &[String]| -> Vec<Vec<u16>> {
            parts.iter().map(|part| part.encode_utf16().collect()).collect()
        };
        units(a).cmp(&units(b))
    }

    proptest! {
        #[test]
        fn joined_parts_come_back_and_make_a_legal_key(parts in parts()) {
            let key = join(&parts);
            prop_assert!(model::Key::parse(key.as_str()).is_ok(), "{key:?}");
            prop_assert_eq!(split(&key).unwrap(), parts);
        }

        #[test]
        fn the_order_of_keys_is_that_of_their_parts(a in parts(), b in parts()) {
            prop_assert_eq!(model::ordinal_cmp(&join(&a), &join(&b)), by_parts(&a, &b));
        }

        #[test]
        fn texts_that_begin_alike_keep_their_order(start in tricky(), a in tricky(), b in tricky()) {
            let (a, b) = (vec![format!("{start}{a}")], vec![format!("{start}{b}")]);
            prop_assert_eq!(model::ordinal_cmp(&join(&a), &join(&b)), by_parts(&a, &b));
        }

        #[test]
        fn the_range_of_a_prefix_holds_what_begins_so_and_nothing_else(prefix in tricky(), text in tricky()) {
            let (from, end) = next_part_range(&["p"], &prefix);
            let inside = |text: &str| {
                let key = join(["p", text]);
                let below = |end: &String| model::ordinal_cmp(&key, end) == Ordering::Less;
                model::ordinal_cmp(&key, &from) != Ordering::Less && end.as_ref().is_none_or(below)
            };
            prop_assert_eq!(inside(&text), text.starts_with(&prefix));
            let continued = format!("{prefix}{text}");
            prop_assert!(inside(&continued));
        }
    }

    #[test]
    fn whatever_is_split_was_joined_so() {
        let near = text_near(
            parts().prop_map(|parts| join(&parts)),
            &["!", "\"", ".", "~", "}", "\"x", ".~", "~~0", "é"],
        );
        check_near(near, 10..=90, |key| {
            let parts = split(&key);
            if let Ok(parts) = &parts {
                prop_assert_eq!(join(parts), key);
            }
            Ok(Reading::of(&parts))
        });
    }
}
