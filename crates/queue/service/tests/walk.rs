//! A walk of random operations under virtual time, each answer judged by the oracle.

use std::sync::Arc;
use std::time::Duration;

use queue_model::{DateTime, Metadata, Refusal};
use queue_service::Error;
use store::{Engine, MemoryEngine};

use crate::kit::{Ground, Random, VirtualTime, seconds, text};
use crate::oracle::{Oracle, When};

/// Opens an engine, again and again, on the same store.
pub type Reopen = Box<dyn Fn(Option<Arc<dyn Engine>>) -> Arc<dyn Engine> + Send + Sync>;

pub struct Walk {
    ground: Ground,
    pub oracle: Oracle,
    random: Random,
    reopen: Reopen,
    is_shared: bool,
    pub restarts: usize,
}

fn known(error: Error) -> Refusal {
    match error {
        Error::Refused(refusal) => refusal,
        Error::Fault(fault) => panic!("{fault}"),
    }
}

impl Walk {
    /// `reopen` is given the engine that it opened before, unless nothing else holds that any more.
    pub async fn new(seed: u64, reopen: Reopen, is_shared: bool) -> Self {
        let ground = Ground::on(reopen(None), VirtualTime::new()).shared(is_shared);
        ground.service.create(&ground.queue, &Metadata::default()).await.unwrap();
        Self { ground, oracle: Oracle::default(), random: Random::new(seed), reopen, is_shared, restarts: 0 }
    }

    pub async fn run(&mut self, steps: u64) {
        for _ in 0..steps {
            self.step().await;
        }
        self.sweep().await;
        self.count().await;
    }

    async fn step(&mut self) {
        match self.random.below(100) {
            0..25 => self.put().await,
            25..45 => self.get().await,
            45..55 => self.peek().await,
            55..70 => self.update().await,
            70..84 => self.delete().await,
            84..94 => self.pass_time(),
            94..96 => self.count().await,
            96..98 => self.sweep().await,
            98 => self.restart().await,
            _ if self.random.below(10) == 0 => self.clear().await,
            _ => self.store_hint().await,
        }
    }

    fn now(&self) -> DateTime {
        self.ground.clock.tick()
    }

    fn visibility(&mut self) -> Duration {
        seconds(self.random.of(&[0, 0, 1, 2, 3, 5, 30, 31, 604_800]))
    }

    async fn put(&mut self) {
        let content = "x".repeat(self.random.below(40));
        let visibility = self.visibility();
        let longer = visibility + seconds(self.random.of(&[1, 5, 40, 700_000]));
        let ttl = (self.random.below(4) > 0).then_some(longer);
        let after = self.now();
        let put = self.ground.service.put(&self.ground.queue, text(&content), visibility, ttl).await.unwrap();
        let when = When { after, before: self.now() };
        self.oracle.put(put, &content, visibility, ttl, when);
    }

    async fn get(&mut self) {
        let count = self.random.of(&[1, 1, 2, 5, 32]);
        let visibility = self.visibility().max(seconds(1));
        let after = self.now();
        let got = self.ground.get(count, visibility.as_secs()).await;
        self.oracle.got(&got, count, visibility, When { after, before: self.now() });
    }

    async fn peek(&mut self) {
        let count = self.random.of(&[1, 3, 32]);
        let after = self.now();
        let shown = self.ground.service.peek(&self.ground.queue, count).await.unwrap();
        self.oracle.peeked(&shown, count, When { after, before: self.now() });
    }

    /// One that was given lately, or long ago.
    fn receipt(&mut self) -> Option<(queue_model::MessageId, queue_model::PopReceipt)> {
        let all = self.oracle.receipts.len();
        let lately = if self.random.below(3) > 0 { 12.min(all) } else { all };
        (all > 0).then(|| self.oracle.receipts[all - 1 - self.random.below(lately)])
    }

    async fn update(&mut self) {
        let Some((id, receipt)) = self.receipt() else { return };
        let visibility = self.visibility();
        let content = (self.random.below(2) == 0).then(|| "y".repeat(self.random.below(40)));
        let after = self.now();
        let (service, queue) = (&self.ground.service, &self.ground.queue);
        let answer = service.update(queue, id, &receipt, visibility, content.as_deref().map(text)).await;
        let when = When { after, before: self.now() };
        self.oracle.updated((id, receipt), visibility, content.as_deref(), answer.map_err(known), when);
    }

    async fn delete(&mut self) {
        let Some((id, receipt)) = self.receipt() else { return };
        let after = self.now();
        let answer = self.ground.service.delete_message(&self.ground.queue, id, &receipt).await;
        let when = When { after, before: self.now() };
        self.oracle.deleted((id, receipt), answer.map_err(known), when);
    }

    fn pass_time(&mut self) {
        let now = self.now();
        let moments = self.oracle.moments(now);
        let duration = match self.random.below(3) {
            // To just before, at or after a moment at which something happens.
            0 if !moments.is_empty() => {
                let moment = self.random.of(&moments).ticks() + self.random.of(&[-40, -1, 0, 1, 40]);
                Duration::from_nanos(100 * u64::try_from(moment - now.ticks()).unwrap_or(0))
            }
            1 => seconds(self.random.of(&[1, 2, 3])),
            _ => seconds(self.random.of(&[1, 10, 40, 3600, 86_400])),
        };
        self.ground.time.pass(duration);
    }

    async fn count(&mut self) {
        let after = self.now();
        let count = self.ground.count().await;
        self.oracle.counted(count, When { after, before: self.now() });
    }

    async fn sweep(&mut self) {
        let after = self.now();
        let swept = self.ground.service.sweep(&self.ground.queue).await.unwrap();
        self.oracle.swept(swept.messages, When { after, before: self.now() });
    }

    async fn clear(&mut self) {
        self.ground.service.clear(&self.ground.queue, seconds(60)).await.unwrap();
        self.oracle.cleared();
    }

    async fn store_hint(&mut self) {
        self.ground.service.close().await;
    }

    /// Nothing that was in memory is left, and the engine was not closed.
    async fn restart(&mut self) {
        self.restarts += 1;
        // The clock is ahead of the time by the number of its ticks; a restart takes longer than that.
        self.ground.time.pass(Duration::from_millis(10));
        let time = self.ground.time.clone();
        let nowhere = Ground::on(Arc::new(MemoryEngine::new()), time.clone());
        let before = std::mem::replace(&mut self.ground, nowhere).engine;
        let engine = (self.reopen)(Some(before));
        self.ground = Ground::on(engine, time).shared(self.is_shared);
    }
}
