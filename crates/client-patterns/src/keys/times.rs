//! Times as text, the oldest or the newest first, and the days and hours they fall into. All in UTC.

use model::DateTime;

use super::composite;
use partita_client::{Error, Filter, Operand, Result};

pub(crate) const TICKS_PER_DAY: i64 = 864_000_000_000;
/// Digits of the ticks of any time.
const DIGITS: usize = 19;

/// A time to the tick (100 ns), the oldest first: its ticks as .NET counts them, 19 digits.
///
/// ```
/// use partita_client::DateTime;
/// use partita_client_patterns::keys;
///
/// let time = DateTime::parse("2026-01-31T12:00:00Z").unwrap();
/// assert_eq!(keys::oldest_first(time), "0639054576000000000");
/// ```
pub fn oldest_first(time: DateTime) -> String {
    digits(time.ticks())
}

/// The time of [`oldest_first`].
pub fn parse_oldest_first(key: &str) -> Result<DateTime> {
    parse(key).and_then(DateTime::from_ticks).ok_or_else(|| fault(key, "oldest_first"))
}

/// A time to the tick, the newest first: what .NET writes as `DateTime.MaxValue.Ticks - time.Ticks` with 19 digits.
///
/// ```
/// use partita_client::DateTime;
/// use partita_client_patterns::keys;
///
/// let time = DateTime::parse("2026-01-31T12:00:00Z").unwrap();
/// assert_eq!(keys::newest_first(time), "2516324399999999999");
/// ```
pub fn newest_first(time: DateTime) -> String {
    digits(inverted(time))
}

/// The time of [`newest_first`].
pub fn parse_newest_first(key: &str) -> Result<DateTime> {
    parse(key)
        .and_then(|ticks| DateTime::from_ticks(DateTime::MAX.ticks() - ticks))
        .ok_or_else(|| fault(key, "newest_first"))
}

/// A unique row key for a log whose newest rows are read most: they come first in the partition, so
/// `table.query().filter(…).take(50)` reads them. A random part makes keys of the same tick different.
///
/// ```
/// use partita_client::DateTime;
/// use partita_client_patterns::keys;
///
/// let now = DateTime::now();
/// assert_ne!(keys::log_tail(now), keys::log_tail(now));
/// assert_eq!(keys::log_time(&keys::log_tail(now))?, now);
/// # Ok::<(), partita_client::Error>(())
/// ```
pub fn log_tail(time: DateTime) -> String {
    let unique: u64 = rand::random();
    composite::join([newest_first(time), format!("{unique:016x}")])
}

/// The time in a key of [`log_tail`].
pub fn log_time(key: &str) -> Result<DateTime> {
    let time = key.split(composite::SEPARATOR).next().unwrap_or_default();
    parse_newest_first(time).map_err(|_| fault(key, "log_tail"))
}

/// The rows of [`log_tail`] and [`newest_first`] from `from` on and before `until`.
///
/// ```
/// use partita_client::{DateTime, row_key};
/// use partita_client_patterns::keys;
///
/// let day = |text| DateTime::parse(text).unwrap();
/// let filter = keys::log_between(row_key(), day("2026-01-30"), day("2026-01-31"));
/// assert_eq!(
///     filter.to_string(),
///     "(RowKey ge '2516324832000000000') and (RowKey lt '2516325696000000000')",
/// );
/// ```
pub fn log_between(key: Operand, from: DateTime, until: DateTime) -> Filter {
    let (first, end) = log_range(from, until);
    key.between(first, end)
}

/// The first key and the end of the range. The rows of a tick end where those of the tick before it in time begin.
fn log_range(from: DateTime, until: DateTime) -> (String, String) {
    (digits(inverted(until) + 1), digits(inverted(from) + 1))
}

/// The day of a time, `20260131`: for partitions and tables by the day.
///
/// ```
/// use partita_client::DateTime;
/// use partita_client_patterns::keys;
///
/// let time = DateTime::parse("2026-01-31T23:59:59Z").unwrap();
/// assert_eq!((keys::day(time), keys::hour(time)), ("20260131".into(), "2026013123".into()));
/// ```
pub fn day(time: DateTime) -> String {
    shown_digits(time, "YYYYMMDD".len())
}

/// The hour of a time, `2026013123`.
pub fn hour(time: DateTime) -> String {
    shown_digits(time, "YYYYMMDDHH".len())
}

/// When a [`day`] begins.
///
/// ```
/// use partita_client_patterns::keys;
///
/// assert_eq!(keys::day_start("20260131")?.to_string(), "2026-01-31T00:00:00Z");
/// assert!(keys::day_start("20260229").is_err());
/// # Ok::<(), partita_client::Error>(())
/// ```
pub fn day_start(day: &str) -> Result<DateTime> {
    let dashed = match (day.get(..4), day.get(4..6), day.get(6..)) {
        (Some(year), Some(month), Some(day)) => format!("{year}-{month}-{day}"),
        _ => String::new(),
    };
    let time = if day.len() == "YYYYMMDD".len() { DateTime::parse(&dashed) } else { None };
    time.ok_or_else(|| Error::Invalid(format!("{day:?} is not a day; write the last of January as 20260131")))
}

/// The midnight before a time.
pub(crate) fn start_of_day(time: DateTime) -> DateTime {
    let ticks = time.ticks();
    // Never fails: the midnight before a time is not before the first time.
    DateTime::from_ticks(ticks - ticks % TICKS_PER_DAY).unwrap_or(DateTime::MIN)
}

fn inverted(time: DateTime) -> i64 {
    DateTime::MAX.ticks() - time.ticks()
}

fn digits(ticks: i64) -> String {
    format!("{ticks:019}")
}

fn parse(key: &str) -> Option<i64> {
    let plain = key.len() == DIGITS && key.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| key.parse().ok()).flatten()
}

fn shown_digits(time: DateTime, count: usize) -> String {
    time.to_seconds_string().chars().filter(char::is_ascii_digit).take(count).collect()
}

fn fault(key: &str, made_by: &str) -> Error {
    Error::Invalid(format!(
        "{key:?} does not begin with a time as `keys::{made_by}` writes it, in {DIGITS} digits"
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use partita_client::row_key;

    fn time() -> impl Strategy<Value = DateTime> {
        (0..=DateTime::MAX.ticks()).prop_map(|ticks| DateTime::from_ticks(ticks).unwrap())
    }

    #[test]
    fn the_first_and_the_last_time_have_keys() {
        assert_eq!(newest_first(DateTime::MIN), "3155378975999999999");
        assert_eq!(newest_first(DateTime::MAX), "0000000000000000000");
        assert_eq!(
            log_between(row_key(), DateTime::MIN, DateTime::MAX).to_string(),
            "(RowKey ge '0000000000000000001') and (RowKey lt '3155378976000000000')"
        );
    }

    #[test]
    fn a_key_that_is_not_a_time_is_refused() {
        for key in
            ["", "2516324399999999", "251632439999999999x", "9999999999999999999", "3155378976000000000"]
        {
            assert!(parse_newest_first(key).is_err() && parse_oldest_first(key).is_err(), "{key}");
            assert!(log_time(&format!("{key}!x")).is_err(), "{key}");
        }
        for day in ["", "2026013", "202601311", "20261301", "2026-1-1", "2026013é", "éééé"] {
            assert!(day_start(day).is_err(), "{day}");
        }
    }

    proptest! {
        #[test]
        fn times_keep_their_order_and_are_parsed_back(a in time(), b in time()) {
            prop_assert_eq!(oldest_first(a).cmp(&oldest_first(b)), a.cmp(&b));
            prop_assert_eq!(newest_first(a).cmp(&newest_first(b)), b.cmp(&a));
            prop_assert_eq!(parse_oldest_first(&oldest_first(a)).unwrap(), a);
            prop_assert_eq!(parse_newest_first(&newest_first(a)).unwrap(), a);
            prop_assert_eq!(log_time(&log_tail(a)).unwrap(), a);
            prop_assert_eq!(day_start(&day(a)).unwrap(), start_of_day(a));
            prop_assert!(hour(a).starts_with(&day(a)));
        }

        #[test]
        fn a_range_of_the_log_holds_its_times(base in 0..DateTime::MAX.ticks() - 9, near in [0..9_i64, 0..9, 0..9]) {
            let [from, until, at] = near.map(|ticks| DateTime::from_ticks(base + ticks).unwrap());
            let (first, end) = log_range(from, until);
            for key in [log_tail(at), newest_first(at)] {
                prop_assert_eq!(first <= key && key < end, from <= at && at < until);
            }
        }
    }
}
