//! Two tables side by side in the order of their keys.

use std::cmp::Ordering;

use store::StoredRef;

use crate::error::Error;
use crate::rows::Rows;

/// What there is at the next key that either has.
#[derive(Clone, Copy, Debug)]
pub enum Next<'a> {
    Source(StoredRef<'a>),
    Target(StoredRef<'a>),
    Both(StoredRef<'a>, StoredRef<'a>),
}

#[derive(Debug)]
pub struct Merge {
    source: Rows,
    target: Rows,
    /// What was given last, and is passed with the next step.
    given: Option<Ordering>,
}

impl Merge {
    pub fn new(source: Rows, target: Rows) -> Self {
        Self { source, target, given: None }
    }

    pub async fn next(&mut self) -> Result<Option<Next<'_>>, Error> {
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
            (Some(source), None) => Some((Ordering::Less, Next::Source(source))),
            (None, Some(target)) => Some((Ordering::Greater, Next::Target(target))),
            (Some(source), Some(target)) => Some(match by_key(source, target) {
                Ordering::Less => (Ordering::Less, Next::Source(source)),
                Ordering::Equal => (Ordering::Equal, Next::Both(source, target)),
                Ordering::Greater => (Ordering::Greater, Next::Target(target)),
            }),
        };
        self.given = next.map(|(given, _)| given);
        Ok(next.map(|(_, next)| next))
    }
}

fn by_key(a: StoredRef<'_>, b: StoredRef<'_>) -> Ordering {
    model::ordinal_cmp(a.partition, b.partition).then_with(|| model::ordinal_cmp(a.row_key, b.row_key))
}
