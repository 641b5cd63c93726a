//! Queries over entities: filter to plan, plan to scan, scan to page.

use std::sync::Arc;

use common::Refusal;
use filter::{FilterError, Plan};
use model::{Cut, EntityKey, KeyRange, limits};
use store::{Budget, Entities, MemoryShare, PageGuard, RowFilter, Scan, StoredRef, TableRef};

use crate::long_work::LONG_WORK;
use crate::residual::Residual;
use crate::{Error, Result, Service};

/// The most memory that a byte of a filter's text takes as tree, as compiled filter and as literals in ranges: the shortest
/// comparison has a few letters and is a node in both trees.
const BYTES_PER_FILTER_BYTE: usize = 32;

#[derive(Clone, Debug, Default)]
pub struct EntityQuery<'a> {
    pub filter: Option<&'a str>,
    pub top: Option<usize>,
    /// The entities that the caller can see; `None` for all.
    pub within: Option<KeyRange>,
    /// The continuation of the last page: a partition key, and a row key unless it is the start of the partition.
    pub from: Option<(String, Option<String>)>,
}

#[derive(Debug, Default)]
pub struct EntityPage {
    pub entities: Entities,
    pub next: Option<EntityKey>,
    /// How many entities were examined to find these.
    pub examined: u64,
    /// Keep this until the answer is written.
    pub tied: PageGuard,
}

impl Service {
    /// A missing table is reported before a bad filter, as the service does. `held` accounts for the memory of the query
    /// before it is used, and afterwards for the page.
    pub async fn query_entities(
        &self,
        table: &TableRef,
        query: EntityQuery<'_>,
        held: &mut MemoryShare,
    ) -> Result<EntityPage> {
        let filter_bytes = query.filter.map_or(0, |text| text.len() * BYTES_PER_FILTER_BYTE);
        reserve(held, filter_bytes)?;
        let top = query.top;
        let plan = QueryPlan::make(query).await;
        let rows = top.unwrap_or(limits::PAGE_ENTITIES_MAX).min(limits::PAGE_ENTITIES_MAX);
        // If the engine is called, it finds a missing table itself.
        if plan.is_err() || rows == 0 {
            self.require_table(table).await?;
        }
        let QueryPlan { ranges, partition, residual } = plan?;
        if rows == 0 {
            return Ok(EntityPage::default());
        }
        reserve(held, filter_bytes + ranges.capacity() * size_of::<KeyRange>())?;

        // A query for one entity by both keys is a get, not a scan.
        if let [range] = ranges.as_slice()
            && let Some(key) = entity_of(range)
        {
            let page = self.query_one(table, key, residual).await?;
            reserve(held, page.entities.bytes())?;
            return Ok(page);
        }
        let filter = residual.map(|residual| Arc::new(residual) as Arc<dyn RowFilter>);
        let budget = Budget { rows, bytes: limits::PAGE_BYTES_MAX, time: limits::QUERY_TIME_MAX, examined: u64::MAX };
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
        residual: Option<Residual>,
    ) -> Result<EntityPage> {
        let partition = Some(key.partition.as_str());
        self.admit(table, partition)?;
        self.spend(table, partition, 1);
        let mut entities = Entities::default();
        let found = self.engine.get(table, &key).await?;
        let examined = u64::from(found.is_some());
        if let Some(row) = found
            && residual
                .map_or(Ok(true), |residual| residual.keeps(&key, row.raw()))
                .map_err(|fault| Error::Fault(fault.about(table.place_of(&key))))?
        {
            let (partition, row_key) = (key.partition.as_str(), key.row.as_str());
            entities.push(StoredRef { partition, row_key, row: row.raw() });
        }
        Ok(EntityPage { entities, examined, ..EntityPage::default() })
    }
}

/// The key ranges that a query reads, and the condition for the rows in them.
struct QueryPlan {
    ranges: Vec<KeyRange>,
    /// The partition of all ranges, if there is one.
    partition: Option<String>,
    residual: Option<Residual>,
}

impl QueryPlan {
    async fn make(query: EntityQuery<'_>) -> std::result::Result<Self, FilterError> {
        let EntityQuery { filter, within, from, .. } = query;
        LONG_WORK.permit_for_filter(filter.map_or(0, str::len)).await.run(|| {
            let Plan { ranges, residual } = filter::plan(filter.map_or(Ok(None), filter::parse)?);
            let ranges = from_continuation(clip(ranges, within), from);
            let partition = KeyRange::partition_of(&ranges).map(str::to_owned);
            Ok(Self { ranges, partition, residual: residual.as_ref().map(Residual::new) })
        })
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

/// The key of a range of at most one entity, if that key is valid.
fn entity_of(range: &KeyRange) -> Option<EntityKey> {
    match (&range.start, &range.end) {
        (Cut::Before(p, r), Cut::After(q, s)) if p == q && r == s => EntityKey::parse(p, r).ok(),
        _ => None,
    }
}

impl EntityQuery<'_> {
    /// Parses `$top`.
    pub fn top(text: &str) -> std::result::Result<usize, Refusal> {
        let top = text.trim().parse().ok();
        top.filter(|top| *top <= limits::PAGE_ENTITIES_MAX).ok_or(Refusal::InputNotValid)
    }
}
