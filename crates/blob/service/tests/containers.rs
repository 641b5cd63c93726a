//! What the walk does not show: many clients at once, frozen writes, and a container that is created again.

use std::sync::Arc;
use std::time::Duration;

use blob_model::{Conditions, LeaseAction, LeaseDuration, Metadata, PublicAccess, Refusal};
use blob_service::{BlobService, Request};
use bytes::Bytes;
use store::{Engine, Gate, MemoryEngine};

use crate::kit::{Ground, container, lease, metadata, refused};

#[tokio::test]
async fn a_container_that_is_created_again_has_nothing_of_the_one_before() {
    let ground = Ground::new();
    let (service, one) = (&ground.service, container("one"));
    let first =
        service.create_container(&one, metadata(&[("a", "1")]), PublicAccess::Container).await.unwrap();
    let acquire =
        LeaseAction::Acquire { duration: LeaseDuration::Infinite, proposed: Some(lease(1)), fresh: lease(2) };
    service.lease_container(&one, acquire, Conditions::default()).await.unwrap();
    service
        .set_container_policies(&one, Bytes::from_static(b"x"), PublicAccess::Blob, &Request::default())
        .await
        .unwrap();
    let request = Request { lease: Some(lease(1)), ..Request::default() };
    service.delete_container(&one, &request).await.unwrap();
    // In the same tick of the clock.
    let second = service.create_container(&one, Metadata::default(), PublicAccess::None).await.unwrap();
    assert!(first < second);
    let shown = service.container_properties(&one, None).await.unwrap();
    assert_eq!((shown.etag, shown.access, shown.metadata.is_empty()), (second, PublicAccess::None, true));
    assert_eq!(shown.lease.state, "available");
    assert_eq!(service.container_policies(&one, None).await.unwrap().policies, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_many_gets_the_lease() {
    let service = BlobService::new(Arc::new(MemoryEngine::new()));
    let one = container("one");
    service.create_container(&one, Metadata::default(), PublicAccess::None).await.unwrap();
    let clients = (1..=32).map(|number| {
        let (service, one) = (service.clone(), one.clone());
        tokio::spawn(async move {
            let duration = LeaseDuration::Infinite;
            let acquire = LeaseAction::Acquire { duration, proposed: Some(lease(number)), fresh: lease(99) };
            service.lease_container(&one, acquire, Conditions::default()).await.is_ok()
        })
    });
    let mut winners = 0;
    for client in clients.collect::<Vec<_>>() {
        winners += usize::from(client.await.unwrap());
    }
    assert_eq!(winners, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lease_and_a_delete_never_both_succeed() {
    let service = BlobService::new(Arc::new(MemoryEngine::new()));
    let one = container("one");
    for _ in 0..200 {
        service.create_container(&one, Metadata::default(), PublicAccess::None).await.unwrap();
        let (leasing, leased) = (service.clone(), one.clone());
        let lease = tokio::spawn(async move {
            let duration = LeaseDuration::Infinite;
            let acquire = LeaseAction::Acquire { duration, proposed: Some(lease(1)), fresh: lease(2) };
            leasing.lease_container(&leased, acquire, Conditions::default()).await.is_ok()
        });
        let deleted = service.delete_container(&one, &Request::default()).await;
        let is_leased = lease.await.unwrap();
        assert_ne!(deleted.is_ok(), is_leased);
        if is_leased {
            assert_eq!(refused(deleted).code(), "LeaseIdMissing");
            let request = Request { lease: Some(crate::kit::lease(1)), ..Request::default() };
            service.delete_container(&one, &request).await.unwrap();
        }
    }
}

#[tokio::test]
async fn several_servers_do_not_undo_each_others_changes() {
    let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::new());
    let servers: Vec<BlobService> = (0..4).map(|_| BlobService::new(engine.clone())).collect();
    let one = container("one");
    servers[0].create_container(&one, Metadata::default(), PublicAccess::None).await.unwrap();
    let changes = servers.iter().enumerate().map(|(n, service)| {
        let (service, one) = (service.clone(), one.clone());
        tokio::spawn(async move {
            let request = Request::default();
            for _ in 0..50 {
                if n % 2 == 0 {
                    service.set_container_metadata(&one, &metadata(&[("n", "1")]), &request).await.unwrap();
                } else {
                    let policies = Bytes::from_static(b"policies");
                    service
                        .set_container_policies(&one, policies, PublicAccess::Blob, &request)
                        .await
                        .unwrap();
                }
            }
        })
    });
    for change in changes.collect::<Vec<_>>() {
        change.await.unwrap();
    }
    let shown = servers[0].container_properties(&one, None).await.unwrap();
    assert_eq!((shown.metadata, shown.access), (metadata(&[("n", "1")]), PublicAccess::Blob));
}

#[tokio::test]
async fn a_frozen_server_reads_and_does_not_write() {
    let gate = Arc::new(Gate::default());
    let ground = Ground::new();
    let service = ground.service.clone().gated(gate.clone());
    let one = container("one");
    service.create_container(&one, Metadata::default(), PublicAccess::None).await.unwrap();
    gate.close().await;
    let frozen = Refusal::Shared(common::Refusal::Frozen);
    let request = Request::default();
    assert_eq!(refused(service.set_container_metadata(&one, &Metadata::default(), &request).await), frozen);
    assert_eq!(refused(service.delete_container(&one, &request).await), frozen);
    assert_eq!(
        refused(service.create_container(&container("two"), Metadata::default(), PublicAccess::None).await),
        frozen
    );
    assert!(service.container_properties(&one, None).await.is_ok());
    ground.time.pass(Duration::from_secs(1));
}
