//! Literals both ways: the text of a token to a value, and a value to text that reads back as the same value.

use std::fmt;

use model::{DateTime, EdmType, Guid, Value, format_double};

/// Parses a token of this type. `None` if the text is not a value of it.
pub(crate) fn parse(kind: EdmType, text: &str) -> Option<Value> {
    match kind {
        EdmType::String => Some(Value::String(quoted(text)?.replace("''", "'"))),
        EdmType::Boolean => text.parse().ok().map(Value::Boolean),
        EdmType::Int32 => text.parse().ok().map(Value::Int32),
        EdmType::Int64 => text.strip_suffix(['l', 'L'])?.parse().ok().map(Value::Int64),
        EdmType::Double => double(text).map(Value::Double),
        EdmType::DateTime => DateTime::parse(quoted(text)?).map(Value::DateTime),
        EdmType::Guid => Guid::parse(quoted(text)?).map(Value::Guid),
        EdmType::Binary => hexadecimal(quoted(text)?).map(Value::Binary),
    }
}

/// The text between the first quote and the last.
fn quoted(text: &str) -> Option<&str> {
    text.split_once('\'')?.1.strip_suffix('\'')
}

fn double(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "INF" => Some(f64::INFINITY),
        "-INF" => Some(f64::NEG_INFINITY),
        _ => {
            let digits = text.strip_suffix(['d', 'D', 'f', 'F', 'm', 'M']).unwrap_or(text);
            // Digits that overflow are an error in .NET, not an infinity.
            digits.parse().ok().filter(|value: &f64| value.is_finite())
        }
    }
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> = text.chars().map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    let (pairs, odd) = digits.as_chunks::<2>();
    odd.is_empty().then(|| pairs.iter().map(|[high, low]| (high * 16 + low) as u8).collect())
}

pub(crate) fn write(f: &mut fmt::Formatter<'_>, value: &Value) -> fmt::Result {
    match value {
        Value::String(text) => write!(f, "'{}'", text.replace('\'', "''")),
        Value::Boolean(value) => write!(f, "{value}"),
        Value::Int32(value) => write!(f, "{value}"),
        Value::Int64(value) => write!(f, "{value}L"),
        Value::Double(value) if value.is_nan() => f.write_str("NaN"),
        Value::Double(value) if value.is_infinite() => f.write_str(if *value > 0.0 { "INF" } else { "-INF" }),
        Value::Double(value) => f.write_str(&format_double(*value)),
        Value::DateTime(time) => write!(f, "datetime'{time}'"),
        Value::Guid(guid) => write!(f, "guid'{guid}'"),
        Value::Binary(bytes) => {
            f.write_str("X'")?;
            bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
            f.write_str("'")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Shown(Value);

    impl fmt::Display for Shown {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write(f, &self.0)
        }
    }

    fn check(kind: EdmType, text: &str, expected: &str) {
        let shown = parse(kind, text).map_or("refused".to_owned(), |value| {
            assert_eq!(value.edm_type(), kind);
            Shown(value).to_string()
        });
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn texts() {
        check(EdmType::String, "''", "''");
        check(EdmType::String, "'o''clock'", "'o''clock'");
        assert_eq!(parse(EdmType::String, "''''"), Some(Value::String("'".to_owned())));
        check(EdmType::Boolean, "true", "true");
    }

    #[test]
    fn numbers() {
        check(EdmType::Int32, "2147483647", "2147483647");
        check(EdmType::Int32, "-2147483648", "-2147483648");
        check(EdmType::Int32, "2147483648", "refused");
        check(EdmType::Int32, "007", "7");
        check(EdmType::Int64, "9223372036854775807L", "9223372036854775807L");
        check(EdmType::Int64, "-9223372036854775808l", "-9223372036854775808L");
        check(EdmType::Int64, "9223372036854775808L", "refused");
        check(EdmType::Int64, "1.5L", "refused");
        check(EdmType::Double, "1e10", "10000000000.0");
        check(EdmType::Double, "1d", "1.0");
        check(EdmType::Double, "-2.5M", "-2.5");
        check(EdmType::Double, "1e-7f", "1E-07");
        check(EdmType::Double, "1e400", "refused");
        check(EdmType::Double, "INF", "INF");
        check(EdmType::Double, "-INF", "-INF");
        check(EdmType::Double, "NaN", "NaN");
    }

    #[test]
    fn typed() {
        check(
            EdmType::DateTime,
            "datetime'2021-05-06T07:08:09.1234567Z'",
            "datetime'2021-05-06T07:08:09.1234567Z'",
        );
        check(EdmType::DateTime, "datetime'2021-05-06T07:08:09'", "datetime'2021-05-06T07:08:09Z'");
        check(EdmType::DateTime, "datetime'tomorrow'", "refused");
        check(
            EdmType::Guid,
            "guid'0F8FAD5B-D9CB-469F-A165-70867728950E'",
            "guid'0f8fad5b-d9cb-469f-a165-70867728950e'",
        );
        check(EdmType::Guid, "guid'0f8fad5b'", "refused");
        check(EdmType::Binary, "X'0a0B'", "X'0a0b'");
        check(EdmType::Binary, "binary''", "X''");
        check(EdmType::Binary, "X'0a0'", "refused");
        check(EdmType::Binary, "X'é0'", "refused");
    }
}
