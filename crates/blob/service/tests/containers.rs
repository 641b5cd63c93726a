//! What the walk does not show: many clients at once, frozen writes, and a container that is created again.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use blob_model::{Conditions, LeaseAction, LeaseDuration, Leased, Metadata, PublicAccess, Refusal};
use blob_service::{BlobService, Request};
use bytes::Bytes;
use store::{Engine, Gate, MemoryEngine, MemoryObjects, TableRef};
use store_suite::{EngineDouble, TestEngine};
use tokio::sync::Semaphore;

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
    let service = BlobService::new(Arc::new(MemoryEngine::new()), Arc::new(MemoryObjects::new()));
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

/// An engine that does something first, once, when it is asked to drop a table or to replace a document.
struct Interrupted {
    engine: Arc<dyn Engine>,
    before_drop: Semaphore,
    drop_begun: Semaphore,
    /// Another server, which changes the container just before a document is replaced.
    other: Mutex<Option<BlobService>>,
}

#[async_trait]
impl EngineDouble for Interrupted {
    fn engine(&self) -> &dyn Engine {
        &*self.engine
    }

    async fn drop_table_if(&self, table: &TableRef, expected: Option<Bytes>) -> Result<bool, store::Error> {
        self.drop_begun.add_permits(1);
        self.before_drop.acquire().await.unwrap().forget();
        self.engine.drop_table_if(table, expected).await
    }

    async fn replace_table_metadata(
        &self,
        table: &TableRef,
        expected: Option<Bytes>,
        metadata: Bytes,
    ) -> Result<bool, store::Error> {
        let other = self.other.lock().unwrap().take();
        if let Some(other) = other {
            let (one, request) = (container("one"), Request::default());
            let policies = Bytes::from_static(b"policies");
            other.set_container_policies(&one, policies, PublicAccess::Blob, &request).await.unwrap();
        }
        self.engine.replace_table_metadata(table, expected, metadata).await
    }
}

async fn interrupted() -> (BlobService, Arc<TestEngine<Interrupted>>) {
    let double = Arc::new(TestEngine(Interrupted {
        engine: Arc::new(MemoryEngine::new()),
        before_drop: Semaphore::new(0),
        drop_begun: Semaphore::new(0),
        other: Mutex::new(None),
    }));
    let service = BlobService::new(double.clone(), Arc::new(MemoryObjects::new()));
    service.create_container(&container("one"), Metadata::default(), PublicAccess::None).await.unwrap();
    (service, double)
}

#[tokio::test]
async fn nobody_acquires_the_lease_of_a_container_that_is_being_deleted() {
    let (service, engine) = interrupted().await;
    let deleting = service.clone();
    let delete =
        tokio::spawn(async move { deleting.delete_container(&container("one"), &Request::default()).await });
    // Its lease has been judged.
    engine.drop_begun.acquire().await.unwrap().forget();
    let acquire = tokio::spawn(async move {
        let duration = LeaseDuration::Infinite;
        let acquire = LeaseAction::Acquire { duration, proposed: Some(lease(1)), fresh: lease(2) };
        service.lease_container(&container("one"), acquire, Conditions::default()).await
    });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!acquire.is_finished());
    engine.before_drop.add_permits(1);
    delete.await.unwrap().unwrap();
    assert_eq!(refused(acquire.await.unwrap()), Refusal::ContainerNotFound);
}

#[tokio::test]
async fn a_container_that_another_server_has_leased_is_not_deleted() {
    let (service, engine) = interrupted().await;
    let deleting = service.clone();
    let delete =
        tokio::spawn(async move { deleting.delete_container(&container("one"), &Request::default()).await });
    // Its lease has been judged. Another server does not wait for this one's turn.
    engine.drop_begun.acquire().await.unwrap().forget();
    let other = BlobService::new(engine.engine.clone(), Arc::new(MemoryObjects::new()));
    let acquire =
        LeaseAction::Acquire { duration: LeaseDuration::Infinite, proposed: Some(lease(1)), fresh: lease(2) };
    other.lease_container(&container("one"), acquire, Conditions::default()).await.unwrap();
    engine.before_drop.add_permits(2);
    assert_eq!(refused(delete.await.unwrap()), Refusal::LeaseIdMissing(Leased::Container));
    assert!(other.container_properties(&container("one"), None).await.is_ok());
}

#[tokio::test]
async fn a_change_of_another_server_is_not_undone() {
    let (service, engine) = interrupted().await;
    *engine.other.lock().unwrap() =
        Some(BlobService::new(engine.engine.clone(), Arc::new(MemoryObjects::new())));
    let one = container("one");
    service.set_container_metadata(&one, &metadata(&[("n", "1")]), &Request::default()).await.unwrap();
    let shown = service.container_properties(&one, None).await.unwrap();
    assert_eq!((shown.metadata, shown.access), (metadata(&[("n", "1")]), PublicAccess::Blob));
    assert_eq!(
        service.container_policies(&one, None).await.unwrap().policies.as_deref(),
        Some(&b"policies"[..])
    );
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
}
