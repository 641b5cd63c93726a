//! A reader sees one whole version, however often its blob is overwritten, cut off or deleted meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use blob_service::content::SWEPT_AGE;
use blob_service::{DeleteBlob, GetBlob, NewBlob, NewPageBlob, PageWrite, Request, Which};
use bytes::Bytes;

use crate::kit::{Ground, blob, checks, drain};

const BYTES: usize = 5 << 19;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_see_one_version_while_writers_overwrite_and_delete() {
    let ground = Arc::new(Ground::with_container().await);
    let is_over = Arc::new(AtomicBool::new(false));
    let read = Arc::new(AtomicUsize::new(0));
    let readers: Vec<_> = (0..6)
        .map(|_| {
            let (ground, is_over, read) = (ground.clone(), is_over.clone(), read.clone());
            tokio::spawn(async move {
                while !is_over.load(Ordering::SeqCst) {
                    // Nothing in memory waits, and writers need a turn, too.
                    tokio::task::yield_now().await;
                    let (blob, none) = (blob("b"), Request::default());
                    let get = GetBlob::default();
                    let download = ground.service.get_blob(&blob, Which::Current, get, &none).await;
                    // Deleted for a moment.
                    let Ok(download) = download else { continue };
                    let length = download.properties.length as usize;
                    let content = drain(download.content).await;
                    assert_eq!(content.len(), length);
                    assert!(content == vec![content[0]; length], "two versions in one download");
                    read.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    let writers: Vec<_> = (0..4_usize)
        .map(|writer| {
            let ground = ground.clone();
            tokio::spawn(async move {
                for round in 0..10 {
                    let content = vec![(writer * 10 + round) as u8; BYTES - writer * 1000];
                    let body = &mut Some(Bytes::from(content));
                    let (blob, none) = (blob("b"), Request::default());
                    let new = NewBlob::default();
                    ground.service.put_block_blob(&blob, new, checks(), &none, body).await.unwrap();
                    if round % 8 == writer {
                        let _ = ground.service.delete_blob(&blob, DeleteBlob::default(), &none).await;
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    ground.put("b", b"======").await;
    while read.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    is_over.store(true, Ordering::SeqCst);
    for reader in readers {
        reader.await.unwrap();
    }
    // What was replaced before its own writer was done is left to the sweep.
    ground.time.pass(SWEPT_AGE);
    ground.service.sweep().await.unwrap();
    assert_eq!(ground.objects().await, 0);
    assert_eq!(ground.service.content_counts().readers, 0);
}

/// Up to 64 MiB a download of a page blob is of one state.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_of_pages_see_one_version_too() {
    let ground = Arc::new(Ground::with_container().await);
    let new = NewPageBlob { new: NewBlob::default(), length: 4 << 20, sequence_number: Default::default() };
    ground.service.put_page_blob(&blob("p"), new, &Request::default()).await.unwrap();
    let writing = {
        let ground = ground.clone();
        tokio::spawn(async move {
            for round in 1..=20_u8 {
                let range = blob_model::PageRange::new(0, 2 << 20).unwrap();
                let write = PageWrite { range, sequence: Default::default() };
                let body = &mut Some(Bytes::from(vec![round; 2 << 20]));
                let (blob, none) = (blob("p"), Request::default());
                ground.service.put_pages(&blob, write, checks(), &none, body).await.unwrap();
            }
        })
    };
    while !writing.is_finished() {
        let content = ground.get_state("p", Which::Current).await.unwrap();
        let (written, empty) = content.split_at(2 << 20);
        assert!(written == vec![written[0]; written.len()], "two versions in one download");
        assert!(empty == vec![0; empty.len()]);
    }
    writing.await.unwrap();
}
