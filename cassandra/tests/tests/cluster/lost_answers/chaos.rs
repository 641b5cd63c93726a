//! Several clients of two servers, and a network that loses every fifth write and every fifth answer. Lost writes
//! arrive a little later, whether they are still wanted or not.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use engine_cassandra::{CassandraEngine, Options};
use futures_util::future::join_all;
use model::ValueRef;
use rand::Rng as _;
use store::{Change, Condition, Engine as _, Error, Reason, RowOperation, TableRef, Transaction};
use store_suite::{key, number};

use crate::lost_answers::Ground;
use crate::lost_answers::between::{Between, MARK};
use crate::lost_answers::straggler::deliver;
use cluster_tests::open;

const PARTITIONS: usize = 2;
const CLIENTS: usize = 6;
const LOSS: f64 = 0.2;

/// The outcomes of a client's steps, as it was told.
#[derive(Default)]
struct Account {
    done: BTreeSet<String>,
    unknown: BTreeSet<String>,
}

/// One step of a partition's counter, with a row that proves this step: both or none.
fn step(partition: &str, name: &str, count: i32, version: Option<model::DateTime>) -> Transaction {
    let condition = version.map_or(Condition::Absent, Condition::Version);
    let row = |text: &str| key(partition, text).row;
    let counter = RowOperation { row: row("counter"), condition, change: Change::Merge(number(count + 1)) };
    let witness =
        RowOperation { row: row(name), condition: Condition::Absent, change: Change::Put(number(0)) };
    Transaction::new(key(partition, "").partition, vec![counter, witness]).unwrap()
}

async fn client(engine: Arc<CassandraEngine>, table: TableRef, me: usize, steps: usize) -> Account {
    let mut account = Account::default();
    for n in 0..steps {
        let (partition, name) = (format!("{MARK}{}", (me + n) % PARTITIONS), format!("step-{me}-{n}"));
        // Until it is done, or its outcome is unknown.
        loop {
            let Ok(row) = engine.get(&table, &key(&partition, "counter")).await else { continue };
            let count = row.as_ref().map(|row| match row.raw().open().unwrap().property("N") {
                Some(ValueRef::Int32(count)) => count,
                other => panic!("N is {other:?}"),
            });
            let version = row.as_ref().map(|row| row.raw().timestamp().unwrap());
            match engine.apply(&table, step(&partition, &name, count.unwrap_or(0), version)).await {
                Ok(_) => {
                    account.done.insert(format!("{partition}/{name}"));
                    break;
                }
                Err(Error::OutcomeUnknown) => {
                    account.unknown.insert(format!("{partition}/{name}"));
                    break;
                }
                // Another client has changed the counter. The step's own row, index 1, can't be the reason.
                Err(Error::Rejected { index: 0, reason: Reason::VersionDiffers | Reason::Exists }) => {}
                Err(Error::Busy) => {}
                Err(other) => panic!("{name}: {other}"),
            }
        }
    }
    account
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_and_nothing_is_done_twice() {
    let Some(mut ground) = Ground::new().await else { return };
    let steps = std::env::var("PARTITA_STEPS").ok().and_then(|steps| steps.parse().ok()).unwrap_or(15);
    let mut second = Between::start(ground.node).await;
    let engine = open(&Options { nodes: vec![second.address.clone()], ..ground.options.clone() }).await;
    ground.between.expect_any(LOSS);
    second.expect_any(LOSS);
    let engines = [ground.engine.clone(), engine.clone()];
    let clients =
        (0..CLIENTS).map(|me| tokio::spawn(client(engines[me % 2].clone(), ground.table.clone(), me, steps)));
    let clients: Vec<_> = clients.collect();
    let running = join_all(clients);
    tokio::pin!(running);
    let mut late = Vec::new();
    let accounts = loop {
        let write = tokio::select! {
            accounts = &mut running => break accounts,
            write = ground.between.next_lost() => write,
            write = second.next_lost() => write,
        };
        let (node, delay) = (ground.node, rand::rng().random_range(0..300));
        late.push(tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(delay)).await;
            deliver(node, &write).await
        }));
    };
    ground.between.expect_nothing();
    second.expect_nothing();
    for late in late {
        late.await.unwrap();
    }
    let (mut done, mut unknown) = (BTreeSet::new(), BTreeSet::new());
    for account in accounts {
        let account = account.unwrap();
        done.extend(account.done);
        unknown.extend(account.unknown);
    }
    eprintln!("{} done, {} unknown", done.len(), unknown.len());
    for n in 0..PARTITIONS {
        let partition = format!("{MARK}{n}");
        let rows = ground.rows(&partition).await;
        let counter = rows.iter().find(|(row, ..)| row == "counter").map_or(0, |(_, count, _)| *count);
        let there: BTreeSet<String> = rows
            .iter()
            .filter(|(row, ..)| row != "counter")
            .map(|(row, ..)| format!("{partition}/{row}"))
            .collect();
        assert_eq!(
            counter as usize,
            there.len(),
            "{partition}: a step was counted without its row, or twice"
        );
        let mine = |names: &BTreeSet<String>| -> BTreeSet<String> {
            names.iter().filter(|name| name.starts_with(&format!("{partition}/"))).cloned().collect()
        };
        let lost: Vec<String> = mine(&done).difference(&there).cloned().collect();
        assert!(lost.is_empty(), "{partition}: answered as done, but missing: {lost:?}");
        let allowed: BTreeSet<String> = mine(&done).union(&mine(&unknown)).cloned().collect();
        let extra: Vec<String> = there.difference(&allowed).cloned().collect();
        assert!(extra.is_empty(), "{partition}: present, but answered as not done: {extra:?}");
    }
    engine.close().await;
    ground.finish().await;
}
