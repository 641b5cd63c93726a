//! A round: all clients work on some new partitions, then each partition is read once. Blobs are judged like entities.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::client::{Client, Stopped, Talk, Work};
use super::killer::{self, Kill, Killer};
use crate::choice::{Chooser, Repertoire};
use crate::history::{Action, Operation, Outcome};
use crate::random::Random;

#[derive(Debug)]
pub struct Recorded<O> {
    pub operations: Vec<O>,
    pub kills: usize,
    /// Answers that are impossible in any order.
    pub strange: Vec<String>,
}

/// What a client brings back: itself, its history, and why it stopped early.
pub type Ended<T, O> = (Client<T>, Vec<O>, Option<Stopped<O>>);

/// If a client or the killer can't continue, the run ends. Impossible answers do not end it.
pub async fn record<T: Talk<Action = Action, Outcome = Outcome>>(
    clients: &mut Vec<Client<T>>,
    killer: &mut Option<Killer>,
    work: Work,
    rows: &[String],
    repertoire: Repertoire,
    seed: u64,
) -> Result<Recorded<Operation>, String> {
    let numbers = Arc::new(AtomicU32::new(0));
    let mut tasks = JoinSet::new();
    for mut client in std::mem::take(clients) {
        let (work, number) = (work.clone(), u64::from(client.number));
        let random = Random::numbered(seed, number);
        let chooser = Chooser::new(repertoire, random, rows.to_vec(), numbers.clone());
        tasks.spawn(async move {
            let (history, stopped) = client.work(&work, Random::numbered(!seed, number), chooser).await;
            (client, history, stopped)
        });
    }
    let (mut recorded, kills) = gather(tasks, clients, killer).await?;
    for operation in &mut recorded.operations {
        if let Outcome::Unknown { until: until @ None } = &mut operation.outcome {
            *until = killer::bound(&kills, operation.start, operation.end);
        }
    }
    for partition in work.places.iter() {
        let Some(last) = clients.last_mut() else { break };
        for action in repertoire.last_looks(rows) {
            match last.perform(partition.clone(), action).await {
                Ok(operation) => recorded.operations.push(operation),
                Err(stopped) => recorded.stopped(Some(stopped))?,
            }
        }
    }
    Ok(recorded)
}

/// Waits for the clients while the killer works, and collects their histories.
pub async fn gather<T: Send + 'static, O: Send + 'static>(
    mut tasks: JoinSet<Ended<T, O>>,
    clients: &mut Vec<Client<T>>,
    killer: &mut Option<Killer>,
) -> Result<(Recorded<O>, Vec<Kill>), String> {
    let (stop, stopping) = watch::channel(false);
    let workers = async {
        let mut ended = Vec::new();
        while let Some(worker) = tasks.join_next().await {
            ended.push(worker.map_err(|error| format!("a client panicked: {error}")));
        }
        stop.send_replace(true);
        ended
    };
    let (ended, kills) = match killer {
        None => (workers.await, Vec::new()),
        Some(killer) => {
            // A killer that can't start the server again ends the round: the clients would wait for ever.
            tokio::try_join!(async { Ok(workers.await) }, killer.work(stopping))?
        }
    };
    let mut recorded = Recorded { operations: Vec::new(), kills: kills.len(), strange: Vec::new() };
    for worker in ended {
        let (client, history, stopped) = worker?;
        clients.push(client);
        recorded.operations.extend(history);
        recorded.stopped(stopped)?;
    }
    clients.sort_by_key(|client| client.number);
    Ok((recorded, kills))
}

impl<O> Recorded<O> {
    pub fn stopped(&mut self, stopped: Option<Stopped<O>>) -> Result<(), String> {
        match stopped {
            None => Ok(()),
            Some(Stopped::Strange(answer, operation)) => {
                self.strange.push(answer);
                self.operations.push(*operation);
                Ok(())
            }
            Some(Stopped::Unreachable(why)) => Err(why),
        }
    }
}
