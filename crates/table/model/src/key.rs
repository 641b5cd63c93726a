//! Keys, their order, and positions between them.
//!
//! The service orders keys by UTF-16 code unit. That is the order of `char`s except above U+FFFF, where
//! surrogate pairs sort below U+E000..=U+FFFF.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use crate::limits;

/// A partition key or row key that may be stored. Empty is legal.
///
/// Engines store every key that has no character below U+0020. The Table service allows less, and `parse` keeps its rules.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key(String);

/// Why a text can't be a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFault {
    Forbidden,
    TooLong,
}

impl Key {
    /// A key of an entity, by the rules of the Table service. Whatever a client of that service sends comes through here.
    pub fn parse(text: impl Into<String>) -> Result<Self, KeyFault> {
        let text = text.into();
        check_entity_key(&text)?;
        Ok(Self(text))
    }

    /// A key of any service, by the rules of engines: for rows of other services, and for whatever an engine has stored.
    pub fn parse_stored(text: impl Into<String>) -> Result<Self, KeyFault> {
        let text = text.into();
        // Bytes of other characters are above.
        if text.bytes().any(|byte| byte < b' ') {
            return Err(KeyFault::Forbidden);
        }
        if has_more_units(&text, limits::STORED_KEY_UNITS_MAX) {
            return Err(KeyFault::TooLong);
        }
        Ok(Self(text))
    }

    /// Whether an entity can have it.
    pub fn is_entity_key(&self) -> bool {
        check_entity_key(&self.0).is_ok()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

fn check_entity_key(text: &str) -> Result<(), KeyFault> {
    let is_plain = text.bytes().all(|byte| PLAIN[usize::from(byte)]);
    if !is_plain && text.chars().any(is_forbidden) {
        return Err(KeyFault::Forbidden);
    }
    if is_too_long_for_a_key(text) {
        return Err(KeyFault::TooLong);
    }
    Ok(())
}

/// `/ \ # ?` would not survive a URL; control characters are refused by the service too.
const fn is_forbidden(c: char) -> bool {
    matches!(c, '/' | '\\' | '#' | '?' | '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}')
}

/// The bytes of ASCII that a key may have.
static PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte: u8 = 0;
    while byte < 128 {
        plain[byte as usize] = !is_forbidden(byte as char);
        byte += 1;
    }
    plain
};

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        ordinal_cmp(&self.0, &other.0)
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The part of a text that decides how it compares with keys. A text that is cut here is still too long to be a key.
pub fn comparable_with_keys(text: &str) -> &str {
    // A text never has more units than bytes.
    if text.len() <= limits::KEY_UNITS_MAX {
        return text;
    }
    let mut units = 0;
    for (at, c) in text.char_indices() {
        if units > limits::KEY_UNITS_MAX {
            return &text[..at];
        }
        units += c.len_utf16();
    }
    text
}

/// Whether a text has more units than any key of an entity.
pub fn is_too_long_for_a_key(text: &str) -> bool {
    has_more_units(text, limits::KEY_UNITS_MAX)
}

fn has_more_units(text: &str, most: usize) -> bool {
    text.len() > most && text.encode_utf16().take(most + 1).count() > most
}

/// Compares two texts by UTF-16 code unit, without transcoding them.
pub fn ordinal_cmp(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let common = a.len().min(b.len());
    match (0..common).find(|&i| a[i] != b[i]) {
        None => a.len().cmp(&b.len()),
        Some(i) => {
            // UTF-8 sorts like UTF-16, except for lead bytes F0.. (surrogate pairs), which sort below EE and EF.
            let rank = |byte: u8| match byte {
                0xEE | 0xEF => byte + 0x10,
                0xF0.. => byte - 2,
                _ => byte,
            };
            rank(a[i]).cmp(&rank(b[i]))
        }
    }
}

/// A position between entities in (PartitionKey, RowKey) order. Its texts may be ones that no key can have.
///
/// Texts are shared: a filter can name thousands of positions in one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Just below this entity, whether it exists or not.
    Before(Arc<str>, Arc<str>),
    /// Just above this entity.
    After(Arc<str>, Arc<str>),
    /// Above every entity of this partition.
    AfterPartition(Arc<str>),
    /// Above everything.
    End,
}

impl Cut {
    /// The partition that it is in, or directly after.
    fn partition(&self) -> Option<&str> {
        match self {
            Self::Before(partition, _) | Self::After(partition, _) | Self::AfterPartition(partition) => {
                Some(partition)
            }
            Self::End => None,
        }
    }

    pub fn start() -> Self {
        Self::before("", "")
    }

    pub fn before(partition: &str, row: &str) -> Self {
        Self::before_shared(&partition.into(), &row.into())
    }

    pub fn before_partition(partition: &str) -> Self {
        Self::before(partition, "")
    }

    pub fn after(partition: &str, row: &str) -> Self {
        Self::after_shared(&partition.into(), &row.into())
    }

    pub fn after_partition(partition: &str) -> Self {
        Self::after_partition_shared(&partition.into())
    }

    /// Like `before`, but shares the texts. The next two do the same.
    pub fn before_shared(partition: &Arc<str>, row: &Arc<str>) -> Self {
        match (above_controls(partition), above_controls(row)) {
            (Some(prefix), _) => Self::AfterPartition(prefix.into()),
            (None, Some(prefix)) => Self::After(partition.clone(), prefix.into()),
            (None, None) => Self::Before(partition.clone(), row.clone()),
        }
    }

    pub fn after_shared(partition: &Arc<str>, row: &Arc<str>) -> Self {
        match (above_controls(partition), above_controls(row)) {
            (Some(prefix), _) => Self::AfterPartition(prefix.into()),
            (None, Some(prefix)) => Self::After(partition.clone(), prefix.into()),
            (None, None) => Self::After(partition.clone(), row.clone()),
        }
    }

    pub fn after_partition_shared(partition: &Arc<str>) -> Self {
        Self::AfterPartition(above_controls(partition).map_or_else(|| partition.clone(), Into::into))
    }
}

/// No key has a character below U+0020, so a text with one has its position just above the part before that character.
fn above_controls(text: &str) -> Option<&str> {
    text.find(|c| c < ' ').map(|at| &text[..at])
}

impl Ord for Cut {
    fn cmp(&self, other: &Self) -> Ordering {
        use Cut::{After, AfterPartition, Before, End};
        fn partition(cut: &Cut) -> Option<&str> {
            match cut {
                Before(p, _) | After(p, _) | AfterPartition(p) => Some(&**p),
                End => None,
            }
        }
        let by_partition = match (partition(self), partition(other)) {
            (Some(a), Some(b)) => ordinal_cmp(a, b),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        };
        by_partition.then_with(|| match (self, other) {
            (Before(_, a), Before(_, b)) | (After(_, a), After(_, b)) => ordinal_cmp(a, b),
            (Before(_, a), After(_, b)) => ordinal_cmp(a, b).then(Ordering::Less),
            (After(_, a), Before(_, b)) => ordinal_cmp(a, b).then(Ordering::Greater),
            (AfterPartition(_), AfterPartition(_)) | (End, _) | (_, End) => Ordering::Equal,
            (AfterPartition(_), _) => Ordering::Greater,
            (_, AfterPartition(_)) => Ordering::Less,
        })
    }
}

impl PartialOrd for Cut {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The entities from one position up to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    pub start: Cut,
    pub end: Cut,
}

impl KeyRange {
    pub fn all() -> Self {
        Self { start: Cut::start(), end: Cut::End }
    }

    pub fn entity(partition: &str, row: &str) -> Self {
        Self { start: Cut::before(partition, row), end: Cut::after(partition, row) }
    }

    pub fn partition(partition: &str) -> Self {
        Self { start: Cut::before_partition(partition), end: Cut::after_partition(partition) }
    }

    /// The partition that all of these ranges are in, if there is one.
    pub fn partition_of(ranges: &[Self]) -> Option<&str> {
        let first = ranges.first()?.start.partition()?;
        let within =
            |range: &Self| [&range.start, &range.end].iter().all(|cut| cut.partition() == Some(first));
        ranges.iter().all(within).then_some(first)
    }

    pub fn is_empty(&self) -> bool {
        self.start >= self.end
    }

    pub fn intersect(&self, other: &Self) -> Self {
        Self {
            start: self.start.clone().max(other.start.clone()),
            end: self.end.clone().min(other.end.clone()),
        }
    }

    pub fn contains(&self, partition: &str, row: &str) -> bool {
        let before = Cut::before(partition, row);
        self.start <= before && before < self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_refuse_what_the_service_refuses() {
        for text in ["a/b", "a\\b", "a#b", "a?b", "\0", "\t", "\n", "\u{7f}", "\u{9f}"] {
            assert_eq!(Key::parse(text), Err(KeyFault::Forbidden), "{text:?}");
        }
        for text in ["", " ", "%", "+", "o'clock", "\u{a0}", "é", "𝄞", "!\"$&()*,:;<=>@[]^_`{|}~"] {
            assert!(Key::parse(text).is_ok(), "{text:?}");
        }
        assert!(Key::parse("é".repeat(512)).is_ok());
        assert_eq!(Key::parse("é".repeat(513)), Err(KeyFault::TooLong));
        assert_eq!(Key::parse("𝄞".repeat(257)), Err(KeyFault::TooLong));
    }

    #[test]
    fn stored_keys_refuse_only_what_engines_can_not_keep() {
        for text in ["\0", "\t", "a\n", "\u{1f}b"] {
            assert_eq!(Key::parse_stored(text), Err(KeyFault::Forbidden), "{text:?}");
        }
        for text in ["", "a/b", "a\\b", "a#b", "a?b", "\u{7f}", "\u{80}", "\u{9f}", "\u{ffff}", "𝄞"] {
            let key = Key::parse_stored(text).unwrap();
            assert_eq!((key.as_str(), key.is_entity_key()), (text, Key::parse(text).is_ok()));
        }
        for (unit, most) in [("/", 4096), ("é", 4096), ("𝄞", 2048)] {
            let key = Key::parse_stored(unit.repeat(most)).unwrap();
            assert!(!key.is_entity_key());
            assert_eq!(Key::parse_stored(unit.repeat(most + 1)), Err(KeyFault::TooLong));
        }
    }

    #[test]
    fn a_long_text_is_cut_where_no_key_can_tell() {
        for unit in ["k", "é", "𝄞"] {
            let (long, longer) = (unit.repeat(600), unit.repeat(60_000));
            let cut = comparable_with_keys(&longer);
            assert!(cut.encode_utf16().count() <= limits::KEY_UNITS_MAX + 2 && is_too_long_for_a_key(cut));
            assert_eq!(comparable_with_keys(&long), cut);
            let key = cut.chars().take(256).collect::<String>();
            assert_eq!(comparable_with_keys(&key), key);
            assert_eq!(ordinal_cmp(&key, cut), ordinal_cmp(&key, &longer));
        }
    }

    #[test]
    fn a_range_holds_its_own_keys() {
        let range = KeyRange::partition("b");
        assert!(range.contains("b", "") && range.contains("b", "\u{ffff}"));
        assert!(!range.contains("a", "z") && !range.contains("b ", ""));
        assert!(KeyRange::entity("p", "r").contains("p", "r"));
        assert!(!KeyRange::entity("p", "r").contains("p", "r "));
        assert!(KeyRange { start: Cut::after("p", "r"), end: Cut::before("p", "r") }.is_empty());
    }

    /// Text with characters on which the two orders differ, and with control characters.
    fn tricky() -> impl Strategy<Value = String> {
        proptest::collection::vec(
            prop_oneof![
                Just('a'),
                Just('b'),
                Just('\u{1}'),
                Just(' '),
                Just('\u{d7ff}'),
                Just('\u{e000}'),
                Just('\u{ffff}'),
                Just('𝄞'),
                Just('\u{10ffff}')
            ],
            0..5,
        )
        .prop_map(|chars| chars.into_iter().collect())
    }

    fn storable() -> impl Strategy<Value = String> {
        tricky().prop_map(|text| text.replace('\u{1}', ""))
    }

    proptest! {
        #[test]
        fn order_is_that_of_utf16(a in tricky(), b in tricky()) {
            let expected = a.encode_utf16().collect::<Vec<_>>().cmp(&b.encode_utf16().collect());
            prop_assert_eq!(ordinal_cmp(&a, &b), expected);
        }

        #[test]
        fn every_key_of_an_entity_can_be_stored_and_is_told_from_others(text in any::<String>()) {
            let (entity, stored) = (Key::parse(text.as_str()), Key::parse_stored(text.as_str()));
            prop_assert_eq!(stored.is_ok(), text.chars().all(|c| c >= ' '));
            prop_assert_eq!(entity.is_ok(), stored.as_ref().is_ok_and(Key::is_entity_key));
            prop_assert!(entity.is_err() || entity == stored);
        }

        #[test]
        fn cuts_part_keys_as_their_texts_do(p in storable(), r in storable(), cp in tricky(), cr in tricky()) {
            let key = Cut::before(&p, &r);
            let by_text = ordinal_cmp(&p, &cp).then_with(|| ordinal_cmp(&r, &cr));
            prop_assert_eq!(key < Cut::before(&cp, &cr), by_text == Ordering::Less);
            prop_assert_eq!(key < Cut::after(&cp, &cr), by_text != Ordering::Greater);
            prop_assert_eq!(key < Cut::after_partition(&cp), ordinal_cmp(&p, &cp) != Ordering::Greater);
            prop_assert_eq!(key < Cut::before_partition(&cp), ordinal_cmp(&p, &cp) == Ordering::Less);
            prop_assert!(key < Cut::End);
        }
    }
}
