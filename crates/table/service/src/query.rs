//! Queries over entities: filter to plan, plan to scan, scan to page.

use std::sync::Arc;

use filter::{Expr, Plan};
use model::{Cut, EntityKey, KeyRange, Refusal, limits};
use store::{Budget, Entities, MemoryShare, PageGuard, RowFilter, Scan, StoredRef, TableRef};

use crate::residual::Residual;
use crate::{Error, Result, Service};

/// A filter as a tree, as it is asked of rows, and its literals in ranges take so many bytes for one of its text at most:
/// the shortest comparison is a few letters, and a node of each tree.
const BYTES_PER_FILTER_BYTE: usize = 32;

#[derive(Clone, Debug, Default)]
pub struct EntityQuery<'a> {
    pub filter: Option<&'a str>,
    pub top: Option<usize>,
    /// The entities that exist for the caller; all, if there is none.
    pub within: Option<KeyRange>,
    /// Where the last page said to go on: a partition key, and a row key unless it is the partition's start.
    pub from: Option<(String, Option<String>)>,
}

#[derive(Debug, Default)]
pub struct EntityPage {
    pub entities: Entities,
    pub next: Option<EntityKey>,
    /// How many entities were looked at to find these.
    pub examined: u64,
    /// To be kept until the answer is written.
    pub tied: PageGuard,
}

impl Service {
    /// A missing table is told before a bad filter, as the service does. What the query takes is held before it is taken;
    /// afterwards, what its page takes.
    pub async fn query_entities(
        &self,
        table: &TableRef,
        query: EntityQuery<'_>,
        held: &mut MemoryShare,
    ) -> Result<EntityPage> {
        let filter_bytes = query.filter.map_or(0, |text| text.len() * BYTES_PER_FILTER_BYTE);
        reserve(held, filter_bytes)?;
        let filter = query.filter.map_or(Ok(None), filter::parse);
        let rows = query.top.unwrap_or(limits::PAGE_ENTITIES_MAX).min(limits::PAGE_ENTITIES_MAX);
        // The engine looks for the table, where it is asked for something.
        if filter.is_err() || rows == 0 {
            self.require_table(table).await?;
        }
        let filter = filter?;
        if rows == 0 {
            return Ok(EntityPage::default());
        }
        let Plan { ranges, residual } = filter::plan(filter);
        let ranges = clip(ranges, query.within);
        let ranges = from_continuation(ranges, query.from);
        reserve(held, filter_bytes + ranges.capacity() * size_of::<KeyRange>())?;

        // One entity asked for by both keys is read as one, never scanned for.
        if let [range] = ranges.as_slice()
            && let Some(key) = entity_of(range)
        {
            let page = self.query_one(table, key, residual).await?;
            reserve(held, page.entities.bytes())?;
            return Ok(page);
        }
        let filter = residual.map(|residual| Arc::new(Residual::new(&residual)) as Arc<dyn RowFilter>);
        let budget = Budget { rows, bytes: limits::PAGE_BYTES_MAX, time: limits::QUERY_TIME_MAX };
        let partition = KeyRange::partition_of(&ranges).map(str::to_owned);
        self.admit(table, partition.as_deref())?;
        let page = self.engine.scan(table, Scan { ranges, budget, filter, lasts: true }).await?;
        self.spend(table, partition.as_deref(), page.kibibytes.max(1));
        reserve(held, page.entities.bytes())?;
        Ok(EntityPage { entities: page.entities, next: page.next, examined: page.examined, tied: page.tied })
    }

    async fn query_one(
        &self,
        table: &TableRef,
        key: EntityKey,
        residual: Option<Expr>,
    ) -> Result<EntityPage> {
        let partition = Some(key.partition.as_str());
        self.admit(table, partition)?;
        self.spend(table, partition, 1);
        let mut entities = Entities::default();
        let found = self.engine.get(table, &key).await?;
        let examined = u64::from(found.is_some());
        if let Some(row) = found
            && residual
                .map_or(Ok(true), |residual| Residual::new(&residual).keeps(&key, row.raw()))
                .map_err(|fault| Error::Fault(fault.about(table.place_of(&key))))?
        {
            let (partition, row_key) = (key.partition.as_str(), key.row.as_str());
            entities.push(StoredRef { partition, row_key, row: row.raw() });
        }
        Ok(EntityPage { entities, examined, ..EntityPage::default() })
    }
}

fn reserve(held: &mut MemoryShare, bytes: usize) -> std::result::Result<(), Refusal> {
    if held.resize(bytes) { Ok(()) } else { Err(Refusal::Busy) }
}

fn from_continuation(ranges: Vec<KeyRange>, from: Option<(String, Option<String>)>) -> Vec<KeyRange> {
    let Some((partition, row)) = from else { return ranges };
    let rest = KeyRange { start: Cut::before(&partition, row.as_deref().unwrap_or_default()), end: Cut::End };
    clip(ranges, Some(rest))
}

fn clip(ranges: Vec<KeyRange>, within: Option<KeyRange>) -> Vec<KeyRange> {
    let Some(within) = within else { return ranges };
    ranges.iter().map(|range| range.intersect(&within)).filter(|range| !range.is_empty()).collect()
}

/// The key of a range that holds one entity at most, if that key can exist.
fn entity_of(range: &KeyRange) -> Option<EntityKey> {
    match (&range.start, &range.end) {
        (Cut::Before(p, r), Cut::After(q, s)) if p == q && r == s => EntityKey::parse(p, r).ok(),
        _ => None,
    }
}

impl EntityQuery<'_> {
    /// A `$top` as it was written.
    pub fn top(text: &str) -> std::result::Result<usize, Refusal> {
        text.trim().parse().ok().filter(|top| *top <= limits::PAGE_ENTITIES_MAX).ok_or(Refusal::InputNotValid)
    }
}
