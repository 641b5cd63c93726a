//! Commands that maintain a store: `partita check`, `backup`, `restore` and `migrate` for a store on disk, `store` for a
//! cluster. `health` and `status` ask a running server for its state, `doctor` looks at its set-up; `manual` and `completions`
//! describe the program itself.
//!
//! They belong to the binary, because they name engines. The commands for the disk work on files. `backup` and `migrate`
//! ask a running server for checkpoints, and `migrate` also asks it to refuse writes.

pub mod backup;
pub mod check;
pub mod checkpoint;
pub mod doctor;
mod files;
pub mod health;
pub mod manual;
pub mod marks;
pub mod migrate;
mod progress;
pub mod restore;
pub mod status;
pub mod store;
