//! What several clients see at the same time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use blob_model::{BlockChoice, BlockId, Conditions, Etag, LeaseAction, LeaseDuration, Matches, Metadata};
use blob_service::{
    CopyBlob, CopySource, CopyTags, DeleteBlob, DeleteSnapshots, Error, GetBlob, NewBlob, Request, Which,
};

use crate::kit::{Ground, Pieces, blob, checks, drain, lease, leased, refused};

/// Two chunks and a bit, or a row.
const LENGTHS: [usize; 3] = [2_200_000, 4000, 70_000];

/// Content that is all of one number.
fn content(number: u8) -> Vec<u8> {
    vec![number; LENGTHS[usize::from(number) % LENGTHS.len()]]
}

/// Reads a state whole, and says its ETag and its number; `None` if it is not there.
async fn read(ground: &Ground, name: &str) -> Option<(Etag, u8)> {
    let plain = Request::default();
    match ground.service.get_blob(&blob(name), Which::Current, GetBlob::default(), &plain).await {
        Ok(download) => {
            let etag = download.properties.etag;
            let length = download.properties.length;
            // Others overwrite it meanwhile.
            tokio::task::yield_now().await;
            let bytes = drain(download.content).await;
            assert_eq!(bytes.len() as u64, length);
            assert!(bytes.iter().all(|byte| *byte == bytes[0]), "a mix of two versions");
            assert_eq!(bytes.len(), content(bytes[0]).len());
            Some((etag, bytes[0]))
        }
        Err(Error::Refused(refusal)) => {
            assert_eq!(refusal.code(), "BlobNotFound");
            None
        }
        Err(Error::Fault(fault)) => panic!("{fault:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_reader_never_sees_a_mix_of_two_versions() {
    let ground = Arc::new(Ground::with_container().await);
    let (is_over, told) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(HashMap::new())));
    let readers: Vec<_> = (0..3)
        .map(|_| {
            let (ground, is_over) = (ground.clone(), is_over.clone());
            tokio::spawn(async move {
                let mut seen = Vec::new();
                while !is_over.load(Ordering::SeqCst) {
                    // Nothing in memory waits, and writers need a turn, too.
                    tokio::task::yield_now().await;
                    seen.extend(read(&ground, "b").await);
                    seen.extend(read(&ground, "copy").await);
                }
                seen
            })
        })
        .collect();
    let writers: Vec<_> = (0..3_u8)
        .map(|writer| {
            let (ground, told) = (ground.clone(), told.clone());
            tokio::spawn(async move {
                for n in 0..12 {
                    let number = writer * 12 + n;
                    let etag = ground.put("b", &content(number)).await;
                    told.lock().unwrap().insert(etag, number);
                    let plain = Request::default();
                    match n % 4 {
                        0 => {
                            // May have been deleted by another one.
                            let _ =
                                ground.service.snapshot_blob(&blob("b"), Metadata::default(), &plain).await;
                        }
                        1 => {
                            let copy = CopyBlob {
                                source: CopySource {
                                    blob: blob("b"),
                                    which: Which::Current,
                                    conditions: Conditions::default(),
                                    shown: String::new(),
                                },
                                metadata: Metadata::default(),
                                tags: CopyTags::Copy,
                                tier: None,
                                priority: None,
                                seal: None,
                                is_sync: false,
                                source_md5: None,
                            };
                            if let Err(error) = ground.service.copy_blob(&blob("copy"), copy, &plain).await {
                                assert_eq!(refused::<()>(Err(error)).code(), "BlobNotFound");
                            }
                        }
                        2 => {
                            let snapshots = Some(DeleteSnapshots::Include);
                            let delete = DeleteBlob { snapshots, ..DeleteBlob::default() };
                            let _ = ground.service.delete_blob(&blob("b"), delete, &plain).await;
                        }
                        _ => {}
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    is_over.store(true, Ordering::SeqCst);
    let told = told.lock().unwrap().clone();
    let mut seen = 0;
    for reader in readers {
        for (etag, number) in reader.await.unwrap() {
            // Copies have ETags of their own.
            assert!(told.get(&etag).is_none_or(|told| *told == number), "{etag} was told with other content");
            seen += 1;
        }
    }
    assert!(seen > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lease_is_held_by_one() {
    let ground = Arc::new(Ground::with_container().await);
    ground.put("b", b"x").await;
    for round in 0..20 {
        let clients: Vec<_> = (1..=6)
            .map(|client| {
                let ground = ground.clone();
                tokio::spawn(async move {
                    let duration = LeaseDuration::Infinite;
                    let action =
                        LeaseAction::Acquire { duration, proposed: Some(lease(client)), fresh: lease(99) };
                    let acquired =
                        ground.service.lease_blob(&blob("b"), action, Conditions::default()).await.is_ok();
                    let wrote = ground.try_put("b", &[client], &leased(client)).await.is_ok();
                    assert_eq!(acquired, wrote, "whoever holds it can write, and nobody else");
                    acquired.then_some(client)
                })
            })
            .collect();
        let mut holders = Vec::new();
        for client in clients {
            holders.extend(client.await.unwrap());
        }
        assert_eq!(holders.len(), 1, "round {round}");
        assert_eq!(ground.get("b").await, [holders[0]]);
        let release = LeaseAction::Release { id: lease(holders[0]) };
        ground.service.lease_blob(&blob("b"), release, Conditions::default()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_commits_of_a_new_blob_one_is_acknowledged_and_is_there() {
    let ground = Arc::new(Ground::with_container().await);
    for round in 0..10 {
        let name = format!("b{round}");
        for n in 0..6_u8 {
            let id = BlockId::of_bytes(&[n]).unwrap();
            let body = &mut Pieces(vec![n; 5000], 9000);
            ground.service.put_block(&blob(&name), id, checks(), None, body).await.unwrap();
        }
        let commits: Vec<_> = (0..6_u8)
            .map(|n| {
                let (ground, name) = (ground.clone(), name.clone());
                tokio::spawn(async move {
                    let conditions =
                        Conditions { if_none_match: Some(Matches::Anything), ..Conditions::default() };
                    let request = Request { conditions, lease: None };
                    let list = [(BlockChoice::Latest, BlockId::of_bytes(&[n]).unwrap())];
                    let put = ground
                        .service
                        .put_block_list(&blob(&name), &list, NewBlob::default(), &request)
                        .await;
                    put.is_ok().then_some(n)
                })
            })
            .collect();
        let mut done = Vec::new();
        for commit in commits {
            done.extend(commit.await.unwrap());
        }
        assert_eq!(done.len(), 1);
        assert!(ground.get(&name).await == vec![done[0]; 5000]);
    }
}
