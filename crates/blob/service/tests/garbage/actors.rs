//! What clients do, on rows as simple as they can be: enough to name objects, to share them, and to give them up.
//!
//! A blob's row is in partition `b` and its name; blocks are in partition `u` and the blob's name. A row says which bytes are
//! expected where it says what they are made of.

use std::sync::{Arc, Mutex};

use blob_model::{Crc64, DateTime};
use blob_service::Result;
use blob_service::content::{BlobKey, CONTENT, Content, Contents, Extent, Keep, Written};
use bytes::Bytes;
use model::{Cut, EntityKey, Key, KeyRange, ValueRef};
use store::{
    Budget, Change, Condition, Engine, Entities, Error, Fault, RowDraft, RowOperation, Scan, StoredRef,
    Transaction,
};
use store_suite::TestEngine;

use super::{CONTAINERS, table};
use crate::interleaving::SteppedEngine;
use crate::kit::Random;

pub const BLOB: &str = "9999";
const EXPECTED: &str = "E";
const SHARED: &str = "S";
const UPLOAD: &str = "U";
const ATTEMPTS: usize = 20;
/// Content of this length is in many extents.
const MANY: u32 = 50 * MANY_EXTENTS as u32;
const MANY_EXTENTS: u64 = 130;

static FAILURES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// What actors have found to be wrong.
pub fn take_failures() -> Vec<String> {
    std::mem::take(&mut FAILURES.lock().unwrap())
}

type Blob = &'static str;

#[derive(Clone, Copy, Debug)]
pub enum Act {
    Put { container: usize, blob: Blob, tag: u32, length: u32 },
    PutBlock { container: usize, blob: Blob, block: usize, tag: u32 },
    PutBlockList { container: usize, blob: Blob, keep_committed: bool },
    Append { container: usize, blob: Blob, tag: u32, length: u32 },
    Snapshot { container: usize, blob: Blob },
    Copy { from: (usize, Blob), to: (usize, Blob) },
    Delete { container: usize, blob: Blob },
    DropContainer { container: usize },
    Read { container: usize, blob: Blob },
    Sweep,
}

/// What clients of one life do, and where: some do little else than the same, so that they meet.
#[derive(Clone, Debug)]
pub struct Habits {
    containers: usize,
    blobs: &'static [Blob],
    blocks: usize,
    kinds: Vec<Kind>,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Put,
    PutBlock,
    PutBlockList,
    Append,
    Snapshot,
    Copy,
    Delete,
    DropContainer,
    Read,
    Sweep,
}

impl Habits {
    pub fn random(random: &mut Random) -> Self {
        use Kind::*;
        let all = [Put, PutBlock, PutBlockList, Append, Snapshot, Copy, Delete, DropContainer, Read, Sweep];
        let kinds = match random.below(3) {
            0 => all.to_vec(),
            1 => vec![PutBlock, PutBlock, PutBlockList, PutBlockList, random.of(&all)],
            _ => (0..5).map(|_| random.of(&all)).chain([Put, Sweep]).collect(),
        };
        let blobs = random.of(&[&["a"][..], &["a", "b"]]);
        Self { containers: 1 + random.below(2), blobs, blocks: 1 + random.below(3), kinds }
    }
}

impl Act {
    pub fn random(habits: &Habits, random: &mut Random, tag: u32) -> Self {
        let place = |random: &mut Random| (random.below(habits.containers), random.of(habits.blobs));
        let (container, blob) = place(random);
        let length = random.of(&[10, 3000, 5000, MANY, 9000]);
        match random.of(&habits.kinds) {
            Kind::Put => Self::Put { container, blob, tag, length },
            Kind::PutBlock => Self::PutBlock { container, blob, block: random.below(habits.blocks), tag },
            Kind::PutBlockList => {
                Self::PutBlockList { container, blob, keep_committed: random.below(2) == 0 }
            }
            Kind::Append => Self::Append { container, blob, tag, length },
            Kind::Snapshot => Self::Snapshot { container, blob },
            Kind::Copy => Self::Copy { from: place(random), to: (container, blob) },
            Kind::Delete => Self::Delete { container, blob },
            Kind::DropContainer => Self::DropContainer { container },
            Kind::Read => Self::Read { container, blob },
            Kind::Sweep => Self::Sweep,
        }
    }
}

pub struct Actor {
    pub engine: Arc<TestEngine<SteppedEngine>>,
    pub contents: Contents,
}

/// A row as these actors know it.
#[derive(Clone, Debug)]
pub struct ActorRow {
    key: String,
    version: DateTime,
    content: Option<Content>,
    expected: Vec<(u32, u32)>,
    is_shared: bool,
    upload: i64,
}

/// What is to be written.
#[derive(Clone, Debug)]
pub struct Draft {
    content: Option<Vec<u8>>,
    expected: Vec<u8>,
    is_shared: bool,
    upload: i64,
}

impl Draft {
    pub fn replacing_content(self, content: &[u8]) -> Self {
        Self { content: Some(content.to_vec()), ..self }
    }
}

pub fn row(content: &Content, expected: &[(u32, u32)], is_shared: bool, upload: i64) -> Draft {
    let expected =
        expected.iter().flat_map(|(tag, length)| [tag.to_le_bytes(), length.to_le_bytes()]).flatten();
    Draft { content: Some(content.write()), expected: expected.collect(), is_shared, upload }
}

/// The upload that a blob is open for.
pub struct Upload {
    partition: String,
    prefix: String,
}

impl Upload {
    pub fn has(&self, block: StoredRef<'_>) -> bool {
        self.partition == block.partition && block.row_key.starts_with(&self.prefix)
    }
}

pub fn uploads(rows: &Entities) -> Vec<Upload> {
    let blobs = rows.iter().filter(|row| row.row_key == BLOB);
    let upload = |row: StoredRef<'_>| match row.row.value_of(UPLOAD.as_bytes()).unwrap() {
        Some(ValueRef::Int64(upload)) => {
            Upload { partition: format!("u{}", &row.partition[1..]), prefix: format!("{upload:08}-") }
        }
        other => panic!("{other:?}"),
    };
    blobs.map(upload).collect()
}

fn bytes(expected: &[(u32, u32)]) -> Vec<u8> {
    expected.iter().flat_map(|(tag, length)| vec![*tag as u8; *length as usize]).collect()
}

/// The bytes of an object, in more extents than a row has.
fn scattered(content: &Content, tag: u32) -> Vec<Extent> {
    let [whole] = content.row_extents() else { panic!("{content:?}") };
    let bytes = MANY_EXTENTS * u64::from(MANY / MANY_EXTENTS as u32);
    assert_eq!(whole.length, bytes);
    let length = bytes / MANY_EXTENTS;
    let crc64 = Crc64::of(&vec![tag as u8; length as usize]);
    (0..MANY_EXTENTS).map(|at| Extent { start: at * length, length, crc64, ..whole.clone() }).collect()
}

pub fn fail(what: String) {
    FAILURES.lock().unwrap().push(what);
}

fn blob_key(container: usize, blob: &str) -> BlobKey {
    BlobKey::of(&(container, blob))
}

pub fn put(row: &str, condition: Condition, draft: Draft) -> RowOperation {
    let Draft { content, expected, is_shared, upload } = &draft;
    let mut properties = Vec::new();
    properties.extend(content.as_ref().map(|content| (CONTENT, ValueRef::Binary(content))));
    properties.push((EXPECTED, ValueRef::Binary(expected)));
    properties.push((SHARED, ValueRef::Boolean(*is_shared)));
    properties.push((UPLOAD, ValueRef::Int64(*upload)));
    let change = Change::Put(RowDraft::new(properties.into_iter()));
    RowOperation { row: Key::parse(row).unwrap(), condition, change }
}

fn remove(row: &ActorRow) -> RowOperation {
    let (condition, change) = (Condition::Version(row.version), Change::Delete);
    RowOperation { row: Key::parse(row.key.as_str()).unwrap(), condition, change }
}

fn condition(row: Option<&ActorRow>) -> Condition {
    row.map_or(Condition::Absent, |row| Condition::Version(row.version))
}

/// A refused transaction is an ordinary answer; everything else is passed on.
fn was_made(applied: std::result::Result<Vec<DateTime>, Error>) -> Result<bool> {
    match applied {
        Ok(_) => Ok(true),
        Err(Error::Rejected { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

impl Actor {
    pub async fn act(self, act: Act) -> Self {
        let done = match act {
            Act::Put { container, blob, tag, length } => self.put(container, blob, tag, length).await,
            Act::PutBlock { container, blob, block, tag } => {
                self.put_block(container, blob, block, tag).await
            }
            Act::PutBlockList { container, blob, keep_committed } => {
                self.put_block_list(container, blob, keep_committed).await
            }
            Act::Append { container, blob, tag, length } => self.append(container, blob, tag, length).await,
            Act::Snapshot { container, blob } => self.snapshot(container, blob).await,
            Act::Copy { from, to } => self.copy(from, to).await,
            Act::Delete { container, blob } => self.delete(container, blob).await,
            Act::DropContainer { container } => self.drop_container(container).await,
            Act::Read { container, blob } => self.read(container, blob).await,
            Act::Sweep => self.contents.sweep(&*self.engine).await.map(drop),
        };
        if let Err(blob_service::Error::Fault(fault)) = done {
            // Two sweeps at a time are one too many.
            if fault.kind() != store::FaultKind::Busy {
                fail(format!("{act:?}: {fault}"));
            }
        }
        self
    }

    fn engine(&self) -> Arc<dyn Engine> {
        self.engine.clone()
    }

    pub async fn put_row(&self, container: usize, partition: &str, row: &str, draft: Draft) {
        let operation = put(row, Condition::Anything, draft);
        let transaction = Transaction::new(Key::parse(partition).unwrap(), vec![operation]).unwrap();
        self.engine.apply(&table(CONTAINERS[container]), transaction).await.unwrap();
    }

    pub async fn remove_row(&self, container: usize, partition: &str, row: &str) {
        let key = EntityKey::parse(partition, row).unwrap();
        let transaction = Transaction::of_one(key, Condition::Exists, Change::Delete);
        self.engine.apply(&table(CONTAINERS[container]), transaction).await.unwrap();
    }

    /// All rows of a partition.
    async fn rows(&self, container: usize, partition: &str) -> Result<Vec<ActorRow>> {
        let mut rows = Vec::new();
        let mut range = KeyRange::partition(partition);
        loop {
            let budget = Budget {
                rows: 1000,
                bytes: usize::MAX,
                time: std::time::Duration::from_secs(3600),
                examined: u64::MAX,
            };
            let scan = Scan { ranges: vec![range.clone()], budget, filter: None, lasts: false };
            let page = self.engine.scan(&table(CONTAINERS[container]), scan).await?;
            for stored in page.entities.iter() {
                let view = stored.row.open()?;
                let damaged = || Fault::damaged("an actor's row");
                let content = match view.property(CONTENT) {
                    None => None,
                    Some(ValueRef::Binary(content)) => Some(Content::read(content)?),
                    Some(_) => return Err(damaged().into()),
                };
                let (
                    Some(ValueRef::Binary(expected)),
                    Some(ValueRef::Boolean(is_shared)),
                    Some(ValueRef::Int64(upload)),
                ) = (view.property(EXPECTED), view.property(SHARED), view.property(UPLOAD))
                else {
                    return Err(damaged().into());
                };
                let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
                let expected =
                    expected.chunks(8).map(|pair| (number(&pair[..4]), number(&pair[4..]))).collect();
                let (key, version) = (stored.row_key.to_owned(), view.timestamp());
                rows.push(ActorRow { key, version, content, expected, is_shared, upload });
            }
            let Some(next) = page.next else { return Ok(rows) };
            range = KeyRange { start: Cut::before(next.partition.as_str(), next.row.as_str()), ..range };
        }
    }

    async fn blob(&self, container: usize, blob: &str) -> Result<Option<ActorRow>> {
        let rows = self.rows(container, &format!("b{blob}")).await?;
        Ok(rows.into_iter().find(|row| row.key == BLOB))
    }

    async fn write(&self, keep: Keep, tag: u32, length: u32) -> Result<Written> {
        let mut writer = self.contents.writer(keep, false);
        for piece in bytes(&[(tag, length)]).chunks(2000) {
            writer.push(Bytes::copy_from_slice(piece)).await?;
        }
        writer.finish().await
    }

    async fn commit(
        &self,
        change: &blob_service::content::Change,
        container: usize,
        partition: String,
        operations: Vec<RowOperation>,
    ) -> Result<bool> {
        let transaction = Transaction::new(Key::parse(partition).unwrap(), operations).unwrap();
        was_made(change.commit(&self.engine(), &table(CONTAINERS[container]), transaction).await)
    }

    /// After the blob's content was replaced.
    async fn give_up(
        &self,
        change: &blob_service::content::Change,
        key: BlobKey,
        old: Option<&ActorRow>,
        new: &Content,
    ) -> Result<()> {
        if let Some(ActorRow { content: Some(content), is_shared: false, .. }) = old {
            change.remove_content(key, content, &[new], None).await?;
        }
        Ok(())
    }

    async fn put(&self, container: usize, blob: Blob, tag: u32, length: u32) -> Result<()> {
        let Written { mut content, fresh, .. } = self.write(Keep::SmallInRow, tag, length).await?;
        let change = self.contents.begin_change();
        change.keep(fresh);
        if length == MANY {
            let mut joiner = self.contents.joiner();
            for extent in scattered(&content, tag) {
                joiner.push(extent).await?;
            }
            let joined = joiner.finish().await?;
            change.keep(joined.fresh);
            content = joined.content;
        }
        for _ in 0..ATTEMPTS {
            let old = self.blob(container, blob).await?;
            let draft = row(&content, &[(tag, length)], false, i64::from(tag));
            let operations = vec![put(BLOB, condition(old.as_ref()), draft)];
            if self.commit(&change, container, format!("b{blob}"), operations).await? {
                return self.give_up(&change, blob_key(container, blob), old.as_ref(), &content).await;
            }
        }
        change.discard().await;
        Ok(())
    }

    async fn put_block(&self, container: usize, blob: Blob, block: usize, tag: u32) -> Result<()> {
        let length = 100;
        let Written { content, fresh, .. } = self.write(Keep::InObject, tag, length).await?;
        let change = self.contents.begin_change();
        change.keep(fresh);
        for _ in 0..ATTEMPTS {
            let Some(found) = self.blob(container, blob).await? else {
                // It says only that there is an upload.
                let draft = Draft { content: None, ..row(&Content::default(), &[], false, i64::from(tag)) };
                self.commit(
                    &change,
                    container,
                    format!("b{blob}"),
                    vec![put(BLOB, Condition::Absent, draft)],
                )
                .await?;
                continue;
            };
            let block_row = format!("{:08}-{block}", found.upload);
            let blocks = self.rows(container, &format!("u{blob}")).await?;
            let old = blocks.iter().find(|row| row.key == block_row);
            let operation = put(&block_row, condition(old), row(&content, &[(tag, length)], false, 0));
            if self.commit(&change, container, format!("u{blob}"), vec![operation]).await? {
                let kept = Content::default();
                return self.give_up(&change, blob_key(container, blob), old, &kept).await;
            }
        }
        change.discard().await;
        Ok(())
    }

    async fn put_block_list(&self, container: usize, blob: Blob, keep_committed: bool) -> Result<()> {
        let key = blob_key(container, blob);
        for _ in 0..ATTEMPTS {
            let change = self.contents.begin_change();
            let _pin = self.contents.pin(key);
            let Some(old) = self.blob(container, blob).await? else { return Ok(()) };
            let blocks = self.rows(container, &format!("u{blob}")).await?;
            let prefix = format!("{:08}-", old.upload);
            let blocks: Vec<&ActorRow> = blocks.iter().filter(|row| row.key.starts_with(&prefix)).collect();
            let mut joiner = self.contents.joiner();
            let mut expected = Vec::new();
            // Content in the row is no block.
            let committed = old.content.as_ref().filter(|c| keep_committed && c.inline_bytes().is_empty());
            if let Some(committed) = committed {
                let mut walk = self.contents.extents(committed);
                while let Some(extent) = walk.next().await? {
                    joiner.push(extent).await?;
                }
                expected.extend(old.expected.clone());
            }
            for block in &blocks {
                let content = block.content.as_ref().unwrap();
                joiner.push(Extent { block: None, ..content.row_extents()[0].clone() }).await?;
                expected.extend(block.expected.clone());
            }
            let joined = joiner.finish().await?;
            change.keep(joined.fresh);
            if !change.hold(&joined.content).await? {
                change.discard().await;
                continue;
            }
            let is_shared = committed.is_some() && old.is_shared;
            let draft = row(&joined.content, &expected, is_shared, old.upload + 1_000);
            let operations = vec![put(BLOB, condition(Some(&old)), draft)];
            if self.commit(&change, container, format!("b{blob}"), operations).await? {
                if !blocks.is_empty() {
                    let removals = blocks.iter().map(|block| remove(block)).collect();
                    self.commit(&change, container, format!("u{blob}"), removals).await?;
                }
                return self.give_up(&change, key, Some(&old), &joined.content).await;
            }
            change.discard().await;
        }
        Ok(())
    }

    async fn append(&self, container: usize, blob: Blob, tag: u32, length: u32) -> Result<()> {
        let mut written = self.write(Keep::SmallInRow, tag, length).await?;
        if length == MANY {
            // Enough for a manifest, which is written again with the next such append.
            written.content = Content::of_extents(scattered(&written.content, tag));
        }
        let mut change = self.contents.begin_change();
        for _ in 0..ATTEMPTS {
            // It reads the last manifest, and writes it again.
            let _pin = self.contents.pin(blob_key(container, blob));
            let Some(old) = self.blob(container, blob).await? else { break };
            let Some(content) = &old.content else { break };
            let appended = self.contents.append(content, &written).await?;
            change.keep(appended.fresh);
            let expected = [&old.expected[..], &[(tag, length)]].concat();
            let draft = row(&appended.content, &expected, old.is_shared, old.upload);
            let operations = vec![put(BLOB, condition(Some(&old)), draft)];
            if self.commit(&change, container, format!("b{blob}"), operations).await? {
                if !old.is_shared {
                    change.remove(blob_key(container, blob), appended.replaced).await?;
                }
                return Ok(());
            }
            change.discard().await;
            change = self.contents.begin_change();
        }
        written.fresh.discard().await;
        Ok(())
    }

    /// The snapshot and the blob share their content from now on.
    async fn snapshot(&self, container: usize, blob: Blob) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let change = self.contents.begin_change();
            let Some(old) = self.blob(container, blob).await? else { return Ok(()) };
            let Some(content) = &old.content else { return Ok(()) };
            if !change.hold(content).await? {
                continue;
            }
            let time = format!("{:020}", old.version.ticks());
            let draft = row(content, &old.expected, true, old.upload);
            let operations =
                vec![put(&time, Condition::Absent, draft.clone()), put(BLOB, condition(Some(&old)), draft)];
            if self.commit(&change, container, format!("b{blob}"), operations).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn copy(&self, from: (usize, Blob), to: (usize, Blob)) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let change = self.contents.begin_change();
            let Some(source) = self.blob(from.0, from.1).await? else { return Ok(()) };
            let Some(content) = &source.content else { return Ok(()) };
            if !source.is_shared {
                let draft = row(content, &source.expected, true, source.upload);
                let operations = vec![put(BLOB, condition(Some(&source)), draft)];
                if !self.commit(&change, from.0, format!("b{}", from.1), operations).await? {
                    continue;
                }
            }
            if !change.hold(content).await? {
                continue;
            }
            let old = self.blob(to.0, to.1).await?;
            let draft = row(content, &source.expected, true, source.upload + 7);
            let operations = vec![put(BLOB, condition(old.as_ref()), draft)];
            if self.commit(&change, to.0, format!("b{}", to.1), operations).await? {
                return self.give_up(&change, blob_key(to.0, to.1), old.as_ref(), content).await;
            }
        }
        Ok(())
    }

    /// With all its snapshots.
    async fn delete(&self, container: usize, blob: Blob) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let change = self.contents.begin_change();
            let rows = self.rows(container, &format!("b{blob}")).await?;
            if rows.is_empty() {
                return Ok(());
            }
            let operations = rows.iter().map(remove).collect();
            if self.commit(&change, container, format!("b{blob}"), operations).await? {
                for row in &rows {
                    self.give_up(&change, blob_key(container, blob), Some(row), &Content::default()).await?;
                }
                return Ok(());
            }
        }
        Ok(())
    }

    async fn drop_container(&self, container: usize) -> Result<()> {
        self.engine.drop_table(&table(CONTAINERS[container])).await?;
        Ok(self.engine.create_table(&table(CONTAINERS[container]), None).await?)
    }

    async fn read(&self, container: usize, blob: Blob) -> Result<()> {
        let pin = self.contents.pin(blob_key(container, blob));
        let Some(row) = self.blob(container, blob).await? else { return Ok(()) };
        let Some(content) = row.content else { return Ok(()) };
        let mut reader = self.contents.reader(&content, 0..content.length(), pin)?;
        let mut all = Vec::new();
        while let Some(piece) = reader.next().await {
            all.extend_from_slice(&piece?);
        }
        if all != bytes(&row.expected) {
            fail(format!("{blob} of {container} has other bytes than were written"));
        }
        Ok(())
    }
}
