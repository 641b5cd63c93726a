//! Property values: how they are written and how filters compare them.

use std::cmp::Ordering;
use std::fmt::Write as _;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    String(String),
    Boolean(bool),
    Int32(i32),
    Int64(i64),
    /// Of moderate size, or infinite.
    Double(f64),
    /// With all seven digits of the fraction, so that text order is time order.
    DateTime(String),
    /// In lower case.
    Guid(String),
    Binary(Vec<u8>),
}

impl Value {
    /// The name of the type, if JSON alone does not show it.
    pub fn annotation(&self) -> Option<&'static str> {
        match self {
            Self::Int64(_) => Some("Edm.Int64"),
            Self::Double(number) if number.is_infinite() => Some("Edm.Double"),
            Self::DateTime(_) => Some("Edm.DateTime"),
            Self::Guid(_) => Some("Edm.Guid"),
            Self::Binary(_) => Some("Edm.Binary"),
            Self::String(_) | Self::Boolean(_) | Self::Int32(_) | Self::Double(_) => None,
        }
    }

    pub fn json(&self) -> String {
        match self {
            Self::String(text) => json_text(text),
            Self::Boolean(value) => value.to_string(),
            Self::Int32(number) => number.to_string(),
            Self::Int64(number) => format!("\"{number}\""),
            Self::Double(number) if number.is_infinite() => "\"Infinity\"".to_owned(),
            Self::Double(number) => format!("{number:?}"),
            Self::DateTime(time) => format!("\"{}\"", short_time(time)),
            Self::Guid(guid) => format!("\"{guid}\""),
            Self::Binary(bytes) => format!("\"{}\"", base64(bytes)),
        }
    }

    /// As it is written in a filter.
    pub fn literal(&self) -> String {
        match self {
            Self::String(text) => format!("'{}'", text.replace('\'', "''")),
            Self::Boolean(value) => value.to_string(),
            Self::Int32(number) => number.to_string(),
            Self::Int64(number) => format!("{number}L"),
            Self::Double(number) => format!("{number:?}"),
            Self::DateTime(time) => format!("datetime'{time}'"),
            Self::Guid(guid) => format!("guid'{guid}'"),
            Self::Binary(bytes) => {
                let digits = bytes.iter().fold(String::new(), |mut digits, byte| {
                    let _ = write!(digits, "{byte:02x}");
                    digits
                });
                format!("X'{digits}'")
            }
        }
    }

    /// Compares a stored value with a literal. A number literal is widened to the stored type, never the other way; for
    /// any other pair of types the stored value is less.
    pub fn against(&self, literal: &Self) -> Ordering {
        let numeric = |a: f64, b: f64| a.partial_cmp(&b).unwrap();
        match (self, literal) {
            (Self::String(a), Self::String(b)) => a.encode_utf16().cmp(b.encode_utf16()),
            (Self::Boolean(a), Self::Boolean(b)) => a.cmp(b),
            (Self::Int32(a), Self::Int32(b)) => a.cmp(b),
            (Self::Int64(a), Self::Int32(b)) => a.cmp(&i64::from(*b)),
            (Self::Int64(a), Self::Int64(b)) => a.cmp(b),
            (Self::Double(a), Self::Int32(b)) => numeric(*a, f64::from(*b)),
            (Self::Double(a), Self::Int64(b)) => numeric(*a, *b as f64),
            (Self::Double(a), Self::Double(b)) => numeric(*a, *b),
            (Self::DateTime(a), Self::DateTime(b)) | (Self::Guid(a), Self::Guid(b)) => a.cmp(b),
            (Self::Binary(a), Self::Binary(b)) => a.cmp(b),
            _ => Ordering::Less,
        }
    }
}

/// Everything beyond ASCII as UTF-16 escapes.
pub fn json_text(text: &str) -> String {
    let mut out = "\"".to_owned();
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            ' '..='~' => out.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
    out
}

/// Without zeros at the end of the fraction.
fn short_time(time: &str) -> String {
    let time = time.trim_end_matches('Z').trim_end_matches('0');
    // Trimming of zeros stops at the point, so whole seconds keep theirs.
    format!("{}Z", time.trim_end_matches('.'))
}

/// With all seven digits of the fraction.
pub fn full_time(time: &str) -> String {
    let time = time.trim_end_matches('Z');
    let (seconds, fraction) = time.split_once('.').unwrap_or((time, ""));
    format!("{seconds}.{fraction:0<7}Z")
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let bits =
            group.iter().fold(0, |bits: u32, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for digit in 0..4 {
            let index = (bits >> (18 - 6 * digit)) & 63;
            out.push(if digit <= group.len() { char::from(DIGITS[index as usize]) } else { '=' });
        }
    }
    out
}
