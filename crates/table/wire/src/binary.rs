//! `Edm.Binary` as clients write it: Base64, as .NET reads it.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

/// .NET ignores the bits after the last whole byte.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

pub fn read(text: &str) -> Option<Vec<u8>> {
    if let Ok(bytes) = BASE64.decode(text) {
        return Some(bytes);
    }
    // Some libraries break it into lines.
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    BASE64.decode(digits).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_dotnet_reads_is_read() {
        for (text, expected) in [
            ("", Some(&b""[..])),
            ("YWI=", Some(b"ab")),
            ("YWJ=", Some(b"ab")),
            (" YWJj\r\n\tYW I=\n", Some(b"abcab")),
            ("YWI", None),
            ("YW=I", None),
            ("YWI_", None),
            ("YWI=\u{a0}", None),
        ] {
            assert_eq!(read(text).as_deref(), expected, "{text:?}");
        }
    }
}
