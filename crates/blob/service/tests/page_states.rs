//! Page blobs that are read while they change: what is read is what one ETag has, whatever falls between the reads of rows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use blob_model::limits::PAGE_BYTES;
use blob_model::{
    ByteRange, Conditions, Crc64, Etag, Matches, Md5, Metadata, PageRange, PublicAccess, SnapshotTime,
};
use blob_service::{
    BlobContent, BlobService, CopySource, DeleteBlob, Error, FoundPages, GetBlob, NewBlob, PageQuery,
    PutFromUrl, RangeChecksum, Request, Which,
};

use store::MemoryObjects;

use crate::interleaving::Stepped;
use crate::kit::{Ground, Random, Rows, blob, checks, container, drain, metadata, refused, setting};

pub const PAGE: usize = PAGE_BYTES as usize;
pub const SEGMENT: usize = 4 << 20;
const SEGMENTS: usize = 4;

/// What a page blob has: the pages that are not zeros, by where they begin, each all of one byte.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    length: usize,
    pages: BTreeMap<usize, u8>,
}

/// The length of what was read, and the first byte of all pages that tests write.
type Sample = (usize, Vec<u8>);

/// The first and the last page of each segment.
fn places(length: usize) -> impl Iterator<Item = usize> {
    let of = |segment| [segment * SEGMENT, (segment + 1) * SEGMENT - PAGE];
    (0..SEGMENTS).flat_map(of).filter(move |place| *place < length)
}

impl State {
    fn sample(&self) -> Sample {
        let bytes = places(self.length).map(|place| self.pages.get(&place).copied().unwrap_or(0));
        (self.length, bytes.collect())
    }
}

async fn sample(mut content: BlobContent) -> Sample {
    let (mut at, mut bytes) = (0, Vec::new());
    while let Some(piece) = std::future::poll_fn(|context| content.as_mut().poll_next(context)).await {
        let piece = piece.unwrap();
        bytes.extend(places(at + piece.len()).filter(|place| *place >= at).map(|place| piece[place - at]));
        at += piece.len();
    }
    (at, bytes)
}

fn metadata_of(color: &str) -> Metadata {
    metadata(&[("color", color)])
}

/// All states that the blob ever had, with their ETags.
type History = Arc<Mutex<Vec<(Etag, State)>>>;

/// The only one who changes the blob.
struct Writer {
    ground: Arc<Ground>,
    state: State,
    snapshots: Vec<SnapshotTime>,
    history: History,
    byte: u8,
}

impl Writer {
    /// The end of a segment and the begin of the next one, in one write.
    async fn write(&mut self, segment: usize) {
        let border = (segment + 1) * SEGMENT;
        self.byte += 1;
        if border + PAGE > self.state.length {
            return;
        }
        let put = self.ground.put_pages(border - PAGE, &[self.byte; 2 * PAGE]).await.unwrap();
        self.state.pages.extend([(border - PAGE, self.byte), (border, self.byte)]);
        self.told(put.etag);
    }

    async fn act(&mut self, random: &mut Random) {
        let segment = random.below(SEGMENTS - 1);
        match random.below(9) {
            0..3 => self.write(segment).await,
            3 => {
                let length =
                    random.of(&[segment * SEGMENT + PAGE, (segment + 1) * SEGMENT, SEGMENTS * SEGMENT]);
                self.state.length = length;
                self.state.pages.retain(|place, _| *place < length);
                let etag = self.ground.resize(length).await;
                self.told(etag);
            }
            4 | 5 => {
                let range = segment * SEGMENT..((segment + 2) * SEGMENT).min(self.state.length);
                if range.is_empty() {
                    return;
                }
                let cleared = self.ground.clear(range.start, range.end).await.unwrap();
                self.state.pages.retain(|place, _| !range.contains(place));
                self.told(cleared.etag);
            }
            6 => {
                let metadata = random.of(&[None, Some("blue")]);
                let metadata = metadata.map_or(Metadata::default(), metadata_of);
                let service = &self.ground.service;
                let taken = service.snapshot_blob(&blob("b"), metadata, &Request::default()).await;
                self.snapshots.push(taken.unwrap().0);
                self.write(segment).await;
            }
            7 => {
                let (service, metadata) = (&self.ground.service, metadata_of("red"));
                let set = service.set_blob_metadata(&blob("b"), metadata, &Request::default()).await;
                self.told(set.unwrap());
            }
            _ => {
                let Some(time) = self.snapshots.pop() else { return };
                let delete = DeleteBlob { which: Which::Snapshot(time), ..DeleteBlob::default() };
                self.ground.service.delete_blob(&blob("b"), delete, &Request::default()).await.unwrap();
            }
        }
    }

    fn told(&self, etag: Etag) {
        self.history.lock().unwrap().push((etag, self.state.clone()));
    }
}

/// What somebody has read; without an ETag, if none was told.
#[derive(Debug)]
enum Seen {
    Whole(Option<Etag>, Sample),
    /// Bytes from this place on, over the border of two segments.
    Part(Etag, usize, Vec<u8>),
    Pages(Etag, usize, Vec<usize>),
    Nothing,
}

impl Seen {
    fn is_of(&self, etag: Etag, state: &State) -> bool {
        match self {
            Self::Whole(told, sample) => told.is_none_or(|told| told == etag) && *sample == state.sample(),
            Self::Part(told, at, bytes) => {
                let all = (*at..state.length.min(at + 2 * PAGE)).step_by(PAGE);
                let expected = all.map(|place| state.pages.get(&place).copied().unwrap_or(0));
                *told == etag && bytes.iter().step_by(PAGE).copied().eq(expected)
            }
            Self::Pages(told, length, pages) => {
                *told == etag && *length == state.length && pages.iter().eq(state.pages.keys())
            }
            Self::Nothing => true,
        }
    }
}

async fn whole(ground: &Ground, which: Which, request: &Request) -> Result<Seen, Error> {
    let download = ground.service.get_blob(&blob("b"), which, GetBlob::default(), request).await?;
    let etag = download.properties.etag;
    let length = download.properties.length;
    let sample = sample(download.content).await;
    assert_eq!(sample.0 as u64, length);
    Ok(Seen::Whole(Some(etag), sample))
}

async fn part(ground: &Ground, segment: usize) -> Result<Seen, Error> {
    let from = (segment + 1) * SEGMENT - PAGE;
    let range = ByteRange::parse(&format!("bytes={from}-{}", from + 2 * PAGE - 1));
    let get = GetBlob { range, checksum: Some(RangeChecksum::Md5) };
    let download = ground.service.get_blob(&blob("b"), Which::Current, get, &Request::default()).await?;
    let (etag, sums) = (download.properties.etag, download.sums.unwrap());
    let bytes = drain(download.content).await;
    assert_eq!((sums.crc64, sums.md5), (Crc64::of(&bytes), Some(Md5::of(&bytes))), "of other bytes");
    Ok(Seen::Part(etag, from, bytes))
}

async fn ranges(ground: &Ground) -> Result<Seen, Error> {
    let told = ground.service.page_ranges(&blob("b"), PageQuery::default(), &Request::default()).await?;
    let pages = |found: &FoundPages| match found {
        FoundPages::Written(range) | FoundPages::Cleared(range) => pages_of(*range),
    };
    let length = usize::try_from(told.length).unwrap();
    Ok(Seen::Pages(told.etag, length, told.ranges.iter().flat_map(pages).collect()))
}

fn pages_of(range: PageRange) -> Vec<usize> {
    let at = |address| usize::try_from(address).unwrap();
    (at(range.start())..at(range.end())).step_by(PAGE).collect()
}

/// Put Blob From URL of it.
async fn put_of(ground: &Ground) -> Result<Seen, Error> {
    let source = CopySource {
        blob: blob("b"),
        which: Which::Current,
        conditions: Conditions::default(),
        shown: String::new(),
    };
    let put = PutFromUrl {
        source,
        new: NewBlob::default(),
        takes_headers: false,
        takes_tags: false,
        checks: checks(),
    };
    let plain = Request::default();
    ground.service.put_blob_from_url(&blob("put"), put, &plain).await?;
    let get = GetBlob::default();
    let download = ground.service.get_blob(&blob("put"), Which::Current, get, &plain).await?;
    Ok(Seen::Whole(None, sample(download.content).await))
}

/// Several snapshots, or none, and then one who changes the blob beside one who reads it.
async fn live(seed: u64, snapshots: usize) {
    let mut random = Random::new(seed);
    let stepped = Stepped::new(|service| service).await;
    let ground = stepped.ground.clone();
    let length = SEGMENTS * SEGMENT;
    ground.put_page_blob(length).await;
    let state = State { length, pages: BTreeMap::new() };
    let history = History::default();
    let mut writer = Writer { ground: ground.clone(), state, snapshots: Vec::new(), history, byte: 0 };
    for number in 0..snapshots {
        writer.write(number % (SEGMENTS - 1)).await;
        let time = ground.snapshot().await;
        writer.snapshots.push(time);
    }
    for segment in 0..random.of(&[1, 2, SEGMENTS - 1]) {
        writer.write(segment).await;
    }
    let last = writer.history.lock().unwrap().last().cloned();
    let first = last.as_ref().map(|(etag, _)| *etag).unwrap();
    let oldest = writer.snapshots.first().copied().filter(|_| snapshots > 2);
    let history = writer.history.clone();
    *history.lock().unwrap() = last.into_iter().collect();

    stepped.steps.turn_on();
    let (mut choices, kind, segment) =
        (Random::new(seed ^ 0x5eed), random.below(5), random.below(SEGMENTS - 1));
    let write = tokio::spawn(async move {
        for _ in 0..3 {
            writer.act(&mut choices).await;
        }
    });
    let seen = Arc::new(Mutex::new(Seen::Nothing));
    let (reader, told) = (ground.clone(), seen.clone());
    let read = tokio::spawn(async move {
        let conditions = Conditions { if_match: Some(Matches::OneOf(vec![first])), ..Conditions::default() };
        let outcome = match kind {
            0 => whole(&reader, Which::Current, &Request::default()).await,
            1 => whole(&reader, Which::Current, &Request { conditions, lease: None }).await,
            2 => part(&reader, segment).await,
            3 => ranges(&reader).await,
            _ => put_of(&reader).await,
        };
        *told.lock().unwrap() = match outcome {
            Ok(Seen::Whole(Some(etag), _)) if kind == 1 && etag != first => panic!("not the ETag asked for"),
            Ok(seen) => seen,
            Err(error) => {
                let code = refused::<()>(Err(error)).code();
                assert!(["ConditionNotMet", "InvalidRange"].contains(&code), "{code}");
                Seen::Nothing
            }
        };
    });
    stepped.finish(&mut random, vec![write, read]).await;
    let seen = std::mem::replace(&mut *seen.lock().unwrap(), Seen::Nothing);
    let history = history.lock().unwrap().clone();
    assert!(
        history.iter().any(|(etag, state)| seen.is_of(*etag, state)),
        "seed {seed}, {snapshots} snapshots: {seen:?} is none of {history:?}"
    );
    if let Some(oldest) = oldest
        && ground
            .service
            .blob_properties(&blob("b"), Which::Snapshot(oldest), &Request::default())
            .await
            .is_ok()
    {
        let Ok(Seen::Whole(_, sample)) = whole(&ground, Which::Snapshot(oldest), &Request::default()).await
        else {
            panic!("the oldest snapshot can't be read")
        };
        let mut bytes = vec![0; 2 * SEGMENTS];
        bytes[1..3].fill(1);
        assert_eq!(sample, (SEGMENTS * SEGMENT, bytes), "seed {seed}: the oldest snapshot");
    }
}

#[tokio::test]
async fn what_is_read_of_a_page_blob_is_one_of_its_states() {
    for seed in 0..setting("PARTITA_PAGE_STATES", 200) {
        live(seed, 0).await;
    }
}

#[tokio::test]
async fn what_is_read_of_a_page_blob_with_snapshots_is_one_of_its_states() {
    for seed in 0..setting("PARTITA_PAGE_STATES", 200) {
        live(seed, 6).await;
    }
}

#[tokio::test]
async fn a_blobs_row_is_read_twice_only_where_something_is_missing() {
    let counting = Rows::counting();
    let service = BlobService::new(counting.clone(), Arc::new(MemoryObjects::new()));
    let ground = Ground { service, ..Ground::new() };
    let (metadata, access) = (Metadata::default(), PublicAccess::None);
    ground.service.create_container(&container("abc"), metadata, access).await.unwrap();
    ground.put_page_blob(2 * SEGMENT).await;
    ground.put_pages(0, &[1; PAGE]).await.unwrap();
    let examined = async |from: usize| {
        counting.reset();
        let range = ByteRange::parse(&format!("bytes={from}-{}", from + SEGMENT - 1));
        let get = GetBlob { range, checksum: None };
        let got =
            ground.service.get_blob(&blob("b"), Which::Current, get, &Request::default()).await.unwrap();
        sample(got.content).await;
        counting.examined()
    };
    // The blob's row and the segment's.
    assert_eq!(examined(0).await, 2);
    // The blob's row, no segment, and the blob's row again.
    assert_eq!(examined(SEGMENT).await, 2);
    ground.snapshot().await;
    // A later row of the segment could have been removed.
    assert_eq!(examined(0).await, 3);
}
