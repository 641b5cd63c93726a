//! Commands that look after a store: `partita check`, `backup`, `restore` and `migrate` after one on the disk, `store`
//! after a cluster. `health` asks a running server how it is; `manual` and `completions` describe the program itself.
//!
//! They belong to the binary, because they know which engines there are. Those for the disk work on files; of a
//! running server `backup` and `migrate` ask for checkpoints, and `migrate` that it refuse writes.

pub mod backup;
pub mod check;
mod files;
pub mod health;
pub mod manual;
pub mod marks;
pub mod migrate;
mod progress;
pub mod restore;
pub mod store;
