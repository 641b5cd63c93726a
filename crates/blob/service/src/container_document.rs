//! What is stored with a container, as one document that can grow: the time of its ETag, metadata, policies, public access,
//! lease.
//!
//! The first byte is the format, 01. Fields follow, each a tag, the length of its value as a varint, and the value; in
//! ascending order of their tags. Fields of later versions are kept as they are.

use std::collections::BTreeMap;

use blob_model::{DateTime, Guid, Lease, LeaseDuration, LeaseId, Metadata, PublicAccess};
use bytes::Bytes;
use store::Fault;
use store::encoding::varint;

const FORMAT: u8 = 1;
/// Names and values, each after its length.
const METADATA: u8 = 1;
/// The policies as the protocol writes them.
const POLICIES: u8 = 2;
/// Ticks, i64; always there.
const CHANGED: u8 = 3;
/// One byte, of a container that is not private.
const ACCESS: u8 = 4;
const LEASE: u8 = 5;

const ACCESS_TO_BLOBS: u8 = 1;
const ACCESS_TO_CONTAINER: u8 = 2;

/// A kind, the id, and then: seconds (0 for ever) and ticks of the end, or ticks from which on it is broken.
const LEASE_HELD: u8 = 1;
const LEASE_BROKEN: u8 = 2;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerDocument {
    /// The time of its ETag.
    pub changed: DateTime,
    pub metadata: Metadata,
    pub policies: Option<Bytes>,
    pub access: PublicAccess,
    pub lease: Lease,
    /// Fields of later versions.
    unknown: BTreeMap<u8, Bytes>,
}

impl ContainerDocument {
    pub fn new(changed: DateTime, metadata: Metadata, access: PublicAccess) -> Self {
        let (policies, lease, unknown) = (None, Lease::Available, BTreeMap::new());
        Self { changed, metadata, policies, access, lease, unknown }
    }

    pub fn write(&self) -> Bytes {
        let mut fields = self.unknown.clone();
        fields.insert(CHANGED, self.changed.ticks().to_le_bytes().to_vec().into());
        if !self.metadata.is_empty() {
            fields.insert(METADATA, write_metadata(&self.metadata).into());
        }
        if let Some(policies) = &self.policies {
            fields.insert(POLICIES, policies.clone());
        }
        let access = match self.access {
            PublicAccess::None => None,
            PublicAccess::Blob => Some(ACCESS_TO_BLOBS),
            PublicAccess::Container => Some(ACCESS_TO_CONTAINER),
        };
        if let Some(access) = access {
            fields.insert(ACCESS, vec![access].into());
        }
        if let Some(lease) = write_lease(&self.lease) {
            fields.insert(LEASE, lease.into());
        }
        let mut document = vec![FORMAT];
        for (tag, value) in fields {
            document.push(tag);
            put(&mut document, &value);
        }
        document.into()
    }

    pub fn read(stored: Option<&Bytes>) -> Result<Self, Fault> {
        let document = stored.and_then(parse);
        document.ok_or_else(|| Fault::damaged("the stored document of a container can't be read"))
    }
}

fn parse(stored: &Bytes) -> Option<ContainerDocument> {
    let mut rest = stored.strip_prefix(&[FORMAT])?;
    let mut fields = BTreeMap::new();
    while let Some((tag, behind)) = rest.split_first() {
        rest = behind;
        fields.insert(*tag, take(&mut rest)?);
    }
    let changed = ticks(fields.remove(&CHANGED)?)?;
    let metadata = fields.remove(&METADATA).map_or(Some(Metadata::default()), read_metadata)?;
    let access = match fields.remove(&ACCESS) {
        None => PublicAccess::None,
        Some([ACCESS_TO_BLOBS]) => PublicAccess::Blob,
        Some([ACCESS_TO_CONTAINER]) => PublicAccess::Container,
        Some(_) => return None,
    };
    let policies = fields.remove(&POLICIES).map(Bytes::copy_from_slice);
    let lease = fields.remove(&LEASE).map_or(Some(Lease::Available), read_lease)?;
    let unknown = fields.into_iter().map(|(tag, value)| (tag, Bytes::copy_from_slice(value))).collect();
    Some(ContainerDocument { changed, metadata, policies, access, lease, unknown })
}

fn write_lease(lease: &Lease) -> Option<Vec<u8>> {
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

fn read_lease(stored: &[u8]) -> Option<Lease> {
    let (kind, rest) = stored.split_first()?;
    let (id, rest) = rest.split_first_chunk::<16>()?;
    let id = LeaseId(Guid(*id));
    match (*kind, rest) {
        (LEASE_HELD, [0]) => Some(Lease::Held { id, duration: LeaseDuration::Infinite, ends: None }),
        (LEASE_HELD, [seconds, ends @ ..]) if *seconds > 0 => {
            let duration = LeaseDuration::Seconds(*seconds);
            Some(Lease::Held { id, duration, ends: Some(ticks(ends)?) })
        }
        (LEASE_BROKEN, from) => Some(Lease::Broken { id, from: ticks(from)? }),
        _ => None,
    }
}

fn ticks(stored: &[u8]) -> Option<DateTime> {
    DateTime::from_ticks(i64::from_le_bytes(stored.try_into().ok()?))
}

fn write_metadata(metadata: &Metadata) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in metadata.iter() {
        put(&mut out, name.as_bytes());
        put(&mut out, value.as_bytes());
    }
    out
}

fn read_metadata(mut rest: &[u8]) -> Option<Metadata> {
    let mut pairs = Vec::new();
    while !rest.is_empty() {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
        pairs.push((text(take(&mut rest)?)?, text(take(&mut rest)?)?));
    }
    Metadata::new(pairs).ok()
}

fn put(out: &mut Vec<u8>, value: &[u8]) {
    varint::put(out, value.len());
    out.extend_from_slice(value);
}

fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = varint::take(rest)?;
    let (value, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(second: i64) -> DateTime {
        DateTime::from_ticks(DateTime::MIN_STORED.ticks() + second * 10_000_000).unwrap()
    }

    fn full() -> ContainerDocument {
        let metadata = Metadata::new(vec![("Color".to_owned(), "red".to_owned())]).unwrap();
        ContainerDocument {
            policies: Some(Bytes::from_static(b"acl")),
            ..ContainerDocument::new(time(1), metadata, PublicAccess::Blob)
        }
    }

    #[test]
    fn documents_read_back() {
        let id = LeaseId(Guid([7; 16]));
        let leases = [
            Lease::Available,
            Lease::Held { id, duration: LeaseDuration::Infinite, ends: None },
            Lease::Held { id, duration: LeaseDuration::Seconds(15), ends: Some(time(16)) },
            Lease::Broken { id, from: time(5) },
        ];
        for lease in leases {
            for access in [PublicAccess::None, PublicAccess::Blob, PublicAccess::Container] {
                for document in [full(), ContainerDocument::new(time(2), Metadata::default(), access)] {
                    let document = ContainerDocument { access, lease, ..document };
                    assert_eq!(ContainerDocument::read(Some(&document.write())).unwrap(), document);
                }
            }
        }
    }

    #[test]
    fn the_bytes_never_change() {
        let id = LeaseId(Guid([7; 16]));
        let document = ContainerDocument { lease: Lease::Broken { id, from: time(0) }, ..full() };
        let ticks = time(1).ticks().to_le_bytes();
        let zero = time(0).ticks().to_le_bytes();
        let expected: Vec<&[u8]> = vec![
            b"\x01\x01\x0a\x05Color\x03red\x02\x03acl\x03\x08",
            &ticks,
            b"\x04\x01\x01\x05\x19\x02",
            &[7; 16],
            &zero,
        ];
        assert_eq!(document.write(), expected.concat());
    }

    #[test]
    fn fields_of_later_versions_are_kept() {
        let mut stored = full().write().to_vec();
        stored.extend_from_slice(b"\x09\x05later");
        let mut document = ContainerDocument::read(Some(&stored.into())).unwrap();
        document.metadata = Metadata::default();
        assert!(document.write().ends_with(b"\x09\x05later"));
    }

    #[test]
    fn damage_is_seen() {
        let whole = full().write();
        for length in 0..whole.len() {
            // Whole fields may be missing, but for the time.
            let cut = ContainerDocument::read(Some(&whole.slice(..length)));
            assert!(cut.is_err() || cut.unwrap() != full(), "{length} bytes");
        }
        assert!(ContainerDocument::read(None).is_err());
        let changed = [&b"\x03\x08"[..], &time(1).ticks().to_le_bytes()].concat();
        for damaged in
            [&b"\x04\x01\x03"[..], b"\x05\x01\x01", b"\x05\x12\x01AAAAAAAAAAAAAAAA\x0f", b"\x06\x05ab"]
        {
            let stored = [&b"\x01"[..], &changed, damaged].concat();
            assert!(ContainerDocument::read(Some(&stored.into())).is_err(), "{damaged:?}");
        }
    }
}
