//! The tests of this crate, in one program.

#![allow(clippy::unwrap_used, reason = "tests: what is unwrapped is what is asserted")]

mod blob_oracle;
mod blob_walk;
mod blobs;
mod blocks;
mod cleanup;
mod clock_steps;
mod containers;
mod content;
mod garbage;
mod histories;
mod interleaving;
mod kills;
mod kit;
mod lists;
mod logs;
mod more;
mod oracle;
mod page_copies;
mod page_readers;
mod page_states;
mod pages;
mod readers;
mod servers;
mod upkeep;
mod walk;
mod watched_objects;
