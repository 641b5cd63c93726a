//! The data set. Every entity is computed from a number, so an answer can be checked without storing the entity.
//!
//! It does not depend on the seed of a run, so that one run can read the table that another has kept.

use std::io::Write as _;

use crate::error::{BenchError, Result};
use crate::random::{Random, mix};

/// Entities of a partition, unless the whole data set is smaller.
const PARTITION_ROWS: u64 = 10_000;
/// Entities of one page: the service's limit.
pub const PAGE_ROWS: u64 = 1000;
/// The number of values of `Bucket`: each is in one of 100 entities.
pub const BUCKETS: u64 = 100;
/// The bytes of the nine properties other than `Notes`.
pub const SMALL_VALUES_BYTES: usize = 2 + 19 + 7 + 4 + 20 + 36 + NAME_BYTES + CITY_BYTES + DIGEST_BYTES;
const NAME_BYTES: usize = 24;
const CITY_BYTES: usize = 12;
const DIGEST_BYTES: usize = 64;
/// A string property holds 32 Ki characters.
pub const VALUE_BYTES_MAX: usize = 32_000;
const OFFSETS: u64 = 64 * 1024;

/// The number of entities and their size.
#[derive(Debug)]
pub struct DataSet {
    pub partitions: u64,
    /// Entities of each partition.
    pub rows: u64,
    notes_bytes: usize,
    /// Texts are cut from these letters. There are so many that a storage engine's compression finds no repetitions.
    letters: String,
}

impl DataSet {
    pub fn new(entities: u64, value_bytes: usize) -> Result<Self> {
        if entities < PAGE_ROWS {
            return Err(BenchError::TooFewEntities(entities));
        }
        if !(SMALL_VALUES_BYTES + 1..=VALUE_BYTES_MAX).contains(&value_bytes) {
            return Err(BenchError::ValueBytes { bytes: value_bytes });
        }
        let partitions = (entities / PARTITION_ROWS).max(1);
        let notes_bytes = value_bytes - SMALL_VALUES_BYTES;
        let mut random = Random::new(0);
        let letters = (0..OFFSETS as usize + notes_bytes.max(DIGEST_BYTES)).map(|_| {
            char::from(
                b"abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"
                    [random.below(64) as usize],
            )
        });
        Ok(Self { partitions, rows: entities / partitions, notes_bytes, letters: letters.collect() })
    }

    /// The number of entities: as requested, or slightly less so that partitions have equal sizes.
    pub fn entities(&self) -> u64 {
        self.partitions * self.rows
    }

    /// Entities of a partition that have this `Bucket`.
    pub fn rows_in_bucket(&self, bucket: u64) -> u64 {
        self.rows / BUCKETS + u64::from(self.rows % BUCKETS > bucket)
    }

    /// JSON of the entity with this number under these keys.
    pub fn write_entity(&self, out: &mut Vec<u8>, key: &EntityKeys, number: u64) {
        let hash = mix(number);
        let (bucket, sequence) = (number % self.rows % BUCKETS, self.sequence(number));
        let (whole, fraction) = (100 + hash % 900, hash % 999 + 1);
        let active = hash.is_multiple_of(2);
        let (month, day, hour, minute) = (1 + hash % 12, 1 + hash % 28, hash % 24, hash % 60);
        let (name, city, digest) = (
            self.letters(hash >> 3, NAME_BYTES),
            self.letters(hash >> 5, CITY_BYTES),
            self.letters(hash >> 7, DIGEST_BYTES),
        );
        let (high, low) = (hash >> 32, hash & 0xFFFF_FFFF_FFFF);
        // Writing into a vector can't fail.
        let _ = write!(
            out,
            "{{\"PartitionKey\":\"{}\",\"RowKey\":\"{}\",\"Bucket\":{bucket},\
             \"Sequence\":\"{sequence}\",\"Sequence@odata.type\":\"Edm.Int64\",\
             \"Ratio\":{whole}.{fraction:03},\"Active\":{active},\
             \"Created\":\"2024-{month:02}-{day:02}T{hour:02}:{minute:02}:00Z\",\"Created@odata.type\":\"Edm.DateTime\",\
             \"Id\":\"{high:08x}-1234-4abc-9def-{low:012x}\",\"Id@odata.type\":\"Edm.Guid\",\
             \"Name\":\"{name}\",\"City\":\"{city}\",\"Digest\":\"{digest}\",\"Notes\":\"{}\"}}",
            key.partition,
            key.row,
            self.notes(number),
        );
    }

    /// The value of `Sequence`, which the service sends as text.
    pub fn sequence(&self, number: u64) -> u64 {
        // Always 19 digits.
        4_000_000_000_000_000_000 + (mix(number) >> 2)
    }

    /// The value of `Notes`.
    pub fn notes(&self, number: u64) -> &str {
        self.letters(mix(number) >> 9, self.notes_bytes)
    }

    fn letters(&self, at: u64, length: usize) -> &str {
        let start = (at % OFFSETS) as usize;
        &self.letters[start..start + length]
    }

    /// About the bytes of an entity in a batch.
    pub fn entity_bytes(&self) -> usize {
        1024 + self.notes_bytes
    }
}

/// The keys of an entity, made of characters that need no encoding anywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntityKeys {
    pub partition: String,
    pub row: String,
}

impl EntityKeys {
    /// Sets the keys of the entity with this number in the data set.
    pub fn of(&mut self, data: &DataSet, number: u64) {
        self.at(number / data.rows, number % data.rows);
    }

    /// Sets the keys of this row of this partition, even if the data set does not have it.
    pub fn at(&mut self, partition: u64, row: u64) {
        self.clear();
        push_padded(&mut self.partition, 'p', partition, 6);
        push_padded(&mut self.row, 'r', row, 8);
    }

    pub fn clear(&mut self) {
        self.partition.clear();
        self.row.clear();
    }
}

/// `number` after a letter, with leading zeros, so that text sorts as numbers do. Written by hand, because `format!` would be
/// one of the most expensive parts of a read.
fn push_padded(out: &mut String, letter: char, mut number: u64, width: usize) {
    let mut digits = [b'0'; 20];
    let mut first = digits.len() - width;
    let mut at = digits.len();
    while number > 0 {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    first = first.min(at);
    out.push(letter);
    out.extend(digits[first..].iter().map(|digit| char::from(*digit)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(data: &DataSet, number: u64) -> EntityKeys {
        let mut key = EntityKeys::default();
        key.of(data, number);
        key
    }

    #[test]
    fn keys_grow_with_their_numbers() {
        let data = DataSet::new(20_000, 1024).unwrap();
        for (number, partition, row) in
            [(0, "p000000", "r00000000"), (9_999, "p000000", "r00009999"), (10_000, "p000001", "r00000000")]
        {
            assert_eq!(key(&data, number), EntityKeys { partition: partition.into(), row: row.into() });
        }
        let all: Vec<_> = (0..20_000).map(|n| key(&data, n)).map(|k| (k.partition, k.row)).collect();
        assert!(all.is_sorted_by(|a, b| a < b));
        let mut wide = String::new();
        push_padded(&mut wide, 'p', 1_234_567, 6);
        assert_eq!(wide, "p1234567");
    }

    #[test]
    fn entities_are_json_of_about_the_requested_size() {
        for value_bytes in [300, 1024, 32_000] {
            let data = DataSet::new(1000, value_bytes).unwrap();
            for number in [0, 1, 999, u64::MAX / 2] {
                let mut out = Vec::new();
                data.write_entity(&mut out, &key(&data, number), number);
                let entity: serde_json::Map<String, serde_json::Value> =
                    serde_json::from_slice(&out).unwrap();
                let values = entity.iter().filter(|(name, _)| !name.contains('@') && !name.ends_with("Key"));
                let sizes: Vec<usize> =
                    values.map(|(_, v)| v.as_str().map_or_else(|| v.to_string().len(), str::len)).collect();
                assert_eq!(sizes.len(), 10);
                let total: usize = sizes.iter().sum();
                assert!(total.abs_diff(value_bytes) <= 2, "{total} for {value_bytes}");
            }
        }
    }

    #[test]
    fn the_computed_size_of_a_bucket_is_what_is_written() {
        for entities in [1000, 1234, 25_000] {
            let data = DataSet::new(entities, 1024).unwrap();
            for bucket in [0, 33, 34, 99] {
                let counted = (0..data.rows).filter(|row| row % BUCKETS == bucket).count() as u64;
                assert_eq!(data.rows_in_bucket(bucket), counted);
            }
        }
    }

    #[test]
    fn sizes_that_are_too_small_or_too_large_are_refused() {
        let error = |entities, bytes| DataSet::new(entities, bytes).unwrap_err().to_string();
        assert_eq!(error(10, 1024), "--entities 10 is too few; one page alone holds 1000");
        assert_eq!(error(1000, 10), "--value-bytes 10 is out of range; it takes 189 to 32000");
    }
}
