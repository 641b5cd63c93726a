//! Records of RFC 4180: fields separated by commas, in quotes where necessary, CRLF at the end.

use thiserror::Error;

/// Why a text is not a record.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CsvError {
    #[error(
        "the field {field:?} contains a quote; put the field in quotes, and write each quote in it twice"
    )]
    QuoteInside { field: String },
    #[error(
        "text follows the closing quote of the field {field:?}; a comma or the end of the line must follow it"
    )]
    TextAfterQuotes { field: String },
    #[error("the last field begins with a quote and has no closing quote")]
    Unclosed,
}

/// Adds a record.
pub fn write_record<'a>(out: &mut Vec<u8>, fields: impl IntoIterator<Item = &'a str>) {
    for (index, field) in fields.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        if field.contains([',', '"', '\r', '\n']) {
            out.push(b'"');
            out.extend_from_slice(field.replace('"', "\"\"").as_bytes());
            out.push(b'"');
        } else {
            out.extend_from_slice(field.as_bytes());
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Whether the lines so far are a whole record. A field in quotes may contain line ends.
pub fn is_whole(lines: &[u8]) -> bool {
    lines.iter().filter(|byte| **byte == b'"').count() % 2 == 0
}

/// The fields of a record, which comes without its line end.
pub fn read_record(record: &str) -> Result<Vec<String>, CsvError> {
    let mut fields = Vec::new();
    let mut rest = record;
    loop {
        let (field, behind) = match rest.strip_prefix('"') {
            Some(quoted) => read_quoted(quoted)?,
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                let field = &rest[..end];
                if field.contains('"') {
                    return Err(CsvError::QuoteInside { field: field.to_owned() });
                }
                (field.to_owned(), &rest[end..])
            }
        };
        match behind.strip_prefix(',') {
            Some(behind) => rest = behind,
            None if behind.is_empty() => {
                fields.push(field);
                return Ok(fields);
            }
            None => return Err(CsvError::TextAfterQuotes { field }),
        }
        fields.push(field);
    }
}

/// Reads a field from behind its opening quote. Returns it and the text behind its closing quote.
fn read_quoted(text: &str) -> Result<(String, &str), CsvError> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let end = rest.find('"').ok_or(CsvError::Unclosed)?;
        field.push_str(&rest[..end]);
        let behind = &rest[end + 1..];
        match behind.strip_prefix('"') {
            Some(behind) => {
                field.push('"');
                rest = behind;
            }
            None => return Ok((field, behind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_are_read_as_the_rfc_says() {
        let check = |record: &str, expected: &[&str]| {
            assert_eq!(read_record(record).unwrap(), expected, "{record}");
        };
        check("", &[""]);
        check("a,b", &["a", "b"]);
        check(",", &["", ""]);
        check(r#""a,b", c ,"d""e","""#, &["a,b", " c ", "d\"e", ""]);
        check("\"two\r\nlines\",x", &["two\r\nlines", "x"]);
    }

    #[test]
    fn a_text_with_misplaced_quotes_is_refused() {
        for (record, expected) in [
            ("\"a", CsvError::Unclosed),
            ("a\"b\",c", CsvError::QuoteInside { field: "a\"b\"".to_owned() }),
            ("\"a\"b,c", CsvError::TextAfterQuotes { field: "a".to_owned() }),
        ] {
            assert_eq!(read_record(record), Err(expected), "{record}");
        }
    }

    proptest! {
        #[test]
        fn records_read_back(fields in prop::collection::vec("[ab,\"\r\n é😀\u{0}]{0,8}", 1..6)) {
            let mut out = Vec::new();
            write_record(&mut out, fields.iter().map(String::as_str));
            prop_assert!(is_whole(&out));
            let text = std::str::from_utf8(&out).unwrap();
            prop_assert_eq!(read_record(text.strip_suffix("\r\n").unwrap()), Ok(fields));
            // A cut at any line end but the last one leaves a quote open.
            for (at, _) in text[..text.len() - 2].match_indices('\n') {
                prop_assert!(!is_whole(&out[..=at]));
            }
        }
    }
}
