//! Records of RFC 4180: fields with commas between, quotes around what needs them, CRLF at the end.

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

/// Whether the lines so far are a whole record: a quote that is open goes on in the next line.
pub fn is_whole(lines: &[u8]) -> bool {
    lines.iter().filter(|byte| **byte == b'"').count() % 2 == 0
}

/// The fields of a record without its end.
pub fn read_record(record: &str) -> Result<Vec<String>, String> {
    let mut fields = Vec::new();
    let mut rest = record;
    loop {
        let (field, behind) = match rest.strip_prefix('"') {
            Some(quoted) => read_quoted(quoted)?,
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                let field = &rest[..end];
                if field.contains('"') {
                    return Err(format!(
                        "the field {field:?} holds a quote; a field with quotes is itself in quotes, and each of its own is written twice"
                    ));
                }
                (field.to_owned(), &rest[end..])
            }
        };
        fields.push(field);
        match behind.strip_prefix(',') {
            Some(behind) => rest = behind,
            None if behind.is_empty() => return Ok(fields),
            None => {
                return Err(
                    "something follows the quotes of a field; a comma or the line's end must".to_owned()
                );
            }
        }
    }
}

/// A field whose first quote is gone, and what stands behind its last.
fn read_quoted(text: &str) -> Result<(String, &str), String> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let end = rest.find('"').ok_or("a field's quotes are never closed")?;
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
    fn what_is_no_record_is_refused() {
        for (record, expected) in [
            ("\"a", "never closed"),
            ("a\"b\",c", "holds a quote"),
            ("\"a\"b,c", "something follows the quotes"),
        ] {
            let error = read_record(record).unwrap_err();
            assert!(error.contains(expected), "{record}: {error}");
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
            // A cut at any line's end but the last leaves a quote open.
            for (at, _) in text[..text.len() - 2].match_indices('\n') {
                prop_assert!(!is_whole(&out[..=at]));
            }
        }
    }
}
