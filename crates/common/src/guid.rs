//! GUIDs (`Edm.Guid` in tables), in the byte order of their text.

use std::fmt;
use std::str::FromStr;

use crate::ParseValueError;

/// Sixteen bytes in the order of their text; they compare in this order too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid(pub [u8; 16]);

impl Guid {
    /// `8-4-4-4-12` hexadecimal digits, in any case.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.as_bytes();
        if text.len() != 36 {
            return None;
        }
        let mut bytes = [0; 16];
        let mut filled = 0;
        let mut at = 0;
        while at < text.len() {
            if matches!(at, 8 | 13 | 18 | 23) {
                if text[at] != b'-' {
                    return None;
                }
                at += 1;
                continue;
            }
            let (high, low) = (DIGIT[usize::from(text[at])], DIGIT[usize::from(text[at + 1])]);
            if high | low > 15 {
                return None;
            }
            bytes[filled] = high << 4 | low;
            filled += 1;
            at += 2;
        }
        Some(Self(bytes))
    }
}

/// The value of a hexadecimal digit; above 15 for any other byte.
static DIGIT: [u8; 256] = {
    let mut values = [u8::MAX; 256];
    let mut byte: u8 = 0;
    while byte < 128 {
        if let Some(value) = (byte as char).to_digit(16) {
            values[byte as usize] = value as u8;
        }
        byte += 1;
    }
    values
};

impl Guid {
    /// Appends what `Display` shows.
    pub fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.text());
    }

    fn text(self) -> [u8; 36] {
        /// Where the digits of each byte stand.
        const PLACES: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
        let mut text = [b'-'; 36];
        for (byte, at) in self.0.iter().zip(PLACES) {
            text[at..at + 2].copy_from_slice(&HEXADECIMAL[usize::from(*byte)]);
        }
        text
    }
}

/// `00` to `ff`.
static HEXADECIMAL: [[u8; 2]; 256] = {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut value = 0;
    while value < 256 {
        pairs[value] = [DIGITS[value >> 4], DIGITS[value & 15]];
        value += 1;
    }
    pairs
};

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.text()).map_err(|_| fmt::Error)?)
    }
}

/// See [`Guid::parse`].
impl FromStr for Guid {
    type Err = ParseValueError;

    fn from_str(text: &str) -> Result<Self, ParseValueError> {
        let example = "0f8fad5b-d9cb-469f-a165-70867728950e";
        let error = || ParseValueError { text: text.to_owned(), kind: "Edm.Guid", example };
        Self::parse(text).ok_or_else(error)
    }
}

impl From<[u8; 16]> for Guid {
    fn from(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl From<Guid> for [u8; 16] {
    fn from(guid: Guid) -> Self {
        guid.0
    }
}

impl AsRef<[u8]> for Guid {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_lower_case_whatever_case_it_was_read_in() {
        let guid = Guid::parse("0F8FAD5B-d9cb-469f-A165-70867728950E").unwrap();
        assert_eq!(guid.to_string(), "0f8fad5b-d9cb-469f-a165-70867728950e");
    }

    #[test]
    fn refuses_other_forms() {
        for text in [
            "",
            "0f8fad5bd9cb469fa16570867728950e",
            "{0f8fad5b-d9cb-469f-a165-70867728950e}",
            "0f8fad5b-d9cb-469f-a165-70867728950",
            "0f8fad5b-d9cb-469f-a165-70867728950g",
            "0f8fad5b+d9cb-469f-a165-70867728950e",
            "0f8fad5-bd9cb-469f-a165-70867728950e",
            "éf8fad5b-d9cb-469f-a165-7086772895e",
        ] {
            assert_eq!(Guid::parse(text), None, "{text}");
        }
    }
}
