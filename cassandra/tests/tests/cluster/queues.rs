//! Queues on a cluster: the same walks and the same oracle as on the other engines, and consumers on two servers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cluster_tests::{drop_keyspace, fresh_keyspace, nodes, open};
use queue_model::{MessageId, Metadata};
use queue_service::QueueService;
use store::Engine;

use crate::kit::{Random, queue, seconds, setting, text};
use crate::walk::Walk;

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_those_of_the_oracle() {
    let Some(nodes) = nodes() else { return };
    let options = fresh_keyspace(&nodes).await;
    let engine: Arc<dyn Engine> = open(&options).await;
    let (seed, steps) = (setting("PARTITA_SEED", 1), setting("PARTITA_STEPS", 600));
    println!("PARTITA_SEED={seed} PARTITA_STEPS={steps}");
    let same = engine.clone();
    let mut walk = Walk::new(seed, Box::new(move |_| same.clone()), true).await;
    walk.run(steps).await;
    engine.close().await;
    drop_keyspace(&options).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn consumers_of_two_servers_share_the_messages() {
    const MESSAGES: usize = 300;
    let Some(nodes) = nodes() else { return };
    let options = fresh_keyspace(&nodes).await;
    let engines: [Arc<dyn Engine>; 2] = [open(&options).await, open(&options).await];
    let services = engines.clone().map(|engine| QueueService::new(engine).shared(true));
    let queue = queue("orders");
    services[0].create(&queue, &Metadata::default()).await.unwrap();
    let (put, left) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(MESSAGES)));
    let clients = (0..10).map(|client| {
        let (service, queue) = (services[client % 2].clone(), queue.clone());
        let (put, left) = (put.clone(), left.clone());
        tokio::spawn(async move {
            let mut random = Random::new(client as u64);
            let mut seen = Vec::new();
            while client < 2 && put.fetch_add(1, Ordering::SeqCst) < MESSAGES {
                service.put(&queue, text("work"), Duration::ZERO, None).await.unwrap();
            }
            while client >= 2 && left.load(Ordering::SeqCst) > 0 {
                let got = service.get(&queue, random.of(&[1, 1, 4, 16]), seconds(600)).await;
                // So many others were faster each time that this one is told to come back later.
                let got = got.unwrap_or_default();
                for taken in got {
                    assert_eq!(taken.message.dequeue_count, 1);
                    seen.push(taken.message.id);
                    // The receipt is good on every server.
                    service.delete_message(&queue, taken.message.id, &taken.receipt).await.unwrap();
                    left.fetch_sub(1, Ordering::SeqCst);
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            seen
        })
    });
    let mut seen: Vec<MessageId> = Vec::new();
    for client in clients.collect::<Vec<_>>() {
        seen.extend(client.await.unwrap());
    }
    let distinct: BTreeSet<MessageId> = seen.iter().copied().collect();
    assert_eq!((seen.len(), distinct.len()), (MESSAGES, MESSAGES), "each message once");
    for service in &services {
        service.sweep(&queue).await.unwrap();
        assert_eq!(service.look(&queue).await.unwrap().1, 0);
    }
    for engine in engines {
        engine.close().await;
    }
    drop_keyspace(&options).await;
}
