//! The objects of a store that is surveyed: how much of each is there, and whether rows need more.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use forensics::blob_file::{BlobFile, BlobReference};
use forensics::error::BlobError;
use store::{CHUNK_BYTES, CHUNK_BYTES_MAX, Fault, Need, ObjectId, ObjectNaming, RowView};

use crate::content_files;
use crate::content_slot::{self, SlotError};
use crate::layout::{self, ObjectKey};
use crate::read_buffers::ReadBuffers;

/// What is known of all objects, by their names: about 50 bytes for each.
#[derive(Debug, Default)]
pub struct FoundObjects {
    found: Vec<FoundObject>,
}

#[derive(Debug)]
struct FoundObject {
    object: ObjectId,
    /// Content from its start on, up to the first chunk that is missing, damaged or not full.
    bytes: u64,
    /// The number of the next chunk that would add to it; `None` behind the last one.
    next: Option<u32>,
    first: FirstChunk,
    is_listed: bool,
    is_named: bool,
}

/// Where its chunk 0 is.
#[derive(Debug)]
enum FirstChunk {
    Unknown,
    InFile(BlobReference),
    InContentFile,
    Here(Bytes),
}

/// Counts of objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectCounts {
    pub objects: u64,
    /// Bytes of their content.
    pub bytes: u64,
    /// Those of them that no row names. A server removes them when they are a day old.
    pub unnamed: u64,
    pub unnamed_bytes: u64,
    /// Objects that can't be listed, although they have chunks.
    pub unlisted: u64,
}

/// What a row lacks.
#[derive(Debug, PartialEq, Eq)]
pub struct Lack {
    pub object: ObjectId,
    pub needed: u64,
    pub found: u64,
}

impl FoundObjects {
    /// Adds a sound chunk. They come in the order of their keys.
    fn add(&mut self, object: ObjectId, number: u32, content: u64, place: FirstChunk) {
        if self.found.last().is_none_or(|last| last.object != object) {
            let first = FirstChunk::Unknown;
            self.found.push(FoundObject {
                object,
                bytes: 0,
                next: Some(0),
                first,
                is_listed: false,
                is_named: false,
            });
        }
        let Some(found) = self.found.last_mut() else { return };
        if number == 0 {
            found.first = place;
        }
        if found.next == Some(number) {
            found.bytes += content;
            found.next = if content == CHUNK_BYTES as u64 { number.checked_add(1) } else { None };
        }
    }

    fn find(&mut self, object: ObjectId) -> Option<&mut FoundObject> {
        let at = self.found.binary_search_by_key(&object, |found| found.object).ok()?;
        Some(&mut self.found[at])
    }

    /// Notes that the object is listed. An object without chunks names nothing that could be lost.
    pub fn list(&mut self, object: ObjectId) {
        if let Some(found) = self.find(object) {
            found.is_listed = true;
        }
    }

    pub fn counts(&self) -> ObjectCounts {
        let mut counts = ObjectCounts::default();
        for found in &self.found {
            counts.objects += 1;
            counts.bytes += found.bytes;
            counts.unnamed += u64::from(!found.is_named);
            counts.unnamed_bytes += if found.is_named { 0 } else { found.bytes };
            counts.unlisted += u64::from(!found.is_listed);
        }
        counts
    }
}

/// Reads chunks and lists.
pub struct ObjectReader<'a> {
    data: PathBuf,
    database: PathBuf,
    /// Objects with a file of content, the last one first, each with the slots of its file.
    in_files: Vec<(ObjectId, u32)>,
    /// The next slot of the first of them.
    next_slot: u32,
    naming: &'a dyn ObjectNaming,
    buffers: ReadBuffers,
    /// The file that was read last: chunks that were written together lie together.
    open: Option<(u64, BlobFile)>,
    pub objects: FoundObjects,
    /// Bytes read of blob files since this was last taken.
    pub bytes_read: u64,
}

/// An entry of the family of objects.
#[derive(Debug)]
pub enum ObjectEntry {
    Name,
    Chunk(Vec<u8>),
}

/// Why a chunk is not one that can be used, and in which file it is, if it is known.
#[derive(Debug)]
pub struct ChunkError {
    pub file: Option<String>,
    pub detail: String,
}

impl<'a> ObjectReader<'a> {
    /// Of the store in this data directory.
    pub fn new(data: &Path, naming: &'a dyn ObjectNaming) -> Self {
        Self {
            data: data.to_owned(),
            database: data.join(layout::DATABASE_DIRECTORY),
            in_files: Vec::new(),
            next_slot: 0,
            naming,
            buffers: ReadBuffers::default(),
            open: None,
            objects: FoundObjects::default(),
            bytes_read: 0,
        }
    }

    /// Finds files of content. Returns how many there are, and their bytes.
    pub fn find_files(&mut self) -> io::Result<(u64, u64)> {
        let found = content_files::sealed_in(&self.data)?;
        let bytes = found.iter().map(|(_, bytes)| bytes).sum();
        self.in_files =
            found.iter().rev().map(|(object, bytes)| (*object, content_slot::slots_in(*bytes))).collect();
        Ok((self.in_files.len() as u64, bytes))
    }

    pub fn has_files(&self) -> bool {
        !self.in_files.is_empty()
    }

    /// The objects with files that were not read yet.
    pub fn files(&self) -> Vec<ObjectId> {
        self.in_files.iter().map(|(object, _)| *object).collect()
    }

    /// Passes over the files of objects that the database does not name: what is left of them is garbage.
    pub fn keep_files(&mut self, is_named: impl Fn(ObjectId) -> bool) {
        self.in_files.retain(|(object, _)| is_named(*object));
    }

    /// Reads the next chunk of a file, of those before this one of the database; `None` if there is none. Chunks come in the
    /// order of their keys.
    pub fn next_in_file(
        &mut self,
        before: Option<(ObjectId, u32)>,
    ) -> Option<Result<(ObjectId, u32, Bytes), ChunkError>> {
        loop {
            let (object, slots) = *self.in_files.last()?;
            let number = self.next_slot;
            if number == slots {
                self.in_files.pop();
                self.next_slot = 0;
                continue;
            }
            if before.is_some_and(|before| (object, number) >= before) {
                return None;
            }
            self.next_slot += 1;
            match self.chunk_in_file(object, number) {
                Ok(None) => {}
                Ok(Some(chunk)) => return Some(Ok((object, number, chunk))),
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Reads a slot, checks it and notes it.
    fn chunk_in_file(&mut self, object: ObjectId, number: u32) -> Result<Option<Bytes>, ChunkError> {
        let unfit = |cause: String| ChunkError {
            file: Some(format!("{}/{object}", layout::CONTENT_DIRECTORY)),
            detail: format!("chunk {number} of object {object}: {cause}"),
        };
        let chunk = self.slot(object, number).map_err(|error| match error {
            SlotError::Unreadable(error) => unfit(error.to_string()),
            SlotError::Damaged => unfit("its checksum does not match".to_owned()),
        })?;
        let Some(chunk) = chunk else { return Ok(None) };
        self.bytes_read += chunk.len() as u64;
        let content = self.naming.content_of(object, number, chunk.clone());
        let content = content.map_err(|fault| unfit(fault.happened()))?;
        self.objects.add(object, number, content, FirstChunk::InContentFile);
        Ok(Some(chunk))
    }

    fn slot(&self, object: ObjectId, number: u32) -> Result<Option<Bytes>, SlotError> {
        let path = self.data.join(layout::CONTENT_DIRECTORY).join(object.to_string());
        let file = File::open(path).map_err(SlotError::Unreadable)?;
        content_slot::read(&file, object, number, &self.buffers, true)
    }

    /// Reads an entry and notes it. Entries come in the order of their keys.
    pub fn take(&mut self, key: &[u8], value: &[u8], is_reference: bool) -> Result<ObjectEntry, ChunkError> {
        let unfit = |detail: String| ChunkError { file: None, detail };
        match ObjectKey::read(key) {
            None => Err(unfit(format!("the key {key:02x?} is not one of an object"))),
            Some(ObjectKey::Name(object)) => {
                self.objects.list(object);
                Ok(ObjectEntry::Name)
            }
            Some(ObjectKey::Chunk(object, number)) => {
                let about = |cause: String| format!("chunk {number} of object {object}: {cause}");
                let (chunk, place) = if is_reference {
                    let reference = BlobReference::read(value)
                        .ok_or_else(|| unfit(about(BlobError::Reference.to_string())))?;
                    let chunk = self.value(key, reference).map_err(|error| ChunkError {
                        file: Some(reference.file_name()),
                        detail: about(error.to_string()),
                    })?;
                    (Bytes::from(chunk), FirstChunk::InFile(reference))
                } else {
                    let chunk = Bytes::copy_from_slice(value);
                    (chunk.clone(), FirstChunk::Here(if number == 0 { chunk } else { Bytes::new() }))
                };
                let content = self.naming.content_of(object, number, chunk.clone());
                let content = content.map_err(|fault| unfit(about(fault.happened())))?;
                self.objects.add(object, number, content, place);
                Ok(ObjectEntry::Chunk(chunk.into()))
            }
        }
    }

    fn value(&mut self, key: &[u8], reference: BlobReference) -> Result<Vec<u8>, BlobError> {
        if self.open.as_ref().is_none_or(|(number, _)| *number != reference.file) {
            self.open = Some((reference.file, BlobFile::open(&self.database.join(reference.file_name()))?));
        }
        let Some((_, file)) = &self.open else { return Err(BlobError::Missing) };
        self.bytes_read += reference.size;
        file.value(key, reference, CHUNK_BYTES_MAX as u64)
    }

    /// What a row lacks of the objects that it needs, also by lists.
    pub fn lacks(&mut self, partition: &str, row: RowView<'_>) -> Result<Vec<Lack>, Fault> {
        let mut lacks = Vec::new();
        for need in self.naming.in_row(partition, row)? {
            let is_there = self.meet(need, &mut lacks);
            if need.is_list && is_there {
                for listed in self.list(need.object)? {
                    self.meet(Need { may_be_gone: need.may_be_gone, ..listed }, &mut lacks);
                }
            }
        }
        Ok(lacks)
    }

    /// Whether enough of it is there.
    fn meet(&mut self, need: Need, lacks: &mut Vec<Lack>) -> bool {
        let found = self.objects.find(need.object).map_or(0, |found| {
            found.is_named = true;
            found.bytes
        });
        let is_gone = found == 0 && need.may_be_gone;
        if found < need.bytes && !is_gone {
            lacks.push(Lack { object: need.object, needed: need.bytes, found });
        }
        found >= need.bytes
    }

    fn list(&mut self, list: ObjectId) -> Result<Vec<Need>, Fault> {
        let about = || format!("object {list}");
        let first = self.objects.find(list).map(|found| match &found.first {
            FirstChunk::Unknown => FirstChunk::Unknown,
            FirstChunk::InFile(reference) => FirstChunk::InFile(*reference),
            FirstChunk::InContentFile => FirstChunk::InContentFile,
            FirstChunk::Here(chunk) => FirstChunk::Here(chunk.clone()),
        });
        let chunk = match first {
            Some(FirstChunk::Here(chunk)) => chunk,
            Some(FirstChunk::InFile(reference)) => {
                let value = self.value(&layout::chunk_key(list, 0), reference);
                value
                    .map_err(|error| Fault::damaged("a list can't be read").because(error).about(about()))?
                    .into()
            }
            Some(FirstChunk::InContentFile) => {
                let unreadable = || Fault::damaged("a list can't be read").about(about());
                self.slot(list, 0).ok().flatten().ok_or_else(unreadable)?
            }
            Some(FirstChunk::Unknown) | None => {
                return Err(Fault::damaged("a list is missing").about(about()));
            }
        };
        self.naming.in_list(list, chunk)
    }
}
