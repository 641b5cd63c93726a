//! Random operations on blobs under virtual time, compared with the oracle; the service is started anew now and then, and
//! what is deleted is kept or not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use blob_model::{
    AccessTier, AccountName, BlobKind, BlobProperties, BlockChoice, BlockId, BreakPeriod, ByteRange,
    Comparison, Conditions, ContentHeaders, DateTime, Etag, LeaseAction, LeaseDuration, LeaseId, Matches,
    Md5, Metadata, SnapshotTime, TagCondition, TagExpression, Tags,
};
use blob_service::{
    AppendCondition, BlobEntry, BlobPlace, BlobQuery, BlockListQuery, BodyChecks, CopyBlob, CopySource,
    CopyTags, DeleteBlob, DeleteSnapshots, Error, GetBlob, NewBlob, PartFromUrl, PutFromUrl, Request,
    Retention, SetProperties, TagQuery, Which,
};

use crate::blob_oracle::{Asked, BlobOracle, Kind, Name, On, State};
use crate::kit::{
    Ground, Pieces, Random, account, blob, bytes, checks, container, drain, lease, metadata, setting,
};
use crate::oracle::{LeaseOracle, Told};

const NAMES: [&str; 4] = ["a", "a/b", "a/c", "b"];
const BLOCKS: [&str; 3] = ["1", "2", "3"];

/// Days, or 0 for none; moved by the walk.
#[derive(Clone, Default)]
struct Days(Arc<AtomicU64>);

#[async_trait]
impl Retention for Days {
    async fn days(&self, _: &AccountName) -> Result<Option<u16>, Error> {
        let days = u16::try_from(self.0.load(Ordering::SeqCst)).unwrap();
        Ok((days > 0).then_some(days))
    }
}

struct Walk {
    ground: Ground,
    oracle: BlobOracle,
    random: Random,
    days: Days,
    contents: u64,
    last: Option<Etag>,
}

fn told<T>(answer: Result<T, Error>) -> Told<T> {
    answer.map_err(|error| match error {
        Error::Refused(refusal) => refusal.code(),
        Error::Fault(fault) => panic!("{fault:?}"),
    })
}

fn id(block: &str) -> BlockId {
    BlockId::of_bytes(block.as_bytes()).unwrap()
}

impl Walk {
    async fn new(seed: u64) -> Self {
        let ground = Ground::with_container().await;
        let (oracle, random, days) = (BlobOracle::default(), Random::new(seed), Days::default());
        let mut walk = Self { ground, oracle, random, days, contents: seed * 1_000_000, last: None };
        walk.restart();
        walk
    }

    fn restart(&mut self) {
        let again = self.ground.again();
        self.ground =
            Ground { service: again.service.clone().retaining(Arc::new(self.days.clone())), ..again };
    }

    async fn run(&mut self, steps: u64) {
        for _ in 0..steps {
            match self.random.below(40) {
                0 => self.restart(),
                1..=3 => {
                    let seconds = self.random.of(&[1, 7, 15, 31, 61, 90_000]);
                    self.ground.time.pass(Duration::from_secs(seconds));
                }
                4 => {
                    let days = self.random.of(&[0, 0, 2]);
                    self.days.0.store(days, Ordering::SeqCst);
                }
                5..=8 => self.put().await,
                9..=11 => self.put_block().await,
                12..=13 => self.put_block_list().await,
                14 => self.block_list().await,
                15..=16 => self.append().await,
                17 => self.seal().await,
                18..=20 => self.get().await,
                21..=22 => self.set_metadata().await,
                23 => self.set_properties().await,
                24 => self.set_tier().await,
                25..=26 => self.set_tags().await,
                27..=28 => self.snapshot().await,
                29..=30 => self.delete().await,
                31 => self.undelete().await,
                32..=33 => self.copy().await,
                34 => self.put_from_url().await,
                35 => self.list().await,
                36 => self.find().await,
                37 => self.break_lease().await,
                _ => self.act().await,
            }
        }
        self.look_at_all().await;
    }

    fn now(&self) -> DateTime {
        self.ground.time.now()
    }

    fn name(&mut self) -> &'static str {
        self.random.of(&NAMES)
    }

    fn known(&mut self, name: &'static str) -> &mut Name {
        self.oracle.blobs.entry(name).or_default()
    }

    fn content(&mut self) -> Vec<u8> {
        self.contents += 1;
        let length = self.random.of(&[1, 9, 4096, 4097, 20_000]);
        bytes(self.contents, length)
    }

    fn tags(&mut self) -> Tags {
        Tags::parse(self.random.of(&["", "t=1", "t=2", "t=1&u=x"])).unwrap()
    }

    fn metadata(&mut self) -> Metadata {
        metadata(self.random.of(&[&[][..], &[("a", "1")], &[("Color", "red")]]))
    }

    fn lease(&mut self) -> LeaseId {
        let number = self.random.of(&[1, 2]);
        lease(number)
    }

    /// Mostly none where there is none.
    fn lease_or_none(&mut self) -> Option<LeaseId> {
        if self.random.below(3) > 0 { None } else { Some(self.lease()) }
    }

    fn keeps_until(&self) -> Option<DateTime> {
        let days = self.days.0.load(Ordering::SeqCst);
        (days > 0).then(|| self.now().plus(Duration::from_secs(days * 24 * 3600)))
    }

    /// Conditions, and what they come down to for this state.
    fn conditions(&mut self, state: Option<&State>) -> (Conditions, Asked) {
        let etag = state.map_or(Etag(DateTime::MIN_STORED), |state| state.etag);
        let other = Etag(DateTime::MIN_STORED);
        let one_of = |etag| Some(Matches::OneOf(vec![etag]));
        let none = Conditions::default();
        match self.random.below(12) {
            0 => (Conditions { if_match: one_of(etag), ..none }, Asked::Match(true)),
            1 => (Conditions { if_match: one_of(other), ..none }, Asked::Match(false)),
            2 => (Conditions { if_none_match: one_of(etag), ..none }, Asked::NoneMatch(false)),
            3 => (Conditions { if_none_match: one_of(other), ..none }, Asked::NoneMatch(true)),
            4 => (Conditions { if_none_match: Some(Matches::Anything), ..none }, Asked::Star),
            5 => {
                let condition = TagCondition {
                    key: "t".to_owned(),
                    comparison: Comparison::Equal,
                    value: "1".to_owned(),
                };
                let holds = state.is_some_and(|state| state.tags.get("t") == Some("1"));
                (Conditions { if_tags: Some(TagExpression::Compare(condition)), ..none }, Asked::Tags(holds))
            }
            _ => (none, Asked::Nothing),
        }
    }

    fn request(&mut self, name: &'static str) -> (Request, Asked) {
        let base = self.known(name).live().ok().cloned();
        let (conditions, asked) = self.conditions(base.as_ref());
        let lease = self.lease_or_none();
        (Request { conditions, lease }, asked)
    }

    /// A new ETag is later than every one before.
    fn moved(&mut self, etag: Etag) {
        assert!(self.last.is_none_or(|last| last < etag), "{etag} after {:?}", self.last);
        self.last = Some(etag);
    }

    fn fresh(&mut self, etag: Etag, content: Vec<u8>, kind: Kind) -> State {
        self.moved(etag);
        State {
            etag,
            created: etag.0,
            content,
            kind,
            metadata: Metadata::default(),
            tags: Tags::default(),
            language: None,
            lease: LeaseOracle::default(),
            is_copy: false,
            deleted: None,
        }
    }

    async fn put(&mut self) {
        let name = self.name();
        let (request, asked) = self.request(name);
        let (now, until) = (self.now(), self.keeps_until());
        let (content, metadata, tags) = (self.content(), self.metadata(), self.tags());
        let is_append = self.random.below(4) == 0;
        let tier = if is_append { None } else { self.random.of(&[None, None, None, Some(AccessTier::Cool)]) };
        let new = NewBlob { metadata: metadata.clone(), tags: tags.clone(), tier, ..NewBlob::default() };
        let service = self.ground.service.clone();
        let is_wrong = self.random.below(12) == 0 && !is_append;
        let answer = if is_append {
            told(service.put_append_blob(&blob(name), new, &request).await)
        } else {
            let md5 = is_wrong.then_some(Md5([0; 16]));
            let body = &mut Pieces(content.clone(), 7000);
            let checks = BodyChecks { md5, ..checks() };
            told(service.put_block_blob(&blob(name), new, checks, &request, body).await)
                .map(|stored| stored.etag)
        };
        let expected = self.known(name).check_new(asked, On::Create, request.lease, tier.is_some(), now);
        let expected = expected.and(if is_wrong { Err("Md5Mismatch") } else { Ok(()) });
        assert_eq!(answer.map(drop), expected, "put {name} {request:?}");
        if let Ok(etag) = answer {
            let kind = match is_append {
                true => Kind::Append { blocks: 0, is_sealed: false },
                false => Kind::Block(tier.unwrap_or(AccessTier::Hot), None, Vec::new()),
            };
            let content = if is_append { Vec::new() } else { content };
            let state = State { metadata, tags, ..self.fresh(etag, content, kind) };
            self.known(name).put(state, until, now);
        }
    }

    async fn put_block(&mut self) {
        let (name, block, content) = (self.name(), self.random.of(&BLOCKS), self.content());
        let (named, now) = (self.lease_or_none(), self.now());
        let is_long = self.random.below(8) == 0 && self.known(name).uncommitted.is_some();
        let sent = if is_long { BlockId::of_bytes(b"long").unwrap() } else { id(block) };
        let body = &mut Pieces(content.clone(), 7000);
        let answer = told(self.ground.service.put_block(&blob(name), sent, checks(), named, body).await);
        let known = self.known(name);
        let expected = match known.live() {
            Ok(live) if !live.is_block() => Err("InvalidBlobType"),
            Ok(live) => live.lease.check(named, true, now, blob_model::Leased::Blob),
            Err(_) if named.is_some() => Err("LeaseNotPresentWithBlobOperation"),
            Err(_) => Ok(()),
        };
        let expected = expected.and(if is_long { Err("InvalidBlobOrBlock") } else { Ok(()) });
        assert_eq!(answer.map(drop), expected, "block of {name}");
        if expected.is_ok() {
            self.known(name).uncommitted.get_or_insert_default().insert(block, content);
        }
    }

    async fn put_block_list(&mut self) {
        let name = self.name();
        let (request, asked) = self.request(name);
        let (now, until, tags) = (self.now(), self.keeps_until(), self.tags());
        let choices =
            [BlockChoice::Committed, BlockChoice::Uncommitted, BlockChoice::Latest, BlockChoice::Latest];
        let length = self.random.below(4);
        let list: Vec<_> = (0..length).map(|_| (self.random.of(&choices), self.random.of(&BLOCKS))).collect();
        let sent: Vec<_> = list.iter().map(|(choice, block)| (*choice, id(block))).collect();
        let new = NewBlob { tags: tags.clone(), ..NewBlob::default() };
        let answer = told(self.ground.service.put_block_list(&blob(name), &sent, new, &request).await);
        let known = self.known(name);
        let expected = match known.live() {
            Ok(live) if !live.is_block() => Err("InvalidBlobType"),
            _ => known
                .check_new(asked, On::Create, request.lease, false, now)
                .and_then(|()| known.choose(&list)),
        };
        assert_eq!(answer.map(drop), expected.clone().map(drop), "list {list:?} of {name}");
        if let (Ok(etag), Ok((content, blocks))) = (answer, expected) {
            let kind = Kind::Block(AccessTier::Hot, None, blocks);
            let state = State { tags, ..self.fresh(etag, content, kind) };
            self.known(name).put(state, until, now);
        }
    }

    async fn block_list(&mut self) {
        let name = self.name();
        let query = BlockListQuery { which: Which::Current, committed: true, uncommitted: true };
        let answer = told(self.ground.service.block_list(&blob(name), query, &Request::default()).await);
        let known = self.known(name);
        let live = known.live().ok();
        let expected = match (live.map(|live| &live.kind), &known.uncommitted) {
            (Some(Kind::Append { .. }), _) => Err("InvalidBlobType"),
            (None, None) => Err("BlobNotFound"),
            (Some(Kind::Block(_, _, blocks)), _) => Ok(blocks.clone()),
            (None, Some(_)) => Ok(Vec::new()),
        };
        match (answer, expected) {
            (Ok(lists), Ok(committed)) => {
                let shown = |blocks: Vec<blob_model::ListedBlock>| -> Vec<(BlockId, u64)> {
                    blocks.into_iter().map(|block| (block.id, block.bytes)).collect()
                };
                let as_listed = |(block, length): (&str, usize)| (id(block), length as u64);
                let blocks: Vec<_> = committed.into_iter().map(as_listed).collect();
                assert_eq!(shown(lists.committed), blocks);
                let uncommitted =
                    known.uncommitted.iter().flatten().map(|(block, content)| (*block, content.len()));
                assert_eq!(shown(lists.uncommitted), uncommitted.map(as_listed).collect::<Vec<_>>());
                assert_eq!(lists.blob.map(|(etag, _)| etag), live.map(|live| live.etag));
            }
            (answer, expected) => assert_eq!(answer.map(drop), expected.map(drop)),
        }
    }

    async fn append(&mut self) {
        let (name, content) = (self.name(), self.content());
        let (request, asked) = self.request(name);
        let now = self.now();
        let length = self.known(name).live().map_or(0, |live| live.content.len() as u64);
        let position = self.random.of(&[None, None, Some(length), Some(length + 1)]);
        let from_url = self.random.below(4) == 0;
        let condition = AppendCondition { position, max_size: None };
        let service = self.ground.service.clone();
        let source = self.known("a").live().ok().cloned();
        let (answer, content) = if from_url {
            let part = PartFromUrl { source: self.source("a"), range: None, checks: checks() };
            let answer = told(service.append_block_from_url(&blob(name), part, condition, &request).await);
            (answer, source.map(|source| source.content).unwrap_or_default())
        } else {
            let body = &mut Pieces(content.clone(), 7000);
            (told(service.append_block(&blob(name), checks(), condition, &request, body).await), content)
        };
        let source = self.known("a").live().cloned();
        let known = self.known(name);
        let expected = (|| {
            let live = known.live()?;
            let Kind::Append { is_sealed, .. } = live.kind else { return Err("InvalidBlobType") };
            live.check(asked, On::Write, request.lease, true, now)?;
            if position.is_some_and(|position| position != length) {
                return Err("AppendPositionConditionNotMet");
            }
            if is_sealed {
                return Err("BlobIsSealed");
            }
            if from_url {
                source.map_err(|_| "CannotVerifyCopySource")?.readable()?;
            }
            if content.is_empty() { Err("InvalidHeaderValue") } else { Ok(()) }
        })();
        assert_eq!(answer.map(drop), expected, "append to {name} {request:?}");
        if let Ok(appended) = answer {
            self.moved(appended.etag);
            let live = self.known(name).live_mut().unwrap();
            assert_eq!(appended.offset, length);
            live.content.extend(content);
            live.etag = appended.etag;
            live.lease.after_write(now);
            live.is_copy = false;
            let Kind::Append { blocks, .. } = &mut live.kind else { panic!("{name}") };
            *blocks += 1;
            assert_eq!(appended.blocks, *blocks);
        }
    }

    async fn seal(&mut self) {
        let name = self.name();
        let (request, asked) = self.request(name);
        let now = self.now();
        let answer =
            told(self.ground.service.seal_blob(&blob(name), AppendCondition::default(), &request).await);
        let expected = self.known(name).live().and_then(|live| match live.kind {
            Kind::Append { .. } => live.check(asked, On::Write, request.lease, true, now),
            Kind::Block(..) => Err("InvalidBlobType"),
        });
        assert_eq!(answer.map(drop), expected);
        if let Ok(etag) = answer {
            self.moved(etag);
            let live = self.known(name).live_mut().unwrap();
            live.etag = etag;
            live.lease.after_write(now);
            let Kind::Append { is_sealed, .. } = &mut live.kind else { panic!("{name}") };
            *is_sealed = true;
        }
    }

    /// A state of a blob: itself, or one of its snapshots.
    fn which(&mut self, name: &'static str) -> Which {
        let times: Vec<SnapshotTime> =
            self.known(name).snapshots.iter().filter_map(|(time, _)| *time).collect();
        match times.is_empty() || self.random.below(3) > 0 {
            true => Which::Current,
            false => Which::Snapshot(self.random.of(&times)),
        }
    }

    fn state(&mut self, name: &'static str, which: Which) -> Told<State> {
        let known = self.known(name);
        match which {
            Which::Current => known.live().cloned(),
            Which::Snapshot(time) => known.snapshot(time).cloned(),
            Which::Version(_) => Err("BlobNotFound"),
        }
    }

    async fn get(&mut self) {
        let name = self.name();
        let which = self.which(name);
        let state = self.state(name, which);
        let (conditions, asked) = self.conditions(state.as_ref().ok());
        let (named, now) = (self.lease_or_none(), self.now());
        let request = Request { conditions, lease: named };
        let first = self.random.of(&[0, 5, 4000]);
        let range =
            if self.random.below(2) == 0 { None } else { ByteRange::parse(&format!("bytes={first}-5000")) };
        let service = self.ground.service.clone();
        let properties = told(service.blob_properties(&blob(name), which, &request).await);
        let download =
            told(service.get_blob(&blob(name), which, GetBlob { range, checksum: None }, &request).await);
        let judged = state.and_then(|state| state.check(asked, On::Read, named, false, now).map(|()| state));
        match judged {
            Ok(state) => {
                self.compare(&properties.unwrap(), &state, which == Which::Current);
                let expected = state.readable().and_then(|content| match range {
                    None => Ok(content),
                    Some(_) if first >= content.len() => Err("InvalidRange"),
                    Some(_) => Ok(&content[first..content.len().min(5001)]),
                });
                match (download, expected) {
                    (Ok(download), Ok(expected)) => {
                        assert!(drain(download.content).await == expected, "{name}");
                    }
                    (download, expected) => assert_eq!(download.map(drop), expected.map(drop)),
                }
            }
            Err(code) => {
                assert_eq!(
                    (properties.err(), download.err()),
                    (Some(code), Some(code)),
                    "{name} {request:?}"
                );
            }
        }
    }

    fn compare(&self, shown: &BlobProperties, state: &State, is_base: bool) {
        assert_eq!(
            (shown.etag, shown.created, shown.length),
            (state.etag, state.created, state.content.len() as u64)
        );
        assert_eq!((&shown.metadata, &shown.tags), (&state.metadata, &state.tags));
        assert_eq!((shown.copy.is_some(), &shown.content.language), (state.is_copy, &state.language));
        match (&shown.kind, &state.kind) {
            (BlobKind::Block { tier }, Kind::Block(expected, rehydrating, _)) => {
                assert_eq!((tier.tier, tier.rehydrating.map(|(to, _)| to)), (*expected, *rehydrating));
            }
            (BlobKind::Append { blocks, is_sealed }, Kind::Append { blocks: count, is_sealed: sealed }) => {
                assert_eq!((blocks, is_sealed), (count, sealed));
            }
            other => panic!("{other:?}"),
        }
        let words = shown.lease.map(|view| {
            let duration = view.duration.map_or(String::new(), |duration| format!(" {duration}"));
            format!("{} {}{duration}", view.status, view.state)
        });
        assert_eq!(words, is_base.then(|| state.lease.words(self.now())));
    }

    /// A change of a blob that is there and moves its ETag.
    fn changed(
        &mut self,
        name: &'static str,
        answer: Told<Etag>,
        request: &Request,
        asked: Asked,
    ) -> Option<&mut State> {
        let now = self.now();
        let expected = self.known(name).live().and_then(|live| {
            live.check(asked, On::Write, request.lease, true, now)?;
            live.online()
        });
        assert_eq!(answer.map(drop), expected, "{name} {request:?}");
        let etag = answer.ok()?;
        self.moved(etag);
        let live = self.known(name).live_mut().unwrap();
        (live.etag, live.is_copy) = (etag, false);
        live.lease.after_write(now);
        Some(live)
    }

    async fn set_metadata(&mut self) {
        let (name, metadata) = (self.name(), self.metadata());
        let (request, asked) = self.request(name);
        let answer =
            told(self.ground.service.set_blob_metadata(&blob(name), metadata.clone(), &request).await);
        if let Some(live) = self.changed(name, answer, &request, asked) {
            live.metadata = metadata;
        }
    }

    async fn set_properties(&mut self) {
        let name = self.name();
        let (request, asked) = self.request(name);
        let language = self.random.of(&[None, Some("de"), Some("en")]).map(str::to_owned);
        let content = ContentHeaders { language: language.clone(), ..ContentHeaders::default() };
        let set = SetProperties { content: Some(content), ..SetProperties::default() };
        let answer = self.ground.service.set_blob_properties(&blob(name), set, &request).await;
        if let Some(live) = self.changed(name, told(answer).map(|set| set.etag), &request, asked) {
            live.language = language;
        }
    }

    async fn set_tier(&mut self) {
        let name = self.name();
        let tier = self.random.of(&[AccessTier::Hot, AccessTier::Cool, AccessTier::Archive]);
        let (request, asked) = self.request(name);
        let now = self.now();
        let answer =
            self.ground.service.set_blob_tier(&blob(name), Which::Current, tier, None, &request).await;
        let expected = self.known(name).live().and_then(|live| {
            live.check(asked, On::Write, request.lease, false, now)?;
            match &live.kind {
                Kind::Append { .. } => Err("AccessTierNotSupportedForBlobType"),
                Kind::Block(AccessTier::Archive, pending, _) if tier != AccessTier::Archive => {
                    match pending {
                        Some(pending) if *pending != tier => Err("BlobBeingRehydrated"),
                        _ => Ok((AccessTier::Archive, Some(tier))),
                    }
                }
                Kind::Block(AccessTier::Archive, pending, _) => Ok((AccessTier::Archive, *pending)),
                Kind::Block(..) => Ok((tier, None)),
            }
        });
        let is_pending = expected
            .map(|(now, to)| to.is_some() && now == AccessTier::Archive && tier != AccessTier::Archive);
        assert_eq!(told(answer), is_pending, "{tier:?} of {name}");
        if let Ok((tier, rehydrating)) = expected
            && let Some(State { kind: Kind::Block(of, to, _), .. }) = self.known(name).live_mut()
        {
            (*of, *to) = (tier, rehydrating);
        }
    }

    async fn set_tags(&mut self) {
        let (name, tags) = (self.name(), self.tags());
        let (request, asked) = self.request(name);
        let now = self.now();
        let answer = told(
            self.ground.service.set_blob_tags(&blob(name), Which::Current, tags.clone(), &request).await,
        );
        let expected =
            self.known(name).live().and_then(|live| live.check(asked, On::Write, request.lease, true, now));
        assert_eq!(answer, expected);
        if answer.is_ok() {
            let live = self.known(name).live_mut().unwrap();
            live.tags = tags;
            live.lease.after_write(now);
        }
    }

    async fn snapshot(&mut self) {
        let (name, metadata) = (self.name(), self.metadata());
        let (request, asked) = self.request(name);
        let now = self.now();
        let answer = told(self.ground.service.snapshot_blob(&blob(name), metadata.clone(), &request).await);
        let known = self.known(name);
        let expected = known.live().and_then(|live| {
            live.check(asked, On::Write, request.lease, false, now)?;
            live.online()
        });
        assert_eq!(answer.map(drop), expected);
        if let Ok((time, etag)) = answer {
            let mut state = State { lease: LeaseOracle::default(), ..known.live().unwrap().clone() };
            if !metadata.is_empty() {
                assert_ne!(etag, state.etag);
                (state.metadata, state.etag) = (metadata, etag);
            }
            assert_eq!(etag, state.etag);
            known.snapshots.push((Some(time), state));
        }
    }

    async fn delete(&mut self) {
        let name = self.name();
        let which = self.which(name);
        let state = self.state(name, which);
        let (conditions, asked) = self.conditions(state.as_ref().ok());
        let (named, now, until) = (self.lease_or_none(), self.now(), self.keeps_until());
        let snapshots = match which {
            Which::Current => {
                self.random.of(&[None, Some(DeleteSnapshots::Include), Some(DeleteSnapshots::Only)])
            }
            _ => None,
        };
        let request = Request { conditions, lease: named };
        let delete = DeleteBlob { which, snapshots, is_permanent: false };
        let answer = told(self.ground.service.delete_blob(&blob(name), delete, &request).await);
        let is_only = snapshots == Some(DeleteSnapshots::Only);
        let known = self.known(name);
        let has_snapshots = known.snapshots.iter().any(|(_, state)| state.deleted.is_none());
        let expected = match (&state, which) {
            (Err(_), Which::Current) if known.uncommitted.is_some() && !is_only => match named {
                Some(_) => Err("LeaseNotPresentWithBlobOperation"),
                None => asked.check(false, On::Write, false),
            },
            (Err(code), _) => Err(*code),
            (Ok(state), _) => {
                state.check(asked, On::Write, named, !is_only, now).and_then(|()| match snapshots {
                    None if which == Which::Current && has_snapshots => Err("SnapshotsPresent"),
                    _ => Ok(()),
                })
            }
        };
        assert_eq!(answer.map(drop), expected, "delete {name} {which:?} {snapshots:?} {request:?}");
        let Ok(deleted) = answer else { return };
        if state.is_err() {
            known.uncommitted = None;
            return;
        }
        assert_eq!(deleted.is_permanent, until.is_none());
        let goes = |time: Option<SnapshotTime>, state: &State| match which {
            Which::Current => snapshots.is_some() && state.deleted.is_none(),
            _ => Which::Snapshot(time.unwrap_or(SnapshotTime::BASE)) == which,
        };
        match until {
            None => known.snapshots.retain(|(time, state)| !goes(*time, state)),
            Some(_) => {
                for (time, state) in &mut known.snapshots {
                    if goes(*time, state) {
                        state.deleted = until;
                    }
                }
            }
        }
        if which == Which::Current && !is_only {
            known.uncommitted = None;
            known.base = known.base.take().filter(|_| until.is_some());
            if let Some(base) = &mut known.base {
                (base.deleted, base.lease) = (until, LeaseOracle::default());
            }
        }
    }

    async fn undelete(&mut self) {
        let (name, now) = (self.name(), self.now());
        let answer = told(self.ground.service.undelete_blob(&blob(name)).await);
        let known = self.known(name);
        let is_there = |state: &State| state.deleted.is_none_or(|until| now < until);
        let expected = known.base.as_ref().filter(|base| is_there(base)).map(drop).ok_or("BlobNotFound");
        assert_eq!(answer, expected, "{name}");
        if answer.is_ok() {
            let restored = known.snapshots.iter_mut().map(|(_, state)| state).chain(&mut known.base);
            for state in restored.filter(|state| is_there(state)) {
                state.deleted = None;
            }
            self.list().await;
        }
    }

    fn source(&self, name: &str) -> CopySource {
        let (conditions, shown) = (Conditions::default(), format!("http://host/{name}"));
        CopySource { blob: blob(name), which: Which::Current, conditions, shown }
    }

    async fn copy(&mut self) {
        let (name, from) = (self.name(), self.name());
        let which = self.which(from);
        let source = self.state(from, which);
        let (request, asked) = self.request(name);
        let (now, until, metadata, tags) = (self.now(), self.keeps_until(), self.metadata(), self.tags());
        let copy_tags = self.random.below(2) == 0;
        let copy = CopyBlob {
            source: CopySource { which, ..self.source(from) },
            metadata: metadata.clone(),
            tags: if copy_tags { CopyTags::Copy } else { CopyTags::Replace(tags.clone()) },
            tier: None,
            priority: None,
            seal: None,
            is_sync: false,
            source_md5: None,
        };
        let answer = told(self.ground.service.copy_blob(&blob(name), copy, &request).await);
        let known = self.known(name);
        let expected = source.and_then(|source| {
            if known.live().is_ok_and(|there| there.is_block() != source.is_block()) {
                return Err("InvalidBlobType");
            }
            known.check_new(asked, On::CopyTarget, request.lease, false, now)?;
            source.readable()?;
            Ok(source)
        });
        assert_eq!(answer.map(drop), expected.clone().map(drop), "copy {from} to {name} {request:?}");
        if let (Ok(copied), Ok(source)) = (answer, expected) {
            let kind = match &source.kind {
                Kind::Block(_, _, blocks) => Kind::Block(AccessTier::Hot, None, blocks.clone()),
                append => append.clone(),
            };
            let metadata = if metadata.is_empty() { source.metadata } else { metadata };
            let tags = if copy_tags { source.tags } else { tags };
            let fresh = self.fresh(copied.etag, source.content, kind);
            let state = State { metadata, tags, language: source.language, is_copy: true, ..fresh };
            self.known(name).put(state, until, now);
        }
    }

    async fn put_from_url(&mut self) {
        let (name, from) = (self.name(), self.name());
        let source = self.state(from, Which::Current);
        let (request, asked) = self.request(name);
        let (now, until) = (self.now(), self.keeps_until());
        let put = PutFromUrl {
            source: self.source(from),
            new: NewBlob::default(),
            takes_headers: true,
            takes_tags: true,
            checks: checks(),
        };
        let answer = told(self.ground.service.put_blob_from_url(&blob(name), put, &request).await);
        let known = self.known(name);
        let expected = source.map_err(|_| "CannotVerifyCopySource").and_then(|source| {
            source.readable()?;
            let on = if asked == Asked::Match(false) || asked == Asked::Match(true) {
                On::CopyTarget
            } else {
                On::Create
            };
            known.check_new(asked, on, request.lease, false, now)?;
            Ok(source)
        });
        assert_eq!(answer.map(drop), expected.clone().map(drop), "{from} to {name} {request:?}");
        if let (Ok(stored), Ok(source)) = (answer, expected) {
            let fresh =
                self.fresh(stored.etag, source.content, Kind::Block(AccessTier::Hot, None, Vec::new()));
            let state =
                State { metadata: source.metadata, tags: source.tags, language: source.language, ..fresh };
            self.known(name).put(state, until, now);
        }
    }

    /// What a list shows; and times of snapshots that nobody was told of.
    async fn list(&mut self) {
        let now = self.now();
        let (snapshots, deleted) = (self.random.below(4) > 0, self.random.below(2) == 0);
        let query = BlobQuery {
            prefix: self.random.of(&["", "a", "a/"]).to_owned(),
            delimiter: self.random.of(&[None, None, Some("/")]).map(str::to_owned),
            from: None::<BlobPlace>,
            limit: self.random.of(&[1, 2, 100]),
            snapshots,
            uncommitted: self.random.below(2) == 0,
            deleted,
        };
        let listed = self.ground.list(&query).await;
        let mut expected: Vec<(String, Option<Etag>, bool)> = Vec::new();
        let mut places = Vec::new();
        for name in NAMES {
            let Some(known) = self.oracle.blobs.get(name) else { continue };
            let is_shown = |state: &State| state.deleted.is_none_or(|until| deleted && now < until);
            let states =
                known.snapshots.iter().enumerate().filter(|(_, (_, state))| snapshots && is_shown(state));
            let mut items: Vec<_> = states
                .map(|(at, (_, state))| (Some(at), Some(state.etag), state.deleted.is_some()))
                .collect();
            match &known.base {
                Some(base) if is_shown(base) => items.push((None, Some(base.etag), base.deleted.is_some())),
                None if known.uncommitted.is_some() && query.uncommitted => items.push((None, None, false)),
                _ => {}
            }
            let Some(rest) = name.strip_prefix(query.prefix.as_str()) else { continue };
            if let (Some(_), Some(at)) = (&query.delimiter, rest.find('/')) {
                let prefix = format!("[{}{}]", query.prefix, &rest[..=at]);
                if !items.is_empty() && expected.last().is_none_or(|(last, _, _)| *last != prefix) {
                    expected.push((prefix, None, false));
                    places.push(None);
                }
                continue;
            }
            for (at, etag, is_deleted) in items {
                expected.push((name.to_owned(), etag, is_deleted));
                places.push(at.map(|at| (name, at)));
            }
        }
        let shown = |entry: &BlobEntry| match entry {
            BlobEntry::Prefix(prefix) => (format!("[{prefix}]"), None, false),
            BlobEntry::Blob(listed) => {
                let etag = listed.properties.as_ref().map(|properties| properties.etag);
                (listed.name.clone(), etag, listed.deleted.is_some())
            }
        };
        assert_eq!(listed.iter().map(shown).collect::<Vec<_>>(), expected, "{query:?}");
        for (entry, place) in listed.iter().zip(places) {
            let (BlobEntry::Blob(listed), Some((name, at))) = (entry, place) else { continue };
            let known = self.known(name);
            let time = &mut known.snapshots[at].0;
            assert!(time.is_none() || *time == listed.snapshot, "{name}");
            *time = listed.snapshot;
        }
    }

    async fn find(&mut self) {
        let (key, value) = self.random.of(&[("t", "1"), ("t", "2"), ("u", "x")]);
        let conditions =
            [TagCondition { key: key.to_owned(), comparison: Comparison::Equal, value: value.to_owned() }];
        let container = self.random.of(&[None, Some("abc")]).map(|_| container("abc").name);
        let mut query =
            TagQuery { container, conditions: &conditions, from: None, limit: self.random.of(&[1, 100]) };
        let mut found = Vec::new();
        loop {
            let page = self.ground.service.find_blobs(&account(), &query).await.unwrap();
            found.extend(page.blobs.into_iter().map(|blob| blob.name.as_str().to_owned()));
            let Some(next) = page.next else { break };
            query.from = Some(next);
        }
        let has = |known: &Name| known.live().is_ok_and(|live| live.tags.get(key) == Some(value));
        let expected: Vec<_> =
            NAMES.into_iter().filter(|name| self.oracle.blobs.get(name).is_some_and(has)).collect();
        assert_eq!(found, expected, "{key}={value}");
    }

    async fn act(&mut self) {
        let name = self.name();
        let base = self.known(name).live().ok().cloned();
        let (conditions, asked) = self.conditions(base.as_ref());
        let duration = self.random.of(&[
            LeaseDuration::Infinite,
            LeaseDuration::Seconds(15),
            LeaseDuration::Seconds(60),
        ]);
        let action = match self.random.below(6) {
            0..=2 => LeaseAction::Acquire { duration, proposed: self.lease_or_none(), fresh: lease(9) },
            3 => LeaseAction::Renew { id: self.lease() },
            4 => LeaseAction::Change { id: self.lease(), proposed: self.lease() },
            _ => LeaseAction::Release { id: self.lease() },
        };
        let now = self.now();
        let answer = told(self.ground.service.lease_blob(&blob(name), action, conditions).await);
        let expected = match self.known(name).live_mut() {
            None => Err("BlobNotFound"),
            Some(live) => asked.check(true, On::Write, false).and_then(|()| live.lease.act(action, now)),
        };
        let answer = answer.map(|(outcome, etag)| {
            assert_eq!(Some(etag), base.map(|base| base.etag), "a lease does not move the ETag");
            (outcome.id, outcome.seconds_left)
        });
        assert_eq!(answer, expected, "{action:?} on {name}");
    }

    async fn break_lease(&mut self) {
        let name = self.name();
        let seconds = self.random.of(&[None, Some(0), Some(5), Some(60)]);
        let period = seconds.map(|seconds: u64| BreakPeriod::of_header(&seconds.to_string()).unwrap());
        let now = self.now();
        let action = LeaseAction::Break { period };
        let answer = told(self.ground.service.lease_blob(&blob(name), action, Conditions::default()).await);
        let expected = self
            .known(name)
            .live_mut()
            .ok_or("BlobNotFound")
            .and_then(|live| live.lease.break_off(seconds, now));
        assert_eq!(answer.map(|(outcome, _)| outcome.seconds_left.unwrap()), expected);
    }

    /// Everything that can be read is what it should be, after a restart too.
    async fn look_at_all(&mut self) {
        self.restart();
        let names: Vec<_> = self.oracle.blobs.keys().copied().collect();
        for name in names {
            let snapshots = self.known(name).snapshots.clone();
            let times = snapshots.iter().filter_map(|(time, _)| time.map(Which::Snapshot));
            for which in times.chain([Which::Current]).collect::<Vec<_>>() {
                let read = told(self.ground.get_state(name, which).await);
                let expected = self.state(name, which).and_then(|state| state.readable().map(<[u8]>::to_vec));
                assert!(read == expected, "{name} {which:?}");
            }
        }
    }
}

#[tokio::test]
async fn answers_on_blobs_are_those_of_the_oracle() {
    let (first, steps) = (setting("PARTITA_SEED", 1), setting("PARTITA_STEPS", 1000));
    for seed in first..first + setting("PARTITA_WALKS", 20) {
        println!("PARTITA_SEED={seed} PARTITA_STEPS={steps}");
        Walk::new(seed).await.run(steps).await;
    }
}
