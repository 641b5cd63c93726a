//! Who reads a page blob while others change it hears of that only if what it reads has changed.

use blob_model::{ContentHeaders, LeaseAction, LeaseDuration, SequenceNumber, SequenceNumberAction};
use blob_service::{BlobContent, GetBlob, Request, SetProperties, Which};
use store::Fault;

use crate::kit::{Ground, blob, lease, metadata};
use crate::page_states::{PAGE, SEGMENT};

const SEGMENTS: usize = 40;
/// Far behind what a download reads ahead, and with a page, as every second one.
const LATE: usize = 38 * SEGMENT;

/// What is left of a download, whose pages are all in place.
async fn rest(mut content: BlobContent, mut at: usize) -> Result<usize, Fault> {
    while let Some(piece) = std::future::poll_fn(|context| content.as_mut().poll_next(context)).await {
        let piece = piece?;
        // A piece is shorter than a segment.
        let byte = piece.get(at.next_multiple_of(2 * SEGMENT) - at);
        assert!(byte.is_none_or(|byte| *byte == 1), "other pages than those of the ETag");
        at += piece.len();
    }
    Ok(at)
}

/// Downloads a blob that is changed after its first bytes.
async fn download_beside(change: impl AsyncFnOnce(&Ground)) -> Result<usize, Fault> {
    let ground = Ground::with_container().await;
    ground.put_page_blob(SEGMENTS * SEGMENT).await;
    for segment in (0..SEGMENTS).step_by(2) {
        ground.put_pages(segment * SEGMENT, &[1; PAGE]).await.unwrap();
    }
    let (get, plain) = (GetBlob::default(), Request::default());
    let download = ground.service.get_blob(&blob("b"), Which::Current, get, &plain).await.unwrap();
    let mut content = download.content;
    let first = std::future::poll_fn(|context| content.as_mut().poll_next(context)).await.unwrap()?;
    change(&ground).await;
    rest(content, first.len()).await
}

impl Ground {
    async fn set(&self, set: SetProperties) {
        self.service.set_blob_properties(&blob("b"), set, &Request::default()).await.unwrap();
    }

    async fn set_metadata(&self) {
        let pairs = metadata(&[("color", "red")]);
        self.service.set_blob_metadata(&blob("b"), pairs, &Request::default()).await.unwrap();
    }

    async fn snapshot_with_metadata(&self) {
        let pairs = metadata(&[("color", "blue")]);
        self.service.snapshot_blob(&blob("b"), pairs, &Request::default()).await.unwrap();
    }
}

#[tokio::test]
async fn a_download_goes_on_although_all_but_pages_changes() {
    let whole = SEGMENTS * SEGMENT;
    assert_eq!(download_beside(async |ground| ground.snapshot_with_metadata().await).await.unwrap(), whole);
    assert_eq!(download_beside(async |ground| ground.set_metadata().await).await.unwrap(), whole);
    let changed = download_beside(async |ground| {
        let headers = ContentHeaders { language: Some("de".to_owned()), ..ContentHeaders::default() };
        ground.set(SetProperties { content: Some(headers), ..SetProperties::default() }).await;
        let number = SequenceNumberAction::Max(SequenceNumber::new(7).unwrap());
        ground.set(SetProperties { sequence_number: Some(number), ..SetProperties::default() }).await;
        ground.resize((SEGMENTS + 1) * SEGMENT).await;
        ground.snapshot_with_metadata().await;
        // What the snapshot has stays as it is.
        ground.clear(LATE, LATE + PAGE).await.unwrap();
        let (duration, fresh) = (LeaseDuration::Infinite, lease(1));
        let action = LeaseAction::Acquire { duration, proposed: None, fresh };
        ground.service.lease_blob(&blob("b"), action, Default::default()).await.unwrap();
    });
    assert_eq!(changed.await.unwrap(), whole);
}

#[tokio::test]
async fn a_download_ends_if_its_pages_change() {
    let put = download_beside(async |ground| {
        ground.put_pages(LATE, &[2; PAGE]).await.unwrap();
    });
    put.await.unwrap_err();
    let cleared = download_beside(async |ground| {
        ground.clear(LATE, LATE + PAGE).await.unwrap();
    });
    cleared.await.unwrap_err();
    let cut = download_beside(async |ground| {
        ground.resize(LATE).await;
        ground.resize(SEGMENTS * SEGMENT).await;
    });
    cut.await.unwrap_err();
    let replaced = download_beside(async |ground| ground.put_page_blob(SEGMENTS * SEGMENT).await);
    replaced.await.unwrap_err();
    // Whatever comes behind the change.
    let hidden = download_beside(async |ground| {
        ground.clear(LATE, LATE + PAGE).await.unwrap();
        ground.set_metadata().await;
        ground.snapshot_with_metadata().await;
    });
    hidden.await.unwrap_err();
}
