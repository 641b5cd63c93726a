//! What is stored of a blob or of a snapshot: a row with a document, whose form is that of `fields`, and the content.
//!
//! ETag and time of creation are the row's `Timestamp`, which only the engine knows. A write that must not move one of them
//! writes the old time into the document. The time of the last change of pages is that of the ETag, if the row does not say
//! another one.

use blob_model::{
    AccessTier, BlobKind, BlobProperties, BlobType, ContentHeaders, CopyState, CopyStatus, DateTime, Etag,
    Guid, Lease, Md5, Metadata, RehydratePriority, SequenceNumber, Tags, TierState,
};
use model::ValueRef;
use store::{Fault, RawRow, RowDraft};

use crate::blob_key::UploadId;
use crate::content::Content;
use crate::fields::{self, Fields};

/// Properties of the row.
pub const CONTENT: &str = "C";
const DOCUMENT: &str = "D";
/// Of a page blob: when its pages were changed last. No field of the document: a program that does not know such a field keeps it
/// when it changes pages. This one is lost then, and the time of the ETag, which is never earlier, stands for it.
const PAGES_CHANGED: &str = "T";

const FORMAT: u8 = 1;
/// Names and values, each after its length.
const METADATA: u8 = 1;
const TAGS: u8 = 2;
/// A byte. Not there if nothing was committed.
const TYPE: u8 = 3;
/// Length of the content, u64.
const LENGTH: u8 = 4;
/// Ticks; not there if it is the row's own time. The same for the time of the ETag.
const CREATED: u8 = 5;
const MODIFIED: u8 = 6;
const CONTENT_TYPE: u8 = 7;
const ENCODING: u8 = 8;
const LANGUAGE: u8 = 9;
const MD5: u8 = 10;
const CACHE_CONTROL: u8 = 11;
const DISPOSITION: u8 = 12;
/// Of a block blob: a name, the ticks at which it was set, and the name and priority of the one that it is to have.
const TIER: u8 = 13;
const LEASE: u8 = 14;
const COPY: u8 = 15;
/// The id, and the length of its block ids.
const UPLOAD: u8 = 16;
/// A set of bits.
const FLAGS: u8 = 17;
/// Ticks of the deletion, and ticks from which on it is gone.
const DELETED: u8 = 18;
/// Of a page blob, u64.
const SEQUENCE_NUMBER: u8 = 19;
/// Of a page blob: the name of its map, and the number of its state.
const PAGE_MAP: u8 = 20;
/// Of an append blob, u32.
const BLOCKS: u8 = 21;
/// Ticks, if there was a snapshot.
const LAST_SNAPSHOT: u8 = 22;

const TYPE_BLOCK: u8 = 1;
const TYPE_PAGE: u8 = 2;
const TYPE_APPEND: u8 = 3;

const FLAG_SHARED: u8 = 1;
const FLAG_SNAPSHOTS: u8 = 2;
const FLAG_SEALED: u8 = 4;

/// A row of a blob: of the blob itself, or of a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobRow {
    /// None if there are only uncommitted blocks.
    pub blob: Option<StoredBlob>,
    pub upload: Option<OpenUpload>,
    /// Fields of later versions.
    unknown: Fields,
}

/// Blocks that were put and not committed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenUpload {
    pub id: UploadId,
    /// Of all its block ids, in bytes.
    pub id_bytes: u8,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBlob {
    /// Of a blob that is not stored yet, these two say nothing.
    pub created: DateTime,
    pub modified: DateTime,
    pub length: u64,
    pub headers: ContentHeaders,
    pub kind: StoredKind,
    pub lease: Lease,
    pub copy: Option<CopyState>,
    pub metadata: Metadata,
    pub tags: Tags,
    pub content: Content,
    /// Another blob may have the same objects.
    pub is_shared: bool,
    /// There may be snapshots.
    pub has_snapshots: bool,
    /// The time of the last one, which the next one's is above.
    pub last_snapshot: Option<DateTime>,
    pub deleted: Option<Deletion>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredKind {
    Block {
        tier: TierState,
    },
    Page {
        sequence_number: SequenceNumber,
        map: PageMapRef,
        /// The time of the last change of its pages. Of a blob that is not stored yet, it says nothing.
        changed: DateTime,
    },
    Append {
        blocks: u32,
        is_sealed: bool,
    },
}

/// Which rows are the map of a page blob: those of this map, up to this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageMapRef {
    pub id: [u8; 8],
    pub number: u32,
}

/// A blob that was deleted and can be restored until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deletion {
    pub time: DateTime,
    pub until: DateTime,
}

/// Which of its times a write moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moves {
    /// A new blob.
    All,
    /// The time of the ETag, and that of the last change of pages.
    Pages,
    Etag,
    Nothing,
}

impl StoredBlob {
    /// A blob that is not stored yet.
    pub fn new(kind: StoredKind, content: Content, length: u64) -> Self {
        Self {
            created: DateTime::MIN_STORED,
            modified: DateTime::MIN_STORED,
            length,
            headers: ContentHeaders::default(),
            kind,
            lease: Lease::Available,
            copy: None,
            metadata: Metadata::default(),
            tags: Tags::default(),
            content,
            is_shared: false,
            has_snapshots: false,
            last_snapshot: None,
            deleted: None,
        }
    }

    /// The next snapshot has a time above this one.
    pub fn snapshot_after(&self) -> DateTime {
        self.last_snapshot.map_or(self.modified, |last| last.max(self.modified))
    }

    pub fn etag(&self) -> Etag {
        Etag(self.modified)
    }

    pub fn blob_type(&self) -> BlobType {
        match self.kind {
            StoredKind::Block { .. } => BlobType::Block,
            StoredKind::Page { .. } => BlobType::Page,
            StoredKind::Append { .. } => BlobType::Append,
        }
    }

    /// The map of a page blob, and when its pages were changed last.
    pub fn pages(&self) -> Option<(PageMapRef, DateTime)> {
        match self.kind {
            StoredKind::Page { map, changed, .. } => Some((map, changed)),
            StoredKind::Block { .. } | StoredKind::Append { .. } => None,
        }
    }

    /// As clients see it. A lease is shown only of a blob itself.
    pub fn into_properties(self, lease_at: Option<DateTime>) -> BlobProperties {
        let kind = match self.kind {
            StoredKind::Block { tier } => BlobKind::Block { tier },
            StoredKind::Page { sequence_number, .. } => BlobKind::Page { sequence_number },
            StoredKind::Append { blocks, is_sealed } => BlobKind::Append { blocks, is_sealed },
        };
        BlobProperties {
            created: self.created,
            etag: Etag(self.modified),
            length: self.length,
            content: self.headers,
            kind,
            lease: lease_at.map(|now| self.lease.view(now)),
            copy: self.copy,
            metadata: self.metadata,
            tags: self.tags,
        }
    }

    /// The time of the last change of pages, if the row must say it.
    fn pages_changed(&self, moves: Moves) -> Option<DateTime> {
        let StoredKind::Page { changed, .. } = self.kind else { return None };
        match moves {
            Moves::All | Moves::Pages => None,
            Moves::Etag => Some(changed),
            Moves::Nothing => Some(changed).filter(|changed| *changed != self.modified),
        }
    }

    fn write(&self, fields: &mut Fields, moves: Moves) {
        if !self.metadata.is_empty() {
            fields.set(METADATA, fields::write_pairs(self.metadata.iter()));
        }
        if !self.tags.is_empty() {
            fields.set(TAGS, fields::write_pairs(self.tags.iter()));
        }
        fields.set(LENGTH, self.length.to_le_bytes().to_vec());
        if moves != Moves::All {
            fields.set(CREATED, fields::write_ticks(self.created));
        }
        if moves == Moves::Nothing {
            fields.set(MODIFIED, fields::write_ticks(self.modified));
        }
        let headers = &self.headers;
        for (tag, value) in [
            (CONTENT_TYPE, &headers.content_type),
            (ENCODING, &headers.encoding),
            (LANGUAGE, &headers.language),
            (CACHE_CONTROL, &headers.cache_control),
            (DISPOSITION, &headers.disposition),
        ] {
            if let Some(value) = value {
                fields.set(tag, value.clone().into_bytes());
            }
        }
        if let Some(Md5(md5)) = headers.md5 {
            fields.set(MD5, md5.to_vec());
        }
        let mut flags = 0;
        match self.kind {
            StoredKind::Block { tier } => {
                fields.set(TYPE, vec![TYPE_BLOCK]);
                if tier != TierState::INFERRED {
                    fields.set(TIER, write_tier(&tier));
                }
            }
            StoredKind::Page { sequence_number, map, changed: _ } => {
                fields.set(TYPE, vec![TYPE_PAGE]);
                fields.set(SEQUENCE_NUMBER, sequence_number.get().to_le_bytes().to_vec());
                fields.set(PAGE_MAP, [&map.id[..], &map.number.to_le_bytes()].concat());
            }
            StoredKind::Append { blocks, is_sealed } => {
                fields.set(TYPE, vec![TYPE_APPEND]);
                fields.set(BLOCKS, blocks.to_le_bytes().to_vec());
                flags |= if is_sealed { FLAG_SEALED } else { 0 };
            }
        }
        flags |= if self.is_shared { FLAG_SHARED } else { 0 };
        flags |= if self.has_snapshots { FLAG_SNAPSHOTS } else { 0 };
        if flags != 0 {
            fields.set(FLAGS, vec![flags]);
        }
        if let Some(lease) = fields::write_lease(&self.lease) {
            fields.set(LEASE, lease);
        }
        if let Some(copy) = &self.copy {
            fields.set(COPY, write_copy(copy));
        }
        if let Some(last) = self.last_snapshot {
            fields.set(LAST_SNAPSHOT, fields::write_ticks(last));
        }
        if let Some(Deletion { time, until }) = self.deleted {
            fields.set(DELETED, [fields::write_ticks(time), fields::write_ticks(until)].concat());
        }
    }

    fn read(
        fields: &mut Fields,
        kind: u8,
        content: Content,
        version: DateTime,
        pages_changed: Option<DateTime>,
    ) -> Option<Self> {
        let mut text =
            |tag| fields.take(tag).map(|value| fields::read_text(&value)).map_or(Some(None), |t| t.map(Some));
        let (content_type, encoding, language) = (text(CONTENT_TYPE)?, text(ENCODING)?, text(LANGUAGE)?);
        let (cache_control, disposition) = (text(CACHE_CONTROL)?, text(DISPOSITION)?);
        let md5 = match fields.take(MD5) {
            None => None,
            Some(md5) => Some(Md5(md5.as_ref().try_into().ok()?)),
        };
        let headers = ContentHeaders { content_type, encoding, language, md5, cache_control, disposition };
        let flags = match fields.take(FLAGS).as_deref() {
            None => 0,
            Some([flags]) => *flags,
            Some(_) => return None,
        };
        let mut time = |tag| fields.take(tag).map_or(Some(version), |ticks| fields::read_ticks(&ticks));
        let (created, modified) = (time(CREATED)?, time(MODIFIED)?);
        let kind = match kind {
            TYPE_BLOCK => {
                let tier = fields.take(TIER);
                StoredKind::Block { tier: tier.map_or(Some(TierState::INFERRED), |tier| read_tier(&tier))? }
            }
            TYPE_PAGE => {
                let sequence_number = SequenceNumber::new(read_number(&fields.take(SEQUENCE_NUMBER)?)?)?;
                let map = fields.take(PAGE_MAP)?;
                let (id, number) = map.split_first_chunk::<8>()?;
                StoredKind::Page {
                    sequence_number,
                    map: PageMapRef { id: *id, number: u32::from_le_bytes(number.try_into().ok()?) },
                    changed: pages_changed.unwrap_or(modified),
                }
            }
            TYPE_APPEND => {
                let blocks = u32::from_le_bytes(fields.take(BLOCKS)?.as_ref().try_into().ok()?);
                StoredKind::Append { blocks, is_sealed: flags & FLAG_SEALED != 0 }
            }
            _ => return None,
        };
        let deleted = match fields.take(DELETED) {
            None => None,
            Some(times) => {
                let (time, until) = times.split_at_checked(8)?;
                Some(Deletion { time: fields::read_ticks(time)?, until: fields::read_ticks(until)? })
            }
        };
        let lease = fields.take(LEASE).map_or(Some(Lease::Available), |lease| fields::read_lease(&lease))?;
        let copy = fields.take(COPY).map_or(Some(None), |copy| read_copy(&copy).map(Some))?;
        let metadata =
            fields.take(METADATA).map_or(Some(Metadata::default()), |m| fields::read_metadata(&m))?;
        let tags = fields
            .take(TAGS)
            .map_or(Some(Tags::default()), |tags| Tags::new(fields::read_pairs(&tags)?).ok())?;
        let last_snapshot =
            fields.take(LAST_SNAPSHOT).map_or(Some(None), |ticks| fields::read_ticks(&ticks).map(Some))?;
        let length = read_number(&fields.take(LENGTH)?)?;
        let is_whole = matches!(kind, StoredKind::Page { .. }) || content.length() == length;
        is_whole.then_some(Self {
            created,
            modified,
            length,
            headers,
            kind,
            lease,
            copy,
            metadata,
            tags,
            content,
            is_shared: flags & FLAG_SHARED != 0,
            has_snapshots: flags & FLAG_SNAPSHOTS != 0,
            last_snapshot,
            deleted,
        })
    }
}

impl BlobRow {
    pub fn of(blob: StoredBlob) -> Self {
        Self { blob: Some(blob), ..Self::default() }
    }

    /// The blob, unless it was deleted.
    pub fn live(&self) -> Option<&StoredBlob> {
        self.blob.as_ref().filter(|blob| blob.deleted.is_none())
    }

    pub fn live_mut(&mut self) -> Option<&mut StoredBlob> {
        self.blob.as_mut().filter(|blob| blob.deleted.is_none())
    }

    pub fn draft(&self, moves: Moves) -> RowDraft {
        let mut fields = self.unknown.clone();
        let mut content = Vec::new();
        if let Some(blob) = &self.blob {
            blob.write(&mut fields, moves);
            content = blob.content.write();
        }
        if let Some(OpenUpload { id, id_bytes }) = self.upload {
            fields.set(UPLOAD, [&id.0[..], &[id_bytes]].concat());
        }
        let document = fields.write(FORMAT);
        let content = (CONTENT, ValueRef::Binary(&content));
        let document = (DOCUMENT, ValueRef::Binary(&document));
        match &self.blob {
            None => RowDraft::new([document].into_iter()),
            Some(blob) => match blob.pages_changed(moves) {
                None => RowDraft::new([content, document].into_iter()),
                Some(changed) => {
                    let changed = (PAGES_CHANGED, ValueRef::DateTime(changed));
                    RowDraft::new([content, changed, document].into_iter())
                }
            },
        }
    }

    pub fn read(row: RawRow<'_>) -> Result<Self, Fault> {
        let version = row.timestamp()?;
        let mut found = [None; 3];
        row.find(&[CONTENT, DOCUMENT, PAGES_CHANGED], &mut found)?;
        let [content, document, pages_changed] = found;
        let content = match content {
            Some(ValueRef::Binary(content)) => Content::read(content)?,
            Some(_) => return Err(unlike()),
            None => Content::default(),
        };
        let Some(ValueRef::Binary(document)) = document else { return Err(unlike()) };
        let pages_changed = match pages_changed {
            Some(ValueRef::DateTime(changed)) => Some(changed),
            Some(_) => return Err(unlike()),
            None => None,
        };
        parse(document, content, version, pages_changed).ok_or_else(unlike)
    }
}

fn parse(
    document: &[u8],
    content: Content,
    version: DateTime,
    pages_changed: Option<DateTime>,
) -> Option<BlobRow> {
    let mut fields = Fields::read(FORMAT, document)?;
    let upload = match fields.take(UPLOAD) {
        None => None,
        Some(upload) => {
            let (id, [id_bytes]) = upload.split_first_chunk::<16>()? else { return None };
            Some(OpenUpload { id: UploadId(*id), id_bytes: *id_bytes })
        }
    };
    let blob = match fields.take(TYPE).as_deref() {
        None => None,
        Some([kind]) => Some(StoredBlob::read(&mut fields, *kind, content, version, pages_changed)?),
        Some(_) => return None,
    };
    (blob.is_some() || upload.is_some()).then_some(BlobRow { blob, upload, unknown: fields })
}

fn unlike() -> Fault {
    Fault::damaged("the row of a blob is not as this program writes it")
}

fn read_number(stored: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(stored.try_into().ok()?))
}

fn write_tier(state: &TierState) -> Vec<u8> {
    let mut out = Vec::new();
    fields::put(&mut out, state.tier.name().as_bytes());
    fields::put(&mut out, &state.changed.map(fields::write_ticks).unwrap_or_default());
    if let Some((tier, priority)) = state.rehydrating {
        fields::put(&mut out, tier.name().as_bytes());
        fields::put(&mut out, priority.name().as_bytes());
    }
    out
}

fn read_tier(mut rest: &[u8]) -> Option<TierState> {
    let tier = |stored: &[u8]| AccessTier::parse(std::str::from_utf8(stored).ok()?);
    let now = tier(fields::take(&mut rest)?)?;
    let changed = match fields::take(&mut rest)? {
        [] => None,
        ticks => Some(fields::read_ticks(ticks)?),
    };
    let rehydrating = match rest.is_empty() {
        true => None,
        false => {
            let target = tier(fields::take(&mut rest)?)?;
            let priority = fields::read_text(fields::take(&mut rest)?)?;
            Some((target, RehydratePriority::parse(&priority).ok()?))
        }
    };
    rest.is_empty().then_some(TierState { tier: now, changed, rehydrating })
}

fn write_copy(copy: &CopyState) -> Vec<u8> {
    let mut out = copy.id.0.to_vec();
    fields::put(&mut out, copy.status.name().as_bytes());
    fields::put(&mut out, copy.source.as_bytes());
    out.extend_from_slice(&copy.copied.to_le_bytes());
    out.extend_from_slice(&copy.total.to_le_bytes());
    fields::put(&mut out, &copy.completed.map(fields::write_ticks).unwrap_or_default());
    fields::put(&mut out, copy.description.as_deref().unwrap_or_default().as_bytes());
    out
}

fn read_copy(stored: &[u8]) -> Option<CopyState> {
    let (id, mut rest) = stored.split_first_chunk::<16>()?;
    let status = CopyStatus::parse(std::str::from_utf8(fields::take(&mut rest)?).ok()?)?;
    let source = fields::read_text(fields::take(&mut rest)?)?;
    let (copied, behind) = rest.split_first_chunk::<8>()?;
    let (total, mut rest) = behind.split_first_chunk::<8>()?;
    let completed = match fields::take(&mut rest)? {
        [] => None,
        ticks => Some(fields::read_ticks(ticks)?),
    };
    let description = Some(fields::read_text(fields::take(&mut rest)?)?).filter(|text| !text.is_empty());
    rest.is_empty().then_some(CopyState {
        id: Guid(*id),
        source,
        status,
        copied: u64::from_le_bytes(*copied),
        total: u64::from_le_bytes(*total),
        completed,
        description,
    })
}

/// An uncommitted block: its content, and that of the same id which it replaced is not kept.
pub fn block_draft(content: &Content) -> RowDraft {
    let content = content.write();
    RowDraft::new([(CONTENT, ValueRef::Binary(&content))].into_iter())
}

pub fn read_block(row: RawRow<'_>) -> Result<Content, Fault> {
    match row.value_of(CONTENT.as_bytes())? {
        Some(ValueRef::Binary(content)) => Content::read(content),
        _ => Err(Fault::damaged("the row of an uncommitted block is not as this program writes it")),
    }
}

#[cfg(test)]
mod tests;
