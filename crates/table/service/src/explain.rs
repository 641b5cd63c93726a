//! What a query reads, in words and numbers: its class, its key ranges, and what Azure would take for it.

use std::fmt::Write as _;

use filter::{Expr, Plan};
use model::{Cut, KeyRange};

use crate::advice::{Outline, Proposal, propose};

/// Ranges that are shown, and the letters of a key in one of them.
const RANGES_SHOWN_MAX: usize = 4;
const KEY_LETTERS_MAX: usize = 64;

/// What Azure promises: entities a second in one partition, and in an account.
const AZURE_PARTITION_RATE: u64 = 2_000;
const AZURE_ACCOUNT_RATE: u64 = 20_000;
/// A query of Azure ends after so many entities, or so many seconds, and continues in another request.
const AZURE_PAGE_ENTITIES: u64 = 1_000;
const AZURE_PAGE_SECONDS: f64 = 5.0;

/// How much of a table the key ranges of a query cover. The better comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum QueryClass {
    /// The filter contradicts itself: nothing is read.
    Empty,
    /// Single entities by both keys.
    Point,
    /// A part of one partition or several, or a part of all partitions.
    Range,
    /// All of one partition or several.
    PartitionScan,
    /// All of the table.
    #[default]
    TableScan,
}

impl QueryClass {
    pub const ALL: [Self; 5] = [Self::Empty, Self::Point, Self::Range, Self::PartitionScan, Self::TableScan];

    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Point => "point",
            Self::Range => "range",
            Self::PartitionScan => "partition scan",
            Self::TableScan => "table scan",
        }
    }

    /// The class of the widest range.
    pub fn of(ranges: &[KeyRange]) -> Self {
        ranges.iter().map(Self::of_range).max().unwrap_or(Self::Empty)
    }

    fn of_range(range: &KeyRange) -> Self {
        match (&range.start, &range.end) {
            (Cut::Before(p, r), Cut::After(q, s)) if p == q && r == s => Self::Point,
            (Cut::Before(p, r), Cut::AfterPartition(q)) if p == q && r.is_empty() => Self::PartitionScan,
            (Cut::Before(p, r), Cut::End) if p.is_empty() && r.is_empty() => Self::TableScan,
            _ => Self::Range,
        }
    }
}

/// What is known of a query before it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    pub class: QueryClass,
    /// Whether all that is read lies in one partition.
    pub in_one_partition: bool,
    /// How many key ranges are read, within what the caller can see and from the continuation on.
    pub key_ranges: usize,
    /// The first of them, for people.
    pub ranges: Vec<String>,
    /// The filter without its literals; `None` without a filter.
    pub shape: Option<String>,
    /// What would make it examine less.
    pub proposal: Option<Proposal>,
    /// Whether every entity that is examined is returned.
    pub returns_all: bool,
    /// About how many entities it examines, if it was asked for and the engine can tell.
    pub estimated_entities: Option<u64>,
}

/// What a query asks of its table, without any literal: those are data. For the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryShape {
    /// The filter with a type in place of every literal.
    pub filter: Option<String>,
    pub ranges: usize,
    /// How far the ranges reach: single `entities`, one `partition`, or the `table`.
    pub reach: &'static str,
}

impl QueryShape {
    /// `ranges` are those of the whole query, whatever part of it this page reads.
    pub(crate) fn of(filter: Option<String>, ranges: &[KeyRange]) -> Self {
        let reach = match KeyRange::partition_of(ranges) {
            _ if QueryClass::of(ranges) <= QueryClass::Point => "entities",
            Some(_) => "partition",
            None => "table",
        };
        Self { filter, ranges: ranges.len(), reach }
    }
}

/// What Azure would take for a query, at the rates that it promises.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AzureEstimate {
    pub entities: u64,
    pub seconds: f64,
    pub requests: u64,
}

/// The facts of a filter that its plan no longer has.
#[derive(Debug)]
pub(crate) struct FilterFacts {
    shape: Option<String>,
    outline: Outline,
}

impl FilterFacts {
    pub fn of(filter: Option<&Expr>) -> Self {
        Self { shape: filter.map(filter::shape), outline: filter.map(Outline::of).unwrap_or_default() }
    }

    /// `plan` covers all of the table, `read` is what of it this request reads.
    pub fn explain(self, plan: &Plan, read: &[KeyRange]) -> Explanation {
        let class = QueryClass::of(&plan.ranges);
        let is_good = class <= QueryClass::Point || plan.residual.is_none();
        Explanation {
            class,
            in_one_partition: KeyRange::partition_of(&plan.ranges).is_some(),
            key_ranges: read.len(),
            ranges: read.iter().take(RANGES_SHOWN_MAX).map(describe).collect(),
            shape: self.shape,
            proposal: if is_good { None } else { propose(&self.outline) },
            returns_all: plan.residual.is_none(),
            estimated_entities: None,
        }
    }
}

impl Explanation {
    /// For a query that examines so many entities in all, and returns so many.
    pub fn on_azure(&self, entities: u64, returned: u64) -> AzureEstimate {
        let rate = if self.in_one_partition { AZURE_PARTITION_RATE } else { AZURE_ACCOUNT_RATE };
        let seconds = entities as f64 / rate as f64;
        let by_time = (seconds / AZURE_PAGE_SECONDS).ceil() as u64;
        AzureEstimate {
            entities,
            seconds,
            requests: returned.div_ceil(AZURE_PAGE_ENTITIES).max(by_time).max(1),
        }
    }
}

/// `PartitionKey 'a', RowKey from 'b' to before 'c'`
fn describe(range: &KeyRange) -> String {
    let mut out = String::new();
    // Writing to a string can't fail.
    let _ = match (&range.start, &range.end) {
        _ if *range == KeyRange::all() => write!(out, "all entities"),
        (Cut::Before(p, r), Cut::After(q, s)) if p == q && r == s => {
            write!(out, "PartitionKey {}, RowKey {}", Shown(p), Shown(r))
        }
        (Cut::Before(p, r), Cut::AfterPartition(q)) if p == q && r.is_empty() => {
            write!(out, "PartitionKey {}", Shown(p))
        }
        (Cut::Before(p, _) | Cut::After(p, _), Cut::Before(q, _) | Cut::After(q, _)) if p == q => {
            write!(out, "PartitionKey {}, RowKey {} {}", Shown(p), start(&range.start), end(&range.end))
        }
        (Cut::Before(p, _) | Cut::After(p, _), Cut::AfterPartition(q)) if p == q => {
            write!(out, "PartitionKey {}, RowKey {}", Shown(p), start(&range.start))
        }
        (first, last) => {
            let from = match first {
                Cut::Before(p, r) if r.is_empty() => format!("from PartitionKey {}", Shown(p)),
                Cut::Before(p, r) => format!("from PartitionKey {}, RowKey {}", Shown(p), Shown(r)),
                Cut::After(p, r) => format!("after PartitionKey {}, RowKey {}", Shown(p), Shown(r)),
                Cut::AfterPartition(p) => format!("after PartitionKey {}", Shown(p)),
                Cut::End => "from the end".to_owned(),
            };
            let to = match last {
                Cut::Before(p, r) if r.is_empty() => format!(" to before PartitionKey {}", Shown(p)),
                Cut::Before(p, r) => format!(" to before PartitionKey {}, RowKey {}", Shown(p), Shown(r)),
                Cut::After(p, r) => format!(" to PartitionKey {}, RowKey {}", Shown(p), Shown(r)),
                Cut::AfterPartition(p) => format!(" to PartitionKey {}", Shown(p)),
                Cut::End => String::new(),
            };
            write!(out, "{from}{to}")
        }
    };
    out
}

fn start(cut: &Cut) -> String {
    match cut {
        Cut::Before(_, row) => format!("from {}", Shown(row)),
        Cut::After(_, row) => format!("after {}", Shown(row)),
        Cut::AfterPartition(_) | Cut::End => String::new(),
    }
}

fn end(cut: &Cut) -> String {
    match cut {
        Cut::Before(_, row) => format!("to before {}", Shown(row)),
        Cut::After(_, row) => format!("to {}", Shown(row)),
        Cut::AfterPartition(_) | Cut::End => String::new(),
    }
}

/// A key in quotes, cut if it is long.
struct Shown<'a>(&'a str);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.char_indices().nth(KEY_LETTERS_MAX) {
            Some((at, _)) => write!(f, "'{}…'", &self.0[..at]),
            None => write!(f, "'{}'", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explain(filter: &str) -> Explanation {
        let expr = filter::parse(filter).unwrap();
        let facts = FilterFacts::of(expr.as_ref());
        let plan = filter::plan(expr);
        facts.explain(&plan, &plan.ranges)
    }

    #[test]
    fn classes_and_ranges_are_those_of_the_keys() {
        for (filter, class, range) in [
            ("", "table scan", "all entities"),
            ("Age gt 5", "table scan", "all entities"),
            ("RowKey eq 'x'", "table scan", "all entities"),
            ("PartitionKey eq 'a'", "partition scan", "PartitionKey 'a'"),
            ("PartitionKey eq 'a' and Age gt 5", "partition scan", "PartitionKey 'a'"),
            ("PartitionKey eq 'a' and RowKey eq 'b'", "point", "PartitionKey 'a', RowKey 'b'"),
            (
                "PartitionKey eq 'a' and RowKey ge 'b' and RowKey lt 'c'",
                "range",
                "PartitionKey 'a', RowKey from 'b' to before 'c'",
            ),
            ("PartitionKey eq 'a' and RowKey gt 'b'", "range", "PartitionKey 'a', RowKey after 'b'"),
            ("PartitionKey eq 'a' and RowKey le 'b'", "range", "PartitionKey 'a', RowKey from '' to 'b'"),
            (
                "PartitionKey ge 'a' and PartitionKey lt 'b'",
                "range",
                "from PartitionKey 'a' to before PartitionKey 'b'",
            ),
            ("PartitionKey gt 'a'", "range", "after PartitionKey 'a'"),
            ("PartitionKey eq 'a' and PartitionKey eq 'b'", "empty", ""),
            ("PartitionKey eq 'a' or Age eq 5", "table scan", "all entities"),
        ] {
            let explained = explain(filter);
            let first = explained.ranges.first().map_or("", String::as_str);
            assert_eq!((explained.class.name(), first), (class, range), "{filter}");
        }
        let long = explain(&format!("PartitionKey eq '{}'", "é".repeat(500)));
        assert_eq!(long.ranges[0], format!("PartitionKey '{}…'", "é".repeat(KEY_LETTERS_MAX)));
        let terms: Vec<_> = (0..500).map(|n| format!("RowKey eq '{n}'")).collect();
        let many = explain(&format!("PartitionKey eq 'a' and ({})", terms.join(" or ")));
        assert_eq!(
            (many.class, many.key_ranges, many.ranges.len()),
            (QueryClass::Point, 500, RANGES_SHOWN_MAX)
        );
    }

    #[test]
    fn a_query_is_described_without_its_literals() {
        let check = |text: &str, filter: Option<&str>, ranges: usize, reach: &str| {
            let expr = filter::parse(text).unwrap();
            let shape = QueryShape::of(expr.as_ref().map(filter::shape), &filter::plan(expr).ranges);
            assert_eq!(
                (shape.filter.as_deref(), shape.ranges, shape.reach),
                (filter, ranges, reach),
                "{text:?}"
            );
        };
        check("", None, 1, "table");
        check("Age gt 5", Some("Age gt Int32"), 1, "table");
        check(
            "PartitionKey eq 'secret' and Age gt 5L",
            Some("PartitionKey eq String and Age gt Int64"),
            1,
            "partition",
        );
        check(
            "PartitionKey eq 'a' and (RowKey eq 'b' or RowKey eq 'c')",
            Some("PartitionKey eq String and (RowKey eq String or …)"),
            2,
            "entities",
        );
    }

    #[test]
    fn azure_takes_what_its_targets_allow() {
        let table = explain("Email eq 'x'");
        let expected = AzureEstimate { entities: 1_000_000, seconds: 50.0, requests: 10 };
        assert_eq!(table.on_azure(1_000_000, 1), expected);
        let partition = explain("PartitionKey eq 'a' and Email eq 'x'");
        assert_eq!(
            partition.on_azure(58_000, 3),
            AzureEstimate { entities: 58_000, seconds: 29.0, requests: 6 }
        );
        let all = explain("");
        assert_eq!(all.on_azure(5_001, 5_001).requests, 6);
        assert_eq!(all.on_azure(0, 0).requests, 1);
    }

    #[test]
    fn only_a_query_that_can_examine_in_vain_gets_a_proposal() {
        for filter in ["", "PartitionKey eq 'a'", "PartitionKey eq 'a' and RowKey eq 'b' and Age eq 5"] {
            assert_eq!(explain(filter).proposal, None, "{filter}");
        }
        assert!(explain("Age eq 5").proposal.is_some());
    }
}
