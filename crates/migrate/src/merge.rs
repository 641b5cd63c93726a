//! Reads two tables in parallel, in key order.

use std::cmp::Ordering;

use store::StoredRef;

use crate::error::Error;
use crate::rows::Rows;

/// The rows at the next key of either table.
#[derive(Clone, Copy, Debug)]
pub enum RowPair<'a> {
    Source(StoredRef<'a>),
    Target(StoredRef<'a>),
    Both(StoredRef<'a>, StoredRef<'a>),
}

#[derive(Debug)]
pub struct PairedRows {
    source: Rows,
    target: Rows,
    /// Which side or sides had the last key, to advance them next.
    given: Option<Ordering>,
}

impl PairedRows {
    pub fn new(source: Rows, target: Rows) -> Self {
        Self { source, target, given: None }
    }

    pub async fn next(&mut self) -> Result<Option<RowPair<'_>>, Error> {
        if matches!(self.given, Some(Ordering::Less | Ordering::Equal)) {
            self.source.step();
        }
        if matches!(self.given, Some(Ordering::Greater | Ordering::Equal)) {
            self.target.step();
        }
        self.source.reach().await?;
        self.target.reach().await?;
        let next = match (self.source.head(), self.target.head()) {
            (None, None) => None,
            (Some(source), None) => Some((Ordering::Less, RowPair::Source(source))),
            (None, Some(target)) => Some((Ordering::Greater, RowPair::Target(target))),
            (Some(source), Some(target)) => Some(match by_key(source, target) {
                Ordering::Less => (Ordering::Less, RowPair::Source(source)),
                Ordering::Equal => (Ordering::Equal, RowPair::Both(source, target)),
                Ordering::Greater => (Ordering::Greater, RowPair::Target(target)),
            }),
        };
        self.given = next.map(|(given, _)| given);
        Ok(next.map(|(_, next)| next))
    }
}

fn by_key(a: StoredRef<'_>, b: StoredRef<'_>) -> Ordering {
    model::ordinal_cmp(a.partition, b.partition).then_with(|| model::ordinal_cmp(a.row_key, b.row_key))
}
