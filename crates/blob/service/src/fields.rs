//! Fields of stored documents: a format byte, then fields, each a tag, the length of its value as a varint, and the value; in
//! ascending order of their tags. Documents of containers and of blobs have this form, and so have some of their values.
//!
//! Whoever reads a document takes out the fields that it knows and keeps the others as they are.

use std::collections::BTreeMap;

use blob_model::{DateTime, Guid, Lease, LeaseDuration, LeaseId, Metadata};
use bytes::Bytes;
use store::encoding::varint;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(BTreeMap<u8, Bytes>);

impl Fields {
    /// `None` if it is no document of this format.
    pub fn read(format: u8, stored: &[u8]) -> Option<Self> {
        let mut rest = stored.strip_prefix(&[format])?;
        let mut fields = BTreeMap::new();
        while let Some((tag, behind)) = rest.split_first() {
            rest = behind;
            let is_behind = fields.last_key_value().is_none_or(|(last, _)| last < tag);
            let value = Bytes::copy_from_slice(take(&mut rest)?);
            is_behind.then(|| fields.insert(*tag, value))?;
        }
        Some(Self(fields))
    }

    pub fn write(&self, format: u8) -> Vec<u8> {
        let mut document = vec![format];
        for (tag, value) in &self.0 {
            document.push(*tag);
            put(&mut document, value);
        }
        document
    }

    pub fn take(&mut self, tag: u8) -> Option<Bytes> {
        self.0.remove(&tag)
    }

    pub fn set(&mut self, tag: u8, value: impl Into<Bytes>) {
        self.0.insert(tag, value.into());
    }
}

/// A value after its length.
pub fn put(out: &mut Vec<u8>, value: &[u8]) {
    varint::put(out, value.len());
    out.extend_from_slice(value);
}

pub fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = varint::take(rest)?;
    let (value, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some(value)
}

pub fn write_ticks(time: DateTime) -> Vec<u8> {
    time.ticks().to_le_bytes().to_vec()
}

pub fn read_ticks(stored: &[u8]) -> Option<DateTime> {
    DateTime::from_ticks(i64::from_le_bytes(stored.try_into().ok()?))
}

/// Names and values, each after its length.
pub fn write_pairs<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in pairs {
        put(&mut out, name.as_bytes());
        put(&mut out, value.as_bytes());
    }
    out
}

pub fn read_pairs(mut rest: &[u8]) -> Option<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    while !rest.is_empty() {
        pairs.push((read_text(take(&mut rest)?)?, read_text(take(&mut rest)?)?));
    }
    Some(pairs)
}

pub fn read_text(stored: &[u8]) -> Option<String> {
    String::from_utf8(stored.to_vec()).ok()
}

pub fn read_metadata(stored: &[u8]) -> Option<Metadata> {
    Metadata::new(read_pairs(stored)?).ok()
}

/// A kind, the id, and then: seconds (0 for ever) and ticks of the end, or ticks from which on it is broken.
const LEASE_HELD: u8 = 1;
const LEASE_BROKEN: u8 = 2;

/// `None` for one that is available.
pub fn write_lease(lease: &Lease) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(26);
    match lease {
        Lease::Available => return None,
        Lease::Held { id, duration, ends } => {
            out.push(LEASE_HELD);
            out.extend_from_slice(&id.0.0);
            let seconds = match duration {
                LeaseDuration::Infinite => 0,
                LeaseDuration::Seconds(seconds) => *seconds,
            };
            out.push(seconds);
            if let Some(ends) = ends {
                out.extend_from_slice(&ends.ticks().to_le_bytes());
            }
        }
        Lease::Broken { id, from } => {
            out.push(LEASE_BROKEN);
            out.extend_from_slice(&id.0.0);
            out.extend_from_slice(&from.ticks().to_le_bytes());
        }
    }
    Some(out)
}

pub fn read_lease(stored: &[u8]) -> Option<Lease> {
    let (kind, rest) = stored.split_first()?;
    let (id, rest) = rest.split_first_chunk::<16>()?;
    let id = LeaseId(Guid(*id));
    match (*kind, rest) {
        (LEASE_HELD, [0]) => Some(Lease::Held { id, duration: LeaseDuration::Infinite, ends: None }),
        (LEASE_HELD, [seconds, ends @ ..]) if *seconds > 0 => {
            let duration = LeaseDuration::Seconds(*seconds);
            Some(Lease::Held { id, duration, ends: Some(read_ticks(ends)?) })
        }
        (LEASE_BROKEN, from) => Some(Lease::Broken { id, from: read_ticks(from)? }),
        _ => None,
    }
}
