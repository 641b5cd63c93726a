//! Joins texts to one key, which can be split again.

use std::fmt::Write as _;

use partita_client::{Entity, Error, Result};

/// Between the parts of a key. In a part it is escaped.
const SEPARATOR: char = '~';
const ESCAPE: char = '!';

/// Escapes the separator, and the characters that no key may contain.
pub fn escape(part: &str) -> String {
    let mut text = String::with_capacity(part.len());
    for character in part.chars() {
        // Keys may contain a percent sign, but some tools and proxies handle it wrongly.
        if matches!(character, SEPARATOR | ESCAPE | '/' | '\\' | '#' | '?' | '%') || character.is_control() {
            write!(text, "{ESCAPE}{:02x}", u32::from(character)).expect("a String takes any text");
        } else {
            text.push(character);
        }
    }
    text
}

/// The parts, escaped, with separators between them.
pub fn join<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let parts: Vec<_> = parts.into_iter().map(escape).collect();
    parts.join(&SEPARATOR.to_string())
}

/// What [`join`] was given; `None` for a text it does not write.
pub fn split(key: &str) -> Option<Vec<String>> {
    key.split(SEPARATOR).map(unescape).collect()
}

fn unescape(part: &str) -> Option<String> {
    let mut pieces = part.split(ESCAPE);
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        // All escaped characters are below U+00A0, so two digits suffice.
        let code = u32::from_str_radix(piece.get(..2)?, 16).ok()?;
        text.push(char::from_u32(code)?);
        text.push_str(&piece[2..]);
    }
    Some(text)
}

/// Checks that a service will accept the keys of this entity. For entities that are written later, when the caller can't
/// get the error any more.
pub fn check_keys(entity: &Entity) -> Result<()> {
    for (name, key) in [("PartitionKey", &entity.partition_key), ("RowKey", &entity.row_key)] {
        if let Err(fault) = model::Key::parse(key.as_str()) {
            let why = match fault {
                model::KeyFault::Forbidden => "holds characters that keys may not (/ \\ # ? and controls)",
                model::KeyFault::TooLong => {
                    "is longer than 512 UTF-16 units; index a shorter value, or a hash of it"
                }
            };
            return Err(Error::Invalid(format!("the {name} {key:?} {why}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parts_keep_their_borders() {
        assert_eq!(join(["a~b", "c"]), "a!7eb~c");
        assert_eq!(join(["a", "b~c"]), "a~b!7ec");
        assert_eq!(join(["50% a/b?"]), "50!25 a!2fb!3f");
        assert_eq!(split("a!7"), None);
        assert_eq!(split("!zz"), None);
    }

    #[test]
    fn a_key_that_no_service_takes_is_named() {
        let fault = check_keys(&Entity::new("p", "é".repeat(513))).unwrap_err().to_string();
        assert!(fault.starts_with("the RowKey \"éé"), "{fault}");
        assert!(check_keys(&Entity::new("a/b", "r")).is_err());
        assert!(check_keys(&Entity::new("a b", "")).is_ok());
    }

    proptest! {
        #[test]
        fn joined_parts_are_split_again_and_make_a_key(parts in proptest::collection::vec("(?s).{0,8}", 1..4)) {
            let key = join(parts.iter().map(String::as_str));
            prop_assert!(model::Key::parse(key.as_str()).is_ok());
            prop_assert_eq!(split(&key), Some(parts));
        }
    }
}
