//! What only Partita offers: a secondary, TLS with its own certificate, key ranges of tokens, and the cost of a query.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use crate::support::{connection_string, service, table};
use partita_client::{
    AccessPolicy, DateTime, Entity, Match, ServiceProperties, TablePermissions, TableSas, TableService,
    Transaction, partition_key, property, row_key,
};

#[tokio::test]
async fn the_secondary_has_the_same_data_and_refuses_writes() {
    let Some(service) = service() else { return };
    let table = table(&service, "Second").await;
    table.insert(&Entity::new("p", "r")).await.unwrap();
    let secondary = service.secondary().unwrap().expect("the connection string names it");
    let copy = secondary.table(table.name()).unwrap();
    assert!(copy.find::<Entity>("p", "r").await.unwrap().is_some());
    assert_eq!(copy.insert(&Entity::new("p", "x")).await.unwrap_err().status(), Some(403));
    let stats = secondary.stats().await.unwrap();
    assert!(stats.status == "live" && stats.last_sync.is_some(), "{stats:?}");
    assert!(service.stats().await.unwrap_err().refusal().is_some(), "only the copy tells");
    table.drop().await.unwrap();
}

#[tokio::test]
async fn a_token_grants_only_its_range() {
    let Some(service) = service() else { return };
    let table = table(&service, "Range").await;
    for partition in ["a", "b", "c"] {
        table.insert(&Entity::new(partition, "r")).await.unwrap();
    }
    let soon = DateTime::now().plus(std::time::Duration::from_secs(600));
    let token = table.sign(&TableSas::new(TablePermissions::ALL, soon).partitions("b", "b")).unwrap();
    let guest = TableService::with_sas(&service.url(), &token).unwrap().build().unwrap();
    let guest = guest.table(table.name()).unwrap();
    assert_eq!(guest.query().count().await.unwrap(), 1);
    guest.merge(&Entity::new("b", "r").with("A", 1), Match::Any).await.unwrap();
    assert_eq!(guest.insert(&Entity::new("c", "x")).await.unwrap_err().status(), Some(403));
    table.drop().await.unwrap();
}

#[tokio::test]
async fn a_private_authority_is_trusted_if_it_is_given() {
    let Some(text) = connection_string("PARTITA_CLIENT_TEST_TLS") else { return };
    let authority = std::fs::read(std::env::var("PARTITA_CLIENT_TEST_AUTHORITY").unwrap()).unwrap();
    let trusting = TableService::builder(&text).unwrap().trust(authority).build().unwrap();
    table(&trusting, "Tls").await.drop().await.unwrap();
    let wary =
        TableService::builder(&text).unwrap().retry(partita_client::RetryPolicy::never()).build().unwrap();
    let error = wary.table("Tls").unwrap().exists().await.unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    assert!(TableService::builder(&text).unwrap().trust("no certificate").build().is_err());
}

#[tokio::test]
async fn the_number_of_examined_entities_depends_on_the_kind_of_query() {
    let Some(service) = service() else { return };
    let table = table(&service, "Cost").await;
    for partition in ["a", "b"] {
        let mut transaction = Transaction::new();
        for row in 0..50 {
            transaction.insert(&Entity::new(partition, format!("{row:02}")).with("N", row)).unwrap();
        }
        table.submit(transaction).await.unwrap();
    }
    let in_a = || partition_key().eq("a");
    for (filter, found, examined) in [
        (in_a().and(row_key().eq("07")), 1, 1),
        (in_a().and(row_key().between("10", "20")), 10, 10),
        (in_a().and(property("N").eq(7)), 1, 50),
        (property("N").eq(7), 2, 100),
    ] {
        let page = table.query().filter(filter.clone()).examined().page::<Entity>(None).await.unwrap();
        assert_eq!((page.entities.len(), page.examined), (found, Some(examined)), "{filter}");
    }
    let silent = table.query().page::<Entity>(None).await.unwrap();
    assert_eq!(silent.examined, None, "nobody asked");
    table.drop().await.unwrap();
}

#[tokio::test]
async fn a_policy_may_leave_all_its_terms_to_the_tokens() {
    let Some(service) = service() else { return };
    let table = table(&service, "Policy").await;
    let policies = [AccessPolicy { id: "nobody & co".to_owned(), ..AccessPolicy::default() }];
    table.set_policies(&policies).await.unwrap();
    assert_eq!(table.policies().await.unwrap(), policies);
    table.drop().await.unwrap();
}

#[tokio::test]
async fn service_properties_are_read_and_written() {
    let Some(service) = service() else { return };
    let before = service.properties().await.unwrap();
    service.set_properties(&before).await.unwrap();
    assert_eq!(service.properties().await.unwrap(), before);
    let _: ServiceProperties = before;
}
