//! A clock that is set forward by days while a sweep or a copy is under way: what is used stays.

use std::time::Duration;

use blob_service::{BlobService, CopyBlob, Error, Request};
use model::KeyRange;
use store::{Budget, Engine, Scan, StoredName, TableRef};

use crate::interleaving::Stepped;
use crate::kit::{Ground, Random, blob, refused};
use crate::page_copies::copy;
use crate::page_states::{PAGE, SEGMENT};

const DAYS: Duration = Duration::from_secs(2 * 24 * 3600);
const SEGMENTS: usize = 3;
/// More than any operation here makes.
const STEPS: usize = 80;

impl Stepped {
    /// A page blob whose segments all begin with a page of this byte. From here on the service's clock is behind no row.
    async fn with_pages(byte: u8, change: impl Fn(BlobService) -> BlobService) -> Self {
        let stepped = Self::new(change).await;
        let ground = &stepped.ground;
        let now = blob_model::DateTime::now();
        while ground.time.now() < now {
            ground.time.pass(Duration::from_secs(3600));
        }
        ground.put_page_blob(SEGMENTS * SEGMENT).await;
        for segment in 0..SEGMENTS {
            ground.put_pages(segment * SEGMENT, &[byte; PAGE]).await.unwrap();
        }
        stepped
    }

    /// Segments of page blobs that are stored, all that there are.
    async fn segments(&self) -> usize {
        let time = Duration::from_secs(60);
        let budget = Budget { rows: usize::MAX, bytes: usize::MAX, time, examined: u64::MAX };
        let scan = Scan { ranges: vec![KeyRange::all()], budget, filter: None, lasts: false };
        let service = model::ServiceKind::Blob;
        let name = StoredName::parse(service, "abc").unwrap();
        let table = TableRef { account: crate::kit::account(), service, name };
        let page = self.engine.inner.scan(&table, scan).await.unwrap();
        page.entities.iter().filter(|row| row.row_key.starts_with('p')).count()
    }
}

/// The first byte of each segment.
async fn first_bytes(ground: &Ground, name: &str) -> Vec<u8> {
    ground.get(name).await.into_iter().step_by(SEGMENT).collect()
}

#[tokio::test]
async fn a_sweep_keeps_what_a_snapshot_and_a_write_beside_it_need() {
    for steps in 0..STEPS {
        let stepped = Stepped::with_pages(1, |service| service).await;
        let ground = stepped.ground.clone();
        let mut random = Random::new(1);
        stepped.steps.turn_on();
        let sweeper = ground.service.clone();
        let sweep = tokio::spawn(async move { sweeper.sweep().await.map(drop).unwrap() });
        for _ in 0..steps {
            stepped.steps.step(&mut random).await;
        }
        stepped.steps.settle().await;
        stepped.steps.turn_off();
        ground.snapshot().await;
        for segment in 0..SEGMENTS {
            ground.put_pages(segment * SEGMENT, &[2; PAGE]).await.unwrap();
        }
        ground.time.pass(DAYS);
        stepped.steps.turn_on();
        stepped.finish(&mut random, vec![sweep]).await;
        assert_eq!(first_bytes(&ground, "b").await, [2; SEGMENTS], "after {steps} steps");
    }
}

/// A copy stands after so many steps, while the clock is set and a sweep is made.
async fn copy_beside_a_sweep(
    stepped: &Stepped,
    stands: impl AsyncFn(usize) -> bool,
    sweeper: &BlobService,
) -> Option<Result<(), Error>> {
    let ground = stepped.ground.clone();
    let mut random = Random::new(1);
    stepped.steps.turn_on();
    let copier = ground.clone();
    let (tell, told) = tokio::sync::oneshot::channel();
    let copies = tokio::spawn(async move {
        let copy = CopyBlob { is_sync: false, ..copy("b") };
        let copied = copier.service.copy_blob(&blob("copy"), copy, &Request::default()).await;
        let _ = tell.send(copied.map(drop));
    });
    let mut steps = 0;
    while !stands(steps).await {
        if copies.is_finished() {
            return None;
        }
        steps += 1;
        stepped.steps.step(&mut random).await;
        stepped.steps.settle().await;
    }
    stepped.steps.turn_off();
    ground.time.pass(DAYS);
    sweeper.sweep().await.unwrap();
    stepped.steps.turn_on();
    stepped.finish(&mut random, vec![copies]).await;
    Some(told.await.unwrap())
}

#[tokio::test]
async fn a_sweep_keeps_the_map_of_a_copy_under_way() {
    for stop in 0..STEPS {
        let stepped = Stepped::with_pages(1, |service| service).await;
        let sweeper = stepped.ground.service.clone();
        let outcome = copy_beside_a_sweep(&stepped, async |steps| steps == stop, &sweeper).await;
        let Some(copied) = outcome else { return };
        copied.unwrap();
        assert_eq!(first_bytes(&stepped.ground, "copy").await, [1; SEGMENTS], "after {stop} steps");
    }
    panic!("the copy makes more steps than that");
}

/// Another server does not know what this one copies.
#[tokio::test]
async fn a_copy_that_another_servers_sweep_may_have_seen_as_old_is_refused() {
    let stepped = Stepped::with_pages(1, |service| service.shared(true)).await;
    let (ground, before) = (stepped.ground.clone(), stepped.segments().await);
    let other = BlobService::new(ground.engine.clone(), ground.objects.clone());
    let other = other.timed(ground.time.clock()).shared(true);
    let has_rows = async |_| stepped.segments().await == before + SEGMENTS;
    let copied = copy_beside_a_sweep(&stepped, has_rows, &other).await.unwrap();
    assert_eq!(refused(copied).code(), "OperationTimedOut");
    assert_eq!(refused(ground.properties("copy").await).code(), "BlobNotFound");
    assert_eq!(first_bytes(&ground, "b").await, [1; SEGMENTS]);
}
