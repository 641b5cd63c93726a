//! Where the content of a blob is, as its row says.
//!
//! Content is, in this order: what manifests list, extents, and bytes in the row itself. A small blob has only the last, a
//! blob made by one upload has one extent, and a blob of many blocks has manifests. A *manifest* is an object with a list of
//! extents, so that a row stays small whatever the blob has.
//!
//! As stored: the format, 01; the number of manifests, and for each its object, how many bytes of content it lists, and how
//! many extents; the number of extents, and these; all that follows are bytes of content.

use blob_model::limits::COMMITTED_BLOCKS_MAX;
use bytes::Bytes;
use store::{Fault, ObjectId};

use super::Extent;
use super::number;

/// Content that a row holds itself.
pub const INLINE_BYTES_MAX: usize = 4 * 1024;
/// Extents in a row; more become a manifest.
pub const ROW_EXTENTS_MAX: usize = 128;
/// Extents of a manifest. All manifests but the last of a blob have so many.
pub const MANIFEST_EXTENTS_MAX: usize = 1024;
/// So many are enough for the longest list of blocks.
pub const MANIFESTS_MAX: usize = COMMITTED_BLOCKS_MAX.div_ceil(MANIFEST_EXTENTS_MAX);

const FORMAT: u8 = 1;

/// An object that lists extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manifest {
    pub object: ObjectId,
    /// Bytes of content of all its extents.
    pub length: u64,
    pub extents: u32,
}

/// Cheap to clone while it is small.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    pub(super) manifests: Vec<Manifest>,
    pub(super) extents: Vec<Extent>,
    pub(super) inline: Bytes,
}

impl Content {
    /// Content that is in its row; at most [`INLINE_BYTES_MAX`].
    pub fn inline(bytes: Bytes) -> Self {
        Self { inline: bytes, ..Self::default() }
    }

    pub fn of_extent(extent: Extent) -> Self {
        Self::of_extents(vec![extent])
    }

    /// A row has at most [`ROW_EXTENTS_MAX`] of them.
    pub fn of_extents(extents: Vec<Extent>) -> Self {
        Self { extents, ..Self::default() }
    }

    pub fn length(&self) -> u64 {
        let listed: u64 = self.manifests.iter().map(|manifest| manifest.length).sum();
        let extents: u64 = self.extents.iter().map(|extent| extent.length).sum();
        listed + extents + self.inline.len() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.length() == 0
    }

    /// Extents, also those that manifests list.
    pub fn extent_count(&self) -> u64 {
        let listed: u64 = self.manifests.iter().map(|manifest| u64::from(manifest.extents)).sum();
        listed + self.extents.len() as u64
    }

    /// The bytes that are in the row.
    pub fn inline_bytes(&self) -> &Bytes {
        &self.inline
    }

    /// The extents that are in the row: all of them, if there are no manifests.
    pub fn row_extents(&self) -> &[Extent] {
        &self.extents
    }

    pub fn manifests(&self) -> &[Manifest] {
        &self.manifests
    }

    /// The same without the bytes that are in the row.
    pub fn without_bytes(&self) -> Self {
        Self { manifests: self.manifests.clone(), extents: self.extents.clone(), inline: Bytes::new() }
    }

    /// Memory that its extents and manifests in the row take.
    pub fn extent_bytes(&self) -> usize {
        let ids = self.extents.iter().filter_map(|extent| extent.block.as_ref());
        // What an allocation takes beside the id.
        let ids: usize = ids.map(|id| id.as_bytes().len() + 2 * size_of::<usize>()).sum();
        size_of_val(&*self.manifests) + size_of_val(&*self.extents) + ids
    }

    pub fn write(&self) -> Vec<u8> {
        let mut out = vec![FORMAT];
        number::put(&mut out, self.manifests.len() as u64);
        for manifest in &self.manifests {
            out.extend_from_slice(manifest.object.as_bytes());
            number::put(&mut out, manifest.length);
            number::put(&mut out, u64::from(manifest.extents));
        }
        write_extents(&mut out, &self.extents);
        out.extend_from_slice(&self.inline);
        out
    }

    pub fn read(stored: &[u8]) -> Result<Self, Fault> {
        parse(stored).ok_or_else(|| {
            Fault::damaged(format!("the stored content of a blob, {} bytes, can't be read", stored.len()))
        })
    }
}

fn parse(stored: &[u8]) -> Option<Content> {
    let mut rest = stored.strip_prefix(&[FORMAT])?;
    // The length of a blob is the sum of all of these, and must not overflow.
    let mut length = 0_u64;
    let mut manifests = Vec::new();
    for _ in 0..take_count(&mut rest, MANIFESTS_MAX)? {
        let object = ObjectId::from_bytes(number::take_array(&mut rest)?);
        let listed = number::take(&mut rest)?;
        let extents = number::take(&mut rest)?;
        if !(1..=MANIFEST_EXTENTS_MAX as u64).contains(&extents) || listed < extents {
            return None;
        }
        length = length.checked_add(listed)?;
        manifests.push(Manifest { object, length: listed, extents: u32::try_from(extents).ok()? });
    }
    let extents = take_extents(&mut rest, ROW_EXTENTS_MAX)?;
    for extent in &extents {
        length = length.checked_add(extent.length)?;
    }
    length.checked_add(rest.len() as u64)?;
    (rest.len() <= INLINE_BYTES_MAX).then(|| Content {
        manifests,
        extents,
        inline: Bytes::copy_from_slice(rest),
    })
}

/// The bytes of a manifest.
pub(super) fn write_manifest(extents: &[Extent]) -> Vec<u8> {
    let mut out = vec![FORMAT];
    write_extents(&mut out, extents);
    out
}

/// The extents of a manifest, whatever its row says of it.
pub(super) fn read_list(id: ObjectId, stored: &[u8]) -> Result<Vec<Extent>, Fault> {
    let parse = || {
        let mut rest = stored.strip_prefix(&[FORMAT])?;
        let extents = take_extents(&mut rest, MANIFEST_EXTENTS_MAX)?;
        rest.is_empty().then_some(extents)
    };
    parse().ok_or_else(|| Fault::damaged("a stored list of extents can't be read").about(object(id)))
}

/// The extents of a manifest, as its row knows it.
pub(super) fn read_manifest(manifest: &Manifest, stored: &[u8]) -> Result<Vec<Extent>, Fault> {
    let extents = read_list(manifest.object, stored)?;
    let length = extents.iter().try_fold(0_u64, |sum, extent| sum.checked_add(extent.length));
    match extents.len() as u64 == u64::from(manifest.extents) && length == Some(manifest.length) {
        true => Ok(extents),
        false => Err(Fault::damaged("a list of extents is not the one that its row knows")
            .about(object(manifest.object))),
    }
}

/// An object, for people.
pub(super) fn object(id: ObjectId) -> String {
    format!("object {id}")
}

fn write_extents(out: &mut Vec<u8>, extents: &[Extent]) {
    number::put(out, extents.len() as u64);
    for extent in extents {
        extent.write(out);
    }
}

fn take_extents(rest: &mut &[u8], max: usize) -> Option<Vec<Extent>> {
    (0..take_count(rest, max)?).map(|_| Extent::take(rest)).collect()
}

fn take_count(rest: &mut &[u8], max: usize) -> Option<usize> {
    usize::try_from(number::take(rest)?).ok().filter(|count| *count <= max)
}

#[cfg(test)]
mod tests;
