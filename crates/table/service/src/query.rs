//! Queries over entities: filter to plan, plan to scan, scan to page.

use std::time::Instant;

use common::Refusal;
use common::hot_partitions::Load;
use filter::FilterError;
use model::{Cut, EntityKey, KeyRange, limits};
use store::{Budget, Entities, MemoryShare, PageGuard, Scan, StoredRef, TableRef};

use crate::advice::WastedQuery;
use crate::explain::{Explanation, FilterFacts, QueryClass, QueryShape};
use crate::long_work::LONG_WORK;
use crate::residual::{Residual, Selection};
use crate::{Error, Result, Service};

/// The most memory that a byte of a filter's text takes as tree, as compiled filter and as literals in ranges: the shortest
/// comparison has a few letters and is a node in both trees.
const BYTES_PER_FILTER_BYTE: usize = 32;
/// Longer filters get no advice.
pub(crate) const ADVISED_FILTER_BYTES_MAX: usize = 4096;
/// Rows that are read to estimate what a query examines, as many as a page has, and ranges that are asked for.
const ESTIMATE_ROWS_MAX: u64 = limits::PAGE_ENTITIES_MAX as u64;
const ESTIMATED_RANGES_MAX: usize = 16;

#[derive(Clone, Debug, Default)]
pub struct EntityQuery<'a> {
    pub filter: Option<&'a str>,
    pub top: Option<usize>,
    /// The entities that the caller can see; `None` for all.
    pub within: Option<KeyRange>,
    /// The continuation of the last page: a partition key, and a row key unless it is the start of the partition.
    pub from: Option<(String, Option<String>)>,
    /// Refuses the query if a page examines more entities than this.
    pub examined_max: Option<u64>,
    /// Whether the page comes with its explanation.
    pub is_explained: bool,
    /// The custom properties that are shown; `None` for all. The page may have others too.
    pub shown: Option<Vec<&'a str>>,
    /// Whether the page comes with the shape of the query, which the log may need.
    pub has_shape: bool,
}

#[derive(Debug, Default)]
pub struct EntityPage {
    pub entities: Entities,
    pub next: Option<EntityKey>,
    /// How many entities were examined to find these.
    pub examined: u64,
    /// If the query asked for it.
    pub explanation: Option<Box<Explanation>>,
    /// If the query asked for it.
    pub shape: Option<QueryShape>,
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
        let started = Instant::now();
        let filter_text = query.filter;
        let filter_bytes = filter_text.map_or(0, |text| text.len() * BYTES_PER_FILTER_BYTE);
        reserve(held, filter_bytes)?;
        let (top, examined_max, shown) = (query.top, query.examined_max, query.shown.clone());
        let plan = QueryPlan::make(query).await;
        let rows = top.unwrap_or(limits::PAGE_ENTITIES_MAX).min(limits::PAGE_ENTITIES_MAX);
        // If the engine is called, it finds a missing table itself.
        if plan.is_err() || rows == 0 {
            self.require_table(table).await?;
        }
        let QueryPlan { ranges, partition, residual, class, explanation, shape } = plan?;
        if rows == 0 {
            return Ok(EntityPage { explanation, shape, ..EntityPage::default() });
        }
        reserve(held, filter_bytes + ranges.capacity() * size_of::<KeyRange>())?;

        // A query for one entity by both keys is a get, not a scan.
        let key = if let [range] = ranges.as_slice() { entity_of(range) } else { None };
        let page = match key {
            Some(key) => self.query_one(table, key, residual).await?,
            None => {
                let filter = Selection::filter(residual, shown.as_deref());
                let (bytes, time) = (limits::PAGE_BYTES_MAX, limits::QUERY_TIME_MAX);
                // One more is examined, to tell a query that needs more from one that needs exactly these.
                let examined = examined_max.map_or(u64::MAX, |max| max.saturating_add(1));
                let budget = Budget { rows, bytes, time, examined };
                self.admit(table, partition.as_deref())?;
                let page = self.engine.scan(table, Scan { ranges, budget, filter, lasts: true }).await?;
                let cost = page.kibibytes.max(1);
                self.spend(table, partition.as_deref(), cost);
                let load = Load { requests: 1, entities: page.examined, kibibytes: cost, ..Load::default() };
                self.observe(table, partition.as_deref(), load);
                EntityPage {
                    entities: page.entities,
                    next: page.next,
                    examined: page.examined,
                    tied: page.tied,
                    ..EntityPage::default()
                }
            }
        };
        let returned = page.entities.len() as u64;
        if page.examined > returned {
            self.note_waste(table, filter_text, (class, page.examined, returned), started);
        }
        if let Some(max) = examined_max.filter(|max| page.examined > *max) {
            return Err(model::Refusal::ScanTooLarge { max }.into());
        }
        reserve(held, page.entities.bytes())?;
        Ok(EntityPage { explanation, shape, ..page })
    }

    /// What `query_entities` would read, without reading it. `query.within` must not restrict the caller if it is to be
    /// estimated: an estimate is of more than the caller can see.
    pub async fn explain_query(
        &self,
        table: &TableRef,
        query: EntityQuery<'_>,
        held: &mut MemoryShare,
    ) -> Result<Explanation> {
        reserve(held, query.filter.map_or(0, |text| text.len() * BYTES_PER_FILTER_BYTE))?;
        let sees_all = query.within.as_ref().is_none_or(|within| *within == KeyRange::all());
        let plan = QueryPlan::make(EntityQuery { is_explained: true, ..query }).await;
        self.require_table(table).await?;
        let QueryPlan { ranges, explanation, .. } = plan?;
        // `is_explained` asks for it.
        let none = || Error::Fault(store::Fault::bug("a query was planned without its explanation"));
        let mut explanation = explanation.map(|explanation| *explanation).ok_or_else(none)?;
        if sees_all {
            explanation.estimated_entities = self.estimate(table, &ranges).await?;
        }
        Ok(explanation)
    }

    /// About how many entities lie in these ranges. `None` if the engine can't tell, or if there are too many ranges to ask
    /// for.
    async fn estimate(&self, table: &TableRef, ranges: &[KeyRange]) -> Result<Option<u64>> {
        if ranges.len() > ESTIMATED_RANGES_MAX {
            return Ok(None);
        }
        let (mut entities, mut left) = (0_u64, ESTIMATE_ROWS_MAX);
        for range in ranges {
            let Some(found) = self.engine.estimate_table(table, range, left).await? else { return Ok(None) };
            entities = entities.saturating_add(found.rows);
            left = left.saturating_sub(found.read);
        }
        Ok(Some(entities))
    }

    /// Queries that examine nothing in vain pay nothing for this, so the filter is parsed again here: not a long one, which
    /// would take as long as the query itself.
    fn note_waste(
        &self,
        table: &TableRef,
        filter: Option<&str>,
        (class, examined, returned): (QueryClass, u64, u64),
        started: Instant,
    ) {
        let (Some(insight), Some(text)) = (&self.insight, filter) else { return };
        if text.len() > ADVISED_FILTER_BYTES_MAX {
            return;
        }
        // It was parsed before.
        let Ok(Some(filter)) = filter::parse(text) else { return };
        let now = Instant::now();
        let time = now.saturating_duration_since(started);
        let query = WastedQuery { table: &table.name, filter: &filter, class, examined, returned, time };
        insight.advisor.record(&table.account, query, now);
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
        self.observe(
            table,
            partition,
            Load { requests: 1, entities: examined, kibibytes: 1, ..Load::default() },
        );
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
    class: QueryClass,
    explanation: Option<Box<Explanation>>,
    shape: Option<QueryShape>,
}

impl QueryPlan {
    async fn make(query: EntityQuery<'_>) -> std::result::Result<Self, FilterError> {
        let EntityQuery { filter, within, from, is_explained, has_shape, .. } = query;
        LONG_WORK.permit_for_filter(filter.map_or(0, str::len)).await.run(|| {
            let filter = filter.map_or(Ok(None), filter::parse)?;
            let facts = is_explained.then(|| FilterFacts::of(filter.as_ref()));
            let text = has_shape.then(|| filter.as_ref().map(filter::shape));
            let plan = filter::plan(filter);
            let shape = text.map(|filter| QueryShape::of(filter, &plan.ranges));
            let class = QueryClass::of(&plan.ranges);
            let (ranges, explanation) = match facts {
                None => (from_continuation(clip(plan.ranges, within), from), None),
                Some(facts) => {
                    let ranges = from_continuation(clip(plan.ranges.clone(), within), from);
                    let explanation = facts.explain(&plan, &ranges);
                    (ranges, Some(Box::new(explanation)))
                }
            };
            let partition = KeyRange::partition_of(&ranges).map(str::to_owned);
            let residual = plan.residual.as_ref().map(Residual::new);
            Ok(Self { ranges, partition, residual, class, explanation, shape })
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
