//! The same of the service itself: its operations step by step, in orders that a seed decides, with crashes and sweeps.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use blob_model::{
    BlobName, BlobProperties, BlockChoice, BlockId, Conditions, Md5, Metadata, PageRange, PublicAccess,
    SequenceCondition, SequenceNumber, Tags,
};
use blob_service::content::{Contents, Named, named_by};
use blob_service::{
    BlobEntry, BlobQuery, BlobRef, BlobService, CopyBlob, CopySource, CopyTags, DeleteBlob, DeleteSnapshots,
    Error, GetBlob, NewBlob, NewPageBlob, PageWrite, Request, SetProperties, Which,
};
use model::KeyRange;
use store::{Budget, Engine, MemoryObjects, ObjectId, Objects, Scan};
use store_suite::TestEngine;
use tokio::task::JoinHandle;

use super::actors::fail;
use super::table;
use crate::interleaving::{SteppedEngine, SteppedObjects, Steps};
use crate::kit::{Pieces, Random, VirtualTime, checks, container, drain, setting};

const CONTAINERS: [&str; 2] = ["one", "two"];
/// Page blobs, append blobs and block blobs have names of their own, so that few acts are refused.
const BLOCK: [&str; 2] = ["a", "b"];
const PAGES: [&str; 2] = ["p", "q"];
const APPEND: [&str; 2] = ["l", "m"];
const SEGMENT: u64 = 4 << 20;
/// The engine stamps rows with the time of day. The service's clock is behind it, so that no row is old before the end.
const BEHIND: Duration = Duration::from_secs(400 * 24 * 3600);

fn blob(container_name: &str, name: &str) -> BlobRef {
    BlobRef::new(container(container_name), BlobName::parse(name).unwrap())
}

fn new_service(
    engine: &Arc<TestEngine<SteppedEngine>>,
    objects: &Arc<SteppedObjects>,
    time: &VirtualTime,
) -> BlobService {
    BlobService::new(engine.clone(), objects.clone()).timed(time.clock())
}

fn page_write(from: u64, to: u64) -> PageWrite {
    let range = PageRange::new(from * 512, to * 512).unwrap();
    PageWrite { range, sequence: SequenceCondition::default() }
}

/// What clients of one life do, and where: some do little else than the same, so that they meet.
#[derive(Clone, Debug)]
struct Habits {
    containers: &'static [&'static str],
    names: usize,
    kinds: Vec<usize>,
}

impl Habits {
    fn random(random: &mut Random) -> Self {
        let all: Vec<usize> = (0..16).collect();
        let blocks = vec![2, 2, 3, 4, 5, random.below(16)];
        let some = (0..5).map(|_| random.below(16)).chain([0, 15]).collect();
        let kinds = match random.below(3) {
            0 => all,
            1 => blocks,
            _ => some,
        };
        let containers = random.of(&[&CONTAINERS[..1], &CONTAINERS]);
        Self { containers, names: 1 + random.below(2), kinds }
    }
}

/// One act of a client. What is refused is refused; a fault is a failure.
async fn act(service: BlobService, habits: Habits, mut random: Random, tag: u8) {
    let none = Request::default();
    let Habits { containers, names, kinds } = habits;
    let container = random.of(containers);
    let length = random.of(&[10, 3000, 5000, 9000]);
    let content = vec![tag; length];
    let body = &mut Pieces(content, 2500);
    let (block, pages, append) =
        (random.of(&BLOCK[..names]), random.of(&PAGES[..names]), random.of(&APPEND[..names]));
    let any = random.of(&[block, pages, append]);
    let at = blob(container, any);
    let done: Result<(), Error> = match random.of(&kinds) {
        0 | 1 => {
            let at = blob(container, block);
            service.put_block_blob(&at, NewBlob::default(), checks(), &none, body).await.map(drop)
        }
        2 | 3 => {
            let id = BlockId::of_bytes(&[random.below(3) as u8]).unwrap();
            service.put_block(&blob(container, block), id, checks(), None, body).await.map(drop)
        }
        4 | 5 => {
            let all = [0, 1, 2].map(|id| (BlockChoice::Latest, BlockId::of_bytes(&[id]).unwrap()));
            let some = &all[..=random.below(3)];
            service.put_block_list(&blob(container, block), some, NewBlob::default(), &none).await.map(drop)
        }
        6 => {
            let at = blob(container, append);
            let made = service.append_block(&at, checks(), Default::default(), &none, body).await.map(drop);
            if made.is_err() && random.below(2) == 0 {
                let _ = service.put_append_blob(&at, NewBlob::default(), &none).await;
            }
            made
        }
        7 | 8 => {
            let at = blob(container, pages);
            let from = random.of(&[0, 1, SEGMENT / 512 - 2, SEGMENT / 512]);
            let write = page_write(from, from + 4);
            let body = &mut Pieces(vec![tag; 2048], 1000);
            let made = service.put_pages(&at, write, checks(), &none, body).await.map(drop);
            if made.is_err() {
                let sequence_number = SequenceNumber::default();
                let new = NewPageBlob { new: NewBlob::default(), length: 2 * SEGMENT, sequence_number };
                let _ = service.put_page_blob(&at, new, &none).await;
            }
            made
        }
        9 if random.below(2) == 0 => {
            let set =
                SetProperties { length: Some(random.of(&[1, 2]) * SEGMENT), ..SetProperties::default() };
            service.set_blob_properties(&blob(container, pages), set, &none).await.map(drop)
        }
        9 => service.clear_pages(&blob(container, pages), page_write(0, 3), &none).await.map(drop),
        10 | 11 => service.snapshot_blob(&at, Metadata::default(), &none).await.map(drop),
        12 => {
            let source = CopySource {
                blob: blob(random.of(containers), random.of(&[any, block, pages, append])),
                which: Which::Current,
                conditions: Conditions::default(),
                shown: String::new(),
            };
            let copy = CopyBlob {
                source,
                metadata: Metadata::default(),
                tags: CopyTags::Replace(Tags::default()),
                tier: None,
                priority: None,
                seal: None,
                is_sync: false,
                source_md5: None,
            };
            service.copy_blob(&at, copy, &none).await.map(drop)
        }
        13 => {
            let snapshots = random.of(&[DeleteSnapshots::Include, DeleteSnapshots::Only]);
            let delete = DeleteBlob { snapshots: Some(snapshots), ..DeleteBlob::default() };
            service.delete_blob(&at, delete, &none).await.map(drop)
        }
        14 => read(&service, &at, Which::Current).await.map(drop),
        _ => service.sweep().await.map(drop),
    };
    if let Err(Error::Fault(fault)) = done
        && fault.kind() != store::FaultKind::Busy
    {
        fail(fault.to_string());
    }
}

/// The whole of a blob. What Put Blob has stored has an MD5, which must be that of what is read.
async fn read(service: &BlobService, blob: &BlobRef, which: Which) -> Result<Vec<u8>, Error> {
    let download = service.get_blob(blob, which, GetBlob::default(), &Request::default()).await?;
    let BlobProperties { length, content: headers, .. } = download.properties;
    let all = drain(download.content).await;
    if all.len() as u64 != length || headers.md5.is_some_and(|md5| md5 != Md5::of(&all)) {
        fail(format!("{blob} has other bytes than were written"));
    }
    Ok(all)
}

/// All that clients can see.
async fn everything(service: &BlobService) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for name in CONTAINERS {
        let query = BlobQuery { limit: 1000, snapshots: true, ..BlobQuery::default() };
        for entry in service.list_blobs(&container(name), &query).await.unwrap().entries {
            let BlobEntry::Blob(listed) = entry else { continue };
            let which = listed.snapshot.map_or(Which::Current, Which::Snapshot);
            let content = read(service, &blob(name, &listed.name), which).await.unwrap();
            all.insert(format!("{name}/{}@{which:?}", listed.name), content);
        }
    }
    all
}

/// Everything that blobs name is there. Rows of blocks may be of uploads that are over. Returns the objects that are there.
async fn check_named(engine: &SteppedEngine, objects: &Arc<MemoryObjects>) -> Vec<ObjectId> {
    let contents = Contents::new(objects.clone(), Arc::new(blob_service::Clock::system()));
    let mut all = Vec::new();
    for name in CONTAINERS {
        let time = Duration::from_secs(3600);
        let budget = Budget { rows: usize::MAX, bytes: usize::MAX, time, examined: u64::MAX };
        let scan = Scan { ranges: vec![KeyRange::all()], budget, filter: None, lasts: false };
        let page = engine.inner.scan(&table(name), scan).await.unwrap();
        for stored in page.entities.iter() {
            let place = format!("{name} {} {}", stored.partition, stored.row_key);
            let needed = match named_by(stored.row).unwrap() {
                Named::Nothing => continue,
                Named::Content(content) => contents.objects_of(&content).await.expect(&place),
                Named::Segment(segment) => segment.objects(),
            };
            for object in needed {
                let is_there = objects.get(object, 0).await.unwrap().is_some();
                assert!(is_there || stored.partition.starts_with('u'), "{place} has lost {object}");
                all.extend(is_there.then_some(object));
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

async fn live(seed: u64, acts: usize) {
    let mut random = Random::new(seed);
    let habits = Habits::random(&mut random);
    let steps = Steps::default();
    let time = VirtualTime::new();
    time.go_back(BEHIND);
    let engine = Arc::new(TestEngine(SteppedEngine { steps: steps.clone(), ..SteppedEngine::default() }));
    let objects = Arc::new(SteppedObjects { steps: steps.clone(), ..SteppedObjects::default() });
    let mut service = new_service(&engine, &objects, &time);
    for name in CONTAINERS {
        service.create_container(&container(name), Metadata::default(), PublicAccess::None).await.unwrap();
    }
    let (mut begun, mut tasks, mut gone) = (0, Vec::new(), Vec::new());
    while begun < acts {
        match random.below(100) {
            0..12 => {
                begun += 1;
                let choices = Random::new(seed.wrapping_mul(1000).wrapping_add(begun as u64));
                tasks.push(tokio::spawn(act(service.clone(), habits.clone(), choices, begun as u8)));
            }
            12..15 => time.pass(Duration::from_secs(3600 * random.below(12) as u64)),
            15 if random.below(4) == 0 => {
                steps.crash().await;
                // Nobody can end these requests any more: what they hold is held for ever.
                gone.append(&mut tasks);
                service = new_service(&engine, &objects, &time);
            }
            // A client is gone, and its request with it.
            16 if !tasks.is_empty() => {
                let request: &JoinHandle<()> = &tasks[random.below(tasks.len())];
                request.abort();
            }
            _ => {
                steps.step(&mut random).await;
            }
        }
        if random.below(8) == 0 {
            check_named(&engine, &objects.inner).await;
        }
    }
    while steps.step(&mut random).await {}
    for task in tasks.into_iter().chain(gone) {
        // The others were in a process that is gone.
        if task.is_finished() {
            let panicked = task.await.err().filter(|error| error.is_panic());
            assert!(panicked.is_none(), "{panicked:?}");
        }
    }
    steps.turn_off();
    let before = everything(&service).await;
    time.pass(BEHIND + Duration::from_secs(30 * 24 * 3600));
    service.sweep().await.unwrap();
    // A row may go because another one is gone.
    service.sweep().await.unwrap();
    assert!(before == everything(&service).await, "seed {seed}: a sweep has changed what clients see");
    let named = check_named(&engine, &objects.inner).await;
    let there = objects.inner.list(ObjectId::FIRST, usize::MAX).await.unwrap().objects;
    assert_eq!(there, named, "seed {seed}: something stays that no row names");
}

#[test]
fn the_service_loses_nothing_and_leaves_nothing() {
    let lives = setting("PARTITA_GARBAGE_LIVES", 40);
    let first = setting("PARTITA_GARBAGE_SEED", 1);
    for seed in first..first + lives {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(live(seed, 60));
        assert_eq!(super::actors::take_failures(), Vec::<String>::new(), "seed {seed}");
    }
}
