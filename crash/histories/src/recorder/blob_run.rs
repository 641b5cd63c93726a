//! A run with blobs: rounds against one own server or some endpoints. In each, clients write and read the same few blobs, and
//! then want the same lease.

use std::time::{Duration, Instant};

use common::ServiceKind;
use serde::Serialize;

use super::blob_exchange::BlobExchange;
use super::client::{Client, Work};
use super::lease_round;
use super::round::{self, Recorded};
use super::run::{Plan, Summary};
use super::stage::{Stage, Target};
use super::totals::{RunPlan, Totals};
use crate::choice::Repertoire;
use crate::leases::{self, LeaseEvent};

const CREATIONS_MAX: usize = 60;
const CREATE_AGAIN: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub struct BlobPlan {
    pub run: RunPlan,
    /// Containers of each round; each gives one history.
    pub containers: usize,
    pub blobs: usize,
}

/// Everything counted over all rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BlobSummary {
    #[serde(flatten)]
    pub totals: Totals,
    pub gets: u64,
    /// How often somebody had the lease.
    pub holds: u64,
}

/// Prints a line for each round. `Err` if the run could not continue, whatever the verdicts are.
pub async fn run_blobs(target: Target, plan: BlobPlan) -> Result<BlobSummary, String> {
    let started = Instant::now();
    let mut stage = Stage::set(target, plan.run.seed)?;
    let targets = stage.targets(ServiceKind::Blob)?;
    let mut clients: Vec<Client<BlobExchange>> = (0..plan.run.clients)
        .map(|number| {
            let target = targets[number as usize % targets.len()].clone();
            let (clock, up) = (stage.clock, stage.is_up.clone());
            Client { number, exchange: BlobExchange::new(target, number), clock, up }
        })
        .collect();
    // The store may have containers of another run.
    let run = plan.run.unlike_others();
    let blobs: Vec<String> = (0..plan.blobs).map(|blob| format!("b{blob}")).collect();
    let totals = Totals { seed: plan.run.seed, ..Totals::default() };
    let (mut summary, mut holds) = (Summary { totals, ..Summary::default() }, 0);
    let judged = Plan { run: plan.run.clone(), partitions: plan.containers, rows: plan.blobs };
    for (round, seed) in plan.run.rounds() {
        let containers: Vec<String> =
            (0..plan.containers).map(|number| format!("histories-{run:08x}-{round}-{number}")).collect();
        let first = clients.first_mut().ok_or("it takes at least one client")?;
        for container in &containers {
            create(first, container).await?;
        }
        let work = Work { places: containers.clone().into(), operations: plan.run.operations };
        let killer = &mut stage.killer;
        let recorded = round::record(&mut clients, killer, work, &blobs, Repertoire::Blobs, seed).await?;
        tokio::task::block_in_place(|| summary.judge(round, recorded, &judged))?;
        if let Some(container) = containers.first() {
            let recorded = lease_round::record(&mut clients, killer, container, seed).await?;
            holds += judge_leases(&mut summary.totals, round, &recorded);
        }
        summary.totals.seconds = started.elapsed().as_secs_f64();
        if let Some(first) = clients.first_mut().filter(|_| stage.is_foreign) {
            for container in &containers {
                // Verdicts do not depend on it, and the store may be failing on purpose just now.
                if let Err(why) = first.exchange.delete(container).await {
                    println!("a container of this run could not be deleted: {why}");
                }
            }
        }
    }
    Ok(BlobSummary { totals: summary.totals, gets: summary.gets, holds })
}

/// How often somebody held the lease.
fn judge_leases(totals: &mut Totals, round: u64, recorded: &Recorded<LeaseEvent>) -> u64 {
    totals.kills += recorded.kills as u64;
    if let Err(why) = leases::judge(&recorded.operations) {
        totals.violations += 1;
        println!("round {round}: {why}: {:?}", recorded.operations);
    }
    recorded.operations.iter().filter(|event| matches!(event, LeaseEvent::Held { .. })).count() as u64
}

/// Again and again: a store that several front ends share may be failing on purpose just now.
async fn create(client: &mut Client<BlobExchange>, container: &str) -> Result<(), String> {
    let mut made = client.exchange.create(container).await;
    for _ in 0..CREATIONS_MAX {
        if made.is_ok() {
            break;
        }
        tokio::time::sleep(CREATE_AGAIN).await;
        made = client.exchange.create(container).await;
    }
    made
}
