//! RocksDB's files as they lie on the disk, read without RocksDB.
//!
//! RocksDB reads what it can vouch for and stops at the first thing it can't. To say what exactly is damaged, and to
//! save all that is not, one has to go on behind it. So these modules know the bytes of table files and logs, as far
//! as this crate has them written, and nothing of what the rows mean. They write nothing.

pub mod block;
pub mod entry;
pub mod log_file;
pub mod manifest;
pub mod merge;
pub mod table_file;
