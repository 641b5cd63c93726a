//! Clear a queue: all messages that are in it when that is asked for, also the invisible ones.

use std::time::{Duration, Instant};

use model::{Cut, KeyRange, limits};
use queue_model::{DateTime, Refusal};
use store::{Budget, Scan};

use crate::live::LiveQueue;
use crate::message_row::{FoundMessage, RowKey, range_from};
use crate::{QueueRef, QueueService, Result};

/// Rows read at one time. The transactions that remove them are committed together.
const ROWS: usize = 1000;
const ROWS_BYTES: usize = 4 * 1024 * 1024;

impl QueueService {
    /// Takes about so long at most; then the rest is left, and a repetition goes on with it.
    pub async fn clear(&self, queue: &QueueRef, time: Duration) -> Result<()> {
        self.admit(queue)?;
        self.spend(queue, std::iter::empty());
        let _pass = self.gate.pass().await?;
        let live = self.live(queue).await?;
        let (start, deadline) = (self.clock.tick(), Instant::now() + time);
        // A message that somebody takes or updates meanwhile has moved, perhaps to where this has been already.
        while self.clear_once(&live, start, deadline).await? > 0 {}
        Ok(())
    }

    /// Removes the messages that were inserted before this time. How many it has read that had moved on.
    async fn clear_once(&self, live: &LiveQueue, before: DateTime, deadline: Instant) -> Result<u64> {
        let from = {
            let head = live.head();
            Some(head.hint()).filter(|_| !head.is_doubtful())
        };
        let mut range = range_from(&self.row_at(from));
        let mut moved = 0;
        loop {
            let budget =
                Budget { rows: ROWS, bytes: ROWS_BYTES, time: limits::QUERY_TIME_MAX, examined: u64::MAX };
            let scan = Scan { ranges: vec![range.clone()], budget, filter: None, lasts: false };
            let page = self.engine.scan(&live.table, scan).await;
            let page = self.answered(live, page)?;
            let mut rows: Vec<(RowKey, DateTime)> = Vec::with_capacity(page.entities.len());
            for stored in page.entities.iter() {
                let found = FoundMessage::read(stored).map_err(|fault| fault.about(&live.queue))?;
                if found.message.inserted < before {
                    rows.push(found.place());
                }
            }
            moved += self.remove(live, rows).await?.rejected;
            let Some(next) = page.next else { return Ok(moved) };
            if Instant::now() >= deadline {
                return Err(Refusal::Shared(common::Refusal::TimedOut).into());
            }
            range = KeyRange { start: Cut::before(next.partition.as_str(), next.row.as_str()), ..range };
        }
    }
}
