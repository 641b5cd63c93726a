//! Put, get, change, lease, delete: what each operation does, and what it refuses.

use std::sync::Arc;
use std::time::{Duration, Instant};

use blob_model::{
    AccessTier, BlobKind, ByteRange, Comparison, Conditions, ContentHeaders, Crc64, Etag, LeaseAction,
    LeaseDuration, Matches, Md5, Metadata, ServiceKind, SnapshotTime, TagCondition, Tags, TierState,
};
use blob_service::{
    BlobQuery, DeleteBlob, DeleteSnapshots, GetBlob, NewBlob, RangeChecksum, Request, SetProperties,
    TagQuery, Which,
};

use common::throttle::{ResourceName, Targets, Throttle};

use crate::kit::{
    Ground, Pieces, account, blob, bytes, checks, drain, lease, leased, metadata, names, refused,
};

fn code<T: std::fmt::Debug>(outcome: Result<T, blob_service::Error>) -> &'static str {
    refused(outcome).code()
}

fn if_match(etag: Etag) -> Request {
    let conditions = Conditions { if_match: Some(Matches::OneOf(vec![etag])), ..Conditions::default() };
    Request { conditions, lease: None }
}

fn if_nothing() -> Request {
    let conditions = Conditions { if_none_match: Some(Matches::Anything), ..Conditions::default() };
    Request { conditions, lease: None }
}

#[tokio::test]
async fn content_reads_back_whatever_its_size() {
    let ground = Ground::with_container().await;
    for length in [0, 1, 4096, 4097, 1 << 20, (1 << 20) + 1, 3_333_333] {
        let content = bytes(length as u64, length);
        let etag = ground.put("b", &content).await;
        assert!(ground.get("b").await == content, "{length} bytes");
        let properties = ground.properties("b").await.unwrap();
        assert_eq!((properties.etag, properties.length), (etag, length as u64));
        assert_eq!(properties.content.md5, Some(Md5::of(&content)));
        assert_eq!(properties.content.content_type.as_deref(), Some("application/octet-stream"));
    }
    ground.put("b", b"").await;
    assert_eq!(ground.objects().await, 0, "what was replaced is gone");
}

#[tokio::test]
async fn a_range_is_part_of_it() {
    let ground = Ground::with_container().await;
    let content = bytes(1, 2_500_000);
    ground.put("b", &content).await;
    for (first, last) in [(0, 0), (5, 4095), (1_048_575, 1_048_576), (100, 2_400_000), (2_499_999, 9_999_999)]
    {
        let get = GetBlob { range: ByteRange::parse(&format!("bytes={first}-{last}")), checksum: None };
        let download =
            ground.service.get_blob(&blob("b"), Which::Current, get, &Request::default()).await.unwrap();
        let expected = &content[first..content.len().min(last + 1)];
        let part = download.part.unwrap();
        assert_eq!((part.start, part.bytes), (first as u64, expected.len() as u64));
        assert!(drain(download.content).await == expected, "{first}-{last}");
    }
    let range = ByteRange::parse("bytes=7-1000006");
    for checksum in [RangeChecksum::Md5, RangeChecksum::Crc64] {
        let get = GetBlob { range, checksum: Some(checksum) };
        let download =
            ground.service.get_blob(&blob("b"), Which::Current, get, &Request::default()).await.unwrap();
        let (sums, part) = (download.sums.unwrap(), &content[7..1_000_007]);
        assert_eq!(sums.crc64, Crc64::of(part));
        assert_eq!(sums.md5, (checksum == RangeChecksum::Md5).then(|| Md5::of(part)));
    }
    let behind = GetBlob { range: ByteRange::parse("bytes=2500000-"), checksum: None };
    let outcome = ground.service.get_blob(&blob("b"), Which::Current, behind, &Request::default()).await;
    assert_eq!(code(outcome), "InvalidRange");
}

#[tokio::test]
async fn a_body_is_what_its_sender_says() {
    let ground = Ground::with_container().await;
    let put = async |checks, content: ContentHeaders| {
        let new = NewBlob { content, ..NewBlob::default() };
        let body = &mut Pieces(bytes(1, 10_000), 3000);
        ground.service.put_block_blob(&blob("b"), new, checks, &Request::default(), body).await
    };
    let (md5, crc64) = (Md5::of(&bytes(1, 10_000)), Crc64::of(&bytes(1, 10_000)));
    let none = ContentHeaders::default;
    let wrong = blob_service::BodyChecks { md5: Some(Md5([0; 16])), ..checks() };
    assert_eq!(code(put(wrong, none()).await), "Md5Mismatch");
    let wrong = blob_service::BodyChecks { crc64: Some(Crc64(1)), ..checks() };
    assert_eq!(code(put(wrong, none()).await), "Crc64Mismatch");
    let long = blob_service::BodyChecks { bytes_max: 9_999, ..checks() };
    assert_eq!(code(put(long, none()).await), "RequestBodyTooLarge");
    let other = ContentHeaders { md5: Some(Md5([0; 16])), ..none() };
    assert_eq!(code(put(checks(), other).await), "Md5Mismatch");
    assert_eq!(code(ground.properties("b").await), "BlobNotFound");
    tokio::task::yield_now().await;
    assert_eq!(ground.objects().await, 0, "nothing stays of what was refused");
    let right = blob_service::BodyChecks { md5: Some(md5), crc64: Some(crc64), ..checks() };
    let stored = put(right, none()).await.unwrap();
    assert_eq!((stored.sums.md5, stored.sums.crc64), (Some(md5), crc64));
}

#[tokio::test]
async fn a_missing_container_counts_before_a_missing_blob() {
    let ground = Ground::new();
    assert_eq!(code(ground.properties("b").await), "ContainerNotFound");
    assert_eq!(code(ground.try_put("b", b"", &Request::default()).await), "ContainerNotFound");
    let version = Which::Version(SnapshotTime(ground.time.now()));
    assert_eq!(code(ground.get_state("b", version).await), "ContainerNotFound");
    let ground = Ground::with_container().await;
    ground.put("b", b"x").await;
    assert_eq!(code(ground.get_state("b", version).await), "BlobNotFound");
    assert_eq!(code(ground.get_state("b", Which::Snapshot(SnapshotTime::BASE)).await), "BlobNotFound");
    assert_eq!(code(ground.properties("c").await), "BlobNotFound");
}

#[tokio::test]
async fn of_two_writers_with_one_etag_one_wins() {
    let ground = Ground::with_container().await;
    let etag = ground.put("b", b"one").await;
    let (one, other) = (if_match(etag), if_match(etag));
    let (one, other) = tokio::join!(ground.try_put("b", b"two", &one), ground.try_put("b", b"three", &other));
    assert_eq!([&one, &other].iter().filter(|outcome| outcome.is_ok()).count(), 1);
    let lost = if one.is_err() { one } else { other };
    assert_eq!(code(lost), "ConditionNotMet");
    assert_eq!(code(ground.try_put("b", b"x", &if_nothing()).await), "BlobAlreadyExists");
    assert!(ground.try_put("c", b"x", &if_nothing()).await.is_ok());
    assert_eq!(code(ground.try_put("d", b"x", &if_match(etag)).await), "ConditionNotMet");
}

#[tokio::test]
async fn changes_move_the_etag_and_keep_the_creation() {
    let ground = Ground::with_container().await;
    let first = ground.put("b", b"content").await;
    let second = ground
        .service
        .set_blob_metadata(&blob("b"), metadata(&[("Color", "red")]), &Request::default())
        .await
        .unwrap();
    let content = ContentHeaders { language: Some("de".to_owned()), ..ContentHeaders::default() };
    let set = SetProperties { content: Some(content.clone()), ..SetProperties::default() };
    let third = ground.service.set_blob_properties(&blob("b"), set, &Request::default()).await.unwrap().etag;
    assert!(first < second && second < third);
    let shown = ground.properties("b").await.unwrap();
    assert_eq!((shown.created, shown.etag), (first.0, third));
    assert_eq!((shown.content, shown.metadata), (content, metadata(&[("Color", "red")])));
    assert_eq!(ground.get("b").await, b"content");
    let length = SetProperties { length: Some(512), ..SetProperties::default() };
    assert_eq!(
        code(ground.service.set_blob_properties(&blob("b"), length, &Request::default()).await),
        "InvalidBlobType"
    );
    let fourth = ground.put("b", b"again").await;
    assert_eq!(ground.properties("b").await.unwrap().created, fourth.0, "a new blob");
}

#[tokio::test]
async fn a_lease_guards_its_blob_and_leaves_its_etag() {
    let ground = Ground::with_container().await;
    let etag = ground.put("b", b"content").await;
    let acquire = LeaseAction::Acquire {
        duration: LeaseDuration::Seconds(15),
        proposed: Some(lease(1)),
        fresh: lease(9),
    };
    let (outcome, shown) =
        ground.service.lease_blob(&blob("b"), acquire, Conditions::default()).await.unwrap();
    assert_eq!((outcome.id, shown), (Some(lease(1)), etag));
    assert_eq!(code(ground.try_put("b", b"x", &Request::default()).await), "LeaseIdMissing");
    assert_eq!(code(ground.try_put("b", b"x", &leased(2)).await), "LeaseIdMismatchWithBlobOperation");
    assert_eq!(code(ground.try_put("c", b"x", &leased(1)).await), "LeaseNotPresentWithBlobOperation");
    // Whoever holds the lease knows that the blob is there.
    let holder = Request { lease: Some(lease(1)), ..if_nothing() };
    ground.try_put("b", b"new", &holder).await.unwrap();
    assert_eq!(ground.properties("b").await.unwrap().lease.unwrap().state, "leased", "it stays");
    ground.time.pass(Duration::from_secs(15));
    assert_eq!(code(ground.try_put("b", b"x", &leased(1)).await), "LeaseLost");
    assert_eq!(ground.properties("b").await.unwrap().lease.unwrap().state, "expired");
    ground.put("b", b"x").await;
    assert_eq!(ground.properties("b").await.unwrap().lease.unwrap().state, "available", "it is forgotten");
}

#[tokio::test]
async fn snapshots_keep_what_they_saw() {
    let ground = Ground::with_container().await;
    let (one, two) = (bytes(1, 1_500_000), bytes(2, 1_500_000));
    let etag = ground.put("b", &one).await;
    let (first, shown) =
        ground.service.snapshot_blob(&blob("b"), Metadata::default(), &Request::default()).await.unwrap();
    assert_eq!(shown, etag);
    ground.put("b", &two).await;
    let (second, _) =
        ground.service.snapshot_blob(&blob("b"), metadata(&[("a", "1")]), &Request::default()).await.unwrap();
    ground.put("b", b"three").await;
    assert!(ground.get_state("b", Which::Snapshot(first)).await.unwrap() == one);
    assert!(ground.get_state("b", Which::Snapshot(second)).await.unwrap() == two);
    assert_eq!(ground.get("b").await, b"three");
    let shown = ground
        .service
        .blob_properties(&blob("b"), Which::Snapshot(second), &Request::default())
        .await
        .unwrap();
    assert_eq!((shown.metadata, shown.lease), (metadata(&[("a", "1")]), None));
    assert_eq!(ground.objects().await, 2);

    let delete = |snapshots, which| {
        let delete = DeleteBlob { which, snapshots, is_permanent: false };
        let service = ground.service.clone();
        async move { service.delete_blob(&blob("b"), delete, &Request::default()).await }
    };
    assert_eq!(code(delete(None, Which::Current).await), "SnapshotsPresent");
    assert!(delete(None, Which::Snapshot(first)).await.unwrap().is_permanent);
    assert_eq!(ground.objects().await, 1);
    assert_eq!(code(delete(None, Which::Snapshot(first)).await), "BlobNotFound");
    delete(Some(DeleteSnapshots::Only), Which::Current).await.unwrap();
    assert_eq!((ground.objects().await, ground.get("b").await), (0, b"three".to_vec()));
    delete(None, Which::Current).await.unwrap();
    assert_eq!(code(ground.properties("b").await), "BlobNotFound");
    assert_eq!(code(delete(None, Which::Current).await), "BlobNotFound");
}

#[tokio::test]
async fn a_snapshot_and_its_blob_share_objects_until_both_are_gone() {
    let ground = Ground::with_container().await;
    let content = bytes(1, 100_000);
    ground.put("b", &content).await;
    let mut times = Vec::new();
    for _ in 0..150 {
        let taken = ground.service.snapshot_blob(&blob("b"), Metadata::default(), &Request::default()).await;
        times.push(taken.unwrap().0);
    }
    assert!(times.is_sorted_by(|one, other| one < other), "all at different times");
    assert_eq!(ground.objects().await, 1);
    let delete = DeleteBlob { which: Which::Snapshot(times[0]), ..DeleteBlob::default() };
    ground.service.delete_blob(&blob("b"), delete, &Request::default()).await.unwrap();
    assert!(ground.get("b").await == content);
    // More rows than one transaction has.
    let delete = DeleteBlob { snapshots: Some(DeleteSnapshots::Include), ..DeleteBlob::default() };
    ground.service.delete_blob(&blob("b"), delete, &Request::default()).await.unwrap();
    assert_eq!(ground.objects().await, 0);
    let all = BlobQuery { limit: 10, snapshots: true, ..BlobQuery::default() };
    assert_eq!(names(&ground.list(&all).await), Vec::<String>::new());
}

#[tokio::test]
async fn tiers_are_kept_and_archive_is_left_pending() {
    let ground = Ground::with_container().await;
    let etag = ground.put("b", b"content").await;
    let set = async |tier| {
        ground.service.set_blob_tier(&blob("b"), Which::Current, tier, None, &Request::default()).await
    };
    let tier = async || match ground.properties("b").await.unwrap().kind {
        BlobKind::Block { tier } => tier,
        other => panic!("{other:?}"),
    };
    assert_eq!(tier().await, TierState::INFERRED);
    assert!(!set(AccessTier::Cool).await.unwrap());
    assert_eq!(tier().await.tier, AccessTier::Cool);
    assert!(!set(AccessTier::Archive).await.unwrap());
    assert_eq!(code(ground.get_state("b", Which::Current).await), "BlobArchived");
    assert_eq!(code(ground.try_put("b", b"x", &Request::default()).await), "BlobArchived");
    assert!(set(AccessTier::Hot).await.unwrap());
    assert_eq!(tier().await.archive_status().as_deref(), Some("rehydrate-pending-to-hot"));
    assert_eq!(code(set(AccessTier::Cool).await), "BlobBeingRehydrated");
    assert_eq!(ground.properties("b").await.unwrap().etag, etag);
    let new = NewBlob { tier: Some(AccessTier::Hot), ..NewBlob::default() };
    let body = &mut Pieces(b"new".to_vec(), 9);
    ground.service.put_block_blob(&blob("b"), new, checks(), &Request::default(), body).await.unwrap();
    assert_eq!(ground.get("b").await, b"new");
    assert_eq!(code(set(AccessTier::Premium(20)).await), "InvalidHeaderValue");
}

#[tokio::test]
async fn an_archived_blob_stays_as_it_is_but_for_tags_and_tier() {
    let ground = Ground::with_container().await;
    let (service, plain) = (&ground.service, Request::default());
    let etag = ground.put("b", b"content").await;
    let set = async |tier| service.set_blob_tier(&blob("b"), Which::Current, tier, None, &plain).await;
    // Also while it leaves the archive.
    for tier in [AccessTier::Archive, AccessTier::Hot] {
        set(tier).await.unwrap();
        let refused = [
            code(service.set_blob_metadata(&blob("b"), metadata(&[("a", "1")]), &plain).await),
            code(service.set_blob_properties(&blob("b"), SetProperties::default(), &plain).await),
            code(service.snapshot_blob(&blob("b"), Metadata::default(), &plain).await),
        ];
        assert_eq!(refused, ["BlobArchived"; 3], "{tier:?}");
        let tags = Tags::parse("t=1").unwrap();
        service.set_blob_tags(&blob("b"), Which::Current, tags, &plain).await.unwrap();
    }
    let kept = ground.properties("b").await.unwrap();
    assert_eq!((kept.etag, kept.metadata.is_empty()), (etag, true));
    service.delete_blob(&blob("b"), DeleteBlob::default(), &plain).await.unwrap();
}

#[tokio::test]
async fn a_blob_whose_target_leaves_nothing_is_busy() {
    let ground = Ground::with_container().await;
    let throttle = Arc::new(Throttle::new(Targets { account: 1_000_000, resource: 10 }));
    // In an hour, so that nothing has come back until then.
    let later = Instant::now() + Duration::from_secs(3600);
    let resource = ResourceName { service: ServiceKind::Blob, parts: &["abc", "b"] };
    throttle.spend(&account(), Some(resource), 100, later);
    let ground = Ground { service: ground.service.clone().throttled(throttle), ..ground };
    assert_eq!(code(ground.properties("b").await), "ServerBusy");
    assert_eq!(code(ground.properties("c").await), "BlobNotFound");
    assert_eq!(code(ground.try_put("b", b"x", &Request::default()).await), "ServerBusy");
    let tag = [TagCondition { key: "t".to_owned(), comparison: Comparison::Equal, value: "1".to_owned() }];
    let query = TagQuery { container: None, conditions: &tag, from: None, limit: 1 };
    assert!(
        ground.service.find_blobs(&account(), &query).await.is_ok(),
        "the account has a target of its own"
    );
}

#[tokio::test]
async fn while_the_data_moves_only_reads_go_on() {
    let ground = Ground::with_container().await;
    ground.put("b", b"x").await;
    let gate = Arc::new(store::Gate::default());
    gate.close().await;
    let frozen = Ground { service: ground.service.clone().gated(gate), ..ground };
    assert_eq!(frozen.get("b").await, b"x");
    for outcome in [
        frozen.try_put("b", b"y", &Request::default()).await.map(drop),
        frozen
            .service
            .set_blob_metadata(&blob("b"), Metadata::default(), &Request::default())
            .await
            .map(drop),
        frozen.service.delete_blob(&blob("b"), DeleteBlob::default(), &Request::default()).await.map(drop),
        frozen.service.snapshot_blob(&blob("b"), Metadata::default(), &Request::default()).await.map(drop),
        frozen.service.undelete_blob(&blob("b")).await,
    ] {
        assert_eq!(refused(outcome), common::Refusal::Frozen.into());
    }
    assert_eq!(frozen.get("b").await, b"x");
}
