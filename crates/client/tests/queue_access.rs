//! Tokens, policies, properties and statistics of queues, through this client, on Partita.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::collections::BTreeMap;
use std::time::Duration;

use crate::support::{PARTITA, connection_string, quick, unique};
use partita_client::{
    AccessPolicy, AccountSas, DateTime, Error, Metrics, Queue, QueuePermissions, QueueSas, QueueService,
    ServiceKind, TableService,
};

const LONG: Duration = Duration::from_secs(60);

fn soon() -> DateTime {
    DateTime::now().plus(Duration::from_secs(600))
}

/// The service, and a queue with one message.
async fn queue(name: &str) -> Option<(QueueService, Queue)> {
    let text = connection_string(PARTITA)?;
    let service = QueueService::builder(&text).unwrap().retry(quick()).build().unwrap();
    let queue = service.queue(&unique(name)).unwrap();
    queue.create(&BTreeMap::new()).await.unwrap();
    queue.put("first").await.unwrap();
    Some((service, queue))
}

/// The same queue for somebody who has only a token.
fn guest(service: &QueueService, queue: &Queue, token: &str) -> Queue {
    QueueService::with_sas(&service.url(), token).unwrap().build().unwrap().queue(queue.name()).unwrap()
}

/// Which of the operations a guest may do.
async fn granted(guest: &Queue) -> String {
    let status = |result: Result<(), Error>| match result {
        Ok(()) => true,
        Err(error) => {
            assert!(matches!(error.status(), Some(403 | 404)), "{error}");
            error.status() == Some(404)
        }
    };
    let mut done = Vec::new();
    // Nobody has this message, so an operation that is permitted is refused with 404.
    let mut missing = guest_handle(guest).await;
    for (name, outcome) in [
        ("peek", status(guest.peek(1).await.map(drop))),
        ("count", status(guest.properties().await.map(drop))),
        ("put", status(guest.put("more").await.map(drop))),
        ("renew", status(guest.renew(&mut missing, LONG).await)),
        ("get", status(guest.get(1, Duration::from_secs(1)).await.map(drop))),
        ("delete", status(guest.delete(&missing).await)),
        ("clear", status(guest.clear().await)),
    ] {
        done.extend(outcome.then_some(name));
    }
    done.join(" ")
}

/// A handle of a message that is gone, made by the owner of the queue.
async fn guest_handle(guest: &Queue) -> partita_client::MessageHandle {
    let text = connection_string(PARTITA).unwrap();
    let owner = QueueService::from_connection_string(&text).unwrap().queue(guest.name()).unwrap();
    let handle = owner.put("gone").await.unwrap().handle;
    owner.delete(&handle).await.unwrap();
    handle
}

#[tokio::test]
async fn a_queues_token_grants_what_it_says() {
    let Some((service, queue)) = queue("token").await else { return };
    for (permissions, expected) in [
        (QueuePermissions::READ, "peek count"),
        (QueuePermissions::SEND, "put"),
        (QueuePermissions::WORK, "renew get delete"),
        (QueuePermissions::ALL, "peek count put renew get delete"),
        (QueuePermissions::default(), ""),
    ] {
        let token = queue.sign(&QueueSas::new(permissions, soon())).unwrap();
        let guest = guest(&service, &queue, &token);
        assert_eq!(granted(&guest).await, expected, "{permissions:?}");
        assert!(guest.sign(&QueueSas::of_policy("x")).is_err(), "a guest has no key");
    }
    let elsewhere = QueueSas::new(QueuePermissions::ALL, soon()).ip("10.255.255.1");
    let late = QueueSas::new(QueuePermissions::ALL, soon()).start(soon());
    for sas in [elsewhere, late, QueueSas::new(QueuePermissions::ALL, soon()).https_only()] {
        let token = queue.sign(&sas).unwrap();
        assert_eq!(granted(&guest(&service, &queue, &token)).await, "", "{sas:?}");
    }
    queue.drop().await.unwrap();
}

#[tokio::test]
async fn policies_are_stored_and_read_and_grant_until_they_are_removed() {
    let Some((service, queue)) = queue("policy").await else { return };
    let policy = |id: &str, permissions| AccessPolicy {
        id: id.to_owned(),
        start: DateTime::parse("2020-01-02T03:04:05Z"),
        expiry: DateTime::parse("2040-01-02T03:04:05Z"),
        permissions: Some(permissions),
    };
    let policies = [policy("senders", QueuePermissions::SEND), policy("all", QueuePermissions::ALL)];
    let token = queue.sign(&QueueSas::of_policy("senders")).unwrap();
    let guest = guest(&service, &queue, &token);
    assert_eq!(granted(&guest).await, "", "there is no such policy yet");
    queue.set_policies(&policies).await.unwrap();
    assert_eq!(queue.policies().await.unwrap(), policies);
    assert_eq!(granted(&guest).await, "put");
    let unnamed = [AccessPolicy { id: "nobody & co".to_owned(), ..AccessPolicy::default() }];
    queue.set_policies(&unnamed).await.unwrap();
    assert_eq!(queue.policies().await.unwrap(), unnamed);
    assert_eq!(granted(&guest).await, "");
    queue.set_policies(&[]).await.unwrap();
    assert!(queue.policies().await.unwrap().is_empty());
    queue.drop().await.unwrap();
}

#[tokio::test]
async fn an_accounts_token_is_for_the_services_that_it_names() {
    let Some((service, queue)) = queue("account").await else { return };
    let tables = TableService::from_connection_string(&connection_string(PARTITA).unwrap()).unwrap();
    let all = AccountSas::all(soon());
    let both = [ServiceKind::Queue, ServiceKind::Table];
    for (token, queues, entities) in [
        (service.sign(&all).unwrap(), true, false),
        (tables.sign(&all).unwrap(), false, true),
        (tables.sign(&all.clone().services(both)).unwrap(), true, true),
        (service.sign(&all.clone().services(both)).unwrap(), true, true),
    ] {
        let guest = guest(&service, &queue, &token);
        let expected = if queues { "peek count put renew get delete clear" } else { "" };
        assert_eq!(granted(&guest).await, expected, "{token}");
        let there = TableService::with_sas(&tables.url(), &token).unwrap().build().unwrap();
        let exists = there.table("NoTable").unwrap().exists().await;
        assert_eq!(exists.as_ref().ok(), entities.then_some(&false), "{token}: {exists:?}");
    }
    queue.drop().await.unwrap();
}

#[tokio::test]
async fn properties_of_queues_are_their_own() {
    let Some((service, queue)) = queue("properties").await else { return };
    let before = service.properties().await.unwrap();
    let mut changed = before.clone();
    changed.minute_metrics = Metrics { enabled: true, include_apis: true, retention_days: Some(3) };
    service.set_properties(&changed).await.unwrap();
    assert_eq!(service.properties().await.unwrap(), changed);
    let tables = TableService::from_connection_string(&connection_string(PARTITA).unwrap()).unwrap();
    assert_ne!(tables.properties().await.unwrap().minute_metrics, changed.minute_metrics);
    service.set_properties(&before).await.unwrap();
    assert_eq!(service.properties().await.unwrap(), before);
    queue.drop().await.unwrap();
}

#[tokio::test]
async fn the_secondary_tells_its_state_and_gives_no_message_away() {
    let Some((service, queue)) = queue("secondary").await else { return };
    let text = connection_string(PARTITA).unwrap();
    let text = format!("{text};QueueSecondaryEndpoint={}-secondary", service.url());
    let secondary = QueueService::from_connection_string(&text).unwrap().secondary().unwrap().unwrap();
    let stats = secondary.stats().await.unwrap();
    assert_eq!((stats.status.as_str(), stats.last_sync.is_some()), ("live", true));
    assert_eq!(service.stats().await.unwrap_err().status(), Some(400), "the primary has none");
    let there = secondary.queue(queue.name()).unwrap();
    assert_eq!(there.peek(1).await.unwrap()[0].text, "first");
    assert_eq!(there.get(1, LONG).await.unwrap_err().status(), Some(403));
    assert!(QueueService::with_key("http://h/a", "a", "!!").is_err(), "no key");
    queue.drop().await.unwrap();
}
