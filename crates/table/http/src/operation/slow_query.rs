//! The log line of a query that took long or read much. It shows what was asked without any literal: those are data.

use std::time::Instant;

use service::explain::QueryShape;
use store::TableRef;

use super::Context;

/// Logs the query if it is above a bound. `begun` and `shape` are `None` if nobody wants to know.
pub fn log_if_slow(
    context: &Context<'_>,
    table: &TableRef,
    (shape, is_continued): (Option<&QueryShape>, bool),
    begun: Option<Instant>,
    (examined, returned): (u64, usize),
) {
    let (Some(begun), Some(shape)) = (begun, shape) else { return };
    let elapsed = begun.elapsed();
    if !context.slow_queries.take_line(context.metrics, elapsed, examined) {
        return;
    }
    tracing::warn!(
        request_id = context.request_id,
        account = context.site.account.as_str(),
        table = table.name.as_str(),
        filter = shape.filter.as_deref().unwrap_or("none"),
        ranges = shape.ranges,
        reach = shape.reach,
        is_continued,
        examined,
        returned,
        ms = elapsed.as_millis() as u64,
        "slow query"
    );
}
