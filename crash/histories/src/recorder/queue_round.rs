//! A round with queues: all clients put, get, peek, update and delete in some new queues, then each queue is emptied.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::client::{Client, Stopped, TURNED_AWAY_PAUSE, Told, Work};
use super::killer::{self, Killer};
use super::queue_exchange::QueueExchange;
use super::round::{Recorded, gather};
use crate::queues::choice::{Chooser, VISIBILITY_MAX};
use crate::queues::history::{QueueAction, QueueOperation, QueueOutcome, owed};
use crate::random::Random;

/// If nothing came for so long, nothing is hidden any more.
const QUIET: Duration = Duration::from_millis(VISIBILITY_MAX as u64 * 1000 + 500);
const LOOK_AGAIN: Duration = Duration::from_millis(100);
const DRAIN_COUNT: u32 = 32;

/// If a client or the killer can't continue, the run ends. Impossible answers do not end it.
pub async fn record(
    clients: &mut Vec<Client<QueueExchange>>,
    killer: &mut Option<Killer>,
    work: Work,
    patience: Duration,
    seed: u64,
) -> Result<Recorded<QueueOperation>, String> {
    let numbers = Arc::new(AtomicU32::new(0));
    let mut tasks = JoinSet::new();
    for mut client in std::mem::take(clients) {
        let (work, number) = (work.clone(), u64::from(client.number));
        let chooser = Chooser::new(Random::numbered(seed, number), numbers.clone());
        tasks.spawn(async move {
            let (history, stopped) = client.work(&work, Random::numbered(!seed, number), chooser).await;
            (client, history, stopped)
        });
    }
    let (mut recorded, kills) = gather(tasks, clients, killer).await?;
    for operation in &mut recorded.operations {
        if let QueueOutcome::Unknown { until: until @ None } = &mut operation.outcome {
            *until = killer::bound(&kills, operation.start, operation.end);
        }
    }
    // One client for each queue, all at the same time.
    let (mut tasks, count) = (JoinSet::new(), clients.len());
    for (at, mut client) in std::mem::take(clients).into_iter().enumerate() {
        let queues = work.places.iter().enumerate().filter(|(queue, _)| queue % count == at);
        let queues: Vec<String> = queues.map(|(_, queue)| queue.clone()).collect();
        let before: Vec<QueueOperation> = recorded
            .operations
            .iter()
            .filter(|operation| queues.contains(&operation.queue))
            .cloned()
            .collect();
        tasks.spawn(async move {
            let mut history = Vec::new();
            for queue in queues {
                let stopped = client.drain(&queue, &before, patience, &mut history).await.err();
                if stopped.is_some() {
                    return (client, history, stopped);
                }
            }
            (client, history, None)
        });
    }
    let (drained, _) = gather(tasks, clients, &mut None).await?;
    recorded.operations.extend(drained.operations);
    recorded.strange.extend(drained.strange);
    Ok(recorded)
}

impl Client<QueueExchange> {
    async fn work(
        &mut self,
        work: &Work,
        mut random: Random,
        mut chooser: Chooser,
    ) -> (Vec<QueueOperation>, Option<Stopped<QueueOperation>>) {
        let mut history = Vec::with_capacity(work.operations);
        for _ in 0..work.operations {
            let queue = random.pick(&work.places);
            let action = chooser.choose(&queue);
            match self.perform(&queue, action).await {
                Ok(operation) => {
                    if operation.outcome == QueueOutcome::TurnedAway {
                        tokio::time::sleep(TURNED_AWAY_PAUSE).await;
                    }
                    chooser.learn(&queue, &operation.action, &operation.outcome);
                    history.push(operation);
                }
                Err(stopped) => return (history, Some(stopped)),
            }
            tokio::time::sleep(Duration::from_millis(chooser.pause())).await;
        }
        (history, None)
    }

    async fn perform(
        &mut self,
        queue: &str,
        action: QueueAction,
    ) -> Result<QueueOperation, Stopped<QueueOperation>> {
        let Told { start, end, outcome } = self.tell(queue, &action).await.map_err(Stopped::Unreachable)?;
        let (outcome, strange) = match outcome {
            Ok(outcome) => (outcome, None),
            Err(answer) => (QueueOutcome::Unknown { until: None }, Some(answer)),
        };
        let (client, queue) = (self.number, queue.to_owned());
        let operation = QueueOperation { client, queue, start, end, action, outcome };
        match strange {
            None => Ok(operation),
            Some(answer) => Err(Stopped::Strange(answer, Box::new(operation))),
        }
    }

    /// Takes and deletes until nothing comes any more, and everything that is owed has come. What is still owed when
    /// patience ends is left to the judge.
    async fn drain(
        &mut self,
        queue: &str,
        before: &[QueueOperation],
        patience: Duration,
        history: &mut Vec<QueueOperation>,
    ) -> Result<(), Stopped<QueueOperation>> {
        let (began, mut quiet) = (Instant::now(), Instant::now());
        loop {
            let get = QueueAction::Get { count: DRAIN_COUNT, visibility: VISIBILITY_MAX };
            let got = self.perform(queue, get).await?;
            let outcome = got.outcome.clone();
            history.push(got);
            match outcome {
                QueueOutcome::Taken(taken) if taken.is_empty() => {
                    let all = before.iter().chain(history.iter());
                    let is_patient = began.elapsed() < patience;
                    if quiet.elapsed() >= QUIET
                        && !(is_patient && has_owed(all.filter(|operation| operation.queue == queue)))
                    {
                        let now = self.clock.now();
                        let (client, queue) = (self.number, queue.to_owned());
                        let (action, outcome) = (QueueAction::Drain, QueueOutcome::Drained);
                        history.push(QueueOperation { client, queue, start: now, end: now, action, outcome });
                        return Ok(());
                    }
                }
                QueueOutcome::Taken(taken) => {
                    for taken in taken {
                        let deleted = self.perform(queue, QueueAction::Delete(taken.handle())).await?;
                        history.push(deleted);
                    }
                    quiet = Instant::now();
                    continue;
                }
                _ => quiet = Instant::now(),
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

fn has_owed<'a>(history: impl Iterator<Item = &'a QueueOperation> + Clone) -> bool {
    !owed(history).is_empty()
}
