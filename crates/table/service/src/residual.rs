//! The part of a filter that key ranges can't answer, evaluated on stored bytes.

use std::borrow::Cow;
use std::sync::Arc;

use filter::{CompiledFilter, Expr};
use model::{EntityKey, ValueRef};
use store::{Candidate, Fault, RowFilter};

/// Most filters read one or two properties. More than this are looked up in a list made for each row.
const FEW: usize = store::RawRow::FEW;
/// How many comparisons, and how many properties, cost as much as stepping over a row.
const COMPARISONS_PER_WORK: usize = 16;
const NAMES_PER_WORK: usize = 4;

/// The condition for each row in the plan's ranges.
#[derive(Debug)]
pub struct Residual {
    filter: CompiledFilter,
    /// The source of each value that the filter needs, by its number.
    sources: Vec<Source>,
    /// The names of custom properties, in stored bytes, sorted.
    names: Vec<Box<[u8]>>,
    reads_keys: bool,
    reads_timestamp: bool,
    work: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Partition,
    RowKey,
    Timestamp,
    /// The custom property whose name has this index in `names`.
    Custom(usize),
}

impl Residual {
    pub fn new(expr: &Expr) -> Self {
        let filter = CompiledFilter::new(expr);
        // Sorted, because the filter's names are. A row needs them sorted if there are many.
        let mut names = Vec::new();
        let source = |name: &String| match name.as_str() {
            "PartitionKey" => Source::Partition,
            "RowKey" => Source::RowKey,
            "Timestamp" => Source::Timestamp,
            custom => {
                names.push(custom.as_bytes().into());
                Source::Custom(names.len() - 1)
            }
        };
        let sources: Vec<Source> = filter.names().iter().map(source).collect();
        let work = 1 + expr.comparisons() / COMPARISONS_PER_WORK + names.len() / NAMES_PER_WORK;
        Self {
            reads_keys: sources.contains(&Source::Partition) || sources.contains(&Source::RowKey),
            reads_timestamp: sources.contains(&Source::Timestamp),
            work: work as u64,
            filter,
            sources,
            names,
        }
    }

    fn holds<'a>(
        &self,
        keys: impl FnOnce() -> Result<(Cow<'a, str>, Cow<'a, str>), Fault>,
        row: store::RawRow<'_>,
    ) -> Result<bool, Fault> {
        if let ([name], false, false) = (self.names.as_slice(), self.reads_keys, self.reads_timestamp) {
            // Most filters: one property, which is the only value with a number.
            let value = row.value_of(name)?;
            return Ok(self.filter.holds(|_| value));
        }
        // Only what the filter reads is decoded: if it does not read the keys, they stay bytes.
        let (partition, row_key) = if self.reads_keys { keys()? } else { Default::default() };
        let timestamp = if self.reads_timestamp { Some(row.timestamp()?) } else { None };
        let (mut few, mut many);
        let found: &mut [Option<ValueRef<'_>>] = if self.names.len() <= FEW {
            few = [None; FEW];
            &mut few[..self.names.len()]
        } else {
            many = vec![None; self.names.len()];
            &mut many
        };
        if !found.is_empty() {
            row.find(&self.names, found)?;
        }
        Ok(self.filter.holds(|number| match self.sources[number] {
            Source::Partition => Some(ValueRef::String(&partition)),
            Source::RowKey => Some(ValueRef::String(&row_key)),
            Source::Timestamp => timestamp.map(ValueRef::DateTime),
            Source::Custom(place) => found[place],
        }))
    }

    /// The answer for an entity that was read by its key.
    pub fn keeps(&self, key: &EntityKey, row: store::RawRow<'_>) -> Result<bool, Fault> {
        let keys = || Ok((Cow::Borrowed(key.partition.as_str()), Cow::Borrowed(key.row.as_str())));
        self.holds(keys, row)
    }
}

impl RowFilter for Residual {
    fn keep(&self, candidate: Candidate<'_>) -> Result<bool, Fault> {
        self.holds(|| candidate.keys(), candidate.row)
    }

    fn work(&self) -> u64 {
        self.work
    }
}

/// A residual, if there is one, of a query that shows only some properties.
#[derive(Debug)]
pub struct Selection {
    residual: Option<Residual>,
    shown: Vec<Box<[u8]>>,
}

impl Selection {
    /// The filter of a scan that needs only these properties of its rows; `None` for all.
    pub fn filter(residual: Option<Residual>, shown: Option<&[&str]>) -> Option<Arc<dyn RowFilter>> {
        match shown.filter(|shown| shown.len() <= FEW) {
            Some(shown) => {
                let shown = shown.iter().map(|name| name.as_bytes().into()).collect();
                Some(Arc::new(Self { residual, shown }))
            }
            None => residual.map(|residual| Arc::new(residual) as Arc<dyn RowFilter>),
        }
    }
}

impl RowFilter for Selection {
    fn keep(&self, candidate: Candidate<'_>) -> Result<bool, Fault> {
        self.residual.as_ref().map_or(Ok(true), |residual| residual.keep(candidate))
    }

    fn work(&self) -> u64 {
        self.residual.as_ref().map_or(1, Residual::work)
    }

    fn needed(&self) -> Option<&[Box<[u8]>]> {
        Some(&self.shown)
    }

    fn may_drop(&self) -> bool {
        self.residual.is_some()
    }
}

#[cfg(test)]
mod tests;
