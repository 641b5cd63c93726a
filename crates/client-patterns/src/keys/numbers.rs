//! Numbers as text of 20 digits that sorts as the numbers do.

use partita_client::{Error, Result};

const DIGITS: usize = 20;
/// Added to signed numbers: negative ones then begin with 0, the others with 1 and end with their own digits.
const SHIFT: i128 = 10_i128.pow(DIGITS as u32 - 1);

/// A number that may be negative.
///
/// ```
/// use partita_client_patterns::keys::signed;
///
/// assert_eq!(signed(42), "10000000000000000042");
/// assert_eq!(signed(-1), "09999999999999999999");
/// ```
pub fn signed(number: i64) -> String {
    format!("{:020}", i128::from(number) + SHIFT)
}

/// The number of [`signed`].
pub fn parse_signed(key: &str) -> Result<i64> {
    digits(key).and_then(|number| i64::try_from(number - SHIFT).ok()).ok_or_else(|| fault(key, "signed"))
}

/// A number that may be negative, the greatest first.
///
/// ```
/// use partita_client_patterns::keys::signed_inverted;
///
/// assert!(signed_inverted(3) < signed_inverted(2) && signed_inverted(0) < signed_inverted(-5));
/// ```
pub fn signed_inverted(number: i64) -> String {
    signed(!number)
}

/// The number of [`signed_inverted`].
pub fn parse_signed_inverted(key: &str) -> Result<i64> {
    parse_signed(key).map(|number| !number).map_err(|_| fault(key, "signed_inverted"))
}

/// A number, with zeros before it.
///
/// ```
/// use partita_client_patterns::keys::unsigned;
///
/// assert_eq!(unsigned(42), "00000000000000000042");
/// ```
pub fn unsigned(number: u64) -> String {
    format!("{number:020}")
}

/// The number of [`unsigned`].
pub fn parse_unsigned(key: &str) -> Result<u64> {
    digits(key).and_then(|number| u64::try_from(number).ok()).ok_or_else(|| fault(key, "unsigned"))
}

/// A number, the greatest first.
///
/// ```
/// use partita_client_patterns::keys::unsigned_inverted;
///
/// assert_eq!(unsigned_inverted(1), "18446744073709551614");
/// ```
pub fn unsigned_inverted(number: u64) -> String {
    unsigned(!number)
}

/// The number of [`unsigned_inverted`].
pub fn parse_unsigned_inverted(key: &str) -> Result<u64> {
    parse_unsigned(key).map(|number| !number).map_err(|_| fault(key, "unsigned_inverted"))
}

fn digits(key: &str) -> Option<i128> {
    let plain = key.len() == DIGITS && key.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| key.parse().ok()).flatten()
}

fn fault(key: &str, made_by: &str) -> Error {
    Error::Invalid(format!(
        "{key:?} is not the number of a key; `keys::{made_by}` makes such of {DIGITS} digits"
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_smallest_and_the_greatest_number_have_keys() {
        assert_eq!(signed(i64::MIN), "00776627963145224192");
        assert_eq!(signed(i64::MAX), "19223372036854775807");
        assert_eq!(unsigned(u64::MAX), "18446744073709551615");
    }

    #[test]
    fn a_key_that_is_not_a_number_is_refused() {
        for key in ["", "42", "+0000000000000000042", "99999999999999999999", "0000000000000000004é"] {
            assert!(parse_signed(key).is_err() && parse_unsigned(key).is_err(), "{key}");
            assert!(parse_signed_inverted(key).is_err() && parse_unsigned_inverted(key).is_err(), "{key}");
        }
        assert!(parse_signed("00000000000000000000").is_err());
    }

    proptest! {
        #[test]
        fn signed_numbers_keep_their_order_and_come_back(a: i64, b: i64) {
            prop_assert_eq!(signed(a).cmp(&signed(b)), a.cmp(&b));
            prop_assert_eq!(signed_inverted(a).cmp(&signed_inverted(b)), b.cmp(&a));
            prop_assert_eq!(parse_signed(&signed(a)).unwrap(), a);
            prop_assert_eq!(parse_signed_inverted(&signed_inverted(a)).unwrap(), a);
        }

        #[test]
        fn unsigned_numbers_keep_their_order_and_come_back(a: u64, b: u64) {
            prop_assert_eq!(unsigned(a).cmp(&unsigned(b)), a.cmp(&b));
            prop_assert_eq!(unsigned_inverted(a).cmp(&unsigned_inverted(b)), b.cmp(&a));
            prop_assert_eq!(parse_unsigned(&unsigned(a)).unwrap(), a);
            prop_assert_eq!(parse_unsigned_inverted(&unsigned_inverted(a)).unwrap(), a);
        }
    }
}
