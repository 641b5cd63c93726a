//! Continuation tokens in the service's form: `1!<length>!<base64 of the key>`, URL-safe.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const PREFIX: &str = "1!";

pub fn encode(text: &str) -> String {
    let encoded = STANDARD.encode(text).replace('=', "-").replace('+', "*").replace('/', "_");
    format!("{PREFIX}{}!{encoded}", encoded.len())
}

pub fn decode(token: &str) -> Option<String> {
    let (length, encoded) = token.strip_prefix(PREFIX)?.split_once('!')?;
    if length.parse() != Ok(encoded.len()) {
        return None;
    }
    let encoded = encoded.replace('-', "=").replace(['*', ' '], "+").replace('_', "/");
    String::from_utf8(STANDARD.decode(encoded).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn looks_as_recorded() {
        assert_eq!(encode("Smith"), "1!8!U21pdGg-");
        assert_eq!(encode("Ben1898"), "1!12!QmVuMTg5OA--");
        assert_eq!(encode(""), "1!0!");
    }

    #[test]
    fn refuses_what_it_never_gave() {
        for token in [
            "",
            "1!",
            "1!8!",
            "2!0!",
            "U21pdGg-",
            "1!8!U21pdGg",
            "1!x!abcd",
            "1!4!////",
            "1!8!U21p GG-",
            "1!-1!",
        ] {
            assert_eq!(decode(token), None, "{token}");
        }
    }

    proptest! {
        #[test]
        fn reads_back(text in ".{0,40}") {
            prop_assert_eq!(decode(&encode(&text)), Some(text));
        }
    }
}
