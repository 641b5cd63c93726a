//! Keys of several parts, in the order of the parts.
//!
//! The separator is the smallest printable character that a key can contain. Characters up to the separator, and characters
//! that no key can contain, are replaced by two or three others that sort at the same place. So any text can be a part, and
//! keys sort like lists of texts: first by the first part, then by the second.

use partita_client::{Error, Filter, Operand, Result, after_prefix};

/// Separates the parts.
pub const SEPARATOR: char = '!';
/// The character after the separator: the end of the range of keys that continue with a separator.
const AFTER_SEPARATOR: char = '"';
/// Followed by a digit of base 36: a character up to `#`, of which there are 36.
const LOW: char = '"';
const LOW_MAX: char = '#';
/// After the character below a forbidden one: stands for the forbidden one.
const FORBIDDEN: char = '~';
/// After the same character: stands for that character itself, if one of these two marks follows it.
const ITSELF: char = '}';

/// The legal character just below a forbidden one, or below the controls from U+007F to U+009F.
fn is_below_forbidden(character: char) -> bool {
    matches!(character, '.' | '>' | '[' | '~')
}

/// Joins parts to a key.
///
/// Letters, digits, `_`, `-`, `.`, `:` and most other characters stay unchanged. A part may contain any character.
///
/// ```
/// use partita_client_patterns::keys::join;
///
/// assert_eq!(join(["sales", "2026-01-31", "ann@example.org"]), "sales!2026-01-31!ann@example.org");
/// assert_ne!(join(["a!b", "c"]), join(["a", "b!c"]));
/// // A space and a slash.
/// assert_eq!(join(["Ann Smith", "a/b"]), "Ann\"wSmith!a.~b");
/// // In the order of the lists, though ' ' < '!' < 'b'.
/// assert!(join(["a", "z"]) < join(["a b"]) && join(["a b"]) < join(["ab", ""]));
/// ```
///
/// No parts give the same key as one empty part.
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

/// Keys that begin with these parts and have more. The filter is one range.
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

/// The first key of the range, and its end if it has one.
fn next_part_range<S: AsRef<str>>(parts: &[S], prefix: &str) -> (String, Option<String>) {
    let with = |last: &str| join(parts.iter().map(AsRef::as_ref).chain([last]));
    // The end is computed from the text, then escaped: escaped texts may have a common prefix that the texts lack.
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
    // Refuses keys that `join` never writes, such as `"W`: otherwise two keys would have the same parts.
    let mut written = String::new();
    escape(&text, &mut written);
    (written == part).then_some(text)
}

/// A digit of base 36; the number is at most 35.
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
    fn the_separator_and_forbidden_characters_are_escaped() {
        check(&["a!b", "c"], "a\"xb!c");
        check(&["a", "b!c"], "a!b\"xc");
        check(&["/?#\\"], ".~>~\"z[~");
        check(&["\0\t\u{7f}\u{9f}"], "\"0\"9~~0~~w");
        check(&[".~", ".}", ".é", "~~", "~", "."], ".}~!.}}!.}é!~}~!~!.");
    }

    #[test]
    fn a_key_that_join_never_writes_is_not_split() {
        for key in
            ["a b", "a\"", "a\"W", "a\"-", "a#", "a.}b", "~~", "~~x", "~~z", "a/b", "a?", "a\\", "\u{80}"]
        {
            assert!(split(key).is_err(), "{key:?}");
        }
    }

    #[test]
    fn the_range_of_the_greatest_text_ends_with_that_of_its_parts() {
        let check = |parts: &[&str], prefix, expected: &str| {
            assert_eq!(next_part_starts_with(row_key(), parts, prefix).to_string(), expected);
        };
        check(&["p"], "", "(RowKey ge 'p!') and (RowKey lt 'p\"')");
        check(&["p"], "\u{ffff}", "(RowKey ge 'p!\u{ffff}') and (RowKey lt 'p\"')");
        check(&[], "", "RowKey ge ''");
        // Not 'a./…': texts that begin with "a." end before "a/".
        check(&[], "a.", "(RowKey ge 'a.') and (RowKey lt 'a.~')");
    }

    /// Texts of characters for which escaping, or the two orders of text, could be wrong.
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
        fn joined_parts_are_split_again_and_make_a_legal_key(parts in parts()) {
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
        fn the_range_of_a_prefix_contains_exactly_the_texts_with_the_prefix(prefix in tricky(), text in tricky()) {
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
    fn a_key_that_is_split_is_what_join_writes() {
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
