//! Ids of leases, in all the spellings that .NET has for them.

use std::fmt;

use common::Guid;

use crate::Refusal;

/// A GUID; shown in lower case with dashes, however it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaseId(pub Guid);

impl LeaseId {
    /// 32 digits, with dashes or without, in braces or parentheses or in neither, or in hexadecimal groups.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim_ascii();
        let within =
            |open: char, close: char| text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
        let dashed = within('{', '}').or_else(|| within('(', ')')).unwrap_or(text);
        if let Some(guid) = Guid::parse(dashed) {
            return Some(Self(guid));
        }
        let digits = match text.len() {
            32 => text.to_owned(),
            _ => grouped(text)?,
        };
        if digits.len() != 32 || !digits.is_ascii() {
            return None;
        }
        let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
        Guid::parse(&parts.join("-")).map(Self)
    }

    /// The value of a header that names a lease.
    pub fn of_header(name: &'static str, value: &str) -> Result<Self, Refusal> {
        Self::parse(value).ok_or_else(|| Refusal::HeaderInvalid { name, value: value.to_owned() })
    }
}

/// `{0x00000000,0x0000,0x0000,{0x00,0x00,0x00,0x00,0x00,0x00,0x00,0x00}}` as 32 digits.
fn grouped(text: &str) -> Option<String> {
    const WIDTHS: [usize; 11] = [8, 4, 4, 2, 2, 2, 2, 2, 2, 2, 2];
    let (head, tail) = text.strip_prefix('{')?.strip_suffix("}}")?.split_once(",{")?;
    let numbers: Vec<&str> = head.split(',').chain(tail.split(',')).take(WIDTHS.len() + 1).collect();
    if numbers.len() != WIDTHS.len() || head.split(',').count() != 3 {
        return None;
    }
    let mut digits = String::with_capacity(32);
    for (number, width) in numbers.iter().zip(WIDTHS) {
        let number = number.trim_ascii().strip_prefix("0x")?;
        if number.is_empty() || number.len() > width {
            return None;
        }
        digits.extend(std::iter::repeat_n('0', width - number.len()));
        digits.push_str(number);
    }
    Some(digits)
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec: blob-operations 3.1.
    #[test]
    fn every_spelling_of_a_guid_is_an_id() {
        let shown = "00000000-1111-2222-3333-44444444abcd";
        for text in [
            "00000000-1111-2222-3333-44444444abcd",
            "00000000-1111-2222-3333-44444444ABCD",
            "0000000011112222333344444444abcd",
            "{00000000-1111-2222-3333-44444444abcd}",
            "(00000000-1111-2222-3333-44444444abcd)",
            "{0x0,0x1111,0x2222,{0x33,0x33,0x44,0x44,0x44,0x44,0xab,0xcd}}",
            " 00000000-1111-2222-3333-44444444abcd ",
        ] {
            assert_eq!(LeaseId::parse(text).map(|id| id.to_string()).as_deref(), Some(shown), "{text}");
        }
        for text in [
            "",
            "'d92e6954-3274-4715-811c-727ca7145303'",
            "{00000000-1111-2222-3333-44444444abcd)",
            "0000000011112222333344444444abcg",
            "000000001111222233334444444éabcd",
            "{0x0,0x1111,0x2222,{0x33,0x33,0x44,0x44,0x44,0x44,0xab}}",
            "{0x0,0x11112,0x2222,{0x33,0x33,0x44,0x44,0x44,0x44,0xab,0xcd}}",
            "{0x0,0x1111,{0x2222,0x33,0x33,0x44,0x44,0x44,0x44,0xab,0xcd}}",
            "invalid",
        ] {
            assert_eq!(LeaseId::parse(text), None, "{text}");
        }
        let refusal = LeaseId::of_header("x-ms-lease-id", "'a'").unwrap_err();
        assert_eq!(refusal.code(), "InvalidHeaderValue");
        assert_eq!(
            refusal.details(),
            [("HeaderName", "x-ms-lease-id".into()), ("HeaderValue", "'a'".into())]
        );
    }
}
