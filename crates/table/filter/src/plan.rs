//! Turns a filter into key ranges and a residual, which is evaluated for each row in them.
//!
//! Knows nothing of storage or HTTP. The promise, property-tested in `tests/plan.rs`: scanning the ranges and
//! keeping what the residual accepts gives exactly the rows `eval` accepts over the table.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::slice;
use std::sync::Arc;

use model::{Cut, KeyRange, Value, comparable_with_keys, is_too_long_for_a_key};

use crate::region::{Band, Region, RowSpans, StepBudget};
use crate::span::{KeyEdge, KeySpan};
use crate::{Comparison, Expr, Operator};

/// Ranges of one plan. Each range costs a scan a seek. Above this limit neighbours are joined, and the residual drops the
/// rows between them.
const RANGES_MAX: usize = 4096;

/// Row spans that are written as ranges before neighbours are joined. Shared row lists can represent many more.
const ROW_SPANS_MAX: usize = 16 * RANGES_MAX;

/// The ranges to read, and the filter for the rows in them.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Sorted and disjoint, none empty.
    pub ranges: Vec<KeyRange>,
    /// `None` when every row in the ranges is wanted.
    pub residual: Option<Expr>,
}

pub fn plan(filter: Option<Expr>) -> Plan {
    let Some(filter) = filter else {
        return Plan { ranges: vec![KeyRange::all()], residual: None };
    };
    let terms = match &filter {
        Expr::And(terms) => terms.as_slice(),
        other => slice::from_ref(other),
    };
    let mut budget = StepBudget::new();
    let regions: Vec<Region<'_>> = terms.iter().map(|term| region(term, false, &mut budget)).collect();
    let coverages: Vec<Coverage> = regions.iter().map(Coverage::of).collect();
    let (ranges, widened) = ranges(&Region::intersect_all(regions, &mut budget));
    let widened = if budget.exhausted { Widened::Anyhow } else { widened };
    if ranges.is_empty() {
        return Plan { ranges, residual: None };
    }
    let mut settled = coverages.into_iter().map(|coverage| coverage.is_settled(widened));
    let residual = match filter {
        Expr::And(mut terms) => {
            terms.retain(|_| settled.next() != Some(true));
            (!terms.is_empty()).then(|| Expr::all(terms))
        }
        other => (settled.next() != Some(true)).then_some(other),
    };
    Plan { ranges, residual }
}

/// How much a term's region decides about the term.
enum Coverage {
    /// True for exactly these partitions.
    Partitions,
    /// True for exactly these keys.
    Keys,
    /// Not decided: each row must be checked.
    Unknown,
}

/// How the ranges of a plan differ from the region they were made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Widened {
    No,
    /// They include all rows of partitions of which only some rows are wanted.
    ToPartitions,
    Anyhow,
}

impl Coverage {
    fn of(region: &Region<'_>) -> Self {
        match (region.exact, region.is_whole_partitions()) {
            (true, true) => Self::Partitions,
            (true, false) => Self::Keys,
            (false, _) => Self::Unknown,
        }
    }

    /// Whether the term is true for every row of the ranges, so that the residual does not need it.
    fn is_settled(&self, widened: Widened) -> bool {
        match self {
            Self::Partitions => widened != Widened::Anyhow,
            Self::Keys => widened == Widened::No,
            Self::Unknown => false,
        }
    }
}

/// Where the expression, or its negation, can be true.
fn region<'a>(expr: &'a Expr, negated: bool, budget: &mut StepBudget) -> Region<'a> {
    match (expr, negated) {
        (Expr::Constant(value), _) => Region::constant(*value != negated),
        (Expr::Compare(comparison), _) => region_of_comparison(comparison, negated),
        (Expr::Not(inner), _) => region(inner, !negated, budget),
        (Expr::And(terms), false) | (Expr::Or(terms), true) => {
            let regions = terms.iter().map(|term| region(term, negated, budget)).collect();
            Region::intersect_all(regions, budget)
        }
        (Expr::Or(terms), false) | (Expr::And(terms), true) => {
            let regions = terms.iter().map(|term| region(term, negated, budget)).collect();
            Region::unite_all(regions, budget)
        }
    }
}

fn region_of_comparison(comparison: &Comparison, negated: bool) -> Region<'_> {
    let of_span = match comparison.property.as_str() {
        "PartitionKey" => Region::of_partitions,
        "RowKey" => Region::of_rows,
        _ => return Region::anywhere(),
    };
    // Every row has both keys and they have a total order, so for them "not" is the opposite operator.
    let operator = if negated { comparison.operator.opposite() } else { comparison.operator };
    match &comparison.literal {
        // No key is as long, and cutting the text would make it equal to other texts.
        Value::String(text) if operator == Operator::Eq && is_too_long_for_a_key(text) => {
            Region::constant(false)
        }
        Value::String(text) => {
            KeySpan::of(operator, comparable_with_keys(text)).map_or_else(Region::anywhere, of_span)
        }
        // A key is a String, and a String is less than any literal of another type.
        _ => Region::constant(operator.holds(Some(Ordering::Less))),
    }
}

/// Writes a region out as ranges.
fn ranges<'a>(region: &Region<'a>) -> (Vec<KeyRange>, Widened) {
    let mut widened = Widened::No;
    let mut texts: Texts<'a> = Texts::default();
    let row_spans: usize = region.bands.iter().map(|band| row_spans(band).len()).sum();
    let mut ranges: Vec<KeyRange> = Vec::with_capacity(row_spans.min(ROW_SPANS_MAX));
    for Band { partitions, rows } in &region.bands {
        match (rows, partitions.pinned()) {
            (RowSpans::Some(spans), Some(partition)) => {
                let partition = texts.shared(partition);
                let spans = if row_spans > ROW_SPANS_MAX {
                    widened = Widened::Anyhow;
                    &hull(spans)[..]
                } else {
                    spans
                };
                for span in spans {
                    let mut cut = |edge| texts.row_cut(&partition, edge);
                    append(&mut ranges, KeyRange { start: cut(span.start), end: cut(span.end) });
                }
            }
            (rows, _) => {
                if matches!(rows, RowSpans::Some(_)) && widened == Widened::No {
                    widened = Widened::ToPartitions;
                }
                let (start, end) = (partition_cut(partitions.start), partition_cut(partitions.end));
                append(&mut ranges, KeyRange { start, end });
            }
        }
    }
    if ranges.len() > RANGES_MAX {
        widened = Widened::Anyhow;
        ranges = join_neighbours(&ranges);
    }
    ranges.shrink_to_fit();
    (ranges, widened)
}

/// Each literal's text once, for all ranges that it bounds.
#[derive(Default)]
struct Texts<'a> {
    /// By their address in the filter and their length.
    shared: HashMap<(*const u8, usize), Arc<str>>,
    of: std::marker::PhantomData<&'a str>,
}

impl<'a> Texts<'a> {
    fn shared(&mut self, text: &'a str) -> Arc<str> {
        self.shared.entry((text.as_ptr(), text.len())).or_insert_with(|| text.into()).clone()
    }

    fn row_cut(&mut self, partition: &Arc<str>, edge: KeyEdge<'a>) -> Cut {
        match edge {
            KeyEdge::Before(text) => Cut::before_shared(partition, &self.shared(text)),
            KeyEdge::After(text) => Cut::after_shared(partition, &self.shared(text)),
            KeyEdge::End => Cut::after_partition_shared(partition),
        }
    }
}

fn row_spans<'r, 'a>(band: &'r Band<'a>) -> &'r [KeySpan<'a>] {
    match &band.rows {
        RowSpans::All => &[],
        RowSpans::Some(spans) => spans,
    }
}

fn hull<'a>(spans: &[KeySpan<'a>]) -> Vec<KeySpan<'a>> {
    match spans {
        [first, .., last] => vec![KeySpan { start: first.start, end: last.end }],
        _ => spans.to_vec(),
    }
}

/// Adds a range that does not start before the last one, and joins the two if they touch. A range between texts may contain
/// no keys, because keys have no control characters.
fn append(ranges: &mut Vec<KeyRange>, range: KeyRange) {
    if range.is_empty() {
        return;
    }
    match ranges.last_mut() {
        Some(last) if range.start <= last.end => {
            if last.end < range.end {
                last.end = range.end;
            }
        }
        _ => ranges.push(range),
    }
}

fn join_neighbours(ranges: &[KeyRange]) -> Vec<KeyRange> {
    let joined = |group: &[KeyRange]| {
        let (first, last) = (group.first()?, group.last()?);
        Some(KeyRange { start: first.start.clone(), end: last.end.clone() })
    };
    ranges.chunks(ranges.len().div_ceil(RANGES_MAX)).filter_map(joined).collect()
}

fn partition_cut(edge: KeyEdge<'_>) -> Cut {
    match edge {
        KeyEdge::Before(text) => Cut::before_partition(text),
        KeyEdge::After(text) => Cut::after_partition(text),
        KeyEdge::End => Cut::End,
    }
}

#[cfg(test)]
mod tests;
