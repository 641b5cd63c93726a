//! Sets of keys (PartitionKey, RowKey), as the planner combines them.
//!
//! A region is a list of bands: a span of partitions, and the rows wanted in each of these partitions. A band can express
//! `RowKey eq '1'` before the partition is known, so the order of conditions does not matter. A region contains every key
//! for which its condition can be true; `exact` says that it contains no other.

use std::cmp::Reverse;
use std::rc::Rc;

use crate::span::{KeySpan, intersect_lists, unite, walk_pairs};

/// Steps spent on lists of rows in one plan. The work is partitions times rows, which a filter of a few kilobytes could
/// make large. Above this limit the planner stops narrowing and leaves the rest to the residual.
const ROW_STEPS_MAX: usize = 1 << 17;

#[derive(Debug)]
pub(crate) struct Region<'a> {
    /// Sorted, disjoint, none empty.
    pub bands: Vec<Band<'a>>,
    pub exact: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Band<'a> {
    pub partitions: KeySpan<'a>,
    pub rows: RowSpans<'a>,
}

#[derive(Clone, Debug)]
pub(crate) enum RowSpans<'a> {
    All,
    /// Sorted, disjoint, none empty. Shared, because narrowing thousands of partitions by the same rows is common.
    Some(Rc<[KeySpan<'a>]>),
}

/// What is left of `ROW_STEPS_MAX`.
#[derive(Debug)]
pub(crate) struct StepBudget {
    steps: usize,
    /// Steps ran out, so a region is wider than its condition.
    pub exhausted: bool,
}

impl StepBudget {
    pub fn new() -> Self {
        Self { steps: ROW_STEPS_MAX, exhausted: false }
    }

    fn spend(&mut self, steps: usize) -> bool {
        match self.steps.checked_sub(steps) {
            Some(left) => self.steps = left,
            None => self.exhausted = true,
        }
        !self.exhausted
    }
}

impl<'a> Region<'a> {
    /// For a condition that does not depend on the keys.
    pub fn anywhere() -> Self {
        Self { exact: false, ..Self::constant(true) }
    }

    pub fn constant(value: bool) -> Self {
        let everything = Band { partitions: KeySpan::ALL, rows: RowSpans::All };
        Self { bands: if value { vec![everything] } else { Vec::new() }, exact: true }
    }

    pub fn of_partitions(partitions: KeySpan<'a>) -> Self {
        Self { bands: vec![Band { partitions, rows: RowSpans::All }], exact: true }.without_empty(partitions)
    }

    pub fn of_rows(rows: KeySpan<'a>) -> Self {
        let band = Band { partitions: KeySpan::ALL, rows: RowSpans::Some(Rc::new([rows])) };
        Self { bands: vec![band], exact: true }.without_empty(rows)
    }

    fn without_empty(self, span: KeySpan<'a>) -> Self {
        if span.is_empty() { Self::constant(false) } else { self }
    }

    /// Whether it takes all rows of its partitions.
    pub fn is_whole_partitions(&self) -> bool {
        self.bands.iter().all(|band| matches!(band.rows, RowSpans::All))
    }

    /// In pairs, so that each band is visited a logarithmic number of times and not once per region.
    pub fn intersect_all(mut regions: Vec<Self>, budget: &mut StepBudget) -> Self {
        while regions.len() > 1 {
            let mut halved = Vec::with_capacity(regions.len().div_ceil(2));
            let mut rest = regions.into_iter();
            while let Some(first) = rest.next() {
                halved.push(match rest.next() {
                    Some(second) => first.intersect(&second, budget),
                    None => first,
                });
            }
            regions = halved;
        }
        regions.pop().unwrap_or_else(|| Self::constant(true))
    }

    fn intersect(&self, other: &Self, budget: &mut StepBudget) -> Self {
        let mut bands = Vec::new();
        walk_pairs(
            &self.bands,
            &other.bands,
            |band| &band.partitions,
            |a, b, partitions| {
                bands.extend(a.rows.intersect(&b.rows, budget).map(|rows| Band { partitions, rows }));
            },
        );
        // An empty region is always exact, because a region never misses a key.
        let exact = bands.is_empty() || (self.exact && other.exact && !budget.exhausted);
        Self { bands, exact }
    }

    pub fn unite_all(regions: Vec<Self>, budget: &mut StepBudget) -> Self {
        let mut exact = regions.iter().all(|region| region.exact);
        let mut bands: Vec<Band<'a>> = regions.into_iter().flat_map(|region| region.bands).collect();
        // Of two with the same start, the longer comes first: it may cover the other.
        bands.sort_by(|a, b| {
            let order = |band: &Band<'a>| (band.partitions.start, Reverse(band.partitions.end));
            order(a).cmp(&order(b))
        });
        let mut united = Vec::with_capacity(bands.len());
        let mut bands = bands.into_iter().peekable();
        while let Some(first) = bands.next() {
            let mut partitions = first.partitions;
            let mut rows = vec![first.rows];
            let mut all_rows = matches!(rows[0], RowSpans::All);
            while let Some(band) = bands.next_if(|band| band.partitions.start < partitions.end) {
                // Bands that overlap partly become one that contains both and more. Splitting them would be exact, but
                // could cost a band per pair, and helps only if a later condition fixes the partition.
                let band_all_rows = matches!(band.rows, RowSpans::All);
                exact &= partitions == band.partitions
                    || (all_rows && (band_all_rows || partitions.covers(&band.partitions)));
                partitions.end = partitions.end.max(band.partitions.end);
                all_rows |= band_all_rows;
                rows.push(band.rows);
            }
            united.push(Band { partitions, rows: RowSpans::unite(rows, budget) });
        }
        Self { bands: united, exact: exact && !budget.exhausted }
    }
}

impl<'a> RowSpans<'a> {
    /// `None` when no row is in both.
    fn intersect(&self, other: &Self, budget: &mut StepBudget) -> Option<Self> {
        let (a, b) = match (self, other) {
            (Self::All, rows) | (rows, Self::All) => return Some(rows.clone()),
            (Self::Some(a), Self::Some(b)) => (a, b),
        };
        if Rc::ptr_eq(a, b) {
            return Some(self.clone());
        }
        if !budget.spend(a.len() + b.len()) {
            return Some(Self::Some(Rc::clone(if a.len() < b.len() { a } else { b })));
        }
        let both = intersect_lists(a, b);
        (!both.is_empty()).then(|| Self::Some(both.into()))
    }

    fn unite(mut several: Vec<Self>, budget: &mut StepBudget) -> Self {
        if several.len() == 1 {
            return several.swap_remove(0);
        }
        let mut lists = Vec::with_capacity(several.len());
        for rows in &several {
            match rows {
                Self::All => return Self::All,
                Self::Some(spans) => lists.push(spans),
            }
        }
        if !budget.spend(lists.iter().map(|spans| spans.len()).sum()) {
            return Self::All;
        }
        let united = unite(lists.into_iter().flat_map(|spans| spans.iter().copied()).collect());
        if united == [KeySpan::ALL] { Self::All } else { Self::Some(united.into()) }
    }
}
