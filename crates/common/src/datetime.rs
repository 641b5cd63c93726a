//! Times (`Edm.DateTime` in tables): UTC in ticks of 100 ns, as in .NET, from year 1 to year 9999.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::ParseValueError;

/// Ticks of 100 ns since 0001-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DateTime(i64);

const TICKS_PER_SECOND: i64 = 10_000_000;
const TICKS_PER_DAY: i64 = 86_400 * TICKS_PER_SECOND;
const UNIX_EPOCH_TICKS: i64 = 719_162 * TICKS_PER_DAY;

impl DateTime {
    pub const MIN: Self = Self(0);
    pub const MAX: Self = Self(3_652_059 * TICKS_PER_DAY - 1);
    /// 1601-01-01: the earliest time that a property of an entity may have.
    pub const MIN_STORED: Self = Self(584_388 * TICKS_PER_DAY);

    pub fn from_ticks(ticks: i64) -> Option<Self> {
        (Self::MIN.0..=Self::MAX.0).contains(&ticks).then_some(Self(ticks))
    }

    pub fn ticks(self) -> i64 {
        self.0
    }

    pub fn now() -> Self {
        Self::from(SystemTime::now())
    }

    /// Seconds since 1970, negative before it.
    pub fn unix_seconds(self) -> i64 {
        (self.0 - UNIX_EPOCH_TICKS).div_euclid(TICKS_PER_SECOND)
    }

    pub fn plus(self, duration: Duration) -> Self {
        let ticks = i64::try_from(duration.as_nanos() / 100).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(ticks).min(Self::MAX.0))
    }

    /// Rounded down to a tick; `None` outside the years 1 to 9999.
    pub fn from_system_time(time: SystemTime) -> Option<Self> {
        let nanoseconds = match time.duration_since(UNIX_EPOCH) {
            Ok(since) => i128::try_from(since.as_nanos()).ok()?,
            Err(before) => -i128::try_from(before.duration().as_nanos()).ok()?,
        };
        let ticks = i64::try_from(nanoseconds.div_euclid(100)).ok()?;
        Self::from_ticks(UNIX_EPOCH_TICKS.checked_add(ticks)?)
    }

    /// `None` if the system can't represent it.
    pub fn to_system_time(self) -> Option<SystemTime> {
        let ticks = self.0 - UNIX_EPOCH_TICKS;
        let distance = ticks.unsigned_abs();
        let per_second = TICKS_PER_SECOND.unsigned_abs();
        // Less than a second, so it fits.
        let nanoseconds = (distance % per_second * 100) as u32;
        let distance = Duration::new(distance / per_second, nanoseconds);
        if ticks < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) }
    }

    /// `YYYY-MM-DD[THH:MM[:SS[.f…]]][Z|±HH:MM]`; no zone means UTC; digits after the seventh are dropped.
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text.as_bytes();
        let year = number(&mut rest, 4)?;
        literal(&mut rest, b'-')?;
        let month = number(&mut rest, 2)?;
        literal(&mut rest, b'-')?;
        let day = number(&mut rest, 2)?;
        let mut ticks = days_before(year, month, day)? * TICKS_PER_DAY;
        if !rest.is_empty() {
            literal(&mut rest, b'T')?;
            ticks += time_of_day(&mut rest)?;
            ticks -= offset(&mut rest)?;
        }
        Self::from_ticks(ticks)
    }

    /// Whether a text that is a time has an offset from UTC, not `Z` or nothing.
    pub fn has_offset(text: &str) -> bool {
        text.split_once('T').is_some_and(|(_, time)| time.contains(['+', '-']))
    }

    /// With all seven digits of the fraction, as in error bodies.
    pub fn to_fixed_string(self) -> String {
        let (y, mo, d, h, mi, s, fraction) = self.fields();
        format!("{y:04}-{mo:02}-{d:02}T{h:02}:{mi:02}:{s:02}.{fraction:07}Z")
    }

    /// Without the fraction, as in Atom's `updated`.
    pub fn to_seconds_string(self) -> String {
        let (y, mo, d, h, mi, s, _) = self.fields();
        format!("{y:04}-{mo:02}-{d:02}T{h:02}:{mi:02}:{s:02}Z")
    }

    /// `MM/dd/yyyy HH:mm:ss`: how the service writes a time that is out of range.
    pub fn to_invariant_string(self) -> String {
        let (y, mo, d, h, mi, s, _) = self.fields();
        format!("{mo:02}/{d:02}/{y:04} {h:02}:{mi:02}:{s:02}")
    }

    /// As HTTP writes times: whole seconds, what is left of them cut off.
    pub fn http_date(self) -> [u8; 29] {
        const DAYS: [&[u8; 3]; 7] = [b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun"];
        const MONTHS: [&[u8; 3]; 12] =
            [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
        let (y, mo, d, h, mi, s, _) = self.fields();
        let mut text = *b"Mon, 00 Jan 0000 00:00:00 GMT";
        // The first day of year 1 was a Monday.
        text[..3].copy_from_slice(DAYS[(self.0 / TICKS_PER_DAY) as usize % DAYS.len()]);
        text[8..11].copy_from_slice(MONTHS[(mo - 1) as usize % MONTHS.len()]);
        for (at, value) in [(5, d), (12, y / 100), (14, y % 100), (17, h), (20, mi), (23, s)] {
            text[at..at + 2].copy_from_slice(pair_of(value));
        }
        text
    }

    /// Year, month, day, hour, minute, second, fraction in ticks.
    fn fields(self) -> (u32, u32, u32, u32, u32, u32, u32) {
        // Never negative, and unsigned numbers are divided faster. Days and seconds of a day have less than 32 bits.
        let ticks = self.0.unsigned_abs();
        let (per_day, per_second) = (TICKS_PER_DAY.unsigned_abs(), TICKS_PER_SECOND.unsigned_abs());
        let (year, month, day) = civil((ticks / per_day) as u32);
        let of_day = ticks % per_day;
        let seconds = (of_day / per_second) as u32;
        let minutes = seconds / 60;
        (year, month, day, minutes / 60, minutes % 60, seconds % 60, (of_day % per_second) as u32)
    }
}

impl DateTime {
    /// Appends what `Display` shows.
    pub fn write(self, out: &mut Vec<u8>) {
        let (text, length) = self.text();
        out.extend_from_slice(&text[..length]);
    }

    /// What `Display` shows, and its length: the fraction has no trailing zeros, and is left out if it is zero.
    pub fn text(self) -> ([u8; 28], usize) {
        // In pairs of digits, for speed: it runs for every entity of a page, mostly twice.
        let (y, mo, d, h, mi, s, fraction) = self.fields();
        let mut text = *b"0000-00-00T00:00:00.0000000Z";
        let mut pair = |at: usize, value: u32| text[at..at + 2].copy_from_slice(pair_of(value));
        pair(0, y / 100);
        pair(2, y % 100);
        pair(5, mo);
        pair(8, d);
        pair(11, h);
        pair(14, mi);
        pair(17, s);
        if fraction == 0 {
            text[19] = b'Z';
            return (text, 20);
        }
        let (upper, lower) = (fraction / 1_000, fraction % 1_000);
        pair(20, upper / 100);
        pair(22, upper % 100);
        pair(24, lower / 10);
        text[26] = b'0' + (lower % 10) as u8;
        let mut end = 27;
        while text[end - 1] == b'0' {
            end -= 1;
        }
        text[end] = b'Z';
        (text, end + 1)
    }
}

/// `00` to `99`, and zeros up to a power of two, so that any index can be cut to fit.
static PAIRS: [[u8; 2]; 128] = {
    let mut pairs = [[b'0'; 2]; 128];
    let mut value = 0;
    while value < 100 {
        pairs[value] = [b'0' + (value / 10) as u8, b'0' + (value % 10) as u8];
        value += 1;
    }
    pairs
};

/// The two digits of a number below a hundred.
fn pair_of(value: u32) -> &'static [u8; 2] {
    &PAIRS[value as usize % PAIRS.len()]
}

impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, length) = self.text();
        f.write_str(std::str::from_utf8(&text[..length]).map_err(|_| fmt::Error)?)
    }
}

/// See [`DateTime::parse`].
impl FromStr for DateTime {
    type Err = ParseValueError;

    fn from_str(text: &str) -> Result<Self, ParseValueError> {
        let example = "2021-05-06T07:08:09.1234567Z";
        let error = || ParseValueError { text: text.to_owned(), kind: "Edm.DateTime", example };
        Self::parse(text).ok_or_else(error)
    }
}

impl From<SystemTime> for DateTime {
    fn from(time: SystemTime) -> Self {
        // A clock before 1970 is wrong; with 1970 the order of ETags is still kept.
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(UNIX_EPOCH_TICKS).plus(since)
    }
}

fn time_of_day(rest: &mut &[u8]) -> Option<i64> {
    let hour = number(rest, 2)?;
    literal(rest, b':')?;
    let minute = number(rest, 2)?;
    let (mut second, mut fraction) = (0, 0);
    if rest.first() == Some(&b':') {
        literal(rest, b':')?;
        second = number(rest, 2)?;
        if rest.first() == Some(&b'.') {
            literal(rest, b'.')?;
            let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
            if digits == 0 {
                return None;
            }
            for place in 0..7 {
                fraction = fraction * 10 + rest[..digits].get(place).map_or(0, |b| i64::from(b - b'0'));
            }
            *rest = &rest[digits..];
        }
    }
    // 24:00:00 is midnight at the end of the day.
    let midnight = hour == 24 && minute == 0 && second == 0 && fraction == 0;
    if (hour > 23 && !midnight) || minute > 59 || second > 59 {
        return None;
    }
    Some(((hour * 60 + minute) * 60 + second) * TICKS_PER_SECOND + fraction)
}

fn offset(rest: &mut &[u8]) -> Option<i64> {
    let sign = match *rest {
        [] | [b'Z'] => return Some(0),
        [b'+', ..] => 1,
        [b'-', ..] => -1,
        _ => return None,
    };
    *rest = &rest[1..];
    let hours = number(rest, 2)?;
    literal(rest, b':')?;
    let minutes = number(rest, 2)?;
    if !rest.is_empty() || hours > 14 || minutes > 59 {
        return None;
    }
    Some(sign * (hours * 60 + minutes) * 60 * TICKS_PER_SECOND)
}

fn number(rest: &mut &[u8], width: usize) -> Option<i64> {
    let digits = rest.get(..width)?;
    let mut value = 0;
    for digit in digits {
        value = value * 10 + i64::from(digit.is_ascii_digit().then(|| digit - b'0')?);
    }
    *rest = &rest[width..];
    Some(value)
}

fn literal(rest: &mut &[u8], expected: u8) -> Option<()> {
    let (first, tail) = rest.split_first()?;
    *rest = tail;
    (*first == expected).then_some(())
}

/// Days from 0001-01-01 to the given date, in the Gregorian calendar for all time.
fn days_before(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=9999).contains(&year) || !(1..=12).contains(&month) || day < 1 || day > month_length(year, month)
    {
        return None;
    }
    // Counting years from March puts the leap day last, so that months need no table.
    let (y, m) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    Some(365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 306)
}

fn month_length(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The inverse of `days_before`, by the method of Neri and Schneider: quotients become multiplications and shifts.
fn civil(days: u32) -> (u32, u32, u32) {
    let since_march = 4 * (days + 306) + 3; // in quarters of days since 0000-03-01
    let (century, of_century) = (since_march / 146_097, since_march % 146_097 / 4);
    let years = 2_939_745 * u64::from(4 * of_century + 3);
    let (year_of_century, of_year) = ((years >> 32) as u32, years as u32 / 2_939_745 / 4);
    let months = 2_141 * of_year + 197_913;
    let (month, day) = (months >> 16, (months & 0xffff) / 2_141 + 1);
    // Counted from March, so that January and February belong to the year before.
    let is_next_year = of_year >= 306;
    let year = 100 * century + year_of_century + u32::from(is_next_year);
    (year, if is_next_year { month - 12 } else { month }, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expected: &str) {
        let shown = DateTime::parse(text).map_or_else(|| "refused".to_owned(), |time| time.to_string());
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn reads_the_documented_forms_and_shows_the_shortest() {
        check("2021-05-06T07:08:09.1234567Z", "2021-05-06T07:08:09.1234567Z");
        check("2021-05-06T07:08:09.1230000Z", "2021-05-06T07:08:09.123Z");
        check("2021-05-06T07:08:09.000Z", "2021-05-06T07:08:09Z");
        check("2021-05-06T07:08Z", "2021-05-06T07:08:00Z");
        check("2021-05-06T07:08:10", "2021-05-06T07:08:10Z");
        check("2021-05-06", "2021-05-06T00:00:00Z");
        check("2021-05-06T07:08:09.12345678999Z", "2021-05-06T07:08:09.1234567Z");
        check("2021-05-06T01:08:09+02:00", "2021-05-05T23:08:09Z");
        check("2021-05-06T23:08:09-02:30", "2021-05-07T01:38:09Z");
        check("2020-02-29T24:00:00Z", "2020-03-01T00:00:00Z");
        check("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z");
        check("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999Z");
        check("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z");
    }

    #[test]
    fn refuses_what_is_no_time() {
        for text in [
            "",
            "x",
            "2021",
            "2021-13-01T00:00Z",
            "2021-02-29T00:00Z",
            "1900-02-29T00:00Z",
            "2021-01-01 00:00Z",
            "2021-01-01T25:00Z",
            "2021-01-01T24:01Z",
            "2021-01-01T00:60Z",
            "2021-01-01T00:00:60Z",
            "2021-01-01T00:00:00.Z",
            "2021-01-01T00:00:00ZZ",
            "2021-01-01T00:00:00+2:00",
            "0000-01-01T00:00Z",
            "9999-12-31T23:59:59-01:00",
            "0001-01-01T00:00:00+01:00",
            "２021-01-01T00:00Z",
        ] {
            check(text, "refused");
        }
    }

    #[test]
    fn named_instants_are_where_dotnet_has_them() {
        assert_eq!(DateTime::parse("1601-01-01T00:00:00Z"), Some(DateTime::MIN_STORED));
        assert_eq!(DateTime::parse("9999-12-31T23:59:59.9999999Z"), Some(DateTime::MAX));
        assert_eq!(
            DateTime::parse("1970-01-01T00:00:00Z").map(DateTime::ticks),
            Some(621_355_968_000_000_000)
        );
        assert_eq!(DateTime::MIN.to_invariant_string(), "01/01/0001 00:00:00");
        assert_eq!(DateTime::MIN.to_fixed_string(), "0001-01-01T00:00:00.0000000Z");
    }

    #[test]
    fn http_shows_whole_seconds() {
        let check = |text: &str, expected: &str| {
            let shown = DateTime::parse(text).unwrap().http_date();
            assert_eq!(std::str::from_utf8(&shown), Ok(expected), "{text}");
        };
        check("0001-01-01", "Mon, 01 Jan 0001 00:00:00 GMT");
        check("1994-11-15T08:12:31.9999999Z", "Tue, 15 Nov 1994 08:12:31 GMT");
        check("2024-02-29T23:59:59Z", "Thu, 29 Feb 2024 23:59:59 GMT");
        check("9999-12-31T23:59:59.9999999Z", "Fri, 31 Dec 9999 23:59:59 GMT");
    }

    #[test]
    fn a_time_between_ticks_is_the_tick_before() {
        let shown = |time: SystemTime| DateTime::from_system_time(time).map(|time| time.to_string());
        let nanoseconds = Duration::from_nanos;
        assert_eq!(shown(UNIX_EPOCH + nanoseconds(199)).as_deref(), Some("1970-01-01T00:00:00.0000001Z"));
        assert_eq!(shown(UNIX_EPOCH - nanoseconds(1)).as_deref(), Some("1969-12-31T23:59:59.9999999Z"));
        assert_eq!(shown(UNIX_EPOCH + Duration::from_secs(1 << 40)), None);
    }

    #[test]
    fn every_day_has_its_date() {
        let last = (DateTime::MAX.0 / TICKS_PER_DAY) as u32;
        let mut before = (0, 12, 31);
        for days in 0..=last {
            let (year, month, day) = civil(days);
            assert!((year, month, day) > before, "{days}");
            assert_eq!(days_before(year.into(), month.into(), day.into()), Some(days.into()));
            before = (year, month, day);
        }
        assert_eq!(before, (9999, 12, 31));
    }

    proptest! {
        #[test]
        fn the_systems_times_are_the_same_thing(ticks in DateTime::MIN.0..=DateTime::MAX.0) {
            let time = DateTime(ticks);
            prop_assert_eq!(time.to_system_time().and_then(DateTime::from_system_time), Some(time));
        }

        #[test]
        fn text_and_ticks_are_the_same_thing(ticks in DateTime::MIN.0..=DateTime::MAX.0) {
            let time = DateTime(ticks);
            prop_assert_eq!(DateTime::parse(&time.to_string()), Some(time));
            prop_assert_eq!(DateTime::parse(&time.to_fixed_string()), Some(time));
        }
    }
}
