//! Counts of requests, and the row of a metrics table that has them.

use std::time::Duration;

use model::{Property, Value, ValueRef};
use store::{RowDraft, RowView};

use super::outcome::{AuthenticationType, Status};

const COUNTERS: usize = Status::ALL.len() * AuthenticationType::ALL.len();

/// The counts of some requests. They can be added.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestTally {
    counts: [u64; COUNTERS],
    ingress: u64,
    egress: u64,
    /// Milliseconds, the sum over the requests that succeeded.
    end_to_end: f64,
    server: f64,
}

fn counter(status: Status, authentication: AuthenticationType) -> usize {
    let kind = AuthenticationType::ALL.iter().position(|known| *known == authentication).unwrap_or_default();
    (status as usize) * AuthenticationType::ALL.len() + kind
}

fn counters() -> impl Iterator<Item = (Status, AuthenticationType)> {
    Status::ALL
        .into_iter()
        .flat_map(|status| AuthenticationType::ALL.map(|authentication| (status, authentication)))
}

impl RequestTally {
    pub fn count(
        &mut self,
        (status, authentication): (Status, AuthenticationType),
        (ingress, egress): (u64, u64),
        (end_to_end, server): (Duration, Duration),
    ) {
        self.counts[counter(status, authentication)] += 1;
        self.ingress += ingress;
        self.egress += egress;
        if status == Status::Success {
            self.end_to_end += end_to_end.as_secs_f64() * 1000.0;
            self.server += server.as_secs_f64() * 1000.0;
        }
    }

    pub fn add(&mut self, other: &Self) {
        self.counts.iter_mut().zip(other.counts).for_each(|(mine, more)| *mine += more);
        self.ingress += other.ingress;
        self.egress += other.egress;
        self.end_to_end += other.end_to_end;
        self.server += other.server;
    }

    fn sum(&self, counted: impl Fn(Status, AuthenticationType) -> bool) -> u64 {
        counters()
            .filter(|(status, kind)| counted(*status, *kind))
            .map(|(s, k)| self.counts[counter(s, k)])
            .sum()
    }

    fn of(&self, status: Status) -> u64 {
        self.sum(|counted, _| counted == status)
    }

    /// The row: totals, ratios, then one counter for every status and type of authentication.
    pub fn to_row(&self) -> RowDraft {
        let total = self.sum(|_, _| true);
        let billable = self.sum(Status::is_billable);
        let applicable = self.sum(Status::is_applicable);
        let succeeded = self.of(Status::Success);
        let timeouts = self.of(Status::ClientTimeoutError) + self.of(Status::ServerTimeoutError);
        let percent = |part: u64| if total == 0 { 0.0 } else { part as f64 * 100.0 / total as f64 };
        let average = |sum: f64| if succeeded == 0 { 0.0 } else { sum / succeeded as f64 };
        let available = if applicable == 0 { 100.0 } else { billable as f64 * 100.0 / applicable as f64 };
        let mut properties = Vec::with_capacity(40);
        let mut put = |name: String, value: Value| properties.push(Property { name, value });
        let integer = |count: u64| Value::Int64(i64::try_from(count).unwrap_or(i64::MAX));
        for (name, count) in [
            (TOTAL_INGRESS, self.ingress),
            (TOTAL_EGRESS, self.egress),
            ("TotalRequests", total),
            ("TotalBillableRequests", billable),
        ] {
            put(name.to_owned(), integer(count));
        }
        for (name, value) in [
            ("Availability", available),
            (AVERAGE_E2E, average(self.end_to_end)),
            (AVERAGE_SERVER, average(self.server)),
            ("PercentSuccess", percent(succeeded)),
            ("PercentThrottlingError", percent(self.of(Status::ThrottlingError))),
            ("PercentTimeoutError", percent(timeouts)),
            ("PercentServerOtherError", percent(self.of(Status::ServerOtherError))),
            ("PercentClientOtherError", percent(self.of(Status::ClientOtherError))),
            ("PercentAuthorizationError", percent(self.of(Status::AuthorizationError))),
            ("PercentNetworkError", percent(self.of(Status::NetworkError))),
        ] {
            put(name.to_owned(), Value::Double(value));
        }
        for (status, authentication) in counters() {
            let count = self.counts[counter(status, authentication)];
            put(format!("{}{}", authentication.prefix(), status.name()), integer(count));
        }
        RowDraft::new(properties.iter().map(|p| (p.name.as_str(), p.value.as_ref())))
    }

    /// The counts of a row. Sums are computed from averages, so they may be off by rounding.
    pub fn from_row(row: RowView<'_>) -> Self {
        let integer = |name: &str| match row.property(name) {
            Some(ValueRef::Int64(count)) => u64::try_from(count).unwrap_or_default(),
            _ => 0,
        };
        let double = |name: &str| match row.property(name) {
            Some(ValueRef::Double(value)) => value,
            _ => 0.0,
        };
        let mut tally =
            Self { ingress: integer(TOTAL_INGRESS), egress: integer(TOTAL_EGRESS), ..Self::default() };
        for (status, authentication) in counters() {
            tally.counts[counter(status, authentication)] =
                integer(&format!("{}{}", authentication.prefix(), status.name()));
        }
        let succeeded = tally.of(Status::Success) as f64;
        tally.end_to_end = double(AVERAGE_E2E) * succeeded;
        tally.server = double(AVERAGE_SERVER) * succeeded;
        tally
    }
}

const TOTAL_INGRESS: &str = "TotalIngress";
const TOTAL_EGRESS: &str = "TotalEgress";
const AVERAGE_E2E: &str = "AverageE2ELatency";
const AVERAGE_SERVER: &str = "AverageServerLatency";

#[cfg(test)]
mod tests {
    use super::*;
    use common::DateTime;

    fn counted(status: Status, authentication: AuthenticationType, times: usize) -> RequestTally {
        let mut tally = RequestTally::default();
        for _ in 0..times {
            let (end_to_end, server) = (Duration::from_millis(4), Duration::from_millis(2));
            tally.count((status, authentication), (100, 1000), (end_to_end, server));
        }
        tally
    }

    fn shown(tally: &RequestTally, name: &str) -> Value {
        let row = tally.to_row().stamp(DateTime::MIN_STORED);
        row.view().property(name).unwrap().to_owned()
    }

    #[test]
    fn a_row_shows_totals_ratios_and_each_counter() {
        let mut tally = counted(Status::Success, AuthenticationType::Authenticated, 5);
        tally.add(&counted(Status::Success, AuthenticationType::Sas, 1));
        tally.add(&counted(Status::ThrottlingError, AuthenticationType::Sas, 2));
        tally.add(&counted(Status::ServerOtherError, AuthenticationType::Authenticated, 1));
        tally.add(&counted(Status::AuthorizationError, AuthenticationType::Anonymous, 1));
        let check = |name, expected| assert_eq!(shown(&tally, name), expected, "{name}");
        check("TotalRequests", Value::Int64(10));
        check("TotalBillableRequests", Value::Int64(6));
        check("TotalIngress", Value::Int64(1000));
        check("TotalEgress", Value::Int64(10_000));
        check("Success", Value::Int64(5));
        check("SASSuccess", Value::Int64(1));
        check("SASThrottlingError", Value::Int64(2));
        check("AnonymousAuthorizationError", Value::Int64(1));
        check("PercentSuccess", Value::Double(60.0));
        check("PercentThrottlingError", Value::Double(20.0));
        check("Availability", Value::Double(600.0 / 7.0));
        check("AverageE2ELatency", Value::Double(4.0));
        check("AverageServerLatency", Value::Double(2.0));
    }

    #[test]
    fn no_request_at_all_is_full_availability() {
        assert_eq!(shown(&RequestTally::default(), "Availability"), Value::Double(100.0));
        assert_eq!(shown(&RequestTally::default(), "PercentSuccess"), Value::Double(0.0));
    }

    #[test]
    fn a_row_gives_back_what_it_counted() {
        let mut tally = counted(Status::Success, AuthenticationType::Authenticated, 3);
        tally.add(&counted(Status::NetworkError, AuthenticationType::Anonymous, 2));
        let row = tally.to_row().stamp(DateTime::MIN_STORED);
        assert_eq!(RequestTally::from_row(row.view()), tally);
    }
}
