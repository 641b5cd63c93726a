//! Callers whose bucket is in debt are refused. A debt takes five seconds to pay off, far longer than these calls take.

use std::sync::Arc;

use common::throttle::{Targets, Throttle};
use model::{Refusal, Value};
use service::{EntityQuery, EntityWrite, Service};
use store::RequestMemory;

use crate::kit::{Ground, entity, key, refused, table};

const BOOKS: &str = "Books";
/// So low that the smallest operation empties a bucket.
const LITTLE: u32 = 1;
const MUCH: u32 = u32::MAX;

fn throttle(account: u32, partition: u32) -> Arc<Throttle> {
    Arc::new(Throttle::new(Targets { account, resource: partition }))
}

async fn throttled(account: u32, partition: u32) -> Ground {
    let ground = Ground::with(BOOKS).await;
    let service = ground.service.clone().throttled(throttle(account, partition));
    Ground { service, ..ground }
}

/// An entity of 60 KiB, which costs as much as sixty small ones.
fn large(partition: &str) -> EntityWrite {
    EntityWrite::insert_or_replace(entity(partition, "r", &[("A", Value::Binary(vec![7; 60 * 1024]))]))
}

async fn get(service: &Service, partition: &str) -> Result<(), service::Error> {
    match service.get_entity(&table(BOOKS), &key(partition, "r")).await {
        Err(service::Error::Refused {
            refusal: Refusal::Shared(common::Refusal::ResourceNotFound), ..
        }) => Ok(()),
        other => other.map(drop),
    }
}

async fn query(service: &Service, filter: &str) -> Result<(), service::Error> {
    let mut held = RequestMemory::new(1 << 20).nothing();
    let query = EntityQuery { filter: Some(filter), ..EntityQuery::default() };
    service.query_entities(&table(BOOKS), query, &mut held).await.map(drop)
}

#[tokio::test]
async fn a_partition_in_debt_is_refused_and_the_engine_is_not_asked() {
    let ground = throttled(MUCH, LITTLE).await;
    ground.service.write_entity(&table(BOOKS), large("p")).await.unwrap();
    ground.forget();
    assert_eq!(refused(get(&ground.service, "p").await), common::Refusal::Busy);
    let write = ground.service.write_entity(&table(BOOKS), large("p")).await;
    assert_eq!(refused(write), common::Refusal::Busy);
    assert_eq!(ground.asked(), Vec::<String>::new());
    for filter in ["PartitionKey eq 'p'", "PartitionKey eq 'p' and RowKey eq 'r'"] {
        assert_eq!(refused(query(&ground.service, filter).await), common::Refusal::Busy, "{filter}");
        assert_eq!(ground.asked(), Vec::<String>::new(), "{filter}");
    }
    get(&ground.service, "other").await.unwrap();
    query(&ground.service, "PartitionKey eq 'other'").await.unwrap();
}

#[tokio::test]
async fn a_query_over_several_partitions_is_the_accounts_alone() {
    let ground = throttled(MUCH, LITTLE).await;
    ground.service.write_entity(&table(BOOKS), large("p")).await.unwrap();
    query(&ground.service, "PartitionKey ge 'p'").await.unwrap();
    query(&ground.service, "PartitionKey eq 'p' or PartitionKey eq 'q'").await.unwrap();
}

#[tokio::test]
async fn an_account_in_debt_is_refused_whatever_the_partition() {
    let ground = throttled(LITTLE, MUCH).await;
    ground.service.write_entity(&table(BOOKS), large("p")).await.unwrap();
    assert_eq!(refused(get(&ground.service, "other").await), common::Refusal::AccountBusy);
    assert_eq!(refused(query(&ground.service, "A eq 1").await), common::Refusal::AccountBusy);
}

#[tokio::test]
async fn each_way_of_reading_is_paid_for() {
    let stored = throttled(MUCH, MUCH).await;
    stored.service.write_entity(&table(BOOKS), large("p")).await.unwrap();
    for filter in ["PartitionKey eq 'p'", "PartitionKey eq 'p' and A eq 1", ""] {
        let service = Service::new(stored.recorder.clone()).throttled(throttle(LITTLE, LITTLE));
        if filter.is_empty() {
            get(&service, "p").await.unwrap();
        } else {
            query(&service, filter).await.unwrap();
        }
        assert_eq!(refused(get(&service, "p").await), common::Refusal::AccountBusy, "{filter:?}");
    }
}
