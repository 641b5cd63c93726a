//! The content that rows name: copied before the row that names it, and compared with it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use store::{CHUNK_BYTES, Fault, Need, ObjectId, ObjectNaming, Objects, StoredRef, TableRef};

use crate::error::{Error, Side};
use crate::patience::persist;

/// The objects of both stores, and who knows which of them a row names.
#[derive(Clone)]
pub struct ContentCopy {
    pub source: Arc<dyn Objects>,
    pub target: Arc<dyn Objects>,
    pub naming: Arc<dyn ObjectNaming>,
    /// A comparison has found other content in the target than in the source. So a pass does not take a row that both have for a
    /// sign that the target has its content: it compares that too, and copies what differs.
    pub is_doubted: bool,
}

impl std::fmt::Debug for ContentCopy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ContentCopy").finish_non_exhaustive()
    }
}

/// Objects that are remembered as done: 20 MiB of names and numbers. Whatever is forgotten is done once more.
const REMEMBERED_MAX: usize = 1 << 20;

/// Which chunks are copied.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Copies {
    All,
    /// Those that the target has not, or not the same.
    Different,
}

/// Copies or compares objects, each chunk once.
pub(crate) struct Walk<'a> {
    content: &'a ContentCopy,
    /// How many chunks of each are done. Rows need different parts of an object: such as the runs that are left of pages.
    done: HashMap<ObjectId, u32>,
    pub objects: u64,
    pub bytes: u64,
}

impl<'a> Walk<'a> {
    pub fn new(content: &'a ContentCopy) -> Self {
        Self { content, done: HashMap::new(), objects: 0, bytes: 0 }
    }

    /// Copies what a row of the source names. Durable on return.
    pub async fn copy(&mut self, table: &TableRef, row: StoredRef<'_>) -> Result<(), Error> {
        self.copy_needs(table, row, Copies::All).await
    }

    /// Copies what the target should have of a row that both stores have, and has not: if that is in doubt. Durable on return.
    pub async fn mend(&mut self, table: &TableRef, row: StoredRef<'_>) -> Result<(), Error> {
        match self.content.is_doubted {
            true => self.copy_needs(table, row, Copies::Different).await,
            false => Ok(()),
        }
    }

    async fn copy_needs(
        &mut self,
        table: &TableRef,
        row: StoredRef<'_>,
        copies: Copies,
    ) -> Result<(), Error> {
        let mut copied = Vec::new();
        for need in self.needs(table, row)? {
            let mut all = vec![need];
            if need.is_list {
                all.extend(self.listed(table, need).await?);
            }
            for need in all {
                if self.copy_object(table, need, copies).await? {
                    copied.push(need.object);
                }
            }
        }
        if !copied.is_empty() {
            let sync = || self.content.target.sync(&copied);
            persist(sync).await.map_err(Error::of_table(Side::Target, table))?;
        }
        Ok(())
    }

    /// The first object that is not the same on both sides, if there is one.
    pub async fn compare(&mut self, table: &TableRef, row: StoredRef<'_>) -> Result<Option<ObjectId>, Error> {
        for need in self.needs(table, row)? {
            let mut all = vec![need];
            if need.is_list {
                all.extend(self.listed(table, need).await?);
            }
            for need in all {
                if !self.is_same(table, need).await? {
                    return Ok(Some(need.object));
                }
            }
        }
        Ok(None)
    }

    fn needs(&self, table: &TableRef, row: StoredRef<'_>) -> Result<Vec<Need>, Error> {
        let needs = row.row.open().and_then(|opened| self.content.naming.in_row(row.partition, opened));
        needs.map_err(|fault| damaged(table, row, fault))
    }

    /// What a list of the source names. A source that changes may have removed it, and its row with it.
    async fn listed(&self, table: &TableRef, list: Need) -> Result<Vec<Need>, Error> {
        let Some(chunk) = self.chunk(Side::Source, table, list.object, 0).await? else {
            return Ok(Vec::new());
        };
        let named = self.content.naming.in_list(list.object, chunk);
        named.map_err(|fault| Error::of_table(Side::Source, table)(fault.into()))
    }

    /// Whether something of it was copied.
    async fn copy_object(&mut self, table: &TableRef, need: Need, copies: Copies) -> Result<bool, Error> {
        let chunks = self.begin(need);
        let (is_first, mut is_copied) = (chunks.start == 0, false);
        for number in chunks {
            // A source that changes may have removed it. Then its row is another one in the next pass.
            let Some(chunk) = self.chunk(Side::Source, table, need.object, number).await? else { break };
            if copies == Copies::Different
                && self.chunk(Side::Target, table, need.object, number).await?.as_ref() == Some(&chunk)
            {
                continue;
            }
            is_copied = true;
            self.bytes += chunk.len() as u64;
            let put = || self.content.target.put(need.object, number, chunk.clone());
            persist(put).await.map_err(Error::of_table(Side::Target, table))?;
        }
        self.objects += u64::from(is_first && is_copied);
        Ok(is_copied)
    }

    async fn is_same(&mut self, table: &TableRef, need: Need) -> Result<bool, Error> {
        let chunks = self.begin(need);
        self.objects += u64::from(chunks.start == 0);
        for number in chunks {
            let ours = self.chunk(Side::Source, table, need.object, number).await?;
            let theirs = self.chunk(Side::Target, table, need.object, number).await?;
            if ours != theirs {
                return Ok(false);
            }
            let Some(chunk) = ours else {
                // What is left over may name what is gone; anything else is a fault of the source.
                return if need.may_be_gone { Ok(true) } else { Err(missing(table, need.object)) };
            };
            self.bytes += chunk.len() as u64;
        }
        Ok(true)
    }

    async fn chunk(
        &self,
        side: Side,
        table: &TableRef,
        object: ObjectId,
        number: u32,
    ) -> Result<Option<Bytes>, Error> {
        let objects = match side {
            Side::Source => &self.content.source,
            Side::Target => &self.content.target,
        };
        persist(|| objects.get(object, number)).await.map_err(Error::of_table(side, table))
    }

    /// The chunks that are needed and not done already.
    fn begin(&mut self, need: Need) -> Range<u32> {
        if self.done.len() >= REMEMBERED_MAX {
            self.done.clear();
        }
        let needed = u32::try_from(need.bytes.div_ceil(CHUNK_BYTES as u64)).unwrap_or(u32::MAX);
        let done = self.done.insert(need.object, needed).unwrap_or(0);
        if done > needed {
            self.done.insert(need.object, done);
        }
        done..needed
    }
}

fn damaged(table: &TableRef, row: StoredRef<'_>, fault: Fault) -> Error {
    let place = format!("PartitionKey {:?}, RowKey {:?}", row.partition, row.row_key);
    Error::of_table(Side::Source, table)(fault.about(place).into())
}

fn missing(table: &TableRef, object: ObjectId) -> Error {
    let fault = Fault::damaged("content that a blob needs is missing").about(format!("object {object}"));
    Error::of_table(Side::Source, table)(fault.into())
}
