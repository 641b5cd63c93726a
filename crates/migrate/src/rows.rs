//! Reads the rows of a table in key order. The next page is read while the current one is used.

use model::{Cut, EntityKey, KeyRange, limits};
use store::{Budget, Page, Scan, StoredRef, TableRef};
use tokio::task::JoinSet;

use crate::error::{Error, Side};
use crate::patience::persist;
use crate::{Shared, error};

#[derive(Debug)]
pub struct Rows {
    side: Side,
    table: TableRef,
    page: Page,
    /// The index of the current row in the page.
    at: usize,
    /// The task that reads the next page, if there is one. It is cancelled when this is dropped.
    ahead: JoinSet<Result<(Shared, Page), store::Error>>,
}

impl Rows {
    pub fn of(side: Side, engine: &Shared, table: &TableRef) -> Self {
        let mut rows = Self::none(side, table);
        rows.ahead.spawn(read(engine.clone(), table.clone(), Cut::start()));
        rows
    }

    /// The rows of an empty table.
    pub fn none(side: Side, table: &TableRef) -> Self {
        Self { side, table: table.clone(), page: Page::default(), at: 0, ahead: JoinSet::new() }
    }

    /// Makes the next row the current one, if there is one.
    pub async fn reach(&mut self) -> Result<(), Error> {
        let failed = Error::of_table(self.side, &self.table);
        while self.at >= self.page.entities.len() {
            let Some(ahead) = self.ahead.join_next().await else { return Ok(()) };
            let found = ahead.map_err(|error| failed(error::cut_short(error)))?;
            let (engine, mut page) = found.map_err(&failed)?;
            if let Some(EntityKey { partition, row }) = page.next.take() {
                let from = Cut::before(partition.as_str(), row.as_str());
                self.ahead.spawn(read(engine, self.table.clone(), from));
            }
            (self.page, self.at) = (page, 0);
        }
        Ok(())
    }

    pub fn head(&self) -> Option<StoredRef<'_>> {
        self.page.entities.get(self.at)
    }

    pub fn step(&mut self) {
        self.at += 1;
    }
}

async fn read(engine: Shared, table: TableRef, start: Cut) -> Result<(Shared, Page), store::Error> {
    let budget = Budget {
        rows: limits::PAGE_ENTITIES_MAX,
        bytes: limits::PAGE_BYTES_MAX,
        time: limits::QUERY_TIME_MAX,
        examined: u64::MAX,
    };
    let scan = Scan { ranges: vec![KeyRange { start, end: Cut::End }], budget, filter: None, lasts: false };
    let page = persist(|| engine.scan(&table, scan.clone())).await?;
    Ok((engine, page))
}
