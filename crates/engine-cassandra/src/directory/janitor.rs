//! The janitor: a server's background work on the directory. Every server has one, and they work independently.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use rand::Rng;
use tokio::task::JoinSet;
use tokio::time::sleep;
use uuid::Uuid;

use super::reshape::{Sizes, Suspects};
use super::{Directory, Hints};
use crate::clock::unix_micros;
use crate::roster::DOOMED;
use crate::trouble::Trouble;

/// How often and how eagerly the janitor works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The number of keys in a segment above which it is split, and in each of two adjacent segments below which they
    /// are merged.
    pub split_above: usize,
    pub merge_below: usize,
    /// An empty partition is struck off after this time without a write.
    pub quiet: Duration,
    /// The time between two checks for dropped tables and for segments to split, merge or rewrite.
    pub look_every: Duration,
    /// The time between two walks through the whole directory.
    pub walk_every: Duration,
    /// The time before a dropped table is purged: longer than any table lease.
    pub purge_after: Duration,
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            split_above: 50_000,
            merge_below: 5_000,
            quiet: Duration::from_secs(60),
            look_every: Duration::from_secs(15),
            walk_every: Duration::from_secs(4 * 3600),
            purge_after: Duration::from_secs(60),
        }
    }
}

/// Partitions that are struck off concurrently.
const TIDIED_AT_ONCE: usize = 8;
/// On its first walk, a janitor checks partitions that were listed within this time for a missing write.
const FIRST_LOOK_BACK: i64 = 86_400_000_000;
/// Tables of an account read at a time.
const TABLES_AT_ONCE: usize = 1000;

#[derive(Debug)]
pub struct Janitor {
    tasks: JoinSet<()>,
}

#[derive(Debug)]
struct Round {
    directory: Arc<Directory>,
    schedule: Schedule,
    /// Entries listed before this were checked in an earlier walk.
    looked_at: i64,
    /// When this server first saw each of the tables that are to be purged or are being dropped.
    doomed: HashMap<Uuid, Instant>,
}

impl Janitor {
    pub fn start(directory: Arc<Directory>, hints: Arc<Hints>, schedule: Schedule) -> Self {
        let mut tasks = JoinSet::new();
        tasks.spawn(tidy_hinted(directory.clone(), hints, schedule));
        let looked_at = unix_micros().saturating_sub(FIRST_LOOK_BACK);
        tasks.spawn(Round { directory, schedule, looked_at, doomed: HashMap::new() }.run());
        Self { tasks }
    }

    /// May stop the work anywhere: another janitor continues.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}

async fn tidy_hinted(directory: Arc<Directory>, hints: Arc<Hints>, schedule: Schedule) {
    let hinted =
        stream::unfold(hints, |hints| async move { Some((hints.next(schedule.quiet).await, hints)) });
    let tidied = hinted.for_each_concurrent(TIDIED_AT_ONCE, |id| {
        let directory = &directory;
        async move {
            if let Err(trouble) = directory.tidy(&id, schedule.quiet).await {
                report(&trouble, id.table).await;
            }
        }
    });
    tidied.await;
}

impl Round {
    async fn run(mut self) {
        // So that servers started together do not do the same work at the same time.
        let mut next_walk = Instant::now() + jittered(self.schedule.walk_every);
        loop {
            sleep(jittered(self.schedule.look_every)).await;
            self.purge().await;
            for (table, start) in self.directory.changed(self.sizes()) {
                if let Err(trouble) = self.directory.walk_segment(table, &start, self.sizes()).await {
                    report(&trouble, table).await;
                }
            }
            if Instant::now() >= next_walk {
                self.walk_all().await;
                next_walk = Instant::now() + jittered(self.schedule.walk_every);
            }
        }
    }

    async fn purge(&mut self) {
        let cluster = &self.directory.cluster;
        let purges = match cluster.read(&cluster.statements.list_purges, ()).await {
            Ok(rows) => rows,
            Err(trouble) => return report(&trouble, Uuid::nil()).await,
        };
        let Ok(purges) = purges.rows::<(Uuid,)>() else { return };
        let purges: Vec<Uuid> = purges.filter_map(|row| row.ok().map(|(table,)| table)).collect();
        for table in purges {
            if !self.is_due(table) {
                continue;
            }
            match self.directory.purge(table).await {
                Ok(()) => {
                    self.doomed.remove(&table);
                    tracing::debug!(%table, "purged a dropped table");
                }
                Err(trouble) => report(&trouble, table).await,
            }
        }
    }

    /// Whether the table was first seen here long enough ago.
    fn is_due(&mut self, table: Uuid) -> bool {
        self.doomed.entry(table).or_insert_with(Instant::now).elapsed() >= self.schedule.purge_after
    }

    async fn walk_all(&mut self) {
        let quiet = i64::try_from(self.schedule.quiet.as_micros()).unwrap_or(i64::MAX);
        let until = unix_micros().saturating_sub(quiet);
        match self.walk_accounts(until).await {
            Ok(()) => self.looked_at = until,
            Err(trouble) => report(&trouble, Uuid::nil()).await,
        }
    }

    async fn walk_accounts(&mut self, until: i64) -> Result<(), Trouble> {
        let directory = self.directory.clone();
        for account in directory.cluster.accounts_of_tables().await? {
            let mut from = String::new();
            loop {
                let tables = directory.cluster.tables_of(&account, &from, TABLES_AT_ONCE).await?;
                let complete = tables.len() < TABLES_AT_ONCE;
                for table in tables {
                    from = format!("{}\0", table.stored_name);
                    if table.state != DOOMED {
                        self.walk(table.id, self.looked_at..until).await;
                    } else if self.is_due(table.id)
                        && let Err(trouble) = self.finish_drop(&account, &table.stored_name, table.id).await
                    {
                        report(&trouble, table.id).await;
                    }
                }
                if complete {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Finishes the drop of a table that a dead server has begun.
    async fn finish_drop(&self, account: &str, name: &str, table: Uuid) -> Result<(), Trouble> {
        let cluster = &self.directory.cluster;
        cluster.write(&cluster.statements.add_purge, (table,)).await?;
        cluster.write(&cluster.statements.forget_table, (account, name, table)).await
    }

    fn sizes(&self) -> Sizes {
        Sizes { split_above: self.schedule.split_above, merge_below: self.schedule.merge_below }
    }

    async fn walk(&self, table: Uuid, epochs: Range<i64>) {
        let suspects = Suspects { epochs, quiet: self.schedule.quiet };
        if let Err(trouble) = self.directory.walk(table, self.sizes(), &suspects).await {
            report(&trouble, table).await;
        }
    }
}

/// After trouble the janitor slows down; it does not stop.
async fn report(trouble: &Trouble, table: Uuid) {
    tracing::debug!(%trouble, %table, "the janitor will try again");
    sleep(Duration::from_millis(200)).await;
}

/// Between half and one and a half times as long.
fn jittered(interval: Duration) -> Duration {
    interval.mul_f64(rand::rng().random_range(0.5..1.5))
}
