//! Where request logs are kept: by whoever has blobs, which the front does not know.

use async_trait::async_trait;
use bytes::Bytes;
use common::{AccountName, DateTime, ServiceKind};

use crate::operation_info::Class;

const SECONDS_PER_HOUR: i64 = 3600;

/// Why a log was not stored. It may be tried again.
pub type LogStoreError = Box<dyn std::error::Error + Send + Sync>;

#[async_trait]
pub trait LogStore: Send + Sync {
    /// Makes the place of an account's logs, if it is not there.
    async fn prepare(&self, account: &AccountName) -> Result<(), LogStoreError>;

    /// When this returns, all lines are durable, in the log of their hour. After an error it may be called again with the same
    /// lines.
    async fn append(&self, lines: LogLines) -> Result<(), LogStoreError>;

    /// Deletes the logs of hours before this one; returns how many.
    async fn expire(&self, before: &LogHour) -> Result<u64, LogStoreError>;
}

/// An hour of the log of an account's service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogHour {
    pub account: AccountName,
    pub service: ServiceKind,
    /// Hours since 1970.
    hour: i64,
}

impl LogHour {
    /// The one in which this time lies.
    pub fn of(account: AccountName, service: ServiceKind, time: DateTime) -> Self {
        Self { account, service, hour: time.unix_seconds().div_euclid(SECONDS_PER_HOUR) }
    }

    /// What the names of its logs begin with: `SERVICE/YYYY/MM/DD/hh00/`. Their order is that of time.
    pub fn folder(&self) -> String {
        let since_1970 = u64::try_from(self.hour * SECONDS_PER_HOUR).unwrap_or_default();
        let time = DateTime::from(std::time::UNIX_EPOCH + std::time::Duration::from_secs(since_1970));
        let text = time.to_fixed_string();
        // `YYYY-MM-DDThh:…`: ASCII of fixed width.
        let (year, month, day, hour) = (&text[0..4], &text[5..7], &text[8..10], &text[11..13]);
        format!("{}/{year}/{month}/{day}/{hour}00/", self.service.name())
    }

    /// Whether this is an hour of the same service, and more than one before the other. Lines still come for the hour before.
    pub fn is_over_in(&self, other: &Self) -> bool {
        (&self.account, self.service) == (&other.account, other.service) && self.hour + 1 < other.hour
    }
}

/// Lines of one hour, each with its end.
#[derive(Clone, Debug)]
pub struct LogLines {
    pub of: LogHour,
    pub text: Bytes,
    pub facts: LogFacts,
}

/// What is known of some lines. It can be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogFacts {
    /// When the requests began, the first and the last of them.
    pub first: DateTime,
    pub last: DateTime,
    reads: bool,
    writes: bool,
    deletes: bool,
    /// Some have the fields of format 2.0.
    names_bearers: bool,
}

impl LogFacts {
    /// Of one line.
    pub fn of(started: DateTime, class: Class, names_bearer: bool) -> Self {
        Self {
            first: started,
            last: started,
            reads: class == Class::Read,
            writes: class == Class::Write,
            deletes: class == Class::Delete,
            names_bearers: names_bearer,
        }
    }

    pub fn and(self, other: Self) -> Self {
        Self {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
            reads: self.reads | other.reads,
            writes: self.writes | other.writes,
            deletes: self.deletes | other.deletes,
            names_bearers: self.names_bearers | other.names_bearers,
        }
    }

    /// As Storage Analytics says it with a log: names and values.
    pub fn metadata(&self) -> [(&'static str, String); 4] {
        let classes = [(self.reads, "read"), (self.writes, "write"), (self.deletes, "delete")];
        let classes: Vec<&str> = classes.iter().filter(|(has, _)| *has).map(|(_, name)| *name).collect();
        [
            ("LogType", classes.join(",")),
            ("StartTime", self.first.to_seconds_string()),
            ("EndTime", self.last.to_seconds_string()),
            ("LogVersion", if self.names_bearers { "2.0" } else { "1.0" }.to_owned()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime {
        DateTime::parse(text).unwrap()
    }

    #[test]
    fn a_log_is_named_by_its_service_and_hour() {
        let account = AccountName::parse("one").unwrap();
        let hour = |service, time| LogHour::of(account.clone(), service, at(time));
        assert_eq!(hour(ServiceKind::Table, "2026-01-02T03:59:59.9Z").folder(), "table/2026/01/02/0300/");
        assert_eq!(hour(ServiceKind::Blob, "2026-12-31T23:00:00Z").folder(), "blob/2026/12/31/2300/");
        let (old, new) = (hour(ServiceKind::Queue, "2026-01-01T22:00:00Z"), "2026-01-02T00:30:00Z");
        assert!(old.is_over_in(&hour(ServiceKind::Queue, new)));
        assert!(!old.is_over_in(&hour(ServiceKind::Table, new)));
        assert!(!old.is_over_in(&hour(ServiceKind::Queue, "2026-01-01T23:59:59Z")));
    }

    #[test]
    fn what_is_said_of_lines_covers_all_of_them() {
        let [a, b, c] =
            ["2026-01-02T03:10:00.5Z", "2026-01-02T03:10:01.9Z", "2026-01-02T03:09:59.1Z"].map(at);
        let facts = LogFacts::of(a, Class::Write, false)
            .and(LogFacts::of(b, Class::Read, true))
            .and(LogFacts::of(c, Class::Write, false));
        let said: Vec<String> =
            facts.metadata().iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            said,
            [
                "LogType=read,write",
                "StartTime=2026-01-02T03:09:59Z",
                "EndTime=2026-01-02T03:10:01Z",
                "LogVersion=2.0"
            ]
        );
        assert_eq!(LogFacts::of(a, Class::Delete, false).metadata()[0].1, "delete");
    }
}
