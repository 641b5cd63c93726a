//! A service on an engine, time that tests move, and short ways to say what tests say often.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use blob_model::{
    AccountName, BlobName, BlobProperties, ContainerName, DateTime, Etag, Guid, LeaseId, Metadata,
    PublicAccess, Refusal,
};
use blob_service::{
    BlobContent, BlobEntry, BlobQuery, BlobRef, BlobService, BodyChecks, Clock, ContainerRef, Error, GetBlob,
    NewBlob, Request, Upload, Which,
};
use bytes::Bytes;
use model::EntityKey;
use store::{Engine, MemoryEngine, MemoryObjects, Objects, Page, Scan, StoredRow, TableRef};
use store_suite::{EngineDouble, TestEngine};

pub fn account() -> AccountName {
    AccountName::parse("devstoreaccount1").unwrap()
}

pub fn container(name: &str) -> ContainerRef {
    ContainerRef::new(&account(), &ContainerName::parse(name).unwrap())
}

pub fn metadata(pairs: &[(&str, &str)]) -> Metadata {
    Metadata::new(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
        .unwrap()
}

pub fn lease(number: u8) -> LeaseId {
    LeaseId(Guid([number; 16]))
}

pub fn refused<T: std::fmt::Debug>(outcome: Result<T, Error>) -> Refusal {
    match outcome {
        Err(Error::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

/// Time that stands still unless a test moves it.
#[derive(Clone, Debug)]
pub struct VirtualTime(Arc<AtomicI64>);

impl VirtualTime {
    pub fn new() -> Self {
        let start = DateTime::parse("2026-11-17T10:00:00.1234567Z").unwrap();
        Self(Arc::new(AtomicI64::new(start.ticks())))
    }

    pub fn pass(&self, duration: Duration) {
        self.0.fetch_add(i64::try_from(duration.as_nanos() / 100).unwrap(), Ordering::SeqCst);
    }

    pub fn go_back(&self, duration: Duration) {
        self.0.fetch_sub(i64::try_from(duration.as_nanos() / 100).unwrap(), Ordering::SeqCst);
    }

    pub fn now(&self) -> DateTime {
        DateTime::from_ticks(self.0.load(Ordering::SeqCst)).unwrap()
    }

    pub fn clock(&self) -> Arc<Clock> {
        let time = self.clone();
        Arc::new(Clock::of(move || time.now()))
    }
}

pub struct Ground {
    pub service: BlobService,
    pub time: VirtualTime,
    pub engine: Arc<dyn Engine>,
    pub objects: Arc<dyn Objects>,
}

impl Ground {
    pub fn new() -> Self {
        Self::on(Arc::new(MemoryEngine::new()), Arc::new(MemoryObjects::new()), VirtualTime::new())
    }

    fn on(engine: Arc<dyn Engine>, objects: Arc<dyn Objects>, time: VirtualTime) -> Self {
        let service = BlobService::new(engine.clone(), objects.clone()).timed(time.clock());
        Self { service, time, engine, objects }
    }

    /// As after a restart: nothing is in memory.
    pub fn again(&self) -> Self {
        Self::on(self.engine.clone(), self.objects.clone(), self.time.clone())
    }
}

/// Whatever there is of the random numbers that tests need: the same for the same seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// A number from the environment.
pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

pub fn blob(name: &str) -> BlobRef {
    BlobRef::new(container("abc"), BlobName::parse(name).unwrap())
}

pub fn checks() -> BodyChecks {
    BodyChecks { md5: None, crc64: None, bytes_max: 1 << 30 }
}

pub fn leased(number: u8) -> Request {
    Request { lease: Some(lease(number)), ..Request::default() }
}

/// A body that comes in pieces of this size.
pub struct Pieces(pub Vec<u8>, pub usize);

#[async_trait]
impl Upload for Pieces {
    async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let rest = self.0.split_off(self.0.len().min(self.1));
        let piece = std::mem::replace(&mut self.0, rest);
        Ok(Some(piece).filter(|piece| !piece.is_empty()).map(Bytes::from))
    }
}

/// Bytes that are like no others of their length.
pub fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

impl Ground {
    /// With the container `abc`.
    pub async fn with_container() -> Self {
        let ground = Self::new();
        ground
            .service
            .create_container(&container("abc"), Metadata::default(), PublicAccess::None)
            .await
            .unwrap();
        ground
    }

    pub async fn put(&self, name: &str, content: &[u8]) -> Etag {
        self.try_put(name, content, &Request::default()).await.unwrap()
    }

    pub async fn try_put(&self, name: &str, content: &[u8], request: &Request) -> Result<Etag, Error> {
        let body = &mut Pieces(content.to_vec(), 100_000);
        let stored =
            self.service.put_block_blob(&blob(name), NewBlob::default(), checks(), request, body).await;
        stored.map(|stored| stored.etag)
    }

    pub async fn get(&self, name: &str) -> Vec<u8> {
        self.get_state(name, Which::Current).await.unwrap()
    }

    pub async fn get_state(&self, name: &str, which: Which) -> Result<Vec<u8>, Error> {
        let download =
            self.service.get_blob(&blob(name), which, GetBlob::default(), &Request::default()).await?;
        assert_eq!(download.part, None);
        Ok(drain(download.content).await)
    }

    pub async fn properties(&self, name: &str) -> Result<BlobProperties, Error> {
        self.service.blob_properties(&blob(name), Which::Current, &Request::default()).await
    }

    /// All objects that are kept.
    pub async fn objects(&self) -> usize {
        self.service.finish_removals().await;
        self.objects.list(store::ObjectId::FIRST, 1_000_000).await.unwrap().objects.len()
    }

    pub async fn list(&self, query: &BlobQuery) -> Vec<BlobEntry> {
        let mut query = query.clone();
        let mut entries = Vec::new();
        loop {
            let page = self.service.list_blobs(&container("abc"), &query).await.unwrap();
            assert!(page.entries.len() <= query.limit);
            entries.extend(page.entries);
            let Some(next) = page.next else { return entries };
            query.from = Some(next);
        }
    }
}

pub async fn drain(mut content: BlobContent) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(piece) = std::future::poll_fn(|context| content.as_mut().poll_next(context)).await {
        bytes.extend_from_slice(&piece.unwrap());
    }
    bytes
}

/// `name` or `name@time` of what a list shows, and prefixes.
pub fn names(entries: &[BlobEntry]) -> Vec<String> {
    let name = |entry: &BlobEntry| match entry {
        BlobEntry::Prefix(prefix) => format!("[{prefix}]"),
        BlobEntry::Blob(listed) => {
            let mut text = listed.name.clone();
            text.push_str(if listed.snapshot.is_some() { "@" } else { "" });
            text.push_str(if listed.deleted.is_some() { "-" } else { "" });
            text.push_str(if listed.properties.is_none() { "?" } else { "" });
            text
        }
    };
    entries.iter().map(name).collect()
}

/// An engine that counts the rows that are read.
pub struct Rows {
    engine: MemoryEngine,
    examined: AtomicU64,
    largest: AtomicU64,
}

pub type Counting = TestEngine<Rows>;

impl Rows {
    pub fn counting() -> Arc<Counting> {
        Arc::new(TestEngine(Self {
            engine: MemoryEngine::new(),
            examined: AtomicU64::new(0),
            largest: AtomicU64::new(0),
        }))
    }

    pub fn reset(&self) {
        self.examined.store(0, Ordering::SeqCst);
        self.largest.store(0, Ordering::SeqCst);
    }

    /// The most rows that were held at one time.
    pub fn largest(&self) -> u64 {
        self.largest.load(Ordering::SeqCst)
    }

    pub fn examined(&self) -> u64 {
        self.examined.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl EngineDouble for Rows {
    fn engine(&self) -> &dyn Engine {
        &self.engine
    }

    async fn scan(&self, table: &TableRef, scan: Scan) -> Result<Page, store::Error> {
        let page = self.engine.scan(table, scan).await?;
        self.examined.fetch_add(page.examined, Ordering::SeqCst);
        self.largest.fetch_max(page.entities.len() as u64, Ordering::SeqCst);
        Ok(page)
    }

    async fn get(&self, table: &TableRef, key: &EntityKey) -> Result<Option<StoredRow>, store::Error> {
        self.examined.fetch_add(1, Ordering::SeqCst);
        self.engine.get(table, key).await
    }
}
