//! Reads the MANIFEST, a log of edits that lists the files of the database.
//!
//! RocksDB can't be used for this, because it needs all files that the MANIFEST names.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::blob_file;
use crate::block::{take_text, take_varint};
use crate::entry::Entry;
use crate::error::ManifestError;
use crate::log_file::{self, LogPart};

const CURRENT: &str = "CURRENT";

const COMPARATOR: u64 = 1;
const LOG_NUMBER: u64 = 2;
const NEXT_FILE: u64 = 3;
const LAST_SEQUENCE: u64 = 4;
const COMPACT_CURSOR: u64 = 5;
const DELETED_FILE: u64 = 6;
const PREVIOUS_LOG: u64 = 9;
const FIRST_LOG: u64 = 10;
const NEW_FILE: u64 = 103;
const FAMILY: u64 = 200;
const FAMILY_ADDED: u64 = 201;
const FAMILY_DROPPED: u64 = 202;
const FAMILY_MAX: u64 = 203;
const IN_GROUP: u64 = 300;
const BLOB_FILE: u64 = 400;
const BLOB_GARBAGE: u64 = 401;
/// Unknown fields with this bit may be ignored.
const PASSED_OVER: u64 = 1 << 13;
/// Ends the description of a new file.
const END: u64 = 1;
/// The same for a blob file.
const BLOB_END: u64 = 0;

/// A table file as the MANIFEST lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedFile {
    pub name: String,
    /// `None` for a file that exists but is not listed.
    pub size: Option<u64>,
    pub family: String,
    pub first: Option<Vec<u8>>,
    pub last: Option<Vec<u8>>,
}

#[derive(Debug, Default)]
pub struct Manifest {
    families: BTreeMap<u64, Family>,
    first_log: u64,
}

#[derive(Debug, Default)]
struct Family {
    name: String,
    /// The rows of this family in logs before this one are all in table files.
    log: u64,
    files: BTreeMap<u64, ListedFile>,
    /// How many values each blob file has that are still needed.
    blobs: BTreeMap<u64, u64>,
}

impl Manifest {
    pub fn read(database: &Path) -> Result<Self, ManifestError> {
        let current = fs::read_to_string(database.join(CURRENT)).map_err(ManifestError::Current)?;
        let name = current.trim_end();
        if !name.starts_with("MANIFEST-") || name.contains('/') {
            return Err(ManifestError::Unnamed);
        }
        let owned = || name.to_owned();
        let bytes = fs::read(database.join(name));
        let bytes = bytes.map_err(|source| ManifestError::Disk { name: owned(), source })?;
        let mut manifest = Self::default();
        manifest.families.insert(0, Family { name: "default".to_owned(), ..Family::default() });
        let mut damage = None;
        log_file::read(&bytes, |part| match part {
            LogPart::Batch(edit) => {
                if manifest.edit(edit).is_none() {
                    damage.get_or_insert_with(|| ManifestError::Edit { name: owned() });
                }
            }
            // An edit that a crash interrupted. It never took effect.
            LogPart::Unreadable { is_torn: true, .. } => {}
            LogPart::Unreadable { at, .. } => {
                damage.get_or_insert_with(|| ManifestError::Damaged { name: owned(), at });
            }
        });
        damage.map_or(Ok(manifest), Err)
    }

    /// All rows of logs with lower numbers are in table files.
    pub fn first_log(&self) -> u64 {
        let of_families = self.families.values().map(|family| family.log).min().unwrap_or(0);
        of_families.max(self.first_log)
    }

    /// The id of a column family in logs.
    pub fn family(&self, name: &str) -> Option<u32> {
        let (id, _) = self.families.iter().find(|(_, family)| family.name == name)?;
        u32::try_from(*id).ok()
    }

    pub fn files(&self) -> impl Iterator<Item = ListedFile> {
        self.families.values().flat_map(|family| {
            family.files.values().map(|file| ListedFile { family: family.name.clone(), ..file.clone() })
        })
    }

    /// The names of blob files with values that are needed.
    pub fn blob_files(&self) -> impl Iterator<Item = String> {
        let blobs = self.families.values().flat_map(|family| &family.blobs);
        blobs.filter(|(_, needed)| **needed > 0).map(|(number, _)| blob_file::file_name(*number))
    }

    fn edit(&mut self, mut edit: &[u8]) -> Option<()> {
        let edit = &mut edit;
        let (mut family, mut added, mut log) = (0, Vec::new(), None);
        let (mut deleted, mut named, mut is_dropped) = (Vec::new(), None, false);
        let (mut blobs, mut garbage) = (Vec::new(), Vec::new());
        while !edit.is_empty() {
            match take_varint(edit)? {
                COMPARATOR => drop(take_text(edit)?),
                LOG_NUMBER => log = Some(take_varint(edit)?),
                NEXT_FILE | LAST_SEQUENCE | PREVIOUS_LOG | FAMILY_MAX | IN_GROUP => drop(take_varint(edit)?),
                COMPACT_CURSOR => drop((take_varint(edit)?, take_text(edit)?)),
                DELETED_FILE => {
                    let _level = take_varint(edit)?;
                    deleted.push(take_varint(edit)?);
                }
                FIRST_LOG => self.first_log = take_varint(edit)?,
                NEW_FILE => added.push(new_file(edit)?),
                BLOB_FILE => blobs.push(new_blob_file(edit)?),
                BLOB_GARBAGE => garbage.push(blob_garbage(edit)?),
                FAMILY => family = take_varint(edit)?,
                FAMILY_ADDED => named = Some(String::from_utf8_lossy(take_text(edit)?).into_owned()),
                FAMILY_DROPPED => is_dropped = true,
                other if other & PASSED_OVER != 0 => drop(take_text(edit)?),
                _ => return None,
            }
        }
        if is_dropped {
            self.families.remove(&family);
            return Some(());
        }
        if let Some(name) = named {
            self.families.insert(family, Family { name, ..Family::default() });
        }
        let family = self.families.get_mut(&family)?;
        family.log = log.unwrap_or(family.log);
        // A file that moves to another level is deleted and added in one edit.
        for number in deleted {
            family.files.remove(&number);
        }
        family.files.extend(added);
        family.blobs.extend(blobs);
        for (number, values) in garbage {
            let needed = family.blobs.get_mut(&number)?;
            *needed = needed.checked_sub(values)?;
        }
        Some(())
    }
}

/// The number of a new blob file, and how many values it has.
fn new_blob_file(edit: &mut &[u8]) -> Option<(u64, u64)> {
    let (number, values, _bytes) = (take_varint(edit)?, take_varint(edit)?, take_varint(edit)?);
    let _checksum = (take_text(edit)?, take_text(edit)?);
    end_of_blob_fields(edit)?;
    Some((number, values))
}

/// The number of a blob file, and how many more of its values are not needed.
fn blob_garbage(edit: &mut &[u8]) -> Option<(u64, u64)> {
    let (number, values, _bytes) = (take_varint(edit)?, take_varint(edit)?, take_varint(edit)?);
    end_of_blob_fields(edit)?;
    Some((number, values))
}

fn end_of_blob_fields(edit: &mut &[u8]) -> Option<()> {
    while take_varint(edit)? != BLOB_END {
        take_text(edit)?;
    }
    Some(())
}

fn new_file(edit: &mut &[u8]) -> Option<(u64, ListedFile)> {
    let _level = take_varint(edit)?;
    let number = take_varint(edit)?;
    let size = Some(take_varint(edit)?);
    let mut key = || Entry::key(take_text(edit)?).map(<[u8]>::to_vec);
    let (first, last) = (Some(key()?), Some(key()?));
    let _sequences = (take_varint(edit)?, take_varint(edit)?);
    while take_varint(edit)? != END {
        take_text(edit)?;
    }
    Some((number, ListedFile { name: format!("{number:06}.sst"), size, family: String::new(), first, last }))
}
