//! Records that can grow: a format byte, then fields, each with its tag and its length.
//!
//! A program keeps the fields it does not know when it writes the record again. A field that is not safe to ignore has a tag
//! that says so; a program that does not know such a field refuses the record. So a field can be added without a new
//! store format.

use std::collections::BTreeMap;

use bytes::Bytes;
use store::encoding::varint;

/// The first byte of a record that consists of fields.
pub const FORMAT: u8 = 2;
/// A program that does not know a tag with this bit must not use the record.
pub const MUST_UNDERSTAND: u8 = 0x80;

/// Fields by their tags. The format byte and the fields in the order of their tags are the record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(BTreeMap<u8, Bytes>);

/// Why a record or its key can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("unreadable")]
    Damaged,
    #[error("it has {0}, which this version does not know")]
    Newer(String),
}

impl Fields {
    pub fn read(record: &[u8]) -> Result<Self, Unusable> {
        let mut rest = record.strip_prefix(&[FORMAT]).ok_or(Unusable::Damaged)?;
        let mut fields = BTreeMap::new();
        while let Some((tag, value)) = take_field(&mut rest)? {
            // Each tag once, in ascending order: then a record has only one spelling.
            if fields.last_key_value().is_some_and(|(last, _)| *last >= tag) {
                return Err(Unusable::Damaged);
            }
            fields.insert(tag, Bytes::copy_from_slice(value));
        }
        Ok(Self(fields))
    }

    pub fn write(&self) -> Vec<u8> {
        let mut record = vec![FORMAT];
        for (tag, value) in &self.0 {
            record.push(*tag);
            varint::put(&mut record, value.len());
            record.extend_from_slice(value);
        }
        record
    }

    pub fn with(mut self, tag: u8, value: Bytes) -> Self {
        self.0.insert(tag, value);
        self
    }

    pub fn take(&mut self, tag: u8) -> Option<Bytes> {
        self.0.remove(&tag)
    }

    /// What is left when the known fields are taken: fields to keep. An error if one of them must be understood.
    pub fn into_unknown(self) -> Result<Self, Unusable> {
        match self.0.keys().find(|tag| *tag & MUST_UNDERSTAND != 0) {
            Some(tag) => Err(Unusable::Newer(format!("the field {tag:#04x}"))),
            None => Ok(self),
        }
    }
}

fn take_field<'a>(rest: &mut &'a [u8]) -> Result<Option<(u8, &'a [u8])>, Unusable> {
    let Some((tag, behind)) = rest.split_first() else { return Ok(None) };
    *rest = behind;
    let length = varint::take(rest).ok_or(Unusable::Damaged)?;
    let (value, behind) = rest.split_at_checked(length).ok_or(Unusable::Damaged)?;
    *rest = behind;
    Ok(Some((*tag, value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> Fields {
        let long = Bytes::from(vec![7; 300]);
        Fields::default().with(9, long).with(2, Bytes::from_static(b"two")).with(1, Bytes::new())
    }

    #[test]
    fn fields_are_written_in_the_order_of_their_tags() {
        let expected = [&[2, 1, 0, 2, 3][..], b"two", &[9, 0xac, 0x02], &[7; 300]].concat();
        assert_eq!(fields().write(), expected);
        assert_eq!(Fields::read(&expected), Ok(fields()));
        assert_eq!(Fields::read(&[FORMAT]), Ok(Fields::default()));
    }

    #[test]
    fn a_record_that_is_cut_or_not_in_order_is_damaged() {
        let whole = fields().write();
        // A record may end after each of its fields; everywhere else the cut is seen.
        let ends = [1, 3, 8, whole.len()];
        for length in 0..=whole.len() {
            let is_whole = ends.contains(&length);
            assert_eq!(Fields::read(&whole[..length]).is_ok(), is_whole, "{length} bytes");
        }
        for record in [&[1, 1, 0][..], &[3], &[2, 2, 0, 1, 0], &[2, 1, 0, 1, 0]] {
            assert_eq!(Fields::read(record), Err(Unusable::Damaged), "{record:?}");
        }
    }

    #[test]
    fn unknown_fields_are_kept_unless_they_must_be_understood() {
        let mut left = fields();
        assert_eq!(left.take(2), Some(Bytes::from_static(b"two")));
        let kept = left.into_unknown().unwrap();
        assert_eq!(kept.with(2, Bytes::from_static(b"two")), fields());
        let refused = fields().with(MUST_UNDERSTAND | 3, Bytes::new()).into_unknown();
        let Err(Unusable::Newer(what)) = refused else { panic!("{refused:?}") };
        assert_eq!(what, "the field 0x83");
    }
}
