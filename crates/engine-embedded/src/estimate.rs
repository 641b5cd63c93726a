//! About how much a table holds, or a range of its keys: counted while that is cheap, else from the sizes of the table
//! files.

use rocksdb::properties::ESTIMATE_NUM_KEYS;
use rocksdb::{Range, ReadOptions};
use store::{Fault, TableEstimate};

use crate::db::{self, Db};

/// Deleted rows that counting may step over. Behind more of them, counting would take long.
const DELETED_ROWS_MAX: u64 = 100_000;

/// Reads at most `rows_max` rows between these stored keys.
pub fn estimate(db: &Db, (start, end): (&[u8], &[u8]), rows_max: u64) -> Result<TableEstimate, Fault> {
    let counted = count(db, (start, end), rows_max)?;
    if counted.is_all {
        return Ok(TableEstimate { rows: counted.rows, bytes: counted.bytes, read: counted.rows });
    }
    let size = |start: &[u8], end: &[u8]| -> u64 {
        db.rocks().get_approximate_sizes_cf(db.data(), &[Range::new(start, end)]).iter().sum()
    };
    let (own, all) = (size(start, end), size(&[], &[u8::MAX; 32]));
    // Of all tables together, RocksDB knows about how many rows there are.
    let rows_of_all = db.rocks().property_int_value_cf(db.data(), ESTIMATE_NUM_KEYS);
    let rows_of_all = rows_of_all.ok().flatten().unwrap_or(0);
    let share = u128::from(rows_of_all) * u128::from(own) / u128::from(all.max(1));
    let rows = u64::try_from(share).unwrap_or(u64::MAX).max(counted.rows);
    Ok(TableEstimate { rows, bytes: own.max(counted.bytes), read: counted.rows })
}

struct Counted {
    rows: u64,
    bytes: u64,
    is_all: bool,
}

fn count(db: &Db, (start, end): (&[u8], &[u8]), rows_max: u64) -> Result<Counted, Fault> {
    let mut options = ReadOptions::default();
    options.set_iterate_upper_bound(end);
    options.set_max_skippable_internal_keys(DELETED_ROWS_MAX);
    // Counting must not push out what requests need.
    options.fill_cache(false);
    let mut walk = db.rocks().raw_iterator_cf_opt(db.data(), options);
    walk.seek(start);
    let mut counted = Counted { rows: 0, bytes: 0, is_all: false };
    while let Some((key, value)) = walk.item() {
        if counted.rows == rows_max {
            return Ok(counted);
        }
        counted.rows += 1;
        counted.bytes += (key.len() + value.len()) as u64;
        walk.next();
    }
    match walk.status() {
        Ok(()) => Ok(Counted { is_all: true, ..counted }),
        Err(error) if error.kind() == rocksdb::ErrorKind::Incomplete => Ok(counted),
        Err(error) => Err(db::fault("could not count the rows of a table", error)),
    }
}
