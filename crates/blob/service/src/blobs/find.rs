//! Find Blobs by Tags: in one container, or in all of an account.

use std::time::Duration;

use blob_model::{
    AccountName, BlobName, Comparison, ContainerName, DateTime, Refusal, ServiceKind, SnapshotTime,
    TagCondition, Tags,
};
use model::{Cut, KeyRange};
use store::{Change, Condition, Fault, RowOperation, Scan, TableRef};

use super::list::PAGE_BYTES_MAX;
use super::state::budget;
use crate::blob_key;
use crate::content::moves;
use crate::{BlobRef, BlobService, ContainerRef, Error, FoundBlob, FoundPage, FoundPlace, Result, TagQuery};

/// A commit follows its hints at once. A hint that is older than this and not so is stale.
const HINT_TIME: Duration = Duration::from_secs(3600);
const HINT_ROWS: usize = 200;
const CONTAINERS_AT_ONCE: usize = 100;
/// A page ends after so many containers, and after so many hints that say what is not so.
const CONTAINERS_MAX: usize = 1000;
const STALE_MAX: usize = 10_000;

struct Search<'a> {
    query: &'a TagQuery<'a>,
    /// The condition whose hints are read.
    by: &'a TagCondition,
    found: Vec<FoundBlob>,
    /// Of the names and tags of these.
    bytes: usize,
    stale: usize,
}

impl Search<'_> {
    fn is_full(&self) -> bool {
        self.found.len() >= self.query.limit || self.bytes >= PAGE_BYTES_MAX
    }

    fn take(&mut self, blob: FoundBlob) {
        let tags = blob.tags.iter().map(|(key, value)| key.len() + value.len());
        self.bytes += blob.name.as_str().len() + tags.sum::<usize>();
        self.found.push(blob);
    }
}

impl BlobService {
    /// In the order of containers. Conditions must be at least one, joined by `AND`.
    pub async fn find_blobs(&self, account: &AccountName, query: &TagQuery<'_>) -> Result<FoundPage> {
        self.admit_account(account)?;
        let no_condition = || Fault::bug("a search by tags without a condition");
        let by = best(query.conditions).ok_or_else(no_condition)?;
        let mut search = Search { query, by, found: Vec::new(), bytes: 0, stale: 0 };
        let next = match &query.container {
            Some(container) => {
                let from = query.from.as_ref().filter(|from| from.container == *container);
                let container = ContainerRef::new(account, container);
                self.find_in(&container, &mut search, from.map(|from| from.within.as_str())).await?
            }
            None => self.find_in_all(account, &mut search).await?,
        };
        Ok(FoundPage { blobs: search.found, next })
    }

    async fn find_in_all(
        &self,
        account: &AccountName,
        search: &mut Search<'_>,
    ) -> Result<Option<FoundPlace>> {
        let first = search.query.from.clone();
        let mut from =
            Some(first.as_ref().map_or(String::new(), |place| place.container.as_str().to_owned()));
        let mut containers = 0;
        while let Some(start) = from {
            let page =
                self.engine.list_tables(account, ServiceKind::Blob, &start, CONTAINERS_AT_ONCE).await?;
            for name in page.names.into_iter().filter(|name| !moves::is_table(name)) {
                let unlike =
                    |_| Fault::damaged("a stored container has a name that no container has").about(&name);
                let container = ContainerName::parse(name.as_str()).map_err(unlike)?;
                if containers == CONTAINERS_MAX {
                    return Ok(Some(FoundPlace { container, within: String::new() }));
                }
                containers += 1;
                let within = first
                    .as_ref()
                    .filter(|first| first.container == container)
                    .map(|first| first.within.as_str());
                match self.find_in(&ContainerRef::new(account, &container), search, within).await {
                    Ok(None) => {}
                    Ok(next) => return Ok(next),
                    // Deleted since it was listed.
                    Err(Error::Refused(Refusal::ContainerNotFound)) => {}
                    Err(error) => return Err(error),
                }
            }
            from = page.next;
        }
        Ok(None)
    }

    /// Where the page ends, if it does.
    async fn find_in(
        &self,
        container: &ContainerRef,
        search: &mut Search<'_>,
        from: Option<&str>,
    ) -> Result<Option<FoundPlace>> {
        let table = container.table()?;
        let partition = blob_key::tag_partition(&search.by.key)?;
        let mut range = hints(partition.as_str(), search.by)?;
        if let Some(from) = from.filter(|from| !from.is_empty()) {
            range.start = range.start.max(Cut::before(partition.as_str(), from));
        }
        loop {
            if range.is_empty() {
                self.engine.find_table(&table).await?;
                return Ok(None);
            }
            let scan =
                Scan { ranges: vec![range.clone()], budget: budget(HINT_ROWS), filter: None, lasts: false };
            let page = self.engine.scan(&table, scan).await?;
            for entity in page.entities.iter() {
                let within =
                    || FoundPlace { container: container.name.clone(), within: entity.row_key.to_owned() };
                let version = entity.row.timestamp()?;
                let found = self.look(&table, container, entity.row_key, search).await?;
                match found {
                    Some(found) if !search.is_full() => search.take(found),
                    Some(_) => return Ok(Some(within())),
                    None if search.stale == STALE_MAX => return Ok(Some(within())),
                    None => {
                        search.stale += 1;
                        self.forget_hint(&table, &partition, entity.row_key, version).await;
                    }
                }
            }
            let Some(next) = page.next else { return Ok(None) };
            range.start = Cut::before(next.partition.as_str(), next.row.as_str());
        }
    }

    /// The blob of a hint, if it has these tags. `None` also if it is another condition that does not hold.
    async fn look(
        &self,
        table: &TableRef,
        container: &ContainerRef,
        row: &str,
        search: &Search<'_>,
    ) -> Result<Option<FoundBlob>> {
        let unlike = || Fault::damaged("a container has a hint that this program does not write").about(row);
        let (value, name) = blob_key::read_tag_row(row).ok_or_else(unlike)?;
        let name = BlobName::parse(&name).map_err(|_| unlike())?;
        let blob = BlobRef::new(container.clone(), name);
        let found = self.state(table, &blob, SnapshotTime::BASE).await?;
        let Some(tags) = found.and_then(|found| found.row.live().map(|live| live.tags.clone())) else {
            return Ok(None);
        };
        let is_so = tags.get(&search.by.key) == Some(value.as_str());
        let holds = is_so && search.query.conditions.iter().all(|condition| condition.holds(&tags));
        Ok(holds.then(|| FoundBlob { container: container.name.clone(), name: blob.name, tags }))
    }

    /// Removes a hint that found nothing, if it is old and still the same. A hint whose blob has the tag stays: it was passed
    /// over because of another condition.
    async fn forget_hint(&self, table: &TableRef, partition: &model::Key, row: &str, version: DateTime) {
        if self.clock.now() <= version.plus(HINT_TIME) {
            return;
        }
        let _ = async {
            let key = blob_key::key_of(row)?;
            let Some((value, name)) = blob_key::read_tag_row(row) else { return Ok(()) };
            let Ok(name) = BlobName::parse(&name) else { return Ok(()) };
            let tag = blob_key::read_tag_partition(partition.as_str());
            let stored = self.engine.get(table, &blob_key::entity(&name, SnapshotTime::BASE)?).await?;
            let stored = stored.map(|stored| crate::blob_row::BlobRow::read(stored.raw())).transpose()?;
            let has = |tags: &Tags| tag.as_deref().and_then(|tag| tags.get(tag)) == Some(value.as_str());
            if stored.and_then(|row| row.blob).is_some_and(|blob| has(&blob.tags)) {
                return Ok(());
            }
            let _pass = self.gate.pass().await?;
            let operation =
                RowOperation { row: key, condition: Condition::Version(version), change: Change::Delete };
            self.apply(table, partition.clone(), vec![operation]).await.map(drop)
        }
        .await;
    }
}

/// The condition with the fewest hints, probably.
fn best(conditions: &[TagCondition]) -> Option<&TagCondition> {
    let is_equal = |condition: &&TagCondition| condition.comparison == Comparison::Equal;
    conditions.iter().find(is_equal).or(conditions.first())
}

/// The hints of values that the condition holds for.
fn hints(partition: &str, condition: &TagCondition) -> Result<KeyRange> {
    let value = condition.value.as_str();
    // Below and above all names that have this value.
    let below = Cut::before(partition, blob_key::tag_row(value, "")?.as_str());
    let above = Cut::before(partition, blob_key::above_tag_row(value)?.as_str());
    let (start, end) = (Cut::before_partition(partition), Cut::after_partition(partition));
    Ok(match condition.comparison {
        Comparison::Equal => KeyRange { start: below, end: above },
        Comparison::Greater => KeyRange { start: above, end },
        Comparison::GreaterOrEqual => KeyRange { start: below, end },
        Comparison::Less => KeyRange { start, end: below },
        Comparison::LessOrEqual => KeyRange { start, end: above },
        // Only in conditions of other operations.
        Comparison::NotEqual => KeyRange { start, end },
    })
}
