//! The documents below `$partita`: discovery, advice, hot partitions.

use std::time::{Duration, Instant};

use common::hot_partitions::{HotMinute, HotOrder, HotPartition, HotReport, PARTITIONS_MAX};
use serde::Serialize;
use serde_json::{Value, json as value};
use service::Insight;
use service::advice::{Advice, Proposal, SHAPES_MAX};

use super::explained::rounded;
use crate::answer::{Content, TableAnswer, TableFailure};
use crate::operation::context::option;
use crate::operation::{Call, Context};

const TOP: &str = "top";
const ORDER: &str = "by";
const TOP_USUAL: usize = 20;

/// What this server can do beyond Azure. What it can't do yet is listed too, so that clients need not guess.
pub fn discover(context: &Context<'_>) -> Result<TableAnswer, TableFailure> {
    json(&value!({
        "version": env!("CARGO_PKG_VERSION"),
        "store": context.extensions.store,
        "abilities": {
            "explain": true,
            "max_examined": true,
            "advice": true,
            "hot": true,
            "index": [],
            "orderby": [],
            "functions": false,
            "count": false,
            "feed": false,
            "expiry": false,
            "jobs": false,
        },
    }))
}

/// The shapes of queries that examined most in vain, with proposals.
pub fn advice(context: &Context<'_>, call: &Call<'_>) -> Result<TableAnswer, TableFailure> {
    let insight = insight(context)?;
    let top = top(call, SHAPES_MAX)?;
    let (account, now) = (&context.site.account, Instant::now());
    let advice = insight.advisor.advice(account, top, now);
    let last_minute =
        insight.hot.report(account, PARTITIONS_MAX, HotOrder::Requests, now).last_minute.partitions;
    let writes = |table: &str| -> u64 {
        last_minute.iter().filter(|hot| hot.resource == table).map(|hot| hot.load.writes).sum()
    };
    let shapes: Vec<Value> = advice.iter().map(|advice| shape(advice, writes(&advice.table))).collect();
    json(&value!({ "shapes": shapes }))
}

fn shape(advice: &Advice, writes: u64) -> Value {
    let made = advice.proposal.as_ref();
    value!({
        "table": advice.table,
        "shape": advice.shape,
        "class": advice.class.name(),
        "queries": advice.queries,
        "examined": advice.examined,
        "returned": advice.returned,
        "in_vain": advice.in_vain,
        "error": advice.error,
        "ms": rounded(advice.time.as_secs_f64() * 1000.0),
        "seconds_ago": advice.ago.as_secs(),
        "writes_last_minute": writes,
        "proposal": made.map(|made| proposal(made, Some(advice.rows_instead_of()))),
    })
}

/// `rows` are those that the query returns, and those that it examines for them.
pub fn proposal(made: &Proposal, rows: Option<(u64, u64)>) -> Value {
    let mut text = made.text.clone();
    if let Some((returned, examined)) = rows {
        let (returned, noun) = (returned.max(1), if returned > 1 { "rows" } else { "row" });
        text.push_str(&format!(" About {returned} {noun} instead of {examined}."));
    }
    value!({
        "kind": made.kind.name(),
        "text": text,
        "pattern": format!("docs/patterns.md#{}", made.kind.pattern()),
        "rows": rows.map(|(returned, _)| returned.max(1)),
        "instead_of": rows.map(|(_, examined)| examined),
    })
}

/// The partitions and queues with most requests.
pub fn hot(context: &Context<'_>, call: &Call<'_>) -> Result<TableAnswer, TableFailure> {
    let insight = insight(context)?;
    let order = match option(call.query, ORDER) {
        None | Some("requests") => HotOrder::Requests,
        Some("entities") => HotOrder::Entities,
        Some("kib") => HotOrder::Kibibytes,
        Some("refusals") => HotOrder::Refusals,
        Some(_) => return Err(common::Refusal::InputNotValid.into()),
    };
    let top = top(call, PARTITIONS_MAX)?;
    let report = insight.hot.report(&context.site.account, top, order, Instant::now());
    json(&hot_document(&report))
}

pub fn hot_document(report: &HotReport) -> Value {
    value!({ "this_minute": minute(&report.this_minute), "last_minute": minute(&report.last_minute) })
}

fn minute(minute: &HotMinute) -> Value {
    let partitions: Vec<Value> = minute.partitions.iter().map(partition).collect();
    value!({
        "seconds": rounded(minute.elapsed.max(Duration::from_millis(1)).as_secs_f64()),
        "sampled": minute.is_sampled,
        "partitions": partitions,
    })
}

fn partition(hot: &HotPartition) -> Value {
    let mut shown = value!({
        "service": hot.service.name(),
        "name": hot.resource,
        "partition": hot.partition,
        "requests": hot.load.requests,
        "writes": hot.load.writes,
        "entities": hot.load.entities,
        "kib": hot.load.kibibytes,
        "refusals": hot.load.refusals,
        "error": hot.error,
    });
    if hot.is_cut {
        shown["cut"] = true.into();
    }
    shown
}

fn top(call: &Call<'_>, most: usize) -> Result<usize, TableFailure> {
    let Some(text) = option(call.query, TOP) else { return Ok(TOP_USUAL) };
    let top = text.parse().ok().filter(|top| (1..=most).contains(top));
    top.ok_or_else(|| common::Refusal::InputNotValid.into())
}

/// A server with extensions observes its use.
fn insight<'a>(context: &'a Context<'_>) -> Result<&'a Insight, TableFailure> {
    context.service.insight().ok_or_else(|| common::Refusal::NotImplemented.into())
}

pub fn json(document: &impl Serialize) -> Result<TableAnswer, TableFailure> {
    // Maps with texts as keys, and numbers that are finite: they can always be written.
    let bytes = serde_json::to_vec(document).map_err(|_| TableFailure::from(common::Refusal::Internal))?;
    let content = Content { content_type: "application/json;charset=utf-8".into(), bytes: bytes.into() };
    Ok(TableAnswer { status: 200, content: Some(content), ..TableAnswer::default() })
}
