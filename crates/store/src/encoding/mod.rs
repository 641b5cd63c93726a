//! Stored bytes. The only code that knows them; `docs/storage-format.md` draws them.

pub mod key;
mod property;
pub mod raw;
pub mod row;
pub mod service;
pub mod shown;
pub mod table_name;
pub mod varint;
