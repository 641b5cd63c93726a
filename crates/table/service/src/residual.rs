//! The part of a filter that key ranges can't answer, asked of rows where they lie.

use std::borrow::Cow;

use filter::{CompiledFilter, Expr};
use model::{EntityKey, ValueRef};
use store::{Candidate, Fault, RowFilter};

/// Most filters read one property or two; more than this are looked up in a list made for each row.
const FEW: usize = store::RawRow::FEW;
/// What asking a row costs, against stepping over it: for each comparison and each property looked for.
const COMPARISONS_PER_WORK: usize = 16;
const NAMES_PER_WORK: usize = 4;

/// What the plan's ranges left to ask of each row.
#[derive(Debug)]
pub struct Residual {
    filter: CompiledFilter,
    /// Where each value the filter asks for comes from, by its number.
    sources: Vec<Source>,
    /// Names of custom properties, as they are stored and in order.
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
    /// The custom property with this name, by its place among the names.
    Custom(usize),
}

impl Residual {
    pub fn new(expr: &Expr) -> Self {
        let filter = CompiledFilter::new(expr);
        // In order, because the filter's names are; a row wants them so if they are many.
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
        // Only what the filter reads is decoded: keys of a row it drops by a property stay bytes.
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

    /// Whether it keeps an entity that was found by its key.
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

#[cfg(test)]
mod tests;
