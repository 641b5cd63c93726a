//! What a query read and what that would take on Azure, as JSON: in a header of the query's answer, or as an answer of its
//! own.

use std::time::{Duration, Instant};

use model::TableName;
use serde::Serialize;
use service::EntityQuery;
use service::advice::Proposal;
use service::explain::{Explanation, QueryClass};

use super::document::{json, proposal};
use crate::answer::{TableAnswer, TableFailure};
use crate::operation::context::{option, refuse_unknown_options};
use crate::operation::entity_query::{continuation, examined_max};
use crate::operation::{Call, Context};
use wire::names;

/// A longer header is written without its texts: proxies and clients refuse long ones.
const HEADER_BYTES_MAX: usize = 4096;
const RUN: &str = "run";

/// What running the query showed.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub examined: u64,
    pub returned: u64,
    /// There is nothing before this page, and nothing after it.
    pub is_whole: bool,
    pub time: Duration,
}

#[derive(Debug, Serialize)]
struct Explained<'a> {
    class: &'static str,
    key_ranges: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    ranges: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shape: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    examined: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    returned: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    complete: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ms: Option<f64>,
    /// About how many entities would be examined, if nothing was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_entities: Option<u64>,
    azure: OnAzure,
    #[serde(skip_serializing_if = "Option::is_none")]
    proposal: Option<serde_json::Value>,
}

/// Without numbers if nothing was run and they can't be known.
#[derive(Debug, Serialize)]
struct OnAzure {
    class: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    entities: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_at_targets: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<u64>,
    /// The query has more pages than this one, or nobody knows how much it returns: it may take more than these numbers say.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    at_least: bool,
}

/// `GET …/$partita/explain/TABLE`: plans a query, and with `run=true` reads one page of it.
pub async fn explain(
    context: &Context<'_>,
    call: &Call<'_>,
    table: TableName,
) -> Result<TableAnswer, TableFailure> {
    let started = Instant::now();
    let table = context.table(table);
    let check = || {
        refuse_unknown_options(call.query)?;
        let runs = match option(call.query, RUN) {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return Err(common::Refusal::InputNotValid.into()),
        };
        let query = EntityQuery {
            filter: option(call.query, names::FILTER),
            top: option(call.query, names::TOP).map(EntityQuery::top).transpose()?,
            within: Some(context.grant.range()),
            from: continuation(call.query)?,
            examined_max: examined_max(context, call)?,
            is_explained: true,
            shown: None,
            has_shape: false,
        };
        Ok((runs, query))
    };
    let (runs, query) = context.unless_missing(&table, check()).await?;
    let is_first = query.from.is_none();
    let mut held = context.hold(0)?;
    if !runs {
        let explanation = context.service.explain_query(&table, query, &mut held).await?;
        return json(&explained(&explanation, None));
    }
    let page = context.service.query_entities(&table, query, &mut held).await?;
    let run = Run {
        examined: page.examined,
        returned: page.entities.len() as u64,
        is_whole: is_first && page.next.is_none(),
        time: started.elapsed(),
    };
    match &page.explanation {
        Some(explanation) => json(&explained(explanation, Some(run))),
        // The query asked for it.
        None => Err(common::Refusal::Internal.into()),
    }
}

/// The same as a header of the query's own answer: ASCII without control characters.
pub fn header(explanation: &Explanation, run: Run) -> Option<String> {
    let mut shown = explained(explanation, Some(run));
    let whole = ascii_json(&shown)?;
    if whole.len() <= HEADER_BYTES_MAX {
        return Some(whole);
    }
    (shown.ranges, shown.shape, shown.proposal) = (None, None, None);
    ascii_json(&shown)
}

fn explained(explanation: &Explanation, run: Option<Run>) -> Explained<'_> {
    Explained {
        class: explanation.class.name(),
        key_ranges: explanation.key_ranges,
        ranges: Some(&explanation.ranges),
        shape: explanation.shape.as_deref(),
        examined: run.map(|run| run.examined),
        returned: run.map(|run| run.returned),
        complete: run.map(|run| run.is_whole),
        ms: run.map(|run| rounded(run.time.as_secs_f64() * 1000.0)),
        estimated_entities: explanation.estimated_entities,
        azure: on_azure(explanation, run),
        proposal: explanation.proposal.as_ref().map(|made| shown_proposal(made, run)),
    }
}

fn on_azure(explanation: &Explanation, run: Option<Run>) -> OnAzure {
    let class = explanation.class.name();
    let known = match run {
        Some(run) => Some((run.examined, run.returned, !run.is_whole)),
        None if explanation.class <= QueryClass::Point => {
            let points = explanation.key_ranges as u64;
            Some((points, points, false))
        }
        // If a filter decides, nobody knows yet how many of them are returned.
        None => explanation.estimated_entities.map(|entities| {
            let is_known = explanation.returns_all;
            (entities, if is_known { entities } else { 0 }, !is_known)
        }),
    };
    let Some((examined, returned, at_least)) = known else {
        return OnAzure { class, entities: None, seconds_at_targets: None, requests: None, at_least: false };
    };
    let estimate = explanation.on_azure(examined, returned);
    OnAzure {
        class,
        entities: Some(estimate.entities),
        seconds_at_targets: Some(rounded(estimate.seconds)),
        requests: Some(estimate.requests),
        at_least,
    }
}

fn shown_proposal(made: &Proposal, run: Option<Run>) -> serde_json::Value {
    proposal(made, run.map(|run| (run.returned, run.examined)))
}

/// To three digits after the point.
pub fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

/// JSON in which every other character is an escape. It has no line ends, so nothing in it can end the header.
fn ascii_json(value: &impl Serialize) -> Option<String> {
    let text = serde_json::to_string(value).ok()?;
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Some(text);
    }
    let mut out = String::with_capacity(text.len() * 2);
    for character in text.chars() {
        if (' '..='~').contains(&character) {
            out.push(character);
        } else {
            // Outside of texts, JSON is ASCII.
            for unit in character.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explanation(range: &str) -> Explanation {
        Explanation {
            class: QueryClass::TableScan,
            in_one_partition: false,
            key_ranges: 1,
            ranges: vec![range.to_owned()],
            shape: Some("Naïve eq String".to_owned()),
            proposal: None,
            returns_all: false,
            estimated_entities: None,
        }
    }

    fn run() -> Run {
        Run { examined: 58_000, returned: 3, is_whole: true, time: Duration::from_micros(41_234) }
    }

    #[test]
    fn a_header_is_ascii_whatever_the_keys_hold() {
        let header = header(&explanation("a\r\nSet-Cookie: x\u{7f}\u{85}\"é𝄞"), run()).unwrap();
        assert!(header.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{header}");
        let read: serde_json::Value = serde_json::from_str(&header).unwrap();
        assert_eq!(read["ranges"][0], "a\r\nSet-Cookie: x\u{7f}\u{85}\"é𝄞");
        assert_eq!(read["shape"], "Naïve eq String");
    }

    #[test]
    fn a_long_header_is_written_without_its_texts() {
        let header = header(&explanation(&"é".repeat(4000)), run()).unwrap();
        assert!(header.len() < 300, "{header}");
        let expected = r#"{"class":"table scan","key_ranges":1,"examined":58000,"returned":3,"complete":true,"ms":41.234,"azure":{"class":"table scan","entities":58000,"seconds_at_targets":2.9,"requests":1}}"#;
        assert_eq!(header, expected);
    }
}
