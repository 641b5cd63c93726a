//! Query options: numbers within their limits, and what else an operation reads from its address.

use std::num::IntErrorKind;
use std::ops::RangeInclusive;
use std::time::Duration;

use common::{Refusal as Shared, Version};
use protocol::{QueryString, names};
use queue_model::{PopReceipt, Refusal, limits};
use queue_wire::{QueueVersion as _, names as queue_names};

/// An option's value; an empty one is as good as none. Names are matched without case.
pub fn option<'q>(query: &'q QueryString, name: &str) -> Option<&'q str> {
    query.get_ignoring_case(name).filter(|value| !value.is_empty())
}

/// A whole number in a range. Both ends of the range stand in the refusal.
fn number(
    query: &QueryString,
    name: &'static str,
    range: &RangeInclusive<i64>,
) -> Result<Option<i64>, Refusal> {
    let Some(text) = option(query, name) else { return Ok(None) };
    let value = text.to_owned();
    match text.parse::<i64>() {
        Ok(number) if range.contains(&number) => Ok(Some(number)),
        Err(error) if *error.kind() == IntErrorKind::InvalidDigit => {
            Err(Refusal::ParameterInvalid { name, value, reason: "" })
        }
        Ok(_) | Err(_) => {
            let (min, max) = (range.start().unsigned_abs(), range.end().unsigned_abs());
            Err(Refusal::ParameterOutOfRange { name, value, min, max })
        }
    }
}

fn seconds(number: i64) -> Duration {
    Duration::from_secs(number.unsigned_abs())
}

const VISIBILITY_SECONDS_MAX: i64 = limits::VISIBILITY_MAX.as_secs() as i64;

/// `timeout`: how long the request may take. Spec: queue-operations 1.2.
pub fn time_allowed(query: &QueryString) -> Result<Duration, Refusal> {
    front::time_allowed(query).map_err(|refusal| match query.get(names::TIMEOUT) {
        Some(value) if refusal == Shared::QueryParameterValueInvalid => {
            Refusal::ParameterInvalid { name: names::TIMEOUT, value: value.to_owned(), reason: "" }
        }
        _ => refusal.into(),
    })
}

/// How many messages to read.
pub fn message_count(query: &QueryString) -> Result<u32, Refusal> {
    let range = 1..=i64::from(limits::MESSAGES_MAX);
    let count = number(query, queue_names::NUMBER_OF_MESSAGES, &range)?;
    // Within the range, so that it is small and positive.
    Ok(count.map_or(limits::MESSAGES_DEFAULT, |count| count as u32))
}

/// How long a Get hides its messages.
pub fn visibility_of_get(query: &QueryString) -> Result<Duration, Refusal> {
    let number = number(query, queue_names::VISIBILITY_TIMEOUT, &(1..=VISIBILITY_SECONDS_MAX))?;
    Ok(number.map_or(limits::VISIBILITY_OF_GET, seconds))
}

/// How long an Update hides its message.
pub fn visibility_of_update(query: &QueryString) -> Result<Duration, Refusal> {
    let name = queue_names::VISIBILITY_TIMEOUT;
    let number = number(query, name, &(0..=VISIBILITY_SECONDS_MAX))?;
    number.map(seconds).ok_or(Refusal::ParameterMissing { name })
}

/// How long a new message is hidden, and how long it lives; none for ever.
pub fn times_of_put(query: &QueryString, version: Version) -> Result<(Duration, Option<Duration>), Refusal> {
    let hidden = number(query, queue_names::VISIBILITY_TIMEOUT, &(0..=VISIBILITY_SECONDS_MAX))?;
    let hidden = hidden.map_or(Duration::ZERO, seconds);
    let lives = time_to_live(query, version)?;
    if lives.is_some_and(|lives| hidden >= lives) {
        return Err(Refusal::visible_after_expiry(hidden.as_secs()));
    }
    Ok((hidden, lives))
}

fn time_to_live(query: &QueryString, version: Version) -> Result<Option<Duration>, Refusal> {
    let name = queue_names::MESSAGE_TTL;
    let longest = limits::TIME_TO_LIVE_DEFAULT.as_secs() as i64;
    let range = if version.has_any_time_to_live() { i64::MIN..=i64::MAX } else { 1..=longest };
    match number(query, name, &range)? {
        None => Ok(Some(limits::TIME_TO_LIVE_DEFAULT)),
        Some(-1) => Ok(None),
        Some(number) if number > 0 => Ok(Some(seconds(number))),
        Some(number) => Err(Refusal::ParameterInvalid {
            name,
            value: number.to_string(),
            reason: "Value must be greater than or equal to 1, or -1 to indicate an infinite TTL.",
        }),
    }
}

/// The receipt that a message is changed with; `None` for one that this server has not given.
pub fn pop_receipt(query: &QueryString) -> Result<Option<PopReceipt>, Refusal> {
    let name = queue_names::POP_RECEIPT;
    let text = option(query, name).ok_or(Refusal::ParameterMissing { name })?;
    // A `+` that was not encoded has become a space on its way here; Base64 has no spaces.
    let text = text.replace(' ', "+");
    PopReceipt::parse(&text).map_err(|_| Refusal::ParameterInvalid {
        name,
        value: text,
        reason: "Invalid pop receipt format",
    })
}

/// How many queues a page is to have, as the request says it and as it is done.
pub fn max_results(query: &QueryString) -> Result<(Option<&str>, usize), Refusal> {
    let name = queue_names::MAX_RESULTS;
    let asked = number(query, name, &(1..=i64::from(i32::MAX)))?;
    let limit = asked.and_then(|asked| usize::try_from(asked).ok()).unwrap_or(limits::LIST_MAX);
    Ok((option(query, name), limit.min(limits::LIST_MAX)))
}

/// Whether a list shows metadata.
pub fn includes_metadata(query: &QueryString) -> Result<bool, Refusal> {
    let name = queue_names::INCLUDE;
    match option(query, name) {
        None => Ok(false),
        Some(value) if value.eq_ignore_ascii_case("metadata") => Ok(true),
        Some(value) => Err(Refusal::ParameterInvalid { name, value: value.to_owned(), reason: "" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: std::fmt::Debug>(
        read: impl Fn(&QueryString) -> Result<T, Refusal>,
        query: &str,
        expected: &str,
    ) {
        let shown = match read(&QueryString::parse(query).unwrap()) {
            Ok(value) => format!("{value:?}"),
            Err(refusal) => {
                let details: Vec<String> =
                    refusal.details().into_iter().map(|(_, value)| value.into_owned()).collect();
                format!("{}: {}", refusal.code(), details.join(", "))
            }
        };
        assert_eq!(shown, expected, "{query}");
    }

    #[test]
    fn up_to_32_messages_are_read() {
        check(message_count, "", "1");
        check(message_count, "numofmessages=", "1");
        check(message_count, "NumOfMessages=32", "32");
        for count in ["0", "33", "100", "-1", "99999999999999999999"] {
            let expected = format!("OutOfRangeQueryParameterValue: numofmessages, {count}, 1, 32");
            check(message_count, &format!("numofmessages={count}"), &expected);
        }
        check(message_count, "numofmessages=x", "InvalidQueryParameterValue: numofmessages, x, ");
    }

    #[test]
    fn visibility_has_its_limits_by_operation() {
        check(visibility_of_get, "", "30s");
        check(visibility_of_get, "visibilitytimeout=604800", "604800s");
        let refused = "OutOfRangeQueryParameterValue: visibilitytimeout";
        check(visibility_of_get, "visibilitytimeout=0", &format!("{refused}, 0, 1, 604800"));
        check(visibility_of_get, "visibilitytimeout=604801", &format!("{refused}, 604801, 1, 604800"));
        check(visibility_of_update, "visibilitytimeout=0", "0ns");
        check(visibility_of_update, "visibilitytimeout=-1", &format!("{refused}, -1, 0, 604800"));
        check(visibility_of_update, "", "MissingRequiredQueryParameter: visibilitytimeout");
    }

    #[test]
    fn a_message_becomes_visible_before_it_expires() {
        let check = |version: &str, query: &str, expected: &str| {
            let version = Version::parse(version).unwrap();
            check(|query| times_of_put(query, version), query, expected);
        };
        let new = "2017-07-29";
        check(new, "", "(0ns, Some(604800s))");
        check(new, "messagettl=-1", "(0ns, None)");
        check(new, "messagettl=-1&visibilitytimeout=604800", "(604800s, None)");
        check(new, "messagettl=1073741824", "(0ns, Some(1073741824s))");
        check(new, "messagettl=31&visibilitytimeout=30", "(30s, Some(31s))");
        let both = "InvalidQueryParameterValue: visibilitytimeout, 30, messagettl must be greater than visibilitytimeout";
        check(new, "messagettl=30&visibilitytimeout=30", both);
        let endless = "Value must be greater than or equal to 1, or -1 to indicate an infinite TTL.";
        check(new, "messagettl=0", &format!("InvalidQueryParameterValue: messagettl, 0, {endless}"));
        check(new, "messagettl=-2", &format!("InvalidQueryParameterValue: messagettl, -2, {endless}"));
        let refused = "OutOfRangeQueryParameterValue: messagettl";
        check("2017-04-17", "messagettl=604801", &format!("{refused}, 604801, 1, 604800"));
        check("2017-04-17", "messagettl=-1", &format!("{refused}, -1, 1, 604800"));
    }

    #[test]
    fn a_receipt_is_base64() {
        let read = |query: &QueryString| Ok(pop_receipt(query)?.map(|receipt| receipt.to_string()));
        let known = "Some(\"AwAAAAMAAAAAAAAABsT9bh+J1QEBAAAA\")";
        check(read, "popreceipt=AwAAAAMAAAAAAAAABsT9bh%2BJ1QEBAAAA", known);
        check(read, "popreceipt=AwAAAAMAAAAAAAAABsT9bh+J1QEBAAAA", known);
        check(read, "popreceipt=abcdefghijklmnopqrst", "None");
        check(read, "", "MissingRequiredQueryParameter: popreceipt");
        check(
            read,
            "popreceipt=invalid",
            "InvalidQueryParameterValue: popreceipt, invalid, Invalid pop receipt format",
        );
    }

    #[test]
    fn a_list_shows_what_was_asked_and_does_what_it_can() {
        let max_results = |query: &QueryString| {
            let (asked, limit) = max_results(query)?;
            Ok((asked.map(str::to_owned), limit))
        };
        check(max_results, "", "(None, 5000)");
        check(max_results, "maxresults=3", "(Some(\"3\"), 3)");
        check(max_results, "maxresults=6000", "(Some(\"6000\"), 5000)");
        let refused = "OutOfRangeQueryParameterValue: maxresults, 0, 1, 2147483647";
        check(max_results, "maxresults=0", refused);
        check(includes_metadata, "include=", "false");
        check(includes_metadata, "include=metadata", "true");
        check(includes_metadata, "include=x", "InvalidQueryParameterValue: include, x, ");
    }

    #[test]
    fn time_is_a_number_of_seconds() {
        check(time_allowed, "timeout=5", "5s");
        check(time_allowed, "timeout=90", "30s");
        check(time_allowed, "timeout=x", "InvalidQueryParameterValue: timeout, x, ");
    }
}
