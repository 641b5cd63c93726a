//! What is stored with a container, as one document that can grow: the time of its ETag, metadata, policies, public access,
//! lease. Its form is that of `fields`; fields of later versions are kept as they are.

use blob_model::{DateTime, Lease, Metadata, PublicAccess};
use bytes::Bytes;
use store::Fault;

use crate::fields::{self, Fields};

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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerDocument {
    /// The time of its ETag.
    pub changed: DateTime,
    pub metadata: Metadata,
    pub policies: Option<Bytes>,
    pub access: PublicAccess,
    pub lease: Lease,
    /// Fields of later versions.
    unknown: Fields,
}

impl ContainerDocument {
    pub fn new(changed: DateTime, metadata: Metadata, access: PublicAccess) -> Self {
        let (policies, lease, unknown) = (None, Lease::Available, Fields::default());
        Self { changed, metadata, policies, access, lease, unknown }
    }

    pub fn write(&self) -> Bytes {
        let mut fields = self.unknown.clone();
        fields.set(CHANGED, fields::write_ticks(self.changed));
        if !self.metadata.is_empty() {
            fields.set(METADATA, fields::write_pairs(self.metadata.iter()));
        }
        if let Some(policies) = &self.policies {
            fields.set(POLICIES, policies.clone());
        }
        let access = match self.access {
            PublicAccess::None => None,
            PublicAccess::Blob => Some(ACCESS_TO_BLOBS),
            PublicAccess::Container => Some(ACCESS_TO_CONTAINER),
        };
        if let Some(access) = access {
            fields.set(ACCESS, vec![access]);
        }
        if let Some(lease) = fields::write_lease(&self.lease) {
            fields.set(LEASE, lease);
        }
        fields.write(FORMAT).into()
    }

    /// A container without a document is one whose record was lost, and that a salvage has named: nobody but the account's
    /// owner may read it.
    pub fn read(stored: Option<&Bytes>) -> Result<Self, Fault> {
        let Some(stored) = stored else {
            return Ok(Self::new(DateTime::MIN_STORED, Metadata::default(), PublicAccess::None));
        };
        parse(stored).ok_or_else(|| Fault::damaged("the stored document of a container can't be read"))
    }
}

fn parse(stored: &Bytes) -> Option<ContainerDocument> {
    let mut fields = Fields::read(FORMAT, stored)?;
    let changed = fields::read_ticks(&fields.take(CHANGED)?)?;
    let metadata = fields.take(METADATA).map_or(Some(Metadata::default()), |m| fields::read_metadata(&m))?;
    let access = match fields.take(ACCESS).as_deref() {
        None => PublicAccess::None,
        Some([ACCESS_TO_BLOBS]) => PublicAccess::Blob,
        Some([ACCESS_TO_CONTAINER]) => PublicAccess::Container,
        Some(_) => return None,
    };
    let policies = fields.take(POLICIES);
    let lease = fields.take(LEASE).map_or(Some(Lease::Available), |lease| fields::read_lease(&lease))?;
    Some(ContainerDocument { changed, metadata, policies, access, lease, unknown: fields })
}

#[cfg(test)]
mod tests {
    use super::*;
    use blob_model::{Guid, LeaseDuration, LeaseId};

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
        assert!(ContainerDocument::read(None).is_ok_and(|document| document.access == PublicAccess::None));
        let changed = [&b"\x03\x08"[..], &time(1).ticks().to_le_bytes()].concat();
        for damaged in
            [&b"\x04\x01\x03"[..], b"\x05\x01\x01", b"\x05\x12\x01AAAAAAAAAAAAAAAA\x0f", b"\x06\x05ab"]
        {
            let stored = [&b"\x01"[..], &changed, damaged].concat();
            assert!(ContainerDocument::read(Some(&stored.into())).is_err(), "{damaged:?}");
        }
    }
}
