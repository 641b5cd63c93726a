//! The engine on a real cluster: what it believes of Cassandra, the promises of every engine, and what becomes of
//! them when requests are lost and directories change.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

mod directory_under_fire;
mod janitor;
mod large_merges;
mod leases;
mod lost_answers;
mod lwt_contract;
mod scan;
mod slots;
mod suite;
mod tombstones;
mod upgrade;
