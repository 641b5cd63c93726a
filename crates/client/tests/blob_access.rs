//! Leases, tokens, policies and public access, through this client, on Partita and on Azurite.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::collections::BTreeMap;
use std::time::Duration;

use crate::support::{blob_services, container};
use partita_client::{
    AccessPolicy, AccountSas, Blob, BlobPermissions, BlobSas, BlobService, Container, DateTime,
    DeleteSnapshots, Error, LeaseState, LeaseTime, PublicAccess,
};

const SHORT: LeaseTime = LeaseTime::For(Duration::from_secs(15));

fn soon() -> DateTime {
    DateTime::now().plus(Duration::from_secs(600))
}

fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    result.unwrap_err().code().unwrap_or("none").to_owned()
}

#[tokio::test]
async fn a_leased_blob_is_written_by_its_holder_alone() {
    for service in blob_services() {
        let container = container(&service, "lease").await;
        let blob = container.blob("a").unwrap();
        blob.upload("1").await.unwrap();
        for time in [SHORT, LeaseTime::Forever] {
            let lease = blob.lease(time).await.unwrap();
            assert_eq!(code(blob.lease(time).await), "LeaseAlreadyPresent");
            assert_eq!(code(blob.upload("2").await), "LeaseIdMissing");
            blob.leased(lease.id()).upload("2").await.unwrap();
            assert_eq!(blob.properties().await.unwrap().lease, Some(LeaseState::Leased));
            assert!(!lease.is_lost());
            lease.release().await.unwrap();
            blob.upload("3").await.unwrap();
            assert_eq!(blob.properties().await.unwrap().lease, Some(LeaseState::Available));
        }
        for seconds in [0, 14, 61] {
            let time = LeaseTime::For(Duration::from_secs(seconds));
            assert!(matches!(blob.lease(time).await, Err(Error::Invalid(_))), "{seconds}");
        }
        container.drop().await.unwrap();
    }
}

#[tokio::test]
async fn a_leased_container_is_dropped_by_its_holder_alone() {
    for service in blob_services() {
        let container = container(&service, "lease").await;
        let lease = container.lease(SHORT).await.unwrap();
        assert_eq!(code(container.drop().await), "LeaseIdMissing");
        assert_eq!(container.properties().await.unwrap().lease, Some(LeaseState::Leased));
        container.leased(lease.id()).drop().await.unwrap();
    }
}

/// The same container for somebody who has only a token.
fn guest(service: &BlobService, container: &Container, token: &str) -> Container {
    let there = BlobService::with_sas(&service.url(), token).unwrap().build().unwrap();
    there.container(container.name()).unwrap()
}

/// Which of the operations a guest may do on the blob `a`.
async fn granted(guest: &Container) -> String {
    let blob = guest.blob("a").unwrap();
    let permitted = |result: Result<(), Error>| match result {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error.status(), Some(403), "{error}");
            false
        }
    };
    let mut done = Vec::new();
    for (name, outcome) in [
        ("read", permitted(blob.read(99).await.map(drop))),
        ("tags", permitted(blob.tags().await.map(drop))),
        ("list", permitted(guest.blobs().page(None, None).await.map(drop))),
        ("write", permitted(blob.upload("changed").await.map(drop))),
        ("delete", permitted(blob.delete(DeleteSnapshots::Refuse).await.map(drop))),
    ] {
        done.extend(outcome.then_some(name));
        owner(guest, &blob).await.upload("there").await.unwrap();
    }
    done.join(" ")
}

/// The blob in the hands of its owner.
async fn owner(guest: &Container, blob: &Blob) -> Blob {
    let owners = blob_services().into_iter().find(|service| guest.url().starts_with(&service.url()));
    owners.unwrap().container(guest.name()).unwrap().blob(blob.name()).unwrap()
}

#[tokio::test]
async fn a_token_grants_what_it_says() {
    for service in blob_services() {
        let container = container(&service, "token").await;
        let blob = container.blob("a").unwrap();
        blob.upload("there").await.unwrap();
        for (permissions, of_container, of_blob) in [
            (BlobPermissions::READ, "read", "read"),
            (BlobPermissions::BROWSE, "read list", "read"),
            (BlobPermissions::WRITE, "write", "write"),
            (BlobPermissions::ALL, "read tags list write delete", "read tags write delete"),
        ] {
            let sas = BlobSas::new(permissions, soon());
            let whole = guest(&service, &container, &container.sign(&sas).unwrap());
            assert_eq!(granted(&whole).await, of_container, "{permissions:?}");
            let one = guest(&service, &container, &blob.sign(&sas).unwrap());
            assert_eq!(granted(&one).await, of_blob, "{permissions:?}");
            assert!(one.sign(&sas).is_err(), "a guest has no key");
        }
        let other = container.blob("b").unwrap().sign(&BlobSas::new(BlobPermissions::ALL, soon())).unwrap();
        assert_eq!(granted(&guest(&service, &container, &other)).await, "");
        let late = BlobSas::new(BlobPermissions::ALL, soon()).start(soon());
        assert_eq!(granted(&guest(&service, &container, &container.sign(&late).unwrap())).await, "");
        let account = service.sign(&AccountSas::read_only(soon())).unwrap();
        assert_eq!(granted(&guest(&service, &container, &account)).await, "read list");
        container.drop().await.unwrap();
    }
}

#[tokio::test]
async fn a_token_of_a_snapshot_reads_it_alone() {
    for service in blob_services() {
        let container = container(&service, "token").await;
        let blob = container.blob("a").unwrap();
        blob.upload("old").await.unwrap();
        let snapshot = blob.snapshot().await.unwrap();
        let token = snapshot.sign(&BlobSas::new(BlobPermissions::READ, soon())).unwrap();
        let guest = guest(&service, &container, &token).blob("a").unwrap();
        let time = snapshot.snapshot_time().unwrap();
        assert_eq!(guest.at_snapshot(time).read(99).await.unwrap(), "old");
        assert_eq!(guest.read(99).await.unwrap_err().status(), Some(403));
        blob.delete(DeleteSnapshots::Include).await.unwrap();
        container.drop().await.unwrap();
    }
}

#[tokio::test]
async fn policies_grant_until_they_are_removed_and_access_may_be_public() {
    for service in blob_services() {
        let container = container(&service, "policy").await;
        container.blob("a").unwrap().upload("there").await.unwrap();
        let policy = AccessPolicy {
            id: "readers".to_owned(),
            start: DateTime::parse("2020-01-02T03:04:05Z"),
            expiry: DateTime::parse("2040-01-02T03:04:05Z"),
            permissions: Some(BlobPermissions::READ),
        };
        let guest = guest(&service, &container, &container.sign(&BlobSas::of_policy("readers")).unwrap());
        assert_eq!(granted(&guest).await, "", "there is no such policy yet");
        container.set_policies(std::slice::from_ref(&policy), PublicAccess::Blobs).await.unwrap();
        assert_eq!(container.policies().await.unwrap(), [policy]);
        assert_eq!(container.properties().await.unwrap().public_access, PublicAccess::Blobs);
        assert_eq!(granted(&guest).await, "read");
        container.set_policies(&[], PublicAccess::Private).await.unwrap();
        assert_eq!(granted(&guest).await, "");
        assert_eq!(container.properties().await.unwrap().public_access, PublicAccess::Private);
        container.drop().await.unwrap();
        container.create(&BTreeMap::new(), PublicAccess::Container).await.unwrap();
        assert_eq!(container.properties().await.unwrap().public_access, PublicAccess::Container);
        container.drop().await.unwrap();
    }
}
