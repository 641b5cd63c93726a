//! Blocks, uncommitted and committed; append blobs.

use std::sync::Arc;

use blob_model::{BlockChoice, BlockId, Crc64, Etag, Md5, Refusal};
use blob_service::{AppendCondition, BlobQuery, BlockListQuery, DeleteBlob, Error, NewBlob, Request, Which};
use bytes::Bytes;

use crate::kit::{Ground, Pieces, blob, bytes, checks, leased, names, refused};

fn id(text: &str) -> BlockId {
    BlockId::of_bytes(text.as_bytes()).unwrap()
}

fn code<T: std::fmt::Debug>(outcome: Result<T, Error>) -> &'static str {
    refused(outcome).code()
}

async fn put_block(ground: &Ground, name: &str, block: &str, content: &[u8]) -> Result<(), Error> {
    let body = &mut Pieces(content.to_vec(), 70_000);
    ground.service.put_block(&blob(name), id(block), checks(), None, body).await.map(drop)
}

async fn commit(ground: &Ground, name: &str, list: &[(BlockChoice, &str)]) -> Result<Etag, Error> {
    let list: Vec<_> = list.iter().map(|(choice, block)| (*choice, id(block))).collect();
    ground.service.put_block_list(&blob(name), &list, NewBlob::default(), &Request::default()).await
}

/// `id:bytes` of both lists.
async fn listed(ground: &Ground, name: &str) -> Result<(Vec<String>, Vec<String>), Error> {
    let query = BlockListQuery { which: Which::Current, committed: true, uncommitted: true };
    let lists = ground.service.block_list(&blob(name), query, &Request::default()).await?;
    let show = |blocks: Vec<blob_model::ListedBlock>| {
        let text = |id: &BlockId| String::from_utf8_lossy(id.as_bytes()).into_owned();
        blocks.iter().map(|block| format!("{}:{}", text(&block.id), block.bytes)).collect()
    };
    Ok((show(lists.committed), show(lists.uncommitted)))
}

const COMMITTED: BlockChoice = BlockChoice::Committed;
const UNCOMMITTED: BlockChoice = BlockChoice::Uncommitted;
const LATEST: BlockChoice = BlockChoice::Latest;

#[tokio::test]
async fn blocks_become_a_blob_in_the_order_of_their_list() {
    let ground = Ground::with_container().await;
    for (block, seed) in [("bb", 1), ("aa", 2), ("cc", 3)] {
        put_block(&ground, "b", block, &bytes(seed, 100_000)).await.unwrap();
    }
    assert_eq!(code(ground.properties("b").await), "BlobNotFound", "nothing is committed");
    assert_eq!(listed(&ground, "b").await.unwrap().1, ["aa:100000", "bb:100000", "cc:100000"]);
    commit(&ground, "b", &[(LATEST, "bb"), (UNCOMMITTED, "aa"), (LATEST, "bb")]).await.unwrap();
    let expected = [bytes(1, 100_000), bytes(2, 100_000), bytes(1, 100_000)].concat();
    assert!(ground.get("b").await == expected);
    assert_eq!(ground.properties("b").await.unwrap().content.md5, None);
    assert_eq!(
        listed(&ground, "b").await.unwrap(),
        (vec!["bb:100000".into(), "aa:100000".into(), "bb:100000".into()], vec![])
    );
    assert_eq!(ground.objects().await, 2, "what was not named is dropped");

    // The old blocks with a new one.
    put_block(&ground, "b", "aa", b"new").await.unwrap();
    commit(&ground, "b", &[(COMMITTED, "aa"), (LATEST, "aa"), (COMMITTED, "bb")]).await.unwrap();
    let expected = [&bytes(2, 100_000)[..], b"new", &bytes(1, 100_000)].concat();
    assert!(ground.get("b").await == expected);
    assert_eq!(ground.objects().await, 3);
    ground.put("b", b"small").await;
    assert_eq!((ground.objects().await, listed(&ground, "b").await.unwrap()), (0, (vec![], vec![])));
}

#[tokio::test]
async fn a_list_with_an_unknown_block_changes_nothing() {
    let ground = Ground::with_container().await;
    put_block(&ground, "b", "aa", b"one").await.unwrap();
    for list in [[(COMMITTED, "aa")], [(LATEST, "zz")], [(UNCOMMITTED, "a")]] {
        assert_eq!(code(commit(&ground, "b", &list).await), "InvalidBlockList", "{list:?}");
    }
    assert_eq!(listed(&ground, "b").await.unwrap().1, ["aa:3"]);
    commit(&ground, "b", &[]).await.unwrap();
    assert_eq!(
        (ground.get("b").await, ground.objects().await),
        (vec![], 0),
        "an empty list makes an empty blob"
    );
    let long = vec![(LATEST, "aa"); 50_001];
    assert_eq!(code(commit(&ground, "b", &long).await), "BlockListTooLong");
}

#[tokio::test]
async fn blocks_are_refused_as_the_service_does() {
    let ground = Ground::with_container().await;
    put_block(&ground, "b", "aa", b"one").await.unwrap();
    assert_eq!(code(put_block(&ground, "b", "a", b"one").await), "InvalidBlobOrBlock", "ids of one length");
    assert_eq!(code(put_block(&ground, "b", "bb", b"").await), "InvalidHeaderValue");
    // The same id replaces what was put.
    put_block(&ground, "b", "aa", b"other").await.unwrap();
    assert_eq!((listed(&ground, "b").await.unwrap().1, ground.objects().await), (vec!["aa:5".to_owned()], 1));
    ground.service.put_append_blob(&blob("append"), NewBlob::default(), &Request::default()).await.unwrap();
    assert_eq!(code(put_block(&ground, "append", "aa", b"one").await), "InvalidBlobType");
    assert_eq!(code(commit(&ground, "append", &[]).await), "InvalidBlobType");
    assert_eq!(code(listed(&ground, "append").await), "InvalidBlobType");
    assert_eq!(code(listed(&ground, "none").await), "BlobNotFound");
    let body = &mut Some(Bytes::from_static(b"x"));
    let outcome =
        ground.service.put_block(&blob("b"), id("cc"), checks(), Some(crate::kit::lease(1)), body).await;
    assert_eq!(code(outcome), "LeaseNotPresentWithBlobOperation");
    tokio::task::yield_now().await;
    assert_eq!(ground.objects().await, 1);
}

#[tokio::test]
async fn an_uncommitted_blob_is_listed_if_asked_for_and_can_be_deleted() {
    let ground = Ground::with_container().await;
    put_block(&ground, "b", "aa", b"one").await.unwrap();
    let query = BlobQuery { limit: 10, ..BlobQuery::default() };
    assert_eq!(names(&ground.list(&query).await), Vec::<String>::new());
    assert_eq!(names(&ground.list(&BlobQuery { uncommitted: true, ..query }).await), ["b?"]);
    ground.service.delete_blob(&blob("b"), DeleteBlob::default(), &Request::default()).await.unwrap();
    assert_eq!(ground.objects().await, 0);
    assert_eq!(code(listed(&ground, "b").await), "BlobNotFound");
}

#[tokio::test]
async fn blocks_survive_a_restart() {
    let ground = Ground::with_container().await;
    put_block(&ground, "b", "aa", b"one").await.unwrap();
    let again = ground.again();
    put_block(&again, "b", "bb", b"two").await.unwrap();
    commit(&again, "b", &[(LATEST, "aa"), (LATEST, "bb")]).await.unwrap();
    assert_eq!(ground.again().get("b").await, b"onetwo");
}

#[tokio::test]
async fn thousands_of_blocks_read_back() {
    let ground = Ground::with_container().await;
    let name = |n: usize| format!("{n:05}");
    const BLOCKS: usize = 2500;
    for n in 0..BLOCKS {
        put_block(&ground, "b", &name(n), &bytes(n as u64, 7)).await.unwrap();
    }
    let ids: Vec<String> = (0..BLOCKS).rev().map(name).collect();
    let list: Vec<_> = ids.iter().map(|id| (LATEST, id.as_str())).collect();
    commit(&ground, "b", &list).await.unwrap();
    let expected: Vec<u8> = (0..BLOCKS).rev().flat_map(|n| bytes(n as u64, 7)).collect();
    assert!(ground.get("b").await == expected);
    assert_eq!(ground.objects().await, BLOCKS + 3, "and three manifests");
    assert_eq!(listed(&ground, "b").await.unwrap().0.len(), BLOCKS);
    // Every second one of the committed ones.
    let half: Vec<_> = ids.iter().step_by(2).map(|id| (COMMITTED, id.as_str())).collect();
    commit(&ground, "b", &half).await.unwrap();
    assert_eq!(ground.get("b").await.len(), 7 * BLOCKS / 2);
    assert_eq!(ground.objects().await, BLOCKS / 2 + 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn parallel_blocks_are_all_there() {
    let ground = Arc::new(Ground::with_container().await);
    let tasks: Vec<_> = (0..64)
        .map(|n| {
            let ground = ground.clone();
            tokio::spawn(async move {
                put_block(&ground, "b", &format!("{n:02}"), &bytes(n, 5000)).await.unwrap();
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let ids: Vec<String> = (0..64).map(|n| format!("{n:02}")).collect();
    let list: Vec<_> = ids.iter().map(|id| (UNCOMMITTED, id.as_str())).collect();
    commit(&ground, "b", &list).await.unwrap();
    assert!(ground.get("b").await == (0..64).flat_map(|n| bytes(n, 5000)).collect::<Vec<_>>());
}

async fn append(
    ground: &Ground,
    content: &[u8],
    condition: AppendCondition,
) -> Result<blob_service::Appended, Error> {
    let body = &mut Pieces(content.to_vec(), 1 << 20);
    ground.service.append_block(&blob("a"), checks(), condition, &Request::default(), body).await
}

#[tokio::test]
async fn appends_are_told_where_they_begin() {
    let ground = Ground::with_container().await;
    ground.service.put_append_blob(&blob("a"), NewBlob::default(), &Request::default()).await.unwrap();
    let mut expected = Vec::new();
    for (n, length) in [1, 5000, 3, 4096, 2_000_000, 10].into_iter().enumerate() {
        let content = bytes(n as u64, length);
        let appended = append(&ground, &content, AppendCondition::default()).await.unwrap();
        assert_eq!((appended.offset, appended.blocks), (expected.len() as u64, n as u32 + 1));
        assert_eq!((appended.sums.crc64, appended.sums.md5), (Crc64::of(&content), None));
        expected.extend(content);
        assert!(ground.get("a").await == expected);
    }
    let at = |position| AppendCondition { position: Some(position), max_size: None };
    assert_eq!(code(append(&ground, b"x", at(5)).await), "AppendPositionConditionNotMet");
    let small = AppendCondition { position: None, max_size: Some(expected.len() as u64) };
    assert_eq!(code(append(&ground, b"x", small).await), "MaxBlobSizeConditionNotMet");
    assert!(append(&ground, b"x", at(expected.len() as u64)).await.is_ok());
    assert_eq!(code(append(&ground, b"", AppendCondition::default()).await), "InvalidHeaderValue");
    assert_eq!(
        code(ground.service.seal_blob(&blob("a"), at(1), &Request::default()).await),
        "AppendPositionConditionNotMet"
    );
    ground.service.seal_blob(&blob("a"), AppendCondition::default(), &Request::default()).await.unwrap();
    assert_eq!(code(append(&ground, b"x", AppendCondition::default()).await), "BlobIsSealed");
    assert_eq!(
        code(ground.service.seal_blob(&blob("a"), AppendCondition::default(), &leased(1)).await),
        "LeaseNotPresentWithBlobOperation"
    );
    let (plain, appended, other) = (Request::default(), blob("a"), blob("b"));
    let wrong = blob_service::BodyChecks { md5: Some(Md5([0; 16])), ..checks() };
    let body = &mut Pieces(b"x".to_vec(), 1);
    ground.service.put_append_blob(&blob("a"), NewBlob::default(), &Request::default()).await.unwrap();
    let outcome = ground.service.append_block(&appended, wrong, AppendCondition::default(), &plain, body);
    assert_eq!(code(outcome.await), "Md5Mismatch");
    ground.put("b", b"").await;
    let body = &mut Pieces(b"x".to_vec(), 1);
    let outcome = ground.service.append_block(&other, checks(), AppendCondition::default(), &plain, body);
    assert_eq!(code(outcome.await), "InvalidBlobType");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn appends_at_the_same_time_are_in_some_order() {
    let ground = Arc::new(Ground::with_container().await);
    ground.service.put_append_blob(&blob("a"), NewBlob::default(), &Request::default()).await.unwrap();
    let tasks: Vec<_> = (0..10)
        .map(|writer| {
            let ground = ground.clone();
            tokio::spawn(async move {
                let mut offsets = Vec::new();
                for n in 0..30 {
                    let content = bytes(writer * 100 + n, 1 + (n as usize * 37) % 900);
                    let appended = append(&ground, &content, AppendCondition::default()).await.unwrap();
                    offsets.push((appended.offset, content));
                }
                offsets
            })
        })
        .collect();
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.unwrap());
    }
    all.sort();
    let mut expected = Vec::new();
    for (offset, content) in all {
        assert_eq!(offset, expected.len() as u64);
        expected.extend(content);
    }
    assert!(ground.get("a").await == expected);
}

#[tokio::test]
async fn an_upload_has_a_hundred_thousand_blocks_at_most() {
    let ground = Ground::with_container().await;
    put_block(&ground, "b", "0000", b"one").await.unwrap();
    let table = store::TableRef {
        account: crate::kit::account(),
        service: blob_model::ServiceKind::Blob,
        name: store::StoredName::parse(blob_model::ServiceKind::Blob, "abc").unwrap(),
    };
    let budget = store::Budget {
        rows: 10,
        bytes: 1 << 20,
        time: std::time::Duration::from_secs(5),
        examined: u64::MAX,
    };
    let ranges = vec![model::KeyRange::partition("ub")];
    let scan = store::Scan { ranges, budget, filter: None, lasts: false };
    let page = ground.engine.scan(&table, scan).await.unwrap();
    let first = page.entities.iter().next().unwrap();
    let upload = first.row_key.strip_suffix("30303030").unwrap();
    let content = first.row.value_of(b"C").unwrap().unwrap();
    // The others are put as rows: 99,998 more, four bytes each.
    let keys: Vec<String> = (1..99_999_u32).map(|n| format!("{upload}{n:08x}")).collect();
    for some in keys.chunks(100) {
        let operations = some.iter().map(|key| store::RowOperation {
            row: model::Key::parse_stored(key.as_str()).unwrap(),
            condition: store::Condition::Absent,
            change: store::Change::Put(store::RowDraft::new([("C", content)].into_iter())),
        });
        let partition = model::Key::parse_stored("ub").unwrap();
        let transaction = store::Transaction::new(partition, operations.collect()).unwrap();
        ground.engine.apply(&table, transaction).await.unwrap();
    }
    // Counted by a server that has not seen them put.
    let again = ground.again();
    put_block(&again, "b", "zzzz", b"one").await.unwrap();
    assert_eq!(code(put_block(&again, "b", "zzzy", b"one").await), "BlockCountExceedsLimit");
    put_block(&again, "b", "zzzz", b"two").await.unwrap();
    assert_eq!(listed(&again, "b").await.unwrap().1.len(), 100_000);
    commit(&again, "b", &[(LATEST, "zzzz")]).await.unwrap();
    assert_eq!((again.get("b").await, again.objects().await), (b"two".to_vec(), 1));
}

#[tokio::test]
async fn lists_of_many_blocks_are_read_within_the_memory_for_requests() {
    const BLOCKS: u16 = 1500;
    let memory = store::RequestMemory::new(1_000_000);
    let ground = Ground::with_container().await;
    let service = ground.service.clone().charging(memory.clone());
    for n in 0..BLOCKS {
        let body = &mut Pieces(b"x".to_vec(), 10);
        let id = BlockId::of_bytes(&n.to_be_bytes()).unwrap();
        service.put_block(&blob("b"), id, checks(), None, body).await.unwrap();
    }
    let both = BlockListQuery { which: Which::Current, committed: true, uncommitted: true };
    let list = async || service.block_list(&blob("b"), both, &Request::default()).await;
    let lists = list().await.unwrap();
    assert_eq!(lists.uncommitted.len(), usize::from(BLOCKS));
    assert!(memory.held() >= 100 * usize::from(BLOCKS), "{}", memory.held());
    drop(lists);
    assert_eq!(memory.held(), 0);
    let mut others = memory.nothing();
    assert!(others.grow(900_000));
    assert_eq!(refused(list().await), Refusal::Shared(common::Refusal::Busy));
    assert_eq!(memory.held(), 900_000);
    others.give_back();
    let all: Vec<_> =
        (0..BLOCKS).map(|n| (BlockChoice::Latest, BlockId::of_bytes(&n.to_be_bytes()).unwrap())).collect();
    service.put_block_list(&blob("b"), &all, NewBlob::default(), &Request::default()).await.unwrap();
    assert_eq!(list().await.unwrap().committed.len(), usize::from(BLOCKS));
    assert!(others.grow(900_000));
    assert_eq!(refused(list().await), Refusal::Shared(common::Refusal::Busy));
}
