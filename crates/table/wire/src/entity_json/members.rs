//! The members of the one JSON object in a body, in order, without a copy of any text that has no escapes.
//!
//! An entity is a flat object, and nearly all of its bytes are names and texts. This reader does only that, in one pass;
//! whatever is rare (escapes, fractions, values that are skipped) is left to `serde_json`. Both read the same, as a
//! property test says.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeOwned, IgnoredAny, Visitor};

/// A JSON value that keeps its spelling: `20` and `20.0` have different types.
#[derive(Debug, PartialEq)]
pub(super) enum Json<'a> {
    Null,
    Boolean(bool),
    Whole(i64),
    Fraction(f64),
    /// Borrowed from the body, unless it has escapes.
    Text(Cow<'a, str>),
}

/// The body is not one JSON object, or one of its values is not plain.
#[derive(Debug, PartialEq)]
pub(super) struct Malformed;

/// Call `next_name`, then one of the three that read its value, until there is no further name; then `end`.
pub(super) struct MemberReader<'a> {
    text: &'a str,
    at: usize,
    /// Whether a member has been read.
    is_within: bool,
}

impl<'a> MemberReader<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self, Malformed> {
        let mut reader = Self { text, at: 0, is_within: false };
        reader.expect(b'{')?;
        Ok(reader)
    }

    /// In the middle of an object, before a value.
    pub(super) fn before_value(text: &'a str, at: usize) -> Self {
        Self { text, at, is_within: true }
    }

    /// The bytes read so far.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// `None` at the end of the object.
    pub(super) fn next_name(&mut self) -> Result<Option<Cow<'a, str>>, Malformed> {
        match self.peek() {
            Some(b'}') => {
                self.at += 1;
                return Ok(None);
            }
            Some(b',') if self.is_within => self.at += 1,
            Some(_) if !self.is_within => {}
            _ => return Err(Malformed),
        }
        self.is_within = true;
        let name = self.text_value()?;
        self.expect(b':')?;
        Ok(Some(name))
    }

    pub(super) fn value(&mut self) -> Result<Json<'a>, Malformed> {
        match self.peek() {
            Some(b'"') => self.text_value().map(Json::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Json::Boolean(true)),
            Some(b'f') => self.word("false", Json::Boolean(false)),
            Some(b'n') => self.word("null", Json::Null),
            _ => Err(Malformed),
        }
    }

    pub(super) fn text_value(&mut self) -> Result<Cow<'a, str>, Malformed> {
        if self.peek() != Some(b'"') {
            return Err(Malformed);
        }
        match self.plain_text() {
            Some(text) => Ok(Cow::Borrowed(text)),
            None => self.by_serde().map(|text: String| Cow::Owned(text)),
        }
    }

    /// The text that begins here with its quote; `None`, and nothing is read, if it has escapes or does not end.
    fn plain_text(&mut self) -> Option<&'a str> {
        let start = self.at + 1;
        let end = start + plain_length(&self.text.as_bytes()[start..]);
        if self.text.as_bytes().get(end) != Some(&b'"') {
            return None;
        }
        self.at = end + 1;
        Some(&self.text[start..end])
    }

    /// Passes over a value of any kind.
    pub(super) fn skip(&mut self) -> Result<(), Malformed> {
        if self.peek() == Some(b'"') && self.plain_text().is_some() {
            return Ok(());
        }
        self.by_serde().map(|_: IgnoredAny| ())
    }

    /// Nothing may follow the object.
    pub(super) fn end(mut self) -> Result<(), Malformed> {
        if self.peek().is_none() { Ok(()) } else { Err(Malformed) }
    }

    fn word(&mut self, word: &str, meaning: Json<'a>) -> Result<Json<'a>, Malformed> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(Malformed);
        }
        self.at += word.len();
        Ok(meaning)
    }

    fn number(&mut self) -> Result<Json<'a>, Malformed> {
        // So many digits fit into an i64.
        const DIGITS_MAX: usize = 18;
        let rest = &self.text.as_bytes()[self.at..];
        let is_negative = rest.first() == Some(&b'-');
        let unsigned = &rest[usize::from(is_negative)..];
        let mut whole = 0;
        let mut digits = 0;
        while let Some(digit @ b'0'..=b'9') = unsigned.get(digits)
            && digits < DIGITS_MAX
        {
            whole = whole * 10 + i64::from(digit - b'0');
            digits += 1;
        }
        let is_whole = !matches!(unsigned.get(digits), Some(b'0'..=b'9' | b'.' | b'e' | b'E'));
        // A number has no leading zero, and -0 is a fraction.
        if is_whole && digits > 0 && (unsigned[0] != b'0' || (digits == 1 && !is_negative)) {
            self.at += usize::from(is_negative) + digits;
            return Ok(Json::Whole(if is_negative { -whole } else { whole }));
        }
        self.by_serde().map(|Number(number)| number)
    }

    /// A value that this reader does not read itself.
    fn by_serde<T: DeserializeOwned>(&mut self) -> Result<T, Malformed> {
        let mut values = serde_json::Deserializer::from_str(&self.text[self.at..]).into_iter::<T>();
        let value = values.next().and_then(Result::ok).ok_or(Malformed)?;
        self.at += values.byte_offset();
        Ok(value)
    }

    /// The next byte that is not blank.
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.text.as_bytes().get(self.at) {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                other => return other.copied(),
            }
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), Malformed> {
        if self.peek() != Some(byte) {
            return Err(Malformed);
        }
        self.at += 1;
        Ok(())
    }
}

/// Short texts are searched word by word, long ones with the processor's vectors, which take longer to begin.
const SHORT: usize = 32;

/// Bytes before the first quote, backslash or control character.
fn plain_length(bytes: &[u8]) -> usize {
    let mut length = 0;
    while let Some(word) = bytes[length..].first_chunk()
        && length < SHORT
    {
        let special = special_bytes(u64::from_le_bytes(*word));
        if special != 0 {
            return length + special.trailing_zeros() as usize / 8;
        }
        length += word.len();
    }
    let rest = &bytes[length..];
    let plain = &rest[..memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len())];
    // Without a branch per byte, so that the compiler can vectorize it.
    if plain.iter().fold(false, |found, byte| found | (*byte < b' ')) {
        return length + plain.iter().position(|byte| *byte < b' ').unwrap_or(plain.len());
    }
    length + plain.len()
}

/// The highest bit of the first byte that is a quote, a backslash or a control character; zero if there is none. Bits
/// above it mean nothing.
fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    // The highest bit of a byte is set if it is below `limit`, but also in bytes above such a byte.
    let below = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (below(word, b' ') | equal(b'"') | equal(b'\\')) & (ONES << 7)
}

/// A number, of which only whole ones within an i64 count as whole.
struct Number(Json<'static>);

impl<'de> serde::Deserialize<'de> for Number {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Number, E> {
        Ok(Number(Json::Whole(value)))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Number, E> {
        // Above i64 it can only become a double.
        Ok(Number(i64::try_from(value).map_or(Json::Fraction(value as f64), Json::Whole)))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Number, E> {
        if value.is_finite() {
            Ok(Number(Json::Fraction(value)))
        } else {
            Err(E::custom("number out of range"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// All members, by this reader.
    fn members(body: &str) -> Option<Vec<(String, Json<'_>)>> {
        let mut reader = MemberReader::new(body).ok()?;
        let mut found = Vec::new();
        while let Some(name) = reader.next_name().ok()? {
            found.push((name.into_owned(), reader.value().ok()?));
        }
        reader.end().ok()?;
        Some(found)
    }

    /// Whether it is an object of anything, by this reader.
    fn is_object(body: &str) -> bool {
        let read = || {
            let mut reader = MemberReader::new(body)?;
            while reader.next_name()?.is_some() {
                reader.skip()?;
            }
            reader.end()
        };
        read().is_ok()
    }

    /// All members in order, by `serde_json`.
    struct Oracle(Vec<(String, Json<'static>)>);

    impl<'de> serde::Deserialize<'de> for Oracle {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Members;
            impl<'de> Visitor<'de> for Members {
                type Value = Oracle;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("an object")
                }

                fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Oracle, A::Error> {
                    let mut found = Vec::new();
                    while let Some((name, value)) = map.next_entry::<String, serde_json::Value>()? {
                        found
                            .push((name, plain(value).ok_or_else(|| serde::de::Error::custom("not plain"))?));
                    }
                    Ok(Oracle(found))
                }
            }
            deserializer.deserialize_map(Members)
        }
    }

    fn plain(value: serde_json::Value) -> Option<Json<'static>> {
        use serde_json::Value as V;
        Some(match value {
            V::Null => Json::Null,
            V::Bool(value) => Json::Boolean(value),
            V::String(text) => Json::Text(text.into()),
            V::Number(number) => match number.as_i64() {
                Some(whole) => Json::Whole(whole),
                None => Json::Fraction(number.as_f64()?),
            },
            V::Array(_) | V::Object(_) => return None,
        })
    }

    #[test]
    fn reads_what_serde_json_reads() {
        let member = r#" ?"([aé]{0,40}|\\(n|"|u0041|ud83d\\ude00)){0,3}"[ \n]?:\t?(null|true|false|-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,3})?(e[+-]?[0-9]{1,3})?|"[ -~]{0,40}é?")"#;
        let body = format!(r"\{{({member}(,{member}){{0,3}})? ?\}}");
        const CHANGES: [&str; 15] =
            ["\"", "\\", ",", ":", "{", "}", "0", "-", ".", "e", " ", "\u{1}", "[1]", "\\u00e9", "\\ud800"];
        let bodies = proptest::string::string_regex(&body).unwrap();
        testing::check_near(testing::text_near(bodies, &CHANGES), 4..=80, |body| {
            let oracle = serde_json::from_str(&body).ok().map(|Oracle(members)| members);
            let object = serde_json::from_str::<HashMap<String, IgnoredAny>>(&body);
            prop_assert_eq!(is_object(&body), object.is_ok());
            let reading =
                if oracle.is_some() { testing::Reading::Accepted } else { testing::Reading::Refused };
            prop_assert_eq!(members(&body), oracle);
            Ok(reading)
        });
    }

    #[test]
    fn numbers_keep_their_spelling_at_every_edge() {
        for (text, expected) in [
            ("0", Some(Json::Whole(0))),
            ("-0", Some(Json::Fraction(-0.0))),
            ("00", None),
            ("01", None),
            ("-01", None),
            ("-", None),
            ("1.", None),
            ("1.0", Some(Json::Fraction(1.0))),
            ("1e2", Some(Json::Fraction(100.0))),
            ("1-1", None),
            ("+1", None),
            ("999999999999999999", Some(Json::Whole(999_999_999_999_999_999))),
            ("9223372036854775807", Some(Json::Whole(i64::MAX))),
            ("-9223372036854775808", Some(Json::Whole(i64::MIN))),
            ("9223372036854775808", Some(Json::Fraction(9_223_372_036_854_775_808.0))),
            ("1e400", None),
        ] {
            let body = format!("{{\"A\":{text}}}");
            assert_eq!(members(&body), expected.map(|value| vec![("A".to_owned(), value)]), "{text}");
        }
    }

    #[test]
    fn a_plain_text_ends_wherever_it_stands() {
        for length in 0..70 {
            for end in ["\"", "\\", "\n", "\u{1f}"] {
                let text = format!("{}{end}{}", "é".repeat(length), "x".repeat(40));
                assert_eq!(plain_length(text.as_bytes()), 2 * length, "{length} {end:?}");
            }
            assert_eq!(plain_length("x".repeat(length).as_bytes()), length);
        }
    }
}
