//! Copies, operations From URL, tags, soft delete.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use blob_model::{
    AccountName, BlobKind, BlockChoice, BlockId, ByteRange, Comparison, Conditions, CopyStatus, Crc64,
    Matches, Md5, Metadata, SnapshotTime, TagCondition, Tags,
};
use blob_service::{
    AppendCondition, BlobQuery, BlobService, CopyBlob, CopySource, CopyTags, DeleteBlob, DeleteSnapshots,
    Error, NewBlob, PartFromUrl, PutFromUrl, Request, Retention, TagQuery, Which,
};

use crate::kit::{Ground, Pieces, Rows, account, blob, bytes, checks, container, metadata, names, refused};

fn code<T: std::fmt::Debug>(outcome: Result<T, Error>) -> &'static str {
    refused(outcome).code()
}

fn source(name: &str) -> CopySource {
    CopySource {
        blob: blob(name),
        which: Which::Current,
        conditions: Conditions::default(),
        shown: format!("http://host/abc/{name}"),
    }
}

fn copy(name: &str) -> CopyBlob {
    CopyBlob {
        source: source(name),
        metadata: Metadata::default(),
        tags: CopyTags::Replace(Tags::default()),
        tier: None,
        priority: None,
        seal: None,
        is_sync: false,
        source_md5: None,
    }
}

fn star() -> Request {
    let conditions = Conditions { if_none_match: Some(Matches::Anything), ..Conditions::default() };
    Request { conditions, lease: None }
}

#[tokio::test]
async fn a_copy_shares_its_objects_and_outlives_its_source() {
    let ground = Ground::with_container().await;
    let content = bytes(1, 2_000_000);
    ground.put("a", &content).await;
    ground.service.set_blob_metadata(&blob("a"), metadata(&[("k", "v")]), &Request::default()).await.unwrap();
    let before = ground.properties("a").await.unwrap();
    let copied = ground.service.copy_blob(&blob("b"), copy("a"), &Request::default()).await.unwrap();
    assert_eq!((copied.status, ground.objects().await), (CopyStatus::Success, 1));
    assert_eq!(ground.properties("a").await.unwrap(), before, "the mark is not seen");
    let shown = ground.properties("b").await.unwrap();
    let state = shown.copy.unwrap();
    assert_eq!(
        (state.id, state.progress().as_str(), state.source.as_str()),
        (copied.id, "2000000/2000000", "http://host/abc/a")
    );
    assert_eq!((shown.content.md5, shown.metadata), (Some(Md5::of(&content)), metadata(&[("k", "v")])));
    // Whichever goes first leaves the other its content.
    ground.service.copy_blob(&blob("c"), copy("b"), &Request::default()).await.unwrap();
    for name in ["b", "a"] {
        ground.service.delete_blob(&blob(name), DeleteBlob::default(), &Request::default()).await.unwrap();
        assert!(ground.get("c").await == content);
    }
    ground.put("c", b"other").await;
    assert_eq!(ground.objects().await, 1, "what was shared is left to the sweep");
    assert_eq!(
        code(ground.service.copy_blob(&blob("b"), copy("a"), &Request::default()).await),
        "BlobNotFound"
    );
    assert_eq!(code(ground.service.copy_blob(&blob("c"), copy("c"), &star()).await), "BlobAlreadyExists");
    // Onto itself.
    let itself = CopyBlob { metadata: metadata(&[("x", "y")]), ..copy("c") };
    ground.service.copy_blob(&blob("c"), itself, &Request::default()).await.unwrap();
    assert_eq!(
        (ground.get("c").await, ground.properties("c").await.unwrap().metadata),
        (b"other".to_vec(), metadata(&[("x", "y")]))
    );
    let outcome = ground.service.abort_copy(&blob("c"), copied.id, None).await;
    assert_eq!(code(outcome), "NoPendingCopyOperation");
    ground.service.set_blob_metadata(&blob("c"), Metadata::default(), &Request::default()).await.unwrap();
    assert_eq!(ground.properties("c").await.unwrap().copy, None, "a write removes what is told of the copy");
}

/// Every order in which a blob, its snapshot and copies of both go.
#[tokio::test]
async fn what_is_shared_with_a_snapshot_stays_in_every_order() {
    for order in 0..24_usize {
        let ground = Ground::with_container().await;
        let content = bytes(1, 50_000);
        ground.put("a", &content).await;
        let (time, _) =
            ground.service.snapshot_blob(&blob("a"), Metadata::default(), &Request::default()).await.unwrap();
        ground.service.copy_blob(&blob("of-base"), copy("a"), &Request::default()).await.unwrap();
        let of_snapshot =
            CopyBlob { source: CopySource { which: Which::Snapshot(time), ..source("a") }, ..copy("a") };
        ground.service.copy_blob(&blob("of-snapshot"), of_snapshot, &Request::default()).await.unwrap();
        let mut left = vec!["base", "snapshot", "of-base", "of-snapshot"];
        let mut digits = order;
        while !left.is_empty() {
            match left.remove(digits % left.len()) {
                "base" => drop(ground.put("a", b"overwritten").await),
                "snapshot" => {
                    let delete = DeleteBlob { which: Which::Snapshot(time), ..DeleteBlob::default() };
                    ground.service.delete_blob(&blob("a"), delete, &Request::default()).await.unwrap();
                }
                name => {
                    ground
                        .service
                        .delete_blob(&blob(name), DeleteBlob::default(), &Request::default())
                        .await
                        .unwrap();
                }
            }
            digits /= left.len().max(1) + 1;
            for name in &left {
                let read = match *name {
                    "base" => ground.get("a").await,
                    "snapshot" => ground.get_state("a", Which::Snapshot(time)).await.unwrap(),
                    name => ground.get(name).await,
                };
                assert!(read == content, "{name} in order {order}");
            }
        }
    }
}

#[tokio::test]
async fn a_copy_is_held_to_its_source_and_to_its_target() {
    let ground = Ground::with_container().await;
    let etag = ground.put("a", b"content").await;
    ground.put("b", b"there").await;
    let other = Conditions { if_match: Some(Matches::OneOf(vec![etag])), ..Conditions::default() };
    let same = Conditions { if_none_match: Some(Matches::OneOf(vec![etag])), ..Conditions::default() };
    let request = Request { conditions: other, lease: None };
    assert_eq!(
        code(ground.service.copy_blob(&blob("b"), copy("a"), &request).await),
        "TargetConditionNotMet"
    );
    let with = |conditions: &Conditions, is_sync| {
        let source = CopySource { conditions: conditions.clone(), ..source("a") };
        CopyBlob { source, is_sync, ..copy("a") }
    };
    let plain = Request::default();
    assert_eq!(
        code(ground.service.copy_blob(&blob("b"), with(&same, false), &plain).await),
        "SourceConditionNotMet"
    );
    let refusal = refused(ground.service.copy_blob(&blob("b"), with(&same, true), &plain).await);
    assert_eq!(refusal.answer(), (304, "CannotVerifyCopySource"));
    let refusal = refused(
        ground.service.copy_blob(&blob("b"), CopyBlob { is_sync: true, ..copy("none") }, &plain).await,
    );
    assert_eq!(refusal.answer(), (404, "CannotVerifyCopySource"));
    let sync = CopyBlob { is_sync: true, source_md5: Some(Md5::of(b"content")), ..copy("a") };
    let copied = ground.service.copy_blob(&blob("b"), sync.clone(), &plain).await.unwrap();
    assert_eq!(copied.crc64, Some(Crc64::of(b"content")));
    let wrong = CopyBlob { source_md5: Some(Md5([1; 16])), ..sync };
    assert_eq!(code(ground.service.copy_blob(&blob("b"), wrong, &plain).await), "Md5Mismatch");
    ground.service.put_append_blob(&blob("append"), NewBlob::default(), &plain).await.unwrap();
    assert_eq!(code(ground.service.copy_blob(&blob("append"), copy("a"), &plain).await), "InvalidBlobType");
}

#[tokio::test]
async fn a_copy_is_as_sealed_as_its_source_or_as_it_is_told() {
    let ground = Ground::with_container().await;
    let plain = Request::default();
    ground.service.put_append_blob(&blob("a"), NewBlob::default(), &plain).await.unwrap();
    let body = &mut Pieces(b"one".to_vec(), 9);
    ground
        .service
        .append_block(&blob("a"), checks(), AppendCondition::default(), &plain, body)
        .await
        .unwrap();
    for (seal_source, seal, expected) in
        [(false, None, false), (false, Some(true), true), (true, None, true), (true, Some(false), false)]
    {
        if seal_source {
            ground.service.seal_blob(&blob("a"), AppendCondition::default(), &plain).await.unwrap();
        }
        ground.service.copy_blob(&blob("b"), CopyBlob { seal, ..copy("a") }, &plain).await.unwrap();
        let shown = ground.properties("b").await.unwrap();
        assert_eq!(shown.kind, BlobKind::Append { blocks: 1, is_sealed: expected });
        assert_eq!(ground.get("b").await, b"one");
    }
}

#[tokio::test]
async fn parts_of_a_blob_become_blocks_appends_and_blobs() {
    let ground = Ground::with_container().await;
    let plain = Request::default();
    let content = bytes(1, 300_000);
    ground.put("a", &content).await;
    let part =
        |range: &str| PartFromUrl { source: source("a"), range: ByteRange::parse(range), checks: checks() };
    let id = BlockId::of_bytes(b"1").unwrap();
    let sums = ground
        .service
        .put_block_from_url(&blob("b"), id.clone(), part("bytes=10-99999"), None)
        .await
        .unwrap();
    assert_eq!(sums.crc64, Crc64::of(&content[10..100_000]));
    let list = [(BlockChoice::Latest, id)];
    ground.service.put_block_list(&blob("b"), &list, NewBlob::default(), &plain).await.unwrap();
    assert!(ground.get("b").await == content[10..100_000]);
    ground.service.put_append_blob(&blob("c"), NewBlob::default(), &plain).await.unwrap();
    let appended = ground
        .service
        .append_block_from_url(&blob("c"), part("bytes=0-4"), AppendCondition::default(), &plain)
        .await;
    assert_eq!((appended.unwrap().offset, ground.get("c").await), (0, content[..5].to_vec()));
    let put = PutFromUrl {
        source: source("a"),
        new: NewBlob::default(),
        takes_headers: true,
        takes_tags: false,
        checks: checks(),
    };
    let stored = ground.service.put_blob_from_url(&blob("d"), put.clone(), &plain).await.unwrap();
    assert_eq!((stored.sums.crc64, ground.properties("d").await.unwrap().copy), (Crc64::of(&content), None));
    assert!(ground.get("d").await == content);
    assert_eq!(
        code(ground.service.put_blob_from_url(&blob("d"), put.clone(), &star()).await),
        "BlobAlreadyExists"
    );
    // What is said of the source counts before what is there.
    let wrong = blob_service::BodyChecks { md5: Some(Md5([1; 16])), ..checks() };
    let outcome = ground
        .service
        .put_blob_from_url(&blob("d"), PutFromUrl { checks: wrong, ..put.clone() }, &star())
        .await;
    assert_eq!(code(outcome), "Md5Mismatch");
    let missing = PutFromUrl { source: source("none"), ..put };
    let refusal = refused(ground.service.put_blob_from_url(&blob("d"), missing, &star()).await);
    assert_eq!(refusal.answer(), (404, "CannotVerifyCopySource"));
}

fn tag(key: &str, comparison: Comparison, value: &str) -> TagCondition {
    TagCondition { key: key.to_owned(), comparison, value: value.to_owned() }
}

async fn find(ground: &Ground, conditions: &[TagCondition], limit: usize) -> Vec<String> {
    let mut query = TagQuery { container: None, conditions, from: None, limit };
    let mut found = Vec::new();
    loop {
        let page = ground.service.find_blobs(&account(), &query).await.unwrap();
        assert!(page.blobs.len() <= limit);
        found.extend(page.blobs.into_iter().map(|blob| blob.name.as_str().to_owned()));
        let Some(next) = page.next else { break };
        query.from = Some(next);
    }
    found.sort();
    found
}

#[tokio::test]
async fn blobs_are_found_by_what_their_tags_are_now() {
    let ground = Ground::with_container().await;
    let plain = Request::default();
    let etag = ground.put("0", b"").await;
    for n in 0..10 {
        let tags = Tags::parse(&format!("n={n}&all=x y")).unwrap();
        let new = NewBlob { tags, ..NewBlob::default() };
        let body = &mut Pieces(Vec::new(), 1);
        ground.service.put_block_blob(&blob(&format!("b/{n}")), new, checks(), &plain, body).await.unwrap();
    }
    let all = tag("all", Comparison::Equal, "x y");
    for limit in [1, 3, 100] {
        assert_eq!(find(&ground, std::slice::from_ref(&all), limit).await.len(), 10);
        assert_eq!(find(&ground, &[tag("n", Comparison::Equal, "4")], limit).await, ["b/4"]);
        assert_eq!(find(&ground, &[tag("n", Comparison::Greater, "7")], limit).await, ["b/8", "b/9"]);
        assert_eq!(find(&ground, &[tag("n", Comparison::LessOrEqual, "1")], limit).await, ["b/0", "b/1"]);
        let both = [all.clone(), tag("n", Comparison::GreaterOrEqual, "9")];
        assert_eq!(find(&ground, &both, limit).await, ["b/9"]);
    }
    ground
        .service
        .set_blob_tags(&blob("b/4"), Which::Current, Tags::parse("n=40").unwrap(), &plain)
        .await
        .unwrap();
    ground
        .service
        .set_blob_tags(&blob("0"), Which::Current, Tags::parse("n=4").unwrap(), &plain)
        .await
        .unwrap();
    assert_eq!(ground.properties("0").await.unwrap().etag, etag, "tags leave the ETag");
    ground.service.delete_blob(&blob("b/9"), DeleteBlob::default(), &plain).await.unwrap();
    assert_eq!(find(&ground, &[tag("n", Comparison::Equal, "4")], 9).await, ["0"]);
    assert_eq!(find(&ground, &[tag("n", Comparison::Greater, "7")], 9).await, ["b/8"]);
    // Old hints that say what is not so are gone after they were found; those that are so stay.
    ground.time.pass(Duration::from_secs(9_000_000));
    for _ in 0..2 {
        assert_eq!(
            find(&ground, &[tag("n", Comparison::GreaterOrEqual, "4")], 9).await,
            ["0", "b/4", "b/5", "b/6", "b/7", "b/8"]
        );
    }
    ground
        .service
        .set_blob_tags(&blob("b/4"), Which::Current, Tags::parse("n=4").unwrap(), &plain)
        .await
        .unwrap();
    assert_eq!(find(&ground, &[tag("n", Comparison::Equal, "4")], 9).await, ["0", "b/4"]);
    let tags = ground.service.blob_tags(&blob("b/4"), Which::Current, &plain).await.unwrap();
    assert_eq!(tags, Tags::parse("n=4").unwrap());
}

struct Days(u16);

#[async_trait]
impl Retention for Days {
    async fn days(&self, _: &AccountName) -> Result<Option<u16>, Error> {
        Ok(Some(self.0))
    }
}

#[tokio::test]
async fn what_was_deleted_can_be_restored_for_days() {
    let ground = Ground::with_container().await;
    let ground = Ground { service: ground.service.clone().retaining(Arc::new(Days(7))), ..ground };
    let plain = Request::default();
    let (one, two) = (bytes(1, 100_000), bytes(2, 100_000));
    ground.put("b", &one).await;
    ground.put("b", &two).await;
    let etag = ground.properties("b").await.unwrap().etag;
    ground.service.snapshot_blob(&blob("b"), Metadata::default(), &plain).await.unwrap();
    let all = BlobQuery { snapshots: true, deleted: true, limit: 100, ..BlobQuery::default() };
    assert_eq!(
        names(&ground.list(&all).await),
        ["b@-", "b@", "b"],
        "what was overwritten is a deleted snapshot"
    );
    let delete = DeleteBlob { snapshots: Some(DeleteSnapshots::Include), ..DeleteBlob::default() };
    assert!(!ground.service.delete_blob(&blob("b"), delete, &plain).await.unwrap().is_permanent);
    assert_eq!(code(ground.properties("b").await), "BlobNotFound");
    assert_eq!(names(&ground.list(&all).await), ["b@-", "b@-", "b-"]);
    assert_eq!(names(&ground.list(&BlobQuery { snapshots: false, ..all.clone() }).await), ["b-"]);
    assert_eq!(names(&ground.list(&BlobQuery { deleted: false, ..all.clone() }).await), Vec::<String>::new());
    let folders = BlobQuery { delimiter: Some("b".to_owned()), limit: 9, ..BlobQuery::default() };
    assert_eq!(names(&ground.list(&folders).await), Vec::<String>::new(), "nor does it make a prefix");
    ground.time.pass(Duration::from_secs(7 * 24 * 3600 - 1));
    ground.service.undelete_blob(&blob("b")).await.unwrap();
    assert_eq!(names(&ground.list(&all).await), ["b@", "b@", "b"]);
    assert!(ground.get("b").await == two);
    let shown = ground.properties("b").await.unwrap();
    assert_eq!((shown.etag, shown.lease.unwrap().state), (etag, "available"));
    let first = ground.list(&all).await;
    let blob_service::BlobEntry::Blob(first) = &first[0] else { panic!("{first:?}") };
    assert!(ground.get_state("b", Which::Snapshot(first.snapshot.unwrap())).await.unwrap() == one);
    // Nothing to restore.
    ground.service.undelete_blob(&blob("b")).await.unwrap();
    assert_eq!(code(ground.service.undelete_blob(&blob("none")).await), "BlobNotFound");
    // Too late.
    let delete = DeleteBlob { snapshots: Some(DeleteSnapshots::Include), ..DeleteBlob::default() };
    ground.service.delete_blob(&blob("b"), delete, &plain).await.unwrap();
    ground.time.pass(Duration::from_secs(7 * 24 * 3600));
    assert_eq!(code(ground.service.undelete_blob(&blob("b")).await), "BlobNotFound");
    assert_eq!(names(&ground.list(&all).await), Vec::<String>::new());
    let permanent = DeleteBlob {
        which: Which::Snapshot(SnapshotTime(ground.time.now())),
        is_permanent: true,
        snapshots: None,
    };
    assert_eq!(code(ground.service.delete_blob(&blob("b"), permanent, &plain).await), "BlobNotFound");
}

#[tokio::test]
async fn blocks_of_a_blob_whose_name_had_a_deleted_one_are_listed() {
    let ground = Ground::with_container().await;
    let ground = Ground { service: ground.service.clone().retaining(Arc::new(Days(7))), ..ground };
    let plain = Request::default();
    ground.put("b", b"gone").await;
    ground.service.delete_blob(&blob("b"), DeleteBlob::default(), &plain).await.unwrap();
    let (id, body) = (BlockId::parse("YQ==").unwrap(), &mut Pieces(vec![1; 10], 10));
    ground.service.put_block(&blob("b"), id, checks(), None, body).await.unwrap();
    let query = BlobQuery { limit: 9, ..BlobQuery::default() };
    assert_eq!(names(&ground.list(&query).await), Vec::<String>::new());
    assert_eq!(names(&ground.list(&BlobQuery { uncommitted: true, ..query.clone() }).await), ["b?"]);
    assert_eq!(names(&ground.list(&BlobQuery { deleted: true, ..query }).await), ["b-"]);
}

#[tokio::test]
async fn a_page_of_found_blobs_ends_by_their_bytes() {
    let ground = Ground::with_container().await;
    let long = |key: usize| format!("k{key}{}={}", "x".repeat(120), "v".repeat(250));
    let tags: Vec<String> = (0..9).map(long).chain(["all=1".to_owned()]).collect();
    let tags = Tags::parse(&tags.join("&")).unwrap();
    for n in 0..2600 {
        let new = NewBlob { tags: tags.clone(), ..NewBlob::default() };
        let body = &mut Pieces(Vec::new(), 1);
        let (name, plain) = (blob(&n.to_string()), Request::default());
        ground.service.put_block_blob(&name, new, checks(), &plain, body).await.unwrap();
    }
    let all = [tag("all", Comparison::Equal, "1")];
    let query = TagQuery { container: None, conditions: &all, from: None, limit: 5000 };
    let first = ground.service.find_blobs(&account(), &query).await.unwrap();
    assert!((2000..2600).contains(&first.blobs.len()), "8 MiB, and not {}", first.blobs.len());
    let next = TagQuery { from: first.next, ..query };
    let second = ground.service.find_blobs(&account(), &next).await.unwrap();
    assert_eq!(first.blobs.len() + second.blobs.len(), 2600);
    assert!(second.next.is_none());
}

/// Keeps what is deleted as long as it is switched on. What is kept can be removed.
#[derive(Default)]
struct Switch(AtomicBool);

#[async_trait]
impl Retention for Switch {
    async fn days(&self, _: &AccountName) -> Result<Option<u16>, Error> {
        Ok(self.0.load(Ordering::SeqCst).then_some(7))
    }

    async fn permits_removal(&self, _: &AccountName) -> Result<bool, Error> {
        Ok(true)
    }
}

/// The mark that its content is shared goes with a blob. A deleted snapshot of it may be kept for longer.
#[tokio::test]
async fn a_copy_outlives_the_snapshots_of_a_source_that_is_gone() {
    for way in ["gone", "put", "snapshot", "overwritten", "restored", "restored and all deleted"] {
        let (ground, keeps) = (Ground::with_container().await, Arc::new(Switch::default()));
        let ground = Ground { service: ground.service.clone().retaining(keeps.clone()), ..ground };
        let (service, plain) = (&ground.service, Request::default());
        let keep = |on| keeps.0.store(on, Ordering::SeqCst);
        let content = bytes(1, 100_000);
        ground.put("b", &content).await;
        let (time, _) = service.snapshot_blob(&blob("b"), Metadata::default(), &plain).await.unwrap();
        service.copy_blob(&blob("c"), copy("b"), &plain).await.unwrap();
        let of_snapshot = DeleteBlob { which: Which::Snapshot(time), ..DeleteBlob::default() };
        keep(true);
        assert!(!service.delete_blob(&blob("b"), of_snapshot.clone(), &plain).await.unwrap().is_permanent);
        keep(false);
        assert!(service.delete_blob(&blob("b"), DeleteBlob::default(), &plain).await.unwrap().is_permanent);
        if way != "gone" {
            ground.put("b", &bytes(2, 100_000)).await;
        }
        match way {
            "snapshot" => {
                service.snapshot_blob(&blob("b"), Metadata::default(), &plain).await.unwrap();
            }
            "overwritten" => {
                keep(true);
                ground.put("b", &bytes(3, 100_000)).await;
                keep(false);
            }
            "restored" | "restored and all deleted" => service.undelete_blob(&blob("b")).await.unwrap(),
            _ => {}
        }
        let delete = match way {
            "restored" => of_snapshot,
            "restored and all deleted" => {
                DeleteBlob { snapshots: Some(DeleteSnapshots::Include), ..DeleteBlob::default() }
            }
            _ => DeleteBlob { is_permanent: true, ..of_snapshot },
        };
        assert!(service.delete_blob(&blob("b"), delete, &plain).await.unwrap().is_permanent, "{way}");
        assert!(ground.get("c").await == content, "{way}");
    }
}

#[tokio::test]
async fn a_blob_with_thousands_of_snapshots_is_read_a_page_at_a_time() {
    let counting = Rows::counting();
    let service = BlobService::new(counting.clone(), Arc::new(store::MemoryObjects::new()));
    let ground = Ground { service, ..Ground::new() };
    let plain = Request::default();
    ground
        .service
        .create_container(&container("abc"), Metadata::default(), blob_model::PublicAccess::None)
        .await
        .unwrap();
    let kept = Ground { service: ground.service.clone().retaining(Arc::new(Days(7))), ..Ground::new() };
    const SNAPSHOTS: usize = 1500;
    ground.put("b", &bytes(1, 10_000)).await;
    for _ in 0..SNAPSHOTS {
        ground.service.snapshot_blob(&blob("b"), Metadata::default(), &plain).await.unwrap();
    }
    counting.reset();
    let delete = |snapshots| DeleteBlob { snapshots, ..DeleteBlob::default() };
    assert_eq!(code(ground.service.delete_blob(&blob("b"), delete(None), &plain).await), "SnapshotsPresent");
    assert!(counting.examined() < 200, "the first one is enough");
    let all = BlobQuery { snapshots: true, limit: 5000, ..BlobQuery::default() };
    for _ in 0..2 {
        kept.service.delete_blob(&blob("b"), delete(Some(DeleteSnapshots::Include)), &plain).await.unwrap();
        kept.service.undelete_blob(&blob("b")).await.unwrap();
    }
    assert!(counting.largest() <= 100, "{} rows at once", counting.largest());
    assert_eq!(ground.list(&all).await.len(), SNAPSHOTS + 1);
    counting.reset();
    ground.service.delete_blob(&blob("b"), delete(Some(DeleteSnapshots::Only)), &plain).await.unwrap();
    assert!(ground.get("b").await == bytes(1, 10_000));
    ground.service.delete_blob(&blob("b"), delete(None), &plain).await.unwrap();
    assert!(counting.largest() <= 100, "{} rows at once", counting.largest());
    assert_eq!(names(&ground.list(&all).await), Vec::<String>::new());
}
