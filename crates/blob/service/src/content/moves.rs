//! Where several servers share the data: which objects were lately named by another row than before.
//!
//! A sweep reads rows one after another, and knows the changes of its own server alone. Content that another server moves
//! meanwhile, from a row that is not read yet to one that was, would be in no row that it reads: a copy whose source is deleted,
//! a snapshot of what is then overwritten. So whoever names what another row names writes a record of it first, and goes on only
//! if the other row still names it. The record is kept for two days, in a table that no container is and no client can delete,
//! and sweeps read these tables last.
//!
//! So whatever was named when a sweep began is named by a row that it reads: by the same row as at the beginning, or, if that row
//! stopped to name it before it was read, by the record of the move, which is older than that. Only the commit of a block list
//! makes no record. An object is a block once, so a sweep can miss it once; and what one sweep has missed is not removed.

use std::time::Duration;

use blob_model::{AccountName, DateTime, ServiceKind};
use model::Key;
use store::{Fault, StoredName, TableRef};

use super::SWEPT_AGE;

/// No container has this name.
const TABLE: &str = "$moved";
pub(crate) const PARTITION: char = 'm';
/// Writes of one partition follow each other.
const PARTITIONS: u8 = 16;
const TICKS_PER_DAY: i64 = 24 * 3600 * 10_000_000;
/// A sweep ends within a day, and a request does too.
pub const RECORD_TIME: Duration = Duration::from_secs(2 * SWEPT_AGE.as_secs());

pub fn table(account: &AccountName) -> Result<TableRef, Fault> {
    let name = StoredName::parse(ServiceKind::Blob, TABLE);
    let name = name.ok_or_else(|| Fault::bug("an engine can't keep the table of records"))?;
    Ok(TableRef { account: account.clone(), service: ServiceKind::Blob, name })
}

pub fn is_table(name: &StoredName) -> bool {
    name.as_str() == TABLE
}

/// Of the records of a day, in one of some partitions.
pub fn partition(now: DateTime) -> Result<Key, Fault> {
    let of_day = rand::random::<u8>() % PARTITIONS;
    key(format!("{PARTITION}{}-{of_day}", now.ticks() / TICKS_PER_DAY))
}

pub fn row(now: DateTime) -> Result<Key, Fault> {
    key(format!("{:016x}{:016x}", now.ticks(), rand::random::<u64>()))
}

fn key(text: String) -> Result<Key, Fault> {
    Key::parse_stored(text).map_err(|_| Fault::bug("the place of a record is not a valid key"))
}

/// When it was written.
pub fn read_row(row: &str) -> Option<DateTime> {
    DateTime::from_ticks(i64::from_str_radix(row.get(..16)?, 16).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_tells_its_time_and_no_container_has_its_table() {
        let now = DateTime::parse("2026-11-17T10:00:00.1234567Z").unwrap();
        assert_eq!(read_row(row(now).unwrap().as_str()), Some(now));
        assert_eq!(read_row("no time"), None);
        assert!(partition(now).unwrap().as_str().starts_with("m"));
        let table = table(&AccountName::parse("devstoreaccount1").unwrap()).unwrap();
        assert!(is_table(&table.name));
        assert!(blob_model::ContainerName::parse(table.name.as_str()).is_err());
    }
}
