//! Checks whether the answers that concurrent clients got are possible: whether one order of all operations explains
//! them.
//!
//! `recorder` runs clients against a server and records their requests and answers; `judge` looks for an order that
//! explains every answer. The judge knows the protocol's promises and nothing of any server. It opens no files.

pub mod choice;
pub mod history;
pub mod judge;
pub mod leases;
pub mod queues;
pub mod random;
pub mod recorder;
mod search;
mod shrink;
mod state;
mod step;
pub mod timeline;
mod versions;
