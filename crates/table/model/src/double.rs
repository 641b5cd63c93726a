//! How the service writes an Edm.Double: .NET Framework's `R` format.

/// Fifteen significant digits if they read back as the same number, else seventeen; scientific from 1E+15 up and from 1E-05
/// down; always with a point or an exponent, so that it can't be taken for an Int32. Not for NaN and the infinities, which
/// are written as names.
pub fn format_double(value: f64) -> String {
    let mut out = Vec::new();
    write_double(&mut out, value);
    // All of it is ASCII.
    String::from_utf8(out).unwrap_or_default()
}

/// Appends what `format_double` returns.
pub fn write_double(out: &mut Vec<u8>, value: f64) {
    if value == 0.0 {
        out.extend_from_slice(b"0.0"); // JSON of the service knows no negative zero
        return;
    }
    let mut buffer = zmij::Buffer::new();
    let fewest = buffer.format_finite(value);
    // The first condition implies the second: it has at most fifteen digits beside the point, and no exponent.
    if (fewest.len() <= 16 && (1e-4..1e15).contains(&value.abs())) || is_as_shown(fewest) {
        out.extend_from_slice(fewest.as_bytes());
    } else {
        out.extend_from_slice(show(&fifteen_or_seventeen(value)).as_bytes());
    }
}

/// Whether the shortest text that reads back is also the service's: it is if it has at most fifteen digits and no exponent,
/// as most stored numbers do.
fn is_as_shown(fewest: &str) -> bool {
    // A zero at the end, as in 20.0, counts as a digit. A few numbers take the slow path because of it.
    let (mut digits, mut whole, mut zeros) = (0, 0, 0);
    let mut behind_point = false;
    for byte in fewest.bytes() {
        match byte {
            b'-' => {}
            b'.' => behind_point = true,
            b'0' if digits == 0 => zeros += usize::from(behind_point),
            b'0'..=b'9' => digits += 1,
            _ => return false,
        }
        whole += usize::from(byte.is_ascii_digit() && !behind_point);
    }
    digits <= 15 && whole <= 15 && zeros < 4
}

/// `text` is in the form of `{:e}`: d.ddde±n.
fn show(text: &str) -> String {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_end_matches('0');

    if (-4..15).contains(&exponent) {
        let (whole, fraction) = if exponent < 0 {
            ("0".to_owned(), format!("{}{digits}", "0".repeat((-exponent - 1) as usize)))
        } else {
            let point = exponent as usize + 1;
            if digits.len() > point {
                (digits[..point].to_owned(), digits[point..].to_owned())
            } else {
                (format!("{digits:0<point$}"), "0".to_owned())
            }
        };
        format!("{sign}{whole}.{fraction}")
    } else {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        format!("{sign}{first}{point}{rest}E{exponent_sign}{:02}", exponent.abs())
    }
}

fn fifteen_or_seventeen(value: f64) -> String {
    // The shortest digits that read back. If there are at most fifteen, they equal the fifteen digits without trailing
    // zeros, because every decimal of fifteen digits survives a round trip through a double that is not subnormal.
    let fewest = format!("{value:e}");
    let digits = fewest.bytes().take_while(|b| *b != b'e').filter(u8::is_ascii_digit).count();
    if digits <= 15 && value.is_normal() { fewest } else { by_trial(value) }
}

fn by_trial(value: f64) -> String {
    let short = format!("{value:.14e}");
    if short.parse() == Ok(value) { short } else { format!("{value:.16e}") }
}

#[cfg(test)]
mod tests {
    use super::{by_trial, format_double, show};
    use proptest::prelude::*;

    fn check(value: f64, expected: &str) {
        assert_eq!(format_double(value), expected);
    }

    #[test]
    fn writes_what_the_service_was_seen_to_write() {
        check(3.0, "3.0");
        check(1.1, "1.1");
        check(8_589_934_592.0, "8589934592.0");
        check(123_456_789_012_345.12, "123456789012345.12");
        check(1.234_567_890_123_46e24, "1.23456789012346E+24");
        check(f64::MAX, "1.7976931348623157E+308");
        check(5e-324, "4.94065645841247E-324");
    }

    #[test]
    fn changes_to_exponents_where_dotnet_does() {
        check(0.0001, "0.0001");
        check(0.00001, "1E-05");
        check(999_999_999_999_999.0, "999999999999999.0");
        check(1e15, "1E+15");
        check(-1.5e100, "-1.5E+100");
        check(-0.0, "0.0");
        check(0.1 + 0.2, "0.30000000000000004");
        check(-20.0, "-20.0");
    }

    proptest! {
        #[test]
        fn the_quick_way_is_the_way_by_trial(value in proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL) {
            prop_assert_eq!(format_double(value), show(&by_trial(value)));
        }

        #[test]
        fn the_quick_way_is_the_way_by_trial_for_short_numbers(digits in 1..=999_999_i64, exponent in -30..30_i32, sign in prop::bool::ANY) {
            let value: f64 = format!("{}{digits}e{exponent}", if sign { "-" } else { "" }).parse().unwrap();
            prop_assert_eq!(format_double(value), show(&by_trial(value)));
        }

        #[test]
        fn reads_back_as_the_same_number(value in proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL) {
            prop_assert_eq!(format_double(value).parse(), Ok(value));
        }
    }
}
