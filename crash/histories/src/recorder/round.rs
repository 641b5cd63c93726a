//! A round: all clients work on some new partitions, then each partition is read once.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::client::{Client, Stopped, Work};
use super::killer::{self, Killer};
use crate::choice::Chooser;
use crate::history::{Action, Operation};
use crate::random::Random;

#[derive(Debug, Default)]
pub struct Recorded {
    pub operations: Vec<Operation>,
    pub kills: usize,
    /// Answers that are impossible in any order.
    pub strange: Vec<String>,
}

/// If a client or the killer can't continue, the run ends. Impossible answers do not end it.
pub async fn record(
    clients: &mut Vec<Client>,
    killer: &mut Option<Killer>,
    work: Work,
    rows: &[String],
    seed: u64,
) -> Result<Recorded, String> {
    let numbers = Arc::new(AtomicU32::new(0));
    let mut tasks = JoinSet::new();
    for mut client in std::mem::take(clients) {
        let (work, number) = (work.clone(), u64::from(client.number));
        let chooser = Chooser::new(Random::numbered(seed, number), rows.to_vec(), numbers.clone());
        tasks.spawn(async move {
            let (history, stopped) = client.work(&work, Random::numbered(!seed, number), chooser).await;
            (client, history, stopped)
        });
    }
    let (stop, stopping) = watch::channel(false);
    let mut recorded = Recorded::default();
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
            let (ended, kills) = tokio::join!(workers, killer.work(stopping));
            (ended, kills?)
        }
    };
    for worker in ended {
        let (client, history, stopped) = worker?;
        clients.push(client);
        recorded.operations.extend(history);
        recorded.stopped(stopped)?;
    }
    clients.sort_by_key(|client| client.number);
    killer::bound(&mut recorded.operations, &kills);
    recorded.kills = kills.len();
    for partition in work.partitions.iter() {
        let Some(last) = clients.last_mut() else { break };
        match last.perform(partition.clone(), Action::Query).await {
            Ok(operation) => recorded.operations.push(operation),
            Err(stopped) => recorded.stopped(Some(stopped))?,
        }
    }
    Ok(recorded)
}

impl Recorded {
    fn stopped(&mut self, stopped: Option<Stopped>) -> Result<(), String> {
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
