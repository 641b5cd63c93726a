//! What is compared before content is removed at once takes memory for requests. Where there is none, the sweep does it.

use std::sync::Arc;
use std::time::Duration;

use blob_model::{BlockChoice, BlockId, Metadata};
use blob_service::content::SWEPT_AGE;
use blob_service::{DeleteBlob, DeleteSnapshots, NewBlob, Request};
use store::RequestMemory;

use crate::kit::{Ground, Pieces, blob, bytes, checks};

/// Of each state: so many that a few states need more than what is free.
const BLOCKS: u8 = 60;

/// A blob `b` of many blocks with some snapshots, in a service that charges this memory.
async fn with_snapshots(memory: &Arc<RequestMemory>) -> Ground {
    let ground = Ground::with_container().await;
    let service = ground.service.clone().charging(memory.clone());
    let ground = Ground { service, ..ground };
    let mut blocks = Vec::new();
    for n in 0..BLOCKS {
        let id = BlockId::of_bytes(&[n; 64]).unwrap();
        let body = &mut Pieces(vec![n], 10);
        ground.service.put_block(&blob("b"), id.clone(), checks(), None, body).await.unwrap();
        blocks.push((BlockChoice::Latest, id));
    }
    let (service, none) = (&ground.service, Request::default());
    service.put_block_list(&blob("b"), &blocks, NewBlob::default(), &none).await.unwrap();
    for _ in 0..5 {
        service.snapshot_blob(&blob("b"), Metadata::default(), &none).await.unwrap();
    }
    ground
}

/// How many objects the next sweep removes.
async fn swept(ground: &Ground) -> u64 {
    ground.time.pass(SWEPT_AGE + Duration::from_secs(3600));
    ground.service.sweep().await.unwrap().objects.removed
}

#[tokio::test]
async fn without_memory_to_compare_snapshots_what_was_replaced_is_left_to_the_sweep() {
    let memory = RequestMemory::new(1_000_000);
    let ground = with_snapshots(&memory).await;
    let kept = usize::from(BLOCKS);
    ground.put("b", &bytes(1, 10_000)).await;
    let mut others = memory.nothing();
    assert!(others.grow(1_000_000));
    ground.put("b", b"small").await;
    assert_eq!(ground.objects().await, kept + 1, "nothing is removed at once");
    others.give_back();
    ground.put("b", &bytes(2, 10_000)).await;
    ground.put("b", b"small").await;
    assert_eq!(ground.objects().await, kept + 1, "with memory it is");
    assert_eq!(memory.held(), 0, "what was compared holds nothing any more");
    assert_eq!((swept(&ground).await, ground.objects().await), (1, kept));
}

#[tokio::test]
async fn without_memory_to_compare_them_deleted_snapshots_are_left_to_the_sweep() {
    let memory = RequestMemory::new(1_000_000);
    let ground = with_snapshots(&memory).await;
    let mut others = memory.nothing();
    assert!(others.grow(1_000_000));
    let delete = DeleteBlob { snapshots: Some(DeleteSnapshots::Include), ..DeleteBlob::default() };
    ground.service.delete_blob(&blob("b"), delete, &Request::default()).await.unwrap();
    assert_eq!(ground.objects().await, usize::from(BLOCKS), "nothing is removed at once");
    assert_eq!(memory.held(), 1_000_000);
    assert_eq!((swept(&ground).await, ground.objects().await), (u64::from(BLOCKS), 0));
}
