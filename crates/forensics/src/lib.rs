//! Reads RocksDB's files without RocksDB.
//!
//! RocksDB stops at the first damage. To say exactly what is damaged, and to save everything else, one has to read on
//! behind it. These modules know the bytes of table files and logs, as far as `engine-embedded` uses them, and
//! nothing of what rows mean.
//!
//! The check and the salvage of `engine-embedded` use this crate (`survey.rs` there). It depends on none of our other
//! crates. Only [`log_tail::mend`] changes a file, before RocksDB opens a log; everything else only reads.

pub mod blob_file;
mod block;
pub mod entry;
pub mod error;
pub mod log_file;
pub mod log_tail;
pub mod manifest;
pub mod merge;
pub mod table_file;
