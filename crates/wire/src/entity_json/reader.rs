//! Reads the one kind of JSON that request bodies are: an object of plain values.
//!
//! Text is taken from where it lies. What is rare and has rules of its own (escapes, fractions, values that
//! nobody looks at) is left to serde_json, whose meaning this has throughout (see the tests).

use std::borrow::Cow;

use serde::de::IgnoredAny;

/// A JSON value as it was written: `20` and `20.0` are different things here.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json<'a> {
    Null,
    Boolean(bool),
    Whole(i64),
    Fraction(f64),
    /// Where it lies in the body, unless it has escapes in it.
    Text(Cow<'a, str>),
}

pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Calls for each member, which must read its value; `None` if this is not an object and nothing else.
    pub(super) fn object(
        mut self,
        mut member: impl FnMut(&mut Self, Cow<'a, str>) -> Option<()>,
    ) -> Option<()> {
        self.expect(b'{')?;
        if self.peek()? == b'}' {
            self.at += 1;
        } else {
            loop {
                self.skip_blanks();
                let name = self.text()?;
                self.expect(b':')?;
                member(&mut self, name)?;
                match self.peek()? {
                    b',' => self.at += 1,
                    b'}' => {
                        self.at += 1;
                        break;
                    }
                    _ => return None,
                }
            }
        }
        self.skip_blanks();
        (self.at == self.bytes.len()).then_some(())
    }

    /// A value that is no object and no array.
    pub(super) fn value(&mut self) -> Option<Json<'a>> {
        match self.peek()? {
            b'"' => self.text().map(Json::Text),
            b't' => self.word(b"true").map(|()| Json::Boolean(true)),
            b'f' => self.word(b"false").map(|()| Json::Boolean(false)),
            b'n' => self.word(b"null").map(|()| Json::Null),
            b'-' | b'0'..=b'9' => self.number(),
            _ => None,
        }
    }

    pub(super) fn text_value(&mut self) -> Option<Cow<'a, str>> {
        self.skip_blanks();
        self.text()
    }

    /// Any value, however deep.
    pub(super) fn skip_value(&mut self) -> Option<()> {
        let mut values =
            serde_json::Deserializer::from_slice(&self.bytes[self.at..]).into_iter::<IgnoredAny>();
        values.next()?.ok()?;
        self.at += values.byte_offset();
        Some(())
    }

    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    fn peek(&mut self) -> Option<u8> {
        self.skip_blanks();
        self.bytes.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.bytes[self.at..].starts_with(word).then(|| self.at += word.len())
    }

    fn text(&mut self) -> Option<Cow<'a, str>> {
        let rest = self.bytes[self.at..].strip_prefix(b"\"")?;
        let plain = plain_length(rest);
        if *rest.get(plain)? == b'"' {
            self.at += 1 + plain + 1;
            return std::str::from_utf8(&rest[..plain]).ok().map(Cow::Borrowed);
        }
        let mut end = plain;
        while *rest.get(end)? != b'"' {
            // What is escaped does not end the text, whatever it is.
            end += if rest[end] == b'\\' { 2 } else { 1 };
        }
        let literal = &self.bytes[self.at..self.at + 1 + end + 1];
        self.at += literal.len();
        serde_json::from_slice(literal).ok().map(Cow::Owned)
    }

    fn number(&mut self) -> Option<Json<'a>> {
        let rest = &self.bytes[self.at..];
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
        let length = rest.iter().take_while(|byte| is_part(byte)).count();
        let literal = &rest[..length];
        self.at += length;
        if let Some(whole) = small_whole(literal) {
            return Some(Json::Whole(whole));
        }
        let number: serde_json::Number = serde_json::from_slice(literal).ok()?;
        match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Some(Json::Whole(whole)),
            // Above i64 it can only become a double, as a fraction is one from the start.
            (None, Some(fraction)) => fraction.is_finite().then_some(Json::Fraction(fraction)),
            (None, None) => None,
        }
    }
}

/// Digits alone, and so few that they can't overflow.
fn small_whole(literal: &[u8]) -> Option<i64> {
    let (negative, digits) = match literal.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, literal),
    };
    let plain = match digits {
        [] => false,
        // JSON has no leading zeros; and minus zero is a fraction.
        [b'0'] => !negative,
        [b'0', ..] => false,
        digits => digits.len() <= 18 && digits.iter().all(u8::is_ascii_digit),
    };
    let value = || digits.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
    plain.then(|| if negative { -value() } else { value() })
}

/// Bytes that end a text, begin an escape, or may not be in one.
static SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let mut byte = 0;
    while byte < b' ' {
        special[byte as usize] = true;
        byte += 1;
    }
    special[b'"' as usize] = true;
    special[b'\\' as usize] = true;
    special
};

/// How many bytes at the start stand for themselves in a JSON text.
fn plain_length(bytes: &[u8]) -> usize {
    // Most texts are short; looking for the end of a long one pays its preparation only from here on.
    const LONG: usize = 16;
    let start = &bytes[..bytes.len().min(LONG)];
    if let Some(end) = start.iter().position(|byte| SPECIAL[usize::from(*byte)]) {
        return end;
    }
    let end = memchr::memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len());
    // The least byte of all is found many at a time; that one is a control character is not to be expected.
    match bytes[..end].iter().fold(u8::MAX, |least, byte| least.min(*byte)) {
        b' '.. => end,
        _ => bytes.iter().position(|byte| *byte < b' ').unwrap_or(end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    type Members = Vec<(String, Json<'static>)>;

    fn owned(json: Json<'_>) -> Json<'static> {
        match json {
            Json::Text(text) => Json::Text(Cow::Owned(text.into_owned())),
            Json::Null => Json::Null,
            Json::Boolean(value) => Json::Boolean(value),
            Json::Whole(value) => Json::Whole(value),
            Json::Fraction(value) => Json::Fraction(value),
        }
    }

    fn read(bytes: &[u8]) -> Option<Members> {
        let mut members = Vec::new();
        Reader::new(bytes).object(|reader, name| {
            let value =
                if name == "skip" { reader.skip_value().map(|()| Json::Null) } else { reader.value() };
            members.push((name.into_owned(), owned(value?)));
            Some(())
        })?;
        Some(members)
    }

    /// What serde_json makes of it. Its maps keep no order and no second member of a name.
    fn reference(bytes: &[u8]) -> Option<Members> {
        let Value::Object(object) = serde_json::from_slice(bytes).ok()? else { return None };
        let value = |name: &str, value: &Value| match value {
            _ if name == "skip" => Some(Json::Null),
            Value::Null => Some(Json::Null),
            Value::Bool(value) => Some(Json::Boolean(*value)),
            Value::Number(number) => match number.as_i64() {
                Some(whole) => Some(Json::Whole(whole)),
                None => number.as_f64().map(Json::Fraction),
            },
            Value::String(text) => Some(Json::Text(Cow::Owned(text.clone()))),
            Value::Array(_) | Value::Object(_) => None,
        };
        object.iter().map(|(name, found)| Some((name.clone(), value(name, found)?))).collect()
    }

    fn last_of_each(members: Option<Members>) -> Option<Members> {
        let map: std::collections::BTreeMap<_, _> = members?.into_iter().collect();
        Some(map.into_iter().collect())
    }

    fn check(text: &str) {
        let found = last_of_each(read(text.as_bytes()));
        assert_eq!(found, last_of_each(reference(text.as_bytes())), "{text}");
    }

    #[test]
    fn means_what_serde_json_means() {
        for value in [
            "0",
            "-0",
            "00",
            "01",
            "-",
            "+1",
            "1.",
            ".5",
            "1e",
            "1e5",
            "1E+5",
            "-1.5e-3",
            "1-2",
            "1e400",
            "12345678901234567",
            "123456789012345678",
            "999999999999999999",
            "9223372036854775807",
            "9223372036854775808",
            "-9223372036854775808",
            "-9223372036854775809",
            "18446744073709551616",
            "true",
            "false",
            "null",
            "tru",
            "nulll",
            "\"\"",
            "\"a",
            "\"\\\"\"",
            "\"\\u00e9\\n\"",
            "\"\\ud800\"",
            "\"\\ud834\\udd1e\"",
            "\"\\x\"",
            "\"\t\"",
            "\"é𝄞\"",
            "\"\\",
            "{}",
            "[]",
            "[1]",
            "",
        ] {
            for text in
                [format!("{{\"a\":{value}}}"), format!(" {{ \"a\" : {value} , \"b\":1}} "), value.to_owned()]
            {
                check(&text);
            }
        }
        for text in [
            "",
            "{",
            "}",
            "{}",
            "{},",
            "{}{}",
            "[]",
            "{\"a\"}",
            "{\"a\":}",
            "{a:1}",
            "{\"a\":1,}",
            "{,}",
            "{\"a\":1 \"b\":2}",
            "{\"skip\":{\"x\":[1,{\"y\":null}]},\"a\":1}",
            "{\"skip\":[,\"a\":1}",
            "{\"\\u0061\":1}",
            "\u{feff}{}",
            "{\"a\":1}x",
        ] {
            check(text);
        }
        assert_eq!(read(b"{\"a\":\"\xff\"}"), None);
    }

    proptest! {
        #[test]
        fn texts_are_read_as_they_were_meant(text in "[ -~]{0,40}(.|[ -~]{0,40}){0,4}") {
            let body = format!("{{\"a\":{}}}", serde_json::to_string(&text).unwrap());
            prop_assert_eq!(read(body.as_bytes()), Some(vec![("a".to_owned(), Json::Text(text.into()))]));
        }

        #[test]
        fn bodies_in_pieces_mean_what_serde_json_means(pieces in prop::collection::vec(prop_oneof![
            Just("{"), Just("}"), Just(":"), Just(","), Just("\"a\""), Just("\"b\":1"), Just("\"skip\":[{}]"), Just("\"\\u00e9\""),
            Just("1.5"), Just("-3"), Just("true"), Just("null"), Just(" "), Just("\""), Just("\\"), Just("[1]"),
        ], 0..12)) {
            let body = pieces.concat();
            prop_assert_eq!(last_of_each(read(body.as_bytes())), last_of_each(reference(body.as_bytes())), "{}", body);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            prop_assert_eq!(last_of_each(read(&bytes)), last_of_each(reference(&bytes)));
        }
    }
}
