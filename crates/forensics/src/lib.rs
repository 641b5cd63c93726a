//! RocksDB's files as they lie on the disk, read without RocksDB.
//!
//! RocksDB reads what it can vouch for and stops at the first thing it can't. To say what exactly is damaged, and to
//! save all that is not, one has to go on behind it. So these modules know the bytes of table files and logs, as far
//! as `engine-embedded` has them written, and nothing of what the rows mean.
//!
//! `engine-embedded` depends on this crate: its check and its salvage (`survey.rs` there) give a meaning to the rows
//! that are read here. This crate depends on no other of ours. It changes one thing on the disk: [`log_tail::mend`],
//! before RocksDB opens a log. All else only reads.

mod block;
pub mod entry;
pub mod error;
pub mod log_file;
pub mod log_tail;
pub mod manifest;
pub mod merge;
pub mod table_file;
