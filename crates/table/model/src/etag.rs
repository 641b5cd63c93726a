//! ETags: a function of the Timestamp, so they are not stored.

use std::fmt;

use crate::{DateTime, Refusal};

/// `W/"datetime'2021-05-06T07%3A08%3A09.12Z'"`: the same text in the header, `odata.etag` and `m:etag`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ETag(pub DateTime);

impl ETag {
    /// Appends the text between the quotes.
    pub fn write_opaque(self, out: &mut Vec<u8>) {
        Self::write_opaque_of(out, &self.0.text());
    }

    /// The same from the text of the timestamp, for answers that show both.
    pub fn write_opaque_of(out: &mut Vec<u8>, (time, length): &([u8; 28], usize)) {
        // The colons after the hour and the minute have fixed positions.
        let mut text = *b"datetime'0000-00-00T00%3A00%3A00.0000000Z'";
        text[9..22].copy_from_slice(&time[..13]);
        text[25..27].copy_from_slice(&time[14..16]);
        text[30..41].copy_from_slice(&time[17..28]);
        let end = 30 + length - 17;
        text[end] = b'\'';
        out.extend_from_slice(&text[..=end]);
    }

    /// The same as `Display`.
    pub fn text(self) -> String {
        let mut out = Vec::with_capacity(48);
        out.extend_from_slice(b"W/\"");
        self.write_opaque(&mut out);
        out.push(b'"');
        // All of it is ASCII.
        String::from_utf8(out).unwrap_or_default()
    }
}

impl fmt::Display for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// The condition in an `If-Match` header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IfMatch {
    /// `*`: the entity must exist.
    Any,
    /// The entity must have this ETag.
    Version(DateTime),
    /// Well formed, but not an ETag of this service: matches nothing.
    Foreign,
}

impl IfMatch {
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let text = text.trim();
        if text == "*" {
            return Ok(Self::Any);
        }
        if text.is_empty() {
            return Err(common::Refusal::InputNotValid.into());
        }
        let opaque = text
            .strip_prefix("W/\"")
            .and_then(|rest| rest.strip_suffix('"'))
            .filter(|inner| !inner.contains('"'))
            .ok_or_else(|| Refusal::EtagNotValid { etag: text.to_owned() })?;
        // A time in doubled quotes has a refusal of its own.
        if opaque.starts_with("datetime''") && opaque.ends_with("''") {
            return Err(common::Refusal::ConditionNotMet.into());
        }
        let version = opaque
            .strip_prefix("datetime'")
            .and_then(|rest| rest.strip_suffix('\''))
            .and_then(|time| DateTime::parse(&time.replace("%3A", ":").replace("%3a", ":")));
        // Only the exact text of the service matches: another spelling of the same time is another ETag.
        Ok(match version {
            Some(time) if ETag(time).text() == text.replace("%3a", "%3A").replace(':', "%3A") => {
                Self::Version(time)
            }
            _ => Self::Foreign,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<IfMatch, Refusal>) {
        assert_eq!(IfMatch::parse(text), expected, "{text}");
    }

    #[test]
    fn reads_back_what_it_shows() {
        let time = DateTime::parse("2021-05-06T07:08:09.12Z").unwrap();
        let shown = ETag(time).to_string();
        assert_eq!(shown, "W/\"datetime'2021-05-06T07%3A08%3A09.12Z'\"");
        check(&shown, Ok(IfMatch::Version(time)));
        check(&shown.replace("%3A", ":"), Ok(IfMatch::Version(time)));
    }

    #[test]
    fn tells_foreign_from_malformed() {
        let malformed = |text: &str| Err(Refusal::EtagNotValid { etag: text.to_owned() });
        check("*", Ok(IfMatch::Any));
        check("W/\"foo\"", Ok(IfMatch::Foreign));
        check("W/\"datetime'2021-05-06T07%3A08%3A09.120Z'\"", Ok(IfMatch::Foreign));
        check("W/\"datetime'never'\"", Ok(IfMatch::Foreign));
        check("W/\"datetime''2021-05-06T07%3A08%3A09.12Z''\"", Err(common::Refusal::ConditionNotMet.into()));
        check("", Err(common::Refusal::InputNotValid.into()));
        check("abc", malformed("abc"));
        check("\"strong\"", malformed("\"strong\""));
        check("W/\"a\", W/\"b\"", malformed("W/\"a\", W/\"b\""));
    }
}
