//! The log line of a query that took long or read much. It shows what was asked without any literal: those are data.

use std::time::Instant;

use model::{Cut, KeyRange};
use service::long_work::LONG_WORK;
use store::TableRef;

use super::Context;

/// What a query reads of its table, by its filter alone.
#[derive(Debug, PartialEq, Eq)]
struct QueryShape {
    /// The filter with a type in place of every literal.
    filter: String,
    ranges: usize,
    reach: &'static str,
}

/// Logs the query if it is above a bound. `begun` is `None` if nobody wants to know.
pub async fn log_if_slow(
    context: &Context<'_>,
    table: &TableRef,
    (filter, is_continued): (Option<&str>, bool),
    begun: Option<Instant>,
    (examined, returned): (u64, usize),
) {
    let Some(elapsed) = begun.map(|begun| begun.elapsed()) else { return };
    if !context.slow_queries.take_line(context.metrics, elapsed, examined) {
        return;
    }
    // The filter is read again: only the few queries that are logged pay for it.
    let permit = LONG_WORK.permit_for_filter(filter.map_or(0, str::len)).await;
    let QueryShape { filter, ranges, reach } = permit.run(|| QueryShape::of(filter));
    tracing::warn!(
        request_id = context.request_id,
        account = context.site.account.as_str(),
        table = table.name.as_str(),
        filter,
        ranges,
        reach,
        is_continued,
        examined,
        returned,
        ms = elapsed.as_millis() as u64,
        "slow query"
    );
}

impl QueryShape {
    fn of(filter: Option<&str>) -> Self {
        // It was read before, so it can be read.
        let filter = filter.and_then(|text| filter::parse(text).ok()).flatten();
        let shape = filter.as_ref().map_or_else(|| "none".to_owned(), filter::shape);
        let plan = filter::plan(filter);
        let is_one = |range: &KeyRange| match (&range.start, &range.end) {
            (Cut::Before(p, r), Cut::After(q, s)) => p == q && r == s,
            _ => false,
        };
        let reach = match KeyRange::partition_of(&plan.ranges) {
            _ if plan.ranges.iter().all(is_one) => "entities",
            Some(_) => "partition",
            None => "table",
        };
        Self { filter: shape, ranges: plan.ranges.len(), reach }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_described_without_its_literals() {
        let check = |text: Option<&str>, filter: &str, ranges: usize, reach: &str| {
            let shape = QueryShape::of(text);
            assert_eq!(
                (shape.filter.as_str(), shape.ranges, shape.reach),
                (filter, ranges, reach),
                "{text:?}"
            );
        };
        check(None, "none", 1, "table");
        check(Some("Age gt 5"), "Age gt Int32", 1, "table");
        check(
            Some("PartitionKey eq 'secret' and Age gt 5L"),
            "PartitionKey eq String and Age gt Int64",
            1,
            "partition",
        );
        check(
            Some("PartitionKey eq 'a' and (RowKey eq 'b' or RowKey eq 'c')"),
            "PartitionKey eq String and (RowKey eq String or …)",
            2,
            "entities",
        );
    }
}
