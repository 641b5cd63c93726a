//! Commands that look after a store on the disk: `partita check`, `backup` and `restore`.
//!
//! They belong to the binary, because they know which engine there is. They work on files; of a running server they
//! ask one thing, a checkpoint, and only `backup` does.

pub mod backup;
pub mod check;
mod files;
mod progress;
pub mod restore;
