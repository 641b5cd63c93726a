//! Ordered scans over partitions. The directory lists them, and several are read concurrently.

mod pace;
mod reading;
mod span;
mod visits;

use std::future::Future;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use store::{Error, Page, PageBuilder, Scan};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use crate::cluster::Cluster;
use crate::directory::{Directory, Hints};
use crate::keys;
use crate::trouble::Trouble;
use pace::ReadPace;
use reading::{PartitionReading, Then};
use span::Span;
use visits::Visits;

/// The least time to wait for the first rows, even if the scan's own time is shorter.
const PATIENCE: Duration = Duration::from_secs(10);
/// Rows to read at a time if there is a filter.
const FILTERED_ROWS: usize = 1000;

/// The rows in the scan's ranges, in order, up to its budget. A scan of one partition reads with the consistency of
/// `Options::reads`.
pub async fn scan(
    cluster: &Cluster,
    directory: &Directory,
    table: Uuid,
    scan: &Scan,
    hints: &Hints,
) -> Result<Page, Error> {
    let spans = scan.ranges.iter().filter_map(Span::of).collect();
    let mut visits = Visits::new(directory, table, spans);
    let now = Instant::now();
    let mut progress = ScanProgress {
        cluster,
        table,
        scan,
        hints,
        page: PageBuilder::new(scan),
        pace: ReadPace::default(),
        safe_end: None,
        deadline: now + scan.budget.time,
        patience: now + scan.budget.time.max(PATIENCE),
    };
    match (progress.run(&mut visits).await, &progress.safe_end) {
        (Ok(()), _) => {}
        // Damage is an error. If the cluster is slow or unreachable, the page only ends.
        (Err(Trouble::Refused(_) | Trouble::Unknown(_) | Trouble::Tombstones(_)), Some(end)) => {
            progress.page.end_before(end)?;
        }
        (Err(trouble), _) => return Err(trouble.into()),
    }
    Ok(progress.page.finish())
}

#[derive(Debug)]
struct ScanProgress<'a> {
    cluster: &'a Cluster,
    table: Uuid,
    scan: &'a Scan,
    hints: &'a Hints,
    page: PageBuilder<'a>,
    pace: ReadPace,
    /// Everything below this place was read; `None` if nothing was.
    safe_end: Option<Vec<u8>>,
    deadline: Instant,
    patience: Instant,
}

impl ScanProgress<'_> {
    async fn run(&mut self, visits: &mut Visits<'_>) -> Result<(), Trouble> {
        let mut ahead = FuturesOrdered::new();
        let mut exhausted = false;
        loop {
            while !exhausted && ahead.len() < self.pace.parallel(self.wanted()) {
                match self.within_time(visits.next()).await? {
                    Some(visit) => {
                        let rows = self.pace.rows(self.wanted());
                        ahead.push_back(PartitionReading::begin(self.cluster, self.table, visit, rows));
                    }
                    None => exhausted = true,
                }
            }
            let Some(reading) = self.within_time(async { ahead.next().await.transpose() }).await? else {
                return Ok(());
            };
            if !self.show(reading).await? {
                return Ok(());
            }
        }
    }

    /// Adds the rows of one partition to the page; false once the page is complete.
    async fn show(&mut self, mut reading: PartitionReading<'_>) -> Result<bool, Trouble> {
        loop {
            let wanted = self.wanted();
            let limit = self.time_limit();
            let portion = within(limit, reading.fill(&mut self.pace, wanted)).await?;
            let partition = &reading.id().key;
            for row in &portion.rows {
                if !self.page.offer(&keys::place(partition, &row.key), &row.body)? {
                    return Ok(false);
                }
            }
            match portion.then {
                Then::Done => {
                    if portion.rows.is_empty() && reading.found_empty() {
                        self.hints.maybe_empty(reading.id());
                    }
                    self.safe_end = keys::place_after(partition);
                    return Ok(true);
                }
                Then::More(next) => self.safe_end = Some(keys::place(partition, &next)),
                Then::End(next) => {
                    if portion.rows.is_empty() && self.safe_end.is_none() {
                        return Err(Trouble::refused("the partition changed faster than it could be read"));
                    }
                    self.page.end_before(&keys::place(partition, &next))?;
                    return Ok(false);
                }
            }
        }
    }

    /// How many rows the page can still take, and one more to see whether there are more.
    fn wanted(&self) -> usize {
        let rows = self.scan.budget.rows;
        match &self.scan.filter {
            Some(filter) if filter.may_drop() => FILTERED_ROWS,
            _ => rows.saturating_sub(usize::try_from(self.page.examined()).unwrap_or(rows)).saturating_add(1),
        }
    }

    /// A page with a place to continue from does not wait longer than its time.
    fn time_limit(&self) -> Instant {
        if self.safe_end.is_some() { self.deadline } else { self.patience }
    }

    async fn within_time<T>(&self, work: impl Future<Output = Result<T, Trouble>>) -> Result<T, Trouble> {
        within(self.time_limit(), work).await
    }
}

async fn within<T>(limit: Instant, work: impl Future<Output = Result<T, Trouble>>) -> Result<T, Trouble> {
    timeout_at(limit, work).await.unwrap_or_else(|_| Err(Trouble::refused("the scan's time is over")))
}
